/*
 * A directory that another program carries from machine to machine.
 *
 *     DIR/MACHINE/NAME/index                            the names of the other files, in order
 *     DIR/MACHINE/NAME/deleted-0123456789abcdef.jsonl   deletions, as in FILE.deleted
 *     DIR/MACHINE/NAME/lines-0123456789abcdef.jsonl     lines of the history
 *
 * A machine writes below its own name alone, and keeps a copy of its whole history there. A line
 * has all lines before it that its writer had, so a conversation that was continued on another
 * machine is never stored before its beginning, whichever files have arrived.
 *
 * A copy is cut into segments after each fact whose digest ends with SEGMENT_BITS zeros. The name
 * of a segment is a checksum of its digests. So a file never changes: where facts are added or
 * erased, other files take the place of a few, and a segment that has been read is known by its
 * name, whoever wrote it. The programs that carry the files never find two versions of one.
 *
 * The index is a line `hist-sync 2 NAME RUN`, and a line `FILE BYTES` for each segment. It replaces
 * the former one when the new segments are there, and before the old ones are removed. A reader
 * takes the segments in this order, as far as they have arrived.
 *
 * RUN is a random text. If this home directory does not remember the run that wrote the index of
 * its machine, a copy of it is in use elsewhere under the same name: then this one takes another
 * name. If a file cannot be used, it and the later ones of its machine are left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/history/append.h"
#include "chathist/history/scan.h"
#include "chathist/sync/sync.h"

#define INDEX "index"
#define VERSION "2"
/* A segment has 2^10 facts on average. */
#define SEGMENT_BITS 10
/* A segment with more is not one of hist-sync's: the chance of that is one in e^64. */
#define SEGMENT_MOST ((size_t)64 << SEGMENT_BITS)
/* What a folder may have: the bytes of an index, and of those of all machines, and machines. A
 * history of a million lines has an index of 50 KiB. */
#define INDEX_MOST ((size_t)64 << 20)
#define INDEXES_MOST ((size_t)256 << 20)
#define MACHINES_MOST ((size_t)200)
#define PIECE ((size_t)1 << 20)
/* The length of the name of a run, and how many names a home directory remembers. */
#define RUN_DIGITS 16
#define RUNS_KEPT ((size_t)1000)

struct segment {
    enum fact_kind kind;
    uint64_t digest; /* of the digests of its facts, in their order */
    uint64_t bytes;
};

struct segments {
    struct segment *at;
    size_t count, cap;
};

/* The copy of a machine. */
struct copy {
    char *machine;
    int fd;           /* the directory DIR/MACHINE/NAME */
    struct buf index; /* the text of its index */
    struct str run;   /* of it: the run that wrote it */
    struct str body;  /* of it: the lines after the first one */
    struct segments segments;
    size_t read;   /* segments that have been read, or are known */
    bool waits;    /* the next segment, or a part of it or of the index, has not arrived */
    bool left_out; /* a file cannot be used: it and those after it are not read */
};

struct folder {
    struct sync_job *job;
    struct merge *merge;
    int fd;
    char *machine;
    struct buf name; /* of the directories of this history */
    struct copy *copies;
    size_t count, cap;
    struct hash_map seen; /* the names of segments whose facts this machine has */
    size_t lines_then;    /* lines of the history after the last run; 0: everything is read again */
    struct digests known; /* the facts read in the folder in this run */
    struct append lock;
    struct err fault; /* why a file cannot be used, the first one */
    char *runs_path;  /* the file of the runs that this home directory remembers */
    struct buf runs;  /* its text: a line each, the last one first */
    struct buf run;   /* of this run, once something is written */
};

/* ---- names ---- */

static const struct str beginnings[FACT_KINDS] = {STR("deleted-"), STR("lines-")};
#define ENDING STR(".jsonl")
#define DIGITS 16

static void set_file_name(struct buf *name, const struct segment *s)
{
    buf_clear(name);
    buf_addf(name, "%s%016" PRIx64 "%s", beginnings[s->kind].p, s->digest, ENDING.p);
}

