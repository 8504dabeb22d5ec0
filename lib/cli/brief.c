#include "chathist/cli/brief.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/history/session.h"

/* The bytes of a token, in English text and in JSON. */
#define TOKEN_BYTES 4
/* A line has at most this part of the budget, so that one long message does not take all of it. */
#define LINE_PART 4
/* A long text is shortened to this many bytes at least, which an id has, and a line to these. */
#define TEXT_LEAST ((size_t)128)
#define LINE_LEAST ((size_t)512)

bool brief_read_option(struct brief *b, int key, const char *value)
{
    switch (key) {
    case BRIEF_BUDGET:
        b->budget = true;
        b->left = opt_count("--budget", value);
        b->left = b->left < SIZE_MAX / TOKEN_BYTES ? b->left * TOKEN_BYTES : SIZE_MAX;
        return true;
    case BRIEF_SKIP:
        b->skip = opt_number("--skip", value);
        return true;
    case BRIEF_REDACT:
        b->redact = true;
        return true;
    case BRIEF_OWN:
        b->own = true;
        return true;
    case BRIEF_EXCEPT:
        b->except = value;
        return true;
    default:
        return false;
    }
}

void brief_check_options(struct brief *b, bool json, bool lines)
{
    struct err e = ERR_INIT;

    if (!json && (b->budget || b->skip > 0 || b->redact))
        die_usage("%s needs --json", b->budget ? "--budget" : b->redact ? "--redact" : "--skip");
    if (lines && !json && (b->own || b->except))
        die_usage("%s needs --json", b->own ? "--own" : "--except");
    if (!b->budget)
        b->left = SIZE_MAX;
    b->most = b->left / LINE_PART > LINE_LEAST ? b->left / LINE_PART : LINE_LEAST;
    if (b->redact && !(b->redactor = redactor_new(&e)))
        die_err(&e);
}

void brief_release(struct brief *b)
{
    redactor_free(b->redactor);
    words_release(&b->excluded);
    hash_map_release(&b->own_sessions);
    hash_map_release(&b->others);
}

/* Returns whether a session did not come with the repository. The index is asked once for each. */
static bool is_users_own(struct brief *b, const struct history *h, struct str session)
{
    struct buf key = BUF_INIT(SIZE_MAX);
    bool own;

    buf_addf(&key, "%p ", (const void *)h);
    buf_add_str(&key, session);
    own = hash_map_find(&b->own_sessions, buf_str(&key));
    if (!own && !hash_map_find(&b->others, buf_str(&key))) {
        /* If that cannot be read, it may be another's. */
        own = session_came(h, session, NULL) == 0;
        hash_map_add(own ? &b->own_sessions : &b->others, buf_str(&key));
    }
    buf_release(&key);
    return own;
}

bool brief_wants(struct brief *b, const struct history *h, struct str session)
{
    if (b->except && str_eq_c(session, b->except))
        return false;
    if (b->own && !b->listed)
        b->closed = config_excluded(b->config, &b->excluded, NULL) < 0;
    b->listed = true;
    if (b->own && h && (b->closed || config_excludes(&b->excluded, str_of(h->path))))
        return false;
    return !b->own || !h || h->mark.from == 0 || is_users_own(b, h, session);
}

/* ---- shortening ---- */

/* Adds the mark of a gap in a text. */
static void add_gap(struct buf *out, size_t bytes)
{
    if (bytes > 0)
        buf_addf(out, " [left out: %zu bytes] ", bytes);
}

/* Returns the first place of a code point at or after this one. */
static size_t whole(struct str text, size_t at)
{
    while (utf8_inside(text, at))
        at++;
    return at;
}

/* Adds `most` bytes of a longer text: those around the hit if it has it, a third of them before it,
 * and otherwise the beginning and the end. */
