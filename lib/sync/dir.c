/*
 * A directory that another program carries from machine to machine.
 *
 *     DIR/MACHINE/NAME/deleted.jsonl        deletions, as in FILE.deleted
 *     DIR/MACHINE/NAME/lines-000001.jsonl   lines of the history, and further files of about 8 MiB
 *
 * A machine writes below its own name alone, and adds only what no machine has written there
 * before. All files are appended to, except that a machine rewrites its own if lines of them are
 * deleted: they become empty lines, so that the numbers of the others stay. So the programs that
 * carry the files never find two versions of one, and carry a full file only once.
 *
 * The lines that are added in one run follow a line
 * `{"chathist_sync":1,"name":NAME,"run":RUN,"after": {MACHINE:[FILE,LINES],…}}`, which says how
 * much the writer had read of each other machine. A reader takes the lines only after it has read
 * as much, because files may arrive in another order. So a conversation that was continued on
 * another machine is never stored before its beginning. A machine whose directory is absent is not
 * waited for. A machine whose files vanished, and were read further by others than it has them now,
 * begins a file with a higher number, so that no machine waits for lines that never come. RUN is a
 * random text. If the last run that wrote to the files of this machine is none of the last runs
 * that this home directory remembers, a copy of it is in use elsewhere under the same name: then
 * this one takes another name. If a file cannot be used, it and the later ones of its machine are
 * left out, and no lines of others wait for them.
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
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/system.h"
#include "chathist/history/append.h"
#include "chathist/history/deletions.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/sync/sync.h"

#define DELETED "deleted.jsonl"
#define LINES_BEGIN "lines-"
#define LINES_END ".jsonl"
/* Files that are missing in a row are made again, up to this many. */
#define MISSING_MAX 1000
/* A file that has this size is continued in another one. */
#define FULL ((uint64_t)8 << 20)
#define PIECE ((size_t)1 << 20)
#define VERSION 1
/* The length of the name of a run, and how many names a home directory remembers. */
#define RUN_DIGITS 16
#define RUNS_KEPT ((size_t)1000)

/* A file of a machine. Number 0 is that of the deletions. */
struct segment {
    unsigned number;
    uint64_t end;   /* it has been read up to here */
    uint64_t lines; /* the number of lines up to `end` */
    bool bad;       /* a line of it is damaged: `end` and `lines` stay before that line */
};

/* The files of a machine. */
struct log {
    char *machine;
    int fd; /* the directory DIR/MACHINE/NAME */
    struct segment *segments;
    size_t count, cap;
    size_t at;       /* the segment that is being read */
    bool own;        /* of this machine */
    bool left_out;   /* a file cannot be used: it and those after it are not read */
    char *waits_for; /* the machine whose files must arrive first; NULL: none */
};

struct folder {
    struct sync_job *job;
    struct merge *merge;
    int fd;
    char *machine;
    struct buf name; /* of the directories of this history */
    struct log *logs;
    size_t count, cap;
    struct digests known; /* the lines read in the folder in this run */
    bool whole;           /* everything is read and compared */
    bool own_first; /* the files of this machine wait for nothing, and nothing waits for them */
    uint64_t asked_number, asked_lines; /* what other machines have read of this one, at most */
    size_t from,
        del_from; /* the numbers of the first line and deletion that may have to be written */
    struct append lock;
    int own_fd;       /* the directory DIR/MACHINE of this machine, locked; -1: none */
    struct err fault; /* why the first machine is left out */
    char *runs_path;  /* the file of the runs that this home directory remembers */
    struct buf runs;  /* its text: a line each, the last one first */
    struct buf run;   /* of this run, once something is written */
    struct buf last;  /* the last run that was read in the files of this machine */
};

/* ---- names ---- */

static void add_file_name(struct buf *out, unsigned number)
{
    buf_clear(out);
    if (number == 0)
        buf_add_c(out, DELETED);
    else
        buf_addf(out, LINES_BEGIN "%06u" LINES_END, number);
}

