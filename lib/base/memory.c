#include "chathist/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

/* This is a writable global variable because a program has only one way to end, and allocating
 * functions take no context through which to pass the handler. */
static void (*exhaustion_handler)(void);

void mem_return_large(void)
{
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

void mem_on_exhaustion(void (*handler)(void))
{
    exhaustion_handler = handler;
}

void mem_exhausted(void)
{
    if (exhaustion_handler)
        exhaustion_handler();
    abort();
}

void *mem_zalloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        mem_exhausted();
    return p;
}

void *mem_resize(void *p, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        mem_exhausted();

    /* realloc to 0 bytes may free the block and return NULL. */
    size_t n = count * size;
    void *q = realloc(p, n ? n : 1);

    if (!q)
        mem_exhausted();
    return q;
}

char *mem_copy(const void *p, size_t n)
{
    if (n == SIZE_MAX)
        mem_exhausted();

    char *copy = malloc(n + 1);

    if (!copy)
        mem_exhausted();
    if (n)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return copy;
}

char *mem_text(const char *text)
{
    return text ? mem_copy(text, strlen(text)) : NULL;
}

void *mem_grow(void *p, size_t *cap, size_t need, size_t size)
{
    if (p && need <= *cap)
        return p;

    size_t n = *cap > SIZE_MAX / 2 ? SIZE_MAX : *cap * 2;

    if (n < 8)
        n = 8;
    if (n < need)
        n = need;
    p = mem_resize(p, n, size);
    *cap = n;
    return p;
}

void mem_wipe(void *p, size_t n)
{
    /* explicit_bzero(3) is not available everywhere. The compiler does not remove volatile
     * accesses. */
    volatile char *at = p;

    while (n-- > 0)
        *at++ = '\0';
}
