/*
 * Another machine, over a pipe to `hist-sync --serve` there, which ssh starts.
 *
 * Both sides speak in turn, so that neither waits for room in a pipe while the other does, too:
 *
 *     server   hist-sync 2 DELETIONS LINES\n   the version, and numbers for its sets of both
 *     client   hist-sync 2 DELETIONS LINES\n   if both are equal, this is all
 *     client   ranges N\n                      then N ranges
 *     server   an answer for each part of each range; the client asks again about smaller ranges
 *     client   want N\n                        then N digests of facts that the server has
 *     client   F…\n for each fact that the server does not have, then E\n
 *     server   likewise, after it has stored those of the client
 *     server   X MESSAGE\n                     instead of anything, if it cannot continue
 *
 * If the deletions differ, they are exchanged first, so that no line is sent that is erased then.
 * After that both sides send `hist-sync 2 DELETIONS LINES` again, and exchange the lines if these
 * differ.
 *
 * A fact is a deletion, or a line. A range holds the facts whose digests begin with certain bits.
 * It is sent as the number of bits, these bits, and for each of its 16 parts a checksum of the
 * digests of the client's facts in it. Numbers have 64 bits, little-endian. The answer for a part
 * is one byte: it is equal; the server has nothing there, or the client has nothing; it is to be
 * split again; or the digests of the few facts that the server has there follow. So the difference
 * of two histories is found with traffic in proportion to the difference, without anything that was
 * remembered.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/history/deletions.h"
#include "chathist/sync/sync.h"

#define VERSION "2"
/* How long the other side may be silent. */
#define TIMEOUT_MS ((int64_t)300000)
/* The longest line that is no fact. */
#define WORDS_MOST ((size_t)4096)
#define PARTS 16
#define PART_BITS 4
#define BITS_MOST 60
#define RANGE_BYTES (1 + 8 + 8 * PARTS)
/* The number of ranges in one question, and of digests that are listed for a part. */
#define RANGES_MOST ((size_t)2048)
#define LIST_MOST 16
/* The most digests that a client may want. */
#define WANT_MOST ((uint64_t)1 << 24)
#define PIECE ((size_t)256 << 10)
/* How long the ssh command may take to end. */
#define END_MS ((int64_t)10000)

enum answer { EQUAL, SERVER_EMPTY, CLIENT_EMPTY, SPLIT, LIST };

/* ---- the pipe ---- */

struct peer {
    int in, out;
    const char *name; /* for messages */
    struct buf input; /* bytes that were read and not used yet */
    size_t used;      /* the first bytes of `input` are used */
    struct buf output;
};

/* clang's analyzer has to see that these, peer_line and get_hello return -1. */
static int peer_timeout(const struct peer *p, struct err *e)
{
    err_set(e, ERR_TIMEOUT, "'%s' does not answer", p->name);
    return -1;
}

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
    err_set(e, ERR_FAILURE, "%s: %.*s", p->name, (int)line.n - 2, line.p + 2);
    return -1;
}

static int peer_flush(struct peer *p, struct err *e)
{
    size_t done = 0;

    while (done < p->output.len) {
        struct pollfd fd = {.fd = p->out, .events = POLLOUT};
        ssize_t n = file_write_now(p->out, p->output.data + done, p->output.len - done);

        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        if (errno == EPIPE)
            return peer_gone(p, e);
        if (errno != EAGAIN && errno != EINTR)
            return err_sys(e, errno, "cannot write to '%s'", p->name);
        if (poll(&fd, 1, (int)TIMEOUT_MS) == 0)
            return peer_timeout(p, e);
    }
    buf_clear(&p->output);
    return 0;
}

/* Reads more bytes. Returns 1, 0 at the end, or -1 with *e set. */
static int peer_more(struct peer *p, struct err *e)
{
    int ready, result;

    buf_consume(&p->input, p->used);
    p->used = 0;
    ready = file_wait(p->in, TIMEOUT_MS);
    if (ready == 0)
        return peer_timeout(p, e);
    result = ready < 0 ? -1 : file_read_some(p->in, &p->input);
    if (result < 0)
        return err_sys(e, errno, "cannot read from '%s'", p->name);
    return result;
}

/* Reads exactly n bytes, borrowed until the next read. */
static int peer_bytes(struct peer *p, size_t n, const char **bytes, struct err *e)
{
    while (p->input.len - p->used < n) {
        int result = peer_more(p, e);

        if (result <= 0)
            return result < 0 ? -1 : peer_gone(p, e);
    }
    *bytes = p->input.data + p->used;
    p->used += n;
    return 0;
}

