#include "chathist/convert/export.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/title.h"

/* A title has at most this many code points, from the first TITLE_LOOK of its message. */
#define TITLE_MAX 80
#define TITLE_LOOK ((size_t)2000)
/* Enough of it unless most of it is white space. */
#define TITLE_USUAL ((size_t)4 * TITLE_MAX)
/* The sink gets at least this much at once, except at the end. */
#define CHUNK ((size_t)1 << 16)

/* ---- the traversal ---- */

/* Gives the text to the sink if there are at least n bytes of it. */
static int deliver(struct export *x, size_t n, struct err *e)
{
    int rc = 0;

    if (x->out.overflow)
        return err_set(e, ERR_FAILURE, "cannot export a message as %s: it is too long",
                       x->format->name);
    if (x->out.len < n || !x->sink)
        return 0;
    rc = x->sink(x->arg, buf_str(&x->out), e);
    buf_clear(&x->out);
    return rc;
}

int export_begin(struct export *x, const struct export_format *format, export_sink *sink, void *arg,
                 struct err *e)
{
    *x = (struct export){.format = format, .sink = sink, .arg = arg};
    buf_init(&x->out, 8 * BUF_LINE);
    if (format->begin)
        format->begin(x);
    return deliver(x, CHUNK, e);
}

int export_line(struct export *x, const struct message *m, struct err *e)
{
    if (x->format->message)
        x->format->message(x, m);
    x->messages++;
    return deliver(x, CHUNK, e);
}

int export_end(struct export *x, struct err *e)
{
    if (x->format->end)
        x->format->end(x);
    return deliver(x, 1, e);
}

void export_part(struct export *part, const struct export_format *format)
{
    *part = (struct export){.format = format, .sessions = 1, .messages = 1};
    buf_init(&part->out, 8 * BUF_LINE);
}

int export_add_part(struct export *x, struct export *part, struct err *e)
{
    int rc = deliver(x, 1, e);

    if (rc == 0 && part->out.len > 0)
        rc = x->sink(x->arg, buf_str(&part->out), e);
    x->sessions += part->sessions - 1;
    x->messages += part->messages - 1;
    buf_clear(&part->out);
    part->sessions = part->messages = 1;
    return rc;
}

void export_release(struct export *x)
{
    buf_release(&x->out);
}

/* ---- the facts of a session ---- */

/* Returns the first prompt with text, or the first message if no prompt has any. */
static const struct message *find_titled(const struct message *at, size_t count,
                                         struct buf *scratch)
{
    for (size_t i = 0; i < count; i++)
        if (at[i].role == ROLE_USER && str_trim(message_content(&at[i], scratch)).n > 0)
            return &at[i];
    return at;
}

static void add_title_line(struct buf *out, const struct message *at, size_t count)
{
    struct buf scratch = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    struct str text, cut;

    text = str_trim(message_content(find_titled(at, count, &scratch), &scratch));
    export_add_label(&line, utf8_first(text, TITLE_USUAL));
    cut = utf8_first(buf_str(&line), TITLE_MAX);
    if (cut.n == line.len) {
        buf_clear(&line);
        export_add_label(&line, utf8_first(text, TITLE_LOOK));
        cut = utf8_first(buf_str(&line), TITLE_MAX);
    }
    buf_add_str(out, cut);
    if (cut.n < line.len)
        buf_add_c(out, "…");
    buf_release(&scratch);
    buf_release(&line);
}

/* Adds the title that the session was given. */
static void add_given_title(struct buf *out, const struct export *x, const struct message *at,
                            size_t count)
{
    const struct message *line = x->title_line ? x->title_line : titles_find_line(at, count);
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (x->title.n > 0)
        export_add_label(out, x->title);
    else if (line)
        export_add_label(out, message_title(line, &scratch));
    buf_release(&scratch);
}

int export_session(struct export *x, const struct message *at, size_t count, struct err *e)
{
    struct buf title = BUF_INIT(BUF_SMALL), model = BUF_INIT(BUF_LINE);
    struct export_session s = {.at = at, .count = count};
    int rc;

    if (count > 0) {
        add_given_title(&title, x, at, count);
        s.named = title.len > 0;
        if (!s.named)
            add_title_line(&title, at, count);
        s.title = buf_str(&title);
        s.id = at[0].session_id;
        s.created_at = at[0].timestamp;
        s.last_used = at[count - 1].timestamp;
        for (size_t i = count; i > 0 && s.model.n == 0; i--)
            s.model = message_text(&at[i - 1], FIELD_MODEL, &model);
    }
    if (x->format->session)
        x->format->session(x, &s);
    rc = deliver(x, CHUNK, e);
    if (rc == 0 && x->title_line && x->format->keeps_title)
        rc = export_line(x, x->title_line, e);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = export_line(x, &at[i], e);
    x->sessions++;
    x->title = STR_NONE;
    x->title_line = NULL;
    x->listed = NULL;
    buf_release(&title);
    buf_release(&model);
    return rc;
}

/* ---- helpers for formats ---- */

