/*
 * client - what mcp/client shares with its transports, by which messages reach a server and come
 * back: a program on this machine (mcp/stdio) and Streamable HTTP (mcp/streamable_http).
 *
 * A transport only moves messages. It gives each message of the server to mcp_receive, and reports
 * what mcp/client cannot see with the other functions at the end of this file.
 */
#ifndef MCP_CLIENT_H
#define MCP_CLIENT_H

#include "chathist/mcp/client.h"

/* A message to the server. All pointers are borrowed for the call of `send`. */
struct mcp_message {
    struct str json;             /* ends with a newline */
    int64_t id;                  /* a request's id; 0: a notification or an answer */
    const char *method;          /* NULL: an answer */
    const struct mcp_tool *tool; /* the tool of a tools/call, otherwise NULL */
    struct str args;             /* its arguments, a JSON object */
};

struct mcp_transport {
    /* The server is asked with server/discover first, and then with initialize if it does not know
     * that, as 2026-07-28/basic/transports/streamable-http recommends. Otherwise the other way
     * round, because a program that has a session is the rule. */
    bool discover_first;
    /* Queues a message, without waiting and without calling the functions below. */
    void (*send)(struct mcp_server *s, const struct mcp_message *m);
    /* Fills in the descriptors that the server waits for and returns their number. After 0, the
     * next step follows soon. */
    size_t (*fds)(const struct mcp_server *s, struct pollfd fds[TOOL_FDS]);
    /* Writes and reads as much as is possible without waiting. */
    void (*step)(struct mcp_server *s);
    /* The answer to this request is not wanted any more. May be NULL. */
    void (*forget)(struct mcp_server *s, int64_t id);
    /* mcp/client gives the server up: the transport sends and reads nothing more. Adds `: TEXT` to
     * the reason, what the server itself says about it. Called within `step`, too. May be NULL, if
     * `step` ends the exchanges of such a server by itself. */
    void (*drop)(struct mcp_server *s, struct buf *why);
    /* Ends the servers, all of this transport, side by side, and frees their links. The arguments
     * are those of mcp_end. */
    void (*end)(struct mcp_server *const *servers, size_t count, int64_t grace_ms, int hurry_fd);
};

/* Reads a message of the server, on one line or several. Bytes that are not UTF-8 become U+FFFD. A
 * text that is no message is passed over, unless there are many or it was meant as one: then this
 * function gives the server up. */
void mcp_receive(struct mcp_server *s, struct str text);
/* Reads the body of a JSON-RPC error as the answer to this request. */
void mcp_receive_error(struct mcp_server *s, int64_t id, struct str error);
/* Returns whether the server has been given up. */
bool mcp_is_broken(const struct mcp_server *s);
/* Adds `: it writes what is no message: 'LINE'` with the first such line, like one of JSON over
 * several lines, which explains why a server was never ready. Adds nothing for another server. */
void mcp_add_noise(const struct mcp_server *s, struct buf *out);
/* Gives a server up for good: sets its fault, `MCP server 'name' ...`. Does nothing if it has been
 * given up. */
void mcp_give_up(struct mcp_server *s, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A request gets no answer, for this reason. The server can be used for other requests. */
void mcp_lose_answer(struct mcp_server *s, int64_t id, const struct err *why);
/* The server has ended the session to which this request belongs, and did not take the request. */
void mcp_lose_session(struct mcp_server *s, int64_t id);
/* Returns whether this is a request whose answer has not come. */
bool mcp_awaits(struct mcp_server *s, int64_t id);

/* For the start of a transport: prepares *s, which then has the link; and sends the first request,
 * once the link can take it. */
void mcp_init(struct mcp_server *s, const char *name, const struct mcp_transport *transport,
              void *link, const struct mcp_watch *watch);
void mcp_greet(struct mcp_server *s);

extern const struct mcp_transport mcp_stdio_transport, mcp_http_transport;

/* ---- mcp/mirror ---- */

/* Adds the header lines `Name: value\n` that repeat parts of a message with this method. For
 * tools/call, `tool` is the name that the server knows, and otherwise NULL; `schema` and `args` are
 * the JSON of its inputSchema and its arguments, or STR_NONE if no parameter is to be repeated. */
void mcp_add_headers(struct buf *out, const char *method, const char *tool, struct str schema,
                     struct str args);
/* Returns whether each `x-mcp-header` of an inputSchema follows the rules. A tool is not to be
 * offered otherwise. */
bool mcp_mirror_valid(struct str schema);

#endif
