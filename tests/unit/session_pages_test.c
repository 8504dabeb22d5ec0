#include "chathist/history/session_pages.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

/* So many lines: sessions of ten each, and every 7th line is of one that was left long ago. */
static void grow(int lines)
{
    struct buf b = scratch_get("h");

    for (int i = 0; i < lines; i++, made++)
        buf_addf(
            &b,
            "{\"id\":\"%d\",\"session_id\":\"s%d\",\"timestamp\":\"time %d\",\"role\":\"user\","
            "\"content\":\"%0*d\"}\n",
            made, made % 7 == 6 ? made / 31 : made / 10, made, 200 + made % 100, made);
    scratch_put_bytes("h", b.data, b.len);
    buf_release(&b);
}

/* An index of several segments, each session of which may go on in the next one. */
static void begin(struct session_pages *p)
{
    scratch_enter();
    made = 0;
    *p = (struct session_pages){0};
    scratch_put("h", "");
    grow(4000);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(session_pages_open(p, &history, i > 0, NULL), 0);
        CHECK(p->by_index);
        grow(i % 2 ? 40 : 400);
    }
    CHECK_INT(session_pages_open(p, &history, true, NULL), 0);
}

static bool same_session(const struct session *a, const struct session *b)
{
    return str_eq((struct str){a->id, a->id_len}, (struct str){b->id, b->id_len}) &&
           strcmp(a->preview, b->preview) == 0 && strcmp(a->created_at, b->created_at) == 0 &&
           strcmp(a->last_used, b->last_used) == 0 && a->count == b->count &&
           a->bytes == b->bytes && a->last_line == b->last_line;
}

/* Is each page what the list of all has there? */
static void check_pages(const struct session_pages *p, size_t limit)
{
    struct session_list all, page;

    CHECK_INT(session_list_load(&all, IO_CWD, "h", NULL), 0);
    CHECK_INT(p->count, all.count);
    for (size_t first = 0; first < all.count + 2; first += limit / 2 + 1) {
        CHECK_INT(session_pages_read(p, first, limit, &page), 0);
        CHECK_INT(page.count, first >= all.count          ? 0
                              : all.count - first < limit ? all.count - first
                                                          : limit);
        for (size_t i = 0; i < page.count; i++)
            CHECK(same_session(&page.at[i], &all.at[first + i]));
        session_list_release(&page);
    }
    session_list_release(&all);
}

static void check_places(const struct session_pages *p)
{
    struct session_list all;
    size_t place;

    CHECK_INT(session_list_load(&all, IO_CWD, "h", NULL), 0);
    for (size_t i = 0; i < all.count; i++) {
        place = SIZE_MAX;
        CHECK_INT(session_pages_find(p, (struct str){all.at[i].id, all.at[i].id_len}, &place), 1);
        CHECK_INT(place, i);
    }
    CHECK_INT(session_pages_find(p, STR("s"), &place), 0);
    CHECK_INT(session_pages_find(p, STR("s99999999"), &place), 0);
    session_list_release(&all);
}

TEST(each_page_is_a_part_of_the_list_of_all)
{
    struct session_pages p;
    size_t hidden = 0;

    begin(&p);
    CHECK(p.by_index && p.index.count > 2);
    for (size_t i = 0; i < p.index.count; i++)
        hidden += p.parts[i].hidden_count;
    /* Or this would not be a test of them. */
    CHECK(hidden > 20);
    check_pages(&p, 1);
    check_pages(&p, 7);
    check_pages(&p, 100);
    check_pages(&p, SIZE_MAX / 4);
    check_places(&p);
    session_pages_close(&p);
    scratch_leave();
}

TEST(without_an_index_they_are_the_same)
{
    struct session_pages p = {0};

    scratch_enter();
    made = 0;
    scratch_put("h", "");
    CHECK_INT(session_pages_open(&p, &history, false, NULL), 0);
    CHECK_INT(p.count, 0);
    check_pages(&p, 5);
    grow(300);
    CHECK_INT(session_pages_open(&p, &history, true, NULL), 0);
    CHECK(!p.by_index);
    check_pages(&p, 7);
    check_places(&p);
    /* It becomes large enough for one. */
    grow(3000);
    CHECK_INT(session_pages_open(&p, &history, true, NULL), 0);
    CHECK(p.by_index && p.list.count == 0);
    check_pages(&p, 100);
    /* And it is replaced by another one. */
    scratch_put("h", "");
    made = 5000;
    grow(20);
    CHECK_INT(session_pages_open(&p, &history, false, NULL), 0);
    CHECK(!p.by_index);
    check_pages(&p, 3);
    session_pages_close(&p);
    scratch_leave();
}

TEST(an_index_that_is_not_true_is_seen)
{
    struct session_pages p;
    struct session_list page;
    struct buf b;
    size_t place;

    begin(&p);
    session_pages_close(&p);
    b = scratch_get("h.idx");
    /* In the first segment, behind its header: texts, in the middle of them. */
    for (size_t i = b.len / 2; i < b.len; i++)
        b.data[i] ^= 1;
    scratch_put_bytes("h.idx", b.data, b.len);
    (void)session_pages_open(&p, &history, false, NULL);
    if (p.by_index && (session_pages_read(&p, 0, SIZE_MAX / 4, &page) < 0 ||
                       session_pages_find(&p, STR("s3"), &place) < 0))
        CHECK_INT(session_pages_open(&p, &history, false, NULL), 0);
    check_pages(&p, 50);
    session_pages_close(&p);
    buf_release(&b);
    scratch_leave();
}

TEST(what_is_given_up_is_closed)
{
    struct session_pages p = {0};
    struct history h = history;
    atomic_bool cancel = true;
    struct err e = ERR_INIT;

    scratch_enter();
    made = 0;
    scratch_put("h", "");
    /* In several pieces: each is a chance to give up. */
    grow(20000);
    h.cancel = &cancel;
    CHECK_INT(session_pages_open(&p, &h, false, &e), -1);
    CHECK_INT(e.kind, ERR_SIGNAL);
    CHECK(access("h.idx", F_OK) < 0);
    err_release(&e);
    atomic_store(&cancel, false);
    CHECK_INT(session_pages_open(&p, &h, false, NULL), 0);
    CHECK(p.by_index);
    session_pages_close(&p);
    scratch_leave();
}