/* Reads a line of at most `most` bytes, without its newline, borrowed until the next read. Returns
 * 1, 0 at the end of the stream, or -1 with *e set. */
static int peer_line(struct peer *p, size_t most, struct str *line, struct err *e)
{
    size_t looked = 0;

    for (;;) {
        const char *begin = p->input.data ? p->input.data + p->used : NULL;
        size_t n = p->input.len - p->used;
        const char *end = begin && n > looked ? memchr(begin + looked, '\n', n - looked) : NULL;
        int result;

        if (end && (size_t)(end - begin) <= most) {
            *line = (struct str){begin, (size_t)(end - begin)};
            p->used += line->n + 1;
            return 1;
        }
        if (end || n > most) {
            err_set(e, ERR_FAILURE, "'%s' sent a line that is too long", p->name);
            return -1;
        }
        looked = n;
        result = peer_more(p, e);
        if (result <= 0)
            return result < 0 ? -1 : n > 0 ? peer_gone(p, e) : 0;
    }
}

/* The same for a line that has to come: 0 or -1. */
static int peer_next_line(struct peer *p, struct str *line, struct err *e)
{
    int result = peer_line(p, WORDS_MOST, line, e);

    return result > 0 ? 0 : result < 0 ? -1 : peer_gone(p, e);
}

static void put_number(struct peer *p, uint64_t n)
{
    char bytes[8];

    le_put(bytes, n);
    buf_add(&p->output, bytes, sizeof(bytes));
}

/* Reads a line `WORD NUMBER`. */
static int get_count(struct peer *p, const char *word, uint64_t most, uint64_t *n, struct err *e)
{
    struct str line, got;
    char digits[20] = "", *end;

    if (peer_next_line(p, &line, e) < 0)
        return -1;
    got = str_word(&line);
    if (str_eq_c(got, word) && line.n > 1 && line.n < sizeof(digits)) {
        memcpy(digits, line.p + 1, line.n - 1);
        errno = 0;
        *n = strtoull(digits, &end, 10);
        if (*end == '\0' && errno == 0 && ascii_is_digit(digits[0]) && *n <= most)
            return 0;
    }
    return peer_wrong(p, e);
}

/* ---- facts in the order of their digests ---- */

struct exchange {
    struct merge *merge;
    struct peer *peer;
    enum fact_kind kind;
    size_t count;    /* facts at the beginning */
    uint64_t prefix; /* merge_prefix of these */
    struct digests items;
    uint64_t *sums; /* of the digests before each item */
    bool *send;     /* by the number of the line or the deletion */
    struct buf want;
    uint64_t wanted;
};

static void exchange_begin(struct exchange *x, struct merge *m, struct peer *p, enum fact_kind kind)
{
    *x = (struct exchange){.merge = m, .peer = p, .kind = kind, .count = merge_facts(m, kind)};
    x->prefix = merge_prefix(m, kind, x->count);
    x->sums = mem_resize(NULL, x->count + 1, sizeof(*x->sums));
    x->send = mem_zalloc(x->count + 1);
    buf_init(&x->want, SIZE_MAX);
    for (size_t i = 0; i < x->count; i++)
        digests_add(&x->items, merge_digest(m, kind, i));
    digests_sort(&x->items);
    x->sums[0] = 0;
    for (size_t i = 0; i < x->count; i++)
        x->sums[i + 1] = x->sums[i] + x->items.at[i].digest;
}

static void exchange_end(struct exchange *x)
{
    digests_release(&x->items);
    free(x->sums);
    free(x->send);
    buf_release(&x->want);
}

/* A range: the digests whose first `bits` bits are those of `prefix`; the rest of `prefix` is
 * zeros. */
struct range {
    unsigned bits;
    uint64_t prefix;
};

/* The items of a range are those from `from` to `to`. */
struct span {
    size_t from, to;
};

static struct range part_of(struct range r, unsigned i)
{
    return (struct range){r.bits + PART_BITS, r.prefix | (uint64_t)i << (64 - PART_BITS - r.bits)};
}

static struct span span_of(const struct exchange *x, struct range r)
{
    uint64_t last = r.prefix | (r.bits == 0 ? UINT64_MAX : (UINT64_C(1) << (64 - r.bits)) - 1);

    return (struct span){digests_before(&x->items, r.prefix),
                         last == UINT64_MAX ? x->count : digests_before(&x->items, last + 1)};
}