/* Returns whether it is the name of a segment, and sets its kind and digest. */
static bool parse_file_name(struct str name, struct segment *s)
{
    for (s->kind = 0; s->kind < FACT_KINDS; s->kind++) {
        size_t n = beginnings[s->kind].n;

        if (str_starts(name, beginnings[s->kind]) && name.n == n + DIGITS + ENDING.n &&
            str_ends(name, ENDING))
            return digest_parse((struct str){name.p + n, DIGITS}, &s->digest);
    }
    return false;
}

/* Not every file system allows a colon. */
static void add_dir_name(struct buf *out, const char *name)
{
    for (; *name; name++)
        buf_add_byte(out, *name == '/' ? '%' : *name == ':' ? '=' : *name);
}

static bool is_machine_name(const char *name)
{
    return *name != '.' && strlen(name) <= 100 && sync_name_valid(str_of(name)) &&
           !strchr(name, '/');
}

/* Sets `path` to that of a file of a machine, for messages. */
static void set_path(struct buf *path, const struct folder *f, const struct copy *c,
                     const char *name)
{
    buf_clear(path);
    buf_addf(path, "%s/%s/%s/%s", f->job->place, c->machine, buf_c(&f->name), name);
}

static int folder_error(const struct folder *f, const char *what, const char *name, struct err *e)
{
    return err_sys(e, errno, "cannot %s '%s/%s'", what, f->job->place, name);
}

/* ---- finding the copies ---- */

static bool is_own(const struct folder *f, const struct copy *c)
{
    return strcmp(c->machine, f->machine) == 0;
}

static struct copy *find_own(const struct folder *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (is_own(f, &f->copies[i]))
            return &f->copies[i];
    return NULL;
}

/* Leaves out the rest of a machine's files, because one of them cannot be used. The other machines
 * are synchronised. The first such error becomes that of the run, the others are warnings. */
static void leave_out(struct folder *f, struct copy *c, struct err *why)
{
    c->left_out = true;
    c->waits = false;
    if (f->fault.kind == ERR_NONE)
        err_set(&f->fault, ERR_FAILURE, "%s", err_text(why));
    else
        merge_warn(f->merge, "%s", err_text(why));
    err_release(why);
}

static void add_segment(struct segments *all, const struct segment *s)
{
    all->at = mem_grow(all->at, &all->cap, all->count + 1, sizeof *all->at);
    all->at[all->count++] = *s;
}

/* Takes the lines of an index after the first one. Returns 0, or -1 if one is damaged. */
static int parse_segments(struct copy *c)
{
    struct str rest = c->body;

    while (!c->waits && rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_word(&line);
        struct segment s;
        int64_t bytes;

        if (!rest.p) {
            c->waits = true; /* for the end of the line */
        } else {
            if (!parse_file_name(name, &s) || !json_int(str_word(&line), &bytes) || bytes < 0)
                return -1;
            s.bytes = (uint64_t)bytes;
            add_segment(&c->segments, &s);
        }
    }
    return 0;
}

/* Reads the text of an index, unless it is too large. Returns 0, or -1 with *e set. */
static int read_index_text(const struct folder *f, struct copy *c, int fd, const struct stat *st,
                           const char *path, struct err *e)
{
    size_t others = 0;

    for (size_t i = 0; i < f->count; i++)
        others += f->copies[i].index.len;
    if (st->st_size > (off_t)INDEX_MOST)
        return err_set(e, ERR_FAILURE, "left out '%s': it is larger than %zu MiB", path,
                       INDEX_MOST >> 20);
    if ((size_t)st->st_size > INDEXES_MOST - others)
        return err_set(e, ERR_FAILURE, "left out '%s': all of them are larger than %zu MiB", path,
                       INDEXES_MOST >> 20);
    if (file_is_sparse(fd, st))
        return err_set(e, ERR_FAILURE, "left out '%s': it has holes", path);
    if (file_pread_full(fd, buf_room(&c->index, (size_t)st->st_size), (size_t)st->st_size, 0) <
        (ssize_t)st->st_size)
        return err_set(e, ERR_FAILURE, "cannot read '%s'", path);
    buf_grew(&c->index, (size_t)st->st_size);
    return 0;
}

