#include "chathist/sync/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/system.h"
#include "chathist/history/append.h"
#include "chathist/history/deletions.h"
#include "chathist/history/known.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"
#include "chathist/history/scan.h"
#include "chathist/history/session.h"
#include "chathist/history/store.h"

/* Lines are stored when this many bytes wait. */
#define BATCH_BYTES ((size_t)4 << 20)
/* The most conflicts that are reported one by one. */
#define REPORTED_MAX 10
/* Other copies may erase this many lines in one run, or this part of the history. */
#define ERASED_MOST 20
#define ERASED_PART 10

/* A line of the history. A line is at most 64 MiB long, and `place` holds its offset above its
 * length. */
struct fact {
    uint64_t key;    /* the key of its session and id */
    uint64_t digest; /* the digest of its bytes */
    uint64_t place;
};
#define LENGTH_BITS 27
#define LENGTH_MASK ((UINT64_C(1) << LENGTH_BITS) - 1)

/* What the digests stand for: the bytes of a file up to `end`. */
struct covered {
    uint64_t inode;
    int64_t born; /* system_birth: another file may get the inode */
    uint64_t end;
    uint64_t modified;    /* nanoseconds, when the file ended there; 0: it is not known to */
    uint64_t sample;      /* a checksum of some bytes before the end */
    uint64_t count;       /* facts */
    uint64_t sum;         /* the sum of the set of lines */
    uint64_t chain;       /* merge_prefix of all of them */
    uint64_t refused;     /* lines that cannot be synchronised */
    uint64_t waiting;     /* lines whose deletions wait; they are no facts */
    uint64_t deleted_end; /* an offset in FILE.deleted: none of the lines is deleted before that */
};
/* The beginning of the file of digests, which the facts follow. */
struct head {
    uint64_t magic;
    struct covered covered;
    uint64_t body; /* a checksum of the facts */
    uint64_t sum;  /* a checksum of all before it */
};
#define MAGIC UINT64_C(0x354e595354534948) /* "HISTSYN5" */
#define SAMPLE ((size_t)4096)

/* The last prefix that was asked for: a greater one continues it. */
struct prefix {
    size_t count;
    uint64_t sum;
};

struct merge {
    struct history *h;
    struct merge_options options;
    struct merge_count count;
    char *deleted_path; /* FILE.deleted */
    char *cache_path;   /* the file of the digests; NULL: none */
    int fd;             /* the history that `covered` describes; -1: it does not exist */
    struct covered covered;
    struct covered cached; /* what the file of digests has */
    struct known facts;
    size_t found;            /* facts after those that may be repeated */
    bool loaded;             /* facts are in memory, not only covered */
    bool dead;               /* a fact may be deleted */
    bool keeps;              /* the facts are those of the files, and the next run may use them */
    struct hash_map deleted; /* "SESSION LF ID", numbered in the order of the file */
    bool *waits;             /* indexed by the number of a deletion */
    size_t waits_cap;
    struct hash_map waiting_sessions; /* the sessions of covered.waiting */
    size_t *arrived;                  /* numbers of deletions that are not stored yet */
    size_t arrived_count, arrived_cap;
    uint64_t erased_by_others; /* lines, in this run */
    off_t deleted_end;         /* FILE.deleted has been read up to this offset */
    struct prefix prefix[FACT_KINDS];
    uint64_t deleted_sum;     /* the sum of the set of deletions */
    uint64_t erased;          /* lines that the rewrite at work leaves out */
    uint64_t stored;          /* lines of the batch that is being stored */
    struct buf pending;       /* lines that wait for the history */
    struct known adding;      /* their digests: entries without more */
    struct message message;   /* for lines that are scanned, and for those that are added */
    struct buf text, scratch; /* for reports */
    size_t reported;
};

/* ---- digests ---- */

/* The parts of a line that a hash is made of, its seed. */
enum { OF_LINE, OF_KEY, OF_DELETION };

static uint64_t line_digest(struct str line)
{
    return hash64(line, OF_LINE);
}

static uint64_t message_key(struct str session, struct str id)
{
    return known_key(session, id, OF_KEY);
}

static uint64_t deletion_digest(struct str session, struct str id)
{
    return known_key(session, id, OF_DELETION);
}

static uint64_t chain(uint64_t before, uint64_t digest)
{
    return checksum_words(&digest, 1, before);
}

