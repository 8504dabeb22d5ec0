#include "chathist/base/id.h"

#include <errno.h>
#include <string.h>
#include <uuid/uuid.h>

#include "chathist/base/system.h"

/* The number of random bytes in a token. */
#define TOKEN_BYTES 32
#define MESSAGE_DIGITS 8

static void add_hex(struct buf *out, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%02x", p[i]);
}

/* Adds the first digits of a random UUID. Its first 12 digits are all random (RFC 9562, section
 * 5.4). */
static void add_random(struct buf *out, size_t digits)
{
    uuid_t uuid;

    uuid_generate_random(uuid);
    add_hex(out, uuid, digits / 2);
}

void id_add_message(struct buf *out, int64_t epoch_ms)
{
    buf_addf(out, "%lld-", (long long)epoch_ms);
    add_random(out, MESSAGE_DIGITS);
}

void id_add_session(struct buf *out, int64_t epoch_ms)
{
    buf_addf(out, "sess_%lld_", (long long)epoch_ms);
    add_random(out, ID_SESSION_DIGITS);
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
        if (ascii_hex_value(id.p[i]) < 0 || ascii_lower(id.p[i]) != id.p[i])
            return false;
    return true;
}

bool id_session_digits_begin(struct str id, struct str text)
{
    return id_session_generated(id) && str_starts(str_skip(id, id.n - ID_SESSION_DIGITS), text);
}

bool id_is_uuid(struct str id)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    bool is = id.n == strlen(form);

    for (size_t i = 0; is && i < id.n; i++)
        is = form[i] == '-' ? id.p[i] == '-' : ascii_hex_value(id.p[i]) >= 0;
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

int id_add_token(struct buf *out, struct err *e)
{
    unsigned char random[TOKEN_BYTES];

    if (system_random(random, sizeof random) < 0)
        return err_sys(e, errno, "the system gives no random numbers");
    add_hex(out, random, sizeof random);
    return 0;
}