/* Returns whether a file is one of ours, and sets its number. */
static bool is_file_name(const char *name, unsigned *number)
{
    struct buf form = BUF_INIT(BUF_SMALL);
    bool is = strcmp(name, DELETED) == 0;

    *number = 0;
    if (!is && strncmp(name, LINES_BEGIN, strlen(LINES_BEGIN)) == 0) {
        *number = (unsigned)strtoul(name + strlen(LINES_BEGIN), NULL, 10);
        add_file_name(&form, *number);
        is = *number > 0 && strcmp(name, buf_c(&form)) == 0;
    }
    buf_release(&form);
    return is;
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

static int folder_error(const struct folder *f, const char *what, const char *name, struct err *e)
{
    return err_sys(e, errno, "cannot %s '%s/%s'", what, f->job->place, name);
}

/* ---- finding the files ---- */

static int by_number(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static struct segment *find_segment(const struct log *l, unsigned number)
{
    struct segment key = {.number = number};

    return l->count == 0 ? NULL : bsearch(&key, l->segments, l->count, sizeof key, by_number);
}

static void add_segment(struct log *l, unsigned number)
{
    l->segments = mem_grow(l->segments, &l->cap, l->count + 1, sizeof *l->segments);
    l->segments[l->count++] = (struct segment){.number = number};
}

/* Leaves out the rest of a machine's files, because one of them cannot be used. The other machines
 * are synchronised. The first such error becomes that of the run, the others are warnings. */
static void leave_out(struct folder *f, struct log *l, struct err *why)
{
    l->left_out = true;
    l->waits_for = NULL;
    if (f->fault.kind == ERR_NONE)
        err_set(&f->fault, ERR_FAILURE, "%s", err_text(why));
    else
        merge_warn(f->merge, "%s", err_text(why));
    err_release(why);
}

/* Returns 0, or -1 with *e set if the directory cannot be read. */
static int find_segments(const struct folder *f, struct log *l, struct err *e)
{
    DIR *list = file_open_dir(l->fd, l->machine);
    struct dirent *entry;
    unsigned number;
    int result = 0;

    if (!list)
        return folder_error(f, "read", l->machine, e);
    for (errno = 0; (entry = readdir(list)); errno = 0)
        if (is_file_name(entry->d_name, &number))
            add_segment(l, number);
    /* A file that is not seen would be taken for one that vanished. */
    if (errno != 0)
        result = folder_error(f, "read", l->machine, e);
    closedir(list);
    if (l->count > 0)
        qsort(l->segments, l->count, sizeof *l->segments, by_number);
    return result;
}

/* Opens a directory, never through a link: the folder may come from another machine. */
static int open_below(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int find_logs(struct folder *f, struct err *e)
{
    DIR *list = file_open_dir(f->fd, f->job->place);
    struct dirent *entry;
    struct err why = ERR_INIT;
    int result = list ? 0 : err_sys(e, errno, "cannot read '%s'", f->job->place);

    while (list && result == 0) {
        errno = 0;
        entry = readdir(list);
        if (!entry) {
            if (errno != 0)
                result = err_sys(e, errno, "cannot read '%s'", f->job->place);
            break;
        }

        int machine = is_machine_name(entry->d_name) ? open_below(f->fd, entry->d_name) : -1;
        int fd = machine >= 0 ? open_below(machine, buf_c(&f->name)) : -1;

        file_close(machine);
        if (fd < 0)
            continue;
        f->logs = mem_grow(f->logs, &f->cap, f->count + 1, sizeof *f->logs);
        f->logs[f->count] = (struct log){
            .machine = mem_text(entry->d_name),
            .fd = fd,
            .own = strcmp(entry->d_name, f->machine) == 0,
        };
        if (find_segments(f, &f->logs[f->count++], &why) < 0)
            leave_out(f, &f->logs[f->count - 1], &why);
    }
    if (list)
        closedir(list);
    return result;
}

static struct log *find_log(const struct folder *f, struct str machine)
{
    for (size_t i = 0; i < f->count; i++)
        if (str_eq_c(machine, f->logs[i].machine))
            return &f->logs[i];
    return NULL;
}

/* ---- positions of earlier runs ---- */

static bool get_number(struct str value, uint64_t *n)
{
    int64_t number;

    if (!json_int(value, &number) || number < 0)
        return false;
    *n = (uint64_t)number;
    return true;
}

/* Sets `path` to that of a file of a machine, for messages. */
static void set_path(struct buf *path, const struct folder *f, const struct log *l, unsigned number)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    add_file_name(&name, number);
    buf_clear(path);
    buf_addf(path, "%s/%s/%s/%s", f->job->place, l->machine, buf_c(&f->name), buf_c(&name));
    buf_release(&name);
}

/* Opens a file of a machine. Returns -1 with *e set. */
static int open_segment(const struct folder *f, const struct log *l, unsigned number, int flags,
                        struct err *e)
{
    struct buf path = BUF_INIT(BUF_SMALL);
    int fd;

    set_path(&path, f, l, number);
    fd = file_open_regular_at(l->fd, buf_c(&path), flags, 0600, NULL, NULL, e);
    buf_release(&path);
    return fd;
}

/* Takes a line of the state about a file. Returns whether the file still begins with what was
 * read. */
static bool take_segment(struct folder *f, struct str object)
{
    static const char *const keys[] = {"machine", "file", "end", "lines", "check"};
    struct str v[5];
    struct log *l;
    struct segment *s = NULL;
    uint64_t file, end, lines, check;
    bool good;
    int fd;

    json_pick(object, keys, v, 5);
    if (!get_number(v[1], &file) || !get_number(v[2], &end) || !get_number(v[3], &lines) ||
        !digest_parse(json_body(v[4]), &check))
        return false;
    l = find_log(f, json_body(v[0]));
    if (l)
        s = find_segment(l, (unsigned)file);
    fd = s ? open_segment(f, l, s->number, O_RDONLY, NULL) : -1;
    good = fd >= 0 && merge_sample(fd, end) == check;
    if (good) {
        s->end = end;
        s->lines = lines;
    }
    file_close(fd);
    return good;
}

/* Takes the line of the state about the history. */
static bool take_history(struct folder *f, struct str object)
{
    static const char *const keys[] = {"lines", "check", "deletions", "deletions_check"};
    struct str v[4];
    uint64_t lines, check, deletions, deletions_check;

    json_pick(object, keys, v, 4);
    if (!get_number(v[0], &lines) || !digest_parse(json_body(v[1]), &check) ||
        !get_number(v[2], &deletions) || !digest_parse(json_body(v[3]), &deletions_check) ||
        merge_prefix(f->merge, lines) != check || deletions > merge_deletions(f->merge) ||
        merge_deletion_prefix(f->merge, deletions) != deletions_check)
        return false;
    f->from = lines;
    f->del_from = deletions;
    return true;
}

/* Reads the state of the last run. If anything differs, everything is read again: a file may have
 * lost lines that are to be written again. */
static void read_state(struct folder *f, const char *path)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest, object;
    bool good = file_read_state(path, &text, NULL) > 0, first = true;

    for (rest = buf_str(&text); good && rest.n > 0; first = false)
        good = json_check(str_cut(&rest, '\n'), &object, NULL) &&
               (first ? take_history(f, object) : take_segment(f, object));
    buf_release(&text);
    if (good && !first)
        return;
    f->whole = true;
    f->from = f->del_from = 0;
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < f->logs[i].count; k++)
            f->logs[i].segments[k].end = f->logs[i].segments[k].lines = 0;
}

