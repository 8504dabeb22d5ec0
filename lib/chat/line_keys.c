#include "chat/line_keys.h"

#include <string.h>

#include "chathist/base/utf8.h"

#define ESC '\033'
#define BEGINS STR("\033[200~")
#define ENDS STR("\033[201~")

/* Modifiers as terminals send them, minus 1. */
enum { SHIFT = 1, ALT = 2, CTRL = 4, META = 8 };

/* ---- where a sequence ends ---- */

enum extent {
    UNFINISHED,
    CHARACTERS, /* no sequence begins here */
    COMPLETE,
    BROKEN, /* the byte at *end belongs to no sequence */
};

static struct str held(const struct line_keys *k)
{
    return (struct str){k->held, k->held_len};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Finds the end of a sequence: after parameters and intermediate bytes from `i` on comes a final
 * byte (ECMA-48, section 5.4). rxvt ends a key with Shift by `$`, which is an intermediate byte
 * elsewhere, but never without a private parameter (`?`) before it. */
static enum extent find_end(struct str s, size_t i, size_t *end)
{
    bool private = i < s.n && s.p[i] >= '<' && s.p[i] <= '?';

    for (; i < s.n; i++) {
        *end = i;
        if ((s.p[i] >= '@' && s.p[i] <= '~') || (s.p[i] == '$' && !private && is_digit(s.p[i - 1])))
            return COMPLETE;
        if (s.p[i] < ' ' || s.p[i] > '~')
            return BROKEN;
    }
    return UNFINISHED;
}

static enum extent extent_of(struct str s, size_t *end)
{
    size_t i =
        s.n > 1 && s.p[1] == ESC ? 2 : 1; /* rxvt and linux send ESC before the sequence for Alt */
    enum extent extent;

    if (s.p[0] != ESC)
        return CHARACTERS;
    if (i == s.n)
        return UNFINISHED;
    if (s.p[i] != '[' && s.p[i] != 'O')
        return CHARACTERS;
    /* F1 to F5 of the Linux console have one more byte: ESC [ [ A. */
    i += s.n > i + 1 && s.p[i] == '[' && s.p[i + 1] == '[' ? 2 : 1;
    extent = find_end(s, i, end);
    /* A mouse report has three more bytes. A program may have left such reports on. */
    if (extent == COMPLETE && *end == i && s.p[i] == 'M' && s.p[i - 1] == '[' && s.n < i + 4)
        return UNFINISHED;
    return extent;
}

/* ---- what it means ---- */

struct parsed {
    size_t param[3];
    size_t count; /* number of parameters */
    unsigned modifiers;
    bool ss3;
    char end;
};

/* Returns false if the sequence is no key. */
static bool parse_sequence(struct parsed *p, struct str s)
{
    size_t i = s.p[1] == ESC ? 2 : 1;

    *p = (struct parsed){.ss3 = s.p[i] == 'O', .end = s.p[s.n - 1]};
    p->modifiers = i == 2 ? ALT : 0;
    p->count = s.n > i + 2;
    for (i++; i + 1 < s.n; i++) {
        if (s.p[i] == ';' && p->count < 3) {
            p->count++;
        } else if (is_digit(s.p[i]) && p->param[p->count - 1] < 0x110000) {
            p->param[p->count - 1] *= 10;
            p->param[p->count - 1] += (size_t)(s.p[i] - '0');
        } else {
            return false;
        }
    }
    return true;
}

static unsigned modifiers_of(size_t param)
{
    unsigned bits = param > 1 && param <= 256 ? (unsigned)param - 1 : 0;

    return bits & META ? bits | ALT : bits;
}

/* Old terminals send ESC O 5 D or ESC [ 5 D for ESC [ 1 ; 5 D. rxvt sends small letters for Shift,
 * and after ESC O for Ctrl. */
static enum line_edit arrow_key(const struct parsed *p)
{
    bool small = p->end >= 'a' && p->end <= 'd';
    unsigned modifiers = p->modifiers | modifiers_of(p->count > 1 ? p->param[1] : p->param[0]) |
                         (small && p->ss3 ? CTRL : 0);
    bool word = modifiers & (ALT | CTRL);

    switch (small ? p->end - 'a' + 'A' : p->end) {
    case 'A':
        return word ? LINE_IGNORE : LINE_UP;
    case 'B':
        return word ? LINE_IGNORE : LINE_DOWN;
    case 'C':
        return word ? LINE_WORD_RIGHT : LINE_RIGHT;
    default:
        return word ? LINE_WORD_LEFT : LINE_LEFT;
    }
}

static enum line_edit enter_key(unsigned modifiers)
{
    return modifiers & (SHIFT | ALT | CTRL) ? LINE_NEWLINE : LINE_ENTER;
}

/* Returns the meaning of a key with a number. */
static enum line_edit numbered_key(const struct parsed *p)
{
    unsigned modifiers =
        p->modifiers | modifiers_of(p->param[1]) | (p->end == '^' || p->end == '@' ? CTRL : 0);

