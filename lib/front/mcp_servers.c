#include "front/mcp_servers.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/die.h"
#include "front/clean_env.h"
#include "front/mcp_wish.h"
#include "turn/interrupt.h"

static int start_all(struct mcp_servers *m, const struct mcp_wishes *wishes, char *const env[],
                     struct err *e)
{
    for (size_t i = 0; i < wishes->count; i++) {
        struct mcp_server *s = mem_zalloc(sizeof *s);

        m->at = mem_grow(m->at, &m->cap, m->count + 1, sizeof(struct mcp_server *));
        m->at[m->count++] = s;
        if (mcp_start(s, wishes->at[i].name, wishes->at[i].command.at, env, e) < 0)
            return -1;
    }
    return 0;
}

/* Names the tools of a server, and adds them to the list. `taken` are all tools before it. */
static void add_tools(struct mcp_servers *m, struct mcp_server *s, const struct tool **taken,
                      size_t taken_count)
{
    mcp_list_name(&s->list, s->name, taken, taken_count);
    for (size_t i = 0; i < s->list.count; i++) {
        m->tools =
            mem_grow(m->tools, &m->tools_cap, m->tools_count + 1, sizeof(const struct tool *));
        m->tools[m->tools_count++] = &s->list.tools[i]->tool;
    }
}

static void gather_tools(struct mcp_servers *m, const struct tool *const *others,
                         size_t others_count, bool quiet)
{
    const struct tool **taken = NULL;
    size_t count = 0, cap = 0;

    for (size_t i = 0; i < m->count; i++) {
        taken =
            mem_grow(taken, &cap, others_count + m->tools_count + 1, sizeof(const struct tool *));
        for (size_t j = count; j < others_count + m->tools_count; j++)
            taken[j] = j < others_count ? others[j] : m->tools[j - others_count];
        count = others_count + m->tools_count;
        add_tools(m, m->at[i], taken, count);
        if (m->at[i]->list.count == 0 && !quiet)
            warnf("MCP server '%s' has no tools", m->at[i]->name);
    }
    free(taken);
}

/* Starts them and waits for them; a signal ends the program, and them before it. */
static int get_ready(struct mcp_servers *m, const struct mcp_wishes *wishes, const char *key,
                     struct err *e)
{
    int cancel_fd = interrupt_begin(e), result, signo;
    char **env;

    if (cancel_fd < 0)
        return -1;
    env = clean_env(key);
    result = start_all(m, wishes, env, e);
    if (result == 0)
        result = mcp_await(m->at, m->count, MCP_START_MS, cancel_fd, e);
    if (result < 0)
        mcp_servers_close(m);
    free(env);
    signo = interrupt_signal();
    interrupt_end();
    if (signo) {
        mcp_servers_close(m);
        die_signal(signo);
    }
    return result;
}

void mcp_servers_open(struct mcp_servers *m, const char *const *options, const struct config *c,
                      const char *key, const struct tool *const *others, size_t others_count,
                      bool quiet)
{
    struct mcp_wishes wishes;
    struct err e = ERR_INIT;

    *m = (struct mcp_servers){.open = true};
    if (mcp_wishes_read(&wishes, c, options, &e) < 0 ||
        (wishes.count > 0 && get_ready(m, &wishes, key, &e) < 0))
        die_err(&e);
    mcp_wishes_release(&wishes);
    gather_tools(m, others, others_count, quiet);
}

void mcp_servers_close(struct mcp_servers *m)
{
    mcp_end(m->at, m->count);
    for (size_t i = 0; i < m->count; i++)
        free(m->at[i]);
    free(m->at);
    free(m->tools);
    *m = (struct mcp_servers){0};
}
