/*
 * export_out - where an export goes: standard output, a file that is replaced as a whole, a file
 * that grows.
 *
 * Each is a sink for port/export. Files are 0600 when they are made; what is not a regular file is
 * refused.
 */
#ifndef CHATHIST_CLI_EXPORT_OUT_H
#define CHATHIST_CLI_EXPORT_OUT_H

#include <stdbool.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/io.h"
#include "chathist/cli/term.h"
#include "chathist/history/append.h"
#include "chathist/convert/export.h"
#include "chathist/convert/export_state.h"

/* ---- standard output: its errors are told by out_close ---- */

struct export_stdout {
    struct out *out;
    bool json; /* a terminal gets \uXXXX for what it must not obey; else `^X` */
};
int export_to_stdout(void *arg, struct str bytes, struct err *e);

/* ---- a file that is replaced ---- */

struct export_file {
    struct io_replace replace;
    struct buf pending;
};
int export_file_begin(struct export_file *f, const char *path, struct err *e);
int export_to_file(void *arg, struct str bytes, struct err *e);
/* Puts it in its place; with `if_changed` only when its content is another one. */
int export_file_end(struct export_file *f, bool if_changed, struct err *e);
/* Leaves the old file as it is. */
void export_file_drop(struct export_file *f);
/* Adds the name of a session's file, by its first line: `DATE_SESSION.SUFFIX`, its day. Each byte
 * of an id that is no letter, digit, `.`, `_` or `-` is `%XX`; what is too long is cut and ends
 * with a number made of all of it (FNV-1a). */
void export_file_name(struct buf *out, const struct export_format *format, const struct message *m);

/* ---- a file that grows, together with a state ---- */

struct export_growth {
    struct append file; /* locked against other exports */
    off_t before;       /* its length */
    struct buf pending;
};
/* Opens the file and takes away what a run that was killed had added. */
int export_growth_open(struct export_growth *g, const char *path, const struct export_state *state,
                       struct append_wait *wait, struct err *e);
int export_growth_begin(struct export_growth *g, struct export_state *state, struct err *e);
int export_to_growth(void *arg, struct str bytes, struct err *e);
/* All of it is on the disk on return. */
int export_growth_end(struct export_growth *g, struct err *e);
/* Takes away what was added. */
void export_growth_undo(struct export_growth *g);
void export_growth_close(struct export_growth *g);

#endif
