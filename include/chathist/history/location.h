/*
 * location - which history is used, and whether it is trusted (chathist(5)).
 *
 * The first rule that applies decides:
 *
 *   1. An explicit FILE (`--history`, $CHAT_HISTORY).
 *   2. In a git repository, `aicoder/history.jsonl` in git's common directory. All worktrees share
 *      it. The pointer, the file with the id of the current session, is in the git directory of the
 *      worktree.
 *   3. Outside git, `.aicoder/history.jsonl` in the nearest parent directory with the user's mark
 *      (history/trust.h), which `hist-new --here` makes.
 *   4. The user's own history in the XDG data directory.
 *
 * A history is sent to a model, and another person may have written one in order to put words into
 * a conversation. So what the history of a repository or a directory held when this account first
 * stored something there came with it: programs read it, and continue such a session only if the
 * user names it. The mark of the account says where its own lines begin.
 *
 * Two links lead to the history of a repository (history/links.h). Its second name is a hard link
 * in the user's data directory, which keeps the history if the repository is deleted. The work link
 * is the symbolic link `.aicoder` in the main work tree, for people; programs never follow it.
 *
 * If hist-new --here made `.aicoder` in a directory that became the work tree of a repository
 * later, it is used until a program that stores something moves it below git's directory.
 */
#ifndef CHATHIST_HISTORY_LOCATION_H
#define CHATHIST_HISTORY_LOCATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/task.h"
#include "chathist/history/append.h"
#include "chathist/history/owner_mark.h"

/* Where the user's files are: borrowed strings, filled in from flags and the environment. */
struct locate_from {
    const char *explicit_file;  /* NULL: none */
    const char *cwd;            /* absolute; NULL: it was removed, which matters without a FILE */
    const char *data_home;      /* $XDG_DATA_HOME or ~/.local/share; NULL: unknown */
    const char *state_home;     /* $XDG_STATE_HOME or ~/.local/state; NULL: unknown */
    int64_t now;                /* the start of this run: see `now` of struct history */
    const char *git_dir;        /* $GIT_DIR; NULL if unset or empty */
    const char *git_common_dir; /* $GIT_COMMON_DIR; NULL if unset or empty */
    bool may_be_nowhere;        /* locate succeeds without a place for a history */
    bool reader;                /* the caller stores nothing: see `other` */
    bool no_copies;             /* make no second name for a repository's history */
};

enum history_kind { HISTORY_EXPLICIT, HISTORY_REPOSITORY, HISTORY_HERE, HISTORY_USER };

struct git_dirs;

/* All strings are owned. */
struct history {
    enum history_kind kind;
    /* Descriptors of the directory with the history and its indexes, and of the one with the
     * pointer. Every file in them is opened relative to these (file_open_regular_at). */
    int dir_fd, pointer_fd;
    char *path;           /* the history file, absolute unless explicit */
    char *pointer;        /* the pointer file */
    char *index;          /* the session index; see history_index_path */
    char *skip;           /* the skip index; used only together with the session index */
    char *vectors;        /* the vectors of messages (embed/vectors.h); used likewise */
    char *dir;            /* the directory of the history; NULL when explicit */
    char *register_path;  /* ${state_home}/chathist/histories; NULL if unknown */
    char *token_path;     /* ${state_home}/chathist/token; NULL if unknown */
    char *copies;         /* the directory of second names (history/links.h); NULL if unknown */
    struct git_dirs *git; /* what was found in a repository; NULL outside of git */
    /* This machine's clock, in microseconds since 1970, by which the lines are ordered
     * (history/order.h). It is read once a run, so that all histories of a run use the same; a
     * program that runs for long sets it again before each list and search. */
    int64_t now;
    /* The history of another program in `.aicoder` of the work tree, or NULL. It is read beside
     * this history, and nothing is stored in it. If a reader finds no other history, `path` is it.
     */
    char *other;
    /* Whose the lines are. Sessions with a line before mark.from, unless they are in mark.named,
     * came with the repository. Without a mark it is HISTORY_NOTHING_OWN; it is 0 for the user's
     * own history, and an explicit one, if `safe`. */
    struct owner_mark mark;
    char *nowhere; /* why no place for a history was found; the paths are empty; else NULL */
    char *notice;  /* why it is this history, if another one would be expected; else NULL */
    char
        *trust_fault; /* why it could not be determined whether the history is trusted; else NULL */
    bool displaced;   /* the user's repository cannot have a history, so it is another one: say
                         `notice` each time something is stored, not only if a session begins */
    bool is_old;      /* this is `.aicoder` in the work tree; it has not been moved yet */
    bool dir_exists;  /* the directory need not be made; always true when explicit */
    bool safe;        /* no other user can have written the directory, the history, the pointer */
    bool marked;      /* the mark is of this file */
    bool outdated;    /* the mark has the form of an earlier version */
    bool
        trusted; /* pointer, index and mark.from count; also true for files that do not exist yet */
    bool keeps_copies; /* the history gets a second name; an existing one is renewed in any case */
    bool entered;      /* store_enter has succeeded */
    bool announced;    /* history_announce was called */
    bool sync;         /* fdatasync before success is reported (CHAT_FSYNC); true after locate */
    int cancel_fd;     /* once it is readable, waits for other writers end; -1 after locate */
    /* Called if another program holds the lock of the file `path` for long (APPEND_TELL_MS); NULL
     * after locate. */
    void (*tell)(const char *path);
    /* Called with the reason if no mark can be written, so that the next program does not know that
     * the new lines are the user's; NULL after locate. */
    void (*on_unmarked)(const char *why);
    task_report *work; /* called during long tasks; NULL after locate */
    /* Another thread sets this to true to stop the making of an index, or the reading of the whole
     * history if no index can be used; NULL after locate. */
    const atomic_bool *cancel;
    bool is_history; /* store_check has succeeded */
    bool unreadable; /* it is treated as empty (history_forbidden); false after locate */
    bool impatient;  /* a wait for a lock has timed out: the next one is short */
};

