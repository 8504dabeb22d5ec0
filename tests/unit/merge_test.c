/* Sets of digests, and lines of a history that is merged. The rest is tested by sync_test.c and
 * hist-sync.bats. */
#include "chathist/sync/merge.h"

#include <signal.h>
#include <sys/resource.h>

#include "test.h"
#include "scratch.h"

TEST(a_set_of_digests_has_those_that_were_added)
{
    struct digests d = {0};
    size_t absent = 0;

    digests_sort(&d);
    CHECK(!digests_have(&d, 0));
    /* Each bit alone, from the highest on, each number twice, and the extremes. */
    for (unsigned bit = 64; bit-- > 0;) {
        digests_add(&d, UINT64_C(1) << bit);
        digests_add(&d, UINT64_C(1) << bit);
    }
    digests_add(&d, UINT64_MAX);
    digests_add(&d, 0);
    digests_sort(&d);
    CHECK_INT(d.count, 130);
    for (unsigned bit = 0; bit < 64; bit++)
        absent += !digests_have(&d, UINT64_C(1) << bit);
    CHECK_INT(absent, 0);
    CHECK(digests_have(&d, 0));
    CHECK(digests_have(&d, UINT64_MAX));
    CHECK(!digests_have(&d, 3));
    digests_release(&d);
}

TEST(a_line_that_does_not_exist_is_not_read)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct merge_options options = {.dry_run = true};
    struct buf line = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct merge *m;
    struct history h;

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    m = merge_open(&h, &options, NULL);
    if (CHECK(m)) {
        CHECK_INT(merge_read(m, FACT_LINE, 0, &line, &e), -1);
        CHECK(strstr(err_text(&e), "was changed in place: try again"));
    }
    merge_close(m);
    err_release(&e);
    buf_release(&line);
    history_release(&h);
    scratch_leave();
}

/* Sets a line that has the id i. */
static void set_line(struct buf *line, size_t i)
{
    buf_clear(line);
    buf_addf(line,
             "{\"id\":\"%zu\",\"session_id\":\"s\",\"timestamp\":"
             "\"2024-01-01T00:00:00.000000+00:00\",\"role\":\"user\",\"content\":\"\"}",
             i);
}

TEST(a_line_that_is_repeated_counts_once)
{
    static const size_t ids[] = {0, 1, 0, 1, 0, 2, 3}, wanted[] = {1, 2, 2, 2, 2, 3, 4};
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct merge_options options = {0};
    struct buf line = BUF_INIT(BUF_SMALL), all = BUF_INIT(BUF_LINE);
    size_t wrong = 0;
    struct history h;

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    /* In one part, and in two, of which the first one's digests are kept. */
    for (size_t first = 0; first < 7; first++) {
        for (size_t n = first; n <= 7; n += 7 - first) {
            struct merge *m;
            int fd;

            buf_clear(&all);
            for (size_t i = 0; i < n * 300; i++) {
                set_line(&line, ids[i / 300] * 300 + i % 300);
                buf_add_str(&all, buf_str(&line));
                buf_add_byte(&all, '\n');
            }
            fd = open("h", O_WRONLY | O_CREAT | O_TRUNC, 0600);
            CHECK_INT(file_write_all(fd, all.data, all.len), 0);
            close(fd);
            m = merge_open(&h, &options, NULL);
            wrong += merge_facts(m, FACT_LINE) != (n == 0 ? 0 : wanted[n - 1] * 300);
            for (size_t i = 0; i < merge_facts(m, FACT_LINE); i++) {
                set_line(&line, i);
                wrong +=
                    merge_digest(m, FACT_LINE, i) != merge_digest_of(FACT_LINE, buf_str(&line));
                wrong += merge_add(m, buf_str(&line), NULL) != 0;
            }
            merge_close(m);
        }
    }
    CHECK_INT(wrong, 0);
    buf_release(&line);
    buf_release(&all);
    history_release(&h);
    scratch_leave();
}

/* Appends lines with the ids from `from` to before `to`. */
static void append_ids(size_t from, size_t to)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    FILE *f = fopen("h", "a");

    for (size_t i = from; i < to; i++) {
        set_line(&line, i);
        fprintf(f, "%s\n", buf_c(&line));
    }
    fclose(f);
    chmod("h", 0600);
    buf_release(&line);
}

