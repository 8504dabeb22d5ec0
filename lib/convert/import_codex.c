/*
 * import_codex - rollouts of Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl.
 *
 * Source: openai/codex, codex-rs/protocol/src/protocol.rs (RolloutLine, RolloutItem, SessionMeta,
 * CompactedItem, TurnContextItem) and codex-rs/protocol/src/models.rs (ResponseItem). A line is
 * `{"timestamp","type","payload"}`. Until September 2025 a line was only the payload of a response
 * item, after a first line with `id` and `timestamp`, and between lines `{"record_type":"state"}`.
 *
 *   - session_meta names the session. In a fork, that of the parent follows; the first one counts.
 *   - response_item: messages of the user and the assistant, calls of tools (function_call,
 *     custom_tool_call, local_shell_call) and their outputs. Consecutive text and calls of a
 *     response are one message. Messages that Codex itself sends are not imported: those of the
 *     roles developer and system, and user messages with the environment or the instructions of a
 *     project.
 *   - compacted: a summary that replaces earlier messages becomes a system message.
 *   - turn_context has the model.
 *   - event_msg: thread_name_updated has the name that the user gave. token_count has the usage of
 *     the response before it. user_message repeats a prompt; it is imported if no response item has
 *     the prompt. thread_rolled_back removes the last `num_turns` prompts and everything after
 *     them: the next message of the rollout then has `replaces` with their ids. Other events repeat
 *     response items.
 *   - Reasoning, searches, generated images, encrypted summaries, lists of tools and messages
 *     between agents are not imported. Records and items of an unknown type are reported.
 *
 * Records have no ids, so a part of an origin is the number of the line, which does not change
 * because rollouts only grow. Rollouts of subagents are imported only if they are wanted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "convert/import_reader.h"

#define FORMAT "codex"

/* A line of the rollout that belongs to a message. */
struct said {
    size_t number;
    bool prompt;
};

struct reader {
    struct source *source;
    struct import_message answer; /* its lines are being joined if its origin is not empty */
    struct import_message other;
    struct buf session; /* its id in Codex; empty until it is known */
    struct buf model;
    struct buf provider;
    struct buf began; /* beginning of the session, JSON */
    struct str time;  /* of the record, JSON */
    bool subagent;
    struct said *said; /* in file order; from said_count on those that were rolled back */
    size_t said_count, said_end, said_cap;
    bool asked, ever_asked; /* a response item had a prompt: since the last response, or ever */
    struct buf prompt;      /* of an event, while a response item may still repeat it */
    size_t prompt_number;
    struct buf prompt_time; /* JSON */
    struct buf title;
};

/* Gives the response whose lines were joined. */
static int give_answer(struct reader *r, struct err *e)
{
    int result = 0;

    if (r->answer.origin.len > 0)
        result = import_give(r->source, &r->answer, e);
    import_message_clear(&r->answer, ROLE_ASSISTANT);
    return result;
}

/* ---- turns that were rolled back ---- */

/* Returns the part of an origin for a line; `text` has room for it. */
static struct str part_of(size_t number, char text[static 24])
{
    return (struct str){text, (size_t)snprintf(text, 24, "%zu", number)};
}

static bool is_known(const struct reader *r, const struct import_message *m, size_t number,
                     struct buf *id)
{
    char text[24];

    return import_knows(r->source, buf_str(&m->session), part_of(number, text), id);
}

/* Notes that the current line belongs to m. The first new message after a rollback gets the ids of
 * the messages that were rolled back. */
static void note_said(struct reader *r, struct import_message *m)
{
    size_t number = r->source->number;
    struct buf id = BUF_INIT(BUF_SMALL);

    for (size_t i = r->said_count; i < r->said_end && !is_known(r, m, number, NULL); i++) {
        buf_clear(&id);
        if (is_known(r, m, r->said[i].number, &id))
            import_add_id(&m->replaces, buf_str(&id));
    }
    buf_release(&id);
    r->said = mem_grow(r->said, &r->said_cap, r->said_count + 1, sizeof *r->said);
    r->said[r->said_count++] = (struct said){number, m->role == ROLE_USER};
    r->said_end = r->said_count;
}

static int roll_back(struct reader *r, struct str number, struct err *e)
{
    size_t at = r->said_count;
    int64_t turns;

    if (give_answer(r, e) < 0)
        return -1;
    if (!json_int(number, &turns))
        turns = 0;
    while (turns > 0 && at > 0)
        turns -= r->said[--at].prompt;
    r->said_count = at;
    return 0;
}

/* Gives r->other, unless it is empty. */
static int give(struct reader *r, struct err *e)
{
    if (import_is_empty(&r->other))
        return 0;
    note_said(r, &r->other);
    return import_give(r->source, &r->other, e);
}

/* Begins a message of the current line. A rollout without an id gets the name of its file. */
static void begin(struct reader *r, struct import_message *m, enum role role)
{
    char text[24];

    import_message_clear(m, role);
    import_set_session(m, FORMAT,
                       r->session.len > 0 ? buf_str(&r->session) : source_stem(r->source));
    import_set_part(m, part_of(r->source->number, text));
    if (json_is_null(r->time))
        import_set_time(m, buf_str(&r->began));
    import_set_time(m, r->time);
}

