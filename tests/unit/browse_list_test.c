#include "browse/list.h"

#include <stdint.h>
#include <stdio.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "test.h"

/* Puts sessions `letter`0 and so on into a list, the last one first, each used `seconds` after the
 * one before. */
static void put(struct session_rows *s, size_t history, char letter, size_t count, int64_t start,
                int64_t seconds, size_t scope)
{
    struct session_list list = {0};

    for (size_t i = count; i-- > 0;) {
        struct buf text = BUF_INIT(BUF_SMALL);
        struct session *to = session_list_add(&list);

        buf_addf(&text, "%c%zu", letter, i);
        to->id = session_list_copy(&list, buf_str(&text));
        buf_clear(&text);
        time_add_iso(&text, (start + (int64_t)i * seconds) * TIME_SECOND);
        to->last_used = session_list_copy(&list, buf_str(&text));
        to->used = (start + (int64_t)i * seconds) * TIME_SECOND;
        to->count = 10 * i;
        to->preview = to->id;
        buf_release(&text);
    }
    browse_sessions_put(s, history, &list, scope, BROWSE_NEWEST);
}

TEST(several_histories_are_merged_by_time)
{
    struct session_rows s = {.lists = mem_zalloc(3 * sizeof(struct session_list))};

    put(&s, 0, 'a', 700, 1000, 30, 1);
    CHECK_INT(s.count, 700);
    put(&s, 1, 'b', 1500, 7000, 10, 3);
    put(&s, 2, 'c', 3, 1, 1, 3);
    CHECK_INT(s.count, 2203);
    for (size_t i = 1; i < s.count; i++)
        CHECK(str_compare(s.at[i - 1].session->last_used, s.at[i].session->last_used) >= 0);
    CHECK_STR(s.at[0].session->id.p, "b1499");
    CHECK_STR(s.at[2202].session->id.p, "c0");
    CHECK_INT(browse_sessions_find(&s, 2, STR("c0")), 2202);
    CHECK_INT(browse_sessions_find(&s, BROWSE_ANY_HISTORY, STR("b1499")), 0);
    CHECK(browse_sessions_find(&s, 0, STR("c0")) == SIZE_MAX);
    /* Fewer of them. */
    browse_sessions_put(&s, 0, NULL, 1, BROWSE_NEWEST);
    CHECK_INT(s.count, 700);
    CHECK_STR(s.at[699].session->id.p, "a0");
    session_rows_release(&s, 3);
}

static void check_order(struct session_rows *s, enum browse_order order, size_t scope,
                        const char *want)
{
    struct buf ids = BUF_INIT(BUF_SMALL);

    browse_sessions_put(s, 0, NULL, scope, order);
    for (size_t i = 0; i < s->count; i++)
        buf_addf(&ids, "%s ", s->at[i].session->id.p);
    CHECK_STR(buf_c(&ids), want);
    buf_release(&ids);
}

TEST(sessions_stand_in_the_order_that_is_wanted)
{
    struct session_rows s = {.lists = mem_zalloc(3 * sizeof(struct session_list))};

    put(&s, 0, 'b', 3, 1000, 30, 2);
    put(&s, 1, 'a', 2, 1050, 30, 2);
    check_order(&s, BROWSE_NEWEST, 2, "a1 b2 a0 b1 b0 ");
    check_order(&s, BROWSE_OLDEST, 2, "b0 b1 a0 b2 a1 ");
    check_order(&s, BROWSE_LONGEST, 2, "b2 a1 b1 a0 b0 ");
    check_order(&s, BROWSE_BY_TITLE, 2, "a0 a1 b0 b1 b2 ");
    check_order(&s, BROWSE_OLDEST, 1, "b0 b1 b2 ");
    session_rows_release(&s, 3);
}

/* ---- hits */

static void add_hit_of(struct browse_hits *hits, size_t history, const char *session,
                       const char *role)
{
    struct message m = MESSAGE_INIT;
    struct hit hit = {.message = &m, .text = STR("one"), .in_content = true, .len = 3};
    char line[200];

    snprintf(line, sizeof line,
             "{\"id\":\"m\",\"session_id\":\"%s\",\"timestamp\":\"t\",\"role\":\"%s\","
             "\"content\":\"x\"}",
             session, role);
    CHECK(message_parse(&m, str_of(line)));
    browse_hits_add(hits, history, &hit);
    message_release(&m);
}

static void add_hit(struct browse_hits *hits, size_t history, const char *session)
{
    add_hit_of(hits, history, session, "user");
}

/* A copied history has the same ids. */
TEST(a_hit_is_one_of_its_history_and_session)
{
    struct browse_hits hits = {0}, batch = {0};

    add_hit(&batch, 0, "s");
    add_hit(&batch, 0, "t");
    add_hit(&batch, 1, "s");
    browse_hits_move(&hits, &batch, false);
    CHECK_INT(browse_hits_find(&hits, 1, STR("s"), STR("m")), 2);
    CHECK_INT(browse_hits_find(&hits, 0, STR("t"), STR("m")), 1);
    CHECK_INT(browse_hits_find(&hits, BROWSE_ANY_HISTORY, STR("s"), STR("m")), 0);
    CHECK(browse_hits_find(&hits, 1, STR("t"), STR("m")) == SIZE_MAX);
    browse_hits_release(&hits);
}