TEST(after_a_change_in_place_the_next_run_reads_all)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct merge_options options = {0};
    struct buf line = BUF_INIT(BUF_SMALL);
    struct merge *m;
    struct history h;
    int fd;

    scratch_enter();
    append_ids(100, 300);
    CHECK_INT(locate(&h, &from, NULL), 0);
    merge_close(merge_open(&h, &options, NULL));
    /* The role of the hundredth line, which neither end of the file shows. */
    set_line(&line, 100);
    fd = open("h", O_WRONLY);
    CHECK_INT(pwrite(fd, "USER", 4, (off_t)(99 * (line.len + 1) + 84)), 4);
    close(fd);
    append_ids(300, 301);
    m = merge_open(&h, &options, NULL);
    CHECK_INT(merge_read(m, FACT_LINE, 99, &line, NULL), -1);
    merge_close(m);
    append_ids(301, 302);
    m = merge_open(&h, &options, NULL);
    CHECK_INT(merge_read(m, FACT_LINE, 99, &line, NULL), 0);
    CHECK_INT(merge_facts(m, FACT_LINE), 202);
    merge_close(m);
    buf_release(&line);
    history_release(&h);
    scratch_leave();
}

/* File systems such as ext4 and XFS give the inode of a file that is gone to the next new one. */
TEST(after_replacements_that_give_the_inode_back_the_next_run_reads_all)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct merge_options options = {0};
    struct buf line = BUF_INIT(BUF_SMALL);
    struct stat before, now = {0};
    struct history h;
    struct merge *m;

    scratch_enter();
    append_ids(100, 300);
    CHECK_INT(locate(&h, &from, NULL), 0);
    merge_close(merge_open(&h, &options, NULL));
    CHECK_INT(stat("h", &before), 0);
    /* As long as before, with the same beginning and end. */
    for (int i = 0; i < 8 && now.st_ino != before.st_ino; i++) {
        CHECK_INT(rename("h", "old"), 0);
        append_ids(100, 150);
        append_ids(500, 501);
        append_ids(151, 300);
        CHECK_INT(stat("h", &now), 0);
        CHECK_INT(unlink("old"), 0);
    }
    append_ids(300, 301);
    m = merge_open(&h, &options, NULL);
    CHECK_INT(merge_facts(m, FACT_LINE), 201);
    set_line(&line, 500);
    CHECK_INT(merge_add(m, buf_str(&line), NULL), 0);
    merge_close(m);
    buf_release(&line);
    history_release(&h);
    scratch_leave();
}

TEST(a_run_that_cannot_erase_leaves_that_to_the_next_one)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct merge_options options = {0};
    struct merge *m;
    struct history h;
    int ends[2];

    scratch_enter();
    append_ids(100, 300);
    CHECK_INT(locate(&h, &from, NULL), 0);
    m = merge_open(&h, &options, NULL);
    CHECK_INT(merge_delete(m, STR("s"), STR("150")), 1);
    CHECK_INT(merge_store(m, NULL), 0);
    CHECK_INT(merge_facts(m, FACT_LINE), 199);
    merge_close(m);
    append_ids(150, 151);
    CHECK_INT(pipe(ends), 0);
    CHECK_INT(write(ends[1], "", 1), 1);
    h.cancel_fd = ends[0];
    CHECK(!merge_open(&h, &options, NULL));
    h.cancel_fd = -1;
    m = merge_open(&h, &options, NULL);
    CHECK_INT(merge_facts(m, FACT_LINE), 199);
    merge_close(m);
    close(ends[0]);
    close(ends[1]);
    history_release(&h);
    scratch_leave();
}

