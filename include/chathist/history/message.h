/*
 * message - one line of a history, parsed without copying it, or made to be stored (chathist(5)).
 *
 * A line is one JSON object. `struct message` is a line that was read: every field is the raw JSON
 * value inside the line, borrowed from it, so nothing is lost or rounded. `struct draft` is a line
 * to be written: it owns raw JSON values, known fields by name and unknown members verbatim. One
 * table describes the fields for both; fields are written in its order.
 */
#ifndef CHATHIST_HISTORY_MESSAGE_H
#define CHATHIST_HISTORY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/usage.h"

enum field {
    FIELD_ID,
    FIELD_SESSION_ID,
    FIELD_TIMESTAMP,
    FIELD_ROLE,
    FIELD_CONTENT,
    FIELD_IMAGES,
    FIELD_FILES,
    FIELD_FILES_MODIFIED,
    FIELD_EDIT_RESULTS,
    FIELD_TOOL_CALLS,
    FIELD_TOOL_CALL_ID,
    FIELD_FAILED,
    FIELD_REPLY_TO,
    FIELD_REPLACES,
    FIELD_RESET,
    FIELD_FORKED_FROM,
    FIELD_ORIGIN,
    FIELD_CWD,
    FIELD_GIT_BRANCH,
    FIELD_SERVER,
    FIELD_THINKING,
    FIELD_REASONING,
    FIELD_MODEL,
    FIELD_PROVIDER,
    FIELD_RESPONSE,
    FIELD_USAGE,
    FIELD_FINISH_REASON,
    FIELD_ATTACHMENTS,
    FIELD_CITATIONS,
    FIELD_COUNT,
};

enum role { ROLE_USER, ROLE_ASSISTANT, ROLE_SYSTEM, ROLE_TOOL, ROLE_OTHER };

/* Return the key of a field in the line, and the name of a role (NULL for ROLE_OTHER). */
const char *field_name(enum field f);
const char *role_name(enum role r);
/* Returns the role of that name, or ROLE_OTHER. */
enum role role_of(struct str name);

/* ---- a line that was read ---- */

struct message {
    struct str line;               /* the object, without white space, BOM or CR round it */
    struct str field[FIELD_COUNT]; /* raw JSON values; STR_NONE when absent */
    struct str id;                 /* this one and the next three are decoded */
    struct str session_id;
    struct str timestamp;
    struct str role_text;
    enum role role;
    /* For the caller: when the line counts as written (history/order.h), and its offset. */
    int64_t time;
    off_t at;
    struct buf own; /* holds the decoded text of those of the four that had escapes */
};

#define MESSAGE_INIT                                                                               \
    {                                                                                              \
        .own = BUF_INIT(BUF_LINE)                                                                  \
    }

/* Parses a line without its newline into m, initialised with MESSAGE_INIT; a BOM and a CR
 * are accepted. Returns true if it is a valid object that has the five required fields (id,
 * session_id, timestamp, role, content) with their types; content may be null, and optional fields
 * may have any type. m borrows from `line` until the next message_parse or message_release. */
bool message_parse(struct message *m, struct str line);
/* Returns why message_parse refuses a line: "not JSON", "nested too deeply", "not UTF-8", "NUL
 * bytes", "more than one value", "not an object", "no 'role'", "'content' is not a string"; or NULL
 * if it accepts the line. */
const char *message_defect(struct str line);
void message_release(struct message *m);

/* Returns the decoded content, borrowed from the line or from scratch (see json_text), whose
 * maximum must be BUF_LINE. For null it returns "". */
struct str message_content(const struct message *m, struct buf *scratch);
/* Returns the first MESSAGE_PREVIEW code points of the content, borrowed in the same way. A list of
 * sessions shows them for a session that begins with this message. */
#define MESSAGE_PREVIEW 100
struct str message_preview(const struct message *m, struct buf *scratch);
/* Returns an optional text field, decoded and borrowed in the same way, or STR_NONE if it is absent
 * or no string. */
struct str message_text(const struct message *m, enum field f, struct buf *scratch);
/* The name in the place of a program for messages that were not imported. */
#define MESSAGE_OURS "chathist"
/* Returns the name of the program that the message was imported from, which its origin begins with,
 * or MESSAGE_OURS; STR_NONE for a line that is no message and was not imported, because an imported
 * session may have a title of ours. It borrows from the message or from scratch. */
struct str message_tool(const struct message *m, struct buf *scratch);
/* A call in the array `tool_calls`, as raw JSON values. An absent one is STR_NONE. */
struct message_call {
    struct str id, name, args;
};
/* Reads the next call; `it` begins as json_iter(m->field[FIELD_TOOL_CALLS]). The forms of other
 * programs are understood, too: OpenAI's `function` with `name` and `arguments`, Anthropic's
 * `input`. Arguments that are an object written into a string are unpacked into `scratch`, and
 * borrowed from there. Returns false at the end; elements that are no objects are skipped. */
