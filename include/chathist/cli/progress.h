/*
 * progress - one line on the terminal that says what a program waits for or works on:
 * `check 43 % of 1.2 GB, 310 MB/s, 2 s left`.
 *
 * It is on standard error. Messages and output on the same terminal erase it; the next call draws
 * it again. No thread draws: the work itself reports how far it is (base/task.h).
 */
#ifndef CHATHIST_CLI_PROGRESS_H
#define CHATHIST_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/task.h"

/* Returns true if the line can be shown: stderr is a terminal with a movable cursor, and the
 * program is in its foreground. Only then the functions below are called. */
bool progress_possible(void);
/* Shows or turns a spinner while the program waits; called about ten times a second. It appears
 * after a short delay, and later shows the time. */
void progress_turn(void);
/* The same for a tool, with its name, which is printable and short, and the time since it `began`
 * (time_ticks). */
void progress_tool(const char *name, int64_t began);
/* Shows how far a task is, from a second after the first one. NULL erases the line. */
void progress_work(const struct task *t);
/* The same at once, for a task that waits for a server. */
void progress_wait(const struct task *t);
/* The next tasks of this name are parts of a work of `all` bytes, one for each file. */
void progress_parts(const char *name, uint64_t all);
/* Erases the line. */
void progress_erase(void);
/* Erases the line, and ends the waiting or the work: the next task begins with the delay. */
void progress_end(void);

/* Adds the text of a task that began `ms` milliseconds ago. At that time `from` was done. */
void progress_add_text(struct buf *line, const struct task *t, uint64_t from, int64_t ms);

#endif
