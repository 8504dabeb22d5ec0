#include "chathist/chat/mcp_servers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/chat/server.h"
#include "chathist/chat/server_headers.h"
#include "chathist/chat/tools.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"
#include "chathist/llm/http.h"

/* ---- which servers are wanted ---- */

/* A server that is wanted. */
struct mcp_config {
    char *name;           /* a valid name (mcp_server_name_valid) */
    struct words command; /* empty: `text` is a URL */
    char *text;           /* the command or the URL as the user wrote it */
    char *cwd;            /* its working directory; NULL: ours */
    bool no_instructions; /* `mcp.NAME.instructions = off` */
    struct words tools;   /* the names of those to offer, as the server knows them; none: all */
    bool own;             /* it is hist-mcp of these programs */
    bool tools_typed;     /* -T names them, otherwise `mcp.NAME.tools` */
    /* `mcp.NAME.header.X = VALUE` and `mcp.NAME.header_command.X = COMMAND`. Only a server of the
     * configuration has them, because another one with its name is a stranger. */
    struct server_headers headers;
};

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

/* Returns whether others on the way can read a request to this URL. */
static bool is_open(const char *text)
{
    return str_starts(str_of(text), STR("http://")) && !http_is_loopback(text);
}

static struct mcp_config *find_config(const struct mcp_servers *m, const char *name)
{
    for (size_t i = 0; i < m->wanted_count; i++)
        if (strcmp(m->wanted[i].name, name) == 0)
            return &m->wanted[i];
    return NULL;
}

static int check_server_url(const char *url, struct err *e)
{
    struct buf origin = BUF_INIT(BUF_SMALL);
    bool ok = http_origin(url, &origin);

    buf_release(&origin);
    return ok ? 0
              : err_set(e, ERR_USAGE,
                        "bad URL '%s' of an MCP server: not of the form http[s]://HOST[:PORT]/PATH",
                        url);
}

/* Adds a server; `text` is a command or a URL. *added is NULL if it was there already. */
static int add_config(struct mcp_servers *m, const char *name, const char *text,
                      struct mcp_config **added, struct err *e)
{
    struct mcp_config *same = find_config(m, name);
    struct err why = ERR_INIT;

    *added = NULL;
    if (same && strcmp(same->text, text) == 0)
        return 0;
    if (same)
        return err_set(e, ERR_USAGE, "two MCP servers have the name '%s'", name);
    m->wanted = mem_grow(m->wanted, &m->wanted_cap, m->wanted_count + 1, sizeof *m->wanted);
    *added = &m->wanted[m->wanted_count++];
    **added = (struct mcp_config){.name = mem_text(name), .text = mem_text(text)};
    if (is_url(text))
        return check_server_url(text, e);
    if (words_split(&(*added)->command, str_of(text), &why) == 0)
        return 0;
    err_set(e, ERR_USAGE, "bad command '%s' of an MCP server: %s", text, err_text(&why));
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

/* Returns `mcp.NAME.PROPERTY` of the configuration, or NULL. */
static const char *property(const struct config *c, const char *name, const char *property_name)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const char *value;

    buf_addf(&key, "%s.%s", name, property_name);
    value = config_named(c, SETTING_MCP, buf_c(&key));
    buf_release(&key);
    return value;
}

/* Sets the directory in which a server of the configuration runs: `mcp.NAME.cwd`, or else
 * config_command_dir. */
static int set_cwd(struct mcp_config *config, const struct config *c, struct err *e)
{
    const char *value = property(c, config->name, "cwd");
    struct stat st;

    if (!value)
        config->cwd = mem_text(config_command_dir(c));
    else if (*value == '/')
        config->cwd = mem_text(value);
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

static int set_headers(struct mcp_config *config, const struct config *c, struct err *e)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < c->named_count; i++) {
        struct str header = str_of(c->named[i].name);
        struct str server = str_cut(&header, '.'), kind = str_cut(&header, '.');
        bool command = str_eq_c(kind, "header_command");

        if (c->named[i].setting == SETTING_MCP && str_eq_c(server, config->name) && header.p &&
            (command || str_eq_c(kind, "header"))) {
            /* A header may be a secret, which others on the way could read. */
            if (is_open(config->text))
                return err_set(e, ERR_USAGE,
                               "cannot use 'mcp.%s': refusing to send a header to '%s' over plain "
                               "http: use https",
                               c->named[i].name, config->text);
            result = server_headers_add(&config->headers, &c->named[i], header.p, command, e);
        }
    }
    return result;
}

/* Returns `mcp.NAME` or `mcp.NAME.url` of the configuration, or NULL. */
static const char *configured(const struct config *c, const char *name)
{
    const char *text = config_named(c, SETTING_MCP, name);

    return text ? text : property(c, name, "url");
}

