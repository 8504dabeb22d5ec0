/*
 * locate - which history is meant, and whether it is trusted (chathist(5)). The first rule that
 * applies wins:
 *
 *   1. an explicit FILE (`--history`, $CHAT_HISTORY);
 *   2. inside a git repository, `aicoder/history.jsonl` in git's common directory; the pointer to the
 *      current session is in the git directory of the worktree (hist/git_dirs);
 *   3. outside git, `.aicoder/history.jsonl` in the nearest parent directory with the user's mark
 *      (hist/trust), which `hist-new --here` makes;
 *   4. the user's own history in the XDG data directory.
 *
 * An older version kept the history of a repository in `.aicoder` of its work tree. If that directory
 * is the user's it is used until the first writer moves it below git's common directory.
 *
 * Only history_enter and history_make_here create something.
 */
#ifndef CHATHIST_HISTORY_LOCATE_H
#define CHATHIST_HISTORY_LOCATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/append.h"
#include "chathist/history/git_dirs.h"

/* Where the user's things are; borrowed, filled from flags and environment. */
struct locate_from {
    const char *explicit_file; /* NULL: none */
    const char *cwd;           /* absolute; NULL: it was removed, which matters without a FILE */
    const char *data_home;     /* $XDG_DATA_HOME or ~/.local/share; NULL: unknown */
    const char *state_home;    /* $XDG_STATE_HOME or ~/.local/state; NULL: unknown */
    struct git_env git;
    bool may_be_nowhere; /* it is no error if there is no place for a history */
    bool reader;         /* the caller stores nothing: see `foreign` */
    bool no_copies;      /* keep no second name of a repository's history (hist/copy) */
};

enum history_kind { HISTORY_EXPLICIT, HISTORY_REPOSITORY, HISTORY_HERE, HISTORY_USER };

/* All strings are owned. */
struct history {
    enum history_kind kind;
    /* The directories of the history with its indexes, and of the pointer, as for
     * io_open_regular_at: every file below them is opened through these. */
    int dir_fd, pointer_fd;
    char *path;          /* the history file, absolute unless explicit */
    char *pointer;       /* the file that holds the id of the current session */
    char *index;         /* the file of hist/index; see history_index */
    char *skip;          /* the file of hist/skip, which is of no use without the index */
    char *dir;           /* the directory of the history; NULL when explicit */
    char *register_path; /* ${state_home}/chathist/histories; NULL if unknown */
    char *token_path;    /* ${state_home}/chathist/token; NULL if unknown */
    char *copies;        /* the directory of hist/copy; NULL if unknown */
    struct git_dirs git; /* of a repository; else closed */
    char *old_dir;       /* `.aicoder` of an older version, which is still in use; else NULL */
    /* A history in `.aicoder` of the work tree that is not ours: it belongs to another program or
     * came with the work tree. It is read beside ours, or by a reader in place of ours if there is
     * none; nothing is ever stored in it. NULL: there is none. */
    char *foreign;
    char *
        nowhere; /* why there is no place for a history: path, pointer and dir are empty; else NULL */
    char *notice;    /* why this is not the history of the enclosing repository; else NULL */
    char *doubt;     /* why it could not be determined whether the history is trusted; else NULL */
    bool dir_exists; /* nothing has to be made first; always so when explicit */
    bool trusted;    /* the pointer may be followed, and the session goes on; true for a directory
                      * that is still to be made */
    bool
        keeps_copies; /* the history gets a second name; one that is there is renewed in any case */
    bool entered;     /* history_enter has done its work */
    bool sync;        /* fdatasync before success is reported (CHAT_FSYNC); true after locate */
    int cancel_fd;    /* readable: do not wait for other writers any longer; -1 after locate */
    /* Called when another program holds the lock of that file for long; NULL after locate. */
    void (*tell)(const char *path);
    /* Called now and then with the part that is done of a long task, in percent, and with -1 at its
     * end; NULL after locate. */
    void (*work)(int percent);
    /* Once it is true, the making of an index is given up, and so may be reading the whole history
     * instead; NULL after locate. */
    const atomic_bool *cancel;
    bool unreadable; /* it is treated as empty (history_forbidden); false after locate */
    bool impatient;  /* a lock of the history could not be had: the next wait is short */
};

/* The length of a short wait, in milliseconds. */
#define HISTORY_IMPATIENT_MS 5000

/* How a lock of this history, or of its register, is waited for. */
struct append_wait history_wait(const struct history *h);

/* Fills h. -1: the directory of the history is a link or no directory; the search for a repository
 * failed; or there is no place for a history, unless it may be nowhere. */
int locate(struct history *h, const struct locate_from *from, struct err *e);
/* Fills h with the history in a directory of the register. 1; 0 if that cannot be one of the
 * user's. */
int locate_registered(struct history *h, const char *dir, const struct locate_from *from);
/* Fills h with the user's own history (rule 4), wherever the working directory is. 0, or -1 with *e
 * set: there is no place for it. */
int locate_own(struct history *h, const struct locate_from *from, struct err *e);
void history_release(struct history *h);
/* The path of an earlier history of this repository that was kept in the user's data directory, if
 * the present history does not continue it: the repository was cloned again or restored from a
 * backup. NULL if there is none. The caller frees it. */
char *history_earlier(const struct history *h);
/* Links the history under its second name, if that is missing. `st` is its fstat. */
void history_keep_copy(const struct history *h, const struct stat *st);
/* Where the history's index is, NULL when it has none: what came with a directory that is not
 * trusted is no index. */
const char *history_index(const struct history *h);
/* What is added to that name while it is being made. */
#define HISTORY_INDEX_MAKING ".tmp"
/* Does a file begin as every version of the two does, or is it empty? Another one of their names is
 * the user's, and left alone. */
bool history_is_sidecar(int fd);
/* Removes the index with its skip index, and what is left of one in the making, whoever made it. */
void history_remove_index(const struct history *h);
/* Has another program entered the directory meanwhile? Sets h->trusted if so. */
void history_look_again(struct history *h);
/* Do several worktrees share this history? */
bool history_has_worktrees(const struct history *h);
/* Is there a history that the user has no permission to read? */
bool history_forbidden(const struct history *h);

/* Prepares the place for a writer: makes the directory (0700) if it is missing, moves the history of
 * an older version, writes the user's mark, lists the directory in the register, and makes the link
 * in the work tree. A directory that exists and is not trusted loses the pointer and the index that
 * came with it, and is trusted from then on; then *entered (may be NULL) is true, and the caller
 * says so. -1: the directory could not be made, or one that exists could not be marked. If a new one
 * cannot be marked, the history is stored all the same, and the next program will not trust it. */
int history_enter(struct history *h, bool *entered, struct err *e);
/* Lists the directory in the register, and makes the link in the work tree, where they are missing.
 * Failures are not reported: the history can be used without them. */
void history_announce(const struct history *h);
/* Makes `.aicoder` in `dir`, for history_enter: the user wants a history there. `h` was filled
 * by locate for that directory. 0; -1: it lies in a repository, or cannot be made. */
int history_make_here(struct history *h, const char *dir, struct err *e);

#endif