/* ---- sets of digests ---- */

void digests_add(struct digests *d, uint64_t digest)
{
    d->at = mem_grow(d->at, &d->cap, d->count + 1, sizeof(*d->at));
    d->at[d->count++] = digest;
}

static int compare_digests(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void digests_sort(struct digests *d)
{
    if (d->count > 0)
        qsort(d->at, d->count, sizeof(*d->at), compare_digests);
}

bool digests_have(const struct digests *d, uint64_t digest)
{
    return d->count > 0 && bsearch(&digest, d->at, d->count, sizeof(*d->at), compare_digests);
}

void digests_release(struct digests *d)
{
    free(d->at);
    *d = (struct digests){0};
}

bool digest_parse(struct str digits, uint64_t *digest)
{
    char text[17] = "", *end;

    if (digits.n != 16)
        return false;
    memcpy(text, digits.p, 16);
    *digest = strtoull(text, &end, 16);
    return *end == '\0';
}

/* ---- messages for the user ---- */

void merge_warn(struct merge *m, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    if (m->options.warn)
        m->options.warn(m->options.arg, buf_c(&text));
    buf_release(&text);
}

/* ---- the facts in memory ---- */

static const struct fact *fact_at(const struct merge *m, size_t i)
{
    const struct fact *facts = m->facts.entries;

    return &facts[i];
}

/* Returns whether the line is known. *other becomes the first different one with its key, or
 * NULL. */
static bool is_known(const struct merge *m, uint64_t key, uint64_t digest,
                     const struct fact **other)
{
    const struct fact *f;
    size_t at = (size_t)key;

    *other = NULL;
    while ((f = known_next(&m->facts, key, &at))) {
        if (f->digest == digest)
            return true;
        if (!*other)
            *other = f;
    }
    return false;
}

/* How far ahead slots are fetched. */
#define AHEAD 16

/* Takes the facts that were found after the others, without those that are repeated. */
static void add_found_facts(struct merge *m)
{
    struct covered *c = &m->covered;
    struct fact *facts = known_room(&m->facts, m->found);
    const struct fact *other;

    for (size_t i = 0; i < m->found; i++) {
        struct fact f = facts[i];

        if (m->found - i > AHEAD)
            known_fetch(&m->facts, facts[i + AHEAD].key);
        if (is_known(m, f.key, f.digest, &other))
            continue;
        *(struct fact *)known_room(&m->facts, 1) = f;
        known_commit(&m->facts);
        c->count++;
        c->sum += f.digest;
        c->chain = chain(c->chain, f.digest);
    }
    m->found = 0;
}

static void forget(struct merge *m)
{
    m->covered = (struct covered){0};
    hash_map_release(&m->waiting_sessions);
    m->prefix[FACT_LINE] = (struct prefix){0};
    known_release(&m->facts);
    m->found = 0;
    m->loaded = true;
    m->dead = false;
}

/* ---- the file of digests ---- */

static uint64_t body_sum(const struct fact *facts, size_t n)
{
    return hash64((struct str){(const char *)facts, n * sizeof(*facts)}, 1);
}

static uint64_t head_sum(const struct head *h)
{
    return checksum((struct str){(const char *)h, offsetof(struct head, sum)}, 0);
}

/* Reads the beginning of the file. Returns whether it is one of these. */
static bool head_read(int fd, struct head *h)
{
    return file_pread_full(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) && h->magic == MAGIC &&
           h->sum == head_sum(h);
}

static int cache_open(const struct merge *m)
{
    int fd = m->cache_path
                 ? file_open_regular_at(FILE_CWD, m->cache_path, O_RDONLY, 0, NULL, NULL, NULL)
                 : -1;

    if (fd >= 0 && owner_fault(fd, OWNER_USER)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Reads the facts that the file has. Returns whether they are those of `covered`. */
static bool cache_load_facts(struct merge *m)
{
    size_t n = m->covered.count;
    int fd = cache_open(m);
    struct head h;
    bool good =
        fd >= 0 && head_read(fd, &h) && h.covered.count == n && h.covered.chain == m->covered.chain;

    if (good) {
        struct fact *facts = known_room(&m->facts, n);

        good = file_pread_full(fd, facts, n * sizeof(*facts), sizeof(h)) ==
                   (ssize_t)(n * sizeof(*facts)) &&
               body_sum(facts, n) == h.body;
        for (size_t i = 0; good && i < n; i++)
            known_commit(&m->facts);
    }
    file_close(fd);
    return good;
}

/* Writes the file. It is a cache: failures are not reported, and nothing is synced. */
static void cache_save(struct merge *m)
{
    struct file_replace r;
    size_t n = m->covered.count;
    struct head h = {.magic = MAGIC, .covered = m->covered};

    if (!m->keeps || !m->cache_path || m->options.dry_run || !m->loaded ||
        memcmp(&m->covered, &m->cached, sizeof(m->covered)) == 0)
        return;
    (void)file_sweep(FILE_CWD, m->cache_path, true, true, NULL);
    if (file_replace_begin(&r, m->cache_path, NULL) < 0)
        return;
    r.unsynced = true;
    h.body = body_sum(m->facts.entries, n);
    h.sum = head_sum(&h);
    if (file_write_all(r.fd, &h, sizeof(h)) < 0 ||
        file_write_all(r.fd, m->facts.entries, n * sizeof(struct fact)) < 0)
        file_replace_drop(&r);
    else if (file_replace_end(&r, NULL) == 0)
        m->cached = m->covered;
}

/* ---- reading the history ---- */

static uint64_t sample(int fd, uint64_t end)
{
    char bytes[2 * SAMPLE];
    size_t n = end < SAMPLE ? (size_t)end : SAMPLE;
    ssize_t first = file_pread_full(fd, bytes, n, 0);
    ssize_t last = first < 0 ? -1 : file_pread_full(fd, bytes + n, n, (off_t)(end - n));

    return last < (ssize_t)n ? 0 : checksum((struct str){bytes, 2 * n}, end);
}

/* Returns whether the part of the open file that `c` describes is still the same. */
static bool still_covers(const struct covered *c, int fd, const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size;

    if (c->inode != st->st_ino || c->born != system_birth(fd) || c->end > size ||
        (c->modified != 0 && c->end == size && c->modified != (uint64_t)system_mtime(st)))
        return false;
    return c->sample == sample(fd, c->end);
}

static void set_end(struct merge *m, const struct stat *st)
{
    struct covered *c = &m->covered;

    c->inode = st->st_ino;
    c->born = system_birth(m->fd);
    c->sample = sample(m->fd, c->end);
    c->modified = c->end == (uint64_t)st->st_size ? (uint64_t)system_mtime(st) : 0;
}

/* Makes the key of a deletion in m->text. Neither of the two has a newline. */
static struct str deletion_key(struct merge *m, struct str session, struct str id)
{
    buf_clear(&m->text);
    buf_add_str(&m->text, session);
    buf_add_byte(&m->text, '\n');
    buf_add_str(&m->text, id);
    return buf_str(&m->text);
}

enum deleted { DELETED_NOT, DELETED_WAITS, DELETED };

static enum deleted find_deletion(struct merge *m, struct str session, struct str id)
{
    const size_t *number =
        m->deleted.count > 0 ? hash_map_find(&m->deleted, deletion_key(m, session, id)) : NULL;

    return !number ? DELETED_NOT : m->waits[*number] ? DELETED_WAITS : DELETED;
}

static bool is_deleted(struct merge *m, struct str session, struct str id)
{
    return find_deletion(m, session, id) != DELETED_NOT;
}

static void scan_fact(struct merge *m, const struct line *l)
{
    const struct message *msg = &m->message;
    enum deleted deleted;
    struct fact f, *facts;

    if (!message_storable(msg)) {
        m->covered.refused++;
        return;
    }
    deleted = find_deletion(m, msg->session_id, msg->id);
    if (deleted == DELETED_WAITS) {
        m->covered.waiting++;
        hash_map_add(&m->waiting_sessions, msg->session_id);
        return;
    }
    f.key = message_key(msg->session_id, msg->id);
    f.digest = line_digest(msg->line);
    f.place = (uint64_t)(l->at + (msg->line.p - l->text.p)) << LENGTH_BITS | msg->line.n;
    m->dead = m->dead || deleted == DELETED;
    facts = known_room(&m->facts, m->found + 1);
    facts[m->found++] = f;
}

/* Reads the lines from the end of those that are known. */
static int extend(struct merge *m, struct err *e)
{
    struct scan s;
    struct line l;
    int result;

    if (scan_open(&s, m->h->dir_fd, m->h->path, e) < 0)
        return -1;
    s.work = m->h->work;
    s.task = "read";
    scan_from(&s, (off_t)m->covered.end);
    while ((result = scan_line(&s, &l, e)) > 0) {
        enum scan_verdict verdict = scan_judge(&l, &m->message);

        if (!l.terminated && verdict != SCAN_MESSAGE)
            break;
        if (verdict == SCAN_MESSAGE)
            scan_fact(m, &l);
        m->covered.end = (uint64_t)scan_offset(&s);
    }
    scan_close(&s);
    add_found_facts(m);
    return result < 0 ? -1 : 0;
}

/* Reads the facts from the file of digests, or if it does not have them, finds them again. */
static int load(struct merge *m, struct err *e)
{
    struct stat st;

    if (m->loaded)
        return 0;
    if (cache_load_facts(m)) {
        m->loaded = true;
        return 0;
    }
    forget(m);
    if (m->fd < 0)
        return 0;
    if (fstat(m->fd, &st) < 0)
        return err_sys(e, errno, "cannot read '%s'", m->h->path);
    if (extend(m, e) < 0)
        return -1;
    set_end(m, &st);
    return 0;
}

/* Opens the history again, and brings the facts up to its end. */
static int refresh(struct merge *m, struct err *e)
{
    struct err why = ERR_INIT;
    struct stat st;
    int missing = 0;

    file_close(m->fd);
    m->fd = file_open_regular_at(m->h->dir_fd, m->h->path, O_RDONLY, 0, &st, &missing, &why);
    if (m->fd < 0 && missing != ENOENT)
        err_set(e, why.kind, "%s", err_text(&why));
    err_release(&why);
    if (m->fd < 0 && missing != ENOENT)
        return -1;
    if (m->fd < 0 || !still_covers(&m->covered, m->fd, &st))
        forget(m);
    if (m->fd < 0 || m->covered.end >= (uint64_t)st.st_size)
        return 0;
    if (load(m, e) < 0 || extend(m, e) < 0)
        return -1;
    set_end(m, &st);
    return 0;
}

/* ---- deletions ---- */

void merge_deletion(const struct merge *m, size_t i, struct str *session, struct str *id)
{
    *id = m->deleted.entries[i].key;
    *session = str_cut(id, '\n');
}

/* Adds a deletion. One that is known waits no longer unless both wait. Returns its number. */
static size_t record_deletion(struct merge *m, struct str session, struct str id, bool waits)
{
    struct str key = deletion_key(m, session, id);
    size_t count = m->deleted.count, number = hash_map_number(&m->deleted, &key);

    if (number == count) {
        m->waits = mem_grow(m->waits, &m->waits_cap, count + 1, sizeof(*m->waits));
        m->waits[number] = waits;
        m->deleted_sum += deletion_digest(session, id);
    } else if (m->waits[number] && !waits) {
        m->waits[number] = false;
        if (m->covered.waiting > 0)
            forget(m); /* its lines are found again, and erased */
    }
    return number;
}

/* Returns how many facts a deletion erases. */
static uint64_t count_erased(const struct merge *m, struct str session, struct str id)
{
    uint64_t key = message_key(session, id), n = 0;
    size_t at = (size_t)key;

    while (known_next(&m->facts, key, &at))
        n++;
    return n;
}

/* Returns whether a line of the history may be deleted. */
static bool has_dead(const struct merge *m)
{
    for (size_t i = 0; i < m->deleted.count; i++) {
        struct str session, id;

        merge_deletion(m, i, &session, &id);
        if (count_erased(m, session, id) > 0)
            return true;
    }
    return false;
}

/* Reads the part of FILE.deleted that was not read before. */
static int read_deletions(struct merge *m, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), session = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_SMALL);
    struct str rest, line;
    struct stat st;
    const char *fault;
    int missing = 0, result = 0;
    int fd = file_open_regular_at(m->h->dir_fd, m->deleted_path, O_RDONLY, 0, &st, &missing, e);

    if (fd < 0 && missing == ENOENT) {
        if (e)
            err_release(e);
        return 0;
    }
    if (fd < 0)
        return -1;
    fault = owner_fault(fd, OWNER_USER);
    if (fault) {
        result = err_set(e, ERR_FAILURE, "cannot use '%s': %s", m->deleted_path, fault);
    } else if (st.st_size > m->deleted_end) {
        size_t n = (size_t)(st.st_size - m->deleted_end);
        ssize_t got = file_pread_full(fd, buf_room(&text, n), n, m->deleted_end);

        if (got < 0)
            result = err_sys(e, errno, "cannot read '%s'", m->deleted_path);
        else
            buf_grew(&text, (size_t)got);
        rest = buf_str(&text);
        while (result == 0 && deletions_next(&rest, &session, &id, &line))
            (void)record_deletion(m, buf_str(&session), buf_str(&id),
                                  json_is_true(json_get(line, "waits")));
        m->deleted_end += (off_t)(text.len - rest.n);
    }
    close(fd);
    buf_release(&text);
    buf_release(&session);
    buf_release(&id);
    return result;
}

/* Appends lines to FILE.deleted, and makes it if it is missing. */
static int write_deletions(struct merge *m, struct str lines, struct err *e)
{
    struct append_wait wait = history_wait(m->h);
    struct append a;
    int result;

    if (append_open_alone(&a, m->h->dir_fd, m->deleted_path, &wait, e) < 0)
        return -1;
    result = a.fresh && lines.n == 0 ? 0 : append_write(&a, lines, true, e);
    if (result == 0 && a.end == 0 && file_sync_dir(m->h->dir_fd, m->deleted_path) < 0)
        result = err_sys(e, errno, "cannot write '%s'", m->deleted_path);
    append_close(&a);
    return result;
}

/* ---- erasing ---- */

static void begin_erasing(void *arg)
{
    struct merge *m = arg;

    m->erased = 0;
}

static void copy_unless_deleted(void *arg, struct rewrite *r, const struct line *l)
{
    struct merge *m = arg;

    if (l->too_long || !message_parse(&m->message, l->text) ||
        find_deletion(m, m->message.session_id, m->message.id) != DELETED)
        rewrite_keep(r, l);
    else
        m->erased++;
}

/* Brings everything up to what the files have now. Afterwards no fact is deleted, except in a dry
 * run. */
static int catch_up(struct merge *m, struct err *e)
{
    struct rewriter by = {.arg = m, .begin = begin_erasing, .line = copy_unless_deleted};

    if (read_deletions(m, e) < 0 || refresh(m, e) < 0)
        return -1;
    if (m->covered.deleted_end != (uint64_t)m->deleted_end) {
        if (load(m, e) < 0)
            return -1;
        m->dead = m->dead || has_dead(m);
    }
    if (m->dead && !m->options.dry_run) {
        if (rewrite_run(m->h, &by, e) < 0)
            return -1;
        m->count.deleted += m->erased;
        if (refresh(m, e) < 0)
            return -1;
    }
    if (!m->dead)
        m->covered.deleted_end = (uint64_t)m->deleted_end;
    return 0;
}

/* ---- opening ---- */

void merge_report_refused(struct merge *m)
{
    uint64_t n = m->covered.refused;

    if (n > 0)
        merge_warn(m,
                   "%" PRIu64 " line%s of '%s' %s not synchronised: the id, the session id or the "
                   "time is not valid",
                   n, n == 1 ? "" : "s", m->h->path, n == 1 ? "is" : "are");
}

struct merge *merge_open(struct history *h, const struct merge_options *o, struct err *e)
{
    struct merge *m;
    struct head head;
    struct scan s;
    int fd;

    if (h->nowhere) {
        err_set(e, ERR_FAILURE, "%s", h->nowhere);
        return NULL;
    }
    if (!h->safe) {
        err_set(e, ERR_USAGE, "'%s' is not one of your own histories", h->path);
        return NULL;
    }
    if (store_check(h, e) < 0)
        return NULL;
    if (!o->dry_run && (store_enter(h, e) < 0 || store_recover(h, e) < 0))
        return NULL;
    /* A file that is no history gets no FILE.deleted. */
    if (scan_open(&s, h->dir_fd, h->path, e) < 0)
        return NULL;
    scan_close(&s);
    if (!o->dry_run)
        (void)sync_state_make(h, NULL); /* for the cache */
    m = mem_zalloc(sizeof(*m));
    *m = (struct merge){.h = h,
                        .options = *o,
                        .fd = -1,
                        .facts = KNOWN_INIT(struct fact),
                        .adding = KNOWN_INIT(uint64_t),
                        .message = MESSAGE_INIT};
    m->deleted_path = deletions_path(h->path);
    m->cache_path = merge_state_path(h, "lines", NULL, NULL);
    buf_init(&m->pending, SIZE_MAX);
    buf_init(&m->text, BUF_SMALL);
    buf_init(&m->scratch, BUF_LINE);
    fd = cache_open(m);
    /* The file does not say of which sessions the lines are that wait. */
    if (fd >= 0 && head_read(fd, &head) && head.covered.waiting == 0)
        m->covered = m->cached = head.covered;
    else
        forget(m);
    file_close(fd);
    if ((!o->dry_run && write_deletions(m, STR(""), e) < 0) || catch_up(m, e) < 0) {
        merge_close(m);
        return NULL;
    }
    m->keeps = true;
    return m;
}

void merge_close(struct merge *m)
{
    if (!m)
        return;
    cache_save(m);
    file_close(m->fd);
    free(m->deleted_path);
    free(m->cache_path);
    known_release(&m->facts);
    known_release(&m->adding);
    hash_map_release(&m->deleted);
    hash_map_release(&m->waiting_sessions);
    free(m->waits);
    free(m->arrived);
    buf_release(&m->pending);
    buf_release(&m->text);
    buf_release(&m->scratch);
    message_release(&m->message);
    free(m);
}

/* ---- what the history has ---- */

struct merge_count *merge_counts(struct merge *m)
{
    return &m->count;
}

size_t merge_facts(const struct merge *m, enum fact_kind kind)
{
    return kind == FACT_LINE ? m->covered.count : m->deleted.count;
}

uint64_t merge_set(const struct merge *m, enum fact_kind kind)
{
    return kind == FACT_LINE ? m->covered.sum : m->deleted_sum;
}

uint64_t merge_digest(struct merge *m, enum fact_kind kind, size_t i)
{
    struct str session, id;

    if (kind == FACT_LINE)
        return load(m, NULL) == 0 && i < m->covered.count ? fact_at(m, i)->digest : 0;
    merge_deletion(m, i, &session, &id);
    return deletion_digest(session, id);
}

uint64_t merge_prefix(struct merge *m, enum fact_kind kind, size_t n)
{
    struct prefix *p = &m->prefix[kind];

    if (kind == FACT_LINE && n == m->covered.count)
        return m->covered.chain;
    if (kind == FACT_LINE && (n > m->covered.count || load(m, NULL) < 0))
        return 0;
    if (n > merge_facts(m, kind))
        return 0;
    if (p->count > n)
        *p = (struct prefix){0};
    for (; p->count < n; p->count++)
        p->sum = chain(p->sum, merge_digest(m, kind, p->count));
    return p->sum;
}

bool merge_has(struct merge *m, struct str session, struct str id)
{
    return is_deleted(m, session, id) ||
           (load(m, NULL) == 0 && known_find(&m->facts, message_key(session, id)));
}

static int changed_in_place(const struct merge *m, struct err *e)
{
    return err_set(e, ERR_FAILURE, "'%s' was changed in place: try again", m->h->path);
}

static int read_fact(struct merge *m, const struct fact *f, struct buf *line, struct err *e)
{
    size_t n = (size_t)(f->place & LENGTH_MASK);
    ssize_t got;

    buf_clear(line);
    got = file_pread_full(m->fd, buf_room(line, n), n, (off_t)(f->place >> LENGTH_BITS));
    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", m->h->path);
    buf_grew(line, (size_t)got);
    if (line_digest(buf_str(line)) == f->digest)
        return 0;
    /* The next run reads the whole history. */
    m->keeps = false;
    if (m->cache_path)
        (void)file_unlink(FILE_CWD, m->cache_path);
    return changed_in_place(m, e);
}

int merge_read(struct merge *m, enum fact_kind kind, size_t i, struct buf *text, struct err *e)
{
    struct str session, id;

    if (kind == FACT_DELETION) {
        merge_deletion(m, i, &session, &id);
        buf_clear(text);
        deletions_add(text, session, id, false);
        buf_truncate(text, text->len - 1);
        return 0;
    }
    if (load(m, e) < 0)
        return -1;
    return i < m->covered.count ? read_fact(m, fact_at(m, i), text, e) : changed_in_place(m, e);
}

int merge_count_sent(struct merge *m, size_t i, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    int result = 0;
    bool gone = false;

    if (m->options.dry_run && m->deleted.count > 0) {
        result = merge_read(m, FACT_LINE, i, &line, e);
        gone = result == 0 && message_parse(&m->message, buf_str(&line)) &&
               is_deleted(m, m->message.session_id, m->message.id);
    }
    m->count.sent += result == 0 && !gone;
    buf_release(&line);
    return result;
}

/* ---- what another copy has ---- */

int merge_delete(struct merge *m, struct str session, struct str id)
{
    if (!id_session_valid(session) || !store_id_valid(id)) {
        m->count.refused++;
        return -1;
    }
    if (is_deleted(m, session, id))
        return 0;
    m->arrived = mem_grow(m->arrived, &m->arrived_cap, m->arrived_count + 1, sizeof(*m->arrived));
    m->arrived[m->arrived_count++] = record_deletion(m, session, id, false);
    return 1;
}

void merge_report_conflict(struct merge *m, struct str here, struct str there)
{
    struct message ours = MESSAGE_INIT, theirs = MESSAGE_INIT;
    struct buf a = BUF_INIT(BUF_LINE), b = BUF_INIT(BUF_LINE);
    struct str our_text = STR(""), their_text;

    m->count.conflicts++;
    if (m->reported++ >= REPORTED_MAX || !message_parse(&theirs, there))
        return;
    their_text = message_preview(&theirs, &a);
    if (message_parse(&ours, here))
        our_text = message_preview(&ours, &b);
    merge_warn(m,
               "two messages of session '%.*s' have the id '%.*s', and both are kept: '%.*s' here, "
               "'%.*s' %s%s",
               (int)theirs.session_id.n, theirs.session_id.p, (int)theirs.id.n, theirs.id.p,
               (int)our_text.n, our_text.p, (int)their_text.n, their_text.p,
               m->options.mark ? "in " : "there", m->options.mark ? m->options.mark : "");
    message_release(&ours);
    message_release(&theirs);
    buf_release(&a);
    buf_release(&b);
}

int merge_add(struct merge *m, struct str line, struct err *e)
{
    struct buf here = BUF_INIT(BUF_LINE);
    const struct fact *other;
    uint64_t key, digest;

    /* JSON from a database may have newlines between its tokens. */
    if ((line.n > 0 && memchr(line.p, '\n', line.n)) || !message_parse(&m->message, line) ||
        !message_storable(&m->message)) {
        m->count.refused++;
        return 0;
    }
    if (load(m, e) < 0)
        return -1;
    key = message_key(m->message.session_id, m->message.id);
    digest = line_digest(m->message.line);
    if (is_known(m, key, digest, &other) || is_deleted(m, m->message.session_id, m->message.id))
        return 0;
    if (known_find(&m->adding, digest))
        return 0;
    (void)known_add(&m->adding, digest);
    if (other) {
        if (read_fact(m, other, &here, NULL) < 0)
            buf_clear(&here);
        merge_report_conflict(m, buf_str(&here), m->message.line);
        buf_release(&here);
    }
    if (m->options.dry_run) {
        m->count.received++;
        return 1;
    }
    buf_add_str(&m->pending, m->message.line);
    buf_add_byte(&m->pending, '\n');
    return m->pending.len >= BATCH_BYTES && merge_store(m, e) < 0 ? -1 : 1;
}

uint64_t merge_digest_of(enum fact_kind kind, struct str text)
{
    struct buf session = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_SMALL);
    uint64_t digest = line_digest(text);

    if (kind == FACT_DELETION && deletion_parse(text, &session, &id))
        digest = deletion_digest(buf_str(&session), buf_str(&id));
    buf_release(&session);
    buf_release(&id);
    return digest;
}

