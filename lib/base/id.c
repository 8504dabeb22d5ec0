#include "chathist/base/id.h"

#include <string.h>
#include <uuid/uuid.h>

void id_add_message(struct buf *out, int64_t epoch_ms)
{
    uuid_t u;

    /* The first bytes of a version 4 UUID are random. Its version and variant come later. */
    uuid_generate_random(u);
    buf_addf(out, "%lld-%02x%02x%02x%02x", (long long)epoch_ms, u[0], u[1], u[2], u[3]);
}

void id_add_session(struct buf *out, int64_t epoch_ms)
{
    uuid_t u;

    uuid_generate_random(u);
    buf_addf(out, "sess_%lld_%02x%02x%02x", (long long)epoch_ms, u[0], u[1], u[2]);
}

bool id_session_generated(struct str id)
{
    size_t i = strlen("sess_"), digits = 0;

    if (!str_starts(id, STR("sess_")))
        return false;
    for (; i < id.n && id.p[i] >= '0' && id.p[i] <= '9'; i++)
        digits++;
    if (digits == 0 || id.n != i + 1 + ID_SESSION_DIGITS || id.p[i] != '_')
        return false;
    while (++i < id.n)
        if (!strchr("0123456789abcdef", id.p[i]))
            return false;
    return true;
}

bool id_is_uuid(struct str id)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    bool is = id.n == strlen(form);

    for (size_t i = 0; is && i < id.n; i++)
        is = form[i] == '-' ? id.p[i] == '-'
                            : id.p[i] != '\0' && strchr("0123456789abcdefABCDEF", id.p[i]);
    return is;
}

static bool is_alnum(char c)
{
    return ascii_is_digit(c) || ascii_is_letter(c);
}

bool id_session_valid(struct str id)
{
    if (id.n < 1 || id.n > 128 || !is_alnum(id.p[0]))
        return false;
    for (size_t i = 1; i < id.n; i++) {
        char c = id.p[i];

        if (!is_alnum(c) && c != '.' && c != '_' && c != ':' && c != '-')
            return false;
    }
    return !str_eq_c(id, "current") && !str_eq_c(id, "last");
}

void id_add_token(struct buf *out)
{
    uuid_t u;

    /* Two version 4 UUIDs have 122 random bits each. */
    for (int i = 0; i < 2; i++) {
        uuid_generate_random(u);
        for (size_t k = 0; k < sizeof u; k++)
            buf_addf(out, "%02x", u[k]);
    }
}
