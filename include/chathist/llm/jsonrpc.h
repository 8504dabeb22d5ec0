/*
 * jsonrpc - JSON-RPC 2.0 messages, one a line: read from a stream of bytes, and written.
 *
 * A pure push parser: it does no input itself, and pieces may be of any size. It knows no methods:
 * that is for llm/mcp.
 *
 * Sources: jsonrpc.org/specification;
 * modelcontextprotocol.io/specification/2025-11-25/basic/transports (stdio: messages are UTF-8,
 * "delimited by newlines, and MUST NOT contain embedded newlines") and
 * 2025-03-26/basic (a batch, an array of messages, which later revisions have not got).
 */
#ifndef CHATHIST_LLM_JSONRPC_H
#define CHATHIST_LLM_JSONRPC_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* The longest message, in bytes: a line that goes on makes the stream unusable. */
#define JSONRPC_MESSAGE_MAX ((size_t)16 << 20)
/* How many lines that are no message are passed over (banners, log lines), before the stream counts
 * as unusable. */
#define JSONRPC_NOISE_MAX 200

#define JSONRPC_METHOD_NOT_FOUND (-32601)

enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_RESULT, JSONRPC_ERROR };

/* A message, valid during the call that it is handed to. What it does not have is STR_NONE. */
struct jsonrpc_message {
    enum jsonrpc_kind kind;
    struct str id;     /* JSON: a string or number; of an error also null */
    int64_t number;    /* the id as a number; -1 when it is none, or negative */
    struct str method; /* text; of a request and a notification */
    struct str body;   /* JSON: params, result or error */
};

/* Takes a message. 0, or -1 when it ends the reading. */
typedef int jsonrpc_fn(void *arg, const struct jsonrpc_message *m, struct err *e);

struct jsonrpc {
    jsonrpc_fn *fn;
    void *arg;
    struct buf line; /* the beginning of a line whose end has not come */
    size_t noise;    /* lines that were no message */
};

void jsonrpc_init(struct jsonrpc *r, jsonrpc_fn *fn, void *arg);
void jsonrpc_release(struct jsonrpc *r);
/* The next bytes. Bytes that are not UTF-8 become U+FFFD; a line that is no message then is passed
 * over. -1: fn failed, a message is too long, too many lines are none; nothing more may be fed. */
int jsonrpc_feed(struct jsonrpc *r, struct str bytes, struct err *e);
/* Counts something as no message that was one by its form. -1: that were too many. */
int jsonrpc_noise(struct jsonrpc *r, struct str what, struct err *e);

/* Each adds a message and its newline. params, result and id are JSON that json_check accepted,
 * with any white space; params may be STR_NONE. */
void jsonrpc_add_request(struct buf *out, int64_t id, const char *method, struct str params);
void jsonrpc_add_notification(struct buf *out, const char *method, struct str params);
void jsonrpc_add_result(struct buf *out, struct str id, struct str result);
void jsonrpc_add_error(struct buf *out, struct str id, int code, const char *message);

/* Adds an error's body for a person: `message (-32601)`, of a long message the beginning. */
void jsonrpc_describe_error(struct buf *out, struct str error);

#endif
