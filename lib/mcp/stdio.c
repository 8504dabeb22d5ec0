#include "mcp/client.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* How much one read returns (child_read), and how much is read at most before other servers and
 * calls have their turn. */
#define READ_SIZE ((size_t)65536)
#define STEP_MAX ((size_t)4 << 20)
/* How much of standard error is kept, and how much of that a message shows, in bytes. */
#define LOG_KEPT ((size_t)4096)
#define LOG_SHOWN ((size_t)400)
/* How long a server whose output has ended may take to end, and again after SIGTERM. */
#define LEAVING_MS 500
#define LOOK_MS 5

struct link {
    struct child child;
    struct buf out;  /* messages that are not written yet */
    struct buf line; /* the beginning of a message that is not complete */
    struct buf log;  /* the end of its standard error */
};

/* Reads standard error and keeps the end of it. */
static void read_log(struct link *l)
{
    size_t total = 0, before = l->log.len;

    while (l->child.err >= 0 && total < STEP_MAX && child_read(&l->child.err, &l->log)) {
        total += l->log.len - before;
        if (l->log.len > LOG_KEPT)
            buf_consume(&l->log, l->log.len - LOG_KEPT);
        before = l->log.len;
    }
}

/* Adds the end of the log on one line, beginning with a whole line of it if one is near enough. */
static void stdio_drop(struct mcp_server *s, struct buf *why)
{
    struct link *l = s->link;
    struct buf text = BUF_INIT(8 * LOG_KEPT);
    struct str log;

    read_log(l);
    log = str_trim(buf_str(&l->log));
    buf_add_c(why, log.n > 0 ? ": " : "");
    if (log.n > LOG_SHOWN) {
        const char *line;

        log = str_skip(log, log.n - LOG_SHOWN);
        line = memchr(log.p, '\n', log.n);
        if (line)
            log = str_skip(log, (size_t)(line + 1 - log.p));
        buf_add_c(why, "… ");
    }
    utf8_add_repaired(&text, log);
    vis_add_line(why, buf_str(&text), true);
    buf_release(&text);
    buf_release(&l->out);
    child_end(&l->child, LEAVING_MS);
}

/* Closes a server of which `what` has ended. Waits for the process first, because its exit status
 * and its last messages say more. */
static void close_ended(struct mcp_server *s, const char *what)
{
    struct link *l = s->link;
    int64_t until = time_ticks() + LEAVING_MS;
    struct buf noise = BUF_INIT(BUF_SMALL);
    int status;

    mcp_add_noise(s, &noise);
    child_close(&l->child.in);
    while (!child_ended(&l->child) && time_ticks() < until) {
        read_log(l);
        file_wait(-1, LOOK_MS);
    }
    status = l->child.status;
    if (!child_ended(&l->child))
        mcp_give_up(s, ERR_LIMIT, "closed its %s%s", what, buf_c(&noise));
    else if (status > 128)
        mcp_give_up(s, ERR_LIMIT, "was ended by signal %d%s", status - 128, buf_c(&noise));
    else
        mcp_give_up(s, ERR_LIMIT, "ended with status %d%s", status, buf_c(&noise));
    buf_release(&noise);
}

/* Fills in what the server waits for. Returns the number of descriptors, 0 if it is broken. */
static size_t fds_of_child(const struct mcp_server *s, struct pollfd fds[TOOL_FDS])
{
    const struct link *l = s->link;
    size_t n = 0;

    if (mcp_is_broken(s))
        return 0;
    if (l->child.out >= 0)
        fds[n++] = (struct pollfd){.fd = l->child.out, .events = POLLIN};
    if (l->child.err >= 0)
        fds[n++] = (struct pollfd){.fd = l->child.err, .events = POLLIN};
    if (l->child.in >= 0 && l->out.len > 0)
        fds[n++] = (struct pollfd){.fd = l->child.in, .events = POLLOUT};
    return n;
}

