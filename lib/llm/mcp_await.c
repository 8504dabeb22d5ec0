#include "chathist/llm/mcp_await.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/mem.h"

/* How often servers that are waited for are looked after, in milliseconds. */
#define TICK_MS 100

/* One look at those that are not ready: 1 while there is one, 0, -1 for an error. */
static int look(struct mcp_server *const *servers, size_t count, struct pollfd *fds, int64_t wait,
                struct err *e)
{
    nfds_t n = 1;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (servers[i]->state == MCP_READY)
            continue;
        any = true;
        n += mcp_link_fds(&servers[i]->link, fds + n);
    }
    if (!any)
        return 0;
    if (poll(fds, n, (int)(wait < TICK_MS ? wait : TICK_MS)) > 0 && fds[0].revents)
        return err_set(e, ERR_SIGNAL, "interrupted");
    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        if (s->state == MCP_READY)
            continue;
        mcp_step(s);
        if (!mcp_link_broken(&s->link))
            continue;
        if (!s->listed)
            return err_set(e, ERR_LIMIT, "%s", err_text(&s->link.fault));
        /* Calls will tell. */
        mcp_settle(s);
    }
    return 1;
}

/* They have been waited for so long. */
static void be_impatient(struct mcp_server *const *servers, size_t count, int64_t waited,
                         int64_t most)
{
    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        if (s->state == MCP_READY)
            continue;
        if (waited >= MCP_SLOW_MS && !s->told_slow) {
            s->told_slow = true;
            mcp_tell(s, MCP_SLOW, STR_NONE);
        }
        if (waited < most)
            continue;
        if (s->listed)
            mcp_lose_list(s, "it takes too long");
        else
            mcp_link_break(&s->link, "was not ready in %" PRId64 " s", most / 1000);
    }
}

int mcp_await(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd,
              struct err *e)
{
    int64_t began = clock_ticks(), waited;
    struct pollfd *fds = NULL;
    size_t cap = 0;
    int going = 1;

    fds = mem_grow(fds, &cap, count * MCP_LINK_FDS + 1, sizeof *fds);
    while (going > 0) {
        waited = clock_ticks() - began;
        be_impatient(servers, count, waited, ms);
        fds[0] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
        going = look(servers, count, fds, waited < ms ? ms - waited : 0, e);
    }
    free(fds);
    return going;
}

bool mcp_renew(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd)
{
    bool asked = false, renewed = false;

    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        mcp_step(s);
        if (!s->changed || !s->listed || mcp_link_broken(&s->link))
            continue;
        s->changed = false;
        mcp_list_again(s);
        asked = true;
    }
    /* An interrupt is the caller's to notice: it is still to be read. */
    if (asked)
        mcp_await(servers, count, ms, cancel_fd, NULL);
    for (size_t i = 0; i < count; i++) {
        if (servers[i]->state != MCP_READY) {
            mcp_settle(servers[i]);
            servers[i]->changed = true;
        }
        renewed = renewed || servers[i]->renewed;
        servers[i]->renewed = false;
    }
    return renewed;
}
