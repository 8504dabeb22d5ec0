#include "chathist/chat/mcp_servers.h"

#include <stdlib.h>

#include "test.h"

#include "chathist/base/memory.h"

/* `name: word word @directory|…` for all servers that are wanted, or `! message`. */
static void check(const char *file, const char *const *options, const char *want)
{
    char home[] = "/tmp";
    struct config c = {.from = {CONFIG_DEFAULT}, .home = home};
    struct config_named named[4] = {{.setting = SETTING_MCP}};
    struct str rest = str_of(file);
    struct buf got = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct mcp_configs w;

    c.named = named;
    while (rest.p && rest.n > 0) {
        struct str value = str_cut(&rest, '\n'), key = str_cut(&value, '=');

        if (str_eq_c(key, "mcp"))
            c.value[SETTING_MCP] = mem_copy(value.p, value.n);
        else
            named[c.named_count++] = (struct config_named){SETTING_MCP, mem_copy(key.p, key.n),
                                                           mem_copy(value.p, value.n)};
    }
    if (mcp_configs_read(&w, &c, options, &e) < 0) {
        CHECK_INT(e.kind, ERR_USAGE);
        buf_addf(&got, "! %s", err_text(&e));
    } else {
        for (size_t i = 0; i < w.count; i++) {
            buf_addf(&got, "%s:", w.at[i].name);
            for (size_t j = 0; j < w.at[i].command.count; j++)
                buf_addf(&got, " %s", w.at[i].command.at[j]);
            if (w.at[i].command.count == 0)
                buf_addf(&got, " <%s>", w.at[i].text);
            for (size_t j = 0; j < w.at[i].headers.count; j++) {
                const struct server_header *h = &w.at[i].headers.at[j];

                buf_addf(&got, " %s%s%s", h->header.name, h->header.value ? "=" : "$",
                         h->from.value);
            }
            if (w.at[i].cwd)
                buf_addf(&got, " @%s", w.at[i].cwd);
            buf_add_c(&got, "|");
        }
    }
    CHECK_STR(buf_c(&got), want);
    mcp_configs_release(&w);
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

TEST(options_name_servers_two_ways)
{
    check("fs=srv 'a b'\nother=x", OPTIONS("fs"), "fs: srv a b @/tmp|");
    check("", OPTIONS("fs=srv a=b"), "fs: srv a=b|");
}

#define EXPECTED                                                                                   \
    ": NAME=COMMAND, NAME=URL, a URL, or a name from the user configuration, is expected"

TEST(a_command_needs_a_name)
{
    check("", OPTIONS("srv a=b"), "! bad MCP server 'srv a=b'" EXPECTED);
    check("", OPTIONS("./srv.py a"), "! bad MCP server './srv.py a'" EXPECTED);
    check("", OPTIONS("=srv"), "! bad MCP server '=srv'" EXPECTED);
    check("b=x", OPTIONS("srv"),
          "! no MCP server 'srv': the user configuration has no 'mcp.srv', and a command or a URL "
          "is given as NAME=COMMAND or NAME=URL");
}

TEST(the_configuration_names_defaults)
{
    check("mcp=b  a\na=x\nb=y z", NULL, "b: y z @/tmp|a: x @/tmp|");
    check("mcp=b\na=x\nb=y", OPTIONS("a"), "a: x @/tmp|");
}

TEST(servers_have_different_names)
{
    check("", OPTIONS("srv=a", "srv_2=x"), "srv: a|srv_2: x|");
    check("", OPTIONS("a=x", "a=x"), "a: x|");
    check("mcp=a a\na=x", NULL, "a: x @/tmp|");
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
    check("a=/bin/x", OPTIONS("a"), "a: /bin/x @/tmp|");
}

TEST(servers_at_urls)
{
    check("", OPTIONS("a=https://host/mcp?x=1"), "a: <https://host/mcp?x=1>|");
    check("", OPTIONS("https://mcp.host.test:8443/mcp?x=1"),
          "mcp_host_test: <https://mcp.host.test:8443/mcp?x=1>|");
    check("", OPTIONS("http://localhost:8000/mcp"), "localhost: <http://localhost:8000/mcp>|");
    check("a.url=http://host/", OPTIONS("a"), "a: <http://host/>|");
    check("mcp=a\na=https://host/", NULL, "a: <https://host/>|");
    check("", OPTIONS("a=http://host/mcp"),
          "! cannot use 'http://host/mcp' as an MCP server: it is not encrypted; use https, or set "
          "'mcp.NAME.url' in the user configuration");
    check("a=http://host/ x", OPTIONS("a"),
          "! bad URL 'http://host/ x' of an MCP server: not of the form "
          "http[s]://HOST[:PORT]/PATH");
}

TEST(headers_are_for_the_configured_server)
{
    check("a.url=https://host/\na.header.X-A=1 2\na.header_command.B=pass x\nb.header.C=3",
          OPTIONS("a"), "a: <https://host/> X-A=1 2 B$pass x|");
    check("a.url=https://host/\na.header.X-A=1", OPTIONS("a=https://other/"),
          "a: <https://other/>|");
    check("a.url=http://localhost/\na.header.X=1", OPTIONS("a"), "a: <http://localhost/> X=1|");
    check("a.url=http://host/\na.header_command.X=pass", OPTIONS("a"),
          "! cannot use 'mcp.a.header_command.X': refusing to send a header to 'http://host/' over "
          "plain http: use https");
    check("a.url=https://host/\na.header.X A=1", OPTIONS("a"),
          "! cannot use 'mcp.a.header.X A': bad header: letters, digits and '-' are expected in "
          "its name");
    check("a.url=https://host/\na.header.A=1\t2", OPTIONS("a"),
          "! cannot use 'mcp.a.header.A': bad header 'A': a control character in its value");
}

TEST(servers_of_the_configuration_have_a_directory)
{
    check("a=x\na.cwd=/usr", OPTIONS("a"), "a: x @/usr|");
    check("a=x\na.cwd=.", OPTIONS("a"), "a: x|");
    check("a=x\na.cwd=~", OPTIONS("a"), "a: x @/tmp/|");
    check("a=x\na.cwd=~/../usr", OPTIONS("a"), "a: x @/tmp/../usr|");
    check("a=x\na.cwd=/usr", OPTIONS("a=y"), "a: y|");
    check(
        "a=x\na.cwd=usr", OPTIONS("a"),
        "! bad directory 'usr' of 'mcp.a.cwd': a path that begins with '/' or '~/' is expected, or "
        "'.' for the working directory");
    check("a=x\na.cwd=/absent", OPTIONS("a"),
          "! bad directory '/absent' of 'mcp.a.cwd': there is no such directory");
}