/* Reads the index of a machine. An absent one is empty. Returns 0, or -1 with *e set. */
static int read_index(const struct folder *f, struct copy *c, struct err *e)
{
    struct buf path = BUF_INIT(BUF_SMALL);
    struct str head;
    struct stat st;
    int missing = 0, fd, result = 0;

    set_path(&path, f, c, INDEX);
    fd = file_open_regular_at(c->fd, buf_c(&path), O_RDONLY, 0, &st, &missing, e);
    if (fd < 0 && missing != ENOENT) {
        result = -1;
    } else if (fd < 0) {
        err_release(e);
    } else if (read_index_text(f, c, fd, &st, buf_c(&path), e) < 0) {
        result = -1;
    } else {
        c->body = buf_str(&c->index);
        head = str_cut(&c->body, '\n');
        if (!c->body.p)
            c->waits = true;
        else if (!str_eq_c(str_word(&head), "hist-sync") || !str_eq_c(str_word(&head), VERSION))
            result = err_set(e, ERR_FAILURE, "left out '%s': a later version of hist-sync wrote it",
                             buf_c(&path));
        else if (!str_eq_c(str_word(&head), f->job->name))
            result = err_set(e, ERR_FAILURE, "left out '%s': it is of another history than '%s'",
                             buf_c(&path), f->job->name);
        else if (parse_segments(c) < 0)
            result = err_set(e, ERR_FAILURE, "left out '%s': it is damaged", buf_c(&path));
        if (result == 0 && c->body.p)
            c->run = str_word(&head);
    }
    file_close(fd);
    buf_release(&path);
    return result;
}

/* Opens a directory, never through a link: the folder may come from another machine. */
static int open_below(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static struct copy *add_copy(struct folder *f, const char *machine, int fd)
{
    f->copies = mem_grow(f->copies, &f->cap, f->count + 1, sizeof *f->copies);
    f->copies[f->count] =
        (struct copy){.machine = mem_text(machine), .fd = fd, .index = BUF_INIT(SIZE_MAX)};
    return &f->copies[f->count++];
}

static int find_copies(struct folder *f, struct err *e)
{
    DIR *list = file_open_dir(f->fd, f->job->place);
    struct dirent *entry;
    struct err why = ERR_INIT;
    size_t others = 0, surplus = 0;
    int result = 0;

    if (!list)
        return err_sys(e, errno, "cannot read '%s'", f->job->place);
    for (errno = 0; (entry = readdir(list)); errno = 0) {
        int machine = is_machine_name(entry->d_name) ? open_below(f->fd, entry->d_name) : -1;
        int fd = machine >= 0 ? open_below(machine, buf_c(&f->name)) : -1;

        file_close(machine);
        if (fd >= 0 && strcmp(entry->d_name, f->machine) != 0 && others++ >= MACHINES_MOST) {
            surplus++;
            file_close(fd);
            fd = -1;
        }
        if (fd >= 0 && read_index(f, add_copy(f, entry->d_name, fd), &why) < 0)
            leave_out(f, &f->copies[f->count - 1], &why);
    }
    if (errno != 0)
        result = err_sys(e, errno, "cannot read '%s'", f->job->place);
    if (surplus > 0 && f->fault.kind == ERR_NONE)
        err_set(&f->fault, ERR_FAILURE, "left out %zu of the machines in '%s': more than %zu",
                surplus, f->job->place, MACHINES_MOST);
    closedir(list);
    return result;
}

/* ---- what earlier runs have read ---- */

/* Reads the first line of the state: for deletions and for lines, their number after the last run
 * and a checksum of them. Returns whether the history still has them. */
static bool take_history(struct folder *f, struct str line)
{
    int64_t n = 0;

    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        uint64_t check;

        if (!json_int(str_word(&line), &n) || !digest_parse(str_word(&line), &check) ||
            merge_prefix(f->merge, kind, (size_t)n) != check)
            return false;
    }
    f->lines_then = (size_t)n;
    return true;
}

/* Reads the state of the last run. If the history has lost something since then, or the copy of
 * this machine is gone, everything is read again. */
