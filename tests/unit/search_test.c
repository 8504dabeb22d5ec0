#include "chathist/search/search.h"

#include "test.h"
#include "chathist/base/time.h"
#include "chathist/search/session_search.h"
#include "scratch.h"

/* ---- searching a history ---- */

static void put_history(void)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    static const char *const lines[][4] = {
        {"1", "s1", "user", "How do I say \\u00dcber?"},
        {"2", "s1", "assistant", "As \\\"über\\\"\\nor so"},
        {"3", "s2", "user", "nothing here but id s1 and 5"},
        {"4", "s2", "tool", ""},
    };

    for (size_t i = 0; i < 4; i++)
        buf_addf(&b,
                 "{\"id\":\"%s\",\"session_id\":\"%s\",\"timestamp\":\"t\",\"role\":\"%s\","
                 "\"content\":\"%s\",\"model\":\"model-x\"}\n",
                 lines[i][0], lines[i][1], lines[i][2], lines[i][3]);
    buf_add_c(&b, "über in garbage\n");
    scratch_put("f", buf_c(&b));
    buf_release(&b);
}

static void check_search(const char *needle, const struct filter *filter, const char *want)
{
    struct search s;
    struct pattern p;
    struct hit h;
    struct buf ids = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int more;

    pattern_init(&p);
    CHECK_INT(pattern_add(&p, str_of(needle), &e), 0);
    CHECK_INT(search_open(&s, FILE_CWD, "f", &p, filter, &e), 0);
    while ((more = search_next(&s, &h, &e)) > 0) {
        buf_add_str(&ids, h.message->id);
        buf_add_byte(&ids, ' ');
        CHECK(h.at + h.len <= h.text.n);
        CHECK(h.line.terminated);
    }
    CHECK_INT(more, 0);
    CHECK_STR(buf_c(&ids), want);
    search_close(&s);
    pattern_release(&p);
    buf_release(&ids);
    err_release(&e);
}

TEST(only_decoded_content_is_searched)
{
    scratch_enter();
    put_history();
    check_search("üBER", NULL, "2 1 ");
    check_search("u00dc", NULL, "");
    check_search("\"Ü"
                 "BER\"\nOR",
                 NULL, "2 ");
    check_search("model-x", NULL, "");
    check_search("s1", NULL, "3 ");
    check_search("", NULL, "4 3 2 1 ");
    scratch_leave();
}

TEST(a_filter_narrows_the_search)
{
    struct filter role = {0};
    struct filter session = {0};

    scratch_enter();
    put_history();
    filter_add(&role.roles, STR("user"));
    filter_add(&session.sessions, STR("s2"));
    check_search("", &role, "3 1 ");
    check_search("über", &role, "1 ");
    check_search("", &session, "4 3 ");
    check_search("über", &session, "");
    filter_release(&role);
    filter_release(&session);
    scratch_leave();
}

TEST(a_needle_that_is_not_utf8_finds_its_repaired_form)
{
    scratch_enter();
    scratch_put("f", "{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
                     "\"content\":\"caf\xef\xbf\xbd!\"}\n");
    check_search("caf\xe9!", NULL, "1 ");
    check_search("\xa9", NULL, "1 ");
    check_search("f!", NULL, "");
    scratch_leave();
}