/* Returns the response that the current line belongs to, or NULL if the history has the line. */
static struct import_message *answer_of_line(struct reader *r)
{
    struct import_message *m = &r->answer;
    char text[24];

    begin(r, &r->other, ROLE_ASSISTANT);
    if (import_skips(r->source, buf_str(&r->other.session), part_of(r->source->number, text))) {
        note_said(r, &r->other);
        m = NULL;
    } else if (m->origin.len > 0) {
        import_add_part(m, part_of(r->source->number, text));
    } else {
        begin(r, m, ROLE_ASSISTANT);
        buf_add_str(&m->model, buf_str(&r->model));
        buf_add_str(&m->provider, buf_str(&r->provider));
    }
    if (m)
        note_said(r, m);
    r->asked = false;
    return m;
}

/* ---- response items ---- */

/* Returns whether Codex wrote this text in the user's name. */
static bool is_context(struct str text)
{
    static const char *const beginnings[] = {"<environment_context>", "<user_instructions>",
                                             "# AGENTS.md instructions for ", "<turn_aborted>"};

    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (str_starts(text, str_of(beginnings[i])))
            return true;
    return false;
}

/* Gives the prompt of an event if one waits. */
static int give_prompt(struct reader *r, struct err *e)
{
    size_t number = r->source->number;
    struct str time = r->time;
    int result = 0;

    if (r->prompt.len > 0 && give_answer(r, e) < 0)
        result = -1;
    if (r->prompt.len > 0 && result == 0) {
        r->source->number = r->prompt_number;
        r->time = buf_str(&r->prompt_time);
        begin(r, &r->other, ROLE_USER);
        import_add_text(&r->other, buf_str(&r->prompt));
        result = give(r, e);
        r->source->number = number;
        r->time = time;
    }
    buf_clear(&r->prompt);
    return result;
}

static int take_prompt(struct reader *r, struct str content, struct err *e)
{
    int result = give_answer(r, e);

    begin(r, &r->other, ROLE_USER);
    import_add_content(&r->other, content);
    if (result == 0 && !is_context(buf_str(&r->other.text))) {
        r->asked = r->ever_asked = true;
        buf_clear(&r->prompt);
        result = give(r, e);
    }
    return result;
}

static void take_answer(struct reader *r, struct str content)
{
    struct import_message *m = answer_of_line(r);

    if (m)
        import_add_content(m, content);
}

