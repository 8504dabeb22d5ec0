/*
 * import_reader - what the readers of all import formats share.
 *
 *     struct source -> reader (a file for each format) -> struct import_message -> convert/import
 *
 * A source is a file, or standard input, read by lines, by the elements of a JSON array, or as a
 * whole. A reader fills a message from it and gives it to convert/import, which makes a history
 * line unless the history has the message.
 *
 * The origin of a message is SESSION/PART. SESSION is the session id in the history, made of the
 * name of the format and the id in the other program; PART identifies the message in that session.
 * A message that was joined from several records has a part for each: `SESSION/A+B+C`.
 */
#ifndef CHATHIST_CONVERT_IMPORT_READER_H
#define CHATHIST_CONVERT_IMPORT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/usage.h"
#include "chathist/history/message.h"

/* ---- sources ---- */

/* The longest element of an array, and the longest file that is read as a whole. */
#define SOURCE_VALUE_MAX ((size_t)256 << 20)
/* source_head gives at most this many bytes. */
#define SOURCE_HEAD ((size_t)64 << 10)
/* A file of lines is recognised by one of this many. */
#define SOURCE_LINES_SEEN 50

struct source {
    const char *name;           /* for messages, borrowed; `-` for standard input */
    const char *path;           /* NULL for standard input */
    bool is_file;               /* a regular file, which can be opened a second time */
    int64_t time;               /* modification time in µs, for messages without a time */
    int64_t said;               /* the time of the message before */
    size_t number;              /* of the last line or value, from 1 */
    bool terminated;            /* the last line ended with a newline; always true after a value */
    bool subagents;             /* messages of subagents are wanted */
    bool waits;                 /* an answer at the end that may grow is left for the next import */
    bool copies;                /* a fork repeats messages under new ids */
    bool whole;                 /* it always has the whole conversation */
    bool unique;                /* the ids of records are unique among all files of the format */
    struct import_point *point; /* where the file can be read on, or NULL; borrowed */
    bool partial;               /* it is read from such a point */
    bool restarts;              /* that was wrong: records before the point are needed */
    /* For the format that reads it. */
    const char *const
        *ignores; /* types of records and blocks without a message, or NULL; borrowed */
    /* The texts of a user that begin with a match are the program's own: they are left out. Borrowed,
     * or NULL. */
    struct regex *harness;
    bool yielded;  /* import_give got a message that is not empty, or a text was left out */
    bool lost;     /* a block has a text of which nothing comes */
    size_t unread; /* records without a fact */
    struct buf cwd, branch; /* where the messages that follow were said */
    struct buf began;       /* where the first one was said */
    int64_t at;             /* offset of the line that source_line gave; -1 in a packed file */
    /* private */
    struct import *import; /* that reads it */
    int fd;
    uint64_t bytes;   /* that were read */
    unsigned reports; /* of messages, to import_report */
    struct buf block; /* bytes from `from` on were not given yet */
    size_t from, seen;
    bool begun, ended;
    struct ZSTD_DCtx_s *unpack; /* of a file that is packed by Zstandard: its bytes in `packed` */
    struct buf packed;
    size_t packed_from, frame_left;
    enum { SOURCE_NEW, SOURCE_ARRAY, SOURCE_ROW, SOURCE_DONE } form; /* of the values */
};

/* Reports to the listener of the import how much was read. */
void import_report(const struct source *s);

/* Opens a file; `-` is standard input. Returns 0, or -1 with *e set and nothing to close. */
int source_open(struct source *s, const char *path, struct err *e);
void source_close(struct source *s);
/* Returns the name of the file without directories and without its ending. */
struct str source_stem(const struct source *s);
/* Appends the name of the folder in which the file stands, or of one above it: of the n-th, from
 * 1. */
void source_add_folder(const struct source *s, int n, struct buf *name);
/* Returns the path of the first file with this name, a pattern of glob(3), in the directory of the
 * source or one of the five above it, or NULL. The caller frees it. */
char *source_find_beside(const struct source *s, const char *name);

/* The functions below return text that is valid until the next call on the source. */
typedef int source_next(struct source *s, struct str *text, struct err *e);

/* Gives the beginning of the source, without advancing; a BOM there is removed. Returns 0, or -1
 * with *e set. */
