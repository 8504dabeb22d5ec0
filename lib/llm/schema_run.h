/*
 * schema_run - what one check of a value against a schema carries along: its bounds, the first
 * thing that was found wrong, and which parts of the value schemas have looked at.
 */
#ifndef CHATHIST_LLM_SCHEMA_RUN_H
#define CHATHIST_LLM_SCHEMA_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "llm/schema_index.h"

struct schema_marks;

/* How many schemas may be applied in one check: more are made by a schema that multiplies. */
#define SCHEMA_STEPS 20000000

struct schema_run {
    const struct schema *schema;
    struct buf why;   /* what is wrong: `POINTER: is not a number` */
    size_t why_depth; /* how deep in the value that is */
    size_t quiet;     /* above 0: nobody wants to know */
    size_t steps;
    size_t scope[SCHEMA_DEPTH + 1]; /* the resources of the schemas that are being applied */
    size_t depth;                   /* how many they are */
    bool stopped;                   /* it cannot be told; why says so */
};

/* A keyword that is applied to a value. */
struct schema_at {
    struct schema_run *run;
    const struct schema_node *node; /* the schema that has the keyword */
    struct str want;                /* the keyword's value */
    struct str got;
    const struct schema_place *place; /* of got */
    struct schema_marks *marks;       /* what the node's keywords have looked at in got */
};

/* Notes what is wrong unless something is noted; returns false. */
bool schema_fail(struct schema_run *run, const struct schema_place *place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for good: no answer can be given. Returns false. */
bool schema_stop(struct schema_run *run, const struct schema_place *place, const char *why);
/* Forgets what was noted. */
void schema_forget(struct schema_run *run);

/* Which members or elements, by their number, were looked at. Zero-initialise. */
struct schema_marks {
    unsigned char *at;
    size_t count;
};
/* Makes room for those of a value, unless there is. */
void schema_marks_fit(struct schema_marks *m, struct str value);
void schema_mark(struct schema_marks *m, size_t i);
bool schema_marked(const struct schema_marks *m, size_t i);
/* Marks what is marked in `from`, of the same value. */
void schema_marks_join(struct schema_marks *m, const struct schema_marks *from);
void schema_marks_release(struct schema_marks *m);

#endif
