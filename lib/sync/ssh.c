/*
 * Another machine, over a pipe to `hist-sync --serve` there, which ssh starts.
 *
 * Both sides speak in turn, so that neither waits for room in a pipe while the other does, too.
 * They send lines; numbers have 16 hexadecimal digits. The server greets first. Then both send the
 * same things, the client first:
 *
 *     hist-sync 3 DELETIONS N LINES N   the version, and of both sets a number and the size;
 *                                       if the numbers are equal, nothing follows
 *     SUM for each segment, E           so both know which segments differ; again for their parts
 *     DIGEST for each fact, E           the facts of a side in the segments that differ
 *     FACT for each one, E              the facts that the other side has not listed
 *     X MESSAGE                         from the server instead of any line, if it cannot continue
 *
 * If the deletions differ, they are exchanged first, so that no line is sent that is erased then.
 * After that both send the greeting again, and exchange the lines if these differ.
 *
 * A fact is a deletion, or a line. A segment has the facts whose digests begin with the same bits,
 * and its sum is that of these digests. At first there is one segment, which differs. Each list has
 * the parts of those that differ, in their order, until a segment of the larger history has about
 * SEGMENT_FACTS facts. So the traffic is in proportion to the difference, whatever the order of the
 * lines, and nothing is remembered between two runs. The segments of a folder (sync/dir.c) follow
 * the order of a file. They would not help here: two machines that are used in turn have few of them
 * in common, and for each missing line a thousand would be sent.
 *
 * The other side may be hostile. The program gives up if it is silent or slow, if a list is longer
 * than the greeting allows, or if a line, or all that was received, is too long.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/sync/sync.h"

#define VERSION "3"
/* How long the other side may be silent, in milliseconds, and how many bytes must travel in each of
 * them if it takes longer than that until a turn ends. */
#define SILENCE_MOST ((int64_t)300000)
#define SPEED_LEAST 8
/* The most bytes that the other side sends in a run. */
#define RECEIVED_MOST ((uint64_t)16 << 30)
/* The most bytes of deletions; they are kept in memory. */
#define DELETIONS_MOST ((uint64_t)256 << 20)
/* The longest line that is no fact. */
#define WORDS_MOST ((size_t)4096)
/* How many facts a segment has in the end, on average, and how many bits a list adds. */
#define SEGMENT_FACTS 8
#define STEP 4
/* The most facts of a kind that a history has. */
#define FACTS_MOST ((uint64_t)1 << 25)
#define PIECE ((size_t)256 << 10)
/* How long the ssh command may take to end. */
#define END_MS ((int64_t)10000)
/* The time between two reports that the other side is waited for. */
#define REPORT_MS 200

/* ---- the pipe ---- */

struct peer {
    int in, out;
    const char *name; /* its name in messages */
    struct buf input; /* bytes that were read and not used yet */
    size_t used;      /* the first bytes of `input` are used */
    struct buf output;
    int64_t silence; /* SILENCE_MOST, or less */
    int64_t
        turn; /* when the turn at work has to end; bytes that travel move it, up to `silence` from now */
    uint64_t left; /* bytes that may be received */
    task_report *work;
};

static void peer_init(struct peer *p, const struct sync_job *job, const char *name, int in, int out)
{
    *p = (struct peer){.in = in,
                       .out = out,
                       .name = name,
                       .silence = job->silence_most ? job->silence_most : SILENCE_MOST,
                       .left = job->received_most ? job->received_most : RECEIVED_MOST,
                       .work = job->history ? job->history->work : NULL};
    buf_init(&p->input, 2 * BUF_LINE);
    buf_init(&p->output, SIZE_MAX);
}

static void peer_release(struct peer *p)
{
    buf_release(&p->input);
    buf_release(&p->output);
}

/* clang's analyzer has to see that these and get_hello return -1. */
static int peer_gone(const struct peer *p, struct err *e)
{
    err_set(e, ERR_NETWORK, "the connection to '%s' ended too early", p->name);
    return -1;
}

static int peer_wrong(const struct peer *p, struct err *e)
{
    err_set(e, ERR_FAILURE, "'%s' does not follow the protocol of hist-sync", p->name);
    return -1;
}

/* The line is `X MESSAGE`. */
static int peer_refused(const struct peer *p, struct str line, struct err *e)
{
    size_t n = line.n < WORDS_MOST ? line.n : WORDS_MOST;

    err_set(e, ERR_FAILURE, "%s: %.*s", p->name, (int)n - 2, line.p + 2);
    return -1;
}

