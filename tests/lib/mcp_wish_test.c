#include "front/mcp_wish.h"

#include <stdlib.h>

#include "test.h"

#include "base/mem.h"

static void check_name(const char *command, const char *want)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct words words;

    if (CHECK_INT(words_split(&words, str_of(command), NULL), 0))
        mcp_wish_name(&name, &words);
    CHECK_STR(buf_c(&name), want);
    words_release(&words);
    buf_release(&name);
}

TEST(names_are_made_from_commands)
{
    check_name("npx -y @modelcontextprotocol/server-filesystem /tmp", "filesystem");
    check_name("npx -y @modelcontextprotocol/server-memory@1.2.3", "memory");
    check_name("npx", "npx");
    check_name("npx -y", "npx");
    check_name("uvx mcp-server-time --local-timezone=UTC", "time");
    check_name("uv run --quiet weather.py", "weather");
    check_name("python3 -m mcp_server_fetch", "fetch");
    check_name("/usr/bin/python3.11 /opt/my-notes-mcp.py x", "my-notes");
    check_name("node /srv/build/things-server.js", "things");
    check_name("docker run -i --rm mcp/brave-search:latest", "brave-search");
    check_name("env KEY=a/b npx -y some-mcp", "some");
    check_name("./fake-mcp --many 3", "fake");
    check_name("mcp-server", "mcp");
    check_name("/bin/a.b+c", "a_b_c");
    check_name("'the tool/'", "mcp");
    check_name("a123456789012345678901234567890", "a12345678901234567890123456789");
}

/* `name: word word|…` for all wishes, or `! message`. */
static void check(const char *file, const char *const *options, const char *want)
{
    struct config c = {.from = {CONFIG_DEFAULT}};
    struct config_named named[4] = {{.setting = SETTING_MCP}};
    struct str rest = str_of(file);
    struct buf got = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct mcp_wishes w;

    c.named = named;
    while (rest.p && rest.n > 0) {
        struct str value = str_cut(&rest, '\n'), key = str_cut(&value, '=');

        if (str_eq_c(key, "mcp"))
            c.value[SETTING_MCP] = mem_copy(value.p, value.n);
        else
            named[c.named_count++] = (struct config_named){SETTING_MCP, mem_copy(key.p, key.n),
                                                           mem_copy(value.p, value.n)};
    }
    if (mcp_wishes_read(&w, &c, options, &e) < 0) {
        CHECK_INT(e.kind, ERR_USAGE);
        buf_addf(&got, "! %s", err_text(&e));
    } else {
        for (size_t i = 0; i < w.count; i++) {
            buf_addf(&got, "%s:", w.at[i].name);
            for (size_t j = 0; j < w.at[i].command.count; j++)
                buf_addf(&got, " %s", w.at[i].command.at[j]);
            buf_add_c(&got, "|");
        }
    }
    CHECK_STR(buf_c(&got), want);
    mcp_wishes_release(&w);
    err_release(&e);
    buf_release(&got);
    for (size_t i = 0; i < c.named_count; i++) {
        free(named[i].name);
        free(named[i].value);
    }
    free(c.value[SETTING_MCP]);
}

#define OPTIONS(...)                                                                               \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

TEST(nothing_is_wanted_by_default)
{
    check("", NULL, "");
    check("a=x", NULL, "");
    check("mcp=\na=x", NULL, "");
    check("mcp=a\na=x", OPTIONS(""), "");
}

TEST(options_name_servers_three_ways)
{
    check("fs=srv 'a b'\nother=x", OPTIONS("fs"), "fs: srv a b|");
    check("", OPTIONS("fs=srv a=b"), "fs: srv a=b|");
    check("", OPTIONS("srv a=b"), "srv: srv a=b|");
    check("", OPTIONS("./srv.py a"), "srv: ./srv.py a|");
    check("", OPTIONS("a b=c"), "a: a b=c|");
}

TEST(the_configuration_names_defaults)
{
    check("mcp=b  a\na=x\nb=y z", NULL, "b: y z|a: x|");
    check("mcp=b\na=x\nb=y", OPTIONS("a"), "a: x|");
}

TEST(servers_have_different_names)
{
    check("", OPTIONS("srv a", "srv b", "srv_2=x"), "srv: srv a|srv_3: srv b|srv_2: x|");
    check("", OPTIONS("a=x", "a=x"), "a: x|");
    check("mcp=a a\na=x", NULL, "a: x|");
    check("", OPTIONS("a=x", "a=y"), "! two MCP servers have the name 'a'");
}

TEST(what_is_wrong_is_told)
{
    check("mcp=a", NULL, "! no MCP server 'a': the user configuration has no 'mcp.a'");
    check("mcp='a\na=x", NULL,
          "! bad name ''a' of an MCP server: 1 to 30 letters, digits, '_' and '-' are expected");
    check("a b=x", OPTIONS("a b"),
          "! bad name 'a b' of an MCP server: 1 to 30 letters, digits, '_' and '-' are expected");
    check("", OPTIONS("a=x 'y"), "! bad command 'x 'y' of an MCP server: a quote is not closed");
    check("", OPTIONS("a="), "! bad command '' of an MCP server: it is empty");
    check("a=bin/x", OPTIONS("a"),
          "! bad command 'bin/x' of 'mcp.a': a path has to begin with a slash");
    check("a=/bin/x", OPTIONS("a"), "a: /bin/x|");
}
