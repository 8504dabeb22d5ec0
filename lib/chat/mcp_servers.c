#include "chathist/chat/mcp_servers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/chat/tools.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"

/* ---- which servers are wanted ---- */

static char *copy(const char *s)
{
    return mem_copy(s, strlen(s));
}

/* Refuses addresses, because the reason that the system would give does not help. */
static int check_program(const char *program, struct err *e)
{
    if (strncmp(program, "http://", 7) != 0 && strncmp(program, "https://", 8) != 0)
        return 0;
    return err_set(
        e, ERR_USAGE,
        "cannot use '%s' as an MCP server: it is an address, and only programs can be run",
        program);
}

static struct mcp_config *find_config(const struct mcp_configs *w, const char *name)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->at[i].name, name) == 0)
            return &w->at[i];
    return NULL;
}

static int add_config(struct mcp_configs *w, const char *name, const char *command, struct err *e)
{
    struct mcp_config *same = find_config(w, name);
    struct mcp_config *config;
    struct err why = ERR_INIT;

    if (same && strcmp(same->text, command) == 0)
        return 0;
    if (same)
        return err_set(e, ERR_USAGE, "two MCP servers have the name '%s'", name);
    w->at = mem_grow(w->at, &w->cap, w->count + 1, sizeof *w->at);
    config = &w->at[w->count++];
    *config = (struct mcp_config){.name = copy(name), .text = copy(command)};
    if (words_split(&config->command, str_of(command), &why) == 0)
        return check_program(config->command.at[0], e);
    err_set(e, ERR_USAGE, "bad command '%s' of an MCP server: %s", command, err_text(&why));
    err_release(&why);
    return -1;
}

static int bad_name(const char *name, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "bad name '%s' of an MCP server: 1 to %d letters, digits, '_' and '-' are "
                   "expected",
                   name, MCP_SERVER_NAME_MAX);
}

/* Sets the directory in which a server of the configuration runs: `mcp.NAME.cwd`, or else
 * config_command_dir. */
static int set_cwd(struct mcp_config *config, const struct config *c, struct err *e)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const char *value;
    struct stat st;

    buf_addf(&key, "%s.cwd", config->name);
    value = config_named(c, SETTING_MCP, buf_c(&key));
    buf_release(&key);
    if (!value)
        config->cwd = copy(config_command_dir(c));
    else if (*value == '/')
        config->cwd = copy(value);
    else if (strcmp(value, "~") == 0 || strncmp(value, "~/", 2) == 0)
        config->cwd = path_join(config_command_dir(c), value[1] ? value + 2 : "");
    else if (strcmp(value, ".") != 0)
        return err_set(e, ERR_USAGE,
                       "bad directory '%s' of 'mcp.%s.cwd': a path that begins with '/' or '~/' is "
                       "expected, or '.' for the working directory",
                       value, config->name);
    if (config->cwd && (stat(config->cwd, &st) != 0 || !S_ISDIR(st.st_mode)))
        return err_set(e, ERR_USAGE,
                       "bad directory '%s' of 'mcp.%s.cwd': there is no such directory",
                       config->cwd, config->name);
    return 0;
}

/* The configuration is the same in every working directory, so the programs and directories in it
 * are not relative. */
static int add_configured(struct mcp_configs *w, const struct config *c, const char *name,
                          const char *command, struct err *e)
{
    const char *program;
    struct mcp_config *config;

    if (!mcp_server_name_valid(str_of(name)))
        return bad_name(name, e);
    if (find_config(w, name) && strcmp(find_config(w, name)->text, command) == 0)
        return 0;
    if (add_config(w, name, command, e) < 0)
        return -1;
    config = find_config(w, name);
    program = config->command.at[0];
    if (strchr(program, '/') && *program != '/')
        return err_set(e, ERR_USAGE,
                       "bad command '%s' of 'mcp.%s': a path has to begin with a slash", program,
                       name);
    return set_cwd(config, c, e);
}

static int add_option(struct mcp_configs *w, const struct config *c, const char *option,
                      struct err *e)
{
    const char *command = config_named(c, SETTING_MCP, option);
    struct str rest = str_of(option), before = str_cut(&rest, '=');
    char *name;
    int result;

