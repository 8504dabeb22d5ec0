/*
 * buf - bytes: borrowed (struct str), and owned, growing and bounded (struct buf).
 *
 * Both carry their length and may hold any byte, including U+0000. A NUL byte always follows the
 * content of a buf, and is not counted, so that buf_c can be passed to system calls.
 *
 * A buf is made with a maximum size. An addition that would exceed it is not made, and `overflow`
 * is set; nothing is added after that until buf_clear. So the caller can check once after a
 * sequence of additions. The buf then holds the beginning of them.
 */
#ifndef CHATHIST_BASE_BUF_H
#define CHATHIST_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes, valid as long as the memory they point to. {NULL, 0} means absent. */
struct str {
    const char *p;
    size_t n;
};

#define STR_NONE ((struct str){NULL, 0})
/* A string literal as a str. */
#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

/* Returns the bytes of a C string. NULL gives STR_NONE. */
struct str str_of(const char *s);
/* Compares bytes. An absent str equals an empty one. */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
/* Compares without regard to the case of ASCII letters; `lower` has small ones. */
bool str_eq_lower(struct str a, const char *lower);
/* Compares byte by byte: less than, equal to or greater than 0. A text comes before its
 * continuations. */
int str_compare(struct str a, struct str b);
/* Returns how often a byte occurs. */
size_t str_count(struct str s, char byte);
/* Returns whether a byte is a control character of ASCII, such as a line break. */
bool str_has_control(struct str s);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Returns s without its first n bytes; it must have them. */
static inline struct str str_skip(struct str s, size_t n)
{
    return n ? (struct str){s.p + n, s.n - n} : s;
}
/* Removes blanks, tabs, CR and LF at both ends. */
struct str str_trim(struct str s);
/* Splits *rest at the first `c`: returns the part before it and leaves the part after it in *rest.
 * Without a `c` it returns everything and leaves STR_NONE. So a loop over parts ends when rest.p is
 * NULL, and an empty last part is still returned. */
struct str str_cut(struct str *rest, char c);
/* Removes the next word from *rest and returns it, or STR_NONE if no word is left. Blanks, tabs, CR
 * and LF separate words. */
struct str str_word(struct str *rest);
/* Returns the first place of `part` in s, borrowed from s, or NULL. An empty part is found at the
 * start of any s that is not absent. */
const char *str_find(struct str s, struct str part);
/* Returns how many bytes must be added, removed, replaced or swapped with the next one to turn one
 * text into the other, at most `enough`. For names: it takes long for a large number. */
size_t str_distance(struct str a, struct str b, size_t enough);

/* What ASCII calls a digit, a letter, the small letter of a capital one, and white space (a blank,
 * tab, CR or LF, as in JSON). Other bytes do not count, whatever the locale. */
static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline bool ascii_is_letter(char c)
{
    return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int ascii_hex_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline bool ascii_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct buf {
    char *data; /* NULL before the first addition, then NUL-terminated; see buf_c */
    size_t len;
    size_t cap;
    size_t max;
    bool overflow; /* an addition was dropped because of max */
};

/* For everything that is not a message: names, paths, ids, headers. */
#define BUF_SMALL ((size_t)1 << 20)
/* The longest history line that is read or written (chathist(5)). */
#define BUF_LINE ((size_t)64 << 20)

#define BUF_INIT(most)                                                                             \
    {                                                                                              \
        .max = (most)                                                                              \
    }

/* Initialises a buf whose maximum is not known at its declaration. Allocates nothing. */
void buf_init(struct buf *b, size_t max);
/* Frees the bytes. b can be used again, with the same maximum. */
void buf_release(struct buf *b);
/* Removes the bytes and resets overflow, but keeps the memory. */
void buf_clear(struct buf *b);
/* Replaces the content by bytes that are not part of b. */
void buf_set(struct buf *b, struct str s);
/* Shortens the content to `len` bytes. Does nothing if it is shorter. */
void buf_truncate(struct buf *b, size_t len);
/* Gives the bytes to the caller, who frees them: NUL-terminated, never NULL. b is empty afterwards.
 */
char *buf_detach(struct buf *b);

/* Adds n bytes. They must not be part of b, because b may move. */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_c(struct buf *b, const char *s);
void buf_add_byte(struct buf *b, char c);
/* Adds a newline, unless b is empty or ends with one. */
void buf_end_line(struct buf *b);
void buf_add_number(struct buf *b, uint64_t n); /* in decimal */
/* Adds a number for people, rounded, with a prefix of SI after the gap: `950`, `15.7M`, `310M`. */
void buf_add_scaled(struct buf *b, uint64_t n, const char *gap);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Makes room for n more bytes and returns its address, or NULL if that exceeds the maximum
 * (overflow is then set). The caller writes up to n bytes there and calls buf_grew with their
 * number. */
char *buf_room(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);
/* Removes the first n bytes, or everything if there are fewer. */
void buf_consume(struct buf *b, size_t n);

/* Returns the bytes, borrowed until b changes. */
struct str buf_str(const struct buf *b);
/* Returns them as a C string, never NULL. */
const char *buf_c(const struct buf *b);

/* Adds bytes in base64 (RFC 4648 section 4, with padding, on one line): 4 characters for each 3
 * bytes begun. */
void buf_add_base64(struct buf *out, struct str bytes);

#endif
