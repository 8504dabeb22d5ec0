#include "browse/text.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "test.h"
#include "browse/panel.h"

/* A message of that content. */
static void add(struct thread *t, const char *role, struct str content)
{
    struct buf line = BUF_INIT(BUF_LINE);

    buf_addf(&line, "{\"id\":\"m%zu\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"%s\"",
             t->count, role);
    json_add_member(&line, "content", content);
    buf_add_byte(&line, '}');
    thread_add(t, buf_str(&line));
    buf_release(&line);
}

/* Numbered lines, of which some are in a block of code: so many bytes, or some more. */
static void add_lines(struct buf *text, size_t bytes)
{
    for (size_t i = 0; text->len < bytes; i++)
        buf_addf(text, i % 1000 == 500 ? "```\n" : "line %zu: some words, \"quoted\", Größe\n", i);
}

/* The parts of message i join to its content. */
static void check_parts(const struct browse_parts *p, const struct thread *t, size_t i)
{
    struct buf one = BUF_INIT(BUF_LINE), two = BUF_INIT(BUF_LINE);
    struct str text = browse_parts_text(p, t, i, &one);
    size_t at = 0;

    CHECK(str_eq(text, message_content(&t->at[i], &two)));
    CHECK(p->first[i] < p->first[i + 1]);
    for (size_t k = p->first[i]; k < p->first[i + 1]; k++) {
        CHECK_INT(p->at[k].message, i);
        CHECK_INT(p->at[k].at, at);
        at += p->at[k].n < text.n - at ? p->at[k].n : text.n - at;
        CHECK(p->at[k].n == SIZE_MAX || p->at[k].n <= BROWSE_PART + BROWSE_PART / 2);
        /* No character is cut. */
        CHECK(at == text.n || ((unsigned char)text.p[at] & 0xc0) != 0x80);
    }
    CHECK_INT(at, text.n);
    buf_release(&one);
    buf_release(&two);
}

TEST(a_message_is_cut_at_its_lines)
{
    struct thread t = {0};
    struct browse_parts p;
    struct buf text = BUF_INIT(SIZE_MAX);
    bool in_code = false, in_text = false;

    add(&t, "user", STR("short"));
    add_lines(&text, 300000);
    add(&t, "assistant", buf_str(&text));
    add(&t, "user", STR(""));
    browse_parts_make(&p, &t);
    CHECK_INT(p.first[1], 1);
    CHECK(p.first[2] > 15);
    for (size_t i = 0; i < t.count; i++)
        check_parts(&p, &t, i);
    for (size_t k = p.first[1] + 1; k < p.first[2]; k++) {
        CHECK(text.data[p.at[k].at - 1] == '\n');
        in_code = in_code || p.at[k].state.fence > 0;
        in_text = in_text || p.at[k].state.fence == 0;
    }
    /* It is known whether a part begins in a block of code. */
    CHECK(in_code && in_text);
    browse_parts_release(&p);
    thread_release(&t);
    buf_release(&text);
}

TEST(a_message_without_lines_is_cut_at_blanks_or_characters)
{
    struct thread t = {0};
    struct browse_parts p;
    struct buf text = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < 30000; i++)
        buf_add_c(&text, "\xe6\x97\xa5");
    add(&t, "user", buf_str(&text));
    buf_clear(&text);
    for (size_t i = 0; i < 30000; i++)
        buf_addf(&text, "%zu ", i);
    add(&t, "user", buf_str(&text));
    browse_parts_make(&p, &t);
    for (size_t i = 0; i < t.count; i++)
        check_parts(&p, &t, i);
    for (size_t k = p.first[1] + 1; k < p.first[2]; k++)
        CHECK(text.data[p.at[k].at - 1] == ' ');
    browse_parts_release(&p);
    thread_release(&t);
    buf_release(&text);
}

/* ---- in the panel */

static void begin(struct browse_pane *p, size_t bytes, const char *role, struct buf *text)
{
    struct thread t = {0};
    struct browse_parts parts;

    buf_init(text, SIZE_MAX);
    add_lines(text, bytes);
    buf_add_c(text, "the needle is here\n");
    add(&t, "user", STR("before"));
    add(&t, role, buf_str(text));
    add(&t, "user", STR("behind"));
    browse_pane_init(p);
    browse_pane_resize(p, 60, 10);
    browse_parts_make(&parts, &t);
    browse_pane_set(p, &t, &parts, false);
}

static void end(struct browse_pane *p, struct buf *text)
{
    browse_pane_release(p);
    buf_release(text);
}

