#include "port/import_source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

int source_open(struct source *s, const char *path, struct err *e)
{
    struct stat st;

    *s = (struct source){.name = path, .fd = STDIN_FILENO, .time = clock_now()};
    buf_init(&s->block, SOURCE_VALUE_MAX);
    if (strcmp(path, "-") == 0)
        return 0;
    s->path = path;
    s->fd = io_open_input(path, e);
    if (s->fd < 0)
        return -1;
    if (fstat(s->fd, &st) == 0)
        s->time = (int64_t)st.st_mtim.tv_sec * CLOCK_SECOND + st.st_mtim.tv_nsec / 1000;
    return 0;
}

void source_of_text(struct source *s, const char *name, struct str text)
{
    *s = (struct source){.name = name, .fd = -1, .ended = true};
    buf_init(&s->block, SOURCE_VALUE_MAX);
    buf_add_str(&s->block, text);
}

void source_close(struct source *s)
{
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    buf_release(&s->block);
}

/* Reads on: 1, 0 at the end, -1. What was given is forgotten. */
static int more(struct source *s, struct err *e)
{
    int got;

    if (s->ended)
        return 0;
    buf_consume(&s->block, s->from);
    s->seen = s->seen > s->from ? s->seen - s->from : 0;
    s->from = 0;
    got = io_read_some(s->fd, &s->block);
    if (got < 0 && errno == EFBIG)
        return err_set(e, ERR_FAILURE, "cannot read '%s': a value is longer than %zu MiB", s->name,
                       SOURCE_VALUE_MAX >> 20);
    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", s->name);
    s->ended = got == 0;
    return got;
}

int source_head(struct source *s, struct str *head, struct err *e)
{
    int got = 1;

    while (got > 0 && s->block.len - s->from < SOURCE_HEAD)
        got = more(s, e);
    if (got < 0)
        return -1;
    *head = (struct str){buf_c(&s->block) + s->from, s->block.len - s->from};
    if (head->n > SOURCE_HEAD)
        head->n = SOURCE_HEAD;
    return 0;
}

void source_skip(struct source *s, size_t n)
{
    s->from += n;
    s->seen = s->from;
}

/* ---- lines ---- */

/* What is left of a line that is too long. */
static int pass_line(struct source *s, struct str *line, struct err *e)
{
    *line = STR_NONE;
    for (;;) {
        const char *end = memchr(s->block.data + s->from, '\n', s->block.len - s->from);
        int got;

        s->terminated = end != NULL;
        s->from = end ? (size_t)(end - s->block.data) + 1 : s->block.len;
        s->seen = s->from;
        if (end)
            return 1;
        got = more(s, e);
        if (got <= 0)
            return got < 0 ? -1 : 1;
    }
}

int source_line(struct source *s, struct str *line, struct err *e)
{
    int got = 1;

    while (got > 0) {
        const char *data = buf_c(&s->block), *end = NULL;

        if (s->seen < s->block.len)
            end = memchr(data + s->seen, '\n', s->block.len - s->seen);
        if (end || (s->ended && s->from < s->block.len)) {
            size_t to = end ? (size_t)(end - data) : s->block.len;

            *line = (struct str){data + s->from, to - s->from};
            s->terminated = end != NULL;
            s->from = s->seen = to + s->terminated;
            s->number++;
            if (line->n > BUF_LINE)
                *line = STR_NONE;
            return 1;
        }
        s->seen = s->block.len;
        if (s->block.len - s->from > BUF_LINE) {
            s->number++;
            return pass_line(s, line, e);
        }
        got = more(s, e);
        if (got == 0 && s->from < s->block.len)
            got = 1;
    }
    return got;
}

/* ---- values ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next byte that is neither white space nor `besides`, not taken: 1, 0, -1. */
static int peek(struct source *s, char besides, char *c, struct err *e)
{
    for (;;) {
        int got;

        for (; s->from < s->block.len; s->from++) {
            *c = s->block.data[s->from];
            if (!is_space(*c) && *c != besides)
                return 1;
        }
        s->seen = s->from;
        got = more(s, e);
        if (got <= 0)
            return got;
    }
}

/* How far a value was followed. */
struct follow {
    size_t depth;
    bool string, escape;
};

/* Takes one byte: does the value end before it? */
static bool ends_before(struct follow *f, char c)
{
    if (f->string) {
        if (f->escape)
            f->escape = false;
        else if (c == '\\')
            f->escape = true;
        else if (c == '"')
            f->string = false;
        return false;
    }
    if (f->depth == 0 && (c == ',' || c == ']'))
        return true;
    if (c == '"')
        f->string = true;
    else if (c == '{' || c == '[')
        f->depth++;
    else if ((c == '}' || c == ']') && f->depth > 0)
        f->depth--;
    return false;
}

static int take_element(struct source *s, struct str *value, struct err *e)
{
    struct follow f = {0};
    int got = 1;

    s->seen = s->from;
    while (got > 0) {
        for (; s->seen < s->block.len; s->seen++)
            if (ends_before(&f, s->block.data[s->seen]))
                goto found;
        got = more(s, e);
    }
    if (got < 0)
        return -1;
found:
    *value = (struct str){buf_c(&s->block) + s->from, s->seen - s->from};
    s->from = s->seen;
    s->number++;
    return 1;
}

/* One of several values in a row: it ends with its last bracket. What begins with none is all that
 * is left. */
static int take_next(struct source *s, struct str *value, struct err *e)
{
    struct follow f = {0};
    int got = 1;

    s->number++;
    s->seen = s->from;
    while (got > 0) {
        while (s->seen < s->block.len) {
            (void)ends_before(&f, s->block.data[s->seen]);
            if (f.depth == 0 && s->seen == s->from)
                return source_rest(s, value, e) < 0 ? -1 : 1;
            s->seen++;
            if (f.depth == 0)
                goto found;
        }
        got = more(s, e);
    }
    if (got < 0)
        return -1;
found:
    *value = (struct str){buf_c(&s->block) + s->from, s->seen - s->from};
    s->from = s->seen;
    return 1;
}

int source_value(struct source *s, struct str *value, struct err *e)
{
    char c;
    int got;

    if (s->number == 0) {
        struct str head, bom = STR("\xef\xbb\xbf");

        if (source_head(s, &head, e) < 0)
            return -1;
        if (str_starts(head, bom))
            s->from += bom.n;
        got = peek(s, ' ', &c, e);
        if (got <= 0)
            return got;
        s->in_array = c == '[';
        s->in_row = !s->in_array;
        s->from += s->in_array;
    }
    if (!s->in_array && !s->in_row)
        return 0;
    got = peek(s, s->in_array ? ',' : ' ', &c, e);
    if (got <= 0)
        return got;
    if (s->in_row)
        return take_next(s, value, e);
    if (c == ']') {
        s->in_array = false;
        return 0;
    }
    return take_element(s, value, e);
}

int source_rest(struct source *s, struct str *text, struct err *e)
{
    int got;

    do
        got = more(s, e);
    while (got > 0);
    if (got < 0)
        return -1;
    *text = (struct str){buf_c(&s->block) + s->from, s->block.len - s->from};
    s->from = s->seen = s->block.len;
    return 0;
}
