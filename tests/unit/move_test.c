#include "chathist/history/move.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "test.h"
#include "scratch.h"

static char path_a[] = "a", path_b[] = "b";
static struct history a = {.dir_fd = FILE_CWD, .path = path_a, .trusted = true, .cancel_fd = -1},
                      b = {.dir_fd = FILE_CWD, .path = path_b, .trusted = true, .cancel_fd = -1};

/* Moves the sessions s and f. */
static void move(struct history *from, struct history *to, uint64_t lines)
{
    struct hash_map sessions = {0};
    struct err e = ERR_INIT;
    uint64_t moved;

    (void)hash_map_add(&sessions, STR("s"));
    (void)hash_map_add(&sessions, STR("f"));
    CHECK_INT(history_move(from, to, &sessions, &moved, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK_INT(moved, lines);
    hash_map_release(&sessions);
}

/* Moves the lines of `text` from a to b and back, and replaces it by what a has then. */
static void move_there_and_back(struct buf *text, uint64_t lines)
{
    scratch_put("a", buf_c(text));
    scratch_put("b", "");
    scratch_put("a.deleted", "");
    scratch_put("b.deleted", "");
    move(&a, &b, lines);
    move(&b, &a, lines);
    buf_release(text);
    *text = scratch_get("a");
}

static void add_line(struct buf *text, const char *session, const char *id, const char *more)
{
    buf_addf(text,
             "{\"id\":\"%s\",\"session_id\":\"%s\",\"timestamp\":\"2024-06-27T15:00:00Z\","
             "\"role\":\"user\",\"content\":\"c\"%s}\n",
             id, session, more);
}

/* Returns the id of a line, or what another member names, in a buffer of this function. */
static const char *text_of(struct str line, const char *key)
{
    static struct buf text = BUF_INIT(BUF_SMALL);

    buf_clear(&text);
    (void)json_decode(json_get(line, key), &text);
    return buf_c(&text);
}

TEST(a_fork_that_comes_back_names_the_line_that_it_copies)
{
    struct buf text = BUF_INIT(SIZE_MAX), original = BUF_INIT(SIZE_MAX);
    struct str rest, first;

    scratch_enter();
    add_line(&text, "s", "1719500000000-aaaaaaaa", "");
    add_line(&text, "f", "1719500000000-bbbbbbbb", ",\"forked_from\":\"1719500000000-aaaaaaaa\"");
    move_there_and_back(&text, 2);
    rest = buf_str(&text);
    first = str_cut(&rest, '\n');
    buf_add_c(&original, text_of(first, "id"));
    CHECK(!str_eq(buf_str(&original), STR("1719500000000-aaaaaaaa")));
    CHECK_STR(text_of(str_cut(&rest, '\n'), "forked_from"), buf_c(&original));
    CHECK_INT(rest.n, 0);
    buf_release(&text);
    buf_release(&original);
    scratch_leave();
}

TEST(an_id_with_an_escape_comes_back_as_an_id)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct str rest;

    scratch_enter();
    add_line(&text, "s", "\\u0031719500000000-aaaaaaaa", "");
    move_there_and_back(&text, 1);
    rest = buf_str(&text);
    CHECK(str_starts(str_of(text_of(str_cut(&rest, '\n'), "id")), STR("1719500000000-")));
    buf_release(&text);
    scratch_leave();
}

TEST(a_line_that_a_new_id_makes_too_long_stays)
{
    struct buf text = BUF_INIT(SIZE_MAX), there;

    scratch_enter();
    add_line(&text, "s", "1", "");
    buf_truncate(&text, text.len - 3);
    while (text.len < BUF_LINE - 2)
        buf_add_byte(&text, 'x');
    buf_add_c(&text, "\"}\n");
    scratch_put("a", buf_c(&text));
    scratch_put("b", "");
    scratch_put("a.deleted", "");
    scratch_put("b.deleted", "");
    move(&a, &b, 1);
    move(&b, &a, 0);
    there = scratch_get("b");
    CHECK(str_eq(buf_str(&there), buf_str(&text)));
    buf_release(&text);
    buf_release(&there);
    scratch_leave();
}

TEST(nothing_is_copied_from_a_history_that_cannot_be_rewritten)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct hash_map sessions = {0};
    struct err e = ERR_INIT;
    uint64_t moved;

    scratch_enter();
    add_line(&text, "s", "1719500000000-aaaaaaaa", "");
    scratch_put("a", buf_c(&text));
    scratch_put("b", "");
    CHECK_INT(link("a", "other"), 0);
    (void)hash_map_add(&sessions, STR("s"));
    CHECK_INT(history_move(&a, &b, &sessions, &moved, &e), -1);
    CHECK_STR(err_text(&e),
              "cannot rewrite 'a': it has other names (hard links), which would stay");
    scratch_check("a", buf_c(&text));
    scratch_check("b", "");
    err_release(&e);
    hash_map_release(&sessions);
    buf_release(&text);
    scratch_leave();
}

