#include "port/import_codex.h"

#include "base/json.h"
#include "base/path.h"

#define FORMAT "codex"

struct reader {
    struct source *source;
    struct import_sink *sink;
    struct import_message answer; /* being joined, when its origin is not empty */
    struct import_message other;
    struct buf session; /* as Codex calls it; empty until it is known */
    struct buf model;
    struct buf provider;
    struct buf began; /* when the session began, JSON */
    struct str time;  /* of the record, JSON */
    bool subagent;
};

static bool is_text(struct str value, const char *text)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool is = str_eq_c(json_text(value, &scratch), text);

    buf_release(&scratch);
    return is;
}

static int flush(struct reader *r, struct err *e)
{
    int result = 0;

    if (r->answer.origin.len > 0)
        result = import_give(r->sink, &r->answer, e);
    import_message_clear(&r->answer, ROLE_ASSISTANT);
    return result;
}

/* What every message of this line has; `part` gets the line's number. A rollout without a session
 * has the name of its file. */
static void begin(struct reader *r, struct import_message *m, enum role role, struct buf *part)
{
    struct str name = str_of(path_base(r->source->name));

    if (str_ends(name, STR(".jsonl")))
        name.n -= STR(".jsonl").n;
    import_message_clear(m, role);
    import_set_session(m, FORMAT, r->session.len > 0 ? buf_str(&r->session) : name);
    buf_add_number(part, r->source->number);
    import_set_part(m, buf_str(part));
    if (json_is_null(r->time))
        import_set_time(m, buf_str(&r->began));
    import_set_time(m, r->time);
}

/* The answer that this line belongs to, begun if need be; NULL when the line is in the history. */
static struct import_message *answer(struct reader *r)
{
    struct buf part = BUF_INIT(BUF_SMALL);
    struct import_message *m = &r->answer;

    begin(r, &r->other, ROLE_ASSISTANT, &part);
    if (r->sink->known(r->sink->arg, buf_str(&r->other.session), buf_str(&part))) {
        m = NULL;
    } else if (m->origin.len > 0) {
        import_add_part(m, buf_str(&part));
    } else {
        buf_clear(&part);
        begin(r, m, ROLE_ASSISTANT, &part);
        buf_add_str(&m->model, buf_str(&r->model));
        buf_add_str(&m->provider, buf_str(&r->provider));
    }
    buf_release(&part);
    return m;
}

/* ---- response items ---- */

/* Text that Codex puts there in the user's name. */
static bool is_context(struct str text)
{
    static const char *const beginnings[] = {"<environment_context>", "<user_instructions>",
                                             "# AGENTS.md instructions for ", "<turn_aborted>"};

    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (str_starts(text, str_of(beginnings[i])))
            return true;
    return false;
}

static int take_message(struct reader *r, struct str item, struct err *e)
{
    struct str role = json_get(item, "role"), content = json_get(item, "content");
    struct buf part = BUF_INIT(BUF_SMALL);
    struct import_message *m;
    int result = 0;

    if (is_text(role, "assistant")) {
        m = answer(r);
        if (m)
            import_add_content(m, content);
    } else if (is_text(role, "user")) {
        result = flush(r, e);
        begin(r, &r->other, ROLE_USER, &part);
        import_add_content(&r->other, content);
        if (result == 0 && !is_context(buf_str(&r->other.text)))
            result = import_give(r->sink, &r->other, e);
    }
    buf_release(&part);
    return result;
}

static void take_call(struct reader *r, struct str item, struct str name, struct str args)
{
    struct buf id = BUF_INIT(BUF_SMALL), own_name = BUF_INIT(BUF_SMALL),
               wrapped = BUF_INIT(BUF_LINE);
    struct str call_id = json_text(json_get(item, "call_id"), &id);
    struct import_message *m = answer(r);

    if (m && !name.p) {
        /* A custom tool takes a text, not an object. */
        name = json_text(json_get(item, "name"), &own_name);
        args = json_get(item, "input");
        if (!json_is_null(args)) {
            buf_add_c(&wrapped, "{\"input\":");
            json_add_compact(&wrapped, args);
            buf_add_byte(&wrapped, '}');
            args = buf_str(&wrapped);
        } else {
            args = json_get(item, "arguments");
        }
    }
    if (m)
        import_add_call(m, call_id, name, args);
    buf_release(&id);
    buf_release(&own_name);
    buf_release(&wrapped);
}