/* Waits until bytes can be read, or written. Returns 0, or -1 with *e set. */
static int peer_wait(const struct peer *p, int fd, short events, struct err *e)
{
    struct pollfd at = {.fd = fd, .events = events};
    int64_t left;
    int ready;

    do {
        int64_t ms = p->turn - time_ticks();

        left = ms < 0 ? 0 : ms;
        if (p->work)
            p->work(&(struct task){.name = "sync"});
        ready = poll(&at, 1, (int)(p->work && left > REPORT_MS ? REPORT_MS : left));
    } while ((ready == 0 && p->work && left > REPORT_MS) || (ready < 0 && errno == EINTR));
    if (ready == 0)
        return err_set(e, ERR_TIMEOUT, "'%s' does not answer, or too slowly", p->name);
    return ready < 0 ? err_sys(e, errno, "cannot wait for '%s'", p->name) : 0;
}

/* So many bytes have travelled: the turn may take longer. */
static void peer_extend(struct peer *p, size_t n)
{
    int64_t most = time_ticks() + p->silence;

    p->turn += (int64_t)(n / SPEED_LEAST);
    p->turn = p->turn < most ? p->turn : most;
}

/* Reads more bytes. Returns 0, or -1 with *e set. */
static int peer_more(struct peer *p, struct err *e)
{
    size_t before, n;
    int result;

    buf_consume(&p->input, p->used);
    p->used = 0;
    before = p->input.len;
    if (peer_wait(p, p->in, POLLIN, e) < 0)
        return -1;
    result = file_read_some(p->in, &p->input);
    if (result < 0)
        return err_sys(e, errno, "cannot read from '%s'", p->name);
    if (result == 0)
        return peer_gone(p, e);
    n = p->input.len - before;
    if (n > p->left)
        return err_set(e, ERR_FAILURE, "'%s' sent more than one run may have: try again", p->name);
    p->left -= n;
    peer_extend(p, n);
    return 0;
}

/* Reads a line of at most `most` bytes, without its newline, borrowed until the next read. Returns
 * 0, or -1 with *e set. */
static int peer_line(struct peer *p, size_t most, struct str *line, struct err *e)
{
    size_t looked = 0;

    for (;;) {
        const char *begin = p->input.data ? p->input.data + p->used : NULL;
        size_t n = p->input.len - p->used;
        const char *end = begin && n > looked ? memchr(begin + looked, '\n', n - looked) : NULL;

        if (end && (size_t)(end - begin) <= most) {
            *line = (struct str){begin, (size_t)(end - begin)};
            p->used += line->n + 1;
            return 0;
        }
        if (end || n > most)
            return err_set(e, ERR_FAILURE, "'%s' sent a line that is too long", p->name);
        looked = n;
        if (peer_more(p, e) < 0)
            return -1;
    }
}

/* The other side reads no more. It may have said why before it ended. */
static int peer_left(struct peer *p, struct err *e)
{
    struct str line = STR_NONE;

    while (peer_line(p, WORDS_MOST, &line, NULL) == 0)
        if (str_starts(line, STR("X ")))
            return peer_refused(p, line, e);
    return peer_gone(p, e);
}

static int peer_flush(struct peer *p, struct err *e)
{
    size_t done = 0;

    p->turn = time_ticks() + p->silence;
    while (done < p->output.len) {
        ssize_t n = file_write_now(p->out, p->output.data + done, p->output.len - done);

        if (n >= 0) {
            done += (size_t)n;
            peer_extend(p, (size_t)n);
        } else if (errno == EPIPE) {
            return peer_left(p, e);
        } else if (errno != EAGAIN && errno != EINTR) {
            return err_sys(e, errno, "cannot write to '%s'", p->name);
        } else if (peer_wait(p, p->out, POLLOUT, e) < 0) {
            return -1;
        }
    }
    buf_clear(&p->output);
    p->turn = time_ticks() + p->silence;
    return 0;
}

/* Reads the next line of a list, of at most `most` bytes, borrowed until the next read. At most
 * *left lines may follow. Returns 1, 0 at the end of the list, or -1 with *e set. */
static int peer_item(struct peer *p, size_t most, uint64_t *left, struct str *line, struct err *e)
{
    if (peer_line(p, most, line, e) < 0)
        return -1;
    if (str_starts(*line, STR("X ")))
        return peer_refused(p, *line, e);
    if (str_eq_c(*line, "E"))
        return 0;
    if (*left == 0)
        return err_set(e, ERR_FAILURE, "'%s' sent more than it had announced", p->name);
    --*left;
    return 1;
}

