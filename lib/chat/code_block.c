#include "chat/code_block.h"

#include <string.h>

#define FENCE_MIN 3

struct fence {
    char mark; /* ` or ~ */
    size_t length;
    size_t indent;
};

/* A line without its end, and what follows its fence, if it begins with one. */
static bool take_fence(struct str line, struct fence *f, struct str *rest)
{
    size_t i = 0;

    while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'))
        i++;
    f->indent = i;
    if (i == line.n || (line.p[i] != '`' && line.p[i] != '~'))
        return false;
    f->mark = line.p[i];
    while (i < line.n && line.p[i] == f->mark)
        i++;
    f->length = i - f->indent;
    *rest = str_trim((struct str){line.p + i, line.n - i});
    return f->length >= FENCE_MIN;
}

/* In the words behind an opening fence of backticks there is none: it would be code in a line. */
static bool opens(struct str line, struct fence *f)
{
    struct str info;

    return take_fence(line, f, &info) &&
           (f->mark != '`' || info.n == 0 || !memchr(info.p, '`', info.n));
}

static bool closes(struct str line, const struct fence *f)
{
    struct fence end;
    struct str rest;

    return take_fence(line, &end, &rest) && end.mark == f->mark && end.length >= f->length &&
           rest.n == 0;
}

static void add_line(struct buf *out, struct str line, size_t indent)
{
    while (indent-- > 0 && line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t')) {
        line.p++;
        line.n--;
    }
    buf_add_str(out, line);
    buf_add_byte(out, '\n');
}

bool code_block_first(struct str text, struct buf *out)
{
    struct fence f;
    bool inside = false;

    while (text.p) {
        struct str line = str_cut(&text, '\n');

        if (!inside)
            inside = opens(line, &f);
        else if (closes(line, &f))
            return true;
        else if (line.n > 0 || text.p) /* not what is behind the last newline */
            add_line(out, line, f.indent);
    }
    return inside;
}
