/*
 * process - other programs: their command lines, pipes, environments, starts and ends.
 *
 *     words_split, words_add         a command as a user writes it, split without a shell
 *     words_quote                    the opposite: a word for a command of the shell
 *     pipe_open, pipe_open_wake      pipes that no program inherits
 *     spawn                          starts a program; the functions below use it
 *     process_run, process_read      a program that shares our terminal, until it ends
 *     child_start, ... child_end     a program without a terminal, at work beside this process
 *     orphans_begin, orphans_end     ends what such programs leave running
 *     process_hide                   keeps the memory of this process from them
 */
#ifndef CHATHIST_BASE_PROCESS_H
#define CHATHIST_BASE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* ---- command lines ---- */

/* The words of a command, or a list of texts for another purpose. */
struct words {
    char **at; /* ends with NULL, as execv(3) wants it; owned */
    size_t count;
    size_t cap;
};

/*
 * Splits a text into words. Blanks, tabs and newlines separate them. Quotes and backslashes mean
 * what they mean in the shell (POSIX, Shell Command Language, 2.2): in '...' every character stands
 * for itself; in "..." a backslash quotes `"`, `\`, `$`, a backquote and a newline; elsewhere it
 * quotes any character, and is removed together with a newline. '' is an empty word. Nothing is
 * expanded: `$`, `~`, `*`, `;`, `|` and `>` stand for themselves.
 *
 * Returns 0, or -1 with *e set (ERR_USAGE) if a quote is not closed, if the text ends with a
 * backslash, contains a NUL byte or has no word. Call words_release in both cases.
 */
int words_split(struct words *w, struct str text, struct err *e);
/* Adds a copy of a word. *w was zero-initialised or split. */
void words_add(struct words *w, struct str word);
/* Adds an option and its value as one word: `--limit=` and `5`. */
void words_add_option(struct words *w, const char *option, struct str value);
void words_release(struct words *w);
/* Adds a word as the shell reads it back, in quotes if it needs them. */
void words_quote(struct buf *out, const char *word);

/* ---- pipes ---- */

/* Opens a pipe that programs do not inherit, whichever thread starts them: ends[0] is for reading,
 * ends[1] for writing. The caller closes both. Returns 0, or -1 with errno set and both ends -1. */
int pipe_open(int ends[2]);
/* Like pipe_open, but both ends are non-blocking, so that a signal handler or a thread can wake a
 * poll(2). */
int pipe_open_wake(int ends[2]);

/* ---- starting programs ---- */

/* Values of spawn.fd that are not descriptors: the stream of this process, and /dev/null. */
#define SPAWN_OURS (-1)
#define SPAWN_NULL (-2)

/* How to start a program. All pointers are borrowed for the call. */
struct spawn {
    char *const *argv; /* ends with NULL; argv[0] is searched in PATH unless it has a slash */
    char *const *env;  /* NULL: that of this process */
    const char *cwd;   /* its working directory; NULL: that of this process */
    int fd[3];         /* its standard streams */
    sigset_t reset;    /* the signals that get their default action */
    bool apart; /* it leads a new session and process group, so it has no controlling terminal,
                 * and no signal is blocked */
    bool only_streams; /* it inherits no descriptor but its standard streams, not even one that a
                        * library or the caller of this program left open */
};

/* Starts a program. Returns 0, or an errno if the program or the directory does not exist, or if
 * the system has no process left. With `cwd`, relative directories in PATH are below it, and PWD
 * and OLDPWD are removed from the environment. */
int spawn(pid_t *pid, const struct spawn *s);

/* Returns the environment of this process without the variables in `names` (which ends with NULL),
 * and without those whose value contains `secret` (unless it is empty). The array ends with NULL;
 * the caller frees it. The strings still belong to the environment. */
char **child_env_without(const char *const names[], struct str secret);

/* Keeps the memory and the environment of this process, which may hold keys, from other processes
 * of the user. On Linux they can then neither read /proc/PID/environ and /proc/PID/mem nor trace
 * this process, and it leaves no core dump (PR_SET_DUMPABLE in prctl(2)). Programs that it starts
 * are not affected. Processes of root can still look. On other systems this does nothing. */
void process_hide(void);

/* ---- programs that share the terminal ---- */

/* process_read gives up a program that has printed this many bytes more than there is room for. */
#define PROCESS_REST_MAX ((size_t)16 << 20)

/* Runs a program that shares the terminal with this process, such as an editor, and waits until it
 * ends. argv ends with NULL; argv[0] is searched in PATH. Its standard output is `out`, or that of
 * this process if `out` is -1. Returns its exit status, 128 + N if signal N ended it, or -1 with *e
 * set if it could not be started.
 *
 * Until it ends this process ignores SIGINT and SIGQUIT, as system(3) does; they are meant for the
 * program. This affects all threads. Other threads must therefore take no signals, and must start
 * programs with the default actions (spawn.reset). */
