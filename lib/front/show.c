#include "front/show.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/die.h"
#include "hist/message.h"

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

    while (json_next(&it)) {
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

size_t show_session(struct out *o, const struct history *h, const char *id, struct show *s)
{
    struct err e = ERR_INIT;
    struct thread t;
    size_t count;

    if (thread_load(&t, h->path, str_of(id), s->raw, &e) < 0)
        die_err(&e);
    count = t.count;
    for (size_t i = first_of(&t, s); i < count; i++) {
        if (!filter_match(&s->filter, &t.at[i]))
            continue;
        if (s->json)
            out_json_line(o, t.at[i].line);
        else
            show_message(o, &t.at[i]);
    }
    if (t.bad_lines > s->bad_lines)
        s->bad_lines = t.bad_lines;
    thread_release(&t);
    return count;
}
