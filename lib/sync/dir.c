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
 * A copy is cut into segments after each fact whose digest ends with SEGMENT_BITS zeros, if the
 * segment has SEGMENT_LEAST facts by then. The name of a segment is a checksum of its digests. So a
 * file never changes: where facts are added or erased, other files take the place of a few, and a
 * segment that has been read is known by its name, whoever wrote it. The programs that carry the
 * files never find two versions of one.
 *
 * The index is a line `hist-sync 2 NAME RUN TIME HOST`, and a line `FILE BYTES` for each segment.
 * It replaces the former one when the new segments are there, and before the old ones are removed.
 * A reader takes the segments in this order. After one that has not arrived it takes only lines
 * that do not depend on it (see `struct gap`). If a file cannot be used, it and the later ones of
 * its machine are left out.
 *
 * RUN is a random text. This machine takes another name, and leaves its directory to whoever wrote
 * it, if it cannot be the machine that wrote there last: this home directory does not remember the
 * run, the index has vanished, or the index names a segment whose facts are not here and that has
 * not arrived. So a home directory that was copied, or restored on a new disk, never replaces files
 * that nobody has read.
 *
 * A segment is removed only if all of its facts are known here. A directory that this machine wrote
 * last, under a former name, is removed as soon as everything in it was read.
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
#include "chathist/base/file_replace.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/history/append.h"
#include "chathist/history/scan.h"
#include "chathist/sync/sync.h"
#include "sync/dir.h"

#define VERSION "2"
/* A segment has SEGMENT_LEAST + 2^10 facts on average. */
#define SEGMENT_BITS 10
#define SEGMENT_LEAST ((size_t)64)
/* A segment with more is not one of hist-sync's: the chance of that is one in e^64. */
#define SEGMENT_MOST ((size_t)64 << SEGMENT_BITS)
/* What a folder may have beside DIR_INDEX_MOST: the bytes of all indexes, and machines. */
#define INDEXES_MOST ((size_t)256 << 20)
#define MACHINES_MOST ((size_t)200)
#define PIECE ((size_t)1 << 20)
/* How long a segment may arrive after its index, in microseconds. */
#define LATE_MOST (24 * 3600 * TIME_SECOND)
/* The length of the name of a run, and how many names a home directory remembers. */
#define RUN_DIGITS 16
#define RUNS_KEPT ((size_t)1000)
#define HOST_MOST 200
#define NAMES_MOST ((size_t)64 << 10)

struct segment {
    enum fact_kind kind;
    uint64_t digest; /* a checksum of the digests of its facts, in their order */
    char name[40];   /* the name of its file */
    uint64_t bytes;
    bool unusable; /* a stray that is damaged or cannot be read */
};

struct segments {
    struct segment *at;
    size_t count, cap;
};

/* The copy of a machine. */
struct copy {
    char *machine;
    int fd;           /* the directory DIR/MACHINE/NAME; -1: it cannot be opened */
    bool indexed;     /* it has an index */
    struct buf index; /* the text of its index */
    struct str run;   /* the run that wrote it */
    struct str body;  /* the lines after the first one */
    int64_t written;  /* time of the last change of the index file, microseconds */
    struct segments segments;
    struct segments strays; /* segments that the index does not name; see find_strays */
    size_t read;            /* segments that have been read, or are known */
    bool waits;             /* a segment, or a part of it or of the index, has not arrived */
    bool left_out;          /* a file cannot be used: it and those after it are not read */
};

/*
 * The state of reading the segments after a missing one. A line waits for the missing
 * segment if it names another line, as its prompt or as one that it replaces, that is not here, or
 * if an earlier line of its session waits. While the segment may be on its way, for LATE_MOST, a
 * line also waits if its session can have lines in it: the session has begun in this history, or
 * the next segment begins with it.
 */
struct gap {
    bool active;                    /* a segment was missing */
    bool after;                     /* the next line is the first one after it */
    bool fresh;                     /* it may be on its way */
    struct hash_map begun, waiting; /* sessions */
    struct hash_map taken;          /* lines that were added and may not be stored yet */
    struct message message;
    struct buf text;
};

struct folder {
    struct sync_job *job;
    struct merge *merge;
    int fd;
    char *machine;
    struct buf path;   /* the result of file_path */
    struct buf former; /* the names that this machine had before, a line each */
    struct buf name;   /* the name of the directories of this history */
    struct copy *copies;
    size_t count, cap;
    char *state;          /* the file of what earlier runs have read */
    bool wrote;           /* a former run has written facts for this machine */
    bool unwritable;      /* nothing of this machine is written, because of f->fault */
    struct hash_map seen; /* the names of segments whose facts this machine has */
    size_t lines_then;    /* lines of the history after the last run; 0: everything is read again */
    struct digests known; /* the facts read in the folder in this run */
    struct append lock;
    struct err fault; /* why a file cannot be used, the first one */
    char *runs_path;  /* the file of the runs that this home directory remembers */
    struct buf runs;  /* its text: a line each, the last one first */
    struct buf run;   /* the text of this run, once something is written */
};

/* ---- names ---- */

static const struct str beginnings[FACT_KINDS] = {STR("deleted-"), STR("lines-")};
#define ENDING STR(".jsonl")
#define DIGITS 16

static void name_segment(struct segment *s)
{
    snprintf(s->name, sizeof(s->name), "%s%016" PRIx64 "%s", beginnings[s->kind].p, s->digest,
             ENDING.p);
}

