#include "history/session_index.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/session.h"
#include "chathist/history/thread.h"
#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

static int made; /* lines so far */

#define SESSIONS 40

static int sessions;

/* ---- a history ---- */

/* 2024-06-27T15:00Z */
#define NOW (INT64_C(1719500400) * TIME_SECOND)

/* Adds the time of a line. Most times ascend a little; some are equal, ahead, or no time. */
static void add_time(struct buf *b, int line)
{
    if (line % 41 == 11)
        buf_addf(b, "time %d", line);
    else
        time_add_iso(b,
                     NOW + (line % 37 == 5 ? 1 + line : line * 7 - 1000000 + line * line % 3000) *
                               TIME_SECOND);
}

/* So many lines, of sessions by turns, some of which give a title; some bad ones, some of which
 * look like one of a session. */
static void grow(int lines)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    for (int i = 0; i < lines; i++, made++) {
        int session = made % 7 ? made % sessions : made % 3;

        if (made % 97 == 50)
            buf_addf(&b, "no message of session-%d\n\n[]\n", session);
        if (made % 197 == 50)
            buf_add_c(&b, "{\"session_id\":\"sess\\u0069on\n");
        buf_addf(&b, "{\"id\":\"%d\",\"session_id\":\"session-%d\",\"timestamp\":\"", made,
                 session);
        add_time(&b, made);
        buf_addf(&b, "\",\"role\":\"%s\",\"content\":\"%0*d\"}\n",
                 made % 23 == 3 ? "title"
                 : made % 2     ? "user"
                                : "assistant",
                 200 + made % 100, made);
    }
    append(b.data, b.len);
    buf_release(&b);
}

static void begin(int lines)
{
    scratch_enter();
    made = 0;
    history.now = NOW;
    sessions = SESSIONS;
    grow(lines);
}

/* ---- with and without ---- */

static bool same_session(const struct session *a, const struct session *b)
{
    return str_eq(a->id, b->id) && str_eq(a->preview, b->preview) && str_eq(a->title, b->title) &&
           a->titles == b->titles && str_eq(a->first_role, b->first_role) &&
           str_eq(a->created_at, b->created_at) && str_eq(a->last_used, b->last_used) &&
           a->count == b->count && a->bytes == b->bytes && a->last_line == b->last_line &&
           a->created == b->created && a->used == b->used;
}

static bool same_list(size_t limit)
{
    struct history plain = history;
    struct session_list by_index, by_scan;
    bool same;

    plain.index = NULL;
    if (session_list_newest(&by_index, &history, limit, NULL) < 0 ||
        session_list_newest(&by_scan, &plain, SIZE_MAX, NULL) < 0)
        return false;
    same = by_index.bad_lines == by_scan.bad_lines &&
           by_index.count == (by_scan.count < limit ? by_scan.count : limit);
    for (size_t i = 0; same && i < by_index.count; i++)
        same = same_session(&by_index.at[i], &by_scan.at[i]);
    session_list_release(&by_index);
    session_list_release(&by_scan);
    return same;
}

static bool same_thread(const char *id)
{
    struct history plain = history;
    struct thread by_index, by_scan;
    bool same;

    plain.index = NULL;
    if (thread_find(&by_index, &history, str_of(id), true, NULL) < 0 ||
        thread_find(&by_scan, &plain, str_of(id), true, NULL) < 0)
        return false;
    same = by_index.count == by_scan.count && by_index.all == by_scan.all &&
           by_index.bad_lines == by_scan.bad_lines;
    for (size_t i = 0; same && i < by_index.count; i++)
        same = str_eq(by_index.at[i].line, by_scan.at[i].line);
    thread_release(&by_index);
    thread_release(&by_scan);
    return same;
}

static bool agrees(void)
{
    return same_list(SIZE_MAX) && same_list(1) && same_list(7) && same_list(SESSIONS) &&
           same_thread("session-0") && same_thread("session-17") && same_thread("session") &&
           same_thread("sessxion");
}

static bool usable(void)
{
    struct session_index x;
    bool is = session_index_open(&x, &history);

    if (is)
        session_index_close(&x);
    return is;
}

