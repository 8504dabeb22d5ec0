/*
 * export_html - conversations as an HTML page that needs no network, alone or with a folder of
 * parts.
 *
 * The page (lib/convert/page/) carries its messages as lines of JSON, and its script renders and
 * searches them. The build makes three byte arrays of it: the text before the end of its policy,
 * before the messages, and after them.
 *
 * A line without `id` is no message: with the role `session` it says of the session what the page
 * does not see in the messages, with the role `repository` to which repository the sessions after
 * it belong. In a folder (export_page.h) the page has only such lines, and the messages are in
 * parts, scripts that hand their lines to the page: a page that was opened from a file may load
 * scripts, but not read files.
 */
#include "convert/export_html.h"

#include <inttypes.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/convert/export.h"

/* The page; mk/page generates it from lib/convert/page/. */
extern const char export_page_head[];
extern const unsigned long export_page_head_len;
extern const char export_page_middle[];
extern const unsigned long export_page_middle_len;
extern const char export_page_tail[];
extern const unsigned long export_page_tail_len;

/* The fields that the page shows. */
static const enum field shown[] = {
    FIELD_ID,           FIELD_SESSION_ID, FIELD_TIMESTAMP,     FIELD_ROLE,
    FIELD_CONTENT,      FIELD_IMAGES,     FIELD_FILES,         FIELD_FILES_MODIFIED,
    FIELD_EDIT_RESULTS, FIELD_TOOL_CALLS, FIELD_TOOL_CALL_ID,  FIELD_MODEL,
    FIELD_PROVIDER,     FIELD_USAGE,      FIELD_FINISH_REASON, FIELD_ORIGIN,
};

/* Appends a value without white space, because a browser turns each CR into a newline, and without
 * the characters that could end the element or the text of a script. */
static void add_json_value(struct buf *out, struct str value, struct buf *scratch)
{
    buf_clear(scratch);
    json_add_compact(scratch, value);
    for (size_t i = 0, from = 0; i <= scratch->len; i++) {
        char c = i < scratch->len ? scratch->data[i] : '<';

        if (c != '<' && c != '`' && c != '$')
            continue;
        buf_add(out, scratch->data + from, i - from);
        if (i < scratch->len)
            buf_addf(out, "\\u%04x", (unsigned)c);
        from = i + 1;
    }
}

static void add_json_text(struct buf *out, const char *key, struct str text)
{
    struct buf value = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);

    json_add_string(&value, text);
    json_add_key(out, key);
    add_json_value(out, buf_str(&value), &scratch);
    buf_release(&value);
    buf_release(&scratch);
}

static void html_begin(struct export *x)
{
    buf_add(&x->out, export_page_head, export_page_head_len);
    buf_add_c(&x->out, "; trusted-types 'none'\n");
    buf_add(&x->out, export_page_middle, export_page_middle_len);
}

/* Appends the addresses of the pages that the answer cites, which the page need not look for. */
static void add_citations(struct buf *out, const struct message *m, struct buf *scratch)
{
    struct hash_map urls = {0};
    struct buf list = BUF_INIT(BUF_LINE);

    message_sources(m->field[FIELD_CITATIONS], &urls);
    for (size_t i = 0; i < urls.count; i++) {
        buf_add_byte(&list, i > 0 ? ',' : '[');
        json_add_string(&list, urls.entries[i].key);
    }
    if (urls.count > 0) {
        buf_add_byte(&list, ']');
        json_add_key(out, "sources");
        add_json_value(out, buf_str(&list), scratch);
    }
    buf_release(&list);
    hash_map_release(&urls);
}

/* Appends a line with the time by which the page sorts the session, and whether it is the user's,
 * without the brace at its end. */
static void begin_session_line(struct export *x, struct str id)
{
    buf_add_byte(&x->out, '{');
    add_json_text(&x->out, "session_id", id);
    json_add_member(&x->out, "role", STR("session"));
    json_add_member_int(&x->out, "time", x->listed->used);
    if (x->listed->came)
        buf_add_c(&x->out, ",\"came\":true");
}

static void html_session(struct export *x, const struct export_session *s)
{
    if (!x->listed)
        return;
    begin_session_line(x, s->id);
    buf_add_c(&x->out, "}\n");
}

/* Returns whether the message counts as written at another time than its timestamp says, so that
 * the page needs that time, too. */
static bool has_other_time(const struct message *m)
{
    int64_t time;

    return !time_parse_iso(m->timestamp, &time) || time != m->time ||
           !export_is_own_time(m->timestamp);
}