static void add_hex(struct buf *out, const char *key, uint64_t n)
{
    json_add_key(out, key);
    buf_addf(out, "\"%016" PRIx64 "\"", n);
}

static int write_state(struct folder *f, const char *path, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    size_t lines = merge_lines(f->merge), deletions = merge_deletions(f->merge);
    int result = 0;

    buf_addf(&text, "{\"lines\":%zu", lines);
    add_hex(&text, "check", merge_prefix(f->merge, lines));
    buf_addf(&text, ",\"deletions\":%zu", deletions);
    add_hex(&text, "deletions_check", merge_deletion_prefix(f->merge, deletions));
    buf_add_c(&text, "}\n");
    for (size_t i = 0; i < f->count; i++)
        for (size_t k = 0; k < f->logs[i].count; k++) {
            const struct log *l = &f->logs[i];
            const struct segment *s = &l->segments[k];
            int fd = s->end > 0 ? open_segment(f, l, s->number, O_RDONLY, NULL) : -1;

            if (fd < 0)
                continue;
            buf_addf(&text,
                     "{\"machine\":\"%s\",\"file\":%u,\"end\":%" PRIu64 ",\"lines\":%" PRIu64,
                     l->machine, s->number, s->end, s->lines);
            add_hex(&text, "check", merge_sample(fd, s->end));
            buf_add_c(&text, "}\n");
            close(fd);
        }
    result = file_replace_at(FILE_CWD, path, buf_str(&text), false, e);
    buf_release(&text);
    return result;
}

/* ---- reading ---- */

/* Has a log been read up to this line? */
static bool has_read(const struct log *l, uint64_t number, uint64_t lines)
{
    const struct segment *s;

    if (l->count == 0)
        return false;
    s = &l->segments[l->at < l->count ? l->at : l->count - 1];
    return s->number > number || (s->number == number && s->lines >= lines);
}

/* Notes that another machine has read this one up to a line. */
static void note_asked(struct folder *f, uint64_t number, uint64_t lines)
{
    if (number < f->asked_number || (number == f->asked_number && lines <= f->asked_lines))
        return;
    f->asked_number = number;
    f->asked_lines = lines;
}

/* Returns 0; or -1 with *e set if a batch is of another history, or of a later version. */
static int check_head(const struct folder *f, const struct log *l, const struct segment *s,
                      struct str version, struct str name, struct err *e)
{
    struct buf path = BUF_INIT(BUF_SMALL);
    int64_t number = 0;
    int result = 0;