TEST(a_prefix_is_the_same_in_any_order)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct merge_options options = {0};
    struct buf line = BUF_INIT(BUF_SMALL);
    uint64_t lines[4], deletions[4];
    struct merge *m;
    struct history h;

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    m = merge_open(&h, &options, NULL);
    for (size_t i = 0; i < 4; i++) {
        set_line(&line, i);
        CHECK_INT(merge_add(m, buf_str(&line), NULL), 1);
        CHECK_INT(merge_delete(m, STR("gone"), (struct str){line.data + 7, 1}), 1);
    }
    CHECK_INT(merge_store(m, NULL), 0);
    for (size_t n = 4; n-- > 0;) {
        lines[n] = merge_prefix(m, FACT_LINE, n);
        deletions[n] = merge_prefix(m, FACT_DELETION, n);
        CHECK_INT(lines[n] == 0, n == 0);
        CHECK_INT(deletions[n] == 0, n == 0);
    }
    for (size_t n = 0; n < 4; n++) {
        CHECK(merge_prefix(m, FACT_LINE, n) == lines[n]);
        CHECK(merge_prefix(m, FACT_DELETION, n) == deletions[n]);
    }
    CHECK(merge_prefix(m, FACT_LINE, 2) == lines[2]);
    /* Another line is the second one then. */
    CHECK_INT(merge_delete(m, STR("s"), STR("1")), 1);
    CHECK_INT(merge_store(m, NULL), 0);
    CHECK(merge_prefix(m, FACT_LINE, 2) != lines[2]);
    CHECK(merge_prefix(m, FACT_LINE, 1) == lines[1]);
    CHECK(merge_prefix(m, FACT_DELETION, 3) == deletions[3]);
    merge_close(m);
    buf_release(&line);
    history_release(&h);
    scratch_leave();
}

/* A history of 200 lines in the scratch directory, with the ids from 100 on. */
static void begin_history(struct history *h)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};

    scratch_enter();
    append_ids(100, 300);
    CHECK_INT(locate(h, &from, NULL), 0);
}

static void end_history(struct history *h)
{
    history_release(h);
    scratch_leave();
}

TEST(what_cannot_be_merged_is_refused_and_left_as_it_is)
{
    static char somewhere[] = "there is no place";
    static const char *const why[] = {
        "'h' is not a history",
        "cannot open 'h.deleted': is a directory",
        "cannot use 'h.deleted': others can write it (chmod go-w)",
        "there is no place",
        "'h' is not one of your own histories",
    };
    struct merge_options options = {0};
    struct err e = ERR_INIT;
    struct history h;

    for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
        begin_history(&h);
        if (i == 0)
            scratch_put("h", "no history\n");
        if (i == 1)
            CHECK_INT(mkdir("h.deleted", 0700), 0);
        if (i == 2)
            scratch_put("h.deleted", "");
        if (i == 2)
            CHECK_INT(chmod("h.deleted", 0666), 0);
        h.nowhere = i == 3 ? somewhere : NULL;
        h.safe = h.safe && i != 4;
        CHECK(!merge_open(&h, &options, &e));
        CHECK_STR(err_text(&e), why[i]);
        CHECK_INT(scratch_mode("h.deleted"), i == 1 ? 0700 : i == 2 ? 0666 : -1);
        h.nowhere = NULL;
        err_release(&e);
        end_history(&h);
    }
}

/* Where the line with an id is in the history; -1: nowhere. */
static off_t place_of_id(int id)
{
    struct buf text = scratch_get("h");
    char key[32];
    const char *at;
    off_t place;

    snprintf(key, sizeof(key), "\"id\":\"%d\"", id);
    at = str_find(buf_str(&text), str_of(key));
    place = at ? at - text.data : -1;
    buf_release(&text);
    return place;
}

static bool answer(void *arg, uint64_t lines, uint64_t sessions)
{
    CHECK_INT(lines, 100);
    CHECK_INT(sessions, 1);
    return *(bool *)arg;
}

