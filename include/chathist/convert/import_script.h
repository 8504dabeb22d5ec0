/*
 * import_script - the importers: Lua scripts that turn the files of other programs into messages.
 * docs/importers.md describes them. Lines in our own form are the only format that needs none.
 */
#ifndef CHATHIST_CONVERT_IMPORT_SCRIPT_H
#define CHATHIST_CONVERT_IMPORT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

struct import_format; /* see convert/import_reader.h */
struct importers;
struct words;

struct importers *importers_new(void);
void importers_free(struct importers *all);
/* Adds the script `text` of the file `path` under this name, unless there is one of that name.
 * Returns 0, or -1 with *e set if it cannot be used. */
int importers_add(struct importers *all, const char *name, const char *path, struct str text,
                  struct err *e);
/* Returns the format with this name, or NULL. */
const struct import_format *importers_named(const struct importers *all, const char *name);
/* Returns when the program of a format erases conversations, such as `after 30 days`, or NULL. */
const char *importers_erases(const struct importers *all, const char *name);
/* Appends the names of all formats, separated by commas. */
void importers_names(const struct importers *all, struct buf *out);
/* Returns place number n, from 0, in which the program of the format `only`, or any program if that is
 * NULL, keeps conversations; NULL after the last one. It may begin with `~/`, and contain
 * `${NAME:-default}`. Sets *beside to the names of the files that its importer reads beside a
 * conversation, in which `*` may stand for a part. */
const char *importers_place(const struct importers *all, const struct import_format *only, size_t n,
                            const struct words **beside);
/* Appends the shell command by which the program that a session was imported from continues it,
 * with the id as one word for the shell. Returns false if its importer declares none, if the session
 * is a subagent's, or if the program would take the id for an option. */
bool importers_resume(const struct importers *all, struct str session, struct buf *command);

#endif