/* The configuration is the same in every working directory, so the programs and directories in it
 * are not relative. */
static int add_configured(struct mcp_servers *m, const struct config *c, const char *name,
                          const char *text, struct err *e)
{
    const char *program, *instructions = property(c, name, "instructions");
    const char *tools = property(c, name, "tools");
    struct mcp_config *config;
    struct err why = ERR_INIT;

    if (!mcp_server_name_valid(str_of(name)))
        return bad_name(name, e);
    if (add_config(m, name, text, &config, e) < 0)
        return -1;
    if (!config)
        return 0;
    config->no_instructions = instructions && strcmp(instructions, "off") == 0;
    if (instructions && !config->no_instructions && strcmp(instructions, "on") != 0)
        return err_set(e, ERR_USAGE,
                       "bad value '%s' of 'mcp.%s.instructions': on or off is expected",
                       instructions, name);
    if (tools && words_split(&config->tools, str_of(tools), &why) < 0) {
        err_set(e, ERR_USAGE, "bad value '%s' of 'mcp.%s.tools': %s", tools, name, err_text(&why));
        err_release(&why);
        return -1;
    }
    if (is_url(text))
        return set_headers(config, c, e);
    program = config->command.at[0];
    if (strchr(program, '/') && *program != '/')
        return err_set(e, ERR_USAGE,
                       "bad command '%s' of 'mcp.%s': a path has to begin with a slash", program,
                       name);
    return set_cwd(config, c, e);
}

/* What a command line from elsewhere brings must not lead to an unprotected connection, so http://
 * to another machine is only for the configuration. */
static int add_typed(struct mcp_servers *m, const char *name, const char *text, struct err *e)
{
    struct mcp_config *config;

    if (is_open(text) && check_server_url(text, NULL) == 0)
        return err_set(e, ERR_USAGE,
                       "cannot use '%s' as an MCP server: it is not encrypted; use https, or set "
                       "'mcp.NAME.url' in the user configuration",
                       text);
    return add_config(m, name, text, &config, e);
}

/* The server that needs no configuration. */
#define OWN_SERVER PROGRAM_PREFIX "hist-mcp"

/* Adds it: the program beside chat. Its calls name the session that asks, which it does not
 * search. */
static int add_own(struct mcp_servers *m, struct err *e)
{
    char *path = path_beside(m->self, OWN_SERVER);
    struct buf command = BUF_INIT(BUF_LINE);
    int result;

    words_quote(&command, path);
    result = add_typed(m, OWN_SERVER, buf_c(&command), e);
    if (result == 0)
        find_config(m, OWN_SERVER)->own = true;
    buf_release(&command);
    free(path);
    return result;
}

/* Adds a server that has no name: it gets that of its host. */
static int add_unnamed(struct mcp_servers *m, const char *url, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int result = check_server_url(url, e);

    if (result == 0) {
        http_origin(url, &name);
        buf_truncate(&name, (size_t)(strrchr(buf_c(&name), ':') - buf_c(&name)));
        buf_truncate(&name, MCP_SERVER_NAME_MAX);
        for (size_t i = 0; i < name.len; i++)
            if (!mcp_server_name_valid((struct str){name.data + i, 1}))
                name.data[i] = '_';
        result = add_typed(m, buf_c(&name), url, e);
    }
    buf_release(&name);
    return result;
}

static int add_mcp_option(struct mcp_servers *m, const struct config *c, const char *option,
                          struct err *e)
{
    const char *text = configured(c, option);
    struct str rest = str_of(option), before = str_cut(&rest, '=');
    char *name;
    int result;

    if (text)
        return add_configured(m, c, option, text, e);
    if (strcmp(option, OWN_SERVER) == 0)
        return add_own(m, e);
    if (is_url(option))
        return add_unnamed(m, option, e);
    if (!rest.p && mcp_server_name_valid(before))
        return err_set(e, ERR_USAGE,
                       "no MCP server '%s': the user configuration has no 'mcp.%s', and a command "
                       "or a URL is given as NAME=COMMAND or NAME=URL",
                       option, option);
    if (!rest.p || !mcp_server_name_valid(before))
        return err_set(
            e, ERR_USAGE,
            "bad MCP server '%s': NAME=COMMAND, NAME=URL, a URL, or a name from the user "
            "configuration, is expected",
            option);
    name = mem_copy(before.p, before.n);
    result = add_typed(m, name, rest.p, e);
    free(name);
    return result;
}