TEST(deletions_of_much_wait_until_they_are_accepted)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    struct history h;

    /* By an option at once, by one of a later run, by an answer, by the other copy; never. */
    for (int way = 0; way < 5; way++) {
        bool yes = way == 2, accepted = way < 4;
        struct merge_options options = {.accept_deletions = way == 0, .arg = &yes};
        struct merge *m;

        begin_history(&h);
        m = merge_open(&h, &options, NULL);
        for (size_t i = 100; i < 200; i++) {
            buf_clear(&id);
            buf_addf(&id, "%zu", i);
            CHECK_INT(merge_delete(m, STR("s"), buf_str(&id)), 1);
            CHECK_INT(merge_delete(m, STR("s"), buf_str(&id)), 0);
        }
        CHECK_INT(merge_store(m, NULL), 0);
        CHECK_INT(merge_finish(m, NULL), 0);
        CHECK_INT(merge_facts(m, FACT_LINE), 100);
        CHECK_INT(merge_counts(m)->gone, 100);
        CHECK_INT(merge_counts(m)->deleted, way == 0 ? 100 : 0);
        CHECK_INT(merge_counts(m)->waiting, way == 0 ? 0 : 100);
        CHECK_INT(merge_counts(m)->waiting_sessions, way == 0 ? 0 : 1);
        merge_close(m);

        options.accept_deletions = way == 1;
        options.accept = way == 2 || way == 4 ? answer : NULL;
        m = merge_open(&h, &options, NULL);
        CHECK_INT(merge_facts(m, FACT_LINE), 100);
        CHECK(merge_has(m, STR("s"), STR("150")));
        CHECK(merge_has(m, STR("s"), STR("250")));
        CHECK(!merge_has(m, STR("s"), STR("50")));
        /* hist-delete erases by a deletion that does not wait. */
        for (size_t i = 100; way == 3 && i < 200; i++) {
            FILE *f = fopen("h.deleted", "a");

            fprintf(f, "{\"session_id\":\"s\",\"id\":\"%zu\"}\n", i);
            fclose(f);
        }
        CHECK_INT(merge_store(m, NULL), 0);
        CHECK_INT(merge_finish(m, NULL), 0);
        merge_close(m);
        m = merge_open(&h, &options, NULL);
        CHECK_INT(merge_finish(m, NULL), 0);
        CHECK_INT(merge_counts(m)->waiting, accepted ? 0 : 100);
        CHECK_INT(merge_facts(m, FACT_LINE), 100);
        CHECK_INT(merge_facts(m, FACT_DELETION), 100);
        merge_close(m);
        CHECK_INT(place_of_id(150) < 0, accepted);
        end_history(&h);
    }
    buf_release(&id);
}

TEST(digests_that_are_not_those_of_the_history_are_made_again)
{
    enum { WHOLE, HEAD, BODY, CUT, OPEN, AWAY, ALL };
    struct merge_options options = {0};
    struct err e = ERR_INIT;
    struct history h;

    for (int damage = WHOLE; damage < ALL; damage++) {
        uint64_t set, digest;
        struct buf line = BUF_INIT(BUF_SMALL);
        struct merge *m;
        char *path;
        int fd;

        begin_history(&h);
        m = merge_open(&h, &options, NULL);
        set = merge_set(m, FACT_LINE);
        digest = merge_digest(m, FACT_LINE, 150);
        merge_close(m);
        path = merge_state_path(&h, "lines", NULL, NULL);
        fd = open(path, O_WRONLY);
        CHECK(fd >= 0);
        if (damage == HEAD)
            CHECK_INT(pwrite(fd, "x", 1, 16), 1);
        if (damage == BODY)
            CHECK_INT(pwrite(fd, "xxxx", 4, 1000), 4);
        if (damage == CUT)
            CHECK_INT(ftruncate(fd, 2000), 0);
        if (damage == OPEN)
            CHECK_INT(fchmod(fd, 0666), 0);
        close(fd);
        m = merge_open(&h, &options, NULL);
        if (damage == AWAY)
            CHECK_INT(unlink(path), 0); /* while it is used */
        CHECK_INT(merge_facts(m, FACT_LINE), 200);
        CHECK(merge_digest(m, FACT_LINE, 150) == digest);
        CHECK(merge_digest(m, FACT_LINE, 200) == 0);
        CHECK(merge_prefix(m, FACT_LINE, 201) == 0 && merge_prefix(m, FACT_DELETION, 1) == 0);
        CHECK(merge_set(m, FACT_LINE) == set);
        CHECK_INT(merge_read(m, FACT_LINE, 150, &line, &e), 0);
        CHECK(strstr(buf_c(&line), "\"id\":\"250\""));
        merge_close(m);
        free(path);
        buf_release(&line);
        end_history(&h);
    }
    err_release(&e);
}

