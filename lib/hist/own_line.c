#include "hist/own_line.h"

#include <string.h>

#include "base/simd_text.h"

/* Takes a key as it is written here, and its value, when that stands for itself and is as long as
 * expected. Inlined, so that the key is compared as words. */
static inline bool take_own(const char **at, const char *end, struct str key, size_t n,
                            struct str *value)
{
    const char *p = *at;

    if ((size_t)(end - p) <= key.n + n || memcmp(p, key.p, key.n) != 0 || p[key.n + n] != '"' ||
        !simd_all_plain(p + key.n, n))
        return false;
    *value = (struct str){p + key.n - 1, n + 2};
    *at = p + key.n + n + 1;
    return true;
}

size_t own_line_head(struct str line, struct str field[FIELD_CONTENT])
{
    const struct str session = STR(",\"session_id\":\""), role = STR(",\"role\":\"");
    const char *p = line.p, *end = line.p + line.n;

    if (!line.n ||
        !take_own(&p, end, STR("{\"id\":\""), strlen("1719500000000-a1b2c3d4"), &field[FIELD_ID]))
        return 0;
    /* One of our own, or a UUID. */
    if (!take_own(&p, end, session, strlen("sess_1719500000000_f0e1d2"),
                  &field[FIELD_SESSION_ID]) &&
        !take_own(&p, end, session, strlen("6f2c1f4e-8d0b-4a57-9c3e-2b7d5a9e1f00"),
                  &field[FIELD_SESSION_ID]))
        return 0;
    if (!take_own(&p, end, STR(",\"timestamp\":\""), strlen("2024-06-27T15:00:00.000000+00:00"),
                  &field[FIELD_TIMESTAMP]))
        return 0;
    if (!take_own(&p, end, role, strlen("user"), &field[FIELD_ROLE]) &&
        !take_own(&p, end, role, strlen("assistant"), &field[FIELD_ROLE]) &&
        !take_own(&p, end, role, strlen("tool"), &field[FIELD_ROLE]) &&
        !take_own(&p, end, role, strlen("system"), &field[FIELD_ROLE]))
        return 0;
    if (p == end || *p != ',')
        return 0;
    return (size_t)(p + 1 - line.p);
}

bool own_line_content(struct str line, struct str *rest)
{
    const struct str key = STR("\"content\":\"");
    struct str field[FIELD_CONTENT];
    size_t at = own_line_head(line, field);

    if (!at || !str_starts((struct str){line.p + at, line.n - at}, key))
        return false;
    *rest = (struct str){line.p + at + key.n, line.n - at - key.n};
    return true;
}
