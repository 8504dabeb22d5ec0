#include "browse/actions.h"
#include "browse/reader.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "chathist/base/file.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "scratch.h"

static void file_is(const char *file, const char *wanted)
{
    struct buf all = BUF_INIT(BUF_SMALL);

    CHECK_INT(file_read(file, &all, NULL), 0);
    CHECK_STR(buf_c(&all), wanted);
    buf_release(&all);
}

/* Exports to a file, as whose program hist-export runs `commands`, a script. */
static void run(struct browse_jobs *j, struct browse *b, const char *commands)
{
    static size_t count;
    char name[24];

    snprintf(name, sizeof name, "file%zu", count++);
    scratch_put(name, commands);
    browse_edit_set(&b->name, str_of(name));
    browse_act_run(j, b, BROWSE_EXPORT);
}

static void wait_for_jobs(struct browse_jobs *j, struct browse *b, struct buf *failures)
{
    int64_t until = time_ticks() + 20000;

    while (browse_jobs_busy(j) && CHECK(time_ticks() < until)) {
        browse_jobs_step(j, b, failures);
        file_wait(-1, BROWSE_JOBS_MS);
    }
}

TEST(programs_run_in_order)
{
    static char path[] = "h";
    struct history h = {.kind = HISTORY_EXPLICIT, .path = path};
    struct buf failures = BUF_INIT(BUF_SMALL);
    struct browse_jobs j = {0};
    struct browse b;

    scratch_enter();
    /* After --history h -q -o. */
    scratch_put("hist-export", "#!/bin/sh\nexec sh \"$5\"\n");
    CHECK_INT(chmod("hist-export", 0700), 0);
    /* As in browse_loop: a program may end before it has read its input. */
    signal(SIGPIPE, SIG_IGN);
    browse_init(&b, 1);
    b.places = &h;
    b.self = "./hist-browse";
    run(&j, &b, "sleep 0.1; echo a >>ran");
    run(&j, &b, "echo b >>ran; echo reason >&2; exit 3");
    run(&j, &b, "echo c >>ran");
    run(&j, &b, "exit 4");
    b.self = "./none/hist-browse";
    run(&j, &b, "");
    b.self = "./hist-browse";
    wait_for_jobs(&j, &b, &failures);
    file_is("ran", "a\nb\nc\n");
    CHECK(j.changed);
    CHECK(str_starts(buf_str(&failures), STR("reason; failed with status 4; ")));
    buf_clear(&failures);
    run(&j, &b, "");
    wait_for_jobs(&j, &b, &failures);
    CHECK(str_starts(buf_str(&b.status), STR("exported to 'file")));
    CHECK_INT(failures.len, 0);
    /* Those that were not started are forgotten. */
    run(&j, &b, "trap 'echo gone >>ran; exit' TERM; echo >begun; while :; do sleep 0.05; done");
    run(&j, &b, "echo never >>ran");
    while (access("begun", F_OK) < 0) {
        browse_jobs_step(&j, &b, &failures);
        file_wait(-1, 10);
    }
    browse_jobs_stop(&j, &failures);
    CHECK(!browse_jobs_busy(&j));
    file_is("ran", "a\nb\nc\ngone\n");
    browse_release(&b);
    buf_release(&failures);
    scratch_leave();
}

/* ---- reading ---- */

#define MESSAGES_READ ((size_t)3000)

/* Each third message has the text. */
static void write_history(void)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < MESSAGES_READ; i++)
        buf_addf(&text,
                 "{\"id\":\"m%zu\",\"session_id\":\"s%zu\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%s and some other words\"}\n",
                 i, i / 10, i % 3 ? "hay" : "needle");
    scratch_put_bytes("h", text.data, text.len);
    buf_release(&text);
}

/* Begins with the history h, which does not exist yet. */
static struct browse_reader *begin(struct browse *b)
{
    static char path[] = "h";
    static const struct history h = {
        .dir_fd = FILE_CWD, .pointer_fd = FILE_CWD, .path = path, .cancel_fd = -1};

    scratch_enter();
    browse_init(b, 1);
    return browse_reader_new(&h, 1);
}

static void end(struct browse_reader *r, struct browse *b)
{
    browse_reader_free(r);
    browse_release(b);
    scratch_leave();
}

static void begin_search(struct browse *b, const char *text)
{
    browse_edit_set(&b->query, str_of(text));
    browse_search(b, false);
}

/* Does what the loop does until the search has ended, or has as many hits as are wanted and has
 * counted all of them. */
static void search_all(struct browse_reader *r, struct browse *b)
{
    (void)browse_read(r, b);
    while (browse_is_busy(r, b)) {
        (void)browse_search_on(r, b);
        (void)browse_read(r, b);
    }
}

