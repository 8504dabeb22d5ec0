#include "browse/browse_edit.h"

#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"
#include "chathist/cli/wide.h"
#include "chathist/browse/browse_keys.h"

/* Of a text that somebody types. */
#define TEXT_MAX ((size_t)4096)

void browse_edit_init(struct browse_edit *e)
{
    *e = (struct browse_edit){0};
    buf_init(&e->text, TEXT_MAX);
}

void browse_edit_release(struct browse_edit *e)
{
    buf_release(&e->text);
    e->at = 0;
}

void browse_edit_set(struct browse_edit *e, struct str text)
{
    struct buf line = BUF_INIT(8 * BUF_LINE), repaired = BUF_INIT(8 * BUF_LINE);

    buf_clear(&e->text);
    e->chosen = false;
    utf8_add_repaired(&repaired, text);
    vis_add_line(&line, buf_str(&repaired), true);
    buf_add_str(&e->text, utf8_first(buf_str(&line), TEXT_MAX / 4));
    e->at = e->text.len;
    buf_release(&line);
    buf_release(&repaired);
}

/* Where the character before a place begins, its combining marks with it. */
static size_t before(const struct browse_edit *e, size_t at)
{
    struct str text = buf_str(&e->text);
    int32_t cp = 0;

    while (at > 0) {
        do
            at--;
        while (utf8_inside(text, at));
        (void)utf8_decode((struct str){text.p + at, text.n - at}, &cp);
        if (utf8_width(cp) > 0)
            break;
    }
    return at;
}

static size_t behind(const struct browse_edit *e, size_t at)
{
    struct str text = buf_str(&e->text);
    bool passed = false;

    while (at < text.n) {
        int32_t cp;
        size_t n = utf8_decode((struct str){text.p + at, text.n - at}, &cp);

        if (passed && utf8_width(cp) > 0)
            break;
        passed = true;
        at += n > 0 ? n : text.n - at;
    }
    return at;
}

static bool is_blank(const struct browse_edit *e, size_t at)
{
    return e->text.data[at] == ' ';
}

static bool cut(struct browse_edit *e, size_t from, size_t to)
{
    struct buf kept = BUF_INIT(TEXT_MAX);

    if (from == to)
        return false;
    buf_add(&kept, buf_c(&e->text), from);
    buf_add(&kept, buf_c(&e->text) + to, e->text.len - to);
    buf_clear(&e->text);
    buf_add_str(&e->text, buf_str(&kept));
    buf_release(&kept);
    e->at = from;
    return true;
}

static bool cut_word(struct browse_edit *e)
{
    size_t from = e->at;

    while (from > 0 && is_blank(e, from - 1))
        from--;
    while (from > 0 && !is_blank(e, from - 1))
        from--;
    return cut(e, from, e->at);
}

static bool insert(struct browse_edit *e, int32_t key)
{
    struct buf rest = BUF_INIT(TEXT_MAX);
    char bytes[4];
    size_t n;

    if (key < ' ' || vis_unsafe(key) || key >= BROWSE_KEY_UP)
        return false;
    if (e->chosen)
        cut(e, 0, e->text.len);
    n = utf8_encode(key, bytes);
    if (e->text.len + n > TEXT_MAX)
        return false;
    buf_add(&rest, buf_c(&e->text) + e->at, e->text.len - e->at);
    buf_truncate(&e->text, e->at);
    buf_add(&e->text, bytes, n);
    buf_add_str(&e->text, buf_str(&rest));
    buf_release(&rest);
    e->at += n;
    return true;
}

static bool edit(struct browse_edit *e, int32_t key)
{
    switch (key) {
    case BROWSE_KEY_LEFT:
    case BROWSE_CTRL('b'):
        e->at = before(e, e->at);
        return false;
    case BROWSE_KEY_RIGHT:
    case BROWSE_CTRL('f'):
        e->at = behind(e, e->at);
        return false;
    case BROWSE_KEY_HOME:
    case BROWSE_CTRL('a'):
        e->at = 0;
        return false;
    case BROWSE_KEY_END:
    case BROWSE_CTRL('e'):
        e->at = e->text.len;
        return false;
    case BROWSE_KEY_BACKSPACE:
        return cut(e, before(e, e->at), e->at);
    case BROWSE_KEY_DELETE:
    case BROWSE_CTRL('d'):
        return cut(e, e->at, behind(e, e->at));
    case BROWSE_CTRL('u'):
        return cut(e, 0, e->at);
    case BROWSE_CTRL('k'):
        return cut(e, e->at, e->text.len);
    case BROWSE_CTRL('w'):
        return cut_word(e);
    default:
        return insert(e, key);
    }
}

bool browse_edit_key(struct browse_edit *e, int32_t key)
{
    bool changed = edit(e, key);

    e->chosen = false;
    return changed;
}

static size_t columns_between(const struct browse_edit *e, size_t from, size_t to)
{
    return wide_columns((struct str){buf_c(&e->text) + from, to - from});
}

struct str browse_edit_window(const struct browse_edit *e, size_t columns, size_t *column)
{
    size_t from = 0;

    /* The cursor itself takes one column. */
    while (from < e->at && columns_between(e, from, e->at) + 1 > columns)
        from = behind(e, from);
    *column = columns_between(e, from, e->at);
    return utf8_fit((struct str){buf_c(&e->text) + from, e->text.len - from}, columns);
}