/* Returns whether it is the name of a segment, and sets its kind, its digest and its name. */
static bool parse_file_name(struct str name, struct segment *s)
{
    for (s->kind = 0; s->kind < FACT_KINDS; s->kind++)
        if (str_starts(name, beginnings[s->kind]) && name.n > beginnings[s->kind].n + DIGITS &&
            digest_parse((struct str){name.p + beginnings[s->kind].n, DIGITS}, &s->digest)) {
            name_segment(s);
            return str_eq_c(name, s->name);
        }
    return false;
}

/* ext4 has a directory of the administrator at the top of each disk. */
bool dir_is_machine(const char *name)
{
    return *name != '.' && strlen(name) <= 100 && sync_name_valid(str_of(name)) &&
           !strchr(name, '/') && strcmp(name, "lost+found") != 0;
}

/* Returns the path of a file of a machine, for messages, borrowed until the next call. */
static const char *file_path(struct folder *f, const struct copy *c, const char *name)
{
    buf_clear(&f->path);
    buf_addf(&f->path, "%s/%s/%s/%s", f->job->place, c->machine, buf_c(&f->name), name);
    return buf_c(&f->path);
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

void dir_add_fault(struct err *fault, const struct merge_options *o, struct err *why)
{
    if (fault->kind == ERR_NONE)
        err_set(fault, ERR_FAILURE, "%s", err_text(why));
    else if (o->warn)
        o->warn(o->arg, err_text(why));
    err_release(why);
}

static void add_fault(struct folder *f, struct err *why)
{
    dir_add_fault(&f->fault, &f->job->options, why);
}

/* Leaves out the rest of a machine's files, because one of them cannot be used. The other machines
 * are synchronised. If it is this machine, nothing is written. */
static void leave_out(struct folder *f, struct copy *c, struct err *why)
{
    c->left_out = true;
    c->waits = false;
    f->unwritable |= is_own(f, c);
    add_fault(f, why);
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

    while (rest.n > 0) {
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
    if (st->st_size > (off_t)DIR_INDEX_MOST)
        return err_set(e, ERR_FAILURE, "left out '%s': it is larger than %zu MiB", path,
                       DIR_INDEX_MOST >> 20);
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
static int read_index(struct folder *f, struct copy *c, struct err *e)
{
    const char *path = file_path(f, c, DIR_INDEX);
    struct str head;
    struct stat st;
    int missing = 0, fd, result = 0;

    fd = file_open_regular_at(c->fd, path, O_RDONLY, 0, &st, &missing, e);
    c->indexed = fd >= 0;
    if (fd >= 0)
        c->written = system_mtime(&st) / 1000;
    if (fd < 0 && missing != ENOENT) {
        result = -1;
    } else if (fd < 0) {
        err_release(e);
    } else if (read_index_text(f, c, fd, &st, path, e) < 0) {
        result = -1;
    } else {
        c->body = buf_str(&c->index);
        head = str_cut(&c->body, '\n');
        if (!c->body.p)
            c->waits = true;
        else if (!str_eq_c(str_word(&head), "hist-sync") || !str_eq_c(str_word(&head), VERSION))
            result = err_set(e, ERR_FAILURE, "left out '%s': a later version of hist-sync wrote it",
                             path);
        else if (!str_eq_c(str_word(&head), f->job->name))
            result = err_set(e, ERR_FAILURE, "left out '%s': it is of another history than '%s'",
                             path, f->job->name);
        else if (parse_segments(c) < 0)
            result = err_set(e, ERR_FAILURE, "left out '%s': it is damaged", path);
        if (result == 0 && c->body.p)
            c->run = str_word(&head);
    }
    file_close(fd);
    return result;
}

int dir_open_below(int parent, const char *name, const char *path, struct err *e)
{
    int fd;

    do {
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        err_sys(e, errno, "cannot open directory '%s/%s'", path, name);
    return fd;
}

static struct copy *add_copy(struct folder *f, const char *machine, int fd)
{
    f->copies = mem_grow(f->copies, &f->cap, f->count + 1, sizeof *f->copies);
    f->copies[f->count] =
        (struct copy){.machine = mem_text(machine), .fd = fd, .index = BUF_INIT(SIZE_MAX)};
    return &f->copies[f->count++];
}

/* Takes the copy of a machine, if it has one of this history. */
static void find_copy(struct folder *f, const char *machine)
{
    struct err why = ERR_INIT;
    char *path = path_join(f->job->place, machine);
    int dir = dir_open_below(f->fd, machine, f->job->place, &why);
    int fd = dir >= 0 ? dir_open_below(dir, buf_c(&f->name), path, &why) : -1;
    struct copy *c = fd >= 0 || why.kind != ERR_NONE ? add_copy(f, machine, fd) : NULL;

    file_close(dir);
    free(path);
    if (c && (fd < 0 || read_index(f, c, &why) < 0))
        leave_out(f, c, &why);
}

static int find_copies(struct folder *f, struct err *e)
{
    DIR *list = file_open_dir(f->fd, f->job->place);
    struct dirent *entry;
    size_t surplus = 0;
    int result = 0;

    if (!list)
        return err_sys(e, errno, "cannot read '%s'", f->job->place);
    for (errno = 0; (entry = readdir(list)); errno = 0)
        if (dir_is_machine(entry->d_name) &&
            (f->count <= MACHINES_MOST || strcmp(entry->d_name, f->machine) == 0))
            find_copy(f, entry->d_name);
        else if (dir_is_machine(entry->d_name))
            surplus++;
    if (errno != 0)
        result = err_sys(e, errno, "cannot read '%s'", f->job->place);
    if (surplus > 0 && f->fault.kind == ERR_NONE)
        err_set(&f->fault, ERR_FAILURE, "left out %zu of the machines in '%s': more than %zu",
                surplus, f->job->place, MACHINES_MOST);
    closedir(list);
    return result;
}

/* Lists the segments in the directory of a machine that its index does not name, and that were
 * written before a time in microseconds: they are old ones, or their index has not arrived, or
 * never will, because its machine was restored from a backup. Removes temporary files of that age,
 * which killed programs have left. */
static int find_strays(struct folder *f, struct copy *c, int64_t before, struct err *e)
{
    DIR *list = file_open_dir(c->fd, c->machine);
    struct hash_map named = {0};
    struct dirent *entry;
    struct segment s = {.bytes = 0}; /* its size is not known */
    struct stat st;
    int result = 0;

    if (!list)
        return folder_error(f, "read directory", c->machine, e);
    for (size_t i = 0; i < c->segments.count; i++)
        hash_map_add(&named, str_of(c->segments.at[i].name));
    for (errno = 0; (entry = readdir(list)); errno = 0) {
        struct str file = str_of(entry->d_name);
        bool temporary =
            str_ends(file, STR(FILE_TEMPORARY)) &&
            (str_starts(file, beginnings[FACT_LINE]) ||
             str_starts(file, beginnings[FACT_DELETION]) || str_starts(file, STR(DIR_INDEX)));

        if (!temporary && (!parse_file_name(file, &s) || hash_map_find(&named, file)))
            continue;
        if (file_stat(c->fd, entry->d_name, &st) < 0 || system_mtime(&st) / 1000 >= before)
            continue;
        if (!temporary)
            add_segment(&c->strays, &s);
        else if (!f->job->options.dry_run && !f->unwritable)
            (void)file_unlink(c->fd, entry->d_name);
    }
    if (errno != 0)
        result = folder_error(f, "read directory", c->machine, e);
    closedir(list);
    hash_map_release(&named);
    return result;
}

/* ---- what earlier runs have read ---- */

static bool is_seen(const struct folder *f, const struct segment *s)
{
    return hash_map_find(&f->seen, str_of(s->name));
}

/* Reads the first line of the state: for deletions and for lines, their number after the last run
 * and a checksum of them. Returns whether the history still has them. */
static bool read_history_state(struct folder *f, struct str line)
{
    int64_t n = 0;
    bool same = true;

    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        uint64_t check;

        if (!json_int(str_word(&line), &n) || !digest_parse(str_word(&line), &check))
            return false;
        f->wrote |= n > 0;
        same = same && merge_prefix(f->merge, kind, (size_t)n) == check;
    }
    if (same)
        f->lines_then = (size_t)n;
    return same;
}

/* Reads the state of the last run. If the history has lost something since then, or the copy of
 * this machine is gone, everything is read again. */
static void read_folder_state(struct folder *f)
{
    const struct copy *own = find_own(f);
    struct buf text = BUF_INIT(SIZE_MAX);
    struct err why = ERR_INIT;
    struct str rest;

    if (file_read_state(f->state, &text, &why) < 0) {
        f->unwritable = true; /* whether it has written before is not known */
        add_fault(f, &why);
    }
    rest = buf_str(&text);
    if (rest.n > 0 && read_history_state(f, str_cut(&rest, '\n')) && own && own->body.n > 0)
        while (rest.n > 0)
            hash_map_add(&f->seen, str_cut(&rest, '\n'));
    else
        f->lines_then = 0;
    buf_release(&text);
}

static int write_folder_state(const struct folder *f, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int result;

    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        size_t n = merge_facts(f->merge, kind);

        buf_addf(&text, "%zu %016" PRIx64 "%s", n, merge_prefix(f->merge, kind, n),
                 kind + 1 < FACT_KINDS ? " " : "\n");
    }
    for (size_t i = 0; i < f->count; i++) {
        const struct segments *lists[] = {&f->copies[i].segments, &f->copies[i].strays};

        for (size_t k = 0; k < 2; k++)
            for (size_t n = 0; n < lists[k]->count; n++)
                if (is_seen(f, &lists[k]->at[n]))
                    buf_addf(&text, "%s\n", lists[k]->at[n].name);
    }
    result = file_replace_at(FILE_CWD, f->state, buf_str(&text), false, e);
    buf_release(&text);
    return result;
}

/* ---- lines that may depend on a missing segment ---- */

static struct str pair(struct gap *d, struct str session, struct str id)
{
    buf_clear(&d->text);
    buf_addf(&d->text, "%.*s\n", (int)session.n, session.p);
    buf_add_str(&d->text, id);
    return buf_str(&d->text);
}

/* Returns whether there is a line that another one names by its id, a JSON value. */
static bool is_here(struct folder *f, struct gap *d, struct str value)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str id = json_text(value, &scratch);
    bool here = !id.p || merge_has(f->merge, d->message.session_id, id) ||
                hash_map_find(&d->taken, pair(d, d->message.session_id, id));

    buf_release(&scratch);
    return here;
}

static bool waits(struct folder *f, struct gap *d, struct str line)
{
    const struct message *m = &d->message;
    struct json_iter replaced;
    bool here;

    if (!message_parse(&d->message, line))
        return false;
    if (d->after && d->fresh)
        hash_map_add(&d->begun, m->session_id);
    d->after = false;
    if (merge_has(f->merge, m->session_id, m->id))
        return false;
    if (hash_map_find(&d->waiting, m->session_id) || hash_map_find(&d->begun, m->session_id))
        return true;
    here = is_here(f, d, m->field[FIELD_REPLY_TO]);
    for (replaced = json_iter(m->field[FIELD_REPLACES]); here && json_next(&replaced);)
        here = is_here(f, d, replaced.value);
    hash_map_add(here ? &d->taken : &d->waiting,
                 here ? pair(d, m->session_id, m->id) : m->session_id);
    return !here;
}

/* Begins to read after a missing segment. Everything before it is stored first. */
static int gap_begin(struct folder *f, const struct copy *c, struct gap *d, struct err *e)
{
    const struct history *h = f->job->history;
    struct scan scan;
    int result = 1;

    if (d->message.own.max > 0)
        return 0;
    d->message = (struct message)MESSAGE_INIT;
    buf_init(&d->text, BUF_LINE);
    if (merge_store(f->merge, e) < 0)
        return -1;
    d->fresh = !is_own(f, c) && time_now() - c->written <= LATE_MOST;
    if (!d->fresh)
        return 0;
    if (scan_open(&scan, h->dir_fd, h->path, e) < 0)
        return -1;
    scan.work = h->work;
    scan.task = "read";
    while ((result = scan_message(&scan, &d->message, NULL, e)) > 0)
        hash_map_add(&d->begun, d->message.session_id);
    scan_close(&scan);
    return result;
}

static void gap_release(struct gap *d)
{
    hash_map_release(&d->begun);
    hash_map_release(&d->waiting);
    hash_map_release(&d->taken);
    message_release(&d->message);
    buf_release(&d->text);
}

/* ---- reading ---- */

/* What to do with the facts of a segment. */
struct taking {
    bool take;       /* add them to the history */
    struct gap *gap; /* but not those that wait; NULL: all */
    bool waits;      /* some wait */
};

/* Reads the facts of a segment. Returns 1; 0 if the file is not there, or with *why set if it
 * cannot be used (ERR_INCOMPLETE if it is damaged); or -1 with *e set. */
static int scan_segment(struct folder *f, const struct copy *c, const struct segment *s,
                        struct taking *t, struct err *why, struct err *e)
{
    uint64_t digest, all = 0;
    size_t count = 0;
    struct scan scan;
    struct line line;
    int result = 0, took = 0;

    if (scan_open(&scan, c->fd, file_path(f, c, s->name), why) < 0)
        return 0;
    if (scan.fd < 0) {
        scan_close(&scan);
        return 0;
    }
    while (took == 0 && count <= SEGMENT_MOST && (result = scan_line(&scan, &line, why)) > 0 &&
           line.terminated) {
        count++;
        digest = line.too_long ? 0 : merge_digest_of(s->kind, line.text);
        all = checksum_words(&digest, 1, all);
        if (t->take && t->gap && waits(f, t->gap, line.text)) {
            t->waits = true;
        } else if (t->take) {
            digests_add(&f->known, digest);
            took = merge_add_fact(f->merge, s->kind, line.text, e);
        }
    }
    scan_close(&scan);
    if (took < 0)
        return -1;
    if (result < 0)
        return 0;
    if (all == s->digest && count <= SEGMENT_MOST)
        return 1;
    err_set(why, ERR_INCOMPLETE,
            s->bytes > 0
                ? "left out '%s': it is damaged; when it is removed, its machine writes it again"
                : "left out '%s': it is damaged, and the index of its machine does not name it",
            file_path(f, c, s->name));
    return 0;
}

/* Returns 1 if the whole segment has arrived, 0 if not, or -1 with *e set. */
static int has_arrived(struct folder *f, const struct copy *c, const struct segment *s,
                       struct err *e)
{
    const char *path = file_path(f, c, s->name);
    struct stat st;

    if (file_stat(c->fd, path, &st) == 0)
        return !S_ISREG(st.st_mode) || s->bytes == 0 || (uint64_t)st.st_size == s->bytes;
    return errno == ENOENT ? 0 : err_sys(e, errno, "cannot read '%s'", path);
}

/* Reads a segment, unless its facts are known. With an active `gap` (NULL: none) some lines may
 * not be taken, and then the segment counts as unknown. Returns 1 if all facts are known now; 0 if
 * the segment has not arrived, or with *why set if it cannot be used; or -1 with *e set. */
static int read_segment(struct folder *f, struct copy *c, const struct segment *s, struct gap *gap,
                        struct err *why, struct err *e)
{
    struct taking check = {.take = false},
                  taking = {.take = true, .gap = gap && gap->active ? gap : NULL};
    int result;

    if (is_seen(f, s))
        return 1;
    result = has_arrived(f, c, s, why);
    if (result < 0)
        result = 0; /* *why is set */
    if (result > 0)
        result = scan_segment(f, c, s, &check, why, e);
    /* It has not arrived, or its machine has just put others in its place. */
    if (result == 0 && gap && why->kind == ERR_NONE)
        gap->active = gap->after = true;
    if (result > 0 && taking.gap)
        result = gap_begin(f, c, gap, e) < 0 ? -1 : 1;
    if (result > 0)
        result = scan_segment(f, c, s, &taking, why, e);
    if (result > 0 && taking.waits)
        result = 0;
    if (result > 0)
        hash_map_add(&f->seen, str_of(s->name));
    return result;
}

static bool is_retired(const struct folder *f, const struct copy *c)
{
    return f->job->retire && strcmp(f->job->retire, c->machine) == 0;
}

static bool is_former(const struct folder *f, const struct copy *c)
{
    struct str names = buf_str(&f->former);

    while (names.n > 0)
        if (str_eq_c(str_cut(&names, '\n'), c->machine))
            return true;
    return false;
}

/* Returns whether this machine may remove files of the copy, so that it reads all of them first. */
static bool is_tidied(const struct folder *f, const struct copy *c)
{
    return is_own(f, c) || is_former(f, c) || is_retired(f, c);
}

static void report_work(const struct folder *f, const char *name, const char *unit, size_t done,
                        size_t all)
{
    if (f->job->history->work)
        f->job->history->work(&(struct task){name, unit, done, all});
}

/* Reads the segments of a kind that the index of a machine names. Deletions do not depend on one
 * another, and nothing is waited for in a directory that is to be removed. */
static int read_copy(struct folder *f, struct copy *c, enum fact_kind kind, struct err *e)
{
    const struct segments *s = &c->segments;
    struct gap gap = {0};
    struct err why = ERR_INIT;
    bool all = kind == FACT_DELETION || is_retired(f, c);
    int result = 1;

    while (result >= 0 && c->read < s->count && s->at[c->read].kind <= kind && !c->left_out) {
        report_work(f, "receive", "files", c->read, s->count);
        result = read_segment(f, c, &s->at[c->read++], all ? NULL : &gap, &why, e);
        c->waits |= result == 0;
        if (why.kind != ERR_NONE)
            leave_out(f, c, &why);
    }
    gap_release(&gap);
    return result < 0 ? -1 : 0;
}

/* Reads the strays of a kind. Their order is not known: those with lines that wait for others are
 * read once more after the others. */
static int read_strays(struct folder *f, struct copy *c, enum fact_kind kind, struct err *e)
{
    struct segments *s = &c->strays;
    struct err why = ERR_INIT;
    bool waited;
    size_t before;
    int result = 1;

    do {
        before = f->seen.count;
        waited = false;
        for (size_t i = 0; result >= 0 && i < s->count; i++) {
            struct gap gap = {.active = true};

            if (s->at[i].kind != kind || s->at[i].unusable)
                continue;
            result = read_segment(f, c, &s->at[i], is_retired(f, c) ? NULL : &gap, &why, e);
            gap_release(&gap);
            waited |= result == 0 && why.kind == ERR_NONE;
            s->at[i].unusable = why.kind != ERR_NONE;
            if (why.kind == ERR_INCOMPLETE && !is_tidied(f, c))
                err_release(&why); /* it may be on its way */
            else if (why.kind != ERR_NONE)
                add_fault(f, &why);
        }
    } while (result >= 0 && waited && f->seen.count > before);
    c->waits |= waited;
    return result < 0 ? -1 : 0;
}

/* ---- the name of this machine ---- */

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

static bool is_our_run(const struct folder *f, struct str run)
{
    return run.n == RUN_DIGITS && str_find(buf_str(&f->runs), run);
}

/* Returns the end of the segment that begins with the fact `from`, and sets its digest and name. */
static size_t segment_end(struct merge *m, size_t from, struct segment *s)
{
    uint64_t digest, last = (UINT64_C(1) << SEGMENT_BITS) - 1;
    size_t to = from;

    s->digest = 0;
    do {
        digest = merge_digest(m, s->kind, to++);
        s->digest = checksum_words(&digest, 1, s->digest);
    } while (to < merge_facts(m, s->kind) && (to - from < SEGMENT_LEAST || (digest & last) != 0));
    name_segment(s);
    return to;
}

/* Adds the segments into which the history is cut now to those whose facts are known. */
static void see_history(struct folder *f)
{
    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++)
        for (size_t from = 0; from < merge_facts(f->merge, kind);) {
            struct segment s = {.kind = kind};

            from = segment_end(f->merge, from, &s);
            hash_map_add(&f->seen, str_of(s.name));
        }
}

