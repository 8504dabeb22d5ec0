/*
 * resume_command - the command by which another program continues a session that was imported from
 * it. The importers say what that command is (docs/importers.md, `resume`).
 */
#ifndef CHATHIST_CLI_RESUME_COMMAND_H
#define CHATHIST_CLI_RESUME_COMMAND_H

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

/* Appends a shell command: `cd DIRECTORY && PROGRAM ... ID`, where the directory is the
 * first one that the lines of the session name. Warns if that directory does not exist here, or if
 * it is unknown, and then leaves out `cd`. `self` is argv[0] of this program, which tells where
 * hist-import is. Returns 0; or -1 with *e set, ERR_ABSENT if no program continues the session. */
int resume_command(struct buf *out, const struct history *h, struct str id, const char *self,
                   struct err *e);

#endif
