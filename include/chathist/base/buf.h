/*
 * buf - bytes: borrowed (struct str) and owned, growing, bounded (struct buf).
 *
 * Both carry their length and may hold any byte, U+0000 included. A buf is always followed by a
 * NUL byte that is not counted, so that buf_c can be given to system calls.
 *
 * A buf is made with the most it may ever hold. An addition that would pass that maximum is not
 * made and the buf remembers it (`overflow`); from then on nothing is added until buf_clear. So a
 * row of additions is checked once, at its end, and what the buf holds is their beginning.
 */
#ifndef CHATHIST_BASE_BUF_H
#define CHATHIST_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes: lives as long as what it points into. {NULL, 0} means absent. */
struct str {
    const char *p;
    size_t n;
};

#define STR_NONE ((struct str){NULL, 0})
/* A string literal as a str. */
#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

/* The bytes of a C string; NULL gives STR_NONE. */
struct str str_of(const char *s);
/* Byte equality. An absent str equals an empty one. */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Drops blanks, tabs, CR and LF at both ends. */
struct str str_trim(struct str s);
/* Cuts *rest at the first `c`: returns the part before it and leaves in *rest what follows it.
 * Without a `c` it returns everything and leaves STR_NONE. So a walk over parts ends when
 * rest.p is NULL, and an empty last part is still seen. */
struct str str_cut(struct str *rest, char c);
/* Takes the next word off *rest, which blanks, tabs, CR and LF separate; STR_NONE when there is
 * none left. */
struct str str_word(struct str *rest);
/* Where `part` stands in s first, borrowed from s; NULL when it does not. An empty part stands at
 * the start of what is not absent. */
const char *str_find(struct str s, struct str part);

struct buf {
    char *data; /* NULL before the first addition, else NUL-terminated; see buf_c */
    size_t len;
    size_t cap;
    size_t max;
    bool overflow; /* something was left out because of max */
};

/* Enough for whatever is not a message: names, paths, ids, headers. */
#define BUF_SMALL ((size_t)1 << 20)
/* The longest history line that is read or written (chathist(5)). */
#define BUF_LINE ((size_t)64 << 20)

#define BUF_INIT(most)                                                                             \
    {                                                                                              \
        .max = (most)                                                                              \
    }

/* For a maximum that is not known where the buf is declared; nothing is allocated yet. */
void buf_init(struct buf *b, size_t max);
/* Frees the bytes; b may be used again, as after buf_init with the same maximum. */
void buf_release(struct buf *b);
/* Forgets the bytes and the overflow, keeps the memory. */
void buf_clear(struct buf *b);
/* Drops all but the first `len` bytes; nothing happens when there are fewer. */
void buf_truncate(struct buf *b, size_t len);
/* Gives the bytes away, NUL-terminated, never NULL; the caller frees them. b is then empty. */
char *buf_detach(struct buf *b);

/* What is added must not lie in b itself: b may move. */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_c(struct buf *b, const char *s);
void buf_add_byte(struct buf *b, char c);
void buf_add_number(struct buf *b, uint64_t n); /* in decimal */
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Makes room for n more bytes and returns where to put them, NULL above the maximum (which counts
 * as an overflow). What was put there is taken in with buf_grew, at most n bytes. */
char *buf_room(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);
/* Drops the first n bytes, or all when there are fewer. */
void buf_consume(struct buf *b, size_t n);

/* The bytes, borrowed until b changes. */
struct str buf_str(const struct buf *b);
/* The same as a C string, never NULL. */
const char *buf_c(const struct buf *b);

#endif