/* Returns whether the index of this machine names a segment whose facts are not here and that has
 * not arrived: 1, 0, or -1 with *e set. */
static int lacks_segment(struct folder *f, const struct copy *own, struct err *e)
{
    bool cut = false;
    int result = 0;

    for (size_t i = 0; result == 0 && i < own->segments.count; i++) {
        const struct segment *s = &own->segments.at[i];
        int arrived = is_seen(f, s) ? 1 : has_arrived(f, own, s, e);

        if (arrived == 0 && !cut)
            see_history(f);
        cut |= arrived == 0;
        result = arrived < 0 ? -1 : !arrived && !is_seen(f, s);
    }
    return result;
}

/* Adds the reason why this is not the machine that wrote its directory last, if there is one.
 * Returns 0, or -1 with *e set. */
static int find_stranger(struct folder *f, struct buf *why, struct err *e)
{
    const struct copy *own = find_own(f);
    const char *folder = f->job->place, *machine = f->machine;
    int lacks = 0;

    if (own && own->run.n > 0 && !is_our_run(f, own->run))
        buf_addf(why, "another home directory writes to '%s/%s', too", folder, machine);
    else if ((!own || !own->indexed) && f->wrote)
        buf_addf(why, "the index that this machine wrote to '%s/%s' has vanished", folder, machine);
    else if (own)
        lacks = lacks_segment(f, own, e);
    if (lacks > 0)
        buf_addf(why, "'%s/%s' lacks files with lines that are not here", folder, machine);
    return lacks < 0 ? -1 : 0;
}

