#include "chathist/cli/show.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/message.h"
#include "chathist/history/session.h"
#include "chathist/history/session_list.h"
#include "chathist/history/thread.h"

/* Prints a time: `2024-06-27 15:00:00` in UTC, or on a terminal in local time to the minute. A
 * timestamp that is not a time is printed as stored. */
static void show_time(struct out *o, struct str timestamp)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t us;

    if (!o->terminal)
        export_add_time(&text, timestamp);
    else if (time_parse_iso(timestamp, &us))
        time_add_local(&text, us);
    else
        vis_add_line(&text, timestamp, true);
    out_raw(o, buf_str(&text));
    buf_release(&text);
}

/* Prints `[role] time`, the text, its calls and sources, why it is incomplete, and a blank line. */
static void show_message(struct out *o, const struct show *s, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE), details = BUF_INIT(SIZE_MAX);
    struct str content = message_content(m, &scratch);

    out_style(o, m->role == ROLE_USER   ? STYLE_USER
                 : m->role == ROLE_TOOL ? STYLE_TOOL
                                        : STYLE_ASSISTANT);
    out_byte(o, '[');
    vis_add_line(&details, m->role_text, o->terminal);
    out_raw(o, buf_str(&details));
    buf_clear(&details);
    out_byte(o, ']');
    out_style(o, STYLE_NONE);
    out_byte(o, ' ');
    out_style(o, STYLE_DIM);
    show_time(o, m->timestamp);
    out_style(o, STYLE_NONE);
    out_byte(o, '\n');
    /* What a tool returns is no Markdown. */
    if (content.n > 0 && s->print && o->terminal && !s->raw && m->role != ROLE_TOOL) {
        s->print(o, content);
    } else if (content.n > 0) {
        out_text(o, content);
        out_text_end(o);
        if (content.p[content.n - 1] != '\n')
            out_byte(o, '\n');
    }
    export_add_details(&details, m, o->terminal);
    out_raw(o, buf_str(&details));
    out_byte(o, '\n');
    buf_release(&scratch);
    buf_release(&details);
}

/* Returns the last *n messages of a thread that the filter accepts, at most s->last, borrowed from
 * the thread. The caller frees the array. */
static struct message *wanted_of(const struct thread *t, const struct show *s, size_t *n)
{
    size_t most = t->count < s->last || s->around ? t->count : s->last;
    struct message *wanted = mem_zalloc(most * sizeof *wanted);

    *n = 0;
    for (size_t i = t->count; i-- > 0 && *n < most;)
        if (filter_match(s->filter, &t->at[i]))
            wanted[most - ++*n] = t->at[i];
    memmove(wanted, wanted + most - *n, *n * sizeof *wanted);
    return wanted;
}

/* Returns the place of the message of --around in the thread, or the number of its messages. */
static size_t place_around(const struct thread *t, const struct show *s)
{
    size_t place = 0;

    while (place < t->count && !str_eq_c(t->at[place].id, s->around))
        place++;
    return place;
}

/* Loads the thread of a session; every line of it if only those have the message of --around, such
 * as one that hist-search found and that was replaced. */
static int load_thread(struct thread *t, const struct history *h, struct str id,
                       const struct show *s, struct err *e)
{
    if (thread_find(t, h, id, s->raw, e) < 0)
        return -1;
    if (s->raw || !s->around || place_around(t, s) < t->count)
        return 0;
    thread_release(t);
    return thread_find(t, h, id, true, e);
}

/* Returns which of the n messages that are wanted is printed first of all: the last one, or that of
 * --around. If the filter leaves that one out, it is the next one. Ends the program if the session
 * does not have it. */
static size_t center_of(const struct thread *t, const struct show *s, size_t n)
{
    size_t place, before = 0;
    struct err e = ERR_INIT;

    if (!s->around)
        return n - 1;
    place = place_around(t, s);
    if (place == t->count) {
        err_set(&e, ERR_ABSENT, "no message '%s' in this session", s->around);
        die_err(&e);
    }
    for (size_t i = 0; i < place; i++)
        before += filter_match(s->filter, &t->at[i]);
    return before < n ? before : n - 1;
}

/* Prints stored lines in their order: the last ones, or those around a message, at most --limit, as
 * long as there is room for them. */
