/*
 * export - writes conversations in other formats.
 *
 *     export_begin -> export_session for each session -> export_end -> export_release
 *
 * A format is a table of functions (struct export_format) that append text to export.out. Between
 * these calls export gives the text to the caller's sink, so that no more than one message and 64
 * KiB of text are in memory. A format knows nothing of files, terminals and selections, and it
 * cannot fail.
 *
 * The caller chooses the messages, their order, and whether secrets are removed (convert/redact).
 * Message text may contain anything that a history can hold: markup of the target format, U+0000,
 * control characters. Session ids and timestamps of other clients may be any text, too.
 */
#ifndef CHATHIST_CONVERT_EXPORT_H
#define CHATHIST_CONVERT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/message.h"
#include "chathist/history/session_summary.h"

/* Describes a session to a format. It is computed from the exported messages, and it is valid until
 * the format's function returns. */
struct export_session {
    struct str id;    /* decoded */
    struct str title; /* the title of the session; without one the beginning of the first prompt, or
                       * of the first message if no prompt has text; on one line, not escaped; may
                       * be empty */
    bool named;       /* the session was given this title */
    struct str created_at; /* timestamp of the first message, as stored */
    struct str last_used;  /* timestamp of the last message, as stored */
    struct str model;      /* decoded; of the newest response that names a model, else empty */
    const struct message *at;
    size_t count; /* may be 0 */
};

/* Receives the exported bytes, valid during the call. Returns 0, or -1 with *e set. */
typedef int export_sink(void *arg, struct str bytes, struct err *e);

struct export
{
    const struct export_format *format;
    struct buf out;  /* formats append here */
    size_t sessions; /* sessions before the present one */
    size_t messages; /* messages before the present one, in all sessions */
    /* The title of the next session, set by the caller, who keeps it: as text, or the line that
     * gives it. Without either, the messages are looked at for such a line. */
    struct str title;
    const struct message *title_line;
    /* The next session in the list of its history, and then `time` and `at` of its messages are
     * set; NULL if it is not known. */
    const struct session *listed;
    struct str place; /* the directory of a session that does not name one; may be empty */
    struct str file;  /* for the page of a folder: the file with the messages of the next session */
    /* private */
    export_sink *sink; /* NULL: `out` keeps the text */
    void *arg;
};

struct export_format {
    const char *name;   /* its name for --format */
    const char *suffix; /* the suffix of file names, without the first dot */
    bool json;          /* the output is JSON: on a terminal, control characters become \uXXXX */
    bool lines;         /* the stored lines in the order of the file: only `message` is called */
    bool keeps_title;   /* title_line is written like a message, before those of the session */
    bool grows;         /* two documents in a row are a document: a file can be appended to */
    bool single;        /* a document has one session */
    /* Each function may be NULL. `begin` and `end` are called once, even without a session;
     * `session` is called before the messages of each session. */
    void (*begin)(struct export *x);
    void (*session)(struct export *x, const struct export_session *s);
    void (*message)(struct export *x, const struct message *m);
    void (*end)(struct export *x);
    /* Adds the name that another program demands for the file of the session that begins with this
     * message. That program continues the file, so one with other content is not replaced. NULL:
     * any name will do, and no program does. */
    void (*file_name)(struct buf *out, const struct message *first);
};

/* All formats (convert/formats.c); the first one is the default, NULL ends the array. A program
 * that uses it is linked with all of them. */
extern const struct export_format *const export_formats[];
/* json, jsonl and txt are in export.c, the others in files of their name, and those of agents in
 * export_agents.c. The formats openai and anthropic are private to formats.c. */
extern const struct export_format export_md, export_html, export_json, export_jsonl, export_txt;
extern const struct export_format export_claude_code, export_codex, export_atif;

/* Returns the format with this name, or NULL. */
const struct export_format *export_format_named(struct str name);
/* Returns the format that the suffix of a file name stands for, or NULL. */
const struct export_format *export_format_of(const char *path);

/* These return 0, or -1 with *e set if the sink failed or a message became too long. After -1 the
 * caller only calls export_release. The sink is called with `arg`. export_session writes messages
 * of one session; export_line writes a message in a format that has `lines` set. */
int export_begin(struct export *x, const struct export_format *format, export_sink *sink, void *arg,
                 struct err *e);
int export_session(struct export *x, const struct message *at, size_t count, struct err *e);
int export_line(struct export *x, const struct message *m, struct err *e);
int export_end(struct export *x, struct err *e);
/* A part of a document that another thread makes: export_part begins one that follows other
 * sessions, export_session and export_line put its text into memory, and export_add_part gives the
 * text to the sink of the document and empties the part. export_release releases it. */
void export_part(struct export *part, const struct export_format *format);
int export_add_part(struct export *x, struct export *part, struct err *e);
void export_release(struct export *x);

/* ---- helpers for formats ---- */

/* Appends a time as `2024-06-27 15:00:00` in UTC. A timestamp that is not a time is appended as a
 * label. */
void export_add_time(struct buf *out, struct str timestamp);
/* Returns whether a valid time has the form that our programs write, in UTC, so that no conversion
 * changes its parts. */
bool export_is_own_time(struct str time);
/* Appends the times of a session as `FROM to UNTIL`, or one time if both are the same second. */
void export_add_times(struct buf *out, const struct export_session *s);
/* Appends text on one line; vis_add_line says how white space is changed. */
void export_add_label(struct buf *out, struct str text);
/* Returns the finish_reason, decoded into scratch, if it says more than that the response is
 * complete: STR_NONE for `stop`, `tool_calls` and an absent one. */
struct str export_finish(const struct message *m, struct buf *scratch);
/* Appends what a message has beside its text, each on a line: `[tool call] NAME ARGUMENTS`,
 * `[source] URL`, `[ended] REASON`. `safe` is that of vis_add_line. */
void export_add_details(struct buf *out, const struct message *m, bool safe);

#endif
