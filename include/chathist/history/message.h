/*
 * message - one history line: read where it lies, written in one strict form (chathist(5)).
 *
 * A line is one JSON object. `struct message` is a line that was read: every field is the raw JSON
 * value inside the line, borrowed from it, so nothing is lost or rounded. `struct draft` is a line
 * to be written: it owns raw JSON values, known fields by name and unknown members verbatim. Both
 * are driven by one table of fields, whose order is the order in which they are written.
 */
#ifndef CHATHIST_HISTORY_MESSAGE_H
#define CHATHIST_HISTORY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/json.h"

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
    FIELD_REPLY_TO,
    FIELD_REPLACES,
    FIELD_RESET,
    FIELD_FORKED_FROM,
    FIELD_ORIGIN,
    FIELD_THINKING,
    FIELD_MODEL,
    FIELD_PROVIDER,
    FIELD_USAGE,
    FIELD_FINISH_REASON,
    FIELD_COUNT,
};

enum role { ROLE_USER, ROLE_ASSISTANT, ROLE_SYSTEM, ROLE_TOOL, ROLE_OTHER };

/* The key of a field in the line, and the name of a role (ROLE_OTHER: NULL). */
const char *field_name(enum field f);
const char *role_name(enum role r);
enum role role_of(struct str name);

/* ---- a line that was read ---- */

struct message {
    struct str line;               /* the object, without white space, BOM or CR round it */
    struct str field[FIELD_COUNT]; /* raw JSON values; STR_NONE when absent */
    struct str id;                 /* these four decoded */
    struct str session_id;
    struct str timestamp;
    struct str role_text;
    enum role role;
    struct buf own; /* holds what of the four had escapes */
};

#define MESSAGE_INIT                                                                               \
    {                                                                                              \
        .own = BUF_INIT(BUF_LINE)                                                                  \
    }

/* Reads a line (without its newline; a BOM and a CR are tolerated). true when it is a valid
 * object that holds the five fields with their types (content may be null); optional fields may
 * hold anything. m borrows from `line` until the next parse or release; it was made with
 * MESSAGE_INIT. */
bool message_parse(struct message *m, struct str line);
/* Why message_parse refuses a line, for reports: "not JSON", "nested too deeply", "not UTF-8",
 * "NUL bytes", "more than one value", "not an object", "no 'role'", "'content' is not a string";
 * NULL when it does not. */
const char *message_defect(struct str line);
void message_release(struct message *m);

/* The content decoded; borrowed from the line or from scratch (see json_text), which needs BUF_LINE
 * for its maximum. null gives "". */
struct str message_content(const struct message *m, struct buf *scratch);
/* How a session that begins with it is shown in a list: the first MESSAGE_PREVIEW code points of
 * the content, borrowed in the same way. */
#define MESSAGE_PREVIEW 100
struct str message_preview(const struct message *m, struct buf *scratch);
/* An optional text field decoded the same way; STR_NONE when absent or not a string. */
struct str message_text(const struct message *m, enum field f, struct buf *scratch);
/* A call of the array `tool_calls`, as raw values of JSON. Absent ones are STR_NONE. */
struct message_call {
    struct str id, name, args;
};
/* Takes the next call from json_iter(m->field[FIELD_TOOL_CALLS]). Other writers' forms are read as
 * well: OpenAI's `function` with `name` and `arguments`, Anthropic's `input`. Arguments that are an
 * object written into a string are unpacked into `scratch`, and borrowed from there. Returns false
 * at the end; elements that are no objects are passed over. */
bool message_next_call(struct json_iter *it, struct message_call *call, struct buf *scratch);
/* Is it a system line with `reset` true? */
bool message_is_reset(const struct message *m);

/* ---- a line to be written ---- */

struct draft {
    struct buf field[FIELD_COUNT]; /* raw JSON values; empty: absent */
    struct buf unknown;            /* `"key":value` members joined by commas, byte for byte */
};

void draft_init(struct draft *d);
void draft_release(struct draft *d);
/* Each replaces what the field held. draft_set takes valid JSON and keeps it byte for byte, but for
 * white space between its tokens when there is a newline in it. */
void draft_set(struct draft *d, enum field f, struct str json);
void draft_set_text(struct draft *d, enum field f, struct str text);
void draft_set_int(struct draft *d, enum field f, long long n);
/* Adds one string to an array field (files, replaces, …), making the array when absent. */
void draft_push_text(struct draft *d, enum field f, struct str text);
bool draft_has(const struct draft *d, enum field f);

/* Makes d a user, assistant, system or tool message with that content and nothing else. */
void draft_message(struct draft *d, enum role role, struct str content);
/* Takes over every member of an object, known or not, checking the types of the known ones that are
 * there. -1: ERR_USAGE, says which field is wrong, and d is as it was. `content` null becomes "",
 * another known field that is null counts as absent. The five required fields may be absent. Of a
 * repeated known key the last counts; unknown ones all stay. */
int draft_from_json(struct draft *d, struct str object, struct err *e);

/* Can it be written: are the five fields set, and is the line no longer than BUF_LINE? 0; -1:
 * ERR_USAGE or ERR_FAILURE. */
int draft_check(const struct draft *d, struct err *e);
/* Adds the line with its newline, when draft_check lets it. */
int draft_format(const struct draft *d, struct buf *out, struct err *e);

/* ---- lines that our programs wrote ---- */

/*
 * The beginning of a line in the form in which our programs write it (chathist(5)) is recognised
 * by comparing fixed text, without parsing. Most lines of a history have this form.
 */

/* Checks that a line begins as our programs write it, with an id, a session id, a time and a
 * role without escapes. Sets these fields to their JSON values and returns the offset of the
 * next member, or 0. */
size_t own_line_head(struct str line, struct str field[FIELD_CONTENT]);
/* Returns whether that member is a content that is a string. *rest is the text from the first
 * byte of the string to the end of the line. */
bool own_line_content(struct str line, struct str *rest);
/* Returns whether the line is a valid message with that content, and sets *content to the text
 * between its quotes. Returns false if that is not certain. */
bool own_line_check(struct str line, struct str *content);

#endif
