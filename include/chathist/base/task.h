/*
 * task - what the library reports while it does something that can take long.
 */
#ifndef CHATHIST_BASE_TASK_H
#define CHATHIST_BASE_TASK_H

#include <stdint.h>

struct task {
    const char *name;   /* a word for the user: `check` */
    const char *unit;   /* the unit of the numbers: `lines`; NULL: they are bytes */
    uint64_t done, all; /* all is 0 if it is unknown */
};

/* Called on the thread of the caller, so rarely that it costs nothing (every quarter of a megabyte
 * or so); with NULL at the end of a task whose caller may not print anything soon. The name and
 * the unit are literals. */
typedef void task_report(const struct task *t);

#endif