    set_path(&path, f, l, s->number);
    if (!json_int(version, &number) || number != VERSION)
        result = err_set(e, ERR_FAILURE, "left out '%s': a later version of hist-sync wrote it",
                         buf_c(&path));
    else if (!json_is_text(name, f->job->name))
        result = err_set(e, ERR_FAILURE, "left out '%s': it is of another history than '%s'",
                         buf_c(&path), f->job->name);
    buf_release(&path);
    return result;
}

/* Reads the line at the beginning of a batch. Returns 1, or 0 if other files must be read first, or
 * if this one is left out. */
static int take_head(struct folder *f, struct log *l, const struct segment *s, struct str object)
{
    static const char *const keys[] = {"chathist_sync", "name", "after", "run"};
    struct str v[4];
    struct json_iter it;
    struct err why = ERR_INIT;

    json_pick(object, keys, v, 4);
    if (check_head(f, l, s, v[0], v[1], &why) < 0) {
        leave_out(f, l, &why);
        return 0;
    }
    if (l->own)
        buf_set(&f->last, json_body(v[3]));
    for (it = json_iter(v[2]); json_next(&it);) {
        const struct log *other = find_log(f, it.key);
        bool to_own = str_eq_c(it.key, f->machine);
        uint64_t number, lines;

        if (!get_number(json_at(it.value, 0), &number) || !get_number(json_at(it.value, 1), &lines))
            continue;
        if (to_own && !l->own)
            note_asked(f, number, lines);
        if (other && other != l && !other->left_out && !(f->own_first && (l->own || to_own)) &&
            !has_read(other, number, lines)) {
            l->waits_for = other->machine;
            return 0;
        }
    }
    return 1;
}

/* Takes a line of a file. Returns 1; 0 if it has to wait, or the file is left out; -1 with *e
 * set. */
static int take_line(struct folder *f, struct log *l, struct segment *s, const struct line *line,
                     struct err *e)
{
    struct str object;
    uint64_t refused = merge_counts(f->merge)->refused;

    if (line->text.n == 0)
        return 1; /* it was erased */
    if (!line->too_long && json_check(line->text, &object, NULL)) {
        /* A message may have a field of this name, too. */
        if (!json_is_null(json_get(object, "chathist_sync")) &&
            json_is_null(json_get(object, "session_id")))
            return take_head(f, l, s, object);
        digests_add(&f->known, merge_digest_of(object));
        return merge_add(f->merge, object, e) < 0 ? -1 : 1;
    }
    /* The file is still being written, or is damaged: it is read again by each run. */
    merge_counts(f->merge)->refused = refused + !s->bad;
    s->bad = true;
    return 1;
}

/* Reads the new lines of a file. Returns 1 if it was read to its end, 0 if a line has to wait or
 * the file is left out, -1 with *e set. */
static int read_lines(struct folder *f, struct log *l, struct segment *s, struct err *e)
{
    struct buf path = BUF_INIT(BUF_SMALL);
    struct err why = ERR_INIT;
    struct scan scan;
    struct line line;
    int result, took = 1;

    set_path(&path, f, l, s->number);
    result = scan_open(&scan, l->fd, buf_c(&path), SCAN_FORWARD, &why);
    buf_release(&path);
    if (result < 0) {
        leave_out(f, l, &why);
        return 0;
    }
    scan_from(&scan, (off_t)s->end);
    while ((result = scan_line(&scan, &line, &why)) > 0 && line.terminated) {
        took = take_line(f, l, s, &line, e);
        if (took <= 0)
            break;
        if (!s->bad) {
            s->end = (uint64_t)scan_offset(&scan);
            s->lines++;
        }
    }
    scan_close(&scan);
    if (result >= 0)
        return took;
    leave_out(f, l, &why);
    return 0;
}

/* Reads the new deletions of a machine. Returns 0, or -1 with *e set. */
static int read_deleted(struct folder *f, const struct log *l, struct segment *s, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), session = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_SMALL);
    int fd = open_segment(f, l, 0, O_RDONLY, e);
    struct str rest;

    if (fd < 0)
        return -1;
    if (lseek(fd, (off_t)s->end, SEEK_SET) < 0 || file_read_all(fd, &text) < 0) {
        close(fd);
        buf_release(&text);
        return folder_error(f, "read", l->machine, e);
    }
    close(fd);
    rest = buf_str(&text);
    while (deletions_next(&rest, &session, &id)) {
        digests_add(&f->known, merge_deletion_digest(buf_str(&session), buf_str(&id)));
        (void)merge_delete(f->merge, buf_str(&session), buf_str(&id));
    }
    s->end += text.len - rest.n;
    buf_release(&text);
    buf_release(&session);
    buf_release(&id);
    return 0;
}

