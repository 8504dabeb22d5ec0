#include "chathist/search/searched_text.h"

/* A buffer keeps memory up to this size. */
#define KEPT ((size_t)1 << 20)

/* The parts of a message, in the order in which they are searched. */
static const struct part {
    enum search_in in;
    enum field field;
} parts[] = {
    {SEARCH_CONTENT, FIELD_CONTENT}, {SEARCH_TOOLS, FIELD_TOOL_CALLS},
    {SEARCH_FILES, FIELD_FILES},     {SEARCH_FILES, FIELD_FILES_MODIFIED},
    {SEARCH_MODEL, FIELD_MODEL},     {SEARCH_ID, FIELD_ID},
    {SEARCH_ID, FIELD_SESSION_ID},
};
#define PARTS (sizeof parts / sizeof *parts)

void searched_text_init(struct searched_text *t)
{
    *t = (struct searched_text){.unpacked = BUF_INIT(BUF_LINE), .decoded = BUF_INIT(BUF_LINE)};
}

void searched_text_release(struct searched_text *t)
{
    buf_release(&t->unpacked);
    buf_release(&t->decoded);
}

void searched_text_shrink(struct searched_text *t)
{
    if (t->decoded.cap > KEPT)
        buf_release(&t->decoded);
    if (t->unpacked.cap > KEPT)
        buf_release(&t->unpacked);
}

void searched_text_begin(struct searched_text *t, const struct message *m, unsigned in)
{
    t->message = m;
    t->in = in;
    if (message_is_title(m))
        t->in = in & SEARCH_TITLE ? SEARCH_CONTENT : 0;
    t->part = 0;
    t->rest = t->args = STR_NONE;
    t->calls = json_iter(STR_NONE);
}

/* Goes on to the arguments of a call, to the next call, or to the next part. Returns false after
 * the last one. */
static bool next_part(struct searched_text *t)
{
    struct message_call call;
    struct str value;
    enum field field;

    if (t->args.p) {
        t->rest = t->args;
        t->args = STR_NONE;
        return true;
    }
    if (message_next_call(&t->calls, &call, &t->unpacked)) {
        t->rest = call.name;
        t->args = call.args;
        return true;
    }
    while (t->part < PARTS && !(t->in & parts[t->part].in))
        t->part++;
    if (t->part == PARTS)
        return false;
    field = parts[t->part++].field;
    value = t->message->field[field];
    if (field == FIELD_TOOL_CALLS)
        t->calls = json_iter(value);
    else
        t->rest = field == FIELD_CONTENT && json_is_null(value) ? STR("\"\"") : value;
    return true;
}

bool searched_text_next(struct searched_text *t, struct str *text)
{
    struct str leaf;

    for (;;) {
        while (json_next_leaf(&t->rest, &leaf)) {
            *text = json_type(leaf) == JSON_STRING ? json_text(leaf, &t->decoded) : leaf;
            if (json_type(leaf) != JSON_NULL)
                return true;
        }
        if (!next_part(t))
            return false;
    }
}