/* Sets the path of the state. Each name of this machine has another one. */
static int set_state_path(struct folder *f, struct err *e)
{
    struct buf place = BUF_INIT(SIZE_MAX);
    char *real = path_real(f->job->place, e);

    free(f->state);
    f->state = NULL;
    buf_addf(&place, "%s/%s\n%s", real ? real : "", f->job->name, f->machine);
    if (real)
        f->state = merge_state_path(f->job->history, "dir", buf_c(&place), e);
    free(real);
    buf_release(&place);
    return f->state ? 0 : -1;
}

/* Takes a new name, if this is not the machine that wrote its directory last. This is done before
 * files are read, because those of this machine are not waited for. */
static int leave_strange(struct folder *f, struct err *e)
{
    struct buf why = BUF_INIT(BUF_LINE);
    struct err fault = ERR_INIT;
    char *name;
    int result = 0;

    if (f->unwritable || f->job->options.dry_run)
        return 0;
    if (find_stranger(f, &why, &fault) < 0)
        leave_out(f, find_own(f), &fault);
    if (why.len > 0) {
        name = sync_machine(f->job->history, MACHINE_RENAMED, &f->former, e);
        if (name) {
            merge_warn(f->merge, "%s: the name of this machine is now '%s'", buf_c(&why), name);
            free(f->machine);
            f->machine = name;
        }
        result = name ? set_state_path(f, e) : -1;
    }
    buf_release(&why);
    return result;
}