static void read_state(struct folder *f, const char *path)
{
    const struct copy *own = find_own(f);
    struct buf text = BUF_INIT(SIZE_MAX);
    struct str rest;

    if (own && own->body.n > 0 && file_read_state(path, &text, NULL) > 0) {
        rest = buf_str(&text);
        if (take_history(f, str_cut(&rest, '\n')))
            while (rest.n > 0)
                hash_map_add(&f->seen, str_cut(&rest, '\n'));
    }
    buf_release(&text);
}

static int write_state(const struct folder *f, const char *path, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), name = BUF_INIT(BUF_SMALL);
    int result;

    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        size_t n = merge_facts(f->merge, kind);

        buf_addf(&text, "%zu %016" PRIx64 "%s", n, merge_prefix(f->merge, kind, n),
                 kind + 1 < FACT_KINDS ? " " : "\n");
    }
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < f->copies[i].segments.count; k++) {
            set_file_name(&name, &f->copies[i].segments.at[k]);
            if (hash_map_find(&f->seen, buf_str(&name)))
                buf_addf(&text, "%s\n", buf_c(&name));
        }
    result = file_replace_at(FILE_CWD, path, buf_str(&text), false, e);
    buf_release(&text);
    buf_release(&name);
    return result;
}

/* ---- reading ---- */

static uint64_t digest_add(uint64_t before, uint64_t digest)
{
    return checksum_words(&digest, 1, before);
}

/* Reads the facts of a segment, and with `take` adds them to the history. Returns 1, 0 with *why
 * set if the file cannot be used, or -1 with *e set. */
static int scan_segment(struct folder *f, const struct copy *c, const struct segment *s,
                        const char *path, bool take, struct err *why, struct err *e)
{
    uint64_t digest, all = 0;
    size_t count = 0;
    struct scan scan;
    struct line line;
    int result = 0, took = 0;

    if (scan_open(&scan, c->fd, path, SCAN_FORWARD, why) < 0)
        return 0;
    if (scan.sparse) {
        err_set(why, ERR_FAILURE, "left out '%s': it has holes", path);
        scan_close(&scan);
        return 0;
    }
    while (took == 0 && count <= SEGMENT_MOST && (result = scan_line(&scan, &line, why)) > 0 &&
           line.terminated) {
        count++;
        digest = line.too_long ? 0 : merge_digest_of(s->kind, line.text);
        all = digest_add(all, digest);
        if (take) {
            digests_add(&f->known, digest);
            took = merge_take(f->merge, s->kind, line.text, e);
        }
    }
    scan_close(&scan);
    if (took < 0)
        return -1;
    if (result < 0)
        return 0;
    if (all == s->digest && count <= SEGMENT_MOST)
        return 1;
    err_set(why, ERR_FAILURE,
            "left out '%s': it is damaged; when it is removed, its machine writes it again", path);
    return 0;
}

/* Reads a segment, unless its facts are known. Returns 0; or -1 with *e set if that fails for
 * another reason than the file. */
static int read_segment(struct folder *f, struct copy *c, struct segment *s, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL), path = BUF_INIT(BUF_SMALL);
    struct err why = ERR_INIT;
    struct stat st;
    int result = 0;

    set_file_name(&name, s);
    set_path(&path, f, c, buf_c(&name));
    if (hash_map_find(&f->seen, buf_str(&name))) {
        result = 1;
    } else if (file_stat(c->fd, buf_c(&path), &st) < 0 ||
               (S_ISREG(st.st_mode) && (uint64_t)st.st_size != s->bytes)) {
        c->waits = !is_own(f, c); /* this machine writes it again */
    } else {
        result = scan_segment(f, c, s, buf_c(&path), false, &why, e);
        if (result > 0)
            result = scan_segment(f, c, s, buf_c(&path), true, &why, e);
        if (result == 0)
            leave_out(f, c, &why);
        else if (result > 0)
            hash_map_add(&f->seen, buf_str(&name));
    }
    buf_release(&name);
    buf_release(&path);
    return result < 0 ? -1 : 0;
}

/* Reads everything new: the deletions first, so that no line is stored that is erased then. */
static int read_all(struct folder *f, struct err *e)
{
    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        for (size_t i = 0; i < f->count; i++) {
            struct copy *c = &f->copies[i];
            struct segments *s = &c->segments;

            for (; c->read < s->count && s->at[c->read].kind <= kind; c->read += !c->waits) {
                if (c->waits || c->left_out)
                    break;
                if (read_segment(f, c, &s->at[c->read], e) < 0)
                    return -1;
            }
        }
        if (merge_store(f->merge, e) < 0)
            return -1;
    }
    digests_sort(&f->known);
    return 0;
}

