#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "convert/import_reader.h"

/* The position in a JSON text. */
struct position {
    char closers[JSON_DEPTH + 1]; /* of the brackets that are open */
    size_t depth;
    bool string, escape;
    bool value; /* the next string is one, and no key */
};

static void advance(struct position *p, char c)
{
    if (p->string) {
        p->string = p->escape || c != '"';
        p->escape = !p->escape && c == '\\';
        return;
    }
    p->string = c == '"';
    if (c == '{' || c == '[')
        p->closers[p->depth++] = c == '{' ? '}' : ']';
    else if (c == '}' || c == ']')
        p->depth -= p->depth > 0;
    if (c != '"')
        p->value = c == ':' || (p->value && ascii_is_space(c)) ||
                   ((c == '[' || c == ',') && p->depth > 0 && p->closers[p->depth - 1] == ']');
}

/* Appends the string in which a text ends, without the escape or the character that is cut off. */
static void add_cut_string(struct str text, struct buf *out)
{
    size_t end = text.n;

    for (size_t i = 1; i <= 12 && i < text.n; i++)
        if (text.p[text.n - i] == '\\')
            end = text.n - i;
    text.n = end;
    text.n = utf8_valid(text);
    buf_add_str(out, text);
    buf_add_byte(out, '"');
}

/* Appends the beginning of a JSON text as a whole value: the first value, or an array with its
 * first element. A part that is cut off is dropped, except for the string in which it ends. */
static void complete_json(struct str head, struct buf *out)
{
    struct position p = {0};
    size_t whole = 0, depth = 0; /* up to where it is whole, and the brackets there */
    bool ended = false;

    for (size_t i = 0; i < head.n && p.depth < JSON_DEPTH && !ended; i++) {
        char c = head.p[i];

        advance(&p, c);
        if (p.string || (c != '{' && c != '[' && c != '}' && c != ']' && c != ','))
            continue;
        whole = i + (c != ',');
        depth = p.depth;
        ended = (c == '}' || c == ']') && (depth == 0 || (depth == 1 && p.closers[0] == ']'));
    }
    if (p.string && p.value) {
        add_cut_string(head, out);
        depth = p.depth;
    } else {
        buf_add(out, head.p, whole);
    }
    while (depth > 0)
        buf_add_byte(out, p.closers[--depth]);
}

bool source_head_value(struct str head, struct buf *scratch, struct str *value)
{
    buf_clear(scratch);
    complete_json(str_trim(head), scratch);
    return json_check(buf_str(scratch), value, NULL);
}

bool source_head_object(struct str *head, struct buf *scratch, struct str *value)
{
    struct str line = str_cut(head, '\n');

    return (head->p ? json_check(line, value, NULL) : source_head_value(line, scratch, value)) &&
           json_type(*value) == JSON_OBJECT;
}