/* ---- writing ---- */

/* Makes the directories of this machine, and opens them. */
static int make_own(struct folder *f, struct err *e)
{
    int machine, fd = -1;

    if (mkdirat(f->fd, f->machine, 0700) < 0 && errno != EEXIST)
        return folder_error(f, "make directory", f->machine, e);
    machine = dir_open_below(f->fd, f->machine, f->job->place, NULL);
    if (machine >= 0 && (mkdirat(machine, buf_c(&f->name), 0700) == 0 || errno == EEXIST))
        fd = dir_open_below(machine, buf_c(&f->name), f->job->place, NULL);
    if (fd < 0)
        folder_error(f, "open directory", f->machine, e);
    file_close(machine);
    if (fd < 0)
        return -1;
    add_copy(f, f->machine, fd);
    return 0;
}

/* Returns whether this machine has the file of a segment, and sets its size: 1, 0, or -1 with *e
 * set. The search begins at *hint, because most segments come in the order of the index. */
static int is_written(struct folder *f, const struct copy *own, struct segment *s, size_t *hint,
                      struct err *e)
{
    const struct segments *all = &own->segments;

    for (size_t i = 0; i < all->count; i++) {
        const struct segment *old = &all->at[(*hint + i) % all->count];

        if (old->digest != s->digest || old->kind != s->kind)
            continue;
        *hint += i + 1;
        s->bytes = old->bytes;
        return has_arrived(f, own, s, e);
    }
    return 0;
}

