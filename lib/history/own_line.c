#include "chathist/history/own_line.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/simd_text.h"

/* Inlined, so that the text is compared as words. */
static inline bool take(const char **at, const char *end, struct str text)
{
    if ((size_t)(end - *at) < text.n || memcmp(*at, text.p, text.n) != 0)
        return false;
    *at += text.n;
    return true;
}

/* Takes the rest of a string of n bytes that stand for themselves; notes all of it. Inlined, as n
 * is known. */
static inline bool take_string(const char **at, const char *end, size_t n, struct str *value)
{
    const char *p = *at;

    if ((size_t)(end - p) <= n || p[n] != '"' || !simd_all_plain(p, n))
        return false;
    *value = (struct str){p - 1, n + 2};
    *at = p + n + 1;
    return true;
}

static bool take_id(const char **at, const char *end, struct str *value)
{
    return take_string(at, end, strlen("1719500000000-a1b2c3d4"), value);
}

/* One of our own, or a UUID. */
static bool take_session_id(const char **at, const char *end, struct str *value)
{
    return take_string(at, end, strlen("sess_1719500000000_f0e1d2"), value) ||
           take_string(at, end, strlen("6f2c1f4e-8d0b-4a57-9c3e-2b7d5a9e1f00"), value);
}

static bool take_timestamp(const char **at, const char *end, struct str *value)
{
    return take_string(at, end, strlen("2024-06-27T15:00:00.000000+00:00"), value);
}

static bool take_role(const char **at, const char *end, struct str *value)
{
    return take_string(at, end, strlen("user"), value) || /* or tool */
           take_string(at, end, strlen("assistant"), value) ||
           take_string(at, end, strlen("system"), value);
}

size_t own_line_head(struct str line, struct str field[FIELD_CONTENT])
{
    const char *p = line.p, *end = line.p + line.n;

    if (!line.n || !take(&p, end, STR("{\"id\":\"")) || !take_id(&p, end, &field[FIELD_ID]) ||
        !take(&p, end, STR(",\"session_id\":\"")) ||
        !take_session_id(&p, end, &field[FIELD_SESSION_ID]) ||
        !take(&p, end, STR(",\"timestamp\":\"")) ||
        !take_timestamp(&p, end, &field[FIELD_TIMESTAMP]) || !take(&p, end, STR(",\"role\":\"")) ||
        !take_role(&p, end, &field[FIELD_ROLE]) || !take(&p, end, STR(",")))
        return 0;
    return (size_t)(p - line.p);
}

/* Where the string that is the content begins, behind its quote, and in *at that member; NULL when
 * it is no such line. */
static const char *content_of(struct str line, size_t *at)
{
    struct str field[FIELD_CONTENT];
    const char *p;

    *at = own_line_head(line, field);
    p = line.p + *at;
    return *at && take(&p, line.p + line.n, STR("\"content\":\"")) ? p : NULL;
}

bool own_line_content(struct str line, struct str *rest)
{
    size_t at;
    const char *content = content_of(line, &at);

    if (!content)
        return false;
    *rest = (struct str){content, (size_t)(line.p + line.n - content)};
    return true;
}

/* What is found behind the role. */
struct members {
    struct str content;
    bool repeated; /* perhaps one of the five that every line has */
};

static void note(void *ctx, struct str raw_key, struct str value)
{
    static const struct str required[] = {STR("id"), STR("session_id"), STR("timestamp"),
                                          STR("role"), STR("content")};
    struct members *m = ctx;

    if (!m->content.p) {
        m->content = value;
        return;
    }
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
        m->repeated = m->repeated || str_eq(raw_key, required[i]);
    m->repeated = m->repeated || (raw_key.n && memchr(raw_key.p, '\\', raw_key.n));
}

bool own_line_check(struct str line, struct str *content)
{
    struct members m = {.content = STR_NONE};
    struct str value;
    size_t at;

    if (!content_of(line, &at) || !json_check_from(line, at, &value, note, &m) || m.repeated)
        return false;
    *content = (struct str){m.content.p + 1, m.content.n - 2};
    return true;
}
