/*
 * response - the response of a model so far: the deltas of a stream, collected.
 *
 * A provider calls the response_... functions for each delta on its wire, and text is passed to
 * the sink at once. Every part has a limit, so that a server cannot fill the memory.
 */
#ifndef CHATHIST_LLM_RESPONSE_H
#define CHATHIST_LLM_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/json.h"
#include "chathist/base/usage.h"
#include "chathist/llm/opaque_blocks.h"

struct tool_call {
    struct buf id;
    struct buf name;
    struct buf args;  /* JSON text as it came; may be invalid */
    struct buf extra; /* the members that go back beside this call, as in `extra` of the response */
    int64_t index;    /* the index on the wire */
    /* private */
    struct json_pieces pieces; /* the pieces of `args` */
};

/* Receives deltas as they arrive. If a function returns -1 (for example because of a broken pipe),
 * the exchange ends. Each may be NULL. */
struct response_sink {
    /* Text is never empty and ends at a code point's end. */
    int (*text)(void *arg, struct str delta);
    void *arg;
    int (*citation)(void *arg, struct str json); /* an object as the server sent it */
    int (*reasoning)(void *arg, struct str delta);
    bool keep_reasoning;
    void (*notice)(void *arg, const char *text); /* one line for the user */
    /* The exchange failed for this reason and is repeated in `ms` milliseconds, the nth time. */
    void (*again)(void *arg, const struct err *why, int64_t ms, unsigned n);
};

/* The most secrets of a request that are masked in its response. */
#define RESPONSE_SECRETS 16

struct response {
    struct buf text; /* valid UTF-8; may hold U+0000 */
    struct tool_call *calls;
    size_t calls_count, calls_cap;
    size_t calls_bytes; /* the size of all calls together */
    struct buf extra; /* the members that go back beside the calls, a JSON object without its end */
    struct opaque_blocks opaque;
    struct buf
        reasoning; /* the reasoning that the user sees, if the sink keeps it; at most RESPONSE_MAX */
    size_t reasoned; /* bytes of reasoning that arrived, kept or not */
    struct usage usage;
    /* What the server itself reported of its usage, an object; of a response that was joined, an
     * array of objects. Empty if it reported none. */
    struct buf raw_usage;
    char *model;         /* the server's name for it; NULL if it has none */
    char *finish_reason; /* one of the words of chathist(5); NULL until it is known */
    bool begun;          /* Anthropic, Responses: a first event arrived */
    bool finished;       /* the wire said that the response is complete */
    bool refused;        /* the text is a refusal */
    char *refusal;       /* the reason, one line that is safe to show; may be NULL */
    /* What the response asks of the client and chat cannot do, and the type of a part that is
     * neither text nor a call nor reasoning: names on one line, safe to show, or NULL. */
    char *asked, *other;
    const struct response_sink *sink; /* may be NULL */
    bool sink_failed;
    struct buf images;   /* images in base64, a line each */
    unsigned unkept;     /* bits of enum response_media: the kinds already reported */
    bool any_tool_calls; /* OpenAI's wire: `function_call` is ignored from here on */
    /* The Responses wire: where the current item begins in `text`, and whether citations or
     * reasoning of it have come. */
    size_t item_start;
    bool item_cited, item_reasoned;
    /* private */
    struct json_pieces pieces;            /* the pieces of `text` */
    struct buf repaired;                  /* an event that was no JSON as it came */
    struct str secrets[RESPONSE_SECRETS]; /* masked in every part */
    size_t secrets_count;
    size_t passed; /* how much of the text the sink has received */
};

/* The limits of a response: the bytes of text and calls together, and the number of calls.
 * Reasoning has another limit (OPAQUE_THINKING_MAX) and is not kept beyond it. */
#define RESPONSE_MAX (BUF_LINE / 2)
#define RESPONSE_CALLS_MAX 1024

void response_init(struct response *a, const struct response_sink *sink);
void response_release(struct response *a);
/* From here on this secret of the request, if the server repeats it, becomes `***` in every part of
 * the response, and opaque blocks that hold it are dropped. A secret like a word
 * (secret_distinct) is not masked, nor are more than RESPONSE_SECRETS. `secret` is borrowed and may
 * be NULL. */
void response_add_secret(struct response *a, const char *secret);

/* Adds a piece of text, a string of checked JSON; any other value adds nothing. Returns 0, or -1:
 * either the sink failed (*e is untouched, a->sink_failed is set), or the response is over
 * RESPONSE_MAX (ERR_INCOMPLETE). */