/* The bytes that are laid out. */
static size_t laid_out(const struct browse_pane *p)
{
    size_t bytes = 0, items = 0;

    for (size_t i = 0; i < p->parts.count; i++) {
        bytes += p->parts.at[i].lines.text.len;
        items += p->parts.at[i].laid;
    }
    CHECK_INT(items, p->laid);
    return bytes;
}

static struct str line_at(struct browse_pane *p, size_t row)
{
    const struct browse_lines *l;
    size_t line;
    bool current;

    if (!browse_pane_line(p, row, &l, &line, &current))
        return STR_NONE;
    return (struct str){buf_c(&l->text) + l->at[line].at, l->at[line].n};
}

/* Moves to the next hit, or the one before, that is not past the end. */
static bool next_hit(struct browse_pane *p, bool on)
{
    bool wrapped;

    while (browse_pane_is_counting(p))
        browse_pane_count(p);
    return browse_pane_next_hit(p, on, &wrapped) && !wrapped;
}

/* Whatever the key, no more is laid out for it than some parts, of a message of any length. */
TEST(no_key_lays_out_more_than_is_near)
{
    struct browse_pane p;
    struct buf text;
    size_t before, most = 0;

    begin(&p, (size_t)20 << 20, "assistant", &text);
    for (int i = 0; i < 200; i++) {
        before = laid_out(&p);
        switch (i % 8) {
        case 0:
            browse_pane_last(&p);
            break;
        case 1:
            browse_pane_scroll(&p, -10);
            break;
        case 2:
            browse_pane_step(&p, false);
            break;
        case 3:
            browse_pane_resize(&p, 40 + (size_t)i, 10);
            before = 0;
            break;
        case 4:
            browse_pane_search(&p, STR("line"), false);
            before = 0;
            break;
        case 5:
            (void)next_hit(&p, i % 16 > 8);
            break;
        case 6:
            browse_pane_scroll(&p, 100);
            break;
        default:
            browse_pane_first(&p);
            break;
        }
        if (laid_out(&p) > before && laid_out(&p) - before > most)
            most = laid_out(&p) - before;
    }
    CHECK(most > 0);
    CHECK(most < (size_t)64 << 10);
    end(&p, &text);
}

TEST(a_long_message_is_read_from_its_beginning_to_its_end)
{
    struct browse_pane p;
    struct buf text;
    struct str rest;
    size_t lines = 0;

    begin(&p, 200000, "assistant", &text);
    rest = buf_str(&text);
    /* The first message has three lines, this one a header. */
    browse_pane_scroll(&p, 4);
    while (rest.n > 0) {
        struct str want = str_cut(&rest, '\n');

        if (p.at != 1 || !str_eq(line_at(&p, 0), want))
            break;
        browse_pane_scroll(&p, 1);
        lines++;
    }
    /* Down to where the end of the messages is at the bottom. */
    CHECK(rest.n < 500 && lines > 4000);
    /* And back. */
    browse_pane_scroll(&p, 1 - (long)lines);
    CHECK(str_starts(line_at(&p, 0), STR("line 0:")));
    end(&p, &text);
}

TEST(hits_are_counted_in_slices)
{
    struct browse_pane p;
    struct buf text;
    size_t slices = 0, number, total;

    begin(&p, (size_t)5 << 20, "assistant", &text);
    browse_pane_search(&p, STR("NEEDLE"), false);
    for (; browse_pane_is_counting(&p); slices++)
        browse_pane_count(&p);
    CHECK(slices > 15 && slices < 30);
    /* Nothing has moved. */
    CHECK(!p.has_hit && p.at == 0 && p.top == 0);
    CHECK(next_hit(&p, true));
    CHECK(p.has_hit && p.hit == 1 && p.at == 1);
    CHECK_INT(p.hit_at.at, text.len - strlen("needle is here\n"));
    CHECK(str_eq_c(line_at(&p, 5), "the needle is here"));
    /* The next one is the same, all the way round; so is the one before. */
    for (int on = 0; on < 2; on++) {
        bool wrapped = false;

        CHECK(browse_pane_next_hit(&p, on, &wrapped) && wrapped);
        CHECK(p.has_hit && p.hit == 1);
    }
    CHECK(browse_pane_hit_number(&p, &number, &total) && number == 1 && total == 1);
    /* There is none at all. */
    browse_pane_search(&p, STR("nowhere"), false);
    CHECK(!next_hit(&p, true) && !p.has_hit);
    end(&p, &text);
}

