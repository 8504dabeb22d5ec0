#include "chathist/convert/export.h"

#include "chathist/base/clock.h"
#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"

/* A title is looked for in so many code points of its message. */
#define TITLE_LOOK 2000

/* ---- the traversal ---- */

static int deliver(struct export *x, struct err *e)
{
    int rc = 0;

    if (x->out.overflow)
        rc = err_set(e, ERR_FAILURE, "cannot export a message as %s: it is too long",
                     x->format->name);
    else if (x->out.len > 0)
        rc = x->sink(x->arg, buf_str(&x->out), e);
    buf_clear(&x->out);
    return rc;
}

int export_begin(struct export *x, const struct export_format *format, size_t expected,
                 export_sink *sink, void *arg, struct err *e)
{
    *x = (struct export){.format = format, .expected = expected, .sink = sink, .arg = arg};
    buf_init(&x->out, 8 * BUF_LINE);
    if (format->begin)
        format->begin(x);
    return deliver(x, e);
}

int export_line(struct export *x, const struct message *m, struct err *e)
{
    if (x->format->message)
        x->format->message(x, m);
    x->messages++;
    return deliver(x, e);
}

int export_end(struct export *x, struct err *e)
{
    if (x->format->end)
        x->format->end(x);
    return deliver(x, e);
}

void export_release(struct export *x)
{
    buf_release(&x->out);
}

/* ---- what is known of a session ---- */

/* The first prompt that is not blank, or else the first message. */
static const struct message *titled(const struct message *at, size_t count, struct buf *scratch)
{
    for (size_t i = 0; i < count; i++)
        if (at[i].role == ROLE_USER && str_trim(message_content(&at[i], scratch)).n > 0)
            return &at[i];
    return at;
}

static void add_title(struct buf *out, const struct message *at, size_t count)
{
    struct buf scratch = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    struct str text, cut;

    text = str_trim(message_content(titled(at, count, &scratch), &scratch));
    export_add_label(&line, utf8_first(text, TITLE_LOOK));
    cut = utf8_first(buf_str(&line), EXPORT_TITLE);
    buf_add_str(out, cut);
    if (cut.n < line.len)
        buf_add_c(out, "…");
    buf_release(&scratch);
    buf_release(&line);
}

static struct str newest_model(const struct message *at, size_t count, struct buf *scratch)
{
    struct str model = STR_NONE;

    while (count > 0 && model.n == 0)
        model = message_text(&at[--count], FIELD_MODEL, scratch);
    return model;
}

int export_session(struct export *x, const struct message *at, size_t count, struct err *e)
{
    struct buf title = BUF_INIT(BUF_SMALL), model = BUF_INIT(BUF_LINE);
    struct export_session s = {.at = at, .count = count};
    int rc;

    if (count > 0) {
        add_title(&title, at, count);
        s.title = buf_str(&title);
        s.id = at[0].session_id;
        s.created_at = at[0].timestamp;
        s.last_used = at[count - 1].timestamp;
        s.model = newest_model(at, count, &model);
    }
    if (x->format->session)
        x->format->session(x, &s);
    rc = deliver(x, e);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = export_line(x, &at[i], e);
    if (rc == 0 && x->format->session_end)
        x->format->session_end(x, &s);
    if (rc == 0)
        rc = deliver(x, e);
    x->sessions++;
    buf_release(&title);
    buf_release(&model);
    return rc;
}

/* ---- for formats ---- */

void export_add_time(struct buf *out, struct str timestamp)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t us;

    if (clock_parse_iso(timestamp, &us)) {
        clock_add_iso(&text, us);
        text.data[10] = ' ';
        buf_add(out, text.data, 19);
    } else {
        export_add_label(out, timestamp);
    }
    buf_release(&text);
}

void export_add_times(struct buf *out, const struct export_session *s)
{
    struct buf from = BUF_INIT(BUF_LINE), until = BUF_INIT(BUF_LINE);

    export_add_time(&from, s->created_at);
    export_add_time(&until, s->last_used);
    buf_add_str(out, buf_str(&from));
    if (!str_eq(buf_str(&from), buf_str(&until))) {
        buf_add_c(out, " to ");
        buf_add_str(out, buf_str(&until));
    }
    buf_release(&from);
    buf_release(&until);
}

void export_add_label(struct buf *out, struct str text)
{
    vis_add_line(out, text, false);
}

void export_add_list(struct buf *out, const struct message *m, enum field f)
{
    struct json_iter it = json_iter(m->field[f]);
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool first = true;

    while (!it.object && json_next(&it)) {
        struct str text = json_text(it.value, &scratch);

        if (text.n == 0)
            continue;
        if (!first)
            buf_add_c(out, ", ");
        export_add_label(out, text);
        first = false;
    }
    buf_release(&scratch);
}

struct str export_finish(const struct message *m, struct buf *scratch)
{
    struct str finish = message_text(m, FIELD_FINISH_REASON, scratch);

    if (finish.n == 0 || str_eq_c(finish, "stop") || str_eq_c(finish, "tool_calls"))
        return STR_NONE;
    return finish;
}
