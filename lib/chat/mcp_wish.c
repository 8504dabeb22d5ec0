#include "chat/mcp_wish.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/mem.h"
#include "chathist/base/path.h"
#include "chathist/llm/mcp_list.h"

static char *copy(const char *s)
{
    return mem_copy(s, strlen(s));
}

/* A server at an address would be refused by the system with a message that does not help. */
static int check_program(const char *program, struct err *e)
{
    if (strncmp(program, "http://", 7) != 0 && strncmp(program, "https://", 8) != 0)
        return 0;
    return err_set(
        e, ERR_USAGE,
        "cannot use '%s' as an MCP server: it is an address, and only programs can be run",
        program);
}

static struct mcp_wish *find(const struct mcp_wishes *w, const char *name)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->at[i].name, name) == 0)
            return &w->at[i];
    return NULL;
}

static int add(struct mcp_wishes *w, const char *name, const char *command, struct err *e)
{
    struct mcp_wish *same = find(w, name);
    struct mcp_wish *wish;
    struct err why = ERR_INIT;

    if (same && strcmp(same->text, command) == 0)
        return 0;
    if (same)
        return err_set(e, ERR_USAGE, "two MCP servers have the name '%s'", name);
    w->at = mem_grow(w->at, &w->cap, w->count + 1, sizeof *w->at);
    wish = &w->at[w->count++];
    *wish = (struct mcp_wish){.name = copy(name), .text = copy(command)};
    if (words_split(&wish->command, str_of(command), &why) == 0)
        return check_program(wish->command.at[0], e);
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

/* Sets where a server of the configuration runs: what `mcp.NAME.cwd` says, else the neutral
 * directory. */
static int set_cwd(struct mcp_wish *wish, const struct config *c, struct err *e)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const char *value;

    buf_addf(&key, "%s.cwd", wish->name);
    value = config_named(c, SETTING_MCP, buf_c(&key));
    buf_release(&key);
    if (!value)
        wish->cwd = copy(config_command_dir(c));
    else if (*value == '/')
        wish->cwd = copy(value);
    else if (strcmp(value, "~") == 0 || strncmp(value, "~/", 2) == 0)
        wish->cwd = path_join(config_command_dir(c), value[1] ? value + 2 : "");
    else if (strcmp(value, ".") != 0)
        return err_set(e, ERR_USAGE,
                       "bad directory '%s' of 'mcp.%s.cwd': a path that begins with '/' or '~/' is "
                       "expected, or '.' for the working directory",
                       value, wish->name);
    return 0;
}

static int check_cwd(const struct mcp_wish *wish, struct err *e)
{
    struct stat st;

    if (!wish->cwd || (stat(wish->cwd, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return err_set(e, ERR_USAGE, "bad directory '%s' of 'mcp.%s.cwd': there is no such directory",
                   wish->cwd, wish->name);
}

/* The configuration counts wherever the program is started, so its programs and directories must
 * not depend on that. */
static int add_configured(struct mcp_wishes *w, const struct config *c, const char *name,
                          const char *command, struct err *e)
{
    const char *program;
    struct mcp_wish *wish;

    if (!mcp_server_name_valid(str_of(name)))
        return bad_name(name, e);
    if (find(w, name) && strcmp(find(w, name)->text, command) == 0)
        return 0;
    if (add(w, name, command, e) < 0)
        return -1;
    wish = find(w, name);
    program = wish->command.at[0];
    if (strchr(program, '/') && *program != '/')
        return err_set(e, ERR_USAGE,
                       "bad command '%s' of 'mcp.%s': a path has to begin with a slash", program,
                       name);
    return set_cwd(wish, c, e) < 0 ? -1 : check_cwd(wish, e);
}

/* A command without a name: `mcp`, or the first of `mcp_2`, `mcp_3`, … that is not taken. */
static int add_nameless(struct mcp_wishes *w, const char *command, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int result;

    buf_add_c(&name, "mcp");
    for (size_t again = 2; find(w, buf_c(&name)); again++) {
        buf_clear(&name);
        buf_addf(&name, "mcp_%zu", again);
    }
    result = add(w, buf_c(&name), command, e);
    buf_release(&name);
    return result;
}

static int add_option(struct mcp_wishes *w, const struct config *c, const char *option,
                      struct err *e)
{
    const char *command = config_named(c, SETTING_MCP, option);
    struct str rest = str_of(option), before = str_cut(&rest, '=');
    char *name;
    int result;

    if (command)
        return add_configured(w, c, option, command, e);
    if (!rest.p || !mcp_server_name_valid(before))
        return add_nameless(w, option, e);
    name = mem_copy(before.p, before.n);
    result = add(w, name, rest.p, e);
    free(name);
    return result;
}

static int add_default(struct mcp_wishes *w, const struct config *c, const char *name,
                       struct err *e)
{
    const char *command = config_named(c, SETTING_MCP, name);

    if (!command)
        return err_set(e, ERR_USAGE, "no MCP server '%s': the user configuration has no 'mcp.%s'",
                       name, name);
    return add_configured(w, c, name, command, e);
}

static int add_defaults(struct mcp_wishes *w, const struct config *c, struct err *e)
{
    const char *value = c->value[SETTING_MCP];
    struct words names = {0};
    int result = 0;

    if (!value || !*value)
        return 0;
    if (words_split(&names, str_of(value), NULL) < 0)
        result = bad_name(value, e);
    for (size_t i = 0; result == 0 && i < names.count; i++)
        result = add_default(w, c, names.at[i], e);
    words_release(&names);
    return result;
}

int mcp_wishes_read(struct mcp_wishes *w, const struct config *c, const char *const *options,
                    struct err *e)
{
    int result = 0;

    *w = (struct mcp_wishes){0};
    if (!options)
        result = add_defaults(w, c, e);
    for (; options && result == 0 && *options; options++)
        if (**options)
            result = add_option(w, c, *options, e);
    return result;
}

void mcp_wishes_release(struct mcp_wishes *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->at[i].name);
        free(w->at[i].text);
        free(w->at[i].cwd);
        words_release(&w->at[i].command);
    }
    free(w->at);
    *w = (struct mcp_wishes){0};
}
