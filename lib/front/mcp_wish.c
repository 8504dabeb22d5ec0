#include "front/mcp_wish.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "llm/mcp_list.h"

/* ---- the name that a command gives ---- */

static bool starts_one_of(const char *word, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(word, *names) == 0)
            return true;
    return false;
}

/* Is it a program that runs another, which its arguments name? */
static bool is_launcher(const char *program)
{
    static const char *const names[] = {"npx",    "bunx", "uvx",  "pipx", "pnpm", "yarn",
                                        "npm",    "bun",  "deno", "node", "uv",   "docker",
                                        "podman", "env",  "sh",   "bash", NULL};

    return starts_one_of(program, names) || strncmp(program, "python", 6) == 0;
}

/* Does an argument of a launcher say what to do, not what to run? */
static bool is_verb(const char *word)
{
    static const char *const verbs[] = {"run", "exec", "dlx", "tool", "x", NULL};

    return word[0] == '-' || strchr(word, '=') || starts_one_of(word, verbs);
}

static void strip_end(struct str *name, struct str end)
{
    if (name->n > end.n && str_ends(*name, end))
        name->n -= end.n;
}

static void strip_start(struct str *name, struct str start)
{
    if (name->n > start.n && str_starts(*name, start))
        *name = (struct str){name->p + start.n, name->n - start.n};
}

/* What is left of `@modelcontextprotocol/server-memory@1.2`: `memory`. */
static struct str core_of(const char *word)
{
    static const char *const ends[] = {".js", ".mjs",    ".cjs",    ".ts",  ".py",
                                       ".sh", "-server", "_server", "-mcp", "_mcp"};
    static const char *const starts[] = {"mcp-", "mcp_", "server-", "server_"};
    struct str rest = str_of(path_base(word));
    struct str name = str_cut(&rest, '@');

    if (name.n == 0)
        name = rest;
    rest = name;
    name = str_cut(&rest, ':');
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        strip_end(&name, str_of(ends[i]));
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        strip_start(&name, str_of(starts[i]));
    return name;
}

void mcp_wish_name(struct buf *out, const struct words *command)
{
    size_t at = 0;
    struct str core;

    while (at + 1 < command->count && is_launcher(path_base(command->at[at]))) {
        size_t next = at + 1;

        while (next < command->count && is_verb(command->at[next]))
            next++;
        if (next == command->count)
            break;
        at = next;
    }
    core = core_of(command->at[at]);
    for (size_t i = 0; i < core.n && i < MCP_SERVER_NAME_MAX; i++)
        buf_add_byte(out, tool_name_valid((struct str){core.p + i, 1}) ? core.p[i] : '_');
    if (out->len == 0)
        buf_add_c(out, "mcp");
}

/* ---- wishes ---- */

static struct mcp_wish *find(const struct mcp_wishes *w, const char *name)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->at[i].name && strcmp(w->at[i].name, name) == 0)
            return &w->at[i];
    return NULL;
}

/* Adds a wish; name NULL: it gets one later. */
static int add(struct mcp_wishes *w, const char *name, const char *command, struct err *e)
{
    struct mcp_wish *same = name ? find(w, name) : NULL;
    struct mcp_wish *wish;
    struct err why = ERR_INIT;

    if (same && strcmp(same->text, command) == 0)
        return 0;
    if (same)
        return err_set(e, ERR_USAGE, "two MCP servers have the name '%s'", name);
    w->at = mem_grow(w->at, &w->cap, w->count + 1, sizeof *w->at);
    wish = &w->at[w->count++];
    *wish = (struct mcp_wish){.text = mem_copy(command, strlen(command))};
    if (name)
        wish->name = mem_copy(name, strlen(name));
    if (words_split(&wish->command, str_of(command), &why) == 0)
        return 0;
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

/* The configuration counts wherever the program is started: a path in it that depends on that would
 * mean a file of somebody else's. */
static int add_configured(struct mcp_wishes *w, const char *name, const char *command,
                          struct err *e)
{
    const char *program;

    if (!mcp_server_name_valid(str_of(name)))
        return bad_name(name, e);
    if (add(w, name, command, e) < 0)
        return -1;
    program = find(w, name)->command.at[0];
    if (strchr(program, '/') && *program != '/')
        return err_set(e, ERR_USAGE,
                       "bad command '%s' of 'mcp.%s': a path has to begin with a slash", program,
                       name);
    return 0;
}

static int add_option(struct mcp_wishes *w, const struct config *c, const char *option,
                      struct err *e)
{
    const char *command = config_named(c, SETTING_MCP, option);
    struct str rest = str_of(option), before = str_cut(&rest, '=');
    char *name;
    int result;

    if (command)
        return add_configured(w, option, command, e);
    if (!rest.p || !mcp_server_name_valid(before))
        return add(w, NULL, option, e);
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
    return add_configured(w, name, command, e);
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

/* Gives a name to each that has none yet, and one of its own. */
static void add_names(struct mcp_wishes *w)
{
    struct buf core = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL), end = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < w->count; i++) {
        if (w->at[i].name)
            continue;
        buf_clear(&core);
        mcp_wish_name(&core, &w->at[i].command);
        for (size_t again = 1; again == 1 || find(w, buf_c(&name)); again++) {
            buf_clear(&end);
            if (again > 1)
                buf_addf(&end, "_%zu", again);
            buf_clear(&name);
            buf_add_str(&name, buf_str(&core));
            buf_truncate(&name, MCP_SERVER_NAME_MAX - end.len);
            buf_add_str(&name, buf_str(&end));
        }
        w->at[i].name = mem_copy(name.data, name.len);
    }
    buf_release(&core);
    buf_release(&name);
    buf_release(&end);
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
    if (result == 0)
        add_names(w);
    return result;
}

void mcp_wishes_release(struct mcp_wishes *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->at[i].name);
        free(w->at[i].text);
        words_release(&w->at[i].command);
    }
    free(w->at);
    *w = (struct mcp_wishes){0};
}