int process_run(char *const argv[], int out, struct err *e);

/*
 * Runs a program and adds what it prints to `out`. Its working directory is `cwd` (NULL: that of
 * this process), its standard input is `in` (STR_NONE: /dev/null), and it shares the terminal, so
 * that it can ask for a password. Output is read until the program ends, even if something that it started keeps
 * the pipe open. Output beyond the maximum of `out` is dropped.
 *
 * Signals keep their actions. A caller that catches them makes cancel_fd (-1: none) readable, which
 * ends the program. Without a terminal, everything that it started ends as well; with one only the
 * program, because the signals of the terminal reach the others anyway.
 *
 * Returns like process_run. Also returns -1 after cancel_fd became readable (ERR_SIGNAL), and after
 * more than PROCESS_REST_MAX dropped bytes.
 */
int process_read(char *const argv[], const char *cwd, struct str in, struct buf *out, int cancel_fd,
                 struct err *e);

/* ---- programs beside this process ---- */

/*
 * A program whose standard streams are pipes to this process. It leads a new session and process
 * group, and everything in the group ends with it. It has no terminal: /dev/tty cannot be
 * opened (ENXIO), as under cron. In the background of our session it would be stopped as soon as it
 * reads from the terminal.
 *
 * Only child_end and child_end_all wait. The descriptors are for poll(2).
 */
struct child {
    pid_t pid;  /* its number and that of its group; 0 if it has ended or was not started */
    int in;     /* writes to its standard input */
    int out;    /* reads from its standard output */
    int err;    /* reads from its standard error; all three are non-blocking, -1 if closed */
    int status; /* once it has ended: its exit status, or 128 + N if signal N ended it */
    int signal; /* the signal that ended it, or 0 */
};

/* The time that a child gets when the user does not want to wait, in milliseconds. */
#define CHILD_HURRY_MS ((int64_t)50)

#define CHILD_INIT                                                                                 \
    {                                                                                              \
        .in = -1, .out = -1, .err = -1                                                             \
    }

/* Starts a program without a shell, which inherits no other descriptors. The arguments are those of
 * struct spawn. Returns 0, or -1 with *e set. The caller ignores SIGPIPE. */
int child_start(struct child *c, char *const argv[], char *const env[], const char *cwd,
                struct err *e);
/* Returns whether the program has ended. Does not wait. Processes that it started may still run. */
bool child_ended(struct child *c);
/* Adds the result of one read to b, without waiting. Returns false if there is nothing to read now.
 * At the end of the stream, or if b is full, the descriptor is closed and false is returned. */
bool child_read(int *fd, struct buf *b);
/* Writes as much as the pipe takes, without waiting. Returns the number of bytes. The descriptor is
 * closed if the reader has closed the pipe. */
size_t child_write(int *fd, struct str bytes);
/* Closes one of the three descriptors if it is open. */
void child_close(int *fd);
/* Sends SIGTERM to the group of a child that has not ended. */
void child_term(struct child *c);
/* Ends a child: closes its standard input, waits up to grace_ms, sends SIGTERM, waits up to
 * grace_ms again, and then kills its group. Processes that remain in the group are killed in any
 * case. Further output is read and dropped. May be called for a child that has ended or was not
 * started. */
void child_end(struct child *c, int64_t grace_ms);
/* Ends several children side by side, in the same time as one. Once hurry_fd (-1: none) becomes
 * readable, each of the two waits lasts at most CHILD_HURRY_MS longer. */
void child_end_all(struct child *const *all, size_t count, int64_t grace_ms, int hurry_fd);

/* ---- processes that they leave running ---- */

/*
 * On Linux, a process whose parent ends becomes the child of its nearest ancestor that asked for
 * this (PR_SET_CHILD_SUBREAPER in prctl(2)). Between orphans_begin and orphans_end this process is
 * that ancestor, and so it finds processes that left their group and session. Only children of this
 * process are ever signalled. On other systems such processes keep running.
 */
struct orphans {
    /* private */
    pid_t *known; /* the children from before orphans_begin; they are never killed */
    size_t count, cap;
    bool listed; /* whether `known` could be read */
    bool was_reaper;
};

/* Adopts orphaned processes from now on. Children that exist already, and what they start, are not
 * affected unless one of their processes is orphaned before orphans_end. */
void orphans_begin(struct orphans *o);
/* Kills every child that is not from before orphans_begin, then the children that these leave, and
 * so on. Call it when all children started since then have ended. Waits for a second at most.
 * Afterwards this process adopts no more processes. */
void orphans_end(struct orphans *o);

#endif