static void add_shown_part(struct buf *out, struct str text, size_t most, struct str hit)
{
    const char *found = hit.n > 0 ? str_find(text, hit) : NULL;
    size_t from = 0, to = whole(text, most / 3), last = whole(text, text.n - (most - most / 3));

    if (found && hit.n < most) {
        size_t at = (size_t)(found - text.p);

        from = at > most / 3 ? at - most / 3 : 0;
        from = whole(text, from + most < text.n ? from : text.n - most);
        to = whole(text, from + most < text.n ? from + most : text.n);
        last = text.n;
    }
    add_gap(out, from);
    buf_add(out, text.p + from, to - from);
    add_gap(out, last - to);
    buf_add(out, text.p + last, text.n - last);
}

/* Adds a JSON value in which each string of more than `most` bytes is shortened. */
static void add_shortened(struct buf *out, struct str value, size_t most, struct str hit)
{
    struct json_iter it = json_iter(value);
    enum json_type type = json_type(value);
    struct buf text = BUF_INIT(SIZE_MAX), part = BUF_INIT(SIZE_MAX);
    bool first = true;

    if (type == JSON_STRING && value.n > most + 2 && json_decode(value, &text)) {
        if (text.len > most) {
            add_shown_part(&part, buf_str(&text), most, hit);
            json_add_string(out, buf_str(&part));
        } else {
            buf_add_str(out, value);
        }
    } else if (type == JSON_OBJECT || type == JSON_ARRAY) {
        buf_add_byte(out, type == JSON_OBJECT ? '{' : '[');
        for (; json_next(&it); first = false) {
            buf_add_c(out, first ? "" : ",");
            if (type == JSON_OBJECT) {
                buf_add_byte(out, '"');
                buf_add_str(out, it.key);
                buf_add_c(out, "\":");
            }
            add_shortened(out, it.value, most, hit);
        }
        buf_add_byte(out, type == JSON_OBJECT ? '}' : ']');
    } else {
        buf_add_str(out, value);
    }
    buf_release(&text);
    buf_release(&part);
}

/* Sets `out` to the members that each line has, without its content. */
static void add_least(struct buf *out, struct str line)
{
    static const char *const members[] = {"id", "session_id", "timestamp", "role"};

    buf_set(out, STR("{"));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value = json_get(line, members[i]);

        if (!value.p)
            continue;
        json_add_key(out, members[i]);
        buf_add_str(out, value);
    }
    json_add_key(out, "content");
    buf_addf(out, "\"[left out: %zu bytes]\"}", line.n);
}

bool brief_changes(const struct brief *b)
{
    return b->budget || b->skip > 0 || b->redact;
}

int brief_add(struct brief *b, struct str line, struct str hit, struct buf *out)
{
    struct buf clean = BUF_INIT(SIZE_MAX), placed = BUF_INIT(SIZE_MAX);
    struct str value;
    bool valid;

    buf_clear(out);
    if (b->full)
        return -1;
    if (b->seen++ < b->skip)
        return 0;
    if (b->place && str_ends(line, STR("}"))) {
        buf_add(&placed, line.p, line.n - 1);
        json_add_member(&placed, "history", str_of(b->place));
        buf_add_byte(&placed, '}');
        line = buf_str(&placed);
    }
    if (b->redactor && json_check(line, &value, NULL)) {
        redact_json(b->redactor, value, &clean);
        line = buf_str(&clean);
    }
    buf_add_str(out, line);
    valid = out->len > b->most && json_check(line, &value, NULL);
    for (size_t n = b->most; valid && out->len > b->most && n >= TEXT_LEAST; n -= n / 4) {
        buf_clear(out);
        add_shortened(out, value, n, hit);
    }
    if (out->len > b->most)
        add_least(out, line);
    /* The first line is always printed, so that --skip gets on. */
    b->full = out->len > b->left && b->seen > b->skip + 1;
    if (!b->full && b->left != SIZE_MAX)
        b->left -= out->len < b->left ? out->len + 1 : b->left;
    if (b->full)
        buf_clear(out);
    buf_release(&clean);
    buf_release(&placed);
    return b->full ? -1 : 1;
}

void brief_end(const struct brief *b, struct out *o)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    if (!b->full)
        return;
    buf_addf(&line, "{\"more\":true,\"skip\":%zu}", b->seen - 1);
    out_json_line(o, buf_str(&line));
    buf_release(&line);
}
