/* Which title of a session counts: the same one whatever the order of the lines. */
#include "chathist/history/title.h"

#include <stdlib.h>

#include "test.h"

/* Adds a title with an id, the last digits of its year, a text, and the ids that it replaces. */
static void add(struct titles *t, const char *id, unsigned year, const char *text,
                const char *replaces)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    struct message m = MESSAGE_INIT;

    buf_addf(&line,
             "{\"id\":\"%s\",\"session_id\":\"s\",\"timestamp\":\"%04u-01-01T00:00:00Z\","
             "\"role\":\"title\",\"content\":\"%s\"%s%s}",
             id, year, text, *replaces ? ",\"replaces\":" : "", replaces);
    if (CHECK(message_parse(&m, buf_str(&line))))
        titles_add(t, &m);
    message_release(&m);
    buf_release(&line);
}

static bool counts(const struct titles *t, const char *text)
{
    const struct title *found = titles_find(t);

    return found ? str_eq_c(found->text, text) : *text == '-';
}

/* Checks the title that counts, also of the set that is written and read again. */
#define CHECK_TITLE(t, text)                                                                       \
    do {                                                                                           \
        struct buf set_ = BUF_INIT(BUF_SMALL);                                                     \
        struct titles again_ = {0};                                                                \
                                                                                                   \
        CHECK(counts(t, text));                                                                    \
        titles_write(t, &set_);                                                                    \
        titles_add_known(&again_, buf_str(&set_));                                                 \
        CHECK(counts(&again_, text));                                                              \
        titles_release(&again_);                                                                   \
        buf_release(&set_);                                                                        \
    } while (0)

TEST(a_title_that_is_replaced_does_not_count)
{
    struct titles t = {0};

    CHECK_TITLE(&t, "-");
    add(&t, "a", 9999, "ahead", "");
    CHECK_TITLE(&t, "ahead");
    add(&t, "b", 2026, "mine", "[\"a\"]");
    CHECK_TITLE(&t, "mine");
    add(&t, "c", 2025, "older", "");
    CHECK_TITLE(&t, "mine");
    add(&t, "d", 2024, "", "[\"b\",\"c\"]");
    CHECK_TITLE(&t, "");
    add(&t, "e", 2023, "both", "[\"d\",7,null,\"unknown\"]");
    CHECK_TITLE(&t, "both");
    titles_release(&t);
}

TEST(of_the_titles_that_nothing_replaces_the_latest_counts)
{
    struct titles t = {0};

    add(&t, "b", 2026, "\\u0000\\n\\\"", "");
    add(&t, "a", 2026, "smaller id", "");
    CHECK(titles_find(&t)->number == 0);
    add(&t, "b", 2026, "z", "");
    CHECK_TITLE(&t, "z");
    add(&t, "0", 2027, "later", "");
    CHECK_TITLE(&t, "later");
    titles_release(&t);
}

TEST(titles_that_replace_each_other_do_not_count)
{
    struct titles t = {0};
    struct draft d;

    add(&t, "a", 2026, "one", "[\"b\"]");
    add(&t, "b", 2026, "two", "[\"a\",\"b\"]");
    CHECK_TITLE(&t, "-");
    add(&t, "c", 2001, "three", "{\"x\":\"c\"}");
    CHECK_TITLE(&t, "three");
    draft_init(&d);
    titles_draft(&t, STR("four"), &d);
    CHECK_STR(buf_c(&d.field[FIELD_REPLACES]), "[\"c\"]");
    CHECK_STR(buf_c(&d.field[FIELD_CONTENT]), "\"four\"");
    draft_release(&d);
    titles_release(&t);
}

/* All orders of five lines, and all places at which the first ones are written and read. */
TEST(the_order_does_not_matter)
{
    static const struct {
        const char *id;
        unsigned year;
        const char *text, *replaces;
    } lines[] = {{"a", 9999, "1", ""},
                 {"b", 2026, "2", "[\"a\"]"},
                 {"c", 2027, "3", "[\"a\"]"},
                 {"d", 2028, "4", "[\"c\"]"},
                 {"e", 2025, "5", "[\"d\"]"}};
    size_t wrong = 0;

    for (unsigned order = 0; order < 3125; order++) {
        unsigned left = order, seen = 0, at[5];

        for (size_t i = 0; i < 5; i++, left /= 5) {
            at[i] = left % 5;
            seen |= 1u << at[i];
        }
        for (size_t cut = 0; seen == 31 && cut <= 5; cut++) {
            struct titles first = {0}, all = {0};
            struct buf set = BUF_INIT(BUF_SMALL);

            for (size_t i = 0; i < 5; i++)
                add(i < cut ? &first : &all, lines[at[i]].id, lines[at[i]].year, lines[at[i]].text,
                    lines[at[i]].replaces);
            titles_write(&first, &set);
            titles_add_known(&all, buf_str(&set));
            wrong += !counts(&all, "2");
            titles_release(&first);
            titles_release(&all);
            buf_release(&set);
        }
    }
    CHECK_INT(wrong, 0);
}

TEST(another_text_is_no_set)
{
    static const char *const texts[] = {
        "", "x", "{}", "[[1]]", "[[1,\"a\"]]", "[[\"1\",\"a\",\"b\"]]", "[1,null,{}]"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct titles t = {0};

        titles_add_known(&t, str_of(texts[i]));
        CHECK(!titles_find(&t));
        titles_release(&t);
    }
}