    if (command)
        return add_configured(w, c, option, command, e);
    if (check_program(option, e) < 0)
        return -1;
    if (!rest.p && mcp_server_name_valid(before))
        return err_set(e, ERR_USAGE,
                       "no MCP server '%s': the user configuration has no 'mcp.%s', and a command "
                       "is given as NAME=COMMAND",
                       option, option);
    if (!rest.p || !mcp_server_name_valid(before))
        return err_set(e, ERR_USAGE,
                       "bad MCP server '%s': NAME=COMMAND, or a name from the user configuration, "
                       "is expected",
                       option);
    name = mem_copy(before.p, before.n);
    result = add_config(w, name, rest.p, e);
    free(name);
    return result;
}

static int add_defaults(struct mcp_configs *w, const struct config *c, struct err *e)
{
    const char *value = c->value[SETTING_MCP];
    struct words names = {0};
    int result = 0;

    if (!value || !*value)
        return 0;
    if (words_split(&names, str_of(value), NULL) < 0)
        result = bad_name(value, e);
    for (size_t i = 0; result == 0 && i < names.count; i++) {
        const char *command = config_named(c, SETTING_MCP, names.at[i]);

        if (command)
            result = add_configured(w, c, names.at[i], command, e);
        else
            result =
                err_set(e, ERR_USAGE, "no MCP server '%s': the user configuration has no 'mcp.%s'",
                        names.at[i], names.at[i]);
    }
    words_release(&names);
    return result;
}

int mcp_configs_read(struct mcp_configs *w, const struct config *c, const char *const *options,
                     struct err *e)
{
    int result = 0;

    *w = (struct mcp_configs){0};
    if (!options)
        result = add_defaults(w, c, e);
    for (; options && result == 0 && *options; options++)
        if (**options)
            result = add_option(w, c, *options, e);
    return result;
}

void mcp_configs_release(struct mcp_configs *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->at[i].name);
        free(w->at[i].text);
        free(w->at[i].cwd);
        words_release(&w->at[i].command);
    }
    free(w->at);
    *w = (struct mcp_configs){0};
}

/* How much of a message that a server logs is shown, in bytes. */
#define MESSAGE_MAX ((size_t)2000)

/* ---- news of servers ---- */

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

/* Gives names to tools that have none, so that all names differ. */
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
        mcp_name_tools(s, taken, count);
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

/* ---- start and end ---- */

static int start_all(struct mcp_servers *m, const struct mcp_configs *wanted, char *const env[],
                     struct err *e)
{
    m->watch = (struct mcp_watch){tell, m};
    for (size_t i = 0; i < wanted->count; i++) {
        struct mcp_server *s = mem_zalloc(sizeof *s);

        m->at = mem_grow(m->at, &m->cap, m->count + 1, sizeof(struct mcp_server *));
        m->at[m->count++] = s;
        if (mcp_start(s, wanted->at[i].name, wanted->at[i].command.at, env, wanted->at[i].cwd,
                      &m->watch, e) < 0)
            return -1;
    }
    return 0;
}

/* Ends the servers, in a hurry after a signal. */
static void end_all(struct mcp_servers *m, bool hurry, int cancel_fd)
{
    mcp_end(m->at, m->count, hurry ? CHILD_HURRY_MS : MCP_GRACE_MS, cancel_fd);
    for (size_t i = 0; i < m->count; i++)
        free(m->at[i]);
    free(m->at);
    free(m->tools);
    *m = (struct mcp_servers){0};
}

/* Starts the servers and waits until they are ready. A signal ends them and then the program. */
static int get_ready(struct mcp_servers *m, const struct mcp_configs *wanted, const char *key,
                     struct err *e)
{
    int cancel_fd = interrupt_begin(e), result, signo;
    char **env;

    if (cancel_fd < 0)
        return -1;
    env = clean_env(key);
    result = start_all(m, wanted, env, e);
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
    struct mcp_configs wanted;
    struct err e = ERR_INIT;

    m->open = true;
    if (mcp_configs_read(&wanted, c, options, &e) < 0 ||
        (wanted.count > 0 && get_ready(m, &wanted, key, &e) < 0))
        die_err(&e);
    mcp_configs_release(&wanted);
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
