#include "chathist/llm/secret.h"

#include <string.h>

struct str secret_of(const char *key)
{
    struct str secret = str_trim(str_of(key));

    return secret.n >= SECRET_MIN ? secret : STR_NONE;
}

struct str secret_distinct(const char *key)
{
    struct str secret = secret_of(key);
    bool letter = false, digit = false;

    for (size_t i = 0; i < secret.n; i++) {
        unsigned char c = (unsigned char)secret.p[i];

        if (c <= ' ' || c >= 0x7f)
            return STR_NONE;
        digit = digit || (c >= '0' && c <= '9');
        letter = letter || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    }
    return secret.n >= SECRET_LONG || (letter && digit) ? secret : STR_NONE;
}

void secret_mask(struct buf *b, struct str secret, size_t from, size_t fixed)
{
    while (secret.n > 0 && from < b->len) {
        const char *hit = str_find((struct str){b->data + from, b->len - from}, secret);
        size_t start, end;

        if (!hit)
            return;
        start = (size_t)(hit - b->data);
        end = start + secret.n;
        if (start < fixed)
            start = fixed;
        memcpy(b->data + start, "***", 3);
        memmove(b->data + start + 3, b->data + end, b->len - end);
        from = start + 3;
        buf_truncate(b, b->len - (end - from));
    }
}