TEST(an_unreadable_history_is_an_error)
{
    struct search s;
    struct pattern p;
    struct err e = ERR_INIT;

    pattern_init(&p);
    CHECK_INT(search_open(&s, FILE_CWD, "/", &p, NULL, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '/': is a directory");
    err_release(&e);
}

TEST(a_message_that_takes_too_long_does_not_end_the_search)
{
    struct search s;
    struct pattern p;
    struct hit h;
    struct err e = ERR_INIT;
    struct buf text = BUF_INIT(BUF_SMALL);

    scratch_enter();
    for (int i = 0; i < 3; i++)
        buf_addf(&text,
                 "{\"id\":\"%d\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%s\"}\n",
                 i, i == 1 ? "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab" : "aac");
    scratch_put("f", buf_c(&text));
    pattern_init(&p);
    p.regex = true;
    CHECK_INT(pattern_add(&p, STR("(?:(a+)+)+[cd]"), &e), 0);
    CHECK_INT(search_open(&s, FILE_CWD, "f", &p, NULL, &e), 0);
    CHECK_INT(search_next(&s, &h, &e), 1);
    CHECK_INT(search_next(&s, &h, &e), SEARCH_FAILED);
    CHECK_STR(err_text(&e), "match limit exceeded");
    CHECK(str_eq_c(h.message->id, "1"));
    err_release(&e);
    CHECK_INT(search_next(&s, &h, &e), 1);
    CHECK(str_eq_c(h.message->id, "0"));
    CHECK_INT(search_next(&s, &h, &e), 0);
    search_close(&s);
    pattern_release(&p);
    buf_release(&text);
    scratch_leave();
}

/* Line by line in a small file, by a sweep in a large one: what was given up gives nothing more. */
static void check_cancel(size_t lines)
{
    struct buf text = BUF_INIT(BUF_LINE);
    atomic_bool cancel = false;
    struct search s;
    struct pattern p;
    struct hit h;

    scratch_enter();
    for (size_t i = 0; i < lines; i++)
        buf_addf(&text,
                 "{\"id\":\"%zu\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%s\"}\n",
                 i, i % (lines / 2) == 0 ? "needle" : "hay");
    scratch_put_bytes("f", text.data, text.len);
    pattern_init(&p);
    CHECK_INT(pattern_add(&p, STR("needle"), NULL), 0);
    CHECK_INT(search_open(&s, FILE_CWD, "f", &p, NULL, NULL), 0);
    s.cancel = &cancel;
    CHECK_INT(search_next(&s, &h, NULL), 1);
    cancel = true;
    CHECK_INT(search_next(&s, &h, NULL), 0);
    search_close(&s);
    pattern_release(&p);
    buf_release(&text);
    scratch_leave();
}

TEST(a_search_can_be_given_up)
{
    check_cancel(10);
    check_cancel(200000);
}

/* Writes 200,000 messages to `f`, of which every `nth` has the word needle. */
static void write_hay(size_t nth)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < 200000; i++)
        buf_addf(&text,
                 "{\"id\":\"%zu\",\"session_id\":\"s%zu\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%s\"}\n",
                 i, i / 10, i % nth == 0 ? "needle" : "hay");
    scratch_put_bytes("f", text.data, text.len);
    buf_release(&text);
}

/* Counts the hits of a search that may look at one chunk at a time. */
static size_t count_in_slices(struct search *s, size_t *pauses)
{
    int64_t until = 0;
    struct hit h;
    size_t count = 0;
    int found;

    s->until = &until;
    while ((found = search_next(s, &h, NULL)) != 0) {
        *pauses += found == SEARCH_PAUSED;
        count += found == 1;
        until = found == SEARCH_PAUSED ? time_ticks() + 1 : 0;
    }
    return count;
}

TEST(a_search_pauses_and_continues)
{
    struct search s;
    struct pattern p;
    int64_t until = 0;
    uint64_t count = 0;
    size_t pauses = 0;

    scratch_enter();
    write_hay(1000);
    pattern_init(&p);
    CHECK_INT(pattern_add(&p, STR("needle"), NULL), 0);
    for (size_t threads = 1; threads <= 3; threads += 2) {
        CHECK_INT(search_open(&s, FILE_CWD, "f", &p, NULL, NULL), 0);
        s.threads = threads;
        CHECK_INT(count_in_slices(&s, &pauses), 200);
        search_close(&s);
        CHECK(pauses > 1);
    }
    CHECK_INT(search_open(&s, FILE_CWD, "f", &p, NULL, NULL), 0);
    s.until = &until;
    CHECK_INT(search_count(&s, false, &count, NULL), SEARCH_PAUSED);
    until = INT64_MAX;
    CHECK_INT(search_count(&s, false, &count, NULL), 1);
    CHECK_INT(count, 200);
    search_close(&s);
    pattern_release(&p);
    scratch_leave();
}

struct paused_search {
    struct pattern wanted[2];
    int64_t until;
};

static int open_paused(void *ctx, struct search *s, struct pattern *p, struct err *e)
{
    int result = search_open(s, FILE_CWD, "f", p, NULL, e);

    s->until = &((struct paused_search *)ctx)->until;
    return result;
}