static int peer_end_list(struct peer *p, struct err *e)
{
    buf_add_c(&p->output, "E\n");
    return peer_flush(p, e);
}

static int peer_flush_piece(struct peer *p, struct err *e)
{
    return p->output.len < PIECE ? 0 : peer_flush(p, e);
}

/* ---- the difference ---- */

/* What a side says about its facts in its greeting. */
struct hello {
    uint64_t set[FACT_KINDS], count[FACT_KINDS];
};

struct exchange {
    struct merge *merge;
    struct peer *peer;
    enum fact_kind kind;
    bool client;
    unsigned bits;       /* the digests of a segment begin with the same ones */
    bool *differs;       /* indexed by the number of a segment */
    struct digests send; /* the facts here that are not there */
    uint64_t wanted;     /* how many there are not here */
};

static size_t segment_of(const struct exchange *x, uint64_t digest)
{
    return x->bits == 0 ? 0 : (size_t)(digest >> (64 - x->bits));
}

static int send_numbers(struct exchange *x, const struct digests *d, struct err *e)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < d->count; i++) {
        buf_addf(&x->peer->output, "%016" PRIx64 "\n", d->at[i]);
        result = peer_flush_piece(x->peer, e);
    }
    return result < 0 ? -1 : peer_end_list(x->peer, e);
}

/* Sends numbers, and receives at most `most` of the other side. */
static int swap_numbers(struct exchange *x, const struct digests *ours, struct digests *theirs,
                        uint64_t most, struct err *e)
{
    struct str line = STR_NONE;
    uint64_t number;
    int more;

    if (x->client && send_numbers(x, ours, e) < 0)
        return -1;
    while ((more = peer_item(x->peer, WORDS_MOST, &most, &line, e)) > 0) {
        if (!digest_parse(line, &number))
            return peer_wrong(x->peer, e);
        digests_add(theirs, number);
    }
    return more < 0 ? -1 : x->client ? 0 : send_numbers(x, ours, e);
}

/* Divides the segments that differ by up to STEP more bits, and finds out which parts differ. */
static int compare_segments(struct exchange *x, unsigned bits, struct err *e)
{
    unsigned step = bits - x->bits < STEP ? bits - x->bits : STEP;
    size_t parts = (size_t)1 << (x->bits + step), at = 0;
    uint64_t *sums = mem_zalloc(parts * sizeof(*sums));
    bool *differs = mem_zalloc(parts);
    struct digests ours = {0}, theirs = {0};
    int result;

    x->bits += step;
    for (size_t i = 0; i < merge_facts(x->merge, x->kind); i++) {
        uint64_t digest = merge_digest(x->merge, x->kind, i);

        sums[segment_of(x, digest)] += digest;
    }
    for (size_t i = 0; i < parts; i++)
        if (x->differs[i >> step])
            digests_add(&ours, sums[i]);
    result = swap_numbers(x, &ours, &theirs, ours.count, e);
    if (result == 0 && (!ours.at || !theirs.at || theirs.count < ours.count))
        result = peer_wrong(x->peer, e);
    for (size_t i = 0; result == 0 && i < parts; i++)
        if (x->differs[i >> step]) {
            differs[i] = ours.at[at] != theirs.at[at];
            at++;
        }
    free(sums);
    free(x->differs);
    x->differs = differs;
    digests_release(&ours);
    digests_release(&theirs);
    return result;
}

/* Finds out which facts each side lacks. Both have announced how many they have. */
static int find_difference(struct exchange *x, uint64_t here, uint64_t there, struct err *e)
{
    struct digests ours = {0}, theirs = {0};
    uint64_t most = here > there ? here : there;
    unsigned bits = 0;
    int result = 0;

    while (most >> bits > SEGMENT_FACTS)
        bits++;
    while (result == 0 && x->bits < bits)
        result = compare_segments(x, bits, e);
    for (size_t i = 0; result == 0 && i < merge_facts(x->merge, x->kind); i++) {
        uint64_t digest = merge_digest(x->merge, x->kind, i);

        if (x->differs[segment_of(x, digest)])
            digests_add(&ours, digest);
    }
    if (result == 0)
        result = swap_numbers(x, &ours, &theirs, there, e);
    digests_sort(&ours);
    digests_sort(&theirs);
    for (size_t i = 0; i < ours.count; i++)
        if (!digests_have(&theirs, ours.at[i]))
            digests_add(&x->send, ours.at[i]);
    for (size_t i = 0; i < theirs.count; i++)
        x->wanted += !digests_have(&ours, theirs.at[i]);
    digests_release(&ours);
    digests_release(&theirs);
    return result;
}

