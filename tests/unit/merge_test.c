/* Sets of digests, and lines of a history that is merged. The rest is tested by sync_test.c and
 * hist-sync.bats. */
#include "chathist/sync/merge.h"

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
