#include "chathist/cli/resume_command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/thread.h"

/* Asks hist-import, which has the importers, for the command without its directory; an empty one
 * if that program cannot continue sessions. Returns 0, or -1 with *e set. */
static int ask_importers(const char *self, struct str id, struct buf *command, struct err *e)
{
    struct words argv = {0};
    char *program = path_beside(self, PROGRAM_PREFIX "hist-import");
    int status;

    words_add(&argv, str_of(program));
    words_add_option(&argv, "--resume=", id);
    status = process_read(argv.at, NULL, STR_NONE, command, -1, e);
    /* What a program that a signal ended has printed may be half of a command. */
    if (status > 128)
        status = err_set(e, ERR_FAILURE, "'%s' failed", program);
    words_release(&argv);
    free(program);
    return status < 0 ? -1 : 0;
}

/* Finds the first directory of the lines, and whether one was imported from the session that the id
 * says. Returns that. */
static bool find_directory(const struct thread *t, struct str id, struct buf *directory)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool imported = false;

    for (size_t i = 0; i < t->count; i++) {
        struct str origin = message_text(&t->at[i], FIELD_ORIGIN, &scratch);

        imported |= str_starts(origin, id) && str_starts(str_skip(origin, id.n), STR("/"));
        if (directory->len == 0)
            buf_set(directory, message_text(&t->at[i], FIELD_CWD, &scratch));
    }
    buf_release(&scratch);
    return imported;
}

/* Adds `cd DIRECTORY && `. */
static void add_directory(struct buf *out, const struct buf *directory, struct str id)
{
    struct stat st;

    /* Another system has other paths. */
    if (directory->len == 0 || directory->data[0] != '/' ||
        memchr(directory->data, '\0', directory->len)) {
        warnf("the directory of session '%.*s' is not known here: run the command where it began",
              (int)id.n, id.p);
        return;
    }
    if (stat(buf_c(directory), &st) < 0 || !S_ISDIR(st.st_mode))
        warnf("the directory of session '%.*s' does not exist: '%s'", (int)id.n, id.p,
              buf_c(directory));
    buf_add_c(out, "cd ");
    words_quote(out, buf_c(directory));
    buf_add_c(out, " && ");
}

int resume_command(struct buf *out, const struct history *h, struct str id, const char *self,
                   struct err *e)
{
    struct buf directory = BUF_INIT(BUF_LINE), command = BUF_INIT(BUF_LINE);
    struct thread t;
    bool imported;
    int result = thread_find(&t, h, id, true, e);

    if (result == 0) {
        imported = find_directory(&t, id, &directory);
        thread_release(&t);
        if (!imported)
            result =
                err_set(e, ERR_ABSENT, "session '%.*s' was not imported: no other program has it",
                        (int)id.n, id.p);
    }
    if (result == 0)
        result = ask_importers(self, id, &command, e);
    if (result == 0 && command.len == 0)
        result =
            err_set(e, ERR_ABSENT, "session '%.*s' cannot be continued where it was imported from",
                    (int)id.n, id.p);
    if (result == 0) {
        add_directory(out, &directory, id);
        buf_add_str(out, buf_str(&command));
    }
    buf_release(&directory);
    buf_release(&command);
    return result;
}
