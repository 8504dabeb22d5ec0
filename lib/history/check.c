#include "chathist/history/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/history/partial.h"
#include "chathist/history/rewrite.h"
#include "chathist/history/scan.h"
#include "chathist/history/session.h"
#include "history/session_index.h"

/* Whether a message begins there is tried at this many places of a line: each trial may read the
 * rest of the line. */
#define TRIALS_MAX 4096

/* A line that names a message, if no line before it has that message. */
struct reference {
    uint64_t line;
    enum field field;
    struct str id; /* a key of `absent` */
};

struct walk {
    struct check *c;
    const struct history *h;
    struct hash_map ids; /* message id -> line */
    struct hash_map sessions;
    struct hash_map calls;  /* session id, NUL, id of a tool call */
    struct hash_map absent; /* ids of messages that a line names before they are there */
    struct reference *references;
    size_t references_count, references_cap;
    struct buf scratch;
};

/* ---- findings ---- */

static void report_finding(struct walk *w, bool warning, const char *file, uint64_t line,
                           const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void report_finding(struct walk *w, bool warning, const char *file, uint64_t line,
                           const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_SMALL), visible = BUF_INIT(8 * BUF_SMALL);
    struct finding f = {.warning = warning, .file = file, .line = line};
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    vis_add_line(&visible, buf_str(&text), true);
    f.reason = buf_str(&visible);
    w->c->problems += !warning;
    w->c->warnings += warning;
    w->c->found(w->c->arg, &f);
    buf_release(&text);
    buf_release(&visible);
}

/* ---- names ---- */

static void add_reference(struct walk *w, enum field field, struct str id, uint64_t line)
{
    if (!id.p || hash_map_find(&w->ids, id))
        return;
    hash_map_number(&w->absent, &id);
    w->references = mem_grow(w->references, &w->references_cap, w->references_count + 1,
                             sizeof(*w->references));
    w->references[w->references_count++] = (struct reference){line, field, id};
}

static void add_references(struct walk *w, const struct message *m, uint64_t line)
{
    static const enum field single[] = {FIELD_REPLY_TO, FIELD_FORKED_FROM};
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
        add_reference(w, single[i], message_text(m, single[i], &w->scratch), line);
    while (!it.object && json_next(&it))
        add_reference(w, FIELD_REPLACES, json_text(it.value, &w->scratch), line);
}

/* ---- tool calls ---- */

static void set_call_key(struct buf *key, struct str session, struct str call)
{
    buf_clear(key);
    buf_add_str(key, session);
    buf_add_byte(key, '\0');
    buf_add_str(key, call);
}

static void add_calls(struct walk *w, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf key = BUF_INIT(2 * BUF_LINE);

    while (!it.object && json_next(&it)) {
        struct str id = json_text(json_get(it.value, "id"), &w->scratch);

        set_call_key(&key, m->session_id, id);
        if (id.p)
            hash_map_add(&w->calls, buf_str(&key));
    }
    buf_release(&key);
}

static void check_result(struct walk *w, const struct message *m, uint64_t line)
{
    struct str id = message_text(m, FIELD_TOOL_CALL_ID, &w->scratch);
    struct buf key = BUF_INIT(2 * BUF_LINE);

    set_call_key(&key, m->session_id, id);
    if (!id.p)
        report_finding(w, true, w->h->path, line, "a tool result without the id of its call");
    else if (!hash_map_find(&w->calls, buf_str(&key)))
        report_finding(w, true, w->h->path, line, "a tool result without its call '%.*s'",
                       ERR_SHOWN(id));
    buf_release(&key);
}

/* ---- lines ---- */

static void check_message(struct walk *w, const struct message *m, uint64_t line)
{
    struct str id = m->id;
    size_t count = w->ids.count, first;

    w->c->messages += !message_is_title(m);
    w->c->sessions += hash_map_add(&w->sessions, m->session_id);
    first = hash_map_number(&w->ids, &id);
    if (w->ids.count == count)
        report_finding(w, true, w->h->path, line, "the id '%.*s' is that of line %zu, too",
                       ERR_SHOWN(id), first);
    else
        w->ids.entries[count].value = (size_t)line;
    /* A title may replace one that an export has left out. */
    if (!message_is_title(m))
        add_references(w, m, line);
    add_calls(w, m);
    if (m->role == ROLE_TOOL)
        check_result(w, m, line);
}

static const char *defect(const struct line *l)
{
    struct str value;
    size_t at = 0;
    const char *why;

    if (l->too_long)
        return "longer than 64 MiB";
    why = message_defect(l->text);
    if (!why)
        return "not a message";
    /* Valid JSON up to the end of the line was cut off there. */
    if (str_eq_c(str_of(why), "not JSON") && !json_check(l->text, &value, &at) && at == l->text.n)
        return "torn: it ends within a message";
    return why;
}