bool message_next_call(struct json_iter *it, struct message_call *call, struct buf *scratch);
/* Adds the addresses of the pages that an answer cites to `urls`, decoded, each once and in order:
 * urls->entries has them. The value is that of the field `citations`. An address is the `url` of a
 * citation, or of its object `url_citation`, as in OpenAI's chat completions. A map gets at most
 * MESSAGE_SOURCES. */
#define MESSAGE_SOURCES 50
void message_sources(struct str citations, struct hash_map *urls);
/* How a response ended, by its finish_reason. */
enum ending {
    ENDING_COMPLETE, /* `stop`, `tool_calls`, their other names, or no reason */
    ENDING_LENGTH,   /* the limit of the response's length was reached */
    ENDING_FULL,     /* the model's context is full */
    ENDING_FILTERED, /* the model refused, or a filter stopped it */
    ENDING_PAUSED,   /* the server continues it when its blocks are sent back */
    ENDING_BROKEN,   /* every other reason: the response is not complete */
};
/* Returns how a response with this finish_reason ended. The names are those of all services, in any
 * case: OpenAI and Anthropic's references, those of Bedrock, Cohere, DeepSeek, Gemini
 * (FinishReason), Hugging Face, Mistral, watsonx and Z.ai. *name (may be NULL) is set to our word
 * where the reason is another name of `stop`, `tool_calls`, `length` or `content_filter` itself,
 * else to the reason. */
enum ending message_ending(struct str reason, struct str *name);
/* Returns whether it is a system line with `reset` true. */
bool message_is_reset(const struct message *m);
/* Returns whether the line gives its session a title: its role is MESSAGE_TITLE_ROLE, and `content`
 * is the title, or empty to remove it (history/title.h). Such a line is no message: its `role` is
 * ROLE_OTHER, so that it is never sent, and it is neither counted nor part of a thread. */
#define MESSAGE_TITLE_ROLE "title"
bool message_is_title(const struct message *m);
/* Returns the title that such a line gives, without white space at its ends and cut after
 * MESSAGE_TITLE code points, borrowed in the same way. */
#define MESSAGE_TITLE 200
struct str message_title(const struct message *m, struct buf *scratch);

/* ---- a line to be written ---- */

struct draft {
    struct buf field[FIELD_COUNT]; /* raw JSON values; empty: absent */
    struct buf unknown;            /* `"key":value` members joined by commas, byte for byte */
};

void draft_init(struct draft *d);
void draft_release(struct draft *d);
/* Each of these replaces the value of the field. draft_set takes valid JSON and keeps its bytes;
 * only if it contains a newline, the white space between its tokens is removed. */
void draft_set(struct draft *d, enum field f, struct str json);
void draft_set_text(struct draft *d, enum field f, struct str text);
void draft_set_int(struct draft *d, enum field f, long long n);
/* Sets FIELD_USAGE (usage_add_object), unless no count is known. */
void draft_set_usage(struct draft *d, const struct usage *u, struct str raw);
/* Adds one string to an array field (files, replaces, …), and makes the array if it is absent. */
void draft_push_text(struct draft *d, enum field f, struct str text);
bool draft_has(const struct draft *d, enum field f);

/* Makes d a user, assistant, system or tool message with that content and nothing else. */
void draft_message(struct draft *d, enum role role, struct str content);
/* Copies every member of a JSON object into d, known or not, and checks the types of the known
 * ones. A null `content` becomes ""; any other known field that is null counts as absent. The five
 * required fields may be absent. If a known key is repeated, the last one counts; unknown keys are
 * all kept. Returns 0; or -1 with *e set (ERR_USAGE, the message names the field) and d
 * unchanged. */
int draft_from_json(struct draft *d, struct str object, struct err *e);

/* Checks that the line is no longer than BUF_LINE after `more` bytes are added. Returns 0, or -1
 * with *e set (ERR_FAILURE). */
int draft_fits(const struct draft *d, size_t more, struct err *e);
/* Checks that the five required fields are set and that the line is no longer than BUF_LINE.
 * Returns 0, or -1 with *e set (ERR_USAGE or ERR_FAILURE). */
int draft_check(const struct draft *d, struct err *e);
/* Adds the line with its newline to `out`. Returns 0, or -1 as draft_check. */
int draft_format(const struct draft *d, struct buf *out, struct err *e);

/* ---- lines that our programs wrote ---- */

/*
 * The beginning of a line in the form in which our programs write it (chathist(5)) is recognised
 * by comparing fixed text, without parsing. Most lines of a history have this form.
 */

/* Returns whether the line is a valid message whose next member is its content, and sets
 * *timestamp, *content to the text between its quotes, and *calls to whether it has tool calls.
 * Returns false if that is not certain. */
bool own_line_check(struct str line, struct str *timestamp, struct str *content, bool *calls);

#endif