/* Writes a segment. Its directory is synced with the index. */
static int write_segment(struct folder *f, const struct copy *own, struct segment *s, size_t from,
                         size_t end, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE), pending = BUF_INIT(SIZE_MAX);
    struct file_replace r;
    int result = 0;

    if (file_replace_begin_at(&r, own->fd, file_path(f, own, s->name), e) < 0)
        return -1;
    r.one_of_many = true;
    s->bytes = 0;
    for (; from < end && result == 0; from++) {
        result = merge_read(f->merge, s->kind, from, &text, e);
        buf_addf(&pending, "%s\n", buf_c(&text));
        if (result < 0 || (pending.len < PIECE && from + 1 < end))
            continue;
        s->bytes += pending.len;
        if (file_write_all(r.fd, pending.data, pending.len) < 0)
            result = folder_error(f, "write to", f->machine, e);
        buf_clear(&pending);
    }
    buf_release(&text);
    buf_release(&pending);
    if (result == 0)
        return file_replace_end(&r, e);
    file_replace_drop(&r);
    return -1;
}

/* Writes the segments that this machine does not have, and adds the lines of the index. */
static int write_segments(struct folder *f, const struct copy *own, struct segments *now,
                          struct buf *body, struct err *e)
{
    int result = 0;

    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        size_t hint = 0, end;

        for (size_t from = 0; result == 0 && from < merge_facts(f->merge, kind); from = end) {
            struct segment s = {.kind = kind};

            report_work(f, "send", "lines", from, merge_facts(f->merge, kind));
            end = segment_end(f->merge, from, &s);
            result = is_written(f, own, &s, &hint, e);
            if (result == 0)
                result = write_segment(f, own, &s, from, end, e);
            result = result < 0 ? -1 : 0;
            buf_addf(body, "%s %" PRIu64 "\n", s.name, s.bytes);
            add_segment(now, &s);
            hash_map_add(&f->seen, str_of(s.name));
        }
    }
    return result;
}

/* Replaces the index of a copy by one with these lines. */
static int write_index(struct folder *f, const struct copy *c, struct str body, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    char host[HOST_MOST + 1] = "";
    int result = f->run.len > 0 ? 0 : begin_run(f, e);

    buf_addf(&text, "hist-sync " VERSION " %s %s ", f->job->name, buf_c(&f->run));
    time_add_iso(&text, time_now());
    buf_add_byte(&text, ' ');
    (void)gethostname(host, HOST_MOST);
    for (char *p = host; *p; p++)
        buf_add_byte(&text, *p > ' ' && *p < 0x7f ? *p : '-');
    buf_add_byte(&text, '\n');
    buf_add_str(&text, body);
    if (result == 0)
        result = file_replace_at(c->fd, file_path(f, c, DIR_INDEX), buf_str(&text), true, e);
    buf_release(&text);
    return result;
}