static void show_lines(struct out *o, struct show *s, const struct message *at, size_t n,
                       size_t center)
{
    size_t before = center, after = center + 1;
    struct buf *lines = mem_zalloc(n * sizeof *lines);

    for (size_t i = 0; i < n; i++)
        buf_init(&lines[i], SIZE_MAX);
    for (size_t i = 0; i < n && i < s->last; i++) {
        /* The message itself, then in turn one before it and one after it. */
        bool back = before > 0 && (after == n || center - before < after - center);
        size_t next = i == 0 ? center : back ? --before : after++;

        if (brief_add(&s->brief, at[next].line, STR(""), &lines[next]) < 0)
            break;
    }
    for (size_t i = 0; i < n; i++) {
        if (lines[i].len > 0)
            out_json_line(o, buf_str(&lines[i]));
        buf_release(&lines[i]);
    }
    free(lines);
}

static void show_messages(struct out *o, struct show *s, const struct message *at, size_t n,
                          size_t center)
{
    struct err e = ERR_INIT;

    if (s->document) {
        s->export.title = buf_str(&s->title);
        if (n > 0 && export_session(&s->export, at, n, &e) < 0)
            die_err(&e);
        return;
    }
    if (s->json && n > 0 && (s->around || brief_changes(&s->brief))) {
        show_lines(o, s, at, n, center);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (s->json)
            out_json_line(o, at[i].line);
        else
            show_message(o, s, &at[i]);
    }
}

/* ---- documents ---- */

int export_to_stdout(void *arg, struct str bytes, struct err *e)
{
    struct export_stdout *s = arg;
    struct buf visible = BUF_INIT(SIZE_MAX);

    (void)e;
    if (s->json && s->out->terminal) {
        json_add_visible(&visible, bytes);
        out_raw(s->out, buf_str(&visible));
    } else {
        out_text(s->out, bytes);
        out_text_end(s->out);
    }
    buf_release(&visible);
    return 0;
}

void show_read_option(struct show *s, int key, const char *value)
{
    if (key == SHOW_RAW)
        s->raw = true;
    if (key == SHOW_AROUND)
        s->around = value;
    if (key != SHOW_FORMAT) {
        (void)brief_read_option(&s->brief, key, value);
        return;
    }
    s->format = value;
    s->document = strcmp(value, "md") == 0     ? &export_md
                  : strcmp(value, "json") == 0 ? &export_json
                                               : NULL;
}

void show_check_options(struct show *s, const struct choice *c)
{
    if (c->common.json && s->format)
        die_usage("--json prints the stored lines: it cannot be combined with --format");
    if (s->around && !c->common.json)
        die_usage("--around needs --json");
    s->json = c->common.json;
    brief_check_options(&s->brief, s->json, false);
    s->brief.config = &c->config;
    buf_init(&s->title, BUF_LINE);
    s->last = c->limit > 0 ? c->limit : SIZE_MAX;
    s->filter = &c->filter;
}

/* Begins the document unless it has begun. */
static void begin_document(struct out *o, struct show *s)
{
    struct err e = ERR_INIT;

    if (!s->document || s->begun)
        return;
    s->begun = true;
    s->sink = (struct export_stdout){o, s->document->json};
    if (export_begin(&s->export, s->document, export_to_stdout, &s->sink, &e) < 0)
        die_err(&e);
}

size_t show_session(struct out *o, const struct history *h, struct str id, struct show *s)
{
    struct message *wanted;
    struct err e = ERR_INIT;
    struct thread t;
    size_t count, n;

    if (h->mark.from > 0 && h->safe && session_came(h, id, NULL) > 0)
        hintf(false, "session '%.*s' came with the repository", ERR_SHOWN(id));
    if (!brief_wants(&s->brief, h, id))
        return 0;
    begin_document(o, s);
    if (load_thread(&t, h, id, s, &e) < 0)
        die_err(&e);
    count = t.count;
    wanted = wanted_of(&t, s, &n);
    buf_clear(&s->title);
    if (s->document && session_title(h, id, &s->title, NULL, &e) < 0)
        die_err(&e);
    show_messages(o, s, wanted, n, center_of(&t, s, n));
    if (t.bad_lines > s->bad_lines)
        s->bad_lines = t.bad_lines;
    free(wanted);
    thread_release(&t);
    return count;
}

void show_end(struct out *o, struct show *s, bool even_if_empty)
{
    struct err e = ERR_INIT;

    if (even_if_empty)
        begin_document(o, s);
    if (s->begun && export_end(&s->export, &e) < 0)
        die_err(&e);
    if (s->begun)
        export_release(&s->export);
    buf_release(&s->title);
    brief_end(&s->brief, o);
    brief_release(&s->brief);
    out_page_end(o);
}