/* Returns a checksum of a set of digests, 0 for an empty one. */
static uint64_t span_sum(const struct exchange *x, struct span s)
{
    uint64_t words[2] = {x->sums[s.to] - x->sums[s.from], s.to - s.from};

    return s.to == s.from ? 0 : checksum_words(words, 2, 0) | 1;
}

static void send_span(struct exchange *x, struct span s)
{
    for (size_t i = s.from; i < s.to; i++)
        x->send[x->items.at[i].number] = true;
}

/* ---- finding the difference: the client ---- */

struct ranges {
    struct range *at;
    size_t count, cap;
};

static void ranges_add(struct ranges *l, struct range r)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof(*l->at));
    l->at[l->count++] = r;
}

static void put_range(struct exchange *x, struct range r)
{
    buf_add_byte(&x->peer->output, (char)r.bits);
    put_number(x->peer, r.prefix);
    for (unsigned i = 0; i < PARTS; i++)
        put_number(x->peer, span_sum(x, span_of(x, part_of(r, i))));
}

/* Compares the digests that the server has in a part with ours: both lists are sorted. */
static int take_list(struct exchange *x, struct span s, struct err *e)
{
    const char *bytes;
    size_t n, at = s.from;

    if (peer_bytes(x->peer, 1, &bytes, e) < 0)
        return -1;
    n = (unsigned char)*bytes;
    if (peer_bytes(x->peer, 8 * n, &bytes, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        uint64_t digest = le_get(bytes + 8 * i);

        for (; at < s.to && x->items.at[at].digest < digest; at++)
            x->send[x->items.at[at].number] = true;
        if (at < s.to && x->items.at[at].digest == digest) {
            while (at < s.to && x->items.at[at].digest == digest)
                at++;
        } else if (x->wanted < WANT_MOST) {
            buf_add(&x->want, bytes + 8 * i, 8);
            x->wanted++;
        }
    }
    send_span(x, (struct span){at, s.to});
    return 0;
}

/* Takes the answers for the parts of a range. */
static int take_answers(struct exchange *x, struct range r, struct ranges *next, struct err *e)
{
    for (unsigned i = 0; i < PARTS; i++) {
        struct range part = part_of(r, i);
        struct span s = span_of(x, part);
        const char *byte;
        char answer;

        if (peer_bytes(x->peer, 1, &byte, e) < 0)
            return -1;
        answer = *byte;
        if (answer == SERVER_EMPTY)
            send_span(x, s);
        else if (answer == LIST && take_list(x, s, e) < 0)
            return -1;
        else if (answer == SPLIT && part.bits <= BITS_MOST - PART_BITS && s.to > s.from)
            ranges_add(next, part);
    }
    return 0;
}

/* Asks about ranges. The parts that differ are added to `next`. */
static int ask(struct exchange *x, const struct range *at, size_t n, struct ranges *next,
               struct err *e)
{
    int result;

    buf_addf(&x->peer->output, "ranges %zu\n", n);
    for (size_t i = 0; i < n; i++)
        put_range(x, at[i]);
    result = peer_flush(x->peer, e);
    for (size_t i = 0; result == 0 && i < n; i++)
        result = take_answers(x, at[i], next, e);
    return result;
}

static int find_difference(struct exchange *x, struct err *e)
{
    struct ranges now = {0}, next = {0};
    int result = 0;

    ranges_add(&now, (struct range){0, 0});
    while (result == 0 && now.count > 0) {
        struct ranges done = now;

        for (size_t at = 0; result == 0 && at < now.count; at += RANGES_MOST) {
            size_t rest = now.count - at;

            result = ask(x, now.at + at, rest < RANGES_MOST ? rest : RANGES_MOST, &next, e);
        }
        now = next;
        next = done;
        next.count = 0;
    }
    free(now.at);
    free(next.at);
    buf_addf(&x->peer->output, "want %" PRIu64 "\n", x->wanted);
    buf_add_str(&x->peer->output, buf_str(&x->want));
    return result;
}

/* ---- finding the difference: the server ---- */

static void answer_part(struct exchange *x, struct range part, uint64_t sum)
{
    struct buf *out = &x->peer->output;
    struct span s = span_of(x, part);

    if (sum == span_sum(x, s)) {
        buf_add_byte(out, EQUAL);
    } else if (s.to == s.from) {
        buf_add_byte(out, SERVER_EMPTY);
    } else if (sum == 0) {
        buf_add_byte(out, CLIENT_EMPTY);
        send_span(x, s);
    } else if (s.to - s.from > LIST_MOST && part.bits <= BITS_MOST - PART_BITS) {
        buf_add_byte(out, SPLIT);
    } else {
        size_t n = s.to - s.from < 255 ? s.to - s.from : 255;

        buf_add_byte(out, LIST);
        buf_add_byte(out, (char)n);
        for (size_t i = 0; i < n; i++)
            put_number(x->peer, x->items.at[s.from + i].digest);
    }
}

static int answer_ranges(struct exchange *x, uint64_t n, struct err *e)
{
    for (uint64_t i = 0; i < n; i++) {
        const char *bytes;
        struct range r;

        if (peer_bytes(x->peer, RANGE_BYTES, &bytes, e) < 0)
            return -1;
        r = (struct range){(unsigned char)bytes[0], le_get(bytes + 1)};
        if (r.bits % PART_BITS != 0 || r.bits > BITS_MOST - PART_BITS ||
            (r.prefix & (UINT64_MAX >> r.bits)) != 0)
            return peer_wrong(x->peer, e);
        for (unsigned k = 0; k < PARTS; k++)
            answer_part(x, part_of(r, k), le_get(bytes + 9 + 8 * (size_t)k));
    }
    return peer_flush(x->peer, e);
}

static int take_wants(struct exchange *x, uint64_t n, struct err *e)
{
    for (uint64_t i = 0; i < n; i++) {
        const char *bytes;
        uint64_t digest;

        if (peer_bytes(x->peer, 8, &bytes, e) < 0)
            return -1;
        digest = le_get(bytes);
        for (size_t at = digests_before(&x->items, digest);
             at < x->count && x->items.at[at].digest == digest; at++)
            x->send[x->items.at[at].number] = true;
    }
    return 0;
}

static int answer_client(struct exchange *x, struct err *e)
{
    for (;;) {
        struct str line;
        uint64_t n;

        if (peer_next_line(x->peer, &line, e) < 0)
            return -1;
        x->peer->used -= line.n + 1;
        if (str_starts(line, STR("want ")))
            return get_count(x->peer, "want", WANT_MOST, &n, e) < 0 ? -1 : take_wants(x, n, e);
        if (get_count(x->peer, "ranges", RANGES_MOST, &n, e) < 0 || answer_ranges(x, n, e) < 0)
            return -1;
    }
}

/* ---- the facts ---- */

/* Adds a fact to the output. */
static int put_fact(struct exchange *x, size_t i, struct buf *text, struct err *e)
{
    struct buf *out = &x->peer->output;

    if (merge_read(x->merge, x->kind, i, text, e) < 0)
        return -1;
    buf_add_byte(out, 'F');
    buf_add_str(out, buf_str(text));
    buf_add_byte(out, '\n');
    merge_counts(x->merge)->sent += x->kind == FACT_LINE;
    return 0;
}

/* Returns whether the fact that has the number i now is to be sent, although numbers have
 * changed. */
static bool is_chosen(const struct exchange *x, size_t i)
{
    uint64_t digest = merge_digest(x->merge, x->kind, i);
    size_t at = digests_before(&x->items, digest);

    return at < x->count && x->items.at[at].digest == digest && x->send[x->items.at[at].number];
}

/* Sends the facts that the other side does not have, in their order here. Lines have other numbers
 * if some were erased meanwhile, because the other side or another program deleted them. */
static int send_facts(struct exchange *x, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    bool moved = merge_prefix(x->merge, x->kind, x->count) != x->prefix;
    size_t count = moved ? merge_facts(x->merge, x->kind) : x->count;
    int result = 0;

    for (size_t i = 0; result == 0 && i < count; i++) {
        if (moved ? is_chosen(x, i) : x->send[i])
            result = put_fact(x, i, &line, e);
        if (result == 0 && x->peer->output.len >= PIECE)
            result = peer_flush(x->peer, e);
    }
    buf_add_c(&x->peer->output, "E\n");
    buf_release(&line);
    return result < 0 ? -1 : peer_flush(x->peer, e);
}

/* Receives facts until the end that the other side marks, and stores them. If the connection ends
 * before, the facts that have arrived are stored. */
static int take_facts(struct exchange *x, struct err *e)
{
    struct str line;
    int result;

    while ((result = peer_line(x->peer, BUF_LINE + 1, &line, e)) > 0 && str_starts(line, STR("F")))
        if (merge_take(x->merge, x->kind, str_skip(line, 1), e) < 0)
            return -1;
    if (result == 0)
        (void)peer_gone(x->peer, e);
    if (result <= 0) {
        (void)merge_store(x->merge, NULL);
        return -1;
    }
    if (str_starts(line, STR("X ")))
        return peer_refused(x->peer, line, e);
    if (!str_eq_c(line, "E"))
        return peer_wrong(x->peer, e);
    return merge_store(x->merge, e);
}

/* ---- the two sides ---- */

static void put_hello(struct peer *p, const struct merge *m)
{
    buf_addf(&p->output, "hist-sync %s %016" PRIx64 " %016" PRIx64 "\n", VERSION,
             merge_set(m, FACT_DELETION), merge_set(m, FACT_LINE));
}

/* Reads the line of put_hello. */
static int get_hello(struct peer *p, uint64_t there[FACT_KINDS], struct err *e)
{
    struct str line = STR_NONE, rest;

    if (peer_next_line(p, &line, e) < 0)
        return -1;
    rest = line;
    if (str_starts(line, STR("X ")))
        return peer_refused(p, line, e);
    if (!str_eq_c(str_word(&rest), "hist-sync")) {
        err_set(e, ERR_FAILURE, "'%s' does not answer as hist-sync does: '%.*s'", p->name,
                ERR_SHOWN(line));
        return -1;
    }
    if (!str_eq_c(str_word(&rest), VERSION)) {
        err_set(e, ERR_FAILURE, "'%s' has another version of hist-sync", p->name);
        return -1;
    }
    return digest_parse(str_word(&rest), &there[FACT_DELETION]) &&
                   digest_parse(str_word(&rest), &there[FACT_LINE])
               ? 0
               : peer_wrong(p, e);
}

/* Finds the differences in one kind of facts, and exchanges them. */
static int exchange(struct merge *m, struct peer *p, enum fact_kind kind, bool client,
                    struct err *e)
{
    struct exchange x;
    int result;

    exchange_begin(&x, m, p, kind);
    result = client ? find_difference(&x, e) : answer_client(&x, e);
    if (result == 0)
        result = client ? send_facts(&x, e) : take_facts(&x, e);
    if (result == 0)
        result = client ? take_facts(&x, e) : send_facts(&x, e);
    exchange_end(&x);
    return result;
}

/* Exchanges the numbers of both sides. The client waits for those of the server: what it writes
 * while ssh asks for a password could be lost. */
static int greet(struct merge *m, struct peer *p, bool client, uint64_t there[FACT_KINDS],
                 struct err *e)
{
    if (!client)
        put_hello(p, m);
    if (peer_flush(p, e) < 0 || get_hello(p, there, e) < 0)
        return -1;
    if (client)
        put_hello(p, m);
    return peer_flush(p, e);
}

static int talk(struct merge *m, struct peer *p, bool client, struct err *e)
{
    uint64_t there[FACT_KINDS];

    merge_report_refused(m);
    if (greet(m, p, client, there, e) < 0)
        return -1;
    if (there[FACT_DELETION] != merge_set(m, FACT_DELETION) &&
        (exchange(m, p, FACT_DELETION, client, e) < 0 || greet(m, p, client, there, e) < 0))
        return -1;
    return there[FACT_LINE] == merge_set(m, FACT_LINE) ? 0 : exchange(m, p, FACT_LINE, client, e);
}

static void peer_init(struct peer *p, const char *name, int in, int out)
{
    *p = (struct peer){.in = in, .out = out, .name = name};
    buf_init(&p->input, 2 * BUF_LINE);
    buf_init(&p->output, SIZE_MAX);
}

static void peer_release(struct peer *p)
{
    buf_release(&p->input);
    buf_release(&p->output);
}

int sync_serve(struct sync_job *job, int in, int out, struct err *e)
{
    struct err why = ERR_INIT;
    struct merge *m = merge_open(job->history, &job->options, &why);
    struct peer p;
    int result = -1;

    peer_init(&p, "the other side", in, out);
    if (m)
        result = talk(m, &p, false, &why);
    if (result == 0)
        result = merge_finish(m, &why);
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
    if (m)
        job->count = *merge_counts(m);
    merge_close(m);
    peer_release(&p);
    err_release(&why);
    return result;
}

/* ---- starting ssh ---- */

/* The parts of ssh://[user@]host[:port][/path]. Owned. */
struct address {
    char *host; /* with the user */
    char *port; /* NULL: none */
    char *path; /* NULL: the history of that name there */
};

static void address_release(struct address *a)
{
    free(a->host);
    free(a->port);
    free(a->path);
}

/* Returns whether ssh takes a text as a user or a host, and not as an option. */
static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f)
            return false;
    return name.n > 0 && name.p[0] != '-';
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

