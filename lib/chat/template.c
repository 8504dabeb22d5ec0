#include "chathist/chat/template.h"

/* ---- the head ---- */

static const struct str fence = STR("---");

static struct str next_line(struct template_head *h)
{
    h->line++;
    return str_trim(str_cut(&h->rest, '\n'));
}

/* The opening line must be the first, and alone on it. */
static bool opens(struct template_head *h)
{
    struct template_head ahead = *h;

    if (!str_eq(next_line(&ahead), fence))
        return false;
    *h = ahead;
    h->inside = true;
    return true;
}

int template_head_next(struct template_head *h, struct err *e)
{
    if (!h->inside && (h->line > 0 || !opens(h)))
        return 0;
    while (h->rest.p) {
        struct str line = next_line(h), value = line;

        if (str_eq(line, fence)) {
            h->inside = false;
            return 0;
        }
        if (line.n == 0 || line.p[0] == '#')
            continue;
        h->key = str_trim(str_cut(&value, '='));
        h->value = str_trim(value);
        if (!value.p || h->key.n == 0)
            return err_set(e, ERR_USAGE, "line %zu is not 'key = value'", h->line);
        return 1;
    }
    return err_set(e, ERR_USAGE, "the settings at its head do not end with '---'");
}

/* ---- the body ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool template_name_valid(struct str name)
{
    if (name.n == 0 || !is_letter(name.p[0]))
        return false;
    for (size_t i = 1; i < name.n; i++)
        if (!is_letter(name.p[i]) && name.p[i] != '-' && (name.p[i] < '0' || name.p[i] > '9'))
            return false;
    return true;
}

static struct template_var *find(struct template_var *vars, size_t count, struct str name)
{
    struct template_var *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (str_eq(vars[i].name, name)) {
            vars[i].used = true;
            found = &vars[i];
        }
    return found;
}

/* What stands between the braces. */
static int add_value(struct str inside, size_t line, struct template_var *vars, size_t count,
                     struct buf *out, struct err *e)
{
    struct str otherwise = inside, name = str_trim(str_cut(&otherwise, ':'));
    struct template_var *var;

    if (!template_name_valid(name))
        return err_set(e, ERR_USAGE, "line %zu: '{{' begins no variable ('{{{{' stands for it)",
                       line);
    var = find(vars, count, name);
    if (var && var->value.p)
        buf_add_str(out, var->value);
    else if (otherwise.p)
        buf_add_str(out, str_trim(otherwise));
    else if (var)
        var->missing = true;
    if (!(var && var->value.p) && !otherwise.p)
        return err_set(e, ERR_USAGE, "line %zu: no value for '%.*s'", line, (int)name.n, name.p);
    return 0;
}

static size_t lines_in(struct str s)
{
    size_t lines = 0;

    for (size_t i = 0; s.p && i < s.n; i++)
        lines += s.p[i] == '\n';
    return lines;
}

int template_expand(struct str text, size_t line, struct template_var *vars, size_t count,
                    struct buf *out, struct err *e)
{
    static const struct str open = STR("{{"), close = STR("}}"), escape = STR("{{{{");

    for (;;) {
        const char *at = str_find(text, open), *end;
        struct str before, rest;

        if (!at) {
            buf_add_str(out, text);
            return 0;
        }
        before = (struct str){text.p, (size_t)(at - text.p)};
        rest = (struct str){at, text.n - before.n};
        line += lines_in(before);
        buf_add_str(out, before);
        if (str_starts(rest, escape)) {
            buf_add_str(out, open);
            text = (struct str){rest.p + escape.n, rest.n - escape.n};
            continue;
        }
        /* Of three braces the first stands for itself. */
        if (str_starts(rest, STR("{{{"))) {
            buf_add_byte(out, '{');
            text = (struct str){rest.p + 1, rest.n - 1};
            continue;
        }
        rest = (struct str){rest.p + open.n, rest.n - open.n};
        end = str_find(rest, close);
        if (add_value(end ? (struct str){rest.p, (size_t)(end - rest.p)} : STR_NONE, line, vars,
                      count, out, e) < 0)
            return -1;
        line += lines_in((struct str){rest.p, (size_t)(end - rest.p)});
        text = (struct str){end + close.n, rest.n - (size_t)(end - rest.p) - close.n};
    }
}