static void html_message(struct export *x, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    buf_add_byte(&x->out, '{');
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (m->field[shown[i]].p == NULL)
            continue;
        json_add_key(&x->out, field_name(shown[i]));
        add_json_value(&x->out, m->field[shown[i]], &scratch);
    }
    if (x->listed && has_other_time(m))
        json_add_member_int(&x->out, "time", m->time);
    if (x->listed)
        json_add_member_int(&x->out, "at", m->at);
    add_citations(&x->out, m, &scratch);
    buf_add_c(&x->out, "}\n");
    buf_release(&scratch);
}

static void html_end(struct export *x)
{
    buf_add(&x->out, export_page_tail, export_page_tail_len);
}

const struct export_format export_html = {
    .name = "html",
    .suffix = "html",
    .keeps_title = true,
    .begin = html_begin,
    .session = html_session,
    .message = html_message,
    .end = html_end,
};

void export_html_add_repository(struct buf *out, struct str name)
{
    buf_add_c(out, "{\"role\":\"repository\"");
    add_json_text(out, "content", name);
    buf_add_c(out, "}\n");
}

/* ---- the page of a folder ---- */

static void index_begin(struct export *x)
{
    buf_add(&x->out, export_page_head, export_page_head_len);
    buf_add_c(&x->out, " 'strict-dynamic'; trusted-types parts\n");
    buf_add(&x->out, export_page_middle, export_page_middle_len);
}

/* The page shows days in the time zone of its reader. All zones begin their days with a quarter of
 * an hour. */
#define QUARTER ((int64_t)900 * 1000000)

/* Appends the quarters of hours since 1970 in which the session has messages, each once if they are
 * in order. */
static void add_active(struct export *x, const struct export_session *s)
{
    int64_t time, last = INT64_MIN;

    json_add_key(&x->out, "active");
    buf_add_byte(&x->out, '[');
    for (size_t i = 0; i < s->count; i++) {
        if (!time_parse_iso(s->at[i].timestamp, &time) || time / QUARTER == last)
            continue;
        if (last != INT64_MIN)
            buf_add_byte(&x->out, ',');
        last = time / QUARTER;
        buf_addf(&x->out, "%" PRId64, last);
    }
    buf_add_byte(&x->out, ']');
}

/* Appends the programs that the messages come from, as in hist-search --from. */
static void add_programs(struct export *x, const struct export_session *s)
{
    struct buf scratch = BUF_INIT(BUF_LINE), list = BUF_INIT(BUF_LINE);
    struct hash_map programs = {0};

    for (size_t i = 0; i < s->count; i++) {
        struct str origin = message_text(&s->at[i], FIELD_ORIGIN, &scratch);

        for (size_t n = 0; n < origin.n; n++)
            if (origin.p[n] == ':' || origin.p[n] == '/')
                origin.n = n;
        if (origin.n == 0 || !hash_map_add(&programs, origin))
            continue;
        buf_add_byte(&list, programs.count > 1 ? ',' : '[');
        json_add_string(&list, origin);
    }
    if (programs.count > 0) {
        buf_add_byte(&list, ']');
        json_add_key(&x->out, "programs");
        add_json_value(&x->out, buf_str(&list), &scratch);
    }
    hash_map_release(&programs);
    buf_release(&scratch);
    buf_release(&list);
}

static void index_session(struct export *x, const struct export_session *s)
{
    if (s->count == 0)
        return;
    begin_session_line(x, s->id);
    add_json_text(&x->out, "title", s->title);
    json_add_member_int(&x->out, "count", (int64_t)s->count);
    add_json_text(&x->out, "first", s->created_at);
    add_json_text(&x->out, "last", s->last_used);
    add_json_text(&x->out, "file", x->file);
    add_programs(x, s);
    add_active(x, s);
    buf_add_c(&x->out, "}\n");
}

const struct export_format export_html_index = {
    .name = "html",
    .suffix = "html",
    .begin = index_begin,
    .session = index_session,
    .end = html_end,
};

/* ---- a part of a folder ---- */

static void html_part_begin(struct export *x)
{
    buf_add_c(&x->out, "part(String.raw`\n");
}

static void html_part_end(struct export *x)
{
    buf_add_c(&x->out, "`);\n");
}

const struct export_format export_html_part = {
    .name = "html",
    .suffix = "js",
    .begin = html_part_begin,
    .message = html_message,
    .end = html_part_end,
};