    switch (p->param[0]) {
    case 1:
    case 7:
        return LINE_HOME;
    case 4:
    case 8:
        return LINE_END_OF_LINE;
    case 3:
        return modifiers & (ALT | CTRL) ? LINE_DELETE_WORD : LINE_DELETE;
    case 27:
        return p->param[2] == '\r' && p->end == '~' ? enter_key(modifiers) : LINE_IGNORE;
    default:
        return LINE_IGNORE;
    }
}

static enum line_edit meaning_of(struct str s)
{
    struct parsed p;

    if (!parse_sequence(&p, s))
        return LINE_IGNORE;
    switch (p.end) {
    case 'A':
    case 'B':
    case 'C':
    case 'D':
    case 'a':
    case 'b':
    case 'c':
    case 'd':
        return arrow_key(&p);
    case 'H':
        return LINE_HOME;
    case 'F':
        return LINE_END_OF_LINE;
    case 'M':
        return p.ss3 ? LINE_ENTER : LINE_IGNORE; /* Enter of the keypad */
    case 'u':
        return p.param[0] == '\r' ? enter_key(modifiers_of(p.param[1])) : LINE_IGNORE;
    case '~':
    case '^':
    case '$':
    case '@':
        return p.ss3 ? LINE_IGNORE : numbered_key(&p);
    default:
        return LINE_IGNORE;
    }
}

/* ---- bytes in, keys out ---- */

bool line_keys_holds_escape(const struct line_keys *k)
{
    return !k->pasting && k->plain == 0 && k->held_len == 1 && k->held[0] == ESC;
}

void line_keys_give_up(struct line_keys *k)
{
    k->plain = 1;
}

void line_keys_drop(struct line_keys *k)
{
    k->held_len = k->matched = k->plain = 0;
    k->pasting = k->ready = false;
    buf_clear(&k->pasted);
}

/* A terminal sends CR, LF or both for a newline. */
static void settle_newlines(struct buf *text)
{
    size_t to = 0;
    bool cr = false;

    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];

        if (c != '\n' || !cr)
            text->data[to++] = c == '\r' ? '\n' : c;
        cr = c == '\r';
    }
    buf_truncate(text, to);
}

static void feed_paste(struct line_keys *k, char c)
{
    k->matched = c == ENDS.p[k->matched] ? k->matched + 1 : c == ENDS.p[0] ? 1 : 0;
    /* If the paste is too long, its end is dropped. */
    buf_add_byte(&k->pasted, c);
    if (k->matched < ENDS.n)
        return;
    if (!k->pasted.overflow)
        buf_truncate(&k->pasted, k->pasted.len - ENDS.n);
    settle_newlines(&k->pasted);
    k->matched = 0;
    k->pasting = false;
    k->ready = true;
}

void line_keys_feed(struct line_keys *k, char c)
{
    if (k->pasting)
        feed_paste(k, c);
    else if (k->held_len < LINE_SEQUENCE_MAX)
        k->held[k->held_len++] = c;
    else
        k->held[k->held_len - 1] = c;
}

static void take_off(struct line_keys *k, size_t n)
{
    k->held_len -= n;
    k->plain -= k->plain < n ? k->plain : n;
    memmove(k->held, k->held + n, k->held_len);
}

static enum line_key take_sequence(struct line_keys *k)
{
    /* The Escape key before a paste is ignored. */
    if (str_ends(held(k), BEGINS)) {
        k->pasting = true;
        buf_clear(&k->pasted);
    } else {
        memcpy(k->sequence, k->held, k->held_len);
        k->sequence_len = k->held_len;
        k->means = meaning_of(held(k));
    }
    take_off(k, k->held_len);
    return k->pasting ? LINE_KEY_NONE : LINE_KEY_SEQUENCE;
}

void line_keys_put_back(struct line_keys *k)
{
    memcpy(k->held, k->sequence, k->sequence_len);
    k->held_len = k->plain = k->sequence_len;
}

enum line_key line_keys_next(struct line_keys *k, int32_t *cp)
{
    size_t n, end = 0;

    if (k->ready) {
        k->ready = false;
        return LINE_KEY_PASTE;
    }
    while (k->held_len > 0 && k->plain == 0) {
        enum extent extent = extent_of(held(k), &end);

        if (extent == UNFINISHED)
            return LINE_KEY_NONE;
        if (extent == COMPLETE)
            return take_sequence(k);
        if (extent == CHARACTERS)
            break;
        take_off(k, end);
    }
    n = k->held_len > 0 ? utf8_decode(held(k), cp) : 0;
    if (n == 0)
        return LINE_KEY_NONE;
    take_off(k, n);
    return LINE_KEY_CHAR;
}