/* Adds `[user@]host`, without the bracket that begins an IPv6 address. Returns whether both are
 * names. */
static bool add_host(struct buf *out, struct str text)
{
    struct str user = text, host;
    bool has_user;

    while (user.n > 0 && user.p[user.n - 1] != '@')
        user.n--;
    host = str_skip(text, user.n);
    if (str_starts(host, STR("[")))
        host = str_skip(host, 1);
    buf_add_str(out, user);
    buf_add_str(out, host);
    has_user = user.n > 0;
    user.n -= has_user;
    return (!has_user || is_name(user)) && is_name(host) && !memchr(host.p, '[', host.n);
}

static int parse_address(struct address *a, const char *place, struct err *e)
{
    struct str rest = str_skip(str_of(place), strlen("ssh://"));
    struct str host, port = STR_NONE, path = rest;
    struct buf name = BUF_INIT(SIZE_MAX);
    bool good;

    *a = (struct address){0};
    host = str_cut(&path, '/');
    if (host.n > 0 && memchr(host.p, '[', host.n)) {
        /* ssh://user@[::1]:22/ */
        struct str after = host;

        host = str_cut(&after, ']');
        port = after.n > 0 && after.p[0] == ':' ? str_skip(after, 1) : STR_NONE;
        good = after.p && (after.n == 0 || after.p[0] == ':');
    } else {
        port = host;
        host = str_cut(&port, ':');
        good = true;
    }
    if (!add_host(&name, host) || !good || (port.p && !is_port(port))) {
        buf_release(&name);
        return err_set(e, ERR_USAGE, "bad place '%s': ssh://[user@]host[:port][/path] is expected",
                       place);
    }
    a->host = buf_detach(&name);
    if (port.p)
        a->port = mem_copy(port.p, port.n);
    if (path.p && path.n > 0) {
        /* ssh://host/~/x is below the home directory, in which the command runs. */
        if (str_starts(path, STR("~/")))
            a->path = mem_copy(path.p + 2, path.n - 2);
        else
            a->path = mem_copy(path.p - 1, path.n + 1);
    }
    return 0;
}