static void take_call(struct reader *r, struct str item, struct str name, struct str args)
{
    struct buf id = BUF_INIT(BUF_SMALL), own_name = BUF_INIT(BUF_SMALL),
               wrapped = BUF_INIT(BUF_LINE);
    struct str call_id = json_text(json_get(item, "call_id"), &id);
    struct import_message *m = answer_of_line(r);

    if (m && !name.p) {
        /* The input of a custom tool is text instead of an object. */
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
    int result = give_answer(r, e);

    begin(r, &r->other, ROLE_TOOL);
    import_set_text(&r->other.call_id, json_get(item, "call_id"));
    /* Some versions wrote an object: `{"content","success"}`. */
    import_add_content(&r->other,
                       json_type(output) == JSON_OBJECT ? json_get(output, "content") : output);
    if (result == 0)
        result = give(r, e);
    return result;
}

/* Returns whether items of this type are known to have no message. */
static bool is_left_out(struct str type)
{
    static const char *const types[] = {"reasoning",
                                        "web_search_call",
                                        "tool_search_call",
                                        "tool_search_output",
                                        "additional_tools",
                                        "image_generation_call",
                                        "compaction",
                                        "compaction_summary",
                                        "ghost_snapshot",
                                        "compaction_trigger",
                                        "context_compaction",
                                        "agent_message",
                                        NULL};

    return import_is_one_of(type, types);
}

static int take_item(struct reader *r, struct str item, struct err *e)
{
    struct str type = json_get(item, "type"), role = json_get(item, "role");
    bool message = json_is_text(type, "message"), local = json_is_text(type, "local_shell_call");

    if (is_left_out(type) ||
        (message && !json_is_text(role, "user") && !json_is_text(role, "assistant")))
        return 0;
    if (message && json_is_text(role, "user"))
        return take_prompt(r, json_get(item, "content"), e);
    if (give_prompt(r, e) < 0)
        return -1;
    if (message)
        take_answer(r, json_get(item, "content"));
    else if (local)
        take_call(r, item, STR("local_shell"), json_get(item, "action"));
    else if (json_is_text(type, "function_call") || json_is_text(type, "custom_tool_call"))
        take_call(r, item, STR_NONE, STR_NONE);
    else if (json_is_text(type, "function_call_output") ||
             json_is_text(type, "custom_tool_call_output"))
        return take_output(r, item, e);
    else
        import_bad(r->source, "an item of an unknown type");
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
    int result = give_prompt(r, e) < 0 ? -1 : give_answer(r, e);

    begin(r, &r->other, ROLE_SYSTEM);
    import_add_content(&r->other, json_get(item, "message"));
    if (result == 0)
        result = give(r, e);
    return result;
}

static void take_usage(struct reader *r, struct str usage)
{
    struct usage *u = &r->answer.usage;

    if (r->answer.origin.len == 0)
        return;
    usage_read(u, USAGE_INPUT, json_get(usage, "input_tokens"));
    usage_read(u, USAGE_OUTPUT, json_get(usage, "output_tokens"));
    usage_read(u, USAGE_CACHE_READ, json_get(usage, "cached_input_tokens"));
    usage_read(u, USAGE_REASONING, json_get(usage, "reasoning_output_tokens"));
}

static int take_event(struct reader *r, struct str event, struct err *e)
{
    struct str type = json_get(event, "type");
    struct buf text = BUF_INIT(BUF_LINE);
    int result = 0;

    if (json_is_text(type, "token_count")) {
        take_usage(r, json_get(json_get(event, "info"), "last_token_usage"));
    } else if (json_is_text(type, "thread_rolled_back")) {
        result = give_prompt(r, e);
        if (result == 0)
            result = roll_back(r, json_get(event, "num_turns"), e);
        r->asked = false;
    } else if (json_is_text(type, "thread_name_updated")) {
        buf_clear(&r->title);
        (void)json_decode(json_get(event, "thread_name"), &r->title);
    } else if (json_is_text(type, "user_message") && !r->asked) {
        json_decode(json_get(event, "message"), &text);
        if (!is_context(buf_str(&text))) {
            result = give_prompt(r, e);
            buf_add_str(&r->prompt, buf_str(&text));
            r->prompt_number = r->source->number;
            buf_set(&r->prompt_time, r->time);
        }
    }
    buf_release(&text);
    return result;
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
            import_bad(r->source, "no 'type'");
        return 0;
    }
    if (json_is_text(value[TYPE], "session_meta"))
        take_meta(r, value[PAYLOAD]);
    else if (r->subagent && !r->source->subagents)
        return 0;
    else if (json_is_text(value[TYPE], "response_item"))
        return take_item(r, value[PAYLOAD], e);
    else if (json_is_text(value[TYPE], "compacted"))
        return take_compacted(r, value[PAYLOAD], e);
    else if (json_is_text(value[TYPE], "turn_context"))
        import_set_text(&r->model, json_get(value[PAYLOAD], "model"));
    else if (json_is_text(value[TYPE], "event_msg"))
        return take_event(r, value[PAYLOAD], e);
    else if (json_is_null(value[PAYLOAD]))
        return take_item(r, record, e);
    else if (!json_is_text(value[TYPE], "world_state"))
        import_bad(r->source, "a record of an unknown type");
    return 0;
}

/* Gives the name that the user gave to the session. */
static int give_title(struct reader *r, struct err *e)
{
    int result;

    if (r->title.len == 0)
        return 0;
    begin(r, &r->other, ROLE_USER);
    result = import_give_title(r->source, buf_str(&r->other.session), buf_str(&r->title), e);
    import_message_clear(&r->other, ROLE_USER);
    return result;
}

static int read_codex(struct source *s, struct err *e)
{
    struct reader r = {.source = s};
    int got;

    import_message_init(&r.answer);
    import_message_init(&r.other);
    buf_init(&r.session, BUF_SMALL);
    buf_init(&r.model, BUF_SMALL);
    buf_init(&r.provider, BUF_SMALL);
    buf_init(&r.began, BUF_SMALL);
    buf_init(&r.prompt, BUF_LINE);
    buf_init(&r.prompt_time, BUF_SMALL);
    buf_init(&r.title, BUF_LINE);
    got = import_each_object(s, source_line, take, &r, e);
    /* If response items have the prompts, the one with the last prompt may not be written yet. */
    if (got == 0 && !r.ever_asked)
        got = give_prompt(&r, e);
    if (got == 0)
        got = give_answer(&r, e);
    if (got == 0)
        got = give_title(&r, e);
    import_message_release(&r.answer);
    import_message_release(&r.other);
    buf_release(&r.session);
    buf_release(&r.model);
    buf_release(&r.provider);
    buf_release(&r.began);
    buf_release(&r.prompt);
    buf_release(&r.prompt_time);
    buf_release(&r.title);
    free(r.said);
    return got;
}

/* ---- the format ---- */

static bool is_codex_record(struct str object)
{
    return (import_has_string(object, "type") &&
            json_type(json_get(object, "payload")) == JSON_OBJECT) ||
           import_has_string(object, "record_type") ||
           (import_has_string(object, "id") && import_has_string(object, "timestamp") &&
            json_get(object, "instructions").p);
}

/* The first record may contain long instructions. */
static bool is_codex(struct str head)
{
    return import_some_line(head, is_codex_record) ||
           (str_find(head, STR("\"type\":\"session_meta\",\"payload\":{")) &&
            str_starts(str_trim(head), STR("{\"")));
}

const struct import_format import_codex = {"codex", is_codex, read_codex};