int source_head(struct source *s, struct str *head, struct err *e);
/* Gives the next line without its newline, or STR_NONE for a line over BUF_LINE. Returns 1; 0 at
 * the end; -1 with *e set. */
int source_line(struct source *s, struct str *line, struct err *e);
/* Goes to a point of the source, or to its beginning (NULL), after source_head. Returns false, and
 * goes nowhere, if it is no such file or other bytes are before the point. */
bool source_seek(struct source *s, const struct import_point *point);
/* Returns a checksum of the last bytes before an offset, 0 if they cannot be read. */
int64_t source_sum(const struct source *s, int64_t offset);
/* Gives the next element if the source is a JSON array, else the next of the values that follow
 * each other. A value ends with its last bracket, or before the next one if it has none; nothing
 * else is examined, so an invalid value does not affect the next. Returns 1; 0 at the end; -1 with
 * *e set, also for a value over SOURCE_VALUE_MAX. */
int source_value(struct source *s, struct str *value, struct err *e);
/* Skips n bytes of those that source_head gives. */
void source_skip(struct source *s, size_t n);
/* Gives all remaining bytes. Returns 0, or -1 with *e set. */
int source_rest(struct source *s, struct str *text, struct err *e);
/* Reads the rest as YAML, and puts its JSON in its place: nothing, if it is no YAML. */
void source_from_yaml(struct source *s);

/* The beginning of a file as JSON (import_head.c), for which `scratch` has room for twice as much.
 * The first sets *value to the value that it begins with, or to an array with the first element: what
 * is cut off is completed. The second cuts a line off, and sets *value to that. Both return false if
 * there is none, the second one also if it is no object. */
bool source_head_value(struct str head, struct buf *scratch, struct str *value);
bool source_head_object(struct str *head, struct buf *scratch, struct str *value);

/* ---- messages ---- */

/* The source has no time for the message. */
#define IMPORT_NO_TIME INT64_MIN

struct import_message {
    enum role role;
    size_t number;      /* of its record, if it was held; for reports */
    int64_t time;       /* µs */
    struct buf session; /* the session id in the history */
    struct buf origin;
    struct buf text;
    struct buf calls; /* elements of tool_calls, JSON, separated by commas */
    struct buf call_id;
    struct buf model;
    struct buf provider;
    struct buf finish;
    struct buf response;  /* the id of the response at the service */
    struct buf copy_of;   /* the part of an origin, with its session, that this one repeats */
    struct buf citations; /* objects, JSON, separated by commas */
    struct buf replaces;  /* ids of lines in the history: JSON strings separated by commas */
    int64_t images;
    bool failed; /* the result of a call that failed */
    struct usage usage;
    struct source *source; /* in which it is, for `harness`, `ignores` and `lost`; or NULL */
};

struct import_format {
    const char *name;
    bool copies; /* a fork repeats messages under new ids */
    /* Returns whether a file that begins like this has the format. */
    bool (*is)(struct str head); /* not set for a script */
    /* Gives all messages of the source. Returns 0, or -1 with *e set. */
    int (*read)(const struct import_format *f, struct source *s, struct err *e);
};
/* The lines of our own histories. The other formats are scripts. */
extern const struct import_format import_lines;

void import_message_init(struct import_message *m);
void import_message_release(struct import_message *m);
/* Empties all fields and sets the role. */
void import_message_clear(struct import_message *m, enum role role);
/* Empties the text, the calls, the call id, the images, `replaces` and `failed` for the next
 * message of a record. */
void import_message_rewind(struct import_message *m);

/* Appends FORMAT:ID. Characters that a session id may not have are replaced, and a long id is cut;
 * then a hash at the end keeps ids apart. */
void import_add_session(struct buf *out, const char *format, struct str id);
/* Divides such a name. Returns false if *id is not what the other program calls the session: if it
 * was changed, is a subagent's, or begins with a hyphen. */
bool import_foreign_id(struct str session, struct str *format, struct str *id);
void import_set_session(struct import_message *m, const char *format, struct str id);
/* Sets the origin to SESSION/PART, or adds another part to it. A `+` in a part becomes `_`. */
void import_set_part(struct import_message *m, struct str part);
void import_add_part(struct import_message *m, struct str part);
/* Sets the time from text: ISO 8601, or seconds since 1970 in decimal, of which a number above
 * 100,000,000,000 is milliseconds. Others are ignored. */
