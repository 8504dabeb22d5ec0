/*
 * import_message - a message on its way from another program's format into a history line, and
 * where readers hand it over.
 *
 *     source -> reader (one for each format) -> struct import_message -> struct import_sink
 *
 * A reader fills a message and gives it to the sink; lines are made, and messages that are there
 * already left out, behind the sink (port/import). What the readers have in common is here: names
 * of sessions, content in the blocks that the OpenAI and Anthropic interfaces use, tool calls.
 *
 * The origin of a message is SESSION/PART: our session id, which names the format and the other
 * program's session, and what tells the message from all others of it. A message that was joined
 * from several records has all of their parts, `SESSION/A+B+C`, so that each of them is known
 * later.
 */
#ifndef CHATHIST_CONVERT_IMPORT_MESSAGE_H
#define CHATHIST_CONVERT_IMPORT_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/message.h"
#include "chathist/convert/import_source.h"

/* The source has no time for it. */
#define IMPORT_NO_TIME INT64_MIN

struct import_message {
    enum role role;
    int64_t time;       /* µs */
    struct buf session; /* our id */
    struct buf origin;
    struct buf text;
    struct buf calls; /* the elements of tool_calls, JSON, joined by commas */
    struct buf call_id;
    struct buf model;
    struct buf provider;
    struct buf finish;
    struct buf replaces; /* ids of lines in the history, JSON strings joined by commas */
    int64_t images;
    int64_t input_tokens, output_tokens; /* -1: unknown */
};

struct import_sink {
    /* Takes a message over; m is unchanged. -1 ends the import. */
    int (*message)(void *arg, const struct import_message *m, struct err *e);
    /* A line in the form of our histories. */
    int (*line)(void *arg, const struct message *m, struct err *e);
    /* Returns whether a message is in the history or was given before. `part` is one part of its
     * origin. The id of its line is added to `id`, which may be NULL. */
    bool (*known)(void *arg, struct str session, struct str part, struct buf *id);
    /* Reports a record that is left out because it cannot be read. */
    void (*bad)(void *arg, size_t number, const char *reason);
    /* Reports something else that the user should know: a sentence without its end. */
    void (*note)(void *arg, const char *text);
    void *arg;
    bool subagents; /* what other models were asked by the model is wanted, too */
};

/* A format that can be imported. */
struct import_format {
    const char *name;
    /* Returns whether a file that begins like this has this format. */
    bool (*is)(struct str head);
    /* Gives all messages of the source to the sink, the session used last at the end: 0, -1. */
    int (*read)(struct source *s, struct import_sink *sink, struct err *e);
};
/* Each is described at the beginning of its source file. */
extern const struct import_format import_lines, import_claude_code, import_codex, import_llm,
    import_chatgpt, import_messages, import_aichat;

void import_message_init(struct import_message *m);
void import_message_release(struct import_message *m);
/* Begins anew: nothing is known of it but its role. */
void import_message_clear(struct import_message *m, enum role role);

/* Clears the text, the calls, the call id and the images, for the next message of a record. */
void import_message_rewind(struct import_message *m);

/* 64 bits that tell texts apart: FNV-1a, then mixed once more. */
uint64_t import_hash(struct str text);
/* Adds FORMAT:ID. Characters that may not stand in a session's id are replaced, and an id that is
 * too long is cut; a hash at the end then tells the ids apart. */
void import_add_session(struct buf *out, const char *format, struct str id);
/* Sets the session to that. */
void import_set_session(struct import_message *m, const char *format, struct str id);
/* Sets the origin to SESSION/PART, or adds a part to it. A `+` in it becomes `_`. */
void import_set_part(struct import_message *m, struct str part);
void import_add_part(struct import_message *m, struct str part);
/* Sets the time from a JSON value: a string in ISO 8601, or seconds since 1970 with a fraction. Any
 * other leaves it. */
void import_set_time(struct import_message *m, struct str value);
/* Adds a paragraph to the text. */
void import_add_text(struct import_message *m, struct str text);
/* Adds a call. `args` is a JSON value: an object; or a string that holds one, which is how the
 * OpenAI interfaces send it. Any other is kept as a string. A call without an id has its name for
 * it. */
void import_add_call(struct import_message *m, struct str id, struct str name, struct str args);
/* Adds the id of a line to a list such as m->replaces, unless it is the last one there. */
void import_add_id(struct buf *list, struct str id);
/* Sets a field from a JSON string; anything else leaves it. */
void import_set_text(struct buf *field, struct str value);
/* Sets why an answer ended, a JSON string, in the names of chathist(5). */
void import_set_finish(struct import_message *m, struct str value);

/* Adds why the model does not answer, a JSON string; null and an empty one are none. As a refusal
 * that chat is told, it is text, and the finish says what it is. */
void import_add_refusal(struct import_message *m, struct str refusal);
/* Adds content: a JSON string, or an array of strings and blocks. Of blocks, text of any kind is
 * added, refusals too, images are counted, tool calls added; reasoning and what is not known is
 * passed over. */
void import_add_content(struct import_message *m, struct str content);

/* Is there nothing in it? The result of a tool may be empty. */
bool import_is_empty(const struct import_message *m);
/* Gives the message to the sink, unless there is nothing in it. */
int import_give(struct import_sink *sink, const struct import_message *m, struct err *e);
/* The same with this content, in which Anthropic's interface also has the results of tools: each of
 * those is a message of its own, the second and following with `.1`, `.2`, … behind their part. m
 * is cleared. */
int import_give_content(struct import_sink *sink, struct import_message *m, struct str content,
                        struct err *e);

/* Hands over each line of the source that is a JSON object, until `take` gives -1. Others are bad
 * records, but for an unfinished one at the end. 0, -1. */
int import_each_object(struct source *s, struct import_sink *sink,
                       int (*take)(void *arg, struct str object, struct err *e), void *arg,
                       struct err *e);

/* Returns whether a member is a string. */
bool import_has_string(struct str object, const char *key);
/* Returns whether one of the first lines is an object that `is` accepts: not every record of a
 * format shows which it is. */
bool import_some_line(struct str head, bool (*is)(struct str object));

/* ---- messages as the OpenAI and Anthropic interfaces take them (import_messages.c) ---- */

/* Sets the session of a file without an id to FORMAT:NAME-HASH. */
int import_set_file_session(struct import_message *m, const char *format, struct source *s,
                            struct err *e);
/* Gives one such message, an object: `n` is its number in the conversation. m has its session and,
 * if it is known, its model; they stay. */
int import_give_message(struct source *s, struct import_sink *sink, struct import_message *m,
                        struct str object, size_t n, struct err *e);

#endif
