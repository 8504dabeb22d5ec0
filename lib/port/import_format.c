#include "port/import_format.h"

#include <string.h>

#include "base/json.h"
#include "port/import_aichat.h"
#include "port/import_chatgpt.h"
#include "port/import_claude_code.h"
#include "port/import_codex.h"
#include "port/import_lines.h"
#include "port/import_llm.h"
#include "port/import_messages.h"

/* So many lines at the beginning are looked at: not every record of a format shows which it is. */
#define LOOKED_AT 50

/* Does one of the first lines pass? */
static bool some_line(struct str head, bool (*is)(struct str object))
{
    if (str_starts(head, STR("\xef\xbb\xbf")))
        head = (struct str){head.p + 3, head.n - 3};
    for (int i = 0; i < LOOKED_AT && head.n > 0; i++) {
        struct str line = str_cut(&head, '\n'), value;

        if (json_check(line, &value, NULL) && json_type(value) == JSON_OBJECT && is(value))
            return true;
    }
    return false;
}

static bool has_string(struct str object, const char *key)
{
    return json_type(json_get(object, key)) == JSON_STRING;
}

/* The first line may be longer than what is looked at; then its keys show it, which are in front of
 * the long texts. */
static bool is_line(struct str object)
{
    return has_string(object, "id") && has_string(object, "session_id") &&
           has_string(object, "timestamp") && has_string(object, "role");
}

/* A document of lines, as hist-export writes it: shown by the first of them, which may be longer
 * than what is looked at. */
static bool is_document(struct str head)
{
    size_t begin = import_lines_document(head);
    struct str rest = {head.p + begin + 1, begin > 0 ? head.n - begin - 1 : 0}, line;
    struct str next = str_trim(rest), value;

    if (begin == 0 || !str_starts(next, STR("{")))
        return begin > 0 && str_eq(next, STR("]}"));
    line = str_cut(&next, '\n');
    if (str_ends(str_trim(line), STR(",")))
        line.n = (size_t)(str_trim(line).p + str_trim(line).n - 1 - line.p);
    if (json_check(line, &value, NULL))
        return is_line(value);
    return str_find(head, STR("\"session_id\":")) && str_find(head, STR("\"timestamp\":")) &&
           str_find(head, STR("\"role\":"));
}

static bool is_lines(struct str head)
{
    if (import_lines_document(head) > 0)
        return is_document(head);
    return some_line(head, is_line) ||
           (str_starts(head, STR("{\"id\":\"")) && str_find(head, STR("\",\"session_id\":\"")) &&
            str_find(head, STR("\",\"timestamp\":\"")) && str_find(head, STR("\",\"role\":\"")));
}

static bool is_claude_record(struct str object)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct str type = json_text(json_get(object, "type"), &scratch);
    bool is = (has_string(object, "sessionId") && type.n > 0) ||
              (str_eq_c(type, "summary") && has_string(object, "leafUuid")) ||
              str_eq_c(type, "file-history-snapshot");

    buf_release(&scratch);
    return is;
}

static bool is_claude_code(struct str head)
{
    return some_line(head, is_claude_record) ||
           (str_starts(str_trim(head), STR("{\"")) && str_find(head, STR("\"parentUuid\":")) &&
            str_find(head, STR("\"sessionId\":\"")));
}

static bool is_codex_record(struct str object)
{
    return (has_string(object, "type") && json_type(json_get(object, "payload")) == JSON_OBJECT) ||
           has_string(object, "record_type") ||
           (has_string(object, "id") && has_string(object, "timestamp") &&
            json_get(object, "instructions").p);
}

/* The first record may hold long instructions. */
static bool is_codex(struct str head)
{
    return some_line(head, is_codex_record) ||
           (str_find(head, STR("\"type\":\"session_meta\",\"payload\":{")) &&
            str_starts(str_trim(head), STR("{\"")));
}

static bool is_llm(struct str head)
{
    return str_starts(head, (struct str){"SQLite format 3", sizeof "SQLite format 3"});
}

/* A quotation mark in a string has a backslash before it, so that these are keys. */
static bool is_chatgpt(struct str head)
{
    struct str text = str_trim(head);

    return (str_starts(text, STR("[")) || str_starts(text, STR("{"))) &&
           str_find(text, STR("\"mapping\"")) &&
           (str_find(text, STR("\"current_node\"")) || str_find(text, STR("\"create_time\"")));
}

static bool is_messages(struct str head)
{
    struct str text = str_trim(head);

    if (!str_starts(text, STR("[")) && !str_starts(text, STR("{")))
        return false;
    if (str_find(text, STR("\"role\"")))
        return str_find(text, STR("\"content\"")) || str_find(text, STR("\"tool_calls\""));
    /* A request that has a prompt for the system, and nothing else yet. */
    return str_find(text, STR("\"system\":")) && str_find(text, STR("\"messages\":"));
}

static bool is_aichat(struct str head)
{
    bool model = false, messages = false;

    while (head.n > 0) {
        struct str line = str_cut(&head, '\n');

        model = model || str_starts(line, STR("model:"));
        messages = messages || str_starts(line, STR("messages:")) ||
                   str_starts(line, STR("compressed_messages:"));
    }
    return model && messages;
}

const struct import_format import_formats[] = {
    {"lines", is_lines, import_lines},       {"claude-code", is_claude_code, import_claude_code},
    {"codex", is_codex, import_codex},       {"llm", is_llm, import_llm},
    {"chatgpt", is_chatgpt, import_chatgpt}, {"messages", is_messages, import_messages},
    {"aichat", is_aichat, import_aichat},    {NULL, NULL, NULL},
};

const struct import_format *import_format_named(const char *name)
{
    for (const struct import_format *f = import_formats; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const struct import_format *import_format_of(struct str head)
{
    for (const struct import_format *f = import_formats; f->name; f++)
        if (f->is(head))
            return f;
    return NULL;
}

void import_format_names(struct buf *out)
{
    for (const struct import_format *f = import_formats; f->name; f++) {
        buf_add_c(out, f == import_formats ? "" : ", ");
        buf_add_c(out, f->name);
    }
}