int response_add_text(struct response *a, struct str string, struct err *e);
/* Ends the text. A surrogate pair that was cut in two becomes U+FFFD. Returns 0, or -1 as above. */
int response_end_text(struct response *a, struct err *e);
/* Adds reasoning. It is not part of the text. Returns 0, or -1 if the sink failed. */
int response_add_reasoning(struct response *a, struct str text);
/* Tells the user something about the request or the response; `text` is one line. */
void response_notice(const struct response *a, const char *text);
/* Reports to the user, once for each kind, that the server sent something that is not kept. */
enum response_media { RESPONSE_IMAGE = 1 << 0, RESPONSE_AUDIO = 1 << 1 };
void response_drop_media(struct response *a, enum response_media media);
/* Keeps an image, once: base64, or a data URL (RFC 2397) that holds it, a JSON string. Another
 * value is reported as not kept. */
void response_add_image(struct response *a, struct str string);
/* Keeps a citation, and passes it on. Any value but a JSON object is skipped. Returns 0, or -1 if
 * the sink failed. */
int response_add_citation(struct response *a, struct str json);
/* Does the same with each element of a JSON array. Any other value has none. */
int response_add_citations(struct response *a, struct str json);
/* Keeps what the server reports of its usage, whole: its counts, its tier, its cost, so that what
 * the response cost can be computed again later. A later value of a member replaces an earlier one
 * unless it is null. Any value but an object is skipped. */
void response_add_usage(struct response *a, struct str object);
/* Keeps one member that the server sends elsewhere; null and absent values are skipped. */
void response_add_usage_member(struct response *a, const char *name, struct str value);
/* Counts something that the server charges for beside the tokens, by its type. */
void response_count_charge(struct response *a, struct str type);
/* Ends the usage, with the cost that a gateway sent as a field of the head, or an empty text: reads
 * the cost. */
void response_finish_usage(struct response *a, struct str head_cost);
/* Returns the newest call at that index on the wire, or NULL. Only this one can still grow. */
struct tool_call *response_call_at(const struct response *a, int64_t index);
/* Adds a piece of the call at `index` on the wire; empty parts add nothing. `args` is a piece of
 * the arguments' text, as a string of checked JSON, or the object itself; any other value adds
 * nothing. A different non-empty id begins a new call at the same index, and so does a name after
 * complete arguments if ids are missing. Returns 0, or -1 if a limit is exceeded
 * (ERR_INCOMPLETE). */
int response_add_call(struct response *a, int64_t index, struct str id, struct str name,
                      struct str args, struct err *e);
/* Notes an object that came in that member beside the call, or for NULL beside all calls; any other
 * value is ignored. Returns 0, or -1 if a limit is exceeded (ERR_INCOMPLETE). */
int response_add_extra(struct response *a, struct tool_call *c, const char *member, struct str json,
                       struct err *e);
/* Completes the calls: a call without an id gets one, a missing name becomes `unnamed`, and missing
 * arguments become `{}`. The objects that go back with them are added to a->opaque.thinking
 * (opaque_add_member), after opaque_finish. A finish reason of `stop` becomes
 * `tool_calls` if there are calls, and the other way round. */
void response_finish_calls(struct response *a);
/* An empty name or reason leaves the earlier one. A reason is translated into the words of
 * chathist(5) (message_ending). */
void response_set_model(struct response *a, struct str model);
void response_set_finish(struct response *a, struct str reason);
/* Notes a call that only the client could carry out, of this type and name (may be empty), and with
 * an absent type that the server carried it out itself. */
void response_ask_client(struct response *a, struct str type, struct str name);
/* Notes a part of a type that means nothing here, such as the search of a server. */
void response_set_other(struct response *a, struct str type);
/* Sets why the model refused: the server's category and explanation; either may be empty. */
void response_set_refusal(struct response *a, struct str category, struct str explanation);
/* Appends the continuation of a paused response `a` without calls. Text and usage are added,
 * calls are moved, and the end of `next` becomes the end of both. Returns 0, or -1 if a limit is
 * exceeded (ERR_INCOMPLETE). */
int response_join(struct response *a, struct response *next, struct err *e);

/* Adds the members of a call, `"id":…,"name":…,"args":…`. Args that are not a valid object are
 * written as a string. */
void response_add_members(const struct tool_call *c, struct buf *out);
/* Adds the calls as the history's `tool_calls`: [{"id","name","args"}]. */
void response_calls_json(const struct response *a, struct buf *out);

#endif