static void check_hits(const struct browse *b)
{
    CHECK_INT(b->hits.count, MESSAGES_READ / 3);
    for (size_t i = 0; i < b->hits.count; i++) {
        char id[24];

        snprintf(id, sizeof id, "m%zu", MESSAGES_READ - 3 - 3 * i);
        if (!CHECK(str_eq_c(b->hits.at[i].message, id)))
            return;
    }
}

TEST(a_search_pauses_and_goes_on)
{
    struct browse b;
    struct browse_reader *r = begin(&b);

    write_history();
    for (int again = 0; again < 2; again++) {
        begin_search(&b, "needle");
        search_all(r, &b);
        CHECK_INT(b.hits.count, BROWSE_HITS_FIRST);
        CHECK(!b.hits_done);
        CHECK_INT(b.hits_total, MESSAGES_READ / 3);
        b.hits_wanted = SIZE_MAX;
        search_all(r, &b);
        CHECK(b.hits_done);
        check_hits(&b);
        CHECK_STR(buf_c(&b.shown.id), "s299");
        CHECK_INT(b.pane.thread.count, 10);
        CHECK_INT(b.sessions.count, MESSAGES_READ / 10);
    }
    /* If it is repeated, its first result has them all. */
    browse_search(&b, true);
    (void)browse_read(r, &b);
    while (b.repeating && CHECK_INT(b.hits.count, MESSAGES_READ / 3))
        (void)browse_search_on(r, &b);
    check_hits(&b);
    /* Another text drops it on its way. */
    begin_search(&b, "needle");
    (void)browse_read(r, &b);
    (void)browse_search_on(r, &b);
    begin_search(&b, "nowhere");
    search_all(r, &b);
    CHECK(b.hits_done && b.hits.count == 0);
    begin_search(&b, "needle");
    (void)browse_read(r, &b);
    end(r, &b);
}

TEST(sessions_are_found_if_no_message_has_all_words)
{
    struct browse b;
    struct browse_reader *r = begin(&b);

    write_history();
    begin_search(&b, "hay needle");
    b.hits_wanted = SIZE_MAX;
    search_all(r, &b);
    CHECK_INT(b.fit, BROWSE_FIT_SESSION);
    CHECK_INT(b.hits.count, 2 * MESSAGES_READ / 10);
    begin_search(&b, "hay needle nowhere");
    b.hits_wanted = SIZE_MAX;
    search_all(r, &b);
    CHECK_INT(b.fit, BROWSE_FIT_NEARLY);
    CHECK_INT(b.hits.count, 2 * MESSAGES_READ / 10);
    end(r, &b);
}

TEST(a_file_that_has_changed_is_read_again)
{
    struct browse b;
    struct browse_reader *r = begin(&b);

    CHECK(!browse_read(r, &b));
    CHECK(!b.wants.sessions);
    CHECK_INT(b.sessions.count, 0);
    write_history();
    b.wants.sessions = true;
    CHECK(browse_read(r, &b));
    CHECK_INT(b.sessions.count, MESSAGES_READ / 10);
    CHECK_STR(buf_c(&b.shown.id), "s299");
    CHECK_INT(b.pane.thread.count, 10);
    b.wants.sessions = true;
    CHECK(!browse_read(r, &b));
    end(r, &b);
}

/* A time ahead of the clock counts as the latest time before it in the file. */
TEST(sessions_and_hits_have_the_order_of_this_clock)
{
    struct browse b;
    struct browse_reader *r = begin(&b);
    static const char *const years[] = {"2024", "2999", "2025", "2023"};
    struct buf text = BUF_INIT(BUF_LINE);

    for (int i = 0; i < 4; i++)
        buf_addf(&text,
                 "{\"id\":\"m%d\",\"session_id\":\"s%d\",\"timestamp\":\"%s-01-01T00:00:00Z\","
                 "\"role\":\"user\",\"content\":\"needle\"}\n",
                 i, i, years[i]);
    scratch_put_bytes("h", text.data, text.len);
    buf_release(&text);
    (void)browse_read(r, &b);
    CHECK_STR(b.sessions.at[0].session->id.p, "s2");
    begin_search(&b, "needle");
    search_all(r, &b);
    CHECK_INT(b.hits.count, 4);
    CHECK(str_eq(b.hits.at[0].session, STR("s2")));
    end(r, &b);
}

static void put_message(struct buf *out, int day, const char *session)
{
    buf_addf(out,
             "{\"id\":\"m%d\",\"session_id\":\"%s\",\"timestamp\":\"2024-01-%02dT00:00:00Z\","
             "\"role\":\"user\",\"content\":\"needle of day %d\"}\n",
             day, session, day, day);
}

/* Writes these messages of some days to a file, each of its own session. */
static void write_days(const char *file, const int *days, size_t count)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < count; i++) {
        char session[24];

        snprintf(session, sizeof session, "%s%d", file, days[i]);
        put_message(&text, days[i], session);
    }
    scratch_put_bytes(file, text.data, text.len);
    buf_release(&text);
}

