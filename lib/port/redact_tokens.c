#include "port/redact_tokens.h"

#include <string.h>

bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

size_t run_of(struct str s, const char *set)
{
    size_t n = 0;

    while (n < s.n && is_one_of(s.p[n], set))
        n++;
    return n;
}

struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

size_t longest_run(struct str s, bool mixed)
{
    size_t longest = 0;

    for (size_t i = 0; i < s.n; i++) {
        struct str part = {s.p + i, run_of(skip(s, i), ALNUM)};
        size_t digits = 0;

        for (size_t k = 0; k < part.n; k++)
            digits += is_one_of(part.p[k], DIGITS);
        if ((!mixed || (digits > 0 && digits < part.n)) && part.n > longest)
            longest = part.n;
        i += part.n;
    }
    return longest;
}

/* So much of a token tells whether it is one. The rest is not looked at before: a text may be a row
 * of prefixes. */
#define TELLING ((size_t)128)

struct shape {
    const char *kind, *prefix, *set;
    size_t least, most; /* characters behind the prefix; most 0: any number */
    size_t random; /* at least so long must a run of letters and digits be; 0: nothing is asked */
};

/* Of two that fit the first counts. */
static const struct shape shapes[] = {
    {"anthropic-key", "sk-ant-", ALNUM "_-", 20, 0, 0},
    {"api-key", "sk-", ALNUM "_-", 20, 0, 16},
    {"api-key", "gsk_", ALNUM, 40, 0, 40},
    {"api-key", "csk-", ALNUM, 40, 0, 40},
    {"api-key", "xai-", ALNUM, 40, 0, 40},
    {"api-key", "pplx-", ALNUM, 40, 0, 40},
    {"api-key", "nvapi-", ALNUM "_-", 40, 0, 10},
    {"api-key", "r8_", ALNUM, 30, 0, 30},
    {"api-key", "fw_", ALNUM, 20, 0, 20},
    {"api-key", "hf_", ALNUM, 30, 0, 0},
    {"api-key", "lsv2_pt_", ALNUM "_", 32, 0, 20},
    {"api-key", "lsv2_sk_", ALNUM "_", 32, 0, 20},
    {"api-key", "sk_live_", ALNUM, 16, 0, 16},
    {"api-key", "sk_test_", ALNUM, 16, 0, 16},
    {"api-key", "rk_live_", ALNUM, 16, 0, 16},
    {"api-key", "rk_test_", ALNUM, 16, 0, 16},
    {"api-key", "whsec_", ALNUM "+/=", 24, 0, 8},
    {"api-key", "SG.", ALNUM "_-.", 50, 0, 10},
    {"api-key", "dop_v1_", ALNUM, 40, 0, 0},
    {"api-key", "npm_", ALNUM, 36, 0, 36},
    {"api-key", "pypi-AgE", ALNUM "_-", 40, 0, 0},
    {"github-token", "ghp_", ALNUM, 36, 0, 0},
    {"github-token", "gho_", ALNUM, 36, 0, 0},
    {"github-token", "ghu_", ALNUM, 36, 0, 0},
    {"github-token", "ghs_", ALNUM, 36, 0, 0},
    {"github-token", "ghr_", ALNUM, 36, 0, 0},
    {"github-token", "github_pat_", ALNUM "_", 50, 0, 0},
    {"gitlab-token", "glpat-", ALNUM "_-.", 20, 0, 0},
    {"gitlab-token", "glrt-", ALNUM "_-.", 20, 0, 0},
    {"gitlab-token", "gldt-", ALNUM "_-.", 20, 0, 0},
    {"aws-key", "AKIA", UPPER DIGITS, 16, 16, 0},
    {"aws-key", "ASIA", UPPER DIGITS, 16, 16, 0},
    {"slack-token", "xapp-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxa-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxb-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxc-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxd-", ALNUM "-_%+/=", 20, 0, 10},
    {"slack-token", "xoxe-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxe.", ALNUM "-.", 20, 0, 10},
    {"slack-token", "xoxo-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxp-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxr-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxs-", ALNUM "-", 20, 0, 10},
    {"slack-webhook", "hooks.slack.com/", ALNUM "/", 40, 0, 16},
    /* Whatever stands behind its 39 characters goes with it. */
    {"google-key", "AIza", ALNUM "_-", 35, 0, 0},
    {"google-key", "ya29.", ALNUM "_-.", 20, 0, 8},
    {"google-key", "GOCSPX-", ALNUM "_-", 20, 0, 0},
};

static bool has_shape(struct str s, const struct shape *shape)
{
    struct str prefix = str_of(shape->prefix), rest;

    if (!str_starts(s, prefix))
        return false;
    rest = skip(s, prefix.n);
    if (rest.n > TELLING)
        rest.n = TELLING;
    rest.n = run_of(rest, shape->set);
    return rest.n >= shape->least && (shape->most == 0 || rest.n <= shape->most) &&
           longest_run(rest, true) >= shape->random;
}

bool find_token(struct str s, struct secret *found)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *shape = &shapes[i];
        size_t n = strlen(shape->prefix);

        if (s.n == 0 || s.p[0] != shape->prefix[0] || !has_shape(s, shape))
            continue;
        n += run_of(skip(s, n), shape->set);
        /* The full stop that ends a sentence. */
        while (s.p[n - 1] == '.')
            n--;
        if (n < strlen(shape->prefix) + shape->least)
            continue;
        *found = (struct secret){shape->kind, 0, n};
        return true;
    }
    return false;
}

/* Parts of Base64url, the first, and in a signed one the second, being objects: `{"` is `eyJ`. */
bool find_jwt(struct str s, struct secret *found)
{
    size_t part[5] = {0}, parts = 0, at = 0;
    bool claims = false;

    if (!str_starts(s, STR("eyJ")))
        return false;
    for (;;) {
        part[parts] = run_of(skip(s, at), ALNUM "_-");
        if (parts == 1)
            claims = str_starts(skip(s, at), STR("eyJ"));
        at += part[parts++];
        if (parts == 5 || at == s.n || s.p[at] != '.')
            break;
        at++;
    }
    if (part[0] < 10)
        return false;
    /* The second part, the key, is empty when it was agreed on; the third and the last have 12 and
     * 16 bytes at least. */
    if (parts == 5 && part[2] >= 16 && part[3] > 0 && part[4] >= 21) {
        *found = (struct secret){"jwt", 0, at};
        return true;
    }
    if (!claims || part[1] < 10 || part[2] < 10)
        return false;
    *found = (struct secret){"jwt", 0, part[0] + 1 + part[1] + 1 + part[2]};
    return true;
}

bool find_telegram(struct str s, struct secret *found)
{
    size_t n;

    if (!str_starts(s, STR(":AA")))
        return false;
    n = run_of(skip(s, 1), ALNUM "_-");
    *found = (struct secret){"telegram-token", 1, n};
    return n >= 35;
}