/* Reads a machine's files as far as possible. Returns whether something was read, or -1. */
static int read_log(struct folder *f, struct log *l, struct err *e)
{
    int some = 0;

    l->waits_for = NULL;
    while (l->at < l->count && !l->left_out) {
        struct segment *s = &l->segments[l->at];
        uint64_t before = s->end;

        /* A file is missing, perhaps only until it arrives. */
        if (s->number > 0 && s->number != (l->at > 0 ? l->segments[l->at - 1].number : 0) + 1 &&
            !(f->own_first && l->own)) {
            l->waits_for = l->machine;
            break;
        }
        int result = s->number == 0 ? 1 : read_lines(f, l, s, e);

        if (result < 0)
            return -1;
        some |= s->end > before || l->left_out;
        if (result == 0)
            break;
        l->at++;
        some = 1;
    }
    return some;
}

/* Returns whether the files of this machine wait, or something waits for them. Only this machine
 * knows that nothing more of them will arrive; and it may not write to a file that it has not
 * read. */
static bool own_waits(const struct folder *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct log *l = &f->logs[i];

        if (l->waits_for && (l->own || strcmp(l->waits_for, f->machine) == 0))
            return true;
    }
    return false;
}

/* Reads everything new: the deletions first, so that no line is stored that is erased then. */
static int read_all(struct folder *f, struct err *e)
{
    struct err why = ERR_INIT;
    int some = 1;

    for (size_t i = 0; i < f->count; i++) {
        struct log *l = &f->logs[i];

        if (l->count > 0 && l->segments[0].number == 0 &&
            read_deleted(f, l, &l->segments[0], &why) < 0)
            leave_out(f, l, &why);
    }
    if (merge_store(f->merge, e) < 0)
        return -1;
    while (some > 0) {
        some = 0;
        for (size_t i = 0; some >= 0 && i < f->count; i++) {
            int result = read_log(f, &f->logs[i], e);

            some = result < 0 ? -1 : some | result;
        }
        if (some == 0 && !f->own_first && own_waits(f))
            some = f->own_first = true;
    }
    if (some < 0)
        return -1;
    digests_sort(&f->known);
    return merge_store(f->merge, e);
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

/* Begins to write: remembers this run, before a file has it. */
static int begin_run(struct folder *f, struct err *e)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str before = buf_str(&f->runs);
    int result;

    if (f->run.len > 0)
        return 0;
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

/* Returns whether another home directory has written to the files of this machine. */
static bool is_copied(const struct folder *f)
{
    const struct log *own = find_log(f, str_of(f->machine));

    return own && !own->left_out && own->at == own->count && f->last.len > 0 && f->runs.len > 0 &&
           !f->job->options.dry_run && !str_find(buf_str(&f->runs), buf_str(&f->last));
}

/* Takes a new name, if a copy of this home directory has the same one. What was read stays read. */
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
    find_log(f, str_of(f->machine))->own = false;
    free(f->machine);
    f->machine = name;
    f->asked_number = f->asked_lines = 0;
    return 0;
}

/* ---- writing ---- */

/* The files of this machine, while something is added to them. */
struct writer {
    struct folder *f;
    struct log *log;
    int fd;             /* the last file; -1: none is open */
    struct segment *at; /* the same */
    struct buf pending;
    uint64_t lines; /* in `pending` */
};

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
    f->logs = mem_grow(f->logs, &f->cap, f->count + 1, sizeof *f->logs);
    f->logs[f->count++] = (struct log){.machine = mem_text(f->machine), .fd = fd, .own = true};
    return 0;
}

/* Adds the line at the beginning of a batch. A file without lines waits for nothing. */
static void add_head(struct writer *w, bool lines)
{
    struct buf *out = &w->pending;
    bool first = true;

    buf_addf(out, "{\"chathist_sync\":%d", VERSION);
    json_add_member(out, "name", str_of(w->f->job->name));
    json_add_member(out, "run", buf_str(&w->f->run));
    json_add_key(out, "after");
    buf_add_byte(out, '{');
    for (size_t i = 0; lines && i < w->f->count; i++) {
        const struct log *l = &w->f->logs[i];
        const struct segment *s =
            l->count == 0 ? NULL : &l->segments[l->at < l->count ? l->at : l->count - 1];

        if (l->own || !s || s->number == 0)
            continue;
        buf_addf(out, "%s\"%s\":[%u,%" PRIu64 "]", first ? "" : ",", l->machine, s->number,
                 s->lines);
        first = false;
    }
    buf_add_c(out, "}}\n");
    w->lines++;
}