/* Counts the lines that no machine had in the folder. */
static void count_sent(struct folder *f)
{
    struct merge_count *count = merge_counts(f->merge);
    size_t from = f->lines_then > count->gone ? f->lines_then - (size_t)count->gone : 0;

    for (size_t i = from; i < merge_facts(f->merge, FACT_LINE); i++)
        count->sent += !digests_have(&f->known, merge_digest(f->merge, FACT_LINE, i));
}

/* ---- the name of this machine ---- */

/* The same folder can have several paths, so the runs of all folders are in one file. */
static int read_runs(struct folder *f, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    buf_addf(&name, "%016" PRIx64 ".runs", checksum(str_of(f->job->name), 0));
    f->runs_path = sync_state_file(f->job->history, buf_c(&name), e);
    buf_release(&name);
    return f->runs_path && file_read_state(f->runs_path, &f->runs, e) >= 0 ? 0 : -1;
}

/* Remembers this run, before the index has it. */
static int begin_run(struct folder *f, struct err *e)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str before = buf_str(&f->runs);
    int result;

    if (id_add_token(&text, e) < 0) {
        buf_release(&text);
        return -1;
    }
    buf_addf(&f->run, "%.*s", RUN_DIGITS, buf_c(&text));
    buf_clear(&text);
    if (before.n > RUNS_KEPT * (RUN_DIGITS + 1))
        before.n = RUNS_KEPT * (RUN_DIGITS + 1);
    buf_addf(&text, "%s\n", buf_c(&f->run));
    buf_add_str(&text, before);
    result = file_replace_at(FILE_CWD, f->runs_path, buf_str(&text), true, e);
    buf_release(&text);
    return result;
}

/* Returns whether another home directory has written the index of this machine. */
static bool is_copied(const struct folder *f)
{
    const struct copy *own = find_own(f);

    return own && !own->left_out && own->run.n > 0 && f->runs.len > 0 && !f->job->options.dry_run &&
           !str_find(buf_str(&f->runs), own->run);
}

/* Takes a new name, if a copy of this home directory has the same one. This is done before files
 * are read, because those of this machine are not waited for. */
static int leave_copied(struct folder *f, struct err *e)
{
    char *name;

    if (!is_copied(f))
        return 0;
    name = sync_machine(f->job->history, MACHINE_RENAMED, e);
    if (!name)
        return -1;
    merge_warn(
        f->merge,
        "another home directory writes to '%s/%s', too: the name of this machine is now '%s'",
        f->job->place, f->machine, name);
    free(f->machine);
    f->machine = name;
    return 0;
}

/* ---- writing ---- */

/* Makes the directories of this machine, and opens them. */
static int make_own(struct folder *f, struct err *e)
{
    int machine, fd = -1;

    if (mkdirat(f->fd, f->machine, 0700) < 0 && errno != EEXIST)
        return folder_error(f, "make directory", f->machine, e);
    machine = open_below(f->fd, f->machine);
    if (machine >= 0 && (mkdirat(machine, buf_c(&f->name), 0700) == 0 || errno == EEXIST))
        fd = open_below(machine, buf_c(&f->name));
    if (fd < 0)
        folder_error(f, "open directory", f->machine, e);
    file_close(machine);
    if (fd < 0)
        return -1;
    add_copy(f, f->machine, fd);
    return 0;
}

/* Returns the end of the segment that begins with the fact `from`, and sets its digest. */
static size_t segment_end(struct merge *m, size_t from, struct segment *s)
{
    uint64_t digest, last = (UINT64_C(1) << SEGMENT_BITS) - 1;

    s->digest = 0;
    do {
        digest = merge_digest(m, s->kind, from++);
        s->digest = digest_add(s->digest, digest);
    } while (from < merge_facts(m, s->kind) && (digest & last) != 0);
    return from;
}

