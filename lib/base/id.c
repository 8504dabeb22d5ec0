#include "chathist/base/id.h"

#include <errno.h>
#include <string.h>

#include "chathist/base/system.h"

/* The number of random bytes in a token. */
#define TOKEN_BYTES 32

static void add_hex(struct buf *out, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%02x", p[i]);
}

void id_add_message(struct buf *out, int64_t epoch_ms)
{
    unsigned char random[4] = {0};

    /* Without random numbers the time still makes the ids of a history different (store_append). */
    (void)system_random(random, sizeof random);
    buf_addf(out, "%lld-", (long long)epoch_ms);
    add_hex(out, random, sizeof random);
}

void id_add_session(struct buf *out, int64_t epoch_ms)
{
    unsigned char random[ID_SESSION_DIGITS / 2] = {0};

    (void)system_random(random, sizeof random);
    buf_addf(out, "sess_%lld_", (long long)epoch_ms);
    add_hex(out, random, sizeof random);
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
