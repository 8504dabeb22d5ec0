/*
 * import_history - imports a file into a history of the fuzz targets, to the end.
 */
#ifndef CHATHIST_FUZZ_IMPORT_HISTORY_H
#define CHATHIST_FUZZ_IMPORT_HISTORY_H

#include "chathist/convert/import.h"
#include "chathist/convert/import_script.h"
#include "scratch.h"

static inline void import_history_warn(void *arg, const char *message)
{
    (void)arg;
    demand(*message != '\0');
}

/* Calls `line` for each new line. `f` is NULL if the format is to be recognised, and `point` if the
 * file is read from its beginning. */
static inline void import_history(char *history, const char *path, const struct importers *all,
                                  const struct import_format *f, struct import_point *point,
                                  void (*line)(void *arg, struct str line), void *arg)
{
    struct history h = {.dir_fd = FILE_CWD,
                        .pointer_fd = FILE_CWD,
                        .kind = HISTORY_EXPLICIT,
                        .trusted = true,
                        .path = history,
                        .pointer = history,
                        .cancel_fd = -1};
    uint64_t bad;
    struct import_options o = {.subagents = true,
                               .importers = all,
                               .listener = {.warn = import_history_warn, .line = line, .arg = arg}};
    struct err e = ERR_INIT;
    struct import *im = import_new(&h, &o, &bad, &e);

    demand(im != NULL);
    if (import_file(im, path, f, point, &e) < 0)
        demand(*err_text(&e) != '\0');
    err_release(&e);
    demand(import_finish(im, &e) == 0);
    import_free(im);
}

#endif