static int take_output(struct reader *r, struct str item, struct err *e)
{
    struct str output = json_get(item, "output");
    struct buf part = BUF_INIT(BUF_SMALL);
    int result = flush(r, e);

    begin(r, &r->other, ROLE_TOOL, &part);
    import_set_text(&r->other.call_id, json_get(item, "call_id"));
    /* It was an object, `{"content","success"}`, for some time. */
    import_add_content(&r->other,
                       json_type(output) == JSON_OBJECT ? json_get(output, "content") : output);
    if (result == 0)
        result = import_give(r->sink, &r->other, e);
    buf_release(&part);
    return result;
}

static int take_item(struct reader *r, struct str item, struct err *e)
{
    struct str type = json_get(item, "type");

    if (is_text(type, "message"))
        return take_message(r, item, e);
    if (is_text(type, "function_call") || is_text(type, "custom_tool_call"))
        take_call(r, item, STR_NONE, STR_NONE);
    else if (is_text(type, "local_shell_call"))
        take_call(r, item, STR("local_shell"), json_get(item, "action"));
    else if (is_text(type, "function_call_output") || is_text(type, "custom_tool_call_output"))
        return take_output(r, item, e);
    return 0;
}

/* ---- the other records ---- */

static void take_meta(struct reader *r, struct str meta)
{
    if (r->session.len > 0)
        return;
    import_set_text(&r->session, json_get(meta, "session_id"));
    import_set_text(&r->session, json_get(meta, "id"));
    import_set_text(&r->provider, json_get(meta, "model_provider"));
    buf_add_str(&r->began, json_get(meta, "timestamp"));
    r->subagent = !json_is_null(json_get(json_get(meta, "source"), "subagent"));
}

static int take_compacted(struct reader *r, struct str item, struct err *e)
{
    struct buf part = BUF_INIT(BUF_SMALL);
    int result = flush(r, e);

    begin(r, &r->other, ROLE_SYSTEM, &part);
    import_add_content(&r->other, json_get(item, "message"));
    if (result == 0)
        result = import_give(r->sink, &r->other, e);
    buf_release(&part);
    return result;
}

static void take_event(struct reader *r, struct str event)
{
    struct str usage = json_get(json_get(event, "info"), "last_token_usage");
    int64_t n;

    if (!is_text(json_get(event, "type"), "token_count") || r->answer.origin.len == 0)
        return;
    if (json_int(json_get(usage, "input_tokens"), &n) && n >= 0)
        r->answer.input_tokens = n;
    if (json_int(json_get(usage, "output_tokens"), &n) && n >= 0)
        r->answer.output_tokens = n;
}

static int take(void *arg, struct str record, struct err *e)
{
    static const char *const keys[] = {"timestamp", "type", "payload", "record_type", "id"};
    enum { TIME, TYPE, PAYLOAD, RECORD_TYPE, ID, COUNT };
    struct reader *r = arg;
    struct str value[COUNT];

    json_pick(record, keys, value, COUNT);
    r->time = value[TIME];
    if (json_is_null(value[TYPE])) {
        if (json_type(value[ID]) == JSON_STRING)
            take_meta(r, record);
        else if (json_is_null(value[RECORD_TYPE]))
            r->sink->bad(r->sink->arg, r->source->number, "no 'type'");
        return 0;
    }
    if (is_text(value[TYPE], "session_meta"))
        take_meta(r, value[PAYLOAD]);
    else if (r->subagent && !r->sink->subagents)
        return 0;
    else if (is_text(value[TYPE], "response_item"))
        return take_item(r, value[PAYLOAD], e);
    else if (is_text(value[TYPE], "compacted"))
        return take_compacted(r, value[PAYLOAD], e);
    else if (is_text(value[TYPE], "turn_context"))
        import_set_text(&r->model, json_get(value[PAYLOAD], "model"));
    else if (is_text(value[TYPE], "event_msg"))
        take_event(r, value[PAYLOAD]);
    else if (json_is_null(value[PAYLOAD]))
        return take_item(r, record, e);
    return 0;
}

int import_codex(struct source *s, struct import_sink *sink, struct err *e)
{
    struct reader r = {.source = s, .sink = sink};
    int got;

    import_message_init(&r.answer);
    import_message_init(&r.other);
    buf_init(&r.session, BUF_SMALL);
    buf_init(&r.model, BUF_SMALL);
    buf_init(&r.provider, BUF_SMALL);
    buf_init(&r.began, BUF_SMALL);
    got = import_each_object(s, sink, take, &r, e);
    if (got == 0)
        got = flush(&r, e);
    import_message_release(&r.answer);
    import_message_release(&r.other);
    buf_release(&r.session);
    buf_release(&r.model);
    buf_release(&r.provider);
    buf_release(&r.began);
    return got;
}