/* ---- the facts ---- */

/* Sends the facts that the other side lacks, in their order here. */
static int send_facts(struct exchange *x, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int result = 0;

    for (size_t i = 0; result == 0 && i < merge_facts(x->merge, x->kind); i++) {
        if (!digests_have(&x->send, merge_digest(x->merge, x->kind, i)))
            continue;
        result = merge_read(x->merge, x->kind, i, &text, e);
        if (result < 0)
            break;
        buf_addf(&x->peer->output, "%s\n", buf_c(&text));
        if (x->kind == FACT_LINE)
            result = merge_count_sent(x->merge, i, e);
        if (result == 0)
            result = peer_flush_piece(x->peer, e);
    }
    buf_release(&text);
    return result < 0 ? -1 : peer_end_list(x->peer, e);
}

/* Receives and stores facts. If their list does not end, those that have arrived are stored. */
static int receive_facts(struct exchange *x, struct err *e)
{
    uint64_t left = x->peer->left, most = x->kind == FACT_DELETION ? DELETIONS_MOST : left;
    struct str line = STR_NONE;
    int more;

    /* The lines get the rest of the limit. */
    most = most < left ? most : left;
    x->peer->left = most;
    while ((more = peer_item(x->peer, BUF_LINE, &x->wanted, &line, e)) > 0)
        if (merge_add_fact(x->merge, x->kind, line, e) < 0)
            return -1;
    x->peer->left += left - most;
    if (more < 0)
        (void)merge_store(x->merge, NULL);
    return more < 0 ? -1 : merge_store(x->merge, e);
}

/* ---- the two sides ---- */

static void put_hello(struct peer *p, const struct merge *m, struct hello *here)
{
    buf_addf(&p->output, "hist-sync %s", VERSION);
    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        here->set[kind] = merge_set(m, kind);
        here->count[kind] = merge_facts(m, kind);
        buf_addf(&p->output, " %016" PRIx64 " %016" PRIx64, here->set[kind], here->count[kind]);
    }
    buf_add_byte(&p->output, '\n');
}

/* Reads the line of put_hello. */
static int get_hello(struct peer *p, struct hello *there, struct err *e)
{
    struct str line = STR_NONE, rest, version;
    bool good = true;

    if (peer_line(p, WORDS_MOST, &line, e) < 0)
        return -1;
    rest = line;
    if (str_starts(line, STR("X ")))
        return peer_refused(p, line, e);
    if (!str_eq_c(str_word(&rest), "hist-sync")) {
        err_set(e, ERR_FAILURE, "'%s' does not answer as hist-sync does: '%.*s'", p->name,
                ERR_SHOWN(line));
        return -1;
    }
    version = str_word(&rest);
    if (!str_eq_c(version, VERSION)) {
        err_set(e, ERR_FAILURE,
                "'%s' has another version of hist-sync: it speaks version '%.*s' of the protocol, "
                "and this one " VERSION,
                p->name, ERR_SHOWN(version));
        return -1;
    }
    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++)
        good = good && digest_parse(str_word(&rest), &there->set[kind]) &&
               digest_parse(str_word(&rest), &there->count[kind]) &&
               there->count[kind] <= FACTS_MOST;
    return good ? 0 : peer_wrong(p, e);
}

/* Finds the difference in one kind of facts, and exchanges these. Returns 1, 0 if both
 * sides have the same, or -1 with *e set. */
static int exchange_facts(struct merge *m, struct peer *p, enum fact_kind kind, bool client,
                          const struct hello hello[2], struct err *e)
{
    struct exchange x = {.merge = m, .peer = p, .kind = kind, .client = client};
    uint64_t sent = merge_counts(m)->sent;
    int result;

    if (hello[0].set[kind] == hello[1].set[kind])
        return 0;
    x.differs = mem_zalloc(1);
    x.differs[0] = true;
    result = find_difference(&x, hello[0].count[kind], hello[1].count[kind], e);
    if (result == 0)
        result = client ? send_facts(&x, e) : receive_facts(&x, e);
    if (result == 0)
        result = client ? receive_facts(&x, e) : send_facts(&x, e);
    /* The next list of the other side shows whether it has stored the lines. */
    if (result < 0)
        merge_counts(m)->sent = sent;
    free(x.differs);
    digests_release(&x.send);
    return result < 0 ? -1 : 1;
}