static int add_defaults(struct mcp_servers *m, const struct config *c, struct err *e)
{
    const char *value = c->value[SETTING_MCP];
    struct words names = {0};
    int result = 0;

    if (!value || !*value)
        return 0;
    if (words_split(&names, str_of(value), NULL) < 0)
        result = bad_name(value, e);
    for (size_t i = 0; result == 0 && i < names.count; i++) {
        const char *text = configured(c, names.at[i]);

        if (text)
            result = add_configured(m, c, names.at[i], text, e);
        else if (strcmp(names.at[i], OWN_SERVER) == 0)
            result = add_own(m, e);
        else
            result =
                err_set(e, ERR_USAGE, "no MCP server '%s': the user configuration has no 'mcp.%s'",
                        names.at[i], names.at[i]);
    }
    words_release(&names);
    return result;
}

/* Adds the tool of -T SERVER:TOOL, and the server unless it is wanted already. */
static int add_tool_option(struct mcp_servers *m, const struct config *c, const char *option,
                           struct err *e)
{
    struct str tool = str_of(option), server = str_cut(&tool, ':');
    struct mcp_config *config;
    int result = 0;
    char *name;

    if (str_find(server, STR("=")))
        return err_set(e, ERR_USAGE, "bad value '%s' for --tool: SERVER:TOOL is expected", option);
    name = mem_copy(server.p, server.n);
    if (!find_config(m, name))
        result = add_mcp_option(m, c, name, e);
    if (result == 0) {
        config = find_config(m, name);
        if (!config->tools_typed)
            words_release(&config->tools);
        config->tools_typed = true;
        words_add(&config->tools, tool);
    }
    free(name);
    return result;
}

/* Finds out which servers are wanted. Returns 0, or -1 with *e set (ERR_USAGE). */
static int choose_servers(struct mcp_servers *m, const struct config *c,
                          const struct chat_args *args, struct err *e)
{
    const char *const *options = args->mcp.at, *const *chosen = args->chosen.at;
    int result = 0;

    if (!options)
        result = add_defaults(m, c, e);
    for (; options && result == 0 && *options; options++)
        if (**options)
            result = add_mcp_option(m, c, *options, e);
    for (; chosen && result == 0 && *chosen; chosen++)
        result = add_tool_option(m, c, *chosen, e);
    return result;
}

/* How much of a message that a server logs is shown, in bytes. */
#define MESSAGE_MAX ((size_t)2000)

/* ---- news of servers ---- */

static void print_news(void *arg, const char *server, enum mcp_news news, struct str text)
{
    const struct mcp_servers *m = arg;

    if (m->quiet)
        return;
    text = tool_cut(text, MESSAGE_MAX);
    if (news == MCP_SLOW)
        hintf(m->verbose, "waiting for MCP server '%s'", server);
    else if (news == MCP_WARNING)
        warnf("%.*s", (int)text.n, text.p);
    else if (m->verbose)
        notef("mcp_message %s %.*s", server, (int)text.n, text.p);
}

/* ---- their tools ---- */

static int order_by_name(const void *a, const void *b)
{
    const struct mcp_tool *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static bool is_offered(const struct mcp_config *config, const struct mcp_tool *t)
{
    for (size_t i = 0; i < config->tools.count; i++)
        if (strcmp(config->tools.at[i], t->name) == 0)
            return true;
    return config->tools.count == 0;
}

/* Checks that the servers have the tools that the user names. Another version of a server may have
 * others, so that only those of -T are an error (ERR_USAGE). */
static int check_tools(const struct mcp_servers *m, struct err *e)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct mcp_config *config = &m->wanted[i];
        const struct mcp_list *list = &m->at[i]->list;

        for (size_t k = 0; k < config->tools.count; k++) {
            bool found = false;

            for (size_t j = 0; !found && j < list->count; j++)
                found = strcmp(config->tools.at[k], list->tools[j]->name) == 0;
            if (found)
                continue;
            if (config->tools_typed)
                return err_set(e, ERR_USAGE, "MCP server '%s' has no tool '%s'", config->name,
                               config->tools.at[k]);
            if (!m->quiet)
                warnf("MCP server '%s' has no tool '%s', which 'mcp.%s.tools' names", config->name,
                      config->tools.at[k], config->name);
        }
    }
    return 0;
}

/* The tools of a server are sorted, because some servers list them in another order each time, and
 * model servers charge less for a request that begins as an earlier one did. The servers stay in
 * the order in which they were named. */
static void gather_tools(struct mcp_servers *m, struct toolbox *b)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->at[i]->list.count > 1)
            qsort(m->at[i]->list.tools, m->at[i]->list.count, sizeof(struct mcp_tool *),
                  order_by_name);
    mcp_name_tools(m->at, m->count, b->at, b->execs_count);
    b->count = b->execs_count;
    for (size_t i = 0; i < m->count; i++)
        for (size_t j = 0; j < m->at[i]->list.count; j++)
            if (is_offered(&m->wanted[i], m->at[i]->list.tools[j]))
                toolbox_put(b, &m->at[i]->list.tools[j]->tool);
}