static int write_pending(struct writer *w, struct err *e)
{
    if (w->pending.len == 0)
        return 0;
    if (file_write_all(w->fd, w->pending.data, w->pending.len) < 0)
        return folder_error(w->f, "write to", w->f->machine, e);
    w->at->end += w->pending.len;
    w->at->lines += w->lines;
    w->lines = 0;
    buf_clear(&w->pending);
    return 0;
}

static int close_segment(struct writer *w, struct err *e)
{
    int result = w->fd < 0 ? 0 : write_pending(w, e);

    if (w->fd >= 0 && result == 0 && system_sync(w->fd) < 0)
        result = folder_error(w->f, "write to", w->f->machine, e);
    file_close(w->fd);
    w->fd = -1;
    return result;
}

/* Begins the file `number`, with the line at the beginning of a batch. */
static int begin_segment(struct writer *w, unsigned number, bool lines, struct err *e)
{
    if (close_segment(w, e) < 0 || (number > 0 && begin_run(w->f, e) < 0))
        return -1;
    w->fd = open_segment(w->f, w->log, number, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, e);
    if (w->fd < 0)
        return -1;
    add_segment(w->log, number);
    qsort(w->log->segments, w->log->count, sizeof *w->log->segments, by_number);
    w->at = find_segment(w->log, number);
    w->log->at = w->log->count;
    if (number > 0)
        add_head(w, lines);
    if (system_sync(w->log->fd) < 0 && errno != EINVAL)
        return folder_error(w->f, "write to", w->f->machine, e);
    return 0;
}

/* Returns whether a file has complete lines after `end`, or cannot be read. */
static bool has_unread(int fd, uint64_t end)
{
    char bytes[4096];
    ssize_t n;

    while ((n = file_pread_full(fd, bytes, sizeof bytes, (off_t)end)) > 0) {
        if (memchr(bytes, '\n', (size_t)n))
            return true;
        end += (uint64_t)n;
    }
    return n < 0;
}

/* Continues the last file, or begins another one. A line that a killed program has not finished is
 * removed first: no other machine has read it. Complete lines that have not been read, because the
 * files of another machine are missing, stay: they may be the only copy. */
static int continue_segment(struct writer *w, unsigned number, struct err *e)
{
    struct segment *s = find_segment(w->log, number);

    if (!s)
        return begin_segment(w, number, true, e);
    /* The deletions are in one file, of whatever size. */
    if (number > 0 && (s->bad || s->end >= FULL))
        return begin_segment(w, number + 1, true, e);
    w->fd = open_segment(w->f, w->log, number, O_RDWR | O_APPEND, e);
    w->at = s;
    if (w->fd < 0 || (number > 0 && begin_run(w->f, e) < 0))
        return -1;
    if (number > 0 && has_unread(w->fd, s->end))
        return begin_segment(w, number + 1, true, e);
    if (ftruncate(w->fd, (off_t)s->end) < 0)
        return folder_error(w->f, "write to", w->f->machine, e);
    if (number > 0)
        add_head(w, true);
    return 0;
}

static unsigned last_number(const struct log *l)
{
    return l->count == 0 ? 0 : l->segments[l->count - 1].number;
}

static int write_line(struct writer *w, struct str line, struct err *e)
{
    unsigned last = last_number(w->log);

    if (w->fd < 0 && continue_segment(w, last > 0 ? last : 1, e) < 0)
        return -1;
    if (w->at->end + w->pending.len >= FULL && begin_segment(w, w->at->number + 1, true, e) < 0)
        return -1;
    buf_add_str(&w->pending, line);
    buf_add_byte(&w->pending, '\n');
    w->lines++;
    return w->pending.len >= PIECE ? write_pending(w, e) : 0;
}

static int write_deletions(struct writer *w, struct err *e)
{
    struct folder *f = w->f;

    for (size_t i = f->del_from; i < merge_deletions(f->merge); i++) {
        struct str session, id;

        merge_deletion(f->merge, i, &session, &id);
        if (digests_have(&f->known, merge_deletion_digest(session, id)))
            continue;
        if (w->fd < 0 && continue_segment(w, 0, e) < 0)
            return -1;
        deletions_add(&w->pending, session, id);
    }
    return close_segment(w, e);
}

