/*
 * jsonrpc - reads JSON-RPC 2.0 messages from a stream of bytes, and writes them, one a line.
 *
 * The reader is a push parser: it does no input itself, and accepts pieces of any size. It knows no
 * methods; mcp/client does.
 *
 * Sources: jsonrpc.org/specification;
 * modelcontextprotocol.io/specification/2025-11-25/basic/transports (stdio: messages are UTF-8,
 * "delimited by newlines, and MUST NOT contain embedded newlines") and
 * 2025-03-26/basic (a batch is an array of messages; later revisions have no batches).
 */
#ifndef CHATHIST_MCP_JSONRPC_H
#define CHATHIST_MCP_JSONRPC_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* The longest message, in bytes. A longer line makes the stream unusable. */
#define JSONRPC_MESSAGE_MAX ((size_t)16 << 20)
/* How many lines that are not messages (banners, log lines) are skipped before the stream counts as
 * unusable. */
#define JSONRPC_NOISE_MAX 200

enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_RESULT, JSONRPC_ERROR };

/* A message, valid during the call that receives it. Members that it does not have are STR_NONE. */
struct jsonrpc_message {
    enum jsonrpc_kind kind;
    struct str id;     /* JSON: a string or a number; in an error it may be null */
    int64_t number;    /* the id as a number; -1 if it is not a number or negative */
    struct str method; /* text; in requests and notifications */
    struct str body;   /* JSON: params, result or error; an error that is none at all: STR_NONE */
};

/* Receives a message. Returns 0, or -1 with *e set to stop reading. */
typedef int jsonrpc_fn(void *arg, const struct jsonrpc_message *m, struct err *e);

struct jsonrpc {
    jsonrpc_fn *fn;
    void *arg;
    struct buf line;  /* the beginning of a line that is not complete */
    size_t noise;     /* how many lines were not messages */
    struct buf shown; /* the beginning of the first of them, as text for an error */
};

void jsonrpc_init(struct jsonrpc *r, jsonrpc_fn *fn, void *arg);
void jsonrpc_release(struct jsonrpc *r);
/* Reads the next bytes. Bytes that are not UTF-8 become U+FFFD; then a line that is not a message
 * is skipped. Returns 0, or -1 with *e set if fn failed, a message is too long or is not JSON, or
 * too many lines were not messages. Nothing more may be fed then. */
int jsonrpc_feed(struct jsonrpc *r, struct str bytes, struct err *e);
/* Reads a line without its newline, or what another transport calls a message. Returns like
 * jsonrpc_feed. */
int jsonrpc_take(struct jsonrpc *r, struct str line, struct err *e);
/* Counts a message that makes no sense to the caller as a line that is not a message. Returns 0, or
 * -1 with *e set if there were too many. */
int jsonrpc_noise(struct jsonrpc *r, struct str what, struct err *e);

/* Adds a request, or a notification if id is 0, and a newline. params is a JSON value that
 * json_check accepted, or STR_NONE. */
void jsonrpc_add_call(struct buf *out, int64_t id, const char *method, struct str params);
/* Adds an answer and a newline: `json` is the member `result` or `error`. id and json are JSON
 * values that json_check accepted. */
void jsonrpc_add_answer(struct buf *out, struct str id, const char *member, struct str json);

/* Adds the body of an error in the form `message (-32601)`. A long message is cut. */
void jsonrpc_describe_error(struct buf *out, struct str error);

#endif