static void count_warning(void *arg, const char *message)
{
    CHECK(strstr(message, "and both are kept"));
    ++*(int *)arg;
}

TEST(what_is_added_is_checked_and_counted)
{
    static const char *const bad_lines[] = {
        "garbage", "{\"id\":\"1\",\n\"session_id\":\"s\"}",
        "{\"id\":\"a b\",\"session_id\":\"s\",\"timestamp\":\"2024-01-01\",\"role\":\"user\","
        "\"content\":\"\"}"};
    struct buf line = BUF_INIT(BUF_SMALL);
    int warnings = 0;
    struct merge_options options = {.warn = count_warning, .arg = &warnings};
    struct merge *m;
    struct history h;

    begin_history(&h);
    m = merge_open(&h, &options, NULL);
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(merge_add(m, str_of(bad_lines[i]), NULL), 0);
    CHECK_INT(merge_delete(m, STR("last"), STR("1")), -1);
    CHECK_INT(merge_delete(m, STR("s"), STR("a b")), -1);
    CHECK_INT(merge_add_fact(m, FACT_DELETION, STR("garbage"), NULL), 0);
    CHECK_INT(merge_add_fact(m, FACT_DELETION, STR("{\"session_id\":\"s\",\"id\":\"x\"}"), NULL),
              0);
    CHECK_INT(merge_counts(m)->refused, 6);
    /* Other lines with ids that are here. The first ten are reported one by one. */
    for (size_t i = 100; i < 112; i++) {
        set_line(&line, i);
        buf_truncate(&line, line.len - 3);
        buf_addf(&line, "\"other\"}");
        CHECK_INT(merge_add(m, buf_str(&line), NULL), 1);
        CHECK_INT(merge_add(m, buf_str(&line), NULL), 0);
    }
    CHECK_INT(merge_counts(m)->conflicts, 12);
    CHECK_INT(warnings, 10);
    /* Another program stores a line meanwhile, and deletes one. */
    for (size_t i = 400; i < 403; i++) {
        set_line(&line, i);
        CHECK_INT(merge_add(m, buf_str(&line), NULL), 1);
    }
    append_ids(400, 401);
    scratch_put("h.deleted", "{\"session_id\":\"s\",\"id\":\"401\"}\n");
    CHECK_INT(merge_store(m, NULL), 0);
    CHECK_INT(merge_counts(m)->received, 13);
    CHECK_INT(merge_facts(m, FACT_LINE), 214);
    CHECK_INT(merge_facts(m, FACT_DELETION), 2);
    merge_close(m);
    buf_release(&line);
    end_history(&h);
}

TEST(what_a_full_disk_refuses_is_stored_later)
{
    struct merge_options options = {0};
    struct buf line = BUF_INIT(BUF_SMALL);
    struct rlimit old, limit;
    struct err e = ERR_INIT;
    struct merge *m;
    struct history h;

    begin_history(&h);
    m = merge_open(&h, &options, NULL);
    set_line(&line, 500);
    CHECK_INT(merge_add(m, buf_str(&line), NULL), 1);
    CHECK_INT(merge_delete(m, STR("s"), STR("299")), 1);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (int step = 0; step < 2; step++) {
        limit = old;
        limit.rlim_cur = step == 0 ? 10 : 2000; /* of the deletions, of the lines that stay */
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
        CHECK_INT(merge_store(m, &e), -1);
        CHECK_STR(err_text(&e), step == 0 ? "cannot write 'h.deleted': File too large"
                                          : "cannot write 'h': File too large");
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
        err_release(&e);
    }
    signal(SIGXFSZ, SIG_DFL);
    CHECK_INT(merge_counts(m)->received, 0);
    CHECK_INT(merge_store(m, NULL), 0);
    CHECK_INT(merge_counts(m)->received, 1);
    CHECK_INT(merge_counts(m)->deleted, 1);
    CHECK_INT(merge_facts(m, FACT_LINE), 200);
    merge_close(m);
    buf_release(&line);
    end_history(&h);
}
