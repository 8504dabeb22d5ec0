/*
 * memory - allocation that cannot fail, because running out of memory ends the program.
 *
 * This is the only failure that the library does not return. The handler set by the program
 * (cli/diagnostics) prints `tool: out of memory` and exits. Without a handler the process aborts.
 */
#ifndef CHATHIST_BASE_MEMORY_H
#define CHATHIST_BASE_MEMORY_H

#include <stddef.h>

/* Returns n zeroed bytes, never NULL. For a size of 0 it returns a pointer that can be freed. The
 * caller frees the results of all these functions with free(3). */
void *mem_zalloc(size_t n) __attribute__((malloc, warn_unused_result));
/* Resizes an array to `count` elements of `size` bytes; p may be NULL. New elements are not zeroed.
 * If the product overflows, this counts as out of memory. */
void *mem_resize(void *p, size_t count, size_t size) __attribute__((warn_unused_result));
/* Copies n bytes and appends a NUL byte. */
char *mem_copy(const void *p, size_t n) __attribute__((malloc, warn_unused_result));
/* Copies a C string; NULL gives NULL. */
char *mem_text(const char *text) __attribute__((malloc, warn_unused_result));
/* Makes room in an array for `need` elements of `size` bytes by doubling it. *cap is the number of
 * elements that fit, 0 while p is NULL. Returns the array, which may have moved. */
void *mem_grow(void *p, size_t *cap, size_t need, size_t size) __attribute__((warn_unused_result));

/* Overwrites n bytes that hold a secret, even if the memory is not read again; p may be NULL. */
void mem_wipe(void *p, size_t n);

/* From here on, freed blocks of a megabyte or more are returned to the system. glibc would keep
 * them after the first one was freed, and allocate as much again if they do not fit the next
 * request. Other C libraries return them anyway. */
void mem_return_large(void);

/* Sets the handler for running out of memory. It must not return. */
void mem_on_exhaustion(void (*handler)(void));
/* Runs out of memory. Callers use this after a failed allocation of another library. */
_Noreturn void mem_exhausted(void);

#endif
