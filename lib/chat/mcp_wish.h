/*
 * mcp_wish - which MCP servers are wanted, by what names and commands: `--mcp` or the user
 * configuration (chat(1)). Starts nothing.
 *
 * A server is wanted as
 *     NAME            that `mcp.NAME = COMMAND` of the user configuration defines
 *     NAME=COMMAND    likewise, but here and now
 *     COMMAND         likewise, called `mcp`, and `mcp_2`, `mcp_3`, … where that is taken
 * and by the names in `mcp = NAME …` of the user configuration when nothing is wanted by option.
 */
#ifndef CHATHIST_CHAT_MCP_WISH_H
#define CHATHIST_CHAT_MCP_WISH_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/process.h"
#include "chathist/cli/config.h"

struct mcp_wish {
    char *name; /* mcp_server_name_valid */
    struct words command;
    char *text; /* the command as it was written */
    char *cwd;  /* where it runs; NULL: in the working directory. A server of the configuration runs
                 * where `mcp.NAME.cwd` says, else in config_command_dir */
};

struct mcp_wishes {
    struct mcp_wish *at;
    size_t count, cap;
};

/* `options` ends with NULL; NULL: there are none, the configuration decides; an empty one wants
 * nothing. A server that is wanted twice by the same name and command is wanted once. -1
 * (ERR_USAGE): a name that is not defined, a command that cannot be taken apart, two servers of one
 * name, or in the configuration a relative path or a directory that does not exist. mcp_wishes_release is due whatever comes of it. */
int mcp_wishes_read(struct mcp_wishes *w, const struct config *c, const char *const *options,
                    struct err *e);
void mcp_wishes_release(struct mcp_wishes *w);

#endif
