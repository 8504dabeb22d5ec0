#include "chathist/chat/mcp_servers.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"
#include "chathist/cli/diagnostics.h"
#include "chat/clean_env.h"
#include "chat/mcp_wish.h"
#include "chathist/llm/mcp_await.h"
#include "chathist/cli/signals.h"

/* So much is shown of what a server logs, in bytes. */
#define MESSAGE_MAX ((size_t)2000)

/* ---- what they tell beside ---- */

static void tell(void *arg, const char *server, enum mcp_news news, struct str text)
{
    const struct mcp_servers *m = arg;

    if (m->quiet)
        return;
    text = tool_cut(text, MESSAGE_MAX);
    if (news == MCP_SLOW)
        hintf(m->verbose, "waiting for MCP server '%s'", server);
    else if (news == MCP_LEFT_OUT)
        warnf("MCP server '%s': tool '%.*s' is left out, its inputSchema is not for an object",
              server, (int)text.n, text.p);
    else if (news == MCP_LIST_LOST)
        warnf("MCP server '%s' cannot list its tools anew: %.*s", server, (int)text.n, text.p);
    else if (m->verbose)
        notef("mcp_message %s %.*s", server, (int)text.n, text.p);
}

/* ---- their tools ---- */

static void add(const struct tool ***tools, size_t *count, size_t *cap, const struct tool *t)
{
    *tools = mem_grow(*tools, cap, *count + 1, sizeof(const struct tool *));
    (*tools)[(*count)++] = t;
}

static bool is_named(const struct mcp_server *s)
{
    return s->list.count > 0 && s->list.tools[0]->tool.name;
}

/* Names those that have no names yet, so that each has its own. */
static void name_tools(struct mcp_servers *m, const struct tool *const *others, size_t others_count)
{
    const struct tool **taken = NULL;
    size_t count = 0, cap = 0;

    for (size_t i = 0; i < others_count; i++)
        add(&taken, &count, &cap, others[i]);
    for (size_t i = 0; i < m->count; i++)
        for (size_t j = 0; is_named(m->at[i]) && j < m->at[i]->list.count; j++)
            add(&taken, &count, &cap, &m->at[i]->list.tools[j]->tool);
    for (size_t i = 0; i < m->count; i++) {
        struct mcp_server *s = m->at[i];

        if (is_named(s))
            continue;
        mcp_list_name(&s->list, s->name, taken, count);
        for (size_t j = 0; j < s->list.count; j++)
            add(&taken, &count, &cap, &s->list.tools[j]->tool);
    }
    free(taken);
}

static void gather_tools(struct mcp_servers *m, const struct tool *const *others,
                         size_t others_count)
{
    name_tools(m, others, others_count);
    m->tools_count = 0;
    for (size_t i = 0; i < m->count; i++) {
        for (size_t j = 0; j < m->at[i]->list.count; j++)
            add(&m->tools, &m->tools_count, &m->tools_cap, &m->at[i]->list.tools[j]->tool);
    }
}

bool mcp_servers_renew(struct mcp_servers *m, const struct tool *const *others, size_t others_count,
                       int cancel_fd)
{
    if (!mcp_renew(m->at, m->count, MCP_RENEW_MS, cancel_fd))
        return false;
    gather_tools(m, others, others_count);
    return true;
}

/* ---- from their start to their end ---- */

/* A word alone was most likely meant as the name of a server in the configuration. */
static int add_hint(const struct mcp_wish *w, struct err *e)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    if (w->command.at[1] || strchr(w->text, '/'))
        return -1;
    buf_addf(&text, "%s (and the configuration has no mcp.%s)", err_text(e), w->text);
    err_set(e, e->kind, "%s", buf_c(&text));
    buf_release(&text);
    return -1;
}

static int start_all(struct mcp_servers *m, const struct mcp_wishes *wishes, char *const env[],
                     struct err *e)
{
    m->watch = (struct mcp_watch){tell, m};
    for (size_t i = 0; i < wishes->count; i++) {
        struct mcp_server *s = mem_zalloc(sizeof *s);

        m->at = mem_grow(m->at, &m->cap, m->count + 1, sizeof(struct mcp_server *));
        m->at[m->count++] = s;
        if (mcp_start(s, wishes->at[i].name, wishes->at[i].command.at, env, wishes->at[i].cwd,
                      &m->watch, e) < 0)
            return add_hint(&wishes->at[i], e);
    }
    return 0;
}

/* Ends them; a signal that comes, or has come, is a reason to hurry. */
static void end_all(struct mcp_servers *m, bool hurry, int cancel_fd)
{
    mcp_end(m->at, m->count, hurry ? CHILD_HURRY_MS : MCP_GRACE_MS, cancel_fd);
    for (size_t i = 0; i < m->count; i++)
        free(m->at[i]);
    free(m->at);
    free(m->tools);
    *m = (struct mcp_servers){0};
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
    free(env);
    if (result < 0 || interrupt_signal())
        end_all(m, false, cancel_fd);
    signo = interrupt_signal();
    interrupt_end();
    if (signo)
        die_signal(signo);
    return result;
}

void mcp_servers_open(struct mcp_servers *m, const char *const *options, const struct config *c,
                      const char *key, const struct tool *const *others, size_t others_count)
{
    struct mcp_wishes wishes;
    struct err e = ERR_INIT;

    m->open = true;
    if (mcp_wishes_read(&wishes, c, options, &e) < 0 ||
        (wishes.count > 0 && get_ready(m, &wishes, key, &e) < 0))
        die_err(&e);
    mcp_wishes_release(&wishes);
    gather_tools(m, others, others_count);
    for (size_t i = 0; i < m->count; i++)
        if (m->at[i]->list.count == 0 && !m->quiet)
            warnf("MCP server '%s' has no tools", m->at[i]->name);
}

void mcp_servers_close(struct mcp_servers *m, bool hurry)
{
    int cancel_fd = m->count > 0 ? interrupt_begin(NULL) : -1, signo;

    end_all(m, hurry, cancel_fd);
    if (cancel_fd < 0)
        return;
    signo = interrupt_signal();
    interrupt_end();
    if (signo && !hurry)
        die_signal(signo);
}