bool mcp_servers_renew(struct mcp_servers *m, struct toolbox *b, int cancel_fd)
{
    if (!mcp_renew(m->at, m->count, MCP_RENEW_MS, cancel_fd))
        return false;
    gather_tools(m, b);
    return true;
}

/* ---- start and end ---- */

static int start_all(struct mcp_servers *m, char *const env[], struct err *e)
{
    int result = 0;

    m->watch = (struct mcp_watch){print_news, m};
    for (size_t i = 0; result == 0 && i < m->wanted_count; i++) {
        const struct mcp_config *config = &m->wanted[i];
        struct mcp_server *s = mem_zalloc(sizeof *s);

        m->at = mem_grow(m->at, &m->cap, m->count + 1, sizeof(struct mcp_server *));
        m->at[m->count++] = s;
        if (config->command.count == 0) {
            struct mcp_remote remote = {.url = config->text,
                                        .limits = {.connect_ms = HTTP_CONNECT_MS, .cancel_fd = -1},
                                        .headers = config->headers.ready,
                                        .headers_count = config->headers.ready_count};

            server_trust(&remote.limits);
            mcp_open(s, config->name, &remote, &m->watch);
        } else {
            result = mcp_start(s, config->name, config->command.at, env, config->cwd, &m->watch, e);
        }
        s->session = config->own ? m->session : NULL;
    }
    return result;
}

/* Gathers the instructions, in the order of the servers. */
static void gather_instructions(struct mcp_servers *m)
{
    buf_init(&m->instructions, SIZE_MAX);
    for (size_t i = 0; i < m->count; i++) {
        const struct mcp_server *s = m->at[i];

        if (s->instructions.len == 0 || s->list.count == 0 || m->wanted[i].no_instructions)
            continue;
        if (m->verbose)
            notef("mcp_instructions %s %s", s->name, buf_c(&s->instructions));
        if (m->instructions.len > 0)
            buf_add_c(&m->instructions, "\n\n");
        buf_addf(&m->instructions, "About the tools of the MCP server '%s' (%s__*):\n%s", s->name,
                 s->name, buf_c(&s->instructions));
    }
}

/* Ends the servers, in a hurry after a signal. */
static void end_all(struct mcp_servers *m, bool hurry, int cancel_fd)
{
    mcp_end(m->at, m->count, hurry ? CHILD_HURRY_MS : MCP_GRACE_MS, cancel_fd);
    for (size_t i = 0; i < m->count; i++)
        free(m->at[i]);
    free(m->at);
    buf_release(&m->instructions);
    for (size_t i = 0; i < m->wanted_count; i++) {
        free(m->wanted[i].name);
        free(m->wanted[i].text);
        free(m->wanted[i].cwd);
        words_release(&m->wanted[i].command);
        words_release(&m->wanted[i].tools);
        server_headers_release(&m->wanted[i].headers);
    }
    free(m->wanted);
    *m = (struct mcp_servers){0};
}

/* Starts the servers and waits until they are ready. A signal ends them and then the program. */
static int get_ready(struct mcp_servers *m, const char *const *secrets, struct err *e)
{
    int cancel_fd = interrupt_begin(e), result, signo;
    char **env;

    if (cancel_fd < 0)
        return -1;
    env = clean_env(secrets);
    result = start_all(m, env, e);
    if (result == 0)
        result = mcp_await(m->at, m->count, MCP_START_MS, cancel_fd, e);
    free(env);
    if (result < 0 || interrupt_signal()) {
        end_all(m, false, cancel_fd);
        result = -1;
    }
    signo = interrupt_signal();
    interrupt_end();
    if (signo)
        die_signal(signo);
    return result;
}

void mcp_servers_open(struct mcp_servers *m, const struct chat_args *args, const struct config *c,
                      const char *const *secrets, struct toolbox *b)
{
    struct err e = ERR_INIT;
    int result;

    m->open = true;
    m->self = args->self;
    result = choose_servers(m, c, args, &e);
    /* The commands that print headers are run before signals are caught for the start. */
    for (size_t i = 0; result == 0 && i < m->wanted_count; i++)
        result = server_headers_load(&m->wanted[i].headers, config_command_dir(c), &e);
    if (result < 0 || (m->wanted_count > 0 && get_ready(m, secrets, &e) < 0))
        die_err(&e);
    if (check_tools(m, &e) < 0) {
        mcp_servers_close(m, false);
        die_err(&e);
    }
    gather_instructions(m);
    gather_tools(m, b);
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
