#include "chathist/llm/mcp_link.h"

#include <stdarg.h>
#include <string.h>

#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"

/* How much is read at once, and how much at most in one step: other calls have their turn, too. */
#define READ_SIZE ((size_t)65536) /* no less than child_read takes */
#define STEP_MAX ((size_t)4 << 20)

/* How much of standard error is kept, and how much of that a message shows, in bytes. */
#define LOG_KEPT ((size_t)4096)
#define LOG_SHOWN ((size_t)400)

/* How long a server may take to go whose output has ended, which is on its way, and again after
 * SIGTERM. Milliseconds. */
#define LEAVING_MS 500
#define LOOK_MS 5

bool mcp_link_broken(const struct mcp_link *l)
{
    return l->fault.kind != ERR_NONE;
}

/* ---- standard error ---- */

/* Keeps the end of what comes. */
static void take_log(struct mcp_link *l)
{
    size_t total = 0, before = l->log.len;

    while (l->child.err >= 0 && total < STEP_MAX && child_read(&l->child.err, &l->log)) {
        total += l->log.len - before;
        if (l->log.len > LOG_KEPT)
            buf_consume(&l->log, l->log.len - LOG_KEPT);
        before = l->log.len;
    }
}

/* The end of it on one line, from a line's beginning if one is near enough. */
static void add_log(struct buf *out, struct str log)
{
    struct buf text = BUF_INIT(8 * LOG_KEPT);
    const char *line;

    log = str_trim(log);
    if (log.n == 0)
        return;
    buf_add_c(out, ": ");
    if (log.n > LOG_SHOWN) {
        log = (struct str){log.p + (log.n - LOG_SHOWN), LOG_SHOWN};
        line = memchr(log.p, '\n', log.n);
        if (line)
            log = (struct str){line + 1, (size_t)(log.p + log.n - line) - 1};
        buf_add_c(out, "… ");
    }
    utf8_add_repaired(&text, log);
    vis_add_line(out, buf_str(&text), true);
    buf_release(&text);
}

/* ---- the end ---- */

static void set_fault(struct mcp_link *l, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
static void set_fault(struct mcp_link *l, const char *fmt, va_list ap)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_addf(&text, "MCP server '%s' ", l->name);
    buf_vaddf(&text, fmt, ap);
    add_log(&text, buf_str(&l->log));
    err_set(&l->fault, ERR_LIMIT, "%s", buf_c(&text));
    buf_release(&text);
}

void mcp_link_break(struct mcp_link *l, const char *fmt, ...)
{
    va_list ap;

    if (mcp_link_broken(l))
        return;
    take_log(l);
    va_start(ap, fmt);
    set_fault(l, fmt, ap);
    va_end(ap);
    buf_release(&l->out);
    child_end(&l->child, LEAVING_MS);
}

/* Its input or output has ended, or it has itself: tells how. It may still be saying why. */
static void bury(struct mcp_link *l, const char *what)
{
    int64_t until = clock_ticks() + LEAVING_MS;
    int status;

    child_close(&l->child.in);
    while (!child_ended(&l->child) && clock_ticks() < until) {
        take_log(l);
        io_wait(-1, LOOK_MS);
    }
    status = l->child.status;
    if (!child_ended(&l->child))
        mcp_link_break(l, "closed its %s", what);
    else if (status > 128)
        mcp_link_break(l, "was ended by signal %d", status - 128);
    else
        mcp_link_break(l, "ended with status %d", status);
}

void mcp_link_end(struct mcp_link *l)
{
    child_end(&l->child, LEAVING_MS);
    jsonrpc_release(&l->in);
    buf_release(&l->out);
    buf_release(&l->log);
    err_release(&l->fault);
}

/* ---- at work ---- */

int mcp_link_start(struct mcp_link *l, const char *name, char *const argv[], char *const env[],
                   const char *cwd, jsonrpc_fn *fn, void *arg, struct err *e)
{
    *l = (struct mcp_link){.name = name, .child = CHILD_INIT, .fault = ERR_INIT};
    jsonrpc_init(&l->in, fn, arg);
    buf_init(&l->out, MCP_LINK_OUT_MAX);
    buf_init(&l->log, LOG_KEPT + READ_SIZE);
    /* The server runs as the same user and must not read keys from this process. */
    process_hide();
    return child_start(&l->child, argv, env, cwd, e);
}

size_t mcp_link_fds(const struct mcp_link *l, struct pollfd fds[MCP_LINK_FDS])
{
    size_t n = 0;

    if (mcp_link_broken(l))
        return 0;
    if (l->child.out >= 0)
        fds[n++] = (struct pollfd){.fd = l->child.out, .events = POLLIN};
    if (l->child.err >= 0)
        fds[n++] = (struct pollfd){.fd = l->child.err, .events = POLLIN};
    if (l->child.in >= 0 && l->out.len > 0)
        fds[n++] = (struct pollfd){.fd = l->child.in, .events = POLLOUT};
    return n;
}

/* A server that closed its input may have said something before; that is read first. */
static void give(struct mcp_link *l)
{
    if (l->out.overflow)
        mcp_link_break(l, "does not read what it is sent");
    while (l->child.in >= 0 && l->out.len > 0) {
        size_t n = child_write(&l->child.in, buf_str(&l->out));

        if (n == 0)
            return;
        buf_consume(&l->out, n);
    }
}

/* One read. false: there is nothing more to read now. */
static bool take(struct mcp_link *l, size_t *total)
{
    struct buf bytes = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    if (!child_read(&l->child.out, &bytes)) {
        buf_release(&bytes);
        if (l->child.out < 0)
            bury(l, "output");
        return false;
    }
    *total += bytes.len;
    if (jsonrpc_feed(&l->in, buf_str(&bytes), &e) < 0)
        mcp_link_break(l, "cannot be used: %s", err_text(&e));
    buf_release(&bytes);
    err_release(&e);
    return !mcp_link_broken(l);
}

void mcp_link_step(struct mcp_link *l)
{
    bool ended;
    size_t total = 0;

    if (mcp_link_broken(l))
        return;
    ended = child_ended(&l->child);
    give(l);
    take_log(l);
    while (!mcp_link_broken(l) && total < STEP_MAX && take(l, &total))
        continue;
    if (mcp_link_broken(l) || total >= STEP_MAX)
        return;
    /* Its output may be held open by what it started; what it said itself has been read. */
    if (ended || l->child.in < 0)
        bury(l, "input");
    else
        give(l);
}
