#include "convert/export_txt.h"

#include "chathist/base/json.h"

static void session(struct export *x, const struct export_session *s)
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

static void add_calls(struct buf *out, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct message_call call;

    while (message_next_call(&it, &call, &args)) {
        buf_add_c(out, "[tool call] ");
        export_add_label(out, json_text(call.name, &scratch));
        buf_add_byte(out, ' ');
        export_add_label(out, call.args);
        buf_add_byte(out, '\n');
    }
    buf_release(&scratch);
    buf_release(&args);
}

static void message(struct export *x, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str content = message_content(m, &scratch), finish;

    buf_add_byte(&x->out, '[');
    export_add_label(&x->out, m->role_text);
    buf_add_c(&x->out, "] ");
    export_add_time(&x->out, m->timestamp);
    buf_add_byte(&x->out, '\n');
    buf_add_str(&x->out, content);
    if (content.n > 0 && content.p[content.n - 1] != '\n')
        buf_add_byte(&x->out, '\n');
    add_calls(&x->out, m);
    finish = export_finish(m, &scratch);
    if (finish.n > 0) {
        buf_add_c(&x->out, "[ended] ");
        export_add_label(&x->out, finish);
        buf_add_byte(&x->out, '\n');
    }
    buf_add_byte(&x->out, '\n');
    buf_release(&scratch);
}

const struct export_format export_txt = {
    .name = "txt",
    .suffix = "txt",
    .grows = true,
    .session = session,
    .message = message,
};
