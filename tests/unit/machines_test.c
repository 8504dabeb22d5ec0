/* The list of machines in a directory of hist-sync. */
#include "chathist/sync/sync.h"

#include <sys/resource.h>

#include "chathist/base/time.h"
#include "test.h"
#include "scratch.h"

static const struct merge_options options = {0};

/* A history of this account in the scratch directory. */
static struct history some_history(void)
{
    struct locate_from from = {.explicit_file = "h", .cwd = scratch_dir, .state_home = scratch_dir};
    struct history h;

    CHECK_INT(locate(&h, &from, NULL), 0);
    return h;
}

/* The machines, as `NAME HOST YEAR BYTES HISTORIES FILES;`. */
static void check_machines(const char *place, const char *want, const char *fault)
{
    struct history h = some_history();
    struct buf text = BUF_INIT(BUF_LINE), time = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct sync_machines l;

    CHECK_INT(sync_machines_read(&l, place, &h, &options, &e), *fault ? -1 : 0);
    CHECK_STR(err_text(&e), fault);
    for (size_t i = 0; i < l.count; i++) {
        const struct sync_machine_entry *m = &l.at[i];
        size_t files = 0;

        for (size_t k = 0; k < m->count; k++)
            files += m->histories[k].files;
        buf_clear(&time);
        time_add_iso(&time, m->last_run);
        buf_addf(&text, "%s %s %.4s %d %zu %zu;", m->name, m->host, buf_c(&time), (int)m->bytes,
                 m->count, files);
        CHECK(!m->own);
    }
    CHECK_STR(buf_c(&text), want);
    sync_machines_release(&l);
    err_release(&e);
    history_release(&h);
    buf_release(&text);
    buf_release(&time);
}

/* Writes a file of a machine, last modified in the year 2001. */
static void put(const char *machine, const char *history, const char *file, const char *text)
{
    static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    char path[256];

    snprintf(path, sizeof path, "d/%s", machine);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "d/%s/%s", machine, history);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "d/%s/%s/%s", machine, history, file);
    scratch_put(path, text);
    CHECK_INT(utimensat(AT_FDCWD, path, old, 0), 0);
}

TEST(an_index_says_when_and_where_it_was_written)
{
    static const struct {
        const char *index, *want;
    } cases[] = {
        {"hist-sync 2 n 0123456789abcdef 2020-01-01T00:00:00+00:00 host\n", "host 2020"},
        {"hist-sync 2 n 0123456789abcdef 2020-01-01T00:00:00+00:00 host", "host 2020"},
        {"hist-sync 2 n 0123456789abcdef 2020-01-01T00:00:00+00:00\n", "a 2020"},
        {"hist-sync 2 n 0123456789abcdef yesterday host\n", "host 2001"},
        {"hist-sync 2 n\n", "a 2001"},
        {"hist-sync\n", "a 2001"},
        {"another 2 n 0123456789abcdef 2020-01-01T00:00:00+00:00 host\n", "a 2001"},
        {"", "a 2001"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char want[128];

        scratch_enter();
        CHECK_INT(mkdir("d", 0700), 0);
        put("a-123456", "n", "index", cases[i].index);
        snprintf(want, sizeof want, "a-123456 %s %zu 1 1;", cases[i].want, strlen(cases[i].index));
        check_machines("d", want, "");
        scratch_leave();
    }
}

TEST(machines_are_listed_with_the_latest_first)
{
    static const char late[] = "hist-sync 2 o:x 0123456789abcdef 2022-01-01T00:00:00+00:00 new\n",
                      early[] = "hist-sync 2 n 0123456789abcdef 2020-01-01T00:00:00+00:00 old\n",
                      bad[] = "hist-sync 2 b\x1b"
                              "d 0123456789abcdef 2019-01-01T00:00:00+00:00 bad\n";
    char want[512];

    scratch_enter();
    CHECK_INT(mkdir("d", 0700), 0);
    check_machines("d", "", "");
    check_machines("e", "", "cannot open directory 'e': No such file or directory");
    /* A machine with two histories is where the later one was written. The name of a history in the
     * index counts, if it is one. */
    put("a-1", "n", "index", early);
    put("a-1", "o=x", "index", late);
    put("a-1", "o=x", "lines-0123456789abcdef.jsonl", "123\n");
    put("a-1", "o=x", "other", "no file of hist-sync");
    put("a-1", ".hidden", "index", late);
    put("c", "n", "index", early);
    put("-b", "n", "index", early);
    put("e-1", "n", "index", bad);
    /* These are no machines. */
    put("empty", "n", "other", "");
    scratch_put("d/file", "");
    scratch_put("d/c/file", "");
    CHECK_INT(mkdir("d/lost+found", 0700), 0);
    CHECK_INT(mkdir("d/c/n/lines-1.jsonl", 0700), 0);
    CHECK_INT(symlink("c", "d/link"), 0);
    snprintf(want, sizeof want,
             "a-1 new 2022 %zu 2 3;-b old 2020 %zu 1 1;c old 2020 %zu 1 1;e-1 bad 2019 %zu 1 1;",
             strlen(early) + strlen(late) + 4, strlen(early), strlen(early), strlen(bad));
    check_machines("d", want, "");
    scratch_leave();
}

TEST(what_cannot_be_opened_is_an_error_and_never_left_out_silently)
{
    struct rlimit old, limit;
    struct history h;
    int failed = 0, first = open("/", O_RDONLY);

    close(first);
    scratch_enter();
    CHECK_INT(mkdir("d", 0700), 0);
    put("a-1", "n", "index", "hist-sync 2 n r 2020-01-01T00:00:00+00:00 host\n");
    put("a-1", "o", "index", "hist-sync 2 o r 2020-01-01T00:00:00+00:00 host\n");
    put("b-1", "n", "index", "hist-sync 2 n r 2020-01-01T00:00:00+00:00 host\n");
    h = some_history();
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (int more = 0; more < 10; more++) {
        struct err e = ERR_INIT;
        struct sync_machines l;
        int result;

        limit = old;
        limit.rlim_cur = (rlim_t)first + (rlim_t)more;
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        result = sync_machines_read(&l, "d", &h, &options, &e);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
        CHECK((strstr(err_text(&e), "Too many open files") != NULL) == (result < 0));
        CHECK(result < 0 || (l.count == 2 && l.at[0].count + l.at[1].count == 3));
        failed += result < 0;
        sync_machines_release(&l);
        err_release(&e);
    }
    CHECK(failed >= 3 && failed < 10);
    history_release(&h);
    scratch_leave();
}
