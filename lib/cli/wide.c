#include "chathist/cli/wide.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"

_Static_assert(sizeof(wchar_t) >= 4, "a wchar_t holds any code point");

bool wide_locale(void)
{
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 || setlocale(LC_CTYPE, "C.UTF-8") ||
           setlocale(LC_CTYPE, "en_US.UTF-8");
}

/* Returns the next code point, or -1 for invalid bytes. */
static int32_t next_code_point(struct str *text)
{
    int32_t cp;
    size_t n = utf8_decode(*text, &cp);

    n = n > 0 ? n : text->n;
    text->p += n;
    text->n -= n;
    return cp;
}

void wide_add_text(struct wide *w, struct str text)
{
    while (text.n > 0) {
        int32_t cp = next_code_point(&text);
        wchar_t c = cp < 0 ? L'\xfffd' : (wchar_t)cp;

        if (c != 0)
            wide_add(w, &c, 1);
    }
}

void wide_add(struct wide *w, const wchar_t *from, size_t n)
{
    w->at = mem_grow(w->at, &w->cap, w->count + n + 1, sizeof *w->at);
    wmemcpy(w->at + w->count, from, n);
    w->count += n;
    w->at[w->count] = L'\0';
}

void wide_release(struct wide *w)
{
    free(w->at);
    *w = (struct wide){0};
}

void wide_encode(struct buf *out, const wchar_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char bytes[4];

        buf_add(out, bytes, utf8_encode((int32_t)from[i], bytes));
    }
}

size_t wide_columns(struct str text)
{
    size_t columns = 0;

    while (text.n > 0) {
        int32_t cp = next_code_point(&text);

        columns += cp < 0 ? 1 : (size_t)utf8_width(cp);
    }
    return columns;
}

void wide_add_fitted(struct buf *out, struct str text, size_t columns)
{
    struct str shown = utf8_fit(text, columns);

    if (shown.n < text.n)
        shown = utf8_fit(shown, columns - 1);
    buf_add_str(out, shown);
    if (shown.n < text.n)
        buf_add_c(out, "\xe2\x80\xa6");
}

void wide_add_end(struct buf *out, struct str text, size_t columns)
{
    struct str end = text;
    size_t used = wide_columns(end);

    while (end.n > 0 && used > columns) {
        end = str_skip(end, utf8_first(end, 1).n);
        used = wide_columns(end) + 1;
    }
    if (end.n < text.n)
        buf_add_c(out, "\xe2\x80\xa6");
    buf_add_str(out, end);
    for (; used < columns; used++)
        buf_add_byte(out, ' ');
}

void wide_advance(struct wide_place *at, wchar_t c, size_t columns)
{
    size_t width = (size_t)utf8_width((int32_t)c);

    if (c == L'\t')
        width = 8 - at->column % 8;
    else if (c < L' ')
        width = 2;
    if (c == L'\n' || at->column + width > columns) {
        at->row++;
        at->column = c == L'\n' ? 0 : width;
    } else {
        at->column += width;
    }
}

size_t wide_rows(const wchar_t *text, size_t n, size_t before, size_t columns)
{
    struct wide_place at = {before / columns, before % columns};

    for (size_t i = 0; i < n; i++)
        wide_advance(&at, text[i], columns);
    return at.row + at.column / columns;
}
