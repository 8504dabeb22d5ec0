/*
 * vectors - the vectors of the prompts and answers of a history, in a file beside its indexes.
 *
 * A vector says what a text means: those of texts about the same thing have a small angle. A model
 * makes them; this file only keeps and compares them. The history is read from where the file ends,
 * and what a model made for a batch of messages is appended to it, so a run that was killed goes on
 * where it ended. The file belongs to one history and one model: another model, or a history that
 * was rewritten, begins a new one. Its format is in chathist(5).
 */
#ifndef CHATHIST_EMBED_VECTORS_H
#define CHATHIST_EMBED_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/task.h"
#include "chathist/history/location.h"

/* A vector stands for this many code points of a text. */
#define VECTORS_TEXT ((size_t)1500)
/* The largest number of dimensions. */
#define VECTORS_DIMENSIONS ((size_t)16384)

/* How vectors are made. */
struct vectors_model {
    uint64_t name;     /* a hash of the name of the model */
    size_t dimensions; /* of its vectors */
    struct str sure;   /* a text that it takes, as a JSON string and a newline */
    /* Makes the vectors of texts, each a JSON string on a line, and adds for each a JSON array of
     * numbers to `out`, on a line, or `null` if the model takes others but not this one. Returns 0,
     * or -1 with *e set. */
    int (*make)(void *arg, struct str texts, struct buf *out, struct err *e);
    void *arg;
    task_report *work; /* reports how far the history has vectors; NULL: nothing does */
};

/* A message, and how near it is: 1 for the same direction, 0 for none in common. */
struct vectors_hit {
    off_t at; /* its line in the history */
    size_t n;
    float score;
};

/* A vector as numbers of 8 bits with a common factor; the caller frees `at`. */
struct vector {
    int8_t *at;
    size_t n, dimensions; /* n is a multiple of SIMD_DOT; the last numbers are 0 */
    float factor;
};
/* Reads a JSON array of numbers. Returns 0, or -1 with *e set if it is another value, or if it has no number
 * other than 0, or too many. */
int vector_read(struct vector *v, struct str json, struct err *e);

struct vectors_found {
    struct vectors_hit *hits; /* of the caller, with room for `most` */
    size_t most, count;
    size_t
        refused; /* messages of which the model made no vector now; they are not asked for again */
};
/* Makes the vectors that the file does not have, appends them, and finds the messages whose vectors
 * are nearest, the nearest first, with all threads. Vectors that are damaged in the file are made
 * again. A history without indexes, such as one that is not trusted, has none. Returns 0, or -1
 * with *e set. */
int vectors_nearest(const struct history *h, const struct vectors_model *m, const struct vector *v,
                    struct vectors_found *found, struct err *e);

#endif
