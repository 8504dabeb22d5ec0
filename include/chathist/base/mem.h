/*
 * mem - memory that is there or ends the program.
 *
 * Running out of memory is the one failure that the library does not return: the handler set by
 * the program (cli/die) prints `tool: out of memory` and exits; without one the process aborts.
 */
#ifndef CHATHIST_BASE_MEM_H
#define CHATHIST_BASE_MEM_H

#include <stddef.h>

/* Never NULL, zeroed. A size of 0 gives a pointer that can be freed. All that these functions give
 * is freed with free(3). */
void *mem_zalloc(size_t n) __attribute__((malloc, warn_unused_result));
/* Grows or shrinks an array to `count` elements of `size` bytes; p may be NULL. What is added is
 * not zeroed. An overflow of the product counts as out of memory. */
void *mem_resize(void *p, size_t count, size_t size) __attribute__((warn_unused_result));
/* Copies n bytes and puts a NUL byte behind them. */
char *mem_copy(const void *p, size_t n) __attribute__((malloc, warn_unused_result));
/* Makes room in an array for `need` elements of `size` bytes, by doubling: *cap is the number of
 * elements there is room for, 0 while p is NULL. Returns the array, moved or not. */
void *mem_grow(void *p, size_t *cap, size_t need, size_t size) __attribute__((warn_unused_result));

/* Overwrites n bytes that hold a secret, also when nobody reads them any more; p may be NULL. */
void mem_wipe(void *p, size_t n);

/* From now on blocks of a megabyte or more are the system's again when they are freed: glibc would
 * keep them once it has seen one go, and take as much again where they do not fit what comes next.
 * Other C libraries do so anyway. */
void mem_return_large(void);
/* Gives back what was freed by now, by all threads, where the C library has kept it. */
void mem_give_back(void);

/* What to do when there is none; must not return. */
void mem_on_exhaustion(void (*handler)(void));
/* Memory ran out: for allocations that another library makes. */
_Noreturn void mem_exhausted(void);

#endif