static void check_line(struct walk *w, struct message *m, const struct line *l)
{
    uint64_t line = ++w->c->lines;

    if (str_trim(l->text).n == 0)
        return;
    if (!l->too_long && message_parse(m, l->text)) {
        check_message(w, m, line);
        if (!l->terminated)
            report_finding(w, false, w->h->path, line, "the last line has no newline");
    } else {
        report_finding(w, false, w->h->path, line, "%s%s", defect(l),
                       l->terminated ? "" : ", and has no newline");
    }
}

static int check_lines(struct walk *w, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    struct line l;
    int result;

    if (scan_open(&s, w->h->dir_fd, w->h->path, e) < 0)
        return -1;
    s.work = w->h->work;
    s.task = "check";
    while ((result = scan_line(&s, &l, e)) > 0)
        check_line(w, &m, &l);
    message_release(&m);
    scan_close(&s);
    /* Lines may also name later lines, for example after histories were concatenated. */
    for (size_t i = 0; result == 0 && i < w->references_count; i++) {
        const struct reference *r = &w->references[i];

        if (!hash_map_find(&w->ids, r->id))
            report_finding(w, true, w->h->path, r->line, "'%s' names no message: '%.*s'",
                           field_name(r->field), ERR_SHOWN(r->id));
    }
    return result;
}

/* ---- the files ---- */

static void check_mode(struct walk *w, int dir, const char *path)
{
    struct stat st;

    if (file_stat(dir, path, &st) == 0 && (st.st_mode & 077) != 0)
        report_finding(w, true, path, 0, "others have access to it: its mode is %04o",
                       (unsigned)(st.st_mode & 07777));
}

static void check_pointer(struct walk *w)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err why = ERR_INIT;
    struct stat st;
    int found = session_current(w->h, &id, NULL, &why);

    if (found < 0)
        report_finding(w, true, w->h->pointer, 0, "%s", err_text(&why));
    else if (found == 0 && w->h->trusted && file_stat(w->h->pointer_fd, w->h->pointer, &st) == 0)
        report_finding(w, true, w->h->pointer, 0, "it names no session");
    /* Another program may have begun the session after its lines were read. */
    else if (found > 0 && !hash_map_find(&w->sessions, buf_str(&id)) &&
             session_has_lines(w->h, buf_str(&id), NULL) <= 0)
        report_finding(w, true, w->h->pointer, 0, "session '%s' has no messages", buf_c(&id));
    err_release(&why);
    buf_release(&id);
}

static void check_index(struct walk *w)
{
    struct stat st;
    bool removable;

    if (session_index_blocked(w->h, &removable))
        report_finding(w, !removable, w->h->index, 0,
                       "it cannot be used as an index, and keeps one from being made");
    if (!session_index_is_wrong(w->h))
        return;
    history_remove_index(w->h);
    report_finding(w, true, w->h->index, 0, "%s",
                   file_stat(w->h->dir_fd, w->h->index, &st) < 0
                       ? "it did not match the history, and was removed"
                       : "it does not match the history, and could not be removed");
}

/* Returns whether a killed program has left an index that it was making. Removes it with `remove`.
 * */