TEST(a_search_for_sessions_pauses_and_continues)
{
    struct paused_search own = {.until = 0};
    struct query query = {0};
    struct session_search of = {.wanted = own.wanted,
                                .wanted_count = 2,
                                .query = &query,
                                .newest_only = true,
                                .open = open_paused,
                                .ctx = &own};
    size_t pauses = 0;
    int result;

    scratch_enter();
    write_hay(1000);
    pattern_init(&own.wanted[0]);
    pattern_init(&own.wanted[1]);
    CHECK_INT(pattern_add(&own.wanted[0], STR("needle"), NULL), 0);
    CHECK_INT(pattern_add(&own.wanted[1], STR("hay"), NULL), 0);
    CHECK_INT(query_parse(&query, STR("needle hay"), 0, NULL), 0);
    while ((result = session_search_run(&of, NULL)) == SEARCH_PAUSED) {
        own.until = time_ticks() + 1;
        pauses++;
    }
    CHECK_INT(result, 0);
    CHECK(pauses > 1);
    CHECK_INT(of.hits.count, 2 * 200);
    session_search_release(&of);
    /* One that is given up on the way. */
    own.until = 0;
    of = (struct session_search){
        .wanted = own.wanted, .wanted_count = 2, .query = &query, .open = open_paused, .ctx = &own};
    CHECK_INT(session_search_run(&of, NULL), SEARCH_PAUSED);
    session_search_release(&of);
    query_release(&query);
    pattern_release(&own.wanted[0]);
    pattern_release(&own.wanted[1]);
    scratch_leave();
}

/* ---- snippets ---- */

/* The snippet round `part` of content, with the match in brackets. */
static void check_snippet(const char *content, const char *part, size_t width, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct buf marked = BUF_INIT(BUF_SMALL);
    size_t at = (size_t)(strstr(content, part) - content);
    size_t mark = 99, mark_len = 99;

    buf_add_c(&out, "> ");
    search_snippet(&out, str_of(content), at, strlen(part), width, true, &mark, &mark_len);
    if (CHECK(mark + mark_len <= out.len)) {
        buf_add(&marked, out.data, mark);
        buf_add_byte(&marked, '[');
        buf_add(&marked, out.data + mark, mark_len);
        buf_add_byte(&marked, ']');
        buf_add_c(&marked, out.data + mark + mark_len);
    }
    CHECK_STR(buf_c(&marked), want);
    buf_release(&out);
    buf_release(&marked);
}

TEST(snippets_show_the_match_in_its_surroundings)
{
    check_snippet("short text", "text", 40, "> short [text]");
    check_snippet("0123456789abcdef", "89", 6, "> …67[89]ab…");
    check_snippet("0123456789abcdef", "01", 6, "> [01]2345…");
    check_snippet("0123456789abcdef", "ef", 6, "> …abcd[ef]");
    check_snippet("0123456789abcdef", "f", 6, "> …abcde[f]");
    check_snippet("0123456789", "0123456789", 4, "> [0123]…");
    check_snippet("0123456789", "5", 1, "> …[5]…");
    check_snippet("0123456789", "", 4, "> []0123…");
    check_snippet("", "", 10, "> []");
    check_snippet("x", "", 0, "> []…");
}

TEST(snippets_are_one_line_of_whole_characters)
{
    check_snippet("a\n\n  b\tc", "b", 40, "> a [b] c");
    check_snippet("\n  first\n", "first", 40, "> [first]");
    check_snippet("a b", " ", 40, "> a[] b");
    check_snippet("one\ntwo", "one\ntwo", 40, "> [one two]");
    check_snippet("äöüßä", "ü", 3, "> …ö[ü]ß…");
    check_snippet("a\x1b[31mb", "[31m", 40, "> a^[[[31m]b");
}

TEST(snippets_may_be_raw)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    search_snippet(&out, STR("a\x1b[0m\n\0b"), 0, 1, 40, false, NULL, NULL);
    CHECK_MEM(buf_c(&out), out.len, "a\x1b[0m \0b", 8);
    buf_release(&out);
}
