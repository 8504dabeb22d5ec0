/*
 * export_html - a conversation as one HTML page that needs nothing else: neither the network nor
 * another file.
 *
 * The page (lib/convert/page/) carries its messages as lines of JSON, and its script renders and
 * searches them. The build makes two byte arrays of it, the text before and after the messages.
 */

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/convert/export.h"

/* The page before and after the messages; mk/page generates them from lib/convert/page/. */
extern const char export_page_head[];
extern const unsigned long export_page_head_len;
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
 * `<`, which could end the script element. */
static void add_json_value(struct buf *out, struct str value, struct buf *scratch)
{
    buf_clear(scratch);
    json_add_compact(scratch, value);
    struct str rest = buf_str(scratch);
    while (rest.p != NULL) {
        buf_add_str(out, str_cut(&rest, '<'));
        if (rest.p != NULL)
            buf_add_c(out, "\\u003c");
    }
}

static void html_begin(struct export *x)
{
    buf_add(&x->out, export_page_head, export_page_head_len);
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

/* Appends a line with the time by which the page sorts the session. */
static void html_session(struct export *x, const struct export_session *s)
{
    struct buf scratch = BUF_INIT(BUF_LINE), id = BUF_INIT(BUF_LINE);

    if (!x->listed)
        return;
    json_add_string(&id, s->id);
    buf_add_byte(&x->out, '{');
    json_add_key(&x->out, "session_id");
    add_json_value(&x->out, buf_str(&id), &scratch);
    json_add_member(&x->out, "role", STR("session"));
    json_add_member_int(&x->out, "time", x->listed->used);
    buf_add_c(&x->out, "}\n");
    buf_release(&scratch);
    buf_release(&id);
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