/* Returns whether this machine has the file of a segment, and sets its size. The search begins at
 * *hint, because most segments come in the order of the index. */
static bool is_written(const struct copy *own, struct segment *s, const char *path, size_t *hint)
{
    const struct segments *all = &own->segments;
    struct stat st;

    for (size_t i = 0; i < all->count; i++) {
        const struct segment *old = &all->at[(*hint + i) % all->count];

        if (old->digest != s->digest || old->kind != s->kind)
            continue;
        *hint += i + 1;
        s->bytes = old->bytes;
        return file_stat(own->fd, path, &st) == 0 && (uint64_t)st.st_size == s->bytes;
    }
    return false;
}

/* Writes the facts to a new file. */
static int write_facts(struct folder *f, struct segment *s, size_t from, size_t end, int fd,
                       struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE), pending = BUF_INIT(SIZE_MAX);
    int result = 0;

    s->bytes = 0;
    for (; from < end && result == 0; from++) {
        result = merge_read(f->merge, s->kind, from, &text, e);
        buf_addf(&pending, "%s\n", buf_c(&text));
        if (result < 0 || (pending.len < PIECE && from + 1 < end))
            continue;
        s->bytes += pending.len;
        if (file_write_all(fd, pending.data, pending.len) < 0)
            result = folder_error(f, "write to", f->machine, e);
        buf_clear(&pending);
    }
    buf_release(&text);
    buf_release(&pending);
    return result;
}

/* Writes a segment. Its directory is synced with the index. */
static int write_segment(struct folder *f, const struct copy *own, struct segment *s, size_t from,
                         size_t end, const char *path, struct err *e)
{
    struct file_replace r;

    if (file_replace_begin_at(&r, own->fd, path, e) < 0)
        return -1;
    r.one_of_many = true;
    if (write_facts(f, s, from, end, r.fd, e) < 0) {
        file_replace_drop(&r);
        return -1;
    }
    return file_replace_end(&r, e);
}

/* Writes the segments that this machine does not have, and adds the lines of the index. */
static int write_segments(struct folder *f, const struct copy *own, struct segments *now,
                          struct buf *body, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL), path = BUF_INIT(BUF_SMALL);
    int result = 0;

    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        size_t hint = 0, end;

        for (size_t from = 0; result == 0 && from < merge_facts(f->merge, kind); from = end) {
            struct segment s = {.kind = kind};

            end = segment_end(f->merge, from, &s);
            set_file_name(&name, &s);
            set_path(&path, f, own, buf_c(&name));
            if (!is_written(own, &s, buf_c(&path), &hint))
                result = write_segment(f, own, &s, from, end, buf_c(&path), e);
            buf_addf(body, "%s %" PRIu64 "\n", buf_c(&name), s.bytes);
            add_segment(now, &s);
            hash_map_add(&f->seen, buf_str(&name));
        }
    }
    buf_release(&name);
    buf_release(&path);
    return result;
}

static int write_index(struct folder *f, const struct copy *own, struct str body, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), path = BUF_INIT(BUF_SMALL);
    int result = begin_run(f, e);

    buf_addf(&text, "hist-sync " VERSION " %s %s\n", f->job->name, buf_c(&f->run));
    buf_add_str(&text, body);
    set_path(&path, f, own, INDEX);
    if (result == 0)
        result = file_replace_at(own->fd, buf_c(&path), buf_str(&text), true, e);
    /* What a killed program has left of such files. */
    (void)file_sweep(own->fd, buf_c(&path), false, true, NULL);
    buf_release(&text);
    buf_release(&path);
    return result;
}

/* Removes the segments of this machine that the index does not name any more. */
static void remove_others(const struct copy *own, struct str body)
{
    DIR *list = file_open_dir(own->fd, own->machine);
    struct dirent *entry;
    struct segment s;

    while (list && (entry = readdir(list)))
        if (parse_file_name(str_of(entry->d_name), &s) && !str_find(body, str_of(entry->d_name)))
            (void)unlinkat(own->fd, entry->d_name, 0);
    if (list)
        closedir(list);
}