static int remove_segment(struct folder *f, const struct copy *c, const struct segment *s,
                          struct err *e)
{
    const char *path = file_path(f, c, s->name);

    return file_unlink(c->fd, path) == 0 || errno == ENOENT
               ? 0
               : err_sys(e, errno, "cannot remove '%s'", path);
}

/* Removes those segments of a copy that are in the first list, but not in the index that `body` is,
 * if all of their facts are known. */
static void remove_segments(struct folder *f, const struct copy *c, const struct segments *old,
                            struct str body)
{
    struct hash_map named = {0};
    struct err why = ERR_INIT;

    while (old->count > 0 && body.n > 0) {
        struct str line = str_cut(&body, '\n');

        hash_map_add(&named, str_word(&line));
    }
    for (size_t i = 0; i < old->count; i++)
        if (!hash_map_find(&named, str_of(old->at[i].name)) && is_seen(f, &old->at[i]) &&
            remove_segment(f, c, &old->at[i], &why) < 0)
            add_fault(f, &why);
    hash_map_release(&named);
}

/* Brings the copy of this machine up to its history. Segments that are not in it any more are
 * removed, also those that an earlier run could not remove. */
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
    if (result == 0 && !str_eq(buf_str(&body), own->body))
        result = write_index(f, own, buf_str(&body), e);
    if (result == 0) {
        remove_segments(f, own, &own->segments, buf_str(&body));
        remove_segments(f, own, &own->strays, buf_str(&body));
    }
    free(own->segments.at);
    own->segments = now;
    buf_release(&body);
    return result;
}

/* ---- removing a directory ---- */

/* Returns the number of segments in the directory of a copy whose facts are not known. */
static size_t count_unknown(struct folder *f, const struct copy *c)
{
    const struct segments *lists[] = {&c->segments, &c->strays};
    size_t count = 0;

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            count +=
                !is_seen(f, &lists[k]->at[i]) && has_arrived(f, c, &lists[k]->at[i], NULL) != 0;
    return count;
}

/* Removes the index of a copy, and the conflicting copies of it that another program has made. */
static int remove_indexes(struct folder *f, const struct copy *c, struct err *e)
{
    DIR *list = file_open_dir(c->fd, c->machine);
    struct dirent *entry;
    int result = list ? 0 : folder_error(f, "read directory", c->machine, e);

    while (list && result == 0 && (entry = readdir(list)))
        if (str_starts(str_of(entry->d_name), STR(DIR_INDEX)) &&
            file_unlink(c->fd, entry->d_name) < 0 && errno != ENOENT)
            result = folder_error(f, "remove the index of", c->machine, e);
    if (list)
        closedir(list);
    return result;
}

/* Removes the directory of a copy whose facts are all known here. If the program is killed
 * meanwhile, an empty index is left, so that no machine waits for the removed files. */