/* More than any offset. */
#define HISTORY_NOTHING_OWN ((off_t)INT64_MAX)

/* The length of a short wait, in milliseconds. */
#define HISTORY_IMPATIENT_MS 5000

/* Returns how to wait for the lock of this history, or of the register. */
struct append_wait history_wait(const struct history *h);

/* ---- finding ---- */

/* Finds the history and fills h. Creates no file. Returns 0, or -1 with *e set: the search for a
 * repository failed; or no place for a history was found, unless may_be_nowhere is set. The caller
 * releases h after success. */
int locate(struct history *h, const struct locate_from *from, struct err *e);
void history_release(struct history *h);
/* Finds all histories of the user: the user's own, those in the register, and second names, which
 * may be the last names of their files. The same file may be found twice. `found` takes over each
 * history. Returns 0, or -1 with *e set if the place of the register is unknown, or it cannot be
 * read, perhaps after some were found. */
int locate_all(const struct locate_from *from, void (*found)(void *arg, struct history h),
               void *arg, struct err *e);

/* Returns the path of an earlier history of this repository that its second name has kept, if the
 * present history does not continue it: the repository was cloned again or restored from a backup.
 * Else returns NULL. The caller frees it. */
char *history_earlier(const struct history *h);
/* Returns the path of the second name of this history, or NULL if it has none. `st` is its fstat.
 * The caller frees it. */
char *history_second_name(const struct history *h, const struct stat *st);
/* Returns whether the history exists, but the user has no permission to read it. */
bool history_forbidden(const struct history *h);
/* Opens git's common directory of the repository whose history this is. The caller closes it.
 * Returns -1 with errno set on failure. */
int history_git_dir(const struct history *h);
/* Returns whether several worktrees share this history. */
bool history_has_worktrees(const struct history *h);

/* ---- storing ---- */

/* Makes the directory (0700) if it is missing, and moves the history of a directory that became a
 * repository. Use store_enter. Returns 0, or -1 with *e set. */
int history_make(struct history *h, struct err *e);
/* Returns the path of the file of the marks (history/trust.h). The caller frees it. */
char *history_marks(const struct history *h);
/* The three functions below are for the caller that holds the lock of the history, `fd`. */
/* Returns whether the account has the mark of this file. Looks again if the file was replaced. */
bool history_is_marked(struct history *h, int fd);
/* Writes the mark: lines from offset `size` on are the account's. When an account first
 * stores something in an existing place, all rights are taken from others (0700 and 0600), and
 * the pointer and the index of the place are removed. Returns 0, also if no token can be made (see
 * on_unmarked); or -1 with *e set. */
int history_mark(struct history *h, int fd, off_t size, struct err *e);
/* Adds a session to the mark, because the user has named it. Returns 0, or -1 with *e set. */
int history_name(struct history *h, struct str id, struct err *e);
/* Lists the directory in the register, and makes the work link, where they are missing. Failures
 * are not reported: the history can be used without them. */
void history_announce(struct history *h);
/* Makes `.aicoder` in `dir`, where the user wants a history. `h` was filled by locate for that
 * directory. Returns 0, or -1 with *e set: it is in a repository, or cannot be
 * made. */
int history_make_here(struct history *h, const char *dir, struct err *e);
/* Links the history under its second name, if that is missing. `st` is its fstat. */
void history_make_second_name(const struct history *h, const struct stat *st);

/* ---- the index files ---- */

/* Returns the path of the session index, or NULL if it must not be used: an index that came with an
 * untrusted directory is not read. */
const char *history_index_path(const struct history *h);
/* For programs that write a file of the user's choice: returns "is the history" or "belongs to the
 * history" if the path is one of its files, else NULL. */
const char *history_file_of(const struct history *h, const char *path);
/* The endings of the list of deletions, and of the file for damaged lines. */
#define HISTORY_DELETED ".deleted"
#define HISTORY_QUARANTINE ".quarantine"
/* While an index is being made, its name has this ending. */
#define HISTORY_INDEX_MAKING ".tmp"
/* Returns whether a file is empty, or begins as every version of the two indexes does. Any other
 * file with the name of an index belongs to the user and is not removed. */
bool history_is_sidecar(int fd);
/* Opens an index file; with O_CREAT in `flags`, makes a missing one. Returns the descriptor; or -1
 * with *errnum set: ENOENT for a missing file, EPERM for a regular file that is no sidecar
 * (history_is_sidecar), has a second name, or can be written by another user. */
int history_open_index(int dir, const char *path, int flags, int *errnum);
/* Removes both indexes and an unfinished one, whichever program made them. */
void history_remove_index(const struct history *h);

#endif