static void check_hits(const struct browse_hits *h, const char *want)
{
    char seen[20] = "";

    for (size_t i = 0; i < h->count; i++)
        strncat(seen, h->at[i].session.p, 1);
    CHECK_STR(seen, want);
}

/* Later hits of a session go to its earlier ones; sessions keep the order of their first hits, or
 * stand in that of the number of their hits. */
TEST(hits_of_one_session_stand_together)
{
    static const char *const batches[] = {"ab", "ca", "bad", "a"};
    struct browse_hits all = {0}, batch = {0};

    for (size_t i = 0; i < 4; i++) {
        for (const char *s = batches[i]; *s; s++)
            add_hit(&batch, 0, (char[]){*s, '\0'});
        browse_hits_move(&all, &batch, false);
        CHECK_INT(batch.count, 0);
    }
    add_hit(&batch, 1, "a");
    browse_hits_move(&all, &batch, false);
    check_hits(&all, "aaaabbcda");
    for (const char *s = "ccc"; *s; s++)
        add_hit(&batch, 0, (char[]){*s, '\0'});
    browse_hits_move(&all, &batch, true);
    check_hits(&all, "aaaaccccbbda");
    browse_hits_sort(&all, false);
    check_hits(&all, "aaaabbccccda");
    browse_hits_release(&all);
}

/* Adds hits: a letter for each session, a capital one for the result of a tool. */
static void add_results(struct browse_hits *to, const char *hits)
{
    struct browse_hits batch = {0};

    for (; *hits; hits++)
        add_hit_of(&batch, 0, (char[]){(char)(*hits | 0x20), '\0'},
                   *hits & 0x20 ? "assistant" : "tool");
    browse_hits_move(to, &batch, false);
}

/* The rows: their letters, and the number of those that are folded. */
static void check_rows(const struct browse_hits *h, const char *want)
{
    struct buf seen = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < h->row_count; i++) {
        const struct browse_hit *hit = &h->at[h->rows[i].hit];
        bool tool = str_eq(hit->role, STR("tool"));

        if (h->rows[i].folded > 0)
            buf_addf(&seen, "%zu", h->rows[i].folded);
        else
            buf_add_byte(&seen, tool ? (char)(hit->session.p[0] & ~0x20) : hit->session.p[0]);
    }
    CHECK_STR(buf_c(&seen), want);
    buf_release(&seen);
}

TEST(results_of_tools_fold)
{
    struct browse_hits h = {0}, old;

    /* Without another hit none does, and the first hit of a session never. */
    add_results(&h, "AABA");
    check_rows(&h, "AAAB");
    add_results(&h, "abAB");
    check_rows(&h, "Aa3BbB");
    add_results(&h, "BaB");
    check_rows(&h, "Aaa3Bb3");
    CHECK(!browse_hits_folds(&h, 0) && !browse_hits_folds(&h, 1) && browse_hits_folds(&h, 3));
    CHECK_INT(browse_hits_find(&h, 0, STR("b"), STR("m")), 4);
    /* One session, all, one of them again; what is read again keeps that. */
    CHECK_INT(browse_hits_fold(&h, 3, false), 3);
    check_rows(&h, "AaaAAABb3");
    CHECK_INT(browse_hits_fold(&h, 8, true), 8);
    check_rows(&h, "AaaAAABbBBB");
    CHECK_INT(browse_hits_fold(&h, 5, false), 3);
    check_rows(&h, "Aaa3BbBBB");
    old = browse_hits_restart(&h);
    browse_hits_release(&old);
    check_rows(&h, "");
    add_results(&h, "aAAbBB");
    check_rows(&h, "a2bBB");
    CHECK_INT(browse_hits_fold(&h, 4, true), 3);
    check_rows(&h, "a2b2");
    browse_hits_release(&h);
}

/* ---- rows ---- */

TEST(a_row_shows_the_match_whatever_the_width)
{
    struct buf content = BUF_INIT(BUF_SMALL);
    struct browse_hits hits = {0};
    struct message m = MESSAGE_INIT;
    struct hit hit = {.message = &m};

    for (int i = 0; i < 60; i++)
        buf_addf(&content, "word%d ", i);
    CHECK(message_parse(&m, STR("{\"id\":\"m\",\"session_id\":\"sess_1_abcdef\","
                                "\"timestamp\":\"2024-06-27T12:00:00+00:00\","
                                "\"role\":\"assistant\",\"content\":\"x\"}")));
    hit.text = buf_str(&content);
    hit.at = (size_t)(str_find(hit.text, STR("word40")) - hit.text.p);
    hit.len = 6;
    browse_hits_add(&hits, 0, &hit);
    for (size_t width = 30; width < 100; width++) {
        struct browse_lines l = {0};
        struct buf marked = BUF_INIT(BUF_SMALL);

        browse_row_hit(&l, &hits.at[0], false, &(struct browse_rows){.columns = width});
        CHECK(str_starts(buf_str(&l.text),
                         width < 40 ? STR("24-06-27 asst ") : STR("2024-06-27 asst ")));
        CHECK(browse_line_columns(&l, 0) <= width);
        for (size_t i = 0; i < l.text.len; i++)
            if (l.styles[i] == BROWSE_HIT)
                buf_add_byte(&marked, l.text.data[i]);
        CHECK_STR(buf_c(&marked), "word40");
        buf_release(&marked);
        browse_lines_release(&l);
    }
    browse_hits_release(&hits);
    message_release(&m);
    buf_release(&content);
}