/* Exchanges the greetings: the first one is that of this side. The client waits for that of the
 * server: what it writes while ssh asks for a password could be lost. */
static int greet(struct merge *m, struct peer *p, bool client, struct hello hello[2], struct err *e)
{
    if (!client)
        put_hello(p, m, &hello[0]);
    if (peer_flush(p, e) < 0 || get_hello(p, &hello[1], e) < 0)
        return -1;
    if (client)
        put_hello(p, m, &hello[0]);
    return peer_flush(p, e);
}

static int talk(struct merge *m, struct peer *p, bool client, struct err *e)
{
    struct hello hello[2] = {0};
    int result;

    merge_report_refused(m);
    if (merge_facts(m, FACT_LINE) > FACTS_MOST || merge_facts(m, FACT_DELETION) > FACTS_MOST)
        return err_set(e, ERR_FAILURE,
                       "a history with more than %" PRIu64 " messages or deletions cannot be "
                       "synchronised over ssh",
                       FACTS_MOST);
    result = greet(m, p, client, hello, e);
    if (result == 0)
        result = exchange_facts(m, p, FACT_DELETION, client, hello, e);
    if (result > 0)
        result = greet(m, p, client, hello, e);
    if (result == 0)
        result = exchange_facts(m, p, FACT_LINE, client, hello, e);
    return result < 0 ? -1 : 0;
}

/* Is one of the two sides. Returns 0, or -1 with *e set. */
static int run_side(struct sync_job *job, struct peer *p, bool client, struct err *e)
{
    struct merge *m = merge_open(job->history, &job->options, e);
    int result = m ? talk(m, p, client, e) : -1;

    if (result == 0)
        result = merge_finish(m, e);
    if (m)
        job->count = *merge_counts(m);
    merge_close(m);
    return result;
}

int sync_serve(struct sync_job *job, int in, int out, struct err *e)
{
    struct err why = ERR_INIT;
    struct peer p;
    int result;

    peer_init(&p, job, "the other side", in, out);
    result = run_side(job, &p, false, &why);
    if (result < 0) {
        err_set(e, why.kind, "%s", err_text(&why));
        if (why.kind != ERR_NETWORK && why.kind != ERR_TIMEOUT) {
            /* One line, whatever a path contains. */
            buf_clear(&p.output);
            buf_addf(&p.output, "X %s", err_text(&why));
            for (size_t i = 0; i < p.output.len; i++)
                if (p.output.data[i] == '\n')
                    p.output.data[i] = ' ';
            buf_add_byte(&p.output, '\n');
            (void)peer_flush(&p, NULL);
        }
    }
    peer_release(&p);
    err_release(&why);
    return result;
}

/* ---- starting ssh ---- */

/* The parts of ssh://[user@]host[:port][/path], borrowed from it. p is NULL for an absent one. */
struct address {
    struct str user, host, port, path;
};

/* Returns whether ssh takes a text as a user or a host, and not as an option. */
static bool is_name(struct str name)
{
    return name.n > 0 && name.p[0] != '-' && !str_has_control(name) && str_count(name, ' ') == 0 &&
           str_count(name, '[') == 0;
}

/* Returns whether it is a number from 1 to 65535. */
static bool is_port(struct str port)
{
    int64_t n = 0;

    for (size_t i = 0; i < port.n; i++) {
        if (!ascii_is_digit(port.p[i]) || n > UINT16_MAX)
            return false;
        n = n * 10 + (port.p[i] - '0');
    }
    return n >= 1 && n <= UINT16_MAX;
}

static int parse_address(struct address *a, const char *place, struct err *e)
{
    struct str path = str_skip(str_of(place), strlen("ssh://")), host = str_cut(&path, '/'), after;
    size_t user = host.n;
    bool good = true;

    *a = (struct address){0};
    while (user > 0 && host.p[user - 1] != '@')
        user--;
    if (user > 0)
        a->user = (struct str){host.p, user - 1};
    after = str_skip(host, user);
    if (str_starts(after, STR("["))) {
        /* ssh://user@[::1]:22/ */
        after = str_skip(after, 1);
        a->host = str_cut(&after, ']');
        good = after.p && (after.n == 0 || after.p[0] == ':');
        if (good && after.n > 0)
            a->port = str_skip(after, 1);
    } else {
        a->host = str_cut(&after, ':');
        a->port = after;
    }
    if (!good || !is_name(a->host) || (a->user.p && !is_name(a->user)) ||
        (a->port.p && !is_port(a->port)))
        return err_set(e, ERR_USAGE, "bad place '%s': ssh://[user@]host[:port][/path] is expected",
                       place);
    /* Others take this for a home directory. */
    if (str_starts(path, STR("~")) && !(str_starts(path, STR("~/")) && path.n > 2))
        return err_set(e, ERR_USAGE,
                       "bad place '%s': /~ and a name is no directory here: /~/PATH is below the "
                       "home directory",
                       place);
    /* ssh://host/~/x is below the home directory, in which the command runs. */
    if (path.p && path.n > 0)
        a->path =
            str_starts(path, STR("~/")) ? str_skip(path, 2) : (struct str){path.p - 1, path.n + 1};
    return 0;
}

