/*
 * Random schedules of three copies of a history: appends, titles, deletions, and synchronisation
 * through a directory and over connections, of which many are killed or cut. In the end all copies
 * are equal, every line that was stored is in all of them unless it was deleted, no deleted line is
 * back, and all give each session the same title. The clock of each machine is ten years ahead of
 * that of the one before. SYNC_SCHEDULES sets how many schedules are run.
 */
#include "chathist/sync/sync.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/history/rewrite.h"
#include "chathist/history/scan.h"
#include "chathist/history/session.h"
#include "chathist/history/session_list.h"
#include "chathist/history/store.h"
#include "chathist/history/title.h"
#include "test.h"
#include "scratch.h"

#define MACHINES 3
#define SESSIONS 4
#define STEPS 24
#define TEN_YEARS (INT64_C(3652) * 24 * 3600 * TIME_SECOND)

static unsigned long long state; /* of the random numbers */

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

/* What must hold in the end. */
static struct hash_map stored;  /* the ids of lines that were stored */
static struct hash_map deleted; /* of these, the ids of lines that were deleted */

static struct history machine_open(unsigned number)
{
    static const char *const files[] = {"a/h", "b/h", "c/h"}, *const states[] = {"a/s", "b/s",
                                                                                 "c/s"};
    struct history h;
    struct buf home = BUF_INIT(BUF_SMALL);
    struct locate_from from = {.explicit_file = files[number], .cwd = scratch_dir};

    buf_addf(&home, "%s/%s", scratch_dir, states[number]);
    from.state_home = buf_c(&home);
    CHECK_INT(locate(&h, &from, NULL), 0);
    h.sync = false;
    buf_release(&home);
    return h;
}

static void note(struct hash_map *set, struct str id)
{
    (void)hash_map_number(set, &id);
}

static void append_line(unsigned machine)
{
    struct history h = machine_open(machine);
    struct draft d;
    struct buf text = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_SMALL);
    static unsigned long count;

    buf_addf(&text, "%c %lu", 'a' + (char)machine, ++count);
    /* The order of the ids is that in which the machine stored its lines. */
    buf_addf(&id, "%c-%08lu", 'a' + (char)machine, count);
    draft_init(&d);
    if (draw(4) == 0)
        titles_draft(&(struct titles){0}, buf_str(&text), &d);
    else
        draft_message(&d, ROLE_USER, buf_str(&text));
    buf_clear(&text);
    buf_addf(&text, "s%u", draw(SESSIONS));
    draft_set_text(&d, FIELD_SESSION_ID, buf_str(&text));
    draft_set_text(&d, FIELD_ID, buf_str(&id));
    buf_clear(&text);
    time_add_iso(&text, time_now() + machine * TEN_YEARS);
    draft_set_text(&d, FIELD_TIMESTAMP, buf_str(&text));
    if (CHECK_INT(store_append(&h, &d, 1, NULL), 0))
        note(&stored, buf_str(&id));
    draft_release(&d);
    buf_release(&text);
    buf_release(&id);
    history_release(&h);
}

/* ---- deleting, as hist-delete does it ---- */

static char condemned[8]; /* the session */
static struct message parsed = MESSAGE_INIT;

static void begin_nothing(void *arg)
{
    (void)arg;
}

static void leave_out(void *arg, struct rewrite *r, const struct line *l)
{
    (void)arg;
    if (!message_parse(&parsed, l->text) || !str_eq_c(parsed.session_id, condemned)) {
        rewrite_keep(r, l);
    } else {
        rewrite_erase(r, &parsed, false);
        note(&deleted, parsed.id);
    }
}

static void delete_session(unsigned machine, unsigned number)
{
    struct history h = machine_open(machine);
    struct rewriter by = {.begin = begin_nothing, .line = leave_out};

    snprintf(condemned, sizeof condemned, "s%u", number);
    CHECK(rewrite_run(&h, &by, NULL) >= 0);
    history_release(&h);
}

/* ---- synchronising, in processes that may be killed ---- */