static int remove_copy(struct folder *f, struct copy *c, struct err *e)
{
    int machine, result = write_index(f, c, STR(""), e);

    for (size_t i = 0; result == 0 && i < c->segments.count; i++)
        result = remove_segment(f, c, &c->segments.at[i], e);
    for (size_t i = 0; result == 0 && i < c->strays.count; i++)
        result = remove_segment(f, c, &c->strays.at[i], e);
    if (result < 0 || remove_indexes(f, c, e) < 0)
        return -1;
    machine = dir_open_below(f->fd, c->machine, f->job->place, NULL);
    /* The machine may have copies of other histories there. */
    if (machine < 0 || unlinkat(machine, buf_c(&f->name), AT_REMOVEDIR) < 0 ||
        (unlinkat(f->fd, c->machine, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY && errno != EEXIST))
        result = folder_error(f, "remove directory", c->machine, e);
    file_close(machine);
    return result;
}

/* Removes the directory that is to be retired, and those of former names that no other home
 * directory has written to. */
static int remove_copies(struct folder *f, struct err *e)
{
    for (size_t i = 0; i < f->count; i++) {
        struct copy *c = &f->copies[i];
        bool retired = is_retired(f, c);
        struct err why = ERR_INIT;
        size_t unknown;

        if (c->fd < 0 || is_own(f, c) ||
            !(retired || (c->indexed && is_former(f, c) && is_our_run(f, c->run) && !c->left_out &&
                          !c->waits)))
            continue;
        unknown = count_unknown(f, c);
        if (unknown == 0 && c->left_out)
            unknown = 1; /* its index */
        if (unknown == 0 && remove_copy(f, c, e) < 0)
            return -1;
        if (unknown > 0 && retired) {
            err_set(&why, ERR_FAILURE,
                    "'%s/%s' stays: %zu file%s with lines that are not here cannot be read",
                    f->job->place, c->machine, unknown, unknown == 1 ? "" : "s");
            add_fault(f, &why);
        }
    }
    return 0;
}

/* ---- one run ---- */

static void report_waiting(const struct folder *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct copy *c = &f->copies[i];
        bool late = time_now() - c->written > LATE_MOST && !is_own(f, c);

        if (c->waits && !is_retired(f, c))
            merge_warn(f->merge,
                       late ? "lines in '%s/%s' have been waiting for a day for files that have "
                              "not arrived: if that machine is gone, remove it with --retire"
                            : "the newest lines in '%s/%s' wait for files that have not arrived "
                              "yet",
                       f->job->place, c->machine);
    }
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

/* Counts the lines that no machine had in the folder. */
static int count_sent_lines(struct folder *f, struct err *e)
{
    uint64_t gone = merge_counts(f->merge)->gone;

    for (size_t i = f->lines_then > gone ? f->lines_then - (size_t)gone : 0;
         i < merge_facts(f->merge, FACT_LINE); i++)
        if (!digests_have(&f->known, merge_digest(f->merge, FACT_LINE, i)) &&
            merge_count_sent(f->merge, i, e) < 0)
            return -1;
    return 0;
}

/* Reads the folder, and writes what this machine has. */
static int exchange_segments(struct folder *f, struct err *e)
{
    struct err why = ERR_INIT;
    struct copy *own;

    read_folder_state(f);
    if (leave_strange(f, e) < 0)
        return -1;
    own = find_own(f);
    if (own)
        own->waits = false; /* this machine writes the rest of a cut index again */
    /* In the directories of others a segment that no index names may be on its way, or be written
     * just now. */
    for (size_t i = 0; i < f->count; i++) {
        struct copy *c = &f->copies[i];
        int64_t before = is_tidied(f, c) ? INT64_MAX : time_now() - LATE_MOST;

        if (!c->left_out && find_strays(f, c, before, &why) < 0)
            leave_out(f, c, &why);
    }
    /* The deletions come first, so that no line is stored that is erased then. */
    for (enum fact_kind kind = 0; kind < FACT_KINDS; kind++) {
        for (size_t i = 0; i < f->count; i++)
            if (read_copy(f, &f->copies[i], kind, e) < 0 ||
                read_strays(f, &f->copies[i], kind, e) < 0)
                return -1;
        if (merge_store(f->merge, e) < 0)
            return -1;
    }
    digests_sort(&f->known);
    if (f->unwritable && !f->job->options.dry_run)
        return 0;
    if (count_sent_lines(f, e) < 0)
        return -1;
    if (f->job->options.dry_run)
        return 0;
    if (write_copy(f, e) < 0 || write_folder_state(f, e) < 0)
        return -1;
    return remove_copies(f, e);
}

static int sync_folder(struct folder *f, struct err *e)
{
    struct sync_job *job = f->job;
    struct buf name = BUF_INIT(BUF_SMALL);
    int result = -1;

    /* The same folder can have several paths, so the runs of all folders are in one file. */
    buf_addf(&name, "%016" PRIx64 ".runs", checksum(str_of(job->name), 0));
    f->runs_path = sync_state_file(job->history, buf_c(&name), e);
    buf_release(&name);
    if (f->runs_path && file_read_state(f->runs_path, &f->runs, e) >= 0)
        f->merge = merge_open(job->history, &job->options, e);
    if (f->merge)
        merge_report_refused(f->merge);
    if (f->merge && set_state_path(f, e) == 0 && find_copies(f, e) == 0) {
        result = exchange_segments(f, e);
        if (result < 0) {
            merge_counts(f->merge)->sent = 0; /* how many of them are there is not known */
            if (f->fault.kind != ERR_NONE)
                merge_warn(f->merge, "%s", err_text(&f->fault));
        }
        report_waiting(f);
        if (result == 0)
            result = merge_finish(f->merge, e);
        job->count = *merge_counts(f->merge);
        if (result == 0 && f->fault.kind != ERR_NONE)
            result = err_set(e, f->fault.kind, "%s", err_text(&f->fault));
    }
    merge_close(f->merge);
    return result;
}

int sync_dir(struct sync_job *job, struct err *e)
{
    struct folder f = {.job = job,
                       .lock = {.fd = -1},
                       .path = BUF_INIT(BUF_LINE),
                       .former = BUF_INIT(NAMES_MOST),
                       .name = BUF_INIT(BUF_SMALL),
                       .runs = BUF_INIT(BUF_SMALL),
                       .run = BUF_INIT(BUF_SMALL)};
    int result = -1;

    f.fd = open(job->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f.fd < 0)
        return err_sys(e, errno, "cannot open directory '%s'", job->place);
    /* Not every file system allows a colon. */
    for (const char *c = job->name; *c; c++)
        buf_add_byte(&f.name, *c == '/' ? '%' : *c == ':' ? '=' : *c);
    if (job->options.dry_run || (sync_state_make(job->history, e) == 0 && lock_machine(&f, e) == 0))
        f.machine = sync_machine(job->history, job->options.dry_run ? MACHINE_UNKEPT : MACHINE_KEPT,
                                 &f.former, e);
    if (f.machine && job->retire && strcmp(f.machine, job->retire) == 0)
        err_set(e, ERR_USAGE, "'%s' is the name of this machine", job->retire);
    else if (f.machine)
        result = sync_folder(&f, e);
    append_close(&f.lock);
    for (size_t i = 0; i < f.count; i++) {
        file_close(f.copies[i].fd);
        free(f.copies[i].machine);
        free(f.copies[i].segments.at);
        free(f.copies[i].strays.at);
        buf_release(&f.copies[i].index);
    }
    close(f.fd);
    free(f.copies);
    hash_map_release(&f.seen);
    digests_release(&f.known);
    err_release(&f.fault);
    free(f.machine);
    free(f.runs_path);
    free(f.state);
    buf_release(&f.path);
    buf_release(&f.former);
    buf_release(&f.name);
    buf_release(&f.runs);
    buf_release(&f.run);
    return result;
}