static int write_lines(struct writer *w, struct err *e)
{
    struct folder *f = w->f;
    struct buf line = BUF_INIT(BUF_LINE);
    int result = 0;

    for (size_t i = f->from; result == 0 && i < merge_lines(f->merge); i++) {
        if (digests_have(&f->known, merge_digest(f->merge, i)))
            continue;
        merge_counts(f->merge)->sent++;
        if (f->job->options.dry_run)
            continue;
        result = merge_read(f->merge, i, &line, e);
        if (result == 0)
            result = write_line(w, buf_str(&line), e);
    }
    buf_release(&line);
    if (result == 0)
        result = close_segment(w, e);
    /* How many of them are there is not known then. */
    if (result < 0)
        merge_counts(f->merge)->sent = 0;
    return result < 0 ? -1 : 0;
}

/* ---- erasing ---- */

/* Copies a file, with an empty line for each line that is deleted, so that the numbers of the
 * others stay. A line that is too long to be a message becomes empty, too. Returns how many are
 * deleted and sets *end to the size of the copy, or returns -1. */
static int copy_kept(struct folder *f, const struct log *l, struct file_replace *r, uint64_t *end,
                     struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct buf text = BUF_INIT(SIZE_MAX);
    struct scan scan;
    struct line line;
    int result, erased = 0;

    if (scan_open(&scan, l->fd, r->path, SCAN_FORWARD, e) < 0)
        return -1;
    while ((result = scan_line(&scan, &line, e)) > 0 && line.terminated) {
        if (!line.too_long) {
            if (message_parse(&m, line.text) && merge_is_deleted(f->merge, m.session_id, m.id))
                erased++;
            else
                buf_add_str(&text, line.text);
        }
        buf_add_byte(&text, '\n');
    }
    *end = text.len;
    if (result >= 0 && erased > 0 && file_write_all(r->fd, text.data, text.len) < 0)
        result = folder_error(f, "write to", l->machine, e);
    scan_close(&scan);
    message_release(&m);
    buf_release(&text);
    return result < 0 ? -1 : erased;
}

/* Erases deleted lines from a file of this machine. Returns 0, or -1 with *e set. */
static int erase_from(struct folder *f, const struct log *l, struct segment *s, struct err *e)
{
    struct buf path = BUF_INIT(BUF_SMALL);
    struct file_replace r;
    uint64_t end;
    int result = -1;

    set_path(&path, f, l, s->number);
    /* What a killed program has left of such files. */
    (void)file_sweep(l->fd, buf_c(&path), true, true, NULL);
    if (file_replace_begin_at(&r, l->fd, buf_c(&path), e) == 0) {
        result = copy_kept(f, l, &r, &end, e);
        if (result <= 0)
            file_replace_drop(&r);
        else if ((result = file_replace_end(&r, e)) == 0)
            s->end = end;
    }
    buf_release(&path);
    return result;
}

/* Erases deleted lines from the files of this machine. */
static int erase_own(struct writer *w, struct err *e)
{
    if (merge_deletions(w->f->merge) == w->f->del_from)
        return 0;
    for (size_t i = 0; i < w->log->count; i++)
        if (w->log->segments[i].number > 0 && erase_from(w->f, w->log, &w->log->segments[i], e) < 0)
            return -1;
    return 0;
}

/* Returns 0, or -1 with *e set if more files of this machine are missing than can have been lost:
 * then a file has a name that no program of ours gave it. */
static int check_numbers(const struct writer *w, struct err *e)
{
    unsigned last = last_number(w->log);

    if (last < w->log->count + MISSING_MAX)
        return 0;
    return err_set(e, ERR_FAILURE,
                   "hist-sync did not write '" LINES_BEGIN "%u" LINES_END "' in '%s/%s': remove it",
                   last, w->f->job->place, w->log->machine);
}

/* Makes the files of this machine again that are missing between others, without lines: readers
 * wait for them. */
static int fill_gaps(struct writer *w, struct err *e)
{
    for (unsigned n = 1; n < last_number(w->log); n++)
        if (!find_segment(w->log, n) && begin_segment(w, n, false, e) < 0)
            return -1;
    return close_segment(w, e);
}

/* Have other machines read more of this one than there is now? */
static bool is_short(const struct folder *f)
{
    const struct log *l = find_log(f, str_of(f->machine));
    unsigned last = l ? last_number(l) : 0;

    return f->asked_number > 0 && f->asked_number < (uint64_t)last + MISSING_MAX &&
           (!l || last < f->asked_number || !has_read(l, f->asked_number, f->asked_lines));
}

/* Begins a file after all that other machines have read. */
static int begin_after_asked(struct writer *w, struct err *e)
{
    if (!is_short(w->f))
        return 0;
    if (begin_segment(w, (unsigned)w->f->asked_number + 1, true, e) < 0)
        return -1;
    return close_segment(w, e);
}

static bool has_news(const struct folder *f)
{
    for (size_t i = f->from; i < merge_lines(f->merge); i++)
        if (!digests_have(&f->known, merge_digest(f->merge, i)))
            return true;
    return f->whole || is_short(f) || merge_deletions(f->merge) > f->del_from;
}