void import_set_time(struct import_message *m, struct str text);
/* Sets the finish reason, translated to the names of chathist(5). */
void import_set_finish(struct import_message *m, struct str name);
/* Appends a paragraph to the text, unless the program wrote it in the user's name. */
void import_add_text(struct import_message *m, struct str text);
/* Appends a tool call. `args` is JSON: an object, or a string that contains one, as the interfaces
 * of OpenAI have it; another value is kept as a string. A call without an id gets its name as id.
 * */
void import_add_call(struct import_message *m, struct str id, struct str name, struct str args);
/* Subtracts from the usage of a response what an earlier line of it has, `used`, to which it adds the
 * rest: its tokens count once. */
void import_count_once(struct usage *usage, struct usage *used);
/* Appends the calls, citations and images of another message. */
void import_join(struct import_message *m, const struct import_message *more);
/* Appends an id to a list such as m->replaces, unless it is the last one there. */
void import_add_id(struct buf *list, struct str id);
/* Appends the objects of an array to the citations. */
void import_add_citations(struct import_message *m, struct str array);
/* Appends content: a JSON string, or an array of strings and content blocks as the interfaces of
 * OpenAI and Anthropic have them, or one block. Texts with their citations, refusals and tool calls
 * are added, images and documents are counted. Another block that has a text sets `lost` of the
 * source. */
void import_add_content(struct import_message *m, struct str content);
void import_add_block(struct import_message *m, struct str block); /* one of them */

/* Returns whether the message has neither text, calls nor images. A tool result is never empty. */
bool import_is_empty(const struct import_message *m);
/* ---- giving messages ----
 *
 * The first four are functions of convert/import. */

/* Gives a message of the source, unless it is empty. If its record has changed since an import, its
 * line replaces the earlier one. Returns 0, or -1 with *e set to end the import. */
int import_give(struct source *s, struct import_message *m, struct err *e);
/* Leaves everything that is given of the session from now on for the next import. */
void import_postpone(struct source *s, struct str session);
/* Returns whether the source gave a message of the session, new or not. */
bool import_gave(const struct source *s, struct str session);
/* Gives the title of a session after its messages. Nothing is stored if the title is blank, or the
 * history has it from an earlier import. Returns 0, or -1 with *e set. */
int import_give_title(struct source *s, struct str session, struct str title, struct err *e);
/* Gives a line in the form of our histories. Returns as above. */
int import_give_line(struct source *s, const struct message *m, struct err *e);
/* Returns whether files in our own form are left out (import_options.foreign). */
bool import_is_scan(const struct source *s);
/* Returns the number of the line that has a part of an origin, in the history or given before; 0
 * without one. If id is not NULL, the id of the line is appended to it. */
size_t import_knows(const struct source *s, struct str session, struct str part, struct buf *id);
/* Returns the number of the line of its session, from another program, that replaces the line which
 * has the part; 0 if that line counts. */
size_t import_replaced_by(const struct source *s, struct str session, struct str part);
/* Stores the line that has the part once more, as a copy of it which replaces it and the lines in
 * `replaces`, ids separated by commas. Returns 1; 0 if the line was erased or not found; -1 with *e
 * set. */
int import_give_again(struct source *s, struct str session, struct str part,
                      const struct buf *replaces, struct err *e);
/* Reports that no message came of the file, unless its script ignores all of its records. */
void import_nothing(struct source *s);
/* Reports that record s->number is skipped because it cannot be read. */
void import_bad(struct source *s, const char *reason);
/* Takes a JSON object of the source. Returns 0, or -1 with *e set to end the import. */
typedef int import_take(void *arg, struct str object, struct err *e);
/* Calls `take` for each line or value (`next`) that is a JSON object. Others are reported as bad,
 * except for an unterminated last line. Returns 0, or -1 with *e set if the source or `take`
 * failed. */
int import_each_object(struct source *s, source_next *next, import_take *take, void *arg,
                       struct err *e);

/* ---- what a record has ---- */

/* Returns whether the type of a record or block is one that its script ignores. */
bool import_is_ignored(const struct source *s, struct str value);
/* Returns whether a value has a text for people; `named` says that its key is one of those that have
 * them. What the script ignores does not count. */
bool import_has_text(const struct source *s, struct str value, bool named);

#endif