TEST(hits_of_several_histories_are_in_the_order_of_their_times)
{
    char paths[2][2] = {"h", "g"};
    struct history both[2];
    struct buf ids = BUF_INIT(BUF_SMALL);
    struct browse_reader *r;
    struct browse b;

    for (size_t i = 0; i < 2; i++)
        both[i] = (struct history){.dir_fd = FILE_CWD,
                                   .pointer_fd = FILE_CWD,
                                   .path = paths[i],
                                   .now = INT64_MAX,
                                   .cancel_fd = -1};
    scratch_enter();
    write_days("h", (const int[]){9, 1, 5}, 3);
    write_days("g", (const int[]){2, 8, 9, 4}, 4);
    browse_init(&b, 2);
    b.all = true;
    r = browse_reader_new(both, 2);
    begin_search(&b, "needle");
    search_all(r, &b);
    for (size_t i = 0; i < b.hits.count; i++)
        buf_addf(&ids, "%s%.*s ", paths[b.hits.at[i].history], (int)b.hits.at[i].message.n,
                 b.hits.at[i].message.p);
    CHECK_STR(buf_c(&ids), "hm9 gm9 gm8 hm5 gm4 gm2 hm1 ");
    buf_release(&ids);
    end(r, &b);
}

/* ---- changes of a file ---- */

static void write_file(const char *text, int flags)
{
    int fd = open("h", O_WRONLY | O_CREAT | flags, 0600);

    CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

/* Returns true if the history has changed since the last call. */
static bool has_changed(struct browse_reader *r, struct browse *b)
{
    b->wants.sessions = true;
    return browse_read(r, b);
}

TEST(each_change_of_a_file_is_seen_once)
{
    struct stat st;
    struct browse b;
    struct browse_reader *r = begin(&b);

    CHECK(!has_changed(r, &b));
    write_file("one\n", 0);
    CHECK(has_changed(r, &b) && !has_changed(r, &b));
    write_file("more\n", O_APPEND);
    CHECK(has_changed(r, &b) && !has_changed(r, &b));
    /* As touch -r sets the time back. */
    CHECK(stat("h", &st) == 0);
    file_wait(-1, 50); /* until the file system's clock has moved */
    write_file("two\n", 0);
    CHECK(utimensat(AT_FDCWD, "h", (struct timespec[]){st.st_atim, st.st_mtim}, 0) == 0);
    CHECK(has_changed(r, &b));
    CHECK(rename("h", "before") == 0);
    write_file("two\nmore\n", 0);
    CHECK(has_changed(r, &b));
    CHECK(unlink("h") == 0);
    CHECK(has_changed(r, &b) && !has_changed(r, &b));
    end(r, &b);
}

/* Searches until there is something new to draw. */
static void search_until_news(struct browse_reader *r, struct browse *b, const char *text)
{
    begin_search(b, text);
    (void)browse_read(r, b);
    while (browse_is_busy(r, b) && !browse_search_on(r, b))
        continue;
}

#define LINE(content)                                                                              \
    "{\"id\":\"" content "\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","          \
    "\"content\":\"" content "\"}\n"

/* The oldest message and the newest ones are far from each other. */
TEST(other_forms_are_shown_before_a_large_history_is_searched)
{
    struct browse b;
    struct browse_reader *r = begin(&b);
    static char filler[(1 << 20) + 1];

    write_file(LINE("the only conection"), 0);
    memset(filler, 'x', sizeof filler - 2);
    filler[sizeof filler - 2] = '\n';
    for (size_t i = 0; i < 130; i++)
        write_file(filler, O_APPEND);
    write_file(LINE("the connection") LINE("a semaphore of the connection"), O_APPEND);
    search_until_news(r, &b, "connektion");
    CHECK(browse_is_searching(&b) && !b.hits_done);
    CHECK_INT(b.hits.count, 2);
    CHECK_STR(buf_c(&b.status), "so far no 'connektion'; showing 'connection'");
    search_all(r, &b);
    CHECK(b.answered && b.hits_done);
    CHECK_INT(b.hits.count, 2);
    CHECK_STR(buf_c(&b.status), "no 'connektion'; showing 'connection'");
    /* The answer of the whole history has the word itself. */
    search_until_news(r, &b, "conection");
    CHECK(browse_is_searching(&b));
    CHECK_INT(b.hits.count, 2);
    search_all(r, &b);
    CHECK_INT(b.hits.count, 1);
    CHECK_STR(buf_c(&b.instead), "");
    CHECK_STR(buf_c(&b.status), "");
    /* What the newest part has is no news until it is the answer. */
    search_until_news(r, &b, "connection");
    CHECK(b.answered);
    CHECK_INT(b.hits.count, 2);
    search_until_news(r, &b, "semapore connektion");
    CHECK(browse_is_searching(&b));
    CHECK_INT(b.hits.count, 1);
    end(r, &b);
}