int merge_add_fact(struct merge *m, enum fact_kind kind, struct str text, struct err *e)
{
    struct buf session = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_SMALL);

    if (kind == FACT_LINE)
        return merge_add(m, text, e) < 0 ? -1 : 0;
    if (deletion_parse(text, &session, &id))
        (void)merge_delete(m, buf_str(&session), buf_str(&id));
    else
        m->count.refused++;
    buf_release(&session);
    buf_release(&id);
    return 0;
}

/* Adds the lines that are still new, under the lock: another program may have stored some. */
static int add_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct merge *m = arg;
    struct str rest = buf_str(&m->pending);
    const struct fact *other;

    (void)at;
    m->stored = 0;
    if (read_deletions(m, e) < 0 || refresh(m, e) < 0 || load(m, e) < 0)
        return -1;
    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');

        if (!message_parse(&m->message, line) ||
            is_known(m, message_key(m->message.session_id, m->message.id), line_digest(line),
                     &other) ||
            is_deleted(m, m->message.session_id, m->message.id))
            continue;
        buf_add_str(lines, line);
        buf_add_byte(lines, '\n');
        m->stored++;
    }
    return 0;
}

/* Decides which of the deletions that have arrived wait, and adds all to `lines`. */
static void decide(struct merge *m, struct buf *lines)
{
    uint64_t all = m->covered.count + m->covered.waiting + m->erased_by_others;
    uint64_t erased = m->erased_by_others, waiting = 0;
    struct buf current = BUF_INIT(BUF_SMALL);
    struct str session, id;
    bool most;

    (void)session_current(m->h, &current, NULL, NULL);
    for (size_t i = 0; i < m->arrived_count; i++) {
        merge_deletion(m, m->arrived[i], &session, &id);
        erased += count_erased(m, session, id);
    }
    most = erased > ERASED_MOST && erased > all / ERASED_PART;
    for (size_t i = 0; i < m->arrived_count; i++) {
        uint64_t n;
        bool waits;

        merge_deletion(m, m->arrived[i], &session, &id);
        n = count_erased(m, session, id);
        waits =
            n > 0 && !m->options.accept_deletions && (most || str_eq(session, buf_str(&current)));
        m->waits[m->arrived[i]] = waits;
        m->dead = m->dead || (n > 0 && !waits);
        waiting += waits ? n : 0;
        m->erased_by_others += waits ? 0 : n;
        deletions_add(lines, session, id, waits);
    }
    if (m->options.dry_run) {
        m->count.waiting += waiting;
        m->count.deleted = m->erased_by_others;
    } else if (waiting > 0) {
        forget(m);
    }
    m->arrived_count = 0;
    buf_release(&current);
}