TEST(hits_come_one_after_the_other_whatever_the_parts)
{
    struct browse_pane p;
    struct buf text;
    size_t at = 0, hits = 0;

    begin(&p, 100000, "assistant", &text);
    browse_pane_search(&p, STR("Words, \"Quoted"), false);
    for (const char *next = buf_c(&text); (next = strstr(next, "words, \"quoted")); next++) {
        CHECK(next_hit(&p, true));
        CHECK_INT(p.hit_at.at, next - buf_c(&text));
        at = p.hit_at.at;
        hits++;
    }
    CHECK(hits > 1000);
    CHECK(next_hit(&p, false));
    CHECK(p.hit_at.at < at);
    end(&p, &text);
}

TEST(a_hit_between_two_parts_is_found)
{
    for (size_t at = BROWSE_PART - 10; at < BROWSE_PART + 4; at++) {
        struct thread t = {0};
        struct browse_parts parts;
        struct browse_pane p;
        struct buf text = BUF_INIT(SIZE_MAX);

        memset(buf_room(&text, BROWSE_PART * 2), '.', BROWSE_PART * 2);
        buf_grew(&text, BROWSE_PART * 2);
        memcpy(text.data + at, "needle", 6);
        add(&t, "user", buf_str(&text));
        browse_pane_init(&p);
        browse_parts_make(&parts, &t);
        browse_pane_set(&p, &t, &parts, false);
        browse_pane_search(&p, STR("needle"), false);
        CHECK(next_hit(&p, true));
        CHECK(p.hit_at.at == at && p.hit_at.n == 6);
        end(&p, &text);
    }
}

TEST(a_long_result_is_folded_to_a_line_and_unfolds)
{
    struct browse_pane p;
    struct buf text;

    begin(&p, 200000, "tool", &text);
    CHECK(str_eq_c(line_at(&p, 1), "before"));
    CHECK(str_starts(line_at(&p, 4), STR("\xe2\x96\xb8 result line 0:")));
    CHECK(str_eq_c(line_at(&p, 7), "behind"));
    browse_pane_step(&p, true);
    browse_pane_fold(&p, false);
    CHECK(str_starts(line_at(&p, 5), STR("line 0:")));
    browse_pane_scroll(&p, 3000);
    CHECK(p.at == 1 && p.top > 5);
    browse_pane_fold(&p, false);
    CHECK(p.at == 1 && str_starts(line_at(&p, 4), STR("\xe2\x96\xb8 result line 0:")));
    end(&p, &text);
}

TEST(stored_reasoning_is_folded_to_a_line_and_unfolds)
{
    struct thread t = {0};
    struct browse_parts parts;
    struct browse_pane p;

    thread_add(&t,
               STR("{\"id\":\"m\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"assistant\","
                   "\"content\":\"text\",\"reasoning\":\"one\\ntwo\"}"));
    browse_pane_init(&p);
    browse_pane_resize(&p, 60, 10);
    browse_parts_make(&parts, &t);
    browse_pane_set(&p, &t, &parts, false);
    CHECK(str_eq_c(line_at(&p, 1), "\xe2\x96\xb8 reasoning one two"));
    CHECK(str_eq_c(line_at(&p, 2), "text"));
    browse_pane_fold(&p, false);
    CHECK(str_eq_c(line_at(&p, 1), "\xe2\x96\xbe reasoning"));
    CHECK(str_eq_c(line_at(&p, 2), "one"));
    CHECK(str_eq_c(line_at(&p, 3), "two"));
    CHECK(str_eq_c(line_at(&p, 5), "text"));
    browse_pane_release(&p);
}

TEST(a_hit_in_a_call_is_brought_into_view)
{
    struct thread t = {0};
    struct browse_parts parts;
    struct browse_pane p;
    struct buf line = BUF_INIT(BUF_LINE);
    bool seen = false;

    buf_add_c(&line,
              "{\"id\":\"m\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"assistant\","
              "\"content\":\"text\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
              "\"function\":{\"name\":\"run\",\"arguments\":\"{");
    for (int i = 0; i < 30; i++)
        buf_addf(&line, "\\\"a%d\\\":%d,", i, i);
    buf_add_c(&line, "\\\"b\\\":\\\"needle\\\"}\"}}]}");
    thread_add(&t, buf_str(&line));
    browse_pane_init(&p);
    browse_pane_resize(&p, 60, 10);
    browse_parts_make(&parts, &t);
    browse_pane_set(&p, &t, &parts, false);
    browse_pane_search(&p, STR("needle"), false);
    CHECK(next_hit(&p, true));
    CHECK(p.hit_at.at == SIZE_MAX);
    for (size_t row = 0; row < 10; row++)
        seen = seen || str_eq_c(line_at(&p, row), "b: needle");
    CHECK(seen);
    end(&p, &line);
}