/* Is it used as it is, without being made anew? */
static bool is_kept(void)
{
    struct stat before, after;

    return lstat("h.idx", &before) == 0 && agrees() && lstat("h.idx", &after) == 0 &&
           before.st_ino == after.st_ino;
}

/* ---- growing ---- */

TEST(a_large_history_gets_one_and_a_small_one_none)
{
    begin(600);
    CHECK(size_of("h") < SESSION_INDEX_LEAST);
    CHECK(agrees());
    CHECK_INT(size_of("h.idx"), -1);
    grow(400);
    CHECK(size_of("h") >= SESSION_INDEX_LEAST);
    CHECK(agrees());
    CHECK_INT(scratch_mode("h.idx"), 0600);
    CHECK_INT(size_of("h.idx.tmp"), -1);
    CHECK(is_kept());
    scratch_leave();
}

TEST(without_a_file_or_a_place_there_is_none)
{
    struct history none = {.dir_fd = FILE_CWD, .path = scratch_path},
                   strange = {.path = scratch_path, .index = scratch_index};
    struct session_index x;

    begin(1200);
    CHECK(!session_index_open(&x, &none));
    CHECK(!session_index_open(&x, &strange));
    CHECK_INT(size_of("h.idx"), -1);
    unlink("h");
    CHECK(!usable());
    scratch_leave();
}

TEST(what_is_appended_is_seen)
{
    begin(1200);
    CHECK(agrees());
    for (int i = 0; i < 30; i++) {
        grow(1 + i % 3);
        CHECK(is_kept());
    }
    append_text("{\"id\":\"x\"");
    CHECK(is_kept());
    append_text(
        ",\"session_id\":\"session-0\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":\"\"}");
    CHECK(is_kept());
    append_text("\r\n\nx\n");
    CHECK(is_kept());
    scratch_leave();
}

/* Titles of sessions that are in the file, and of one that is not. */
TEST(a_title_that_is_appended_moves_nothing)
{
    static const char *const ids[] = {"session-7", "session-21", "new", "session-7"};

    begin(1200);
    CHECK(agrees());
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct buf line = BUF_INIT(BUF_SMALL);

        buf_addf(&line,
                 "{\"id\":\"t%zu\",\"session_id\":\"%s\",\"timestamp\":\"t\",\"role\":\"title\","
                 "\"content\":\"%.*s\"}\n",
                 i, ids[i], i < 3 ? 4 : 0, "name");
        append(line.data, line.len);
        CHECK(is_kept());
        buf_release(&line);
    }
    CHECK(same_list(2));
    grow(7);
    CHECK(is_kept());
    scratch_leave();
}

static uint64_t covered(void)
{
    struct session_index x;
    uint64_t at = 0;

    if (CHECK(session_index_open(&x, &history))) {
        at = x.header.covered;
        session_index_close(&x);
    }
    return at;
}

/* The file is made anew when the lines that it does not cover are many. */
TEST(the_file_follows_what_is_appended)
{
    uint64_t before, now;
    int made_anew = 0;

    begin(3000);
    CHECK(agrees());
    before = covered();
    CHECK_INT(before, size_of("h"));
    for (int i = 0; i < 20; i++) {
        grow(100);
        CHECK(agrees());
        now = covered();
        CHECK(now >= before && (uint64_t)size_of("h") - now < (uint64_t)256 << 10);
        made_anew += now > before;
        before = now;
    }
    CHECK(made_anew >= 2 && made_anew < 15);
    /* A last line without its newline is not in it. */
    append_text("{\"id\":\"x\",\"session_id\":\"session-0\",\"timestamp\":\"t\",\"role\":\"user\","
                "\"content\":\"\"}");
    unlink("h.idx");
    CHECK(agrees());
    CHECK(covered() < (uint64_t)size_of("h"));
    scratch_leave();
}