/* Stores the deletions that have arrived. */
static int store_deletions(struct merge *m, struct err *e)
{
    struct buf lines = BUF_INIT(SIZE_MAX);
    uint64_t before = m->covered.count;
    int result = load(m, e);

    if (result == 0) {
        decide(m, &lines);
        if (!m->options.dry_run)
            result = write_deletions(m, buf_str(&lines), e);
    }
    if (result == 0 && !m->options.dry_run)
        result = catch_up(m, e);
    if (result == 0 && m->covered.count < before)
        m->count.gone += before - m->covered.count;
    buf_release(&lines);
    return result;
}

int merge_store(struct merge *m, struct err *e)
{
    int result = 0;

    m->keeps = false;
    if (m->arrived_count > 0)
        result = store_deletions(m, e);
    if (m->options.dry_run)
        return result;
    if (result == 0 && m->pending.len > 0) {
        result = store_append_lines(m->h, add_lines, m, e);
        if (result == 0) {
            m->count.received += m->stored;
            buf_clear(&m->pending);
            known_release(&m->adding);
            result = catch_up(m, e);
        }
    }
    m->keeps = result == 0;
    return result;
}

/* Erases the lines of the deletions that wait. */
static int accept_deletions(struct merge *m, struct err *e)
{
    struct buf lines = BUF_INIT(SIZE_MAX);
    struct str session, id;
    int result;

    for (size_t i = 0; i < m->deleted.count; i++)
        if (m->waits[i]) {
            merge_deletion(m, i, &session, &id);
            deletions_add(&lines, session, id, false);
        }
    m->keeps = false;
    result = write_deletions(m, buf_str(&lines), e);
    if (result == 0)
        result = catch_up(m, e);
    m->keeps = result == 0;
    buf_release(&lines);
    return result;
}

int merge_finish(struct merge *m, struct err *e)
{
    uint64_t lines = m->covered.waiting, sessions = m->waiting_sessions.count;

    if (m->options.dry_run || lines == 0) {
        m->count.waiting_sessions = sessions;
        m->count.waiting += lines;
        return 0;
    }
    if (m->options.accept_deletions ||
        (m->options.accept && m->options.accept(m->options.arg, lines, sessions)))
        return accept_deletions(m, e);
    m->count.waiting = lines;
    m->count.waiting_sessions = sessions;
    return 0;
}
