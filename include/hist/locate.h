/*
 * locate - which history file is meant, and whether what lies beside it can be trusted
 * (chathist(5)).
 *
 * In this order: an explicit FILE (`--history`, $CHAT_HISTORY); `.aicoder/history.jsonl` in the
 * root of the enclosing repository; the user's own under the XDG data directory. Only history_enter
 * creates something.
 */
#ifndef CHATHIST_HIST_LOCATE_H
#define CHATHIST_HIST_LOCATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "hist/append.h"

/* Where the user's things are; borrowed, filled from flags and environment. */
struct locate_from {
    const char *explicit_file; /* NULL: none */
    const char *cwd;           /* absolute; NULL: it is gone, which an explicit file bears */
    const char *data_home;     /* $XDG_DATA_HOME or ~/.local/share; NULL: unknown */
    const char *state_home;    /* $XDG_STATE_HOME or ~/.local/state; NULL: unknown */
    bool may_be_nowhere;       /* that there is no place for a history is no error */
};

enum history_kind { HISTORY_EXPLICIT, HISTORY_REPOSITORY, HISTORY_USER };

struct history {
    enum history_kind kind;
    char *path;          /* the history file, absolute unless explicit */
    char *pointer;       /* the file that holds the current session's id */
    char *index;         /* the file of hist/index; see history_index */
    char *skip;          /* that of hist/skip, which is of no use without */
    char *dir;           /* of ours, that holds both (.aicoder or aicoder); NULL when explicit */
    char *register_path; /* ${state_home}/chathist/histories; NULL when that is unknown */
    /* Why there is no place for it: then path, pointer and dir are empty, it has no line, and it
     * cannot be entered. NULL: it has its place. */
    char *nowhere;
    bool dir_exists; /* nothing has to be made first; always so when explicit */
    bool trusted;    /* the pointer may be followed; so when dir is still to be made. In a
                          * repository: the register knows dir and how its history begins */
    bool sync;       /* fdatasync before success is reported (CHAT_FSYNC); true after locate */
    int cancel_fd;   /* readable: do not wait for other writers any longer; -1 after locate */
    /* Told when another program holds the lock of that file for long; NULL after locate. */
    void (*tell)(const char *path);
    /* Told now and then how much is done, in percent, of what takes long, and -1 at its end; NULL
     * after locate. */
    void (*work)(int percent);
    /* Once it is true, the making of an index is given up, and who reads all of the history instead
     * may be, too; NULL after locate. */
    const atomic_bool *cancel;
    bool unreadable; /* it is taken for empty (history_forbidden); false after locate */
    bool impatient;  /* a wait for the history's lock was in vain: the next one is short */
};

/* How long that is, in milliseconds. */
#define HISTORY_IMPATIENT_MS 5000

/* How a lock of this history, or of its register, is waited for. */
struct append_wait history_wait(const struct history *h);

/* Finds the enclosing repository's root from `cwd`: the nearest directory, itself included, that
 * has `.git` (a file or a directory) or `.aicoder`, without leaving cwd's file system, passing
 * over directories and entries of other owners. NULL when there is none. The caller frees it. */
char *locate_root(const char *cwd);

/* Fills h. -1: an `.aicoder` that is a link or no directory, or belongs to somebody else; or no
 * place for a history is known, or not where we are, unless it may be nowhere. A register that
 * cannot be read knows nothing. */
int locate(struct history *h, const struct locate_from *from, struct err *e);
void history_release(struct history *h);
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
/* Is there a history that the user has no permission to read? */
bool history_forbidden(const struct history *h);

/* Makes the directory (0700, with its `.gitignore`) when it is missing and, in a repository, enters
 * it in the register. An existing one that is not trusted loses the pointer that somebody else put
 * there, is entered with its history as it is, and trusted from then on. *entered (may be NULL)
 * tells that this happened to one that was there before: the caller says so. -1: the directory
 * could not be made, or an existing one not be entered. For a new one that cannot be entered it is
 * 0: the history is stored, and the next program will find it not trusted. */
int history_enter(struct history *h, bool *entered, struct err *e);
/* Enters the directory once more, with how its history is about to begin: to be called before the
 * first bytes of a trusted one are written, under its lock. A program that dies in between leaves
 * an empty file, which is trusted, too. 0, -1; nothing is done outside of repositories. */
int history_vouch(const struct history *h, struct str beginning, struct err *e);
/* The same for a history that is about to be replaced: in both forms it is trusted until
 * history_vouch_only, which also makes the register forget how it began before. */
int history_vouch_both(const struct history *h, struct str now, struct str next, struct err *e);
int history_vouch_only(const struct history *h, struct str beginning, struct err *e);

#endif