static int write_all(struct folder *f, struct err *e)
{
    struct writer w = {.f = f, .fd = -1, .pending = BUF_INIT(SIZE_MAX)};
    int result = -1;

    if (f->job->options.dry_run)
        return write_lines(&w, e);
    if (!has_news(f))
        return 0;
    w.log = find_log(f, str_of(f->machine));
    if (!w.log && make_own(f, e) < 0)
        return -1;
    w.log = find_log(f, str_of(f->machine));
    /* A file of this machine cannot be used: nothing is added to its files. */
    if (w.log->left_out)
        return 0;
    if (check_numbers(&w, e) == 0 && write_deletions(&w, e) == 0 && erase_own(&w, e) == 0 &&
        begin_after_asked(&w, e) == 0 && fill_gaps(&w, e) == 0 && write_lines(&w, e) == 0)
        result = 0;
    file_close(w.fd);
    buf_release(&w.pending);
    return result;
}

/* ---- one run ---- */

static void report_waiting(const struct folder *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct log *l = &f->logs[i];

        if (l->waits_for)
            merge_warn(
                f->merge,
                "the newest lines in '%s/%s' wait for files in '%s/%s' that have not arrived "
                "yet",
                f->job->place, l->machine, f->job->place, l->waits_for);
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

/* Waits for another home directory that has the same name, because it is a copy. It may be in use
 * on this machine, too; its lock is another one. Where directories have no locks, and before this
 * one exists, nothing is locked: then the first file is made by one program only. */
static int lock_own(struct folder *f, struct err *e)
{
    struct append_wait wait = history_wait(f->job->history);
    struct buf path = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    int result = 0;

    buf_addf(&path, "%s/%s", f->job->place, f->machine);
    f->own_fd = open_below(f->fd, f->machine);
    if (f->own_fd >= 0 && append_lock(f->own_fd, buf_c(&path), &wait, &why) < 0 && wait.timed_out)
        result = err_set(e, why.kind, "%s", err_text(&why));
    buf_release(&path);
    err_release(&why);
    return result;
}

/* Returns whether the positions of this run are to be stored: not if the files of this machine were
 * left out, because lines are not written there. */
static bool keeps_state(const struct folder *f)
{
    const struct log *own = find_log(f, str_of(f->machine));

    return !f->job->options.dry_run && !(own && own->left_out);
}

static int run(struct folder *f, struct err *e)
{
    struct sync_job *job = f->job;
    char *real = path_real(job->place, NULL);
    char *state = merge_state_path(job->history, "dir", real ? real : job->place, e);
    int result = -1;

    if (state && read_runs(f, e) < 0) {
        free(state);
        state = NULL;
    }
    free(real);
    if (!state)
        return -1;
    f->merge = merge_open(job->history, &job->options, e);
    if (f->merge)
        merge_report_refused(f->merge);
    if (f->merge && find_logs(f, e) == 0) {
        read_state(f, state);
        merge_follow(f->merge, &f->from);
        if (read_all(f, e) == 0 && leave_copied(f, e) == 0 && write_all(f, e) == 0)
            result = keeps_state(f) ? write_state(f, state, e) : 0;
        report_waiting(f);
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
                       .own_fd = -1,
                       .name = BUF_INIT(BUF_SMALL),
                       .runs = BUF_INIT(BUF_SMALL),
                       .run = BUF_INIT(BUF_SMALL),
                       .last = BUF_INIT(BUF_SMALL)};
    int result = -1;

    f.fd = open(job->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f.fd < 0)
        return err_sys(e, errno, "cannot open directory '%s'", job->place);
    add_dir_name(&f.name, job->name);
    if (job->options.dry_run || (sync_state_make(job->history, e) == 0 && lock_machine(&f, e) == 0))
        f.machine =
            sync_machine(job->history, job->options.dry_run ? MACHINE_UNKEPT : MACHINE_KEPT, e);
    if (f.machine && (job->options.dry_run || lock_own(&f, e) == 0))
        result = run(&f, e);
    file_close(f.own_fd);
    append_close(&f.lock);
    for (size_t i = 0; i < f.count; i++) {
        close(f.logs[i].fd);
        free(f.logs[i].machine);
        free(f.logs[i].segments);
    }
    close(f.fd);
    free(f.logs);
    digests_release(&f.known);
    err_release(&f.fault);
    free(f.machine);
    free(f.runs_path);
    buf_release(&f.name);
    buf_release(&f.runs);
    buf_release(&f.run);
    buf_release(&f.last);
    return result;
}