static void write_messages(struct mcp_server *s)
{
    struct link *l = s->link;

    if (l->out.overflow)
        mcp_give_up(s, ERR_LIMIT, "does not read what it is sent");
    while (l->child.in >= 0 && l->out.len > 0) {
        size_t n = child_write(&l->child.in, buf_str(&l->out));

        if (n == 0)
            return;
        buf_consume(&l->out, n);
    }
}

/* Does one read. Gives complete lines to mcp/client, which refuses one that is too long, and keeps
 * the beginning of the next one. Returns false if there is nothing more to read now. */
static bool read_available(struct mcp_server *s, size_t *total)
{
    struct link *l = s->link;
    struct buf bytes = BUF_INIT(BUF_SMALL);
    bool more = child_read(&l->child.out, &bytes);
    struct str rest = buf_str(&bytes);

    *total += bytes.len;
    while (rest.n > 0) {
        buf_add_str(&l->line, str_cut(&rest, '\n'));
        if (!rest.p && l->line.len <= MCP_MESSAGE_MAX)
            break;
        mcp_receive(s, buf_str(&l->line));
        buf_clear(&l->line);
    }
    buf_release(&bytes);
    if (!more && l->child.out < 0)
        close_ended(s, "output");
    return more && !mcp_is_broken(s);
}

/* Writes and reads as much as is possible without waiting. */
static void stdio_step(struct mcp_server *s)
{
    struct link *l = s->link;
    bool ended;
    size_t total = 0;

    if (mcp_is_broken(s))
        return;
    ended = child_ended(&l->child);
    write_messages(s);
    read_log(l);
    while (!mcp_is_broken(s) && total < STEP_MAX && read_available(s, &total))
        continue;
    if (mcp_is_broken(s) || total >= STEP_MAX)
        return;
    /* A process that the server started may keep its output open. Everything that the server
     * itself wrote before it ended, or before it closed its input, has been read here. */
    if (ended || l->child.in < 0)
        close_ended(s, "input");
    else
        write_messages(s);
}

static void stdio_send(struct mcp_server *s, const struct mcp_message *m)
{
    struct link *l = s->link;

    buf_add_str(&l->out, m->json);
}

/* ---- start and end ---- */

int mcp_start(struct mcp_server *s, const char *name, char *const argv[], char *const env[],
              const char *cwd, const struct mcp_watch *watch, struct err *e)
{
    struct link *l = mem_zalloc(sizeof *l);
    struct err why = ERR_INIT;

    *l = (struct link){.child = CHILD_INIT};
    buf_init(&l->out, MCP_OUT_MAX);
    buf_init(&l->line, MCP_MESSAGE_MAX + READ_SIZE);
    buf_init(&l->log, LOG_KEPT + READ_SIZE);
    mcp_init(s, name, &mcp_stdio_transport, l, watch);
    /* The server runs as the same user and must not read keys from this process. */
    process_hide();
    if (child_start(&l->child, argv, env, cwd, &why) < 0) {
        err_set(e, ERR_LIMIT, "MCP server '%s' cannot be started: %s", name, err_text(&why));
        err_release(&why);
        return -1;
    }
    mcp_greet(s);
    return 0;
}

static void stdio_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms,
                      int hurry_fd)
{
    size_t room = 0;
    struct child **children = mem_grow(NULL, &room, count, sizeof(struct child *));

    for (size_t i = 0; i < count; i++)
        children[i] = &((struct link *)servers[i]->link)->child;
    child_end_all(children, count, grace_ms, hurry_fd);
    free(children);
    for (size_t i = 0; i < count; i++) {
        struct link *l = servers[i]->link;

        buf_release(&l->out);
        buf_release(&l->line);
        buf_release(&l->log);
        free(l);
    }
}

const struct mcp_transport mcp_stdio_transport = {.send = stdio_send,
                                                  .fds = fds_of_child,
                                                  .step = stdio_step,
                                                  .drop = stdio_drop,
                                                  .end = stdio_end};