int sync_ssh_check(const char *place, struct err *e)
{
    struct address a;

    return parse_address(&a, place, e);
}

static int make_command(struct words *w, const struct sync_job *job, const struct address *a,
                        struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    if (words_split(w, str_of(job->ssh ? job->ssh : "ssh -C"), e) < 0)
        return -1;
    if (a->port.p) {
        words_add(w, STR("-p"));
        words_add(w, a->port);
    }
    words_add(w, STR("--"));
    if (a->user.p)
        buf_addf(&text, "%.*s@", (int)a->user.n, a->user.p);
    buf_add_str(&text, a->host);
    words_add(w, buf_str(&text));
    buf_clear(&text);
    buf_addf(&text, "%s --serve%s%s --name ", job->program,
             job->options.dry_run ? " --dry-run" : "", job->options.warn ? "" : " --quiet");
    words_quote(&text, job->name);
    if (a->path.p) {
        buf_add_c(&text, " --history ");
        words_quote(&text, a->path.p); /* the place ends with it */
    }
    words_add(w, buf_str(&text));
    buf_release(&text);
    return 0;
}

/* Waits until the ssh command ends. After `ms` it is terminated, and then killed. Returns its
 * status. */
static int wait_for(pid_t pid, int64_t ms)
{
    int64_t now = time_ticks(), end = now + ms, kill_at = end + END_MS;
    bool terminated = false;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        now = time_ticks();
        if (now >= kill_at)
            (void)kill(pid, SIGKILL);
        else if (now >= end && !terminated)
            terminated = kill(pid, SIGTERM) == 0;
        (void)file_wait(-1, 5);
    }
    return status;
}

int sync_connected(struct sync_job *job, int in, int out, struct err *e)
{
    struct peer p;
    int result;

    peer_init(&p, job, job->place, in, out);
    result = run_side(job, &p, true, e);
    peer_release(&p);
    return result;
}

static int run_client(struct sync_job *job, struct words *w, struct err *e)
{
    struct spawn how = {.argv = w->at};
    int in[2], out[2], status, reason, result;
    pid_t pid;

    if (pipe_open(in) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    if (pipe_open(out) < 0) {
        close(in[0]);
        close(in[1]);
        return err_sys(e, errno, "cannot make a pipe");
    }
    sigemptyset(&how.reset);
    sigaddset(&how.reset, SIGPIPE);
    how.fd[0] = out[0];
    how.fd[1] = in[1];
    how.fd[2] = SPAWN_OURS;
    reason = spawn(&pid, &how);
    close(in[1]);
    close(out[0]);
    if (reason != 0)
        result = err_sys(e, reason, "cannot start '%s'", w->at[0]);
    else
        result = sync_connected(job, in[0], out[1], e);
    close(out[1]);
    close(in[0]);
    if (reason == 0) {
        status = wait_for(pid, result == 0 || e->kind == ERR_NETWORK ? END_MS : 0);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        if (result < 0 && e->kind == ERR_NETWORK && status == 127)
            err_set(e, ERR_FAILURE, "%s was not found on '%s'", job->program, job->place);
        else if (result < 0 && e->kind == ERR_NETWORK && status != 0)
            err_set(e, ERR_NETWORK, "cannot reach '%s': the ssh command ended with status %d",
                    job->place, status);
        else if (result == 0 && status == 1)
            result = err_set(e, ERR_FAILURE, "%s failed on '%s'", job->program, job->place);
    }
    return result;
}

int sync_ssh(struct sync_job *job, struct err *e)
{
    struct words w = {0};
    struct address a;
    int result = -1;

    if (parse_address(&a, job->place, e) < 0)
        return -1;
    if (make_command(&w, job, &a, e) == 0)
        result = run_client(job, &w, e);
    words_release(&w);
    return result;
}
