#include "chathist/llm/sse.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

void sse_init(struct sse *s, sse_fn *fn, void *arg)
{
    memset(s, 0, sizeof *s);
    s->fn = fn;
    s->arg = arg;
    buf_init(&s->line, SSE_EVENT_MAX);
    buf_init(&s->event, SSE_EVENT_MAX);
    buf_init(&s->id, BUF_SMALL);
    buf_init(&s->last_id, BUF_SMALL);
    s->retry_ms = -1;
    buf_init(&s->data, SSE_EVENT_MAX + 1); /* one more for the last LF, which does not count */
}

void sse_release(struct sse *s)
{
    buf_release(&s->line);
    buf_release(&s->event);
    buf_release(&s->data);
    buf_release(&s->id);
    buf_release(&s->last_id);
}

static int event_too_long(struct err *e)
{
    return err_set(e, ERR_INCOMPLETE,
                   "answer is incomplete: an event of the stream is longer than %zu MiB",
                   SSE_EVENT_MAX >> 20);
}

/* A blank line ends the event. Each line of its data ends in an LF. An event without data is
 * ignored, but its ID counts. */
static int dispatch(struct sse *s, struct err *e)
{
    int rc = 0;

    buf_set(&s->last_id, buf_str(&s->id));
    if (s->data.len > 0) {
        struct str event = s->event.len > 0 ? buf_str(&s->event) : STR("message");

        rc = s->fn(s->arg, event, (struct str){s->data.data, s->data.len - 1}, e);
        s->done = rc == 1;
    }
    buf_clear(&s->event);
    buf_clear(&s->data);
    return rc < 0 ? -1 : 0;
}

static int read_field(struct sse *s, struct str name, struct str value, struct err *e)
{
    struct str number;
    int64_t ms;

    if (str_eq_c(name, "data")) {
        utf8_add_repaired(&s->data, value);
        buf_add_byte(&s->data, '\n');
    } else if (str_eq_c(name, "event")) {
        buf_clear(&s->event);
        utf8_add_repaired(&s->event, value);
    } else if (str_eq_c(name, "id") && !memchr(value.n ? value.p : "", '\0', value.n)) {
        buf_set(&s->id, value);
    } else if (str_eq_c(name, "retry") && json_check(value, &number, NULL) &&
               json_int(number, &ms) && ms >= 0 && ms <= INT32_MAX) {
        s->retry_ms = ms;
    }
    return s->data.overflow || s->event.overflow ? event_too_long(e) : 0;
}

/* Reads a complete line, given without its line end. */
static int read_stream_line(struct sse *s, struct str line, struct err *e)
{
    if (!s->started)
        line = utf8_without_bom(line);
    s->started = true;
    if (s->lines) {
        line = str_trim(line);
        if (line.n > 0 && read_field(s, STR("data"), line, e) != 0)
            return -1;
        line.n = 0;
    }
    if (line.n == 0)
        return dispatch(s, e);

    struct str value = line;
    struct str name = str_cut(&value, ':'); /* empty for a comment line */

    if (value.n > 0 && value.p[0] == ' ')
        value = str_skip(value, 1);
    return read_field(s, name, value, e);
}

/* Completes the buffered start of a line with `rest`, and reads the line. */
static int complete_line(struct sse *s, struct str rest, struct err *e)
{
    if (s->line.len == 0)
        return read_stream_line(s, rest, e);
    buf_add_str(&s->line, rest);
    if (s->line.overflow)
        return event_too_long(e);

    int rc = read_stream_line(s, buf_str(&s->line), e);

    buf_clear(&s->line);
    return rc;
}

int sse_feed(struct sse *s, struct str piece, struct err *e)
{
    const char *at = piece.p, *end = at ? at + piece.n : NULL;

    while (!s->done && at < end) {
        const char *stop;

        if (s->after_cr && *at == '\n')
            at++;
        s->after_cr = false;
        for (stop = at; stop < end && *stop != '\n' && (*stop != '\r' || s->lines);)
            stop++;

        struct str part = {at, (size_t)(stop - at)};

        if (stop == end) {
            buf_add_str(&s->line, part);
            return s->line.overflow ? event_too_long(e) : 0;
        }
        s->after_cr = *stop == '\r';
        at = stop + 1;
        if (complete_line(s, part, e) != 0)
            return -1;
    }
    return 0;
}

int sse_end(struct sse *s, struct err *e)
{
    struct str value;

    if (s->done || (s->lines && !json_check(buf_str(&s->line), &value, NULL)))
        return 0;
    if (s->line.len > 0 && complete_line(s, (struct str){"", 0}, e) != 0)
        return -1;
    return str_starts(buf_str(&s->data), STR("[DONE]")) ? dispatch(s, e) : 0;
}