/* Replaces b while the move waits for its lock, as hist-delete and another move together do. */
static void *replace_b(void *lock)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    CHECK_INT(rename("b.new", "b"), 0);
    close(*(int *)lock);
    return NULL;
}

TEST(a_line_that_another_move_stored_is_not_stored_again_after_a_rewrite)
{
    struct buf text = BUF_INIT(SIZE_MAX), there = BUF_INIT(SIZE_MAX);
    pthread_t other;
    int lock;

    scratch_enter();
    add_line(&text, "x", "1719500000000-cccccccc", "");
    scratch_put("b", buf_c(&text));
    buf_clear(&text);
    add_line(&text, "s", "1719500000000-aaaaaaaa", "");
    add_line(&there, "s", "1719500000000-aaaaaaaa", "");
    add_line(&there, "x", "1719500000000-dddddddd", "");
    scratch_put("a", buf_c(&text));
    scratch_put("b.new", buf_c(&there));
    lock = open("b", O_RDWR);
    CHECK_INT(flock(lock, LOCK_EX), 0);
    CHECK_INT(pthread_create(&other, NULL, replace_b, &lock), 0);
    move(&a, &b, 1);
    CHECK_INT(pthread_join(other, NULL), 0);
    scratch_check("a", "");
    scratch_check("b", buf_c(&there));
    buf_release(&text);
    buf_release(&there);
    scratch_leave();
}

/* In place of the C library's: if there is a file `empty`, it replaces b once that has more than
 * 4 MiB, as a deletion of everything does. */
int flock(int fd, int how)
{
    struct stat st, named;

    if (fstat(fd, &st) == 0 && stat("b", &named) == 0 && st.st_ino == named.st_ino &&
        st.st_size > 4 << 20 && access("empty", F_OK) == 0)
        CHECK_INT(rename("empty", "b"), 0);
    return (int)syscall(SYS_flock, fd, how);
}

TEST(a_line_that_the_other_history_has_lost_meanwhile_is_stored)
{
    struct buf text = BUF_INIT(SIZE_MAX), last = BUF_INIT(SIZE_MAX), more = BUF_INIT(SIZE_MAX);

    scratch_enter();
    buf_add_c(&more, ",\"metadata\":\"");
    for (int i = 0; i < 5 << 20; i++)
        buf_add_byte(&more, 'x');
    buf_add_c(&more, "\"");
    add_line(&text, "s", "1719500000000-aaaaaaaa", buf_c(&more));
    add_line(&last, "s", "1719500000000-bbbbbbbb", "");
    buf_add_str(&text, buf_str(&last));
    scratch_put("a", buf_c(&text));
    scratch_put("b", buf_c(&last));
    scratch_put("empty", "");
    move(&a, &b, 2);
    scratch_check("a", "");
    scratch_check("b", buf_c(&last));
    buf_release(&text);
    buf_release(&last);
    buf_release(&more);
    scratch_leave();
}