/* A large history is read in pieces, and each of these has a few lines of every session. */
TEST(the_list_of_sessions_keeps_each_text_once)
{
    struct session_list list;

    begin(0);
    for (int i = 0; i < 30000; i++) {
        struct buf line = BUF_INIT(BUF_SMALL);

        buf_addf(&line,
                 "{\"id\":\"%d\",\"session_id\":\"session-%d\",\"timestamp\":\"time %d\","
                 "\"role\":\"user\",\"content\":\"%0200d\"}\n",
                 i, i % SESSIONS, 100000 + i, i);
        append(line.data, line.len);
        buf_release(&line);
    }
    CHECK_INT(session_list_load(&list, &history, NULL), 0);
    CHECK_INT(list.count, SESSIONS);
    CHECK(list.texts_count <= 4);
    CHECK(str_eq_c(list.at[0].id, "session-39"));
    CHECK(str_eq_c(list.at[0].created_at, "time 100039"));
    CHECK(str_eq_c(list.at[0].last_used, "time 129999"));
    session_list_release(&list);
    CHECK(agrees());
    scratch_leave();
}

TEST(our_own_appending_keeps_it)
{
    begin(1200);
    CHECK(agrees());
    for (int i = 0; i < 5; i++) {
        append_own(STR("session-3"), STR("hello"));
        CHECK(is_kept());
    }
    scratch_leave();
}

/* ---- what is no index of it ---- */

