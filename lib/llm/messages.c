#include "chathist/llm/messages.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/json_write.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"

#define BOM "\xef\xbb\xbf"

/* The members that count, as of a history line. The last of a repeated key does. */
static void take_members(struct message *m, struct str object)
{
    static const enum field wanted[] = {FIELD_ROLE,         FIELD_CONTENT, FIELD_TOOL_CALLS,
                                        FIELD_TOOL_CALL_ID, FIELD_ID,      FIELD_REPLY_TO,
                                        FIELD_FINISH_REASON};
    struct json_iter it = json_iter(object);

    while (json_next(&it))
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (json_key_is(it.key, field_name(wanted[i])))
                m->field[wanted[i]] = it.value;
}

/* Content in parts, all of them text, becomes one string in `out`, blank lines between them. */
static bool join_parts(struct str parts, struct buf *out)
{
    struct buf text = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    bool ok = json_type(parts) == JSON_ARRAY;

    for (struct json_iter it = json_iter(parts); ok && json_next(&it);) {
        ok =
            json_has_type(it.value, "text") && json_type(json_get(it.value, "text")) == JSON_STRING;
        if (text.len > 0)
            buf_add_c(&text, "\n\n");
        buf_add_str(&text, json_text(json_get(it.value, "text"), &scratch));
    }
    if (ok)
        json_add_string(out, buf_str(&text));
    buf_release(&text);
    buf_release(&scratch);
    return ok;
}

static bool add_entry(struct context *c, struct str value)
{
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE), joined = BUF_INIT(BUF_LINE);
    struct str content;
    bool ok = false;

    if (json_type(value) != JSON_OBJECT)
        return false;
    take_members(&m, value);
    m.role = role_of(json_text(m.field[FIELD_ROLE], &scratch));
    content = m.field[FIELD_CONTENT];
    if (join_parts(content, &joined))
        m.field[FIELD_CONTENT] = content = buf_str(&joined);
    if (json_type(content) == JSON_STRING)
        ok = true;
    else if (json_is_null(content))
        ok = m.role == ROLE_ASSISTANT && json_type(m.field[FIELD_TOOL_CALLS]) == JSON_ARRAY;
    ok = ok && context_add(c, &m);
    buf_release(&scratch);
    buf_release(&joined);
    message_release(&m);
    return ok;
}

static size_t add_array(struct context *c, struct str array)
{
    struct json_iter it = json_iter(array);
    size_t bad = 0;

    while (json_next(&it))
        bad += !add_entry(c, it.value);
    return bad;
}

/* An entry, or what holds them: an array, or an object with one, as requests and exports are. */
static size_t add_value(struct context *c, struct str value)
{
    struct str inner = json_get(value, "messages"), system = json_get(value, "system");
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (json_type(value) == JSON_ARRAY)
        return add_array(c, value);
    if (json_type(inner) != JSON_ARRAY)
        return !add_entry(c, value);
    if (json_type(system) == JSON_STRING)
        context_set_system(c, json_text(system, &scratch));
    buf_release(&scratch);
    return add_array(c, inner);
}

static size_t add_lines(struct context *c, struct str rest)
{
    size_t bad = 0;

    while (rest.p) {
        struct str line = str_trim(str_cut(&rest, '\n')), value;

        if (line.n > 0)
            bad += json_check(line, &value, NULL) ? add_value(c, value) : 1;
    }
    return bad;
}

size_t messages_add(struct context *c, struct str text)
{
    struct buf repaired = BUF_INIT(SIZE_MAX);
    struct str value;
    size_t bad;

    if (str_starts(text, STR(BOM))) {
        text.p += strlen(BOM);
        text.n -= strlen(BOM);
    }
    if (utf8_valid(text) < text.n) {
        utf8_add_repaired(&repaired, text);
        text = buf_str(&repaired);
    }
    if (!json_check(text, &value, NULL))
        bad = add_lines(c, text);
    else
        bad = add_value(c, value);
    buf_release(&repaired);
    return bad;
}

bool messages_too_deep(struct str text)
{
    bool deep = json_too_deep(text);

    while (!deep && text.p)
        deep = json_too_deep(str_cut(&text, '\n'));
    return deep;
}