static bool is_half_made(const struct history *h, bool remove)
{
    char *making = path_with_suffix(h->index, HISTORY_INDEX_MAKING);
    int fd = file_open_regular_at(h->dir_fd, making, O_RDONLY, 0, NULL, NULL, NULL);
    /* The program that makes it holds the lock. */
    bool left = fd >= 0 && history_is_sidecar(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (left && remove)
        (void)file_unlink(h->dir_fd, making);
    file_close(fd);
    free(making);
    return left;
}

static int check_files(struct walk *w, struct err *e)
{
    struct partial_left partial;
    int left;

    check_mode(w, w->h->dir_fd, w->h->path);
    check_mode(w, w->h->pointer_fd, w->h->pointer);
    if (w->h->dir)
        check_mode(w, FILE_CWD, w->h->dir);
    check_pointer(w);
    check_index(w);
    left = file_sweep(w->h->dir_fd, w->h->path, !w->h->dir, false, e);
    if (left >= 0 && w->h->pointer_fd != w->h->dir_fd)
        left += file_sweep(w->h->pointer_fd, w->h->pointer, !w->h->dir, false, e);
    if (left < 0)
        return -1;
    left += is_half_made(w->h, false);
    if (left > 0)
        report_finding(w, false, w->h->path, 0,
                       "killed programs left %d temporary file%s beside it", left,
                       left == 1 ? "" : "s");
    partial_find(&partial, w->h);
    if (partial.count > 0)
        report_finding(
            w, true, w->h->path, 0,
            "%zu answer%s of a chat that was killed: the next program that writes stores %s",
            partial.count, partial.count == 1 ? "" : "s", partial.count == 1 ? "it" : "them");
    partial_release(&partial);
    return 0;
}

int check_run(struct check *c, const struct history *h, struct err *e)
{
    struct walk w = {.c = c, .h = h, .scratch = BUF_INIT(BUF_LINE)};
    int result = check_lines(&w, e) < 0 || check_files(&w, e) < 0 ? -1 : 0;

    hash_map_release(&w.ids);
    hash_map_release(&w.sessions);
    hash_map_release(&w.calls);
    hash_map_release(&w.absent);
    free(w.references);
    buf_release(&w.scratch);
    return result;
}

/* ---- repair ---- */

/* Returns whether the text begins with a message, whatever follows it. */
static bool starts_message(struct str text, struct str *message)
{
    struct str value;
    size_t at = 0;

    if (json_check(text, &value, &at))
        at = text.n;
    *message = str_trim((struct str){text.p, at});
    return message->n > 0 && !message_defect(*message);
}

/* Returns whether the text is a sequence of whole messages. */
static bool only_messages(struct str text)
{
    struct str message;

    do {
        if (!starts_message(text, &message))
            return false;
        text = str_skip(text, (size_t)(message.p + message.n - text.p));
    } while (str_trim(text).n > 0);
    return true;
}

/* Takes the next message off *rest. Returns true with the message, and in *garbage the bytes before
 * it; false if it holds no message. A message at the beginning is taken whatever follows it. After
 * other bytes only a sequence of whole messages up to the end is taken: an object inside of a
 * value, such as the arguments of a call, is no message. */
static bool next_message(struct str *rest, struct str *garbage, struct str *message)
{
    struct str from = *rest;
    bool found = starts_message(from, message);

    for (size_t trials = 0; !found && trials < TRIALS_MAX && from.n > 0; trials++) {
        const char *brace = memchr(from.p, '{', from.n);

        if (!brace)
            return false;
        from = str_skip(from, (size_t)(brace - from.p));
        found = only_messages(from) && starts_message(from, message);
        if (!found)
            from = str_skip(from, 1);
    }
    if (!found)
        return false;
    *garbage = (struct str){rest->p, (size_t)(from.p - rest->p)};
    *rest = str_skip(*rest, (size_t)(message->p + message->n - rest->p));
    return true;
}

static void quarantine_part(struct repair *m, struct rewrite *r, const struct line *l,
                            struct str part)
{
    if (str_trim(part).n == 0)
        return;
    rewrite_set_part_aside(r, l->at + (off_t)(part.p - l->text.p), (off_t)part.n);
    m->moved++;
}

/* Repairs a line that is no message. */
static void salvage(struct repair *m, struct rewrite *r, const struct line *l)
{
    struct str rest = l->text;
    struct str garbage, message;
    uint64_t found = 0;

    while (!l->too_long && next_message(&rest, &garbage, &message)) {
        quarantine_part(m, r, l, garbage);
        rewrite_add(r, message);
        found++;
    }
    m->recovered += found;
    if (found > 0) {
        quarantine_part(m, r, l, rest);
    } else {
        rewrite_set_aside(r, l);
        m->moved++;
    }
}

static void begin_repair(void *arg)
{
    *(struct repair *)arg = (struct repair){0};
}

static void repair_line(void *arg, struct rewrite *r, const struct line *l)
{
    struct repair *m = arg;
    bool blank = str_trim(l->text).n == 0;

    if (l->too_long || (!blank && message_defect(l->text))) {
        salvage(m, r, l);
    } else if (l->terminated || blank) {
        rewrite_keep(r, l);
    } else {
        rewrite_add(r, l->text);
        m->ended++;
    }
}

int repair_run(struct repair *m, struct history *h, struct err *e)
{
    struct rewriter by = {.arg = m, .begin = begin_repair, .line = repair_line};
    bool removable;

    /* rewrite_run removes temporary files in the directory of the history only. */
    if (h->pointer_fd != h->dir_fd && file_sweep(h->pointer_fd, h->pointer, !h->dir, true, e) < 0)
        return -1;
    (void)is_half_made(h, true);
    /* Also when nothing is changed, so that a wrong index is never kept. */
    history_remove_index(h);
    if (session_index_blocked(h, &removable) && removable && file_unlink(h->dir_fd, h->index) < 0)
        return err_sys(e, errno, "cannot remove '%s'", h->index);
    return rewrite_run(h, &by, e);
}