/* Kills a process at some moment, or waits until it ends. Returns its exit status, or -1. */
static int finish(pid_t pid, bool killed)
{
    int status;

    if (killed) {
        usleep(draw(3000));
        kill(pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void run_dir(unsigned machine)
{
    struct history h = machine_open(machine);
    struct sync_job job = {.history = &h, .name = "test/history", .place = "folder"};
    struct err e = ERR_INIT;
    int result = sync_dir(&job, &e);

    if (result < 0)
        fprintf(stderr, "# sync_dir: %s\n", err_text(&e));
    _exit(result < 0);
}

static void run_side(unsigned machine, bool client, int in, int out)
{
    struct history h = machine_open(machine);
    struct sync_job job = {.history = &h, .name = "test", .place = "there"};
    struct err e = ERR_INIT;
    int result = client ? sync_connected(&job, in, out, &e) : sync_serve(&job, in, out, &e);

    _exit(result < 0);
}

static void sync_by_dir(unsigned machine, bool killed)
{
    pid_t pid = fork();

    if (pid == 0)
        run_dir(machine);
    if (finish(pid, killed) != 0)
        CHECK(killed);
}

static void sync_by_connection(unsigned machine, unsigned other, bool cut)
{
    int there[2], back[2];
    bool kills_server = draw(2) == 0;
    pid_t client, server;

    if (!CHECK_INT(pipe_open(there) | pipe_open(back), 0))
        return;
    client = fork();
    if (client == 0) {
        close(there[0]);
        close(back[1]);
        run_side(machine, true, back[0], there[1]);
    }
    server = fork();
    if (server == 0) {
        close(there[1]);
        close(back[0]);
        run_side(other, false, there[0], back[1]);
    }
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
    if (kills_server) {
        CHECK(finish(server, cut) == 0 || cut);
        CHECK(finish(client, false) == 0 || cut);
    } else {
        CHECK(finish(client, cut) == 0 || cut);
        CHECK(finish(server, false) == 0 || cut);
    }
}

/* ---- a rewrite during an exchange ---- */

static void store_line(unsigned machine, const char *session, const char *id)
{
    struct history h = machine_open(machine);
    struct draft d;

    draft_init(&d);
    draft_message(&d, ROLE_USER, str_of(id));
    draft_set_text(&d, FIELD_SESSION_ID, str_of(session));
    draft_set_text(&d, FIELD_ID, str_of(id));
    CHECK_INT(store_append(&h, &d, 1, NULL), 0);
    draft_release(&d);
    history_release(&h);
}

/* Reads n bytes, or until the other side ends. */
static void read_from(int fd, size_t n, struct buf *out)
{
    buf_clear(out);
    while (out->len < n && file_read_some(fd, out) > 0)
        ;
}

/* Starts a server of machine 0 and is its client: greets it, and has one other line.
 * Returns the process, with two descriptors that lead to it. */
static pid_t start_exchange(int *to, int *from)
{
    int there[2], back[2];
    struct buf in = BUF_INIT(BUF_LINE), out = BUF_INIT(BUF_SMALL);
    pid_t pid;

    if (!CHECK_INT(pipe_open(there) | pipe_open(back), 0))
        return -1;
    pid = fork();
    if (pid == 0) {
        close(there[1]);
        close(back[0]);
        run_side(0, false, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    *to = there[1];
    *from = back[0];
    read_from(*from, strlen("hist-sync 3") + 4 * 17 + 1, &in);
    buf_add_str(&out, (struct str){in.data, in.len - 2 * 17 - 1});
    buf_add_c(&out, " 0000000000000001 0000000000000001\n0000000000000001\nE\n");
    CHECK_INT(file_write_all(*to, out.data, out.len), 0);
    read_from(*from, 3 * 17 + 2, &in);
    CHECK_INT(in.len, 3 * 17 + 2);
    buf_release(&in);
    buf_release(&out);
    return pid;
}

TEST(a_line_that_is_erased_during_an_exchange_moves_no_other)
{
    struct buf in = BUF_INIT(BUF_LINE), ids = BUF_INIT(BUF_SMALL);
    const char *end = "{\"id\":\"4\",\"session_id\":\"s1\",\"timestamp\":"
                      "\"2024-01-01T00:00:00.000000+00:00\",\"role\":\"user\",\"content\":\"\"}\n"
                      "E\n";
    int to = -1, from = -1;
    struct str rest, line;
    pid_t pid;

    signal(SIGPIPE, SIG_IGN);
    scratch_enter();
    CHECK_INT(mkdir("a", 0700), 0);
    store_line(0, "s0", "1");
    store_line(0, "s1", "2");
    store_line(0, "s1", "3");
    pid = start_exchange(&to, &from);
    delete_session(0, 0);
    CHECK_INT(file_write_all(to, end, strlen(end)), 0);
    read_from(from, SIZE_MAX, &in);
    CHECK_INT(finish(pid, false), 0);
    rest = buf_str(&in);
    while ((line = str_cut(&rest, '\n')).n > 0 && message_parse(&parsed, line))
        buf_add_str(&ids, parsed.id);
    CHECK_STR(buf_c(&ids), "23");
    CHECK(str_eq_c(line, "E"));
    close(to);
    close(from);
    hash_map_release(&deleted);
    deleted = (struct hash_map){0};
    buf_release(&in);
    buf_release(&ids);
    message_release(&parsed);
    scratch_leave();
}

/* ---- a hostile peer ---- */

#define NONE " 0000000000000000"
#define ONE " 0000000000000001"
#define HELLO "hist-sync 3" NONE NONE ONE ONE "\n"

/* Is the client of a peer that `play` is, in a process of its own that writes to `to` and reads
 * nothing. Returns what sync_connected returns. */
static int meet(struct sync_job *job, void (*play)(const void *arg, int to), const void *arg,
                struct err *e)
{
    struct history h = machine_open(0);
    int there[2], back[2], result;
    pid_t pid;

    if (!CHECK_INT(pipe_open(there) | pipe_open(back), 0))
        return -1;
    pid = fork();
    if (pid == 0) {
        play(arg, back[1]);
        _exit(0);
    }
    job->history = &h;
    job->name = "test";
    job->place = "there";
    result = sync_connected(job, back[0], there[1], e);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
    history_release(&h);
    return result;
}

struct hostile {
    const char *says;
    bool dribbles; /* then it sends a byte each millisecond; or it is silent */
};

static void play_hostile(const void *arg, int to)
{
    const struct hostile *p = arg;

    (void)!write(to, p->says, strlen(p->says));
    while (!p->dribbles || write(to, "a", 1) == 1)
        usleep(1000);
}

static void meet_hostile(const char *says, bool dribbles, uint64_t received_most,
                         enum err_kind kind, const char *message)
{
    struct sync_job job = {.silence_most = 50, .received_most = received_most};
    struct hostile peer = {says, dribbles};
    struct err e = ERR_INIT;

    CHECK_INT(meet(&job, play_hostile, &peer, &e), -1);
    CHECK_INT(e.kind, kind);
    CHECK_STR(err_text(&e), message);
    err_release(&e);
}

TEST(a_peer_that_is_silent_or_slow_or_sends_too_much_is_left)
{
    static const char slow[] = "'there' does not answer, or too slowly";
    char *id;

    signal(SIGPIPE, SIG_IGN);
    scratch_enter();
    CHECK_INT(mkdir("a", 0700), 0);
    store_line(0, "s0", "1");
    meet_hostile("", false, 0, ERR_TIMEOUT, slow);
    meet_hostile("", true, 0, ERR_TIMEOUT, slow);
    meet_hostile(HELLO, false, 0, ERR_TIMEOUT, slow);
    meet_hostile(HELLO "0", true, 0, ERR_TIMEOUT, slow);
    meet_hostile(HELLO "E\n{", false, 0, ERR_TIMEOUT, slow);
    meet_hostile(HELLO "E\n{", false, sizeof(HELLO "E\n") - 1, ERR_FAILURE,
                 "'there' sent more than one run may have: try again");
    /* The client cannot send a line that does not fit into the pipe. */
    id = mem_zalloc(200000);
    memset(id, 'x', 199999);
    store_line(0, "s0", id);
    meet_hostile(HELLO "E\n", false, 0, ERR_TIMEOUT, slow);
    free(id);
    scratch_leave();
}

/* Sends a line for ten times as long as it may be silent. */
static void play_steady(const void *arg, int to)
{
    static const char begin[] = HELLO "0000000000000001\nE\n{\"id\":\"2\",\"session_id\":\"s1\","
                                      "\"timestamp\":\"2024-01-01T00:00:00.000000+00:00\","
                                      "\"role\":\"user\",\"content\":\"";
    char piece[8192];

    (void)arg;
    memset(piece, 'x', sizeof(piece));
    (void)!write(to, begin, strlen(begin));
    for (int i = 0; i < 100; i++) {
        (void)!write(to, piece, sizeof(piece));
        usleep(10000);
    }
    (void)!write(to, "\"}\nE\n", 5);
    pause();
}

TEST(a_peer_that_is_fast_enough_may_take_longer)
{
    struct sync_job job = {.silence_most = 100};
    struct err e = ERR_INIT;

    signal(SIGPIPE, SIG_IGN);
    scratch_enter();
    CHECK_INT(mkdir("a", 0700), 0);
    CHECK_INT(meet(&job, play_steady, NULL, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK_INT(job.count.received, 1);
    err_release(&e);
    scratch_leave();
}

/* ---- one schedule ---- */

static void step(void)
{
    unsigned machine = draw(MACHINES), what = draw(10);
    bool killed = draw(2) == 0;

    if (what < 4)
        append_line(machine);
    else if (what == 4)
        delete_session(machine, draw(SESSIONS));
    else if (what < 7)
        sync_by_connection(machine, (machine + 1 + draw(MACHINES - 1)) % MACHINES, killed);
    else
        sync_by_dir(machine, killed);
}

/* Reads the ids of a copy in their order. Checks that each is there once, and that those of each
 * machine come in their order. */
static void read_ids(unsigned machine, struct hash_map *ids)
{
    struct history h = machine_open(machine);
    struct buf last[MACHINES] = {BUF_INIT(BUF_SMALL), BUF_INIT(BUF_SMALL), BUF_INIT(BUF_SMALL)};
    struct message m = MESSAGE_INIT;
    struct scan s;

    CHECK_INT(scan_open(&s, h.dir_fd, h.path, NULL), 0);
    while (scan_message(&s, &m, NULL, NULL) > 0) {
        struct buf *before = &last[m.id.p[0] - 'a'];
        size_t count = ids->count;

        note(ids, m.id);
        CHECK_INT(ids->count, count + 1);
        CHECK(before->len == 0 || memcmp(before->data, m.id.p, m.id.n) < 0);
        buf_clear(before);
        buf_add_str(before, m.id);
    }
    CHECK_INT(s.bad, 0);
    scan_close(&s);
    message_release(&m);
    for (size_t i = 0; i < MACHINES; i++)
        buf_release(&last[i]);
    history_release(&h);
}

static void check_end(void)
{
    for (unsigned machine = 0; machine < MACHINES; machine++) {
        struct hash_map ids = {0};
        size_t lost = 0;

        read_ids(machine, &ids);
        for (size_t i = 0; i < stored.count; i++) {
            struct str id = stored.entries[i].key;

            lost += !hash_map_find(&ids, id) && !hash_map_find(&deleted, id);
        }
        CHECK_INT(lost, 0);
        for (size_t i = 0; i < deleted.count; i++)
            CHECK(!hash_map_find(&ids, deleted.entries[i].key));
        CHECK_INT(ids.count, stored.count - deleted.count);
        hash_map_release(&ids);
    }
}

static void check_titles(void)
{
    for (unsigned i = 0; i < SESSIONS; i++) {
        struct buf titles[MACHINES] = {BUF_INIT(BUF_SMALL), BUF_INIT(BUF_SMALL),
                                       BUF_INIT(BUF_SMALL)};
        char id[8];

        snprintf(id, sizeof id, "s%u", i);
        for (unsigned machine = 0; machine < MACHINES; machine++) {
            struct history h = machine_open(machine);

            CHECK_INT(session_title(&h, str_of(id), &titles[machine], NULL, NULL), 0);
            CHECK(str_eq(buf_str(&titles[machine]), buf_str(&titles[0])));
            history_release(&h);
        }
        for (unsigned machine = 0; machine < MACHINES; machine++)
            buf_release(&titles[machine]);
    }
}

static void run_schedule(unsigned long seed)
{
    state = seed;
    scratch_enter();
    CHECK_INT(mkdir("folder", 0700) | mkdir("a", 0700) | mkdir("b", 0700) | mkdir("c", 0700), 0);
    for (int i = 0; i < STEPS; i++)
        step();
    /* By a directory every machine needs two turns; by connections all pairs, twice. */
    for (unsigned i = 0; i < 2 * MACHINES; i++) {
        if (seed % 2 == 0)
            sync_by_dir(i % MACHINES, false);
        else
            sync_by_connection(i % MACHINES, (i + 1) % MACHINES, false);
    }
    check_end();
    check_titles();
    hash_map_release(&stored);
    hash_map_release(&deleted);
    stored = deleted = (struct hash_map){0};
    scratch_leave();
}

TEST(three_copies_become_equal)
{
    const char *wanted = getenv("SYNC_SCHEDULES");
    unsigned long count = wanted ? strtoul(wanted, NULL, 10) : 25;

    signal(SIGPIPE, SIG_IGN);
    for (unsigned long seed = 1; seed <= count && !test_failed; seed++) {
        run_schedule(seed);
        if (test_failed)
            fprintf(stderr, "# schedule %lu\n", seed);
    }
    message_release(&parsed);
}