/* A leap second becomes the second after it. */
bool export_is_own_time(struct str time)
{
    return time.n == strlen("2024-06-27T15:00:00.000000+00:00") && str_ends(time, STR("+00:00")) &&
           time.p[17] != '6';
}

void export_add_time(struct buf *out, struct str timestamp)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t us;

    if (!time_parse_iso(timestamp, &us)) {
        export_add_label(out, timestamp);
        return;
    }
    if (!export_is_own_time(timestamp)) {
        time_add_iso(&text, us);
        timestamp = buf_str(&text);
    }
    buf_add(out, timestamp.p, strlen("2024-06-27"));
    buf_add_byte(out, ' ');
    buf_add(out, timestamp.p + strlen("2024-06-27T"), strlen("15:00:00"));
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

struct str export_finish(const struct message *m, struct buf *scratch)
{
    struct str finish = message_text(m, FIELD_FINISH_REASON, scratch);

    if (finish.n == 0 || str_eq_c(finish, "stop") || str_eq_c(finish, "tool_calls"))
        return STR_NONE;
    return finish;
}

static void add_detail(struct buf *out, const char *what, struct str text, bool safe)
{
    buf_addf(out, "[%s] ", what);
    vis_add_line(out, text, safe);
    buf_add_byte(out, '\n');
}

void export_add_details(struct buf *out, const struct message *m, bool safe)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct message_call call;
    struct hash_map urls = {0};
    struct str finish;

    while (message_next_call(&it, &call, &args)) {
        buf_add_c(out, "[tool call] ");
        vis_add_line(out, json_text(call.name, &scratch), safe);
        buf_add_byte(out, ' ');
        vis_add_line(out, call.args, safe);
        buf_add_byte(out, '\n');
    }
    message_sources(m->field[FIELD_CITATIONS], &urls);
    for (size_t i = 0; i < urls.count; i++)
        add_detail(out, "source", urls.entries[i].key, safe);
    finish = export_finish(m, &scratch);
    if (finish.n > 0)
        add_detail(out, "ended", finish, safe);
    hash_map_release(&urls);
    buf_release(&scratch);
    buf_release(&args);
}

/* ---- json: `{"messages":[...]}` ---- */

static void json_begin(struct export *x)
{
    buf_add_c(&x->out, "{\"messages\":[");
}

/* Appends the stored line. Every message has `tool_calls` and `tool_call_id`: null if the line has
 * none. */
static void json_message(struct export *x, const struct message *m)
{
    static const enum field always[] = {FIELD_TOOL_CALLS, FIELD_TOOL_CALL_ID};

    buf_add_c(&x->out, x->messages > 0 ? ",\n" : "\n");
    json_add_compact(&x->out, m->line);
    buf_truncate(&x->out, x->out.len - 1); /* the brace */
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (m->field[always[i]].n == 0) {
            json_add_key(&x->out, field_name(always[i]));
            buf_add_c(&x->out, "null");
        }
    }
    buf_add_byte(&x->out, '}');
}

static void json_end(struct export *x)
{
    buf_add_c(&x->out, x->messages > 0 ? "\n]}\n" : "]}\n");
}

const struct export_format export_json = {
    .name = "json",
    .suffix = "json",
    .json = true,
    .keeps_title = true,
    .begin = json_begin,
    .message = json_message,
    .end = json_end,
};

/* ---- jsonl: the stored lines, byte for byte ---- */

static void jsonl_message(struct export *x, const struct message *m)
{
    buf_add_str(&x->out, m->line);
    buf_add_byte(&x->out, '\n');
}

const struct export_format export_jsonl = {
    .name = "jsonl",
    .suffix = "jsonl",
    .json = true,
    .lines = true,
    .grows = true,
    .message = jsonl_message,
};

/* ---- txt: text as hist-show prints it, with a title for each session ---- */

static void txt_session(struct export *x, const struct export_session *s)
{
    buf_add_c(&x->out, "=== ");
    buf_add_str(&x->out, s->title);
    buf_add_c(&x->out, "\n=== session ");
    export_add_label(&x->out, s->id);
    buf_add_c(&x->out, ", ");
    export_add_times(&x->out, s);
    if (s->model.n > 0) {
        buf_add_c(&x->out, ", ");
        export_add_label(&x->out, s->model);
    }
    buf_add_c(&x->out, "\n\n");
}

static void txt_message(struct export *x, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str content = message_content(m, &scratch);

    buf_add_byte(&x->out, '[');
    export_add_label(&x->out, m->role_text);
    buf_add_c(&x->out, "] ");
    export_add_time(&x->out, m->timestamp);
    buf_add_byte(&x->out, '\n');
    buf_add_str(&x->out, content);
    if (content.n > 0 && content.p[content.n - 1] != '\n')
        buf_add_byte(&x->out, '\n');
    export_add_details(&x->out, m, false);
    buf_add_byte(&x->out, '\n');
    buf_release(&scratch);
}

const struct export_format export_txt = {
    .name = "txt",
    .suffix = "txt",
    .grows = true,
    .session = txt_session,
    .message = txt_message,
};