TEST(a_change_by_hand_is_seen)
{
    struct stat st;

    begin(3000);
    CHECK(agrees());
    overwrite("h", place_of("session-17"), "session-99", 10);
    CHECK(agrees());
    CHECK(same_thread("session-99"));
    overwrite("h", 0, "x", 1);
    CHECK(agrees());
    CHECK(is_kept());
    /* With the time that it had. */
    CHECK_INT(stat("h", &st), 0);
    overwrite("h", place_of("session-18"), "session-98", 10);
    CHECK_INT(utimensat(AT_FDCWD, "h", (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    CHECK(agrees());
    scratch_leave();
}

/* It looks as if only something had been appended: a list may be wrong until the file is made anew,
 * but a session whose lines are not where they were is read correctly. */
TEST(a_change_by_hand_before_something_is_appended_is_found_later)
{
    begin(3000);
    CHECK(agrees());
    overwrite("h", place_of("session-17"), "session-99", 10);
    append_own(STR("session-3"), STR("hello"));
    CHECK(same_thread("session-17"));
    CHECK(agrees());
    overwrite("h", place_of("session-18"), "session-98", 10);
    grow(3000);
    CHECK(agrees());
    /* Also when lines were appended since the file was made. */
    grow(3);
    CHECK(is_kept());
    overwrite("h", place_of("session-19"), "session-97", 10);
    CHECK(agrees());
    scratch_leave();
}

/* The samples of the history show an edit of many lines. */
TEST(a_change_of_many_lines_before_something_is_appended_is_seen)
{
    struct buf all;

    begin(3000);
    CHECK(agrees());
    all = scratch_get("h");
    for (size_t i = 10000; i + 10000 < all.len; i++)
        if (memcmp(all.data + i, "session-3", 9) == 0)
            memcpy(all.data + i, "session-8", 9);
    overwrite("h", 0, all.data, all.len);
    buf_release(&all);
    grow(3);
    CHECK(agrees());
    scratch_leave();
}

TEST(a_wrong_index_is_recognised)
{
    begin(3000);
    CHECK(agrees());
    CHECK(!session_index_is_wrong(&history));
    grow(3);
    CHECK(agrees() && !session_index_is_wrong(&history));
    overwrite("h", place_of("session-17"), "session-99", 10);
    grow(3);
    CHECK(session_index_is_wrong(&history));
    unlink("h.idx");
    CHECK(!session_index_is_wrong(&history));
    scratch_leave();
}

TEST(a_history_that_is_cut_off_or_replaced_is_another)
{
    begin(3000);
    CHECK(agrees());
    CHECK_INT(truncate("h", size_of("h") - 1), 0);
    CHECK(agrees());
    CHECK_INT(truncate("h", 400000), 0);
    CHECK(agrees());
    CHECK_INT(truncate("h", 1000), 0);
    CHECK(agrees());
    grow(3000);
    CHECK(agrees());
    CHECK_INT(rename("h", "other"), 0);
    made = 1;
    grow(3000);
    CHECK(agrees());
    CHECK_INT(rename("other", "h"), 0);
    CHECK(agrees());
    scratch_leave();
}

/* As long as before and longer, with the same beginning, in the same file. */
TEST(a_history_with_another_end_is_another)
{
    off_t size;

    begin(3000);
    CHECK(agrees());
    size = size_of("h");
    CHECK_INT(truncate("h", size - 100000), 0);
    append_text("\n");
    made = 17;
    grow(400);
    CHECK(size_of("h") > size);
    CHECK(agrees());
    scratch_leave();
}

/* File systems such as ext4 and XFS give the inode of a file that is gone to the next new one. */
TEST(a_history_that_got_the_inode_of_the_one_before_is_another)
{
    struct stat before, now = {0};
    struct buf text;

    begin(3000);
    CHECK(agrees());
    CHECK_INT(stat("h", &before), 0);
    text = scratch_get("h");
    memcpy(text.data + place_of("session-17"), "session-99", 10);
    for (int i = 0; i < 8 && now.st_ino != before.st_ino; i++) {
        CHECK_INT(rename("h", "old"), 0);
        append(text.data, text.len);
        CHECK_INT(stat("h", &now), 0);
        CHECK_INT(unlink("old"), 0);
    }
    grow(3);
    CHECK(agrees());
    buf_release(&text);
    scratch_leave();
}

/* Each byte of the small parts, and some of the large ones. */
TEST(a_broken_one_changes_nothing)
{
    struct buf good;

    begin(2000);
    CHECK(agrees());
    grow(400);
    CHECK(agrees());
    good = scratch_get("h.idx");
    for (size_t i = 0; i < good.len; i += i < 160 ? 1 : i < 1024 ? 101 : 1201) {
        char changed = (char)(good.data[i] ^ 1 << i % 8);

        scratch_put_bytes("h.idx", good.data, good.len);
        overwrite("h.idx", (off_t)i, &changed, 1);
        if (!CHECK(agrees()))
            fprintf(stderr, "    at byte %zu\n", i);
    }
    for (size_t n = 0; n < good.len; n += n < 160 ? 9 : 4099) {
        scratch_put_bytes("h.idx", good.data, n);
        if (!CHECK(agrees()))
            fprintf(stderr, "    cut at %zu\n", n);
    }
    buf_release(&good);
    scratch_leave();
}

/* As it could lie on the disk after a power cut. */
TEST(parts_of_two_files_are_no_index)
{
    struct buf one, two;

    begin(2000);
    CHECK(agrees());
    one = scratch_get("h.idx");
    unlink("h.idx");
    CHECK(agrees());
    two = scratch_get("h.idx");
    CHECK_INT(one.len, two.len);
    for (size_t at = INDEX_BLOCK; at + INDEX_BLOCK <= one.len; at += INDEX_BLOCK * 7) {
        scratch_put_bytes("h.idx", two.data, two.len);
        overwrite("h.idx", (off_t)at, one.data + at, one.len - at);
        if (!CHECK(agrees()))
            fprintf(stderr, "    from byte %zu\n", at);
    }
    buf_release(&one);
    buf_release(&two);
    scratch_leave();
}

/* ---- what is in its place ---- */

/* What is written there would be written to the other one. */
TEST(another_name_of_some_file_is_left_alone)
{
    begin(2000);
    scratch_put("other", "something else");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "h.idx" : "h.idx.tmp";

        CHECK_INT(link("other", name), 0);
        CHECK(!usable());
        CHECK(agrees());
        scratch_check("other", "something else");
        unlink(name);
    }
    CHECK(usable());
    scratch_leave();
}

TEST(one_that_others_can_write_is_not_read)
{
    begin(2000);
    CHECK(agrees());
    CHECK_INT(chmod("h.idx", 0666), 0);
    CHECK(!usable());
    CHECK(agrees());
    CHECK_INT(chmod("h.idx", 0600), 0);
    CHECK(usable());
    scratch_leave();
}

TEST(what_one_left_that_was_killed_is_taken_over)
{
    int fd;

    begin(2000);
    scratch_put("h.idx.tmp", "HISTIDX2, half of it");
    CHECK(agrees());
    CHECK(usable());
    CHECK_INT(size_of("h.idx.tmp"), -1);

    /* One that is at work is left alone, and not waited for. */
    unlink("h.idx");
    scratch_put("h.idx.tmp", "HISTIDX2, half of it");
    fd = open("h.idx.tmp", O_RDWR);
    CHECK_INT(flock(fd, LOCK_EX), 0);
    CHECK(agrees());
    CHECK(!usable());
    scratch_check("h.idx.tmp", "HISTIDX2, half of it");
    close(fd);
    CHECK(usable());
    scratch_leave();
}

/* ---- order ---- */

TEST(another_clock_makes_it_anew)
{
    begin(2000);
    CHECK(agrees());
    CHECK(is_kept());
    /* Past the first time that was ahead. */
    history.now = NOW + 200 * TIME_SECOND;
    CHECK(!is_kept());
    CHECK(is_kept());
    history.now++;
    CHECK(is_kept());
    /* Before the latest time that was not. */
    history.now = NOW - 999000 * TIME_SECOND;
    CHECK(!is_kept());
    CHECK(is_kept());
    grow(100);
    CHECK(is_kept());
    scratch_leave();
}

/* An import appends lines that are older, of sessions that the index has and others. */
TEST(older_lines_do_not_make_a_session_newer)
{
    struct session_list l;

    begin(2000);
    CHECK(usable());
    append_text("{\"id\":\"x\",\"session_id\":\"session-3\",\"timestamp\":\"2001-01-01T00:00:00Z\","
                "\"role\":\"user\",\"content\":\"old\"}\n"
                "{\"id\":\"y\",\"session_id\":\"old\",\"timestamp\":\"2001-01-01T00:00:00Z\","
                "\"role\":\"user\",\"content\":\"old\"}\n");
    CHECK(is_kept());
    CHECK_INT(session_list_newest(&l, &history, SIZE_MAX, NULL), 0);
    CHECK_STR(l.at[l.count - 1].id.p, "old");
    session_list_release(&l);
    scratch_leave();
}

/* ---- names ---- */

static void same_named(const struct history *plain, const char *name, size_t limit)
{
    struct session_list some, all;

    CHECK_INT(session_list_named(&some, &history, str_of(name), limit, NULL), 0);
    CHECK_INT(session_list_named(&all, plain, str_of(name), limit, NULL), 0);
    CHECK_INT(some.count, all.count);
    CHECK_INT(some.bad_lines, all.bad_lines);
    for (size_t i = 0; i < some.count && i < all.count; i++)
        CHECK(same_session(&some.at[i], &all.at[i]));
    session_list_release(&some);
    session_list_release(&all);
}

static void same_name(const char *name)
{
    struct buf by_index = BUF_INIT(BUF_SMALL), by_scan = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT, why = ERR_INIT;
    struct history plain = history;
    int result = session_resolve(&history, str_of(name), &by_index, &e);

    plain.index = NULL;
    CHECK_INT(session_resolve(&plain, str_of(name), &by_scan, &why), result);
    CHECK_STR(buf_c(&by_index), buf_c(&by_scan));
    CHECK_STR(err_text(&e), err_text(&why));
    CHECK_INT(session_has_lines(&history, str_of(name), NULL),
              session_has_lines(&plain, str_of(name), NULL));
    same_named(&plain, name, 5);
    same_named(&plain, name, SIZE_MAX);
    buf_release(&by_index);
    buf_release(&by_scan);
    err_release(&e);
    err_release(&why);
}

/* In the file alone, and when there are lines after it. */
TEST(names_mean_the_same)
{
    static const char *const names[] = {"session-0", "session-17", "session-4", "ion-12",
                                        "session",   "nothing",    "last",      "",
                                        "s",         "session-3",  "n-33"};

    begin(2000);
    /* Another program's id may be empty. */
    append_text("{\"id\":\"x\",\"session_id\":\"\",\"timestamp\":\"t\",\"role\":\"user\","
                "\"content\":\"\"}\n");
    CHECK_INT(session_has_lines(&history, STR(""), NULL), 1);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            same_name(names[i]);
        grow(300);
    }
    scratch_leave();
}

TEST(a_name_may_mean_many)
{
    struct history plain = history;

    plain.index = NULL;
    begin(2000);
    sessions = 300;
    grow(2000);
    for (size_t limit = 255; limit < 258; limit++)
        same_named(&plain, "session-", limit);
    same_named(&plain, "session-", SIZE_MAX);
    same_named(&plain, "session-1", SIZE_MAX);
    scratch_leave();
}
