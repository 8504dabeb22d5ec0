#include "front/show.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/die.h"
#include "hist/message.h"
#include "port/export_json.h"
#include "port/export_md.h"

/* A line's time as people read it: `2024-06-27 15:00:00` in UTC, on a terminal their own, to the
 * minute; as stored when it is no time. */
static void show_time(struct out *o, struct str timestamp)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t us;

    if (clock_parse_iso(timestamp, &us) && o->terminal) {
        clock_add_local(&text, us);
    } else if (clock_parse_iso(timestamp, &us)) {
        clock_add_iso(&text, us);
        text.data[10] = ' ';
        buf_truncate(&text, 19);
    } else {
        vis_add_line(&text, timestamp, o->terminal);
    }
    out_raw(o, buf_str(&text));
    buf_release(&text);
}

/* A short text of a message on one line. */
static void show_line(struct out *o, struct str text)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    vis_add_line(&line, text, o->terminal);
    out_raw(o, buf_str(&line));
    buf_release(&line);
}

static void show_calls(struct out *o, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE);

    while (!it.object && json_next(&it)) {
        if (json_type(it.value) != JSON_OBJECT)
            continue;
        out_raw(o, STR("[tool call] "));
        show_line(o, json_text(json_get(it.value, "name"), &scratch));
        out_byte(o, ' ');
        show_line(o, json_get(it.value, "args"));
        out_byte(o, '\n');
    }
    buf_release(&scratch);
}

/* `[role] time`, the text, its calls, a blank line. */
static void show_message(struct out *o, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str content = message_content(m, &scratch);

    out_style(o, STYLE_ROLE);
    out_byte(o, '[');
    show_line(o, m->role_text);
    out_byte(o, ']');
    out_style(o, STYLE_NONE);
    out_byte(o, ' ');
    out_style(o, STYLE_DIM);
    show_time(o, m->timestamp);
    out_style(o, STYLE_NONE);
    out_byte(o, '\n');
    if (content.n > 0) {
        out_text(o, content);
        out_text_end(o);
        if (content.p[content.n - 1] != '\n')
            out_byte(o, '\n');
    }
    show_calls(o, m);
    out_byte(o, '\n');
    buf_release(&scratch);
}

/* Where the last `n` of the messages that are wanted begin. */
static size_t first_of(const struct thread *t, const struct show *s)
{
    size_t first = t->count;

    for (size_t n = 0; first > 0 && n < s->last; first--)
        n += filter_match(&s->filter, &t->at[first - 1]);
    return first;
}

/* The messages that are wanted, n of them, borrowed from the thread; the array is the caller's. */
static struct message *wanted_of(const struct thread *t, const struct show *s, size_t *n)
{
    struct message *wanted = mem_zalloc(t->count * sizeof *wanted);

    *n = 0;
    for (size_t i = first_of(t, s); i < t->count; i++)
        if (filter_match(&s->filter, &t->at[i]))
            wanted[(*n)++] = t->at[i];
    return wanted;
}

static void show_messages(struct out *o, struct show *s, const struct message *at, size_t n)
{
    struct err e = ERR_INIT;

    if (s->document) {
        if (n > 0 && export_session(&s->export, at, n, &e) < 0)
            die_err(&e);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (s->json)
            out_json_line(o, at[i].line);
        else
            show_message(o, &at[i]);
    }
}

size_t show_session(struct out *o, const struct history *h, const char *id, struct show *s)
{
    struct err e = ERR_INIT;
    struct message *wanted;
    struct thread t;
    size_t count, n;

    if (thread_find(&t, h, str_of(id), s->raw, &e) < 0)
        die_err(&e);
    count = t.count;
    wanted = wanted_of(&t, s, &n);
    show_messages(o, s, wanted, n);
    if (t.bad_lines > s->bad_lines)
        s->bad_lines = t.bad_lines;
    free(wanted);
    thread_release(&t);
    return count;
}

/* ---- documents ---- */

void show_set_format(struct show *s, const char *name)
{
    s->format = name;
    if (strcmp(name, "text") == 0)
        s->document = NULL;
    else if (strcmp(name, export_md.name) == 0)
        s->document = &export_md;
    else if (strcmp(name, export_json.name) == 0)
        s->document = &export_json;
    else
        die_usage("bad value '%s' for --format: text, md or json is expected", name);
}

void show_settle(struct show *s, bool json)
{
    if (json && s->format)
        die_usage("--json prints the stored lines: it does not go with --format");
    s->json = json;
}

void show_begin(struct out *o, struct show *s)
{
    struct err e = ERR_INIT;

    if (!s->document)
        return;
    s->sink = (struct export_stdout){o, s->document->json};
    if (export_begin(&s->export, s->document, 0, export_to_stdout, &s->sink, &e) < 0)
        die_err(&e);
}

void show_end(struct show *s)
{
    struct err e = ERR_INIT;

    if (!s->document)
        return;
    if (export_end(&s->export, &e) < 0)
        die_err(&e);
    export_release(&s->export);
}
