/*
 * export - conversations written in another format: one traversal, a small table of functions for
 * each format.
 *
 *     export_begin -> for each session: export_session, with its messages -> export_end
 *
 * A format (port/export_md, port/export_html, …) adds text to `out` and knows nothing of files,
 * terminals or selections. It cannot fail: its driver takes what `out` holds after each call, gives
 * it to the sink and clears it, so that a format holds no more than one message at a time. `out`
 * is large enough for a message of BUF_LINE in which each byte became eight.
 *
 * Secrets are gone (port/redact), and the messages are those that are wanted, in their order, when
 * a format sees them. Text may hold anything that a history can: markup of the format, U+0000,
 * control characters, ill-formed UTF-8 only where the line has it. Other clients' session ids and
 * timestamps are any text, too.
 */
#ifndef CHATHIST_CONVERT_EXPORT_H
#define CHATHIST_CONVERT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/message.h"

/* What is known of a session before its messages; borrowed until export_session returns. Facts are
 * taken from the messages that are exported. */
struct export_session {
    struct str id;         /* decoded */
    struct str title;      /* the beginning of its first prompt, or else first message, on one line;
                            * as it was written: not escaped. May be empty */
    struct str created_at; /* time of its first message, as stored */
    struct str last_used;  /* of its last */
    struct str model;      /* of its newest answer that names one, decoded; empty: none does */
    const struct message *at;
    size_t count; /* may be 0 */
};

/* Who takes the bytes: 0, or -1 and *e. They are borrowed for the call. */
typedef int export_sink(void *arg, struct str bytes, struct err *e);

struct export
{
    const struct export_format *format;
    struct buf out;  /* formats add to it */
    size_t expected; /* sessions that are to come; 0: not known */
    size_t sessions; /* so many were written, the present one not counted */
    size_t messages; /* so many messages were, in all sessions */
    /* private */
    export_sink *sink;
    void *arg;
};

struct export_format {
    const char *name;   /* for -f */
    const char *suffix; /* of file names, without a dot */
    /* What it writes is JSON: a terminal gets \uXXXX for what it must not obey. */
    bool json;
    /* The stored lines themselves in the order of the file, whichever session they belong to: only
     * `message` is called. */
    bool lines;
    /* One document behind another is a document again, so that a file of it can grow. */
    bool grows;
    /* Any of these may be NULL. `begin` and `end` are called once, also when there is no session;
     * `session` before its messages, `session_end` behind them. */
    void (*begin)(struct export *x);
    void (*session)(struct export *x, const struct export_session *s);
    void (*message)(struct export *x, const struct message *m);
    void (*session_end)(struct export *x, const struct export_session *s);
    void (*end)(struct export *x);
};

/* The sink gets `arg`. After each: 0, or -1 when the sink failed, and nothing more is to be called
 * but export_release. export_session: messages of one session; export_line: the next line, for a
 * format of lines. */
int export_begin(struct export *x, const struct export_format *format, size_t expected,
                 export_sink *sink, void *arg, struct err *e);
int export_session(struct export *x, const struct message *at, size_t count, struct err *e);
int export_line(struct export *x, const struct message *m, struct err *e);
int export_end(struct export *x, struct err *e);
void export_release(struct export *x);

/* ---- for formats ---- */

/* The code points of a title. */
#define EXPORT_TITLE 80

/* Adds a time as `2024-06-27 15:00:00` in UTC; on one line as stored when it is no time. */
void export_add_time(struct buf *out, struct str timestamp);
/* Adds the times of a session, `FROM to UNTIL`, or one when they are the same to the second. */
void export_add_times(struct buf *out, const struct export_session *s);
/* Adds a text on one line, as a label: white space as vis_add_line, bytes as they are. */
void export_add_label(struct buf *out, struct str text);
/* The strings of a field that is an array of them (files, files_modified), joined by `, `, as
 * labels; nothing when there are none. */
void export_add_list(struct buf *out, const struct message *m, enum field f);
/* Is there more to say of how an answer ended than that it did: a finish_reason other than `stop`
 * and `tool_calls`? It, decoded into scratch; STR_NONE when not. */
struct str export_finish(const struct message *m, struct buf *scratch);

#endif
