/*
 * import_lines - histories in our own form (chathist(5)), such as hist-export writes.
 *
 * Lines are stored byte for byte, with their ids, sessions, times and unknown members. A file has
 * one on each line, or is a document `{"messages":[...]}` of export_json, with any white space. The
 * members that the export added are removed.
 */
#include <string.h>

#include "chathist/base/json.h"
#include "convert/import_reader.h"

/* The beginning of a document. */
#define DOCUMENT "{\"messages\":["

/* Returns the offset of the array of a document, or 0 if the file is no document. The elements are
 * not examined. */
static size_t document_begin(struct str head)
{
    struct str rest = str_trim(head), begin = STR(DOCUMENT);
    size_t matched = 0;

    /* Other programs write white space between the tokens. */
    for (size_t i = 0; i < rest.n && matched < begin.n; i++) {
        if (rest.p[i] == begin.p[matched])
            matched++;
        else if (!ascii_is_space(rest.p[i]))
            return 0;
        if (matched == begin.n)
            return (size_t)(rest.p + i - head.p);
    }
    return 0;
}

static int give(struct source *s, struct message *m, struct str line, struct err *e)
{
    if (message_parse(m, line))
        return import_give_line(s, m, e);
    import_bad(s, message_defect(line));
    return 0;
}

/* ---- a document of lines ---- */

/* Removes the members that export_json added to a line. A null that follows another member of the
 * same name belongs to the line. */
static void cut_added(struct buf *line)
{
    static const struct str added[] = {STR(",\"tool_call_id\":null"), STR(",\"tool_calls\":null")};
    static const enum field fields[] = {FIELD_TOOL_CALL_ID, FIELD_TOOL_CALLS};

    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        struct str text = {line->data, line->len - 1};

        if (!str_ends(text, added[i]))
            continue;
        buf_truncate(line, text.n - added[i].n);
        buf_add_byte(line, '}');
        if (json_get(buf_str(line), field_name(fields[i])).n > 0) {
            buf_truncate(line, line->len - 1);
            buf_add_str(line, added[i]);
            buf_add_byte(line, '}');
        }
    }
}

static int read_document(struct source *s, struct message *m, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct str value, object;
    int got;

    while ((got = source_value(s, &value, e)) > 0) {
        buf_clear(&line);
        if (json_check(value, &object, NULL) && json_type(object) == JSON_OBJECT) {
            json_add_compact(&line, object);
            if (!line.overflow)
                cut_added(&line);
            value = buf_str(&line);
        }
        if (line.overflow)
            import_bad(s, "longer than 64 MiB");
        else if (give(s, m, value, e) < 0)
            got = -1;
        if (got < 0)
            break;
    }
    buf_release(&line);
    return got;
}

/* ---- lines ---- */

static int read_rows(struct source *s, struct message *m, struct err *e)
{
    struct str line;
    int got;

    while ((got = source_line(s, &line, e)) > 0) {
        if (line.p && str_trim(line).n == 0)
            continue;
        if (!line.p)
            import_bad(s, "longer than 64 MiB");
        else if ((s->terminated || !message_defect(line)) && give(s, m, line, e) < 0)
            return -1;
    }
    return got;
}

static int read_lines(const struct import_format *f, struct source *s, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct str head;
    int result = source_head(s, &head, e);
    size_t document = result == 0 ? document_begin(head) : 0;

    (void)f;
    if (document > 0)
        source_skip(s, document);
    if (result == 0)
        result = document > 0 ? read_document(s, &m, e) : read_rows(s, &m, e);
    message_release(&m);
    return result;
}

/* ---- the format ---- */

/* Returns whether an object is a line. */
static bool is_line(struct str object)
{
    static const char *const keys[] = {"id", "session_id", "timestamp", "role"};
    struct str values[4];
    bool is = true;

    json_pick(object, keys, values, 4);
    for (size_t i = 0; i < 4; i++)
        is = is && json_type(values[i]) == JSON_STRING;
    return is;
}

/* Not every line of a file may be one. A document may be empty. */
static bool is_lines(struct str head)
{
    struct buf scratch = BUF_INIT(2 * SOURCE_HEAD);
    struct str rest = head, value;
    bool is = false;

    if (document_begin(head) > 0) {
        is = source_head_value(head, &scratch, &value);
        value = json_at(json_get(value, "messages"), 0);
        is = is && (!value.p || is_line(value));
    } else {
        for (int i = 0; i < SOURCE_LINES_SEEN && rest.n > 0 && !is; i++)
            is = source_head_object(&rest, &scratch, &value) && is_line(value);
    }
    buf_release(&scratch);
    return is;
}

const struct import_format import_lines = {"lines", false, is_lines, read_lines};