/* Brings the copy of this machine up to its history. */
static int write_copy(struct folder *f, struct err *e)
{
    struct buf body = BUF_INIT(SIZE_MAX);
    struct segments now = {0};
    struct copy *own = find_own(f);
    int result;

    if (!own && merge_facts(f->merge, FACT_LINE) + merge_facts(f->merge, FACT_DELETION) == 0)
        return 0;
    if (!own && make_own(f, e) < 0)
        return -1;
    own = find_own(f);
    result = write_segments(f, own, &now, &body, e);
    if (result == 0 && !str_eq(buf_str(&body), own->body)) {
        result = write_index(f, own, buf_str(&body), e);
        if (result == 0)
            remove_others(own, buf_str(&body));
    }
    free(own->segments.at);
    own->segments = now;
    buf_release(&body);
    return result;
}

/* ---- one run ---- */

static void report_waiting(const struct folder *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->copies[i].waits && !is_own(f, &f->copies[i]))
            merge_warn(f->merge,
                       "the newest lines in '%s/%s' wait for files that have not arrived yet",
                       f->job->place, f->copies[i].machine);
}

/* Only one program of this machine writes to its files at a time. */
static int lock_machine(struct folder *f, struct err *e)
{
    struct append_wait wait = history_wait(f->job->history);
    char *path = sync_state_file(f->job->history, "lock", e);
    int result = path ? append_open(&f->lock, FILE_CWD, path, &wait, e) : -1;

    if (result < 0)
        f->lock.fd = -1;
    free(path); /* append_close does not use it */
    return result;
}

static int run(struct folder *f, struct err *e)
{
    struct sync_job *job = f->job;
    char *real = path_real(job->place, NULL), *place = path_join(real ? real : "", job->name);
    char *state = merge_state_path(job->history, "dir", place, e);
    int result = -1;

    free(real);
    free(place);
    if (state && read_runs(f, e) == 0)
        f->merge = merge_open(job->history, &job->options, e);
    if (f->merge)
        merge_report_refused(f->merge);
    if (f->merge && find_copies(f, e) == 0) {
        const struct copy *own;

        read_state(f, state);
        result = leave_copied(f, e) < 0 || read_all(f, e) < 0 ? -1 : 0;
        own = find_own(f);
        /* If a file of this machine cannot be used, nothing is written. */
        if (result == 0 && !(own && own->left_out)) {
            count_sent(f);
            if (!job->options.dry_run)
                result = write_copy(f, e) < 0 ? -1 : write_state(f, state, e);
        }
        if (result < 0)
            merge_counts(f->merge)->sent = 0; /* how many of them are there is not known */
        report_waiting(f);
        if (result == 0)
            result = merge_finish(f->merge, e);
        job->count = *merge_counts(f->merge);
        if (result == 0 && f->fault.kind != ERR_NONE)
            result = err_set(e, f->fault.kind, "%s", err_text(&f->fault));
    }
    merge_close(f->merge);
    free(state);
    return result;
}

int sync_dir(struct sync_job *job, struct err *e)
{
    struct folder f = {.job = job,
                       .lock = {.fd = -1},
                       .name = BUF_INIT(BUF_SMALL),
                       .runs = BUF_INIT(BUF_SMALL),
                       .run = BUF_INIT(BUF_SMALL)};
    int result = -1;

    f.fd = open(job->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f.fd < 0)
        return err_sys(e, errno, "cannot open directory '%s'", job->place);
    add_dir_name(&f.name, job->name);
    if (job->options.dry_run || (sync_state_make(job->history, e) == 0 && lock_machine(&f, e) == 0))
        f.machine =
            sync_machine(job->history, job->options.dry_run ? MACHINE_UNKEPT : MACHINE_KEPT, e);
    if (f.machine)
        result = run(&f, e);
    append_close(&f.lock);
    for (size_t i = 0; i < f.count; i++) {
        close(f.copies[i].fd);
        free(f.copies[i].machine);
        free(f.copies[i].segments.at);
        buf_release(&f.copies[i].index);
    }
    close(f.fd);
    free(f.copies);
    hash_map_release(&f.seen);
    digests_release(&f.known);
    err_release(&f.fault);
    free(f.machine);
    free(f.runs_path);
    buf_release(&f.name);
    buf_release(&f.runs);
    buf_release(&f.run);
    return result;
}