int sync_ssh_check(const char *place, struct err *e)
{
    struct address a;
    int result = parse_address(&a, place, e);

    address_release(&a);
    return result;
}

static int make_command(struct words *w, const struct sync_job *job, const struct address *a,
                        struct err *e)
{
    struct buf remote = BUF_INIT(BUF_SMALL);

    if (words_split(w, str_of(job->ssh ? job->ssh : "ssh -C"), e) < 0)
        return -1;
    if (a->port) {
        words_add(w, STR("-p"));
        words_add(w, str_of(a->port));
    }
    words_add(w, STR("--"));
    words_add(w, str_of(a->host));
    buf_addf(&remote, "%s --serve%s%s", job->program, job->options.dry_run ? " --dry-run" : "",
             job->options.warn ? "" : " --quiet");
    buf_add_c(&remote, " --name ");
    words_quote(&remote, job->name);
    if (a->path) {
        buf_add_c(&remote, " --history ");
        words_quote(&remote, a->path);
    }
    words_add(w, buf_str(&remote));
    buf_release(&remote);
    return 0;
}

/* Explains why the connection ended before the first line. */
static void explain(const struct sync_job *job, int status, struct err *e)
{
    if (e->kind != ERR_NETWORK || !WIFEXITED(status) || WEXITSTATUS(status) == 0)
        return;
    if (WEXITSTATUS(status) == 127)
        err_set(e, ERR_FAILURE, "%s was not found on '%s'", job->program, job->place);
    else
        err_set(e, ERR_NETWORK, "cannot reach '%s': the ssh command ended with status %d",
                job->place, WEXITSTATUS(status));
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
    struct merge *m = merge_open(job->history, &job->options, e);
    struct peer p;
    int result;

    if (!m)
        return -1;
    peer_init(&p, job->place, in, out);
    result = talk(m, &p, true, e);
    if (result == 0)
        result = merge_finish(m, e);
    job->count = *merge_counts(m);
    peer_release(&p);
    merge_close(m);
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
        if (result < 0)
            explain(job, status, e);
        else if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
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
    address_release(&a);
    return result;
}
