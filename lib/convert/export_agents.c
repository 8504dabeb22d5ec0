/*
 * export_agents - a session as the file in which a coding agent keeps it, so that the agent can
 * continue it: Claude Code and Codex; and ATIF, which harnesses exchange. The scripts in importers/
 * read these formats, and name their sources.
 *
 * The session gets an id that follows from its own, so that it is never mistaken for one that the
 * agent has; a message that came from Claude Code keeps the id that it has there, by which
 * hist-import knows the copy. A time keeps its microseconds. What an agent has no place for is left
 * out: images, of which only the number is stored, and thinking.
 */
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/sha256.h"
#include "chathist/base/time.h"
#include "chathist/convert/export.h"

/* The number of hexadecimal digits in a UUID, and the length of its text. */
#define UUID_DIGITS ((size_t)32)
#define UUID_TEXT ((size_t)36)

/* What the functions for the messages of a session share. Initialise with begin_work. */
struct work {
    struct buf *out;
    struct buf session;           /* its id for the agent */
    struct buf cwd, branch, time; /* the message's */
    struct buf last;              /* Claude Code: the id of the record before */
    struct buf model;             /* Codex: the one that the file names last */
    int64_t spent[USAGE_KINDS];   /* Codex: in all answers */
    struct buf scratch, other;
};

#define WORK_TEXTS(w)                                                                              \
    &(w)->session, &(w)->cwd, &(w)->branch, &(w)->time, &(w)->last, &(w)->model, &(w)->scratch,    \
        &(w)->other

/* Adds an id in the form of RFC 9562, version 8: the same for the same texts. */
static void add_uuid(struct buf *out, struct str a, struct str b)
{
    struct buf text = BUF_INIT(SIZE_MAX), hash = BUF_INIT(BUF_SMALL);

    buf_add_str(&text, a);
    buf_add_byte(&text, '\0');
    buf_add_str(&text, b);
    sha256_add(&hash, buf_str(&text));
    hash.data[12] = '8';
    hash.data[16] = 'a';
    for (size_t i = 0; i < UUID_DIGITS; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20)
            buf_add_byte(out, '-');
        buf_add_byte(out, hash.data[i]);
    }
    buf_release(&text);
    buf_release(&hash);
}

/* Replaces a text by that of a field, if the message has it. */
static void follow(struct work *w, const struct message *m, enum field f, struct buf *text)
{
    struct str value = message_text(m, f, &w->scratch);

    if (value.n > 0)
        buf_set(text, value);
}

/* Adds a time as agents write it, `2024-06-27T15:00:00.000000Z`; one that cannot be read is that of
 * the message before. */
static void follow_time(struct work *w, struct str timestamp)
{
    int64_t us;

    if (!time_parse_iso(timestamp, &us)) {
        if (w->time.len > 0)
            return;
        us = 0;
    }
    buf_clear(&w->time);
    time_add_iso(&w->time, us);
    buf_truncate(&w->time, strlen("2024-06-27T15:00:00.000000"));
    buf_add_byte(&w->time, 'Z');
}

static void begin_work(struct work *w, struct export *x, const struct export_session *s)
{
    *w = (struct work){.out = &x->out};
    struct buf *const texts[] = {WORK_TEXTS(w)};

    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_init(texts[i], BUF_LINE);
    add_uuid(&w->session, STR("session"), s->id);
    /* The session began where its first message with a directory says. */
    for (size_t i = 0; i < s->count && (w->cwd.len == 0 || w->branch.len == 0); i++) {
        if (w->cwd.len == 0)
            follow(w, &s->at[i], FIELD_CWD, &w->cwd);
        if (w->branch.len == 0)
            follow(w, &s->at[i], FIELD_GIT_BRANCH, &w->branch);
    }
    if (w->cwd.len == 0)
        buf_set(&w->cwd, x->place);
    follow_time(w, s->created_at);
}

static void end_agent_records(struct work *w)
{
    struct buf *const texts[] = {WORK_TEXTS(w)};

    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_release(texts[i]);
}

static void begin_message(struct work *w, const struct message *m)
{
    follow(w, m, FIELD_CWD, &w->cwd);
    follow(w, m, FIELD_GIT_BRANCH, &w->branch);
    follow_time(w, m->timestamp);
}

static void add_member_if(struct buf *out, const char *key, struct str text)
{
    if (text.n > 0)
        json_add_member(out, key, text);
}

static void add_count_if(struct buf *out, const char *key, int64_t n)
{
    if (n >= 0)
        json_add_member_int(out, key, n);
}

static void add_cost_if(struct buf *out, const char *key, const struct usage *u)
{
    if (u->at[USAGE_COST] < 0)
        return;
    json_add_key(out, key);
    amount_add_text(out, usage_cost(u));
}

/* Adds the arguments of a call as an object; a text that is none becomes its only member. */
static void add_call_arguments(struct buf *out, struct str args)
{
    if (json_type(args) == JSON_OBJECT) {
        json_add_compact(out, args);
    } else {
        buf_add_c(out, "{\"arguments\":");
        if (args.n > 0)
            json_add_compact(out, args);
        else
            buf_add_c(out, "null");
        buf_add_byte(out, '}');
    }
}

/* Adds a name in the form that the services demand of tools, and Anthropic of the ids of calls. */
static void add_tool_name(struct buf *out, const char *key, struct str name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    json_add_key(out, key);
    buf_add_byte(out, '"');
    for (size_t i = 0; i < name.n; i++)
        buf_add_byte(out, name.p[i] != '\0' && strchr(plain, name.p[i]) ? name.p[i] : '_');
    buf_add_byte(out, '"');
}

static bool has_calls(const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);

    return json_next(&it);
}

/* ---- claude-code: a record for each message ---- */

/* Adds the id of a record: the last of those that the message was joined from, else one of ours. */
static void add_record_id(struct work *w, const struct message *m, struct buf *out)
{
    struct str origin = message_text(m, FIELD_ORIGIN, &w->scratch);
    size_t at = origin.n > UUID_TEXT ? origin.n - UUID_TEXT : 0;
    struct str id = str_skip(origin, at);

    if (str_starts(origin, STR("claude-code:")) && at > 0 && strchr("/+", origin.p[at - 1]) &&
        id.p[8] == '-' && id.p[13] == '-' && id.p[18] == '-' && id.p[23] == '-')
        buf_add_str(out, id);
    else
        add_uuid(out, m->session_id, m->id);
}

static void begin_agent_record(struct work *w, const struct message *m, const char *type)
{
    struct buf *out = w->out;

    begin_message(w, m);
    buf_add_byte(out, '{');
    json_add_key(out, "parentUuid");
    if (w->last.len > 0)
        json_add_string(out, buf_str(&w->last));
    else
        buf_add_c(out, "null");
    buf_clear(&w->last);
    add_record_id(w, m, &w->last);
    buf_add_c(out, ",\"isSidechain\":false");
    json_add_member(out, "type", str_of(type));
    json_add_member(out, "uuid", buf_str(&w->last));
    json_add_member(out, "timestamp", buf_str(&w->time));
    json_add_member(out, "sessionId", buf_str(&w->session));
    buf_add_c(out, ",\"userType\":\"external\",\"entrypoint\":\"chathist\"");
    add_member_if(out, "cwd", buf_str(&w->cwd));
    add_member_if(out, "gitBranch", buf_str(&w->branch));
}

/* Adds why the response ended, in Anthropic's words. */
static void add_stop_reason(struct work *w, const struct message *m)
{
    static const struct {
        const char *ours, *theirs;
    } words[] = {{"stop", "end_turn"},
                 {"tool_calls", "tool_use"},
                 {"length", "max_tokens"},
                 {"content_filter", "refusal"}};
    struct str finish = message_text(m, FIELD_FINISH_REASON, &w->scratch);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq_c(finish, words[i].ours))
            finish = str_of(words[i].theirs);
    json_add_key(w->out, "stop_reason");
    if (finish.n > 0)
        json_add_string(w->out, finish);
    else
        buf_add_c(w->out, "null");
    buf_add_c(w->out, ",\"stop_sequence\":null");
}

/* Ends the message with its usage, and the record with its cost. Anthropic counts what was read from
 * the cache apart from the input. */
static void end_answer(struct work *w, const struct message *m)
{
    struct usage u;

    usage_init(&u);
    usage_read_members(&u, m->field[FIELD_USAGE]);
    if (usage_known(&u)) {
        json_add_key(w->out, "usage");
        buf_add_byte(w->out, '{');
        if (u.at[USAGE_INPUT] >= 0)
            json_add_member_int(w->out, "input_tokens", u.at[USAGE_INPUT] - usage_cached(&u));
        add_count_if(w->out, "cache_creation_input_tokens", u.at[USAGE_CACHE_WRITE]);
        add_count_if(w->out, "cache_read_input_tokens", u.at[USAGE_CACHE_READ]);
        if (u.at[USAGE_LONG_CACHE_WRITE] > 0) {
            json_add_key(w->out, "cache_creation");
            buf_add_byte(w->out, '{');
            json_add_member_int(w->out, "ephemeral_1h_input_tokens", u.at[USAGE_LONG_CACHE_WRITE]);
            buf_add_byte(w->out, '}');
        }
        add_count_if(w->out, "output_tokens", u.at[USAGE_OUTPUT]);
        buf_add_byte(w->out, '}');
    }
    buf_add_byte(w->out, '}');
    add_cost_if(w->out, "costUSD", &u);
    buf_add_c(w->out, "}\n");
}

static void claude_answer(struct work *w, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf *out = w->out;
    struct message_call call;
    struct str text = message_content(m, &w->other);
    const char *before = "";

    begin_agent_record(w, m, "assistant");
    json_add_key(out, "message");
    buf_add_c(out, "{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"msg_");
    buf_add_str(out, buf_str(&w->last));
    buf_add_byte(out, '"');
    add_member_if(out, "model", message_text(m, FIELD_MODEL, &w->scratch));
    json_add_key(out, "content");
    buf_add_byte(out, '[');
    if (str_trim(text).n > 0) {
        buf_add_c(out, "{\"type\":\"text\"");
        json_add_member(out, "text", text);
        buf_add_byte(out, '}');
        before = ",";
    }
    while (message_next_call(&it, &call, &w->other)) {
        buf_addf(out, "%s{\"type\":\"tool_use\"", before);
        add_tool_name(out, "id", json_text(call.id, &w->scratch));
        add_tool_name(out, "name", json_text(call.name, &w->scratch));
        json_add_key(out, "input");
        add_call_arguments(out, call.args);
        buf_add_byte(out, '}');
        before = ",";
    }
    buf_add_byte(out, ']');
    add_stop_reason(w, m);
    end_answer(w, m);
}

static void claude_message(struct work *w, const struct message *m)
{
    struct str call = message_text(m, FIELD_TOOL_CALL_ID, &w->scratch);
    struct buf *out = w->out;
    bool result = m->role == ROLE_TOOL && call.n > 0;
    struct str text = message_content(m, &w->other);

    if (m->role == ROLE_OTHER || (str_trim(text).n == 0 && !result && !has_calls(m)))
        return;
    if (m->role == ROLE_ASSISTANT) {
        claude_answer(w, m);
        return;
    }
    begin_agent_record(w, m, "user");
    /* Claude Code has no system prompt in its files; its summaries of what came before are sent
     * like prompts. */
    if (m->role == ROLE_SYSTEM)
        buf_add_c(out, ",\"isCompactSummary\":true");
    json_add_key(out, "message");
    buf_add_c(out, "{\"role\":\"user\"");
    json_add_key(out, "content");
    if (result) {
        buf_add_c(out, "[{\"type\":\"tool_result\"");
        add_tool_name(out, "tool_use_id", message_text(m, FIELD_TOOL_CALL_ID, &w->scratch));
        json_add_member(out, "content", text);
        buf_add_c(out, json_is_true(m->field[FIELD_FAILED]) ? ",\"is_error\":true}]" : "}]");
    } else {
        json_add_string(out, text);
    }
    buf_add_c(out, "}}\n");
}

static void claude_session(struct export *x, const struct export_session *s)
{
    struct work w;

    begin_work(&w, x, s);
    for (size_t i = 0; i < s->count; i++)
        claude_message(&w, &s->at[i]);
    if (s->named) {
        buf_add_c(w.out, "{\"type\":\"custom-title\"");
        json_add_member(w.out, "customTitle", s->title);
        json_add_member(w.out, "sessionId", buf_str(&w.session));
        buf_add_c(w.out, "}\n");
    }
    end_agent_records(&w);
}

static void claude_file_name(struct buf *out, const struct message *first)
{
    add_uuid(out, STR("session"), first->session_id);
    buf_add_c(out, ".jsonl");
}

const struct export_format export_claude_code = {
    .name = "claude-code",
    .suffix = "jsonl",
    .json = true,
    .single = true,
    .session = claude_session,
    .file_name = claude_file_name,
};

/* ---- codex: a rollout ---- */

static void begin_response_item(struct work *w, const char *kind, const char *type)
{
    buf_add_byte(w->out, '{');
    json_add_member(w->out, "timestamp", buf_str(&w->time));
    json_add_member(w->out, "type", str_of(kind));
    buf_add_c(w->out, ",\"payload\":{");
    if (type)
        json_add_member(w->out, "type", str_of(type));
}

static void end_item(struct work *w)
{
    buf_add_c(w->out, "}}\n");
}

static void add_cwd(struct work *w)
{
    json_add_member(w->out, "cwd", buf_str(&w->cwd));
}

static void codex_head(struct work *w)
{
    begin_response_item(w, "session_meta", NULL);
    json_add_member(w->out, "id", buf_str(&w->session));
    json_add_member(w->out, "timestamp", buf_str(&w->time));
    add_cwd(w);
    buf_add_c(w->out, ",\"originator\":\"chathist\",\"cli_version\":\"0.0.0\",\"source\":\"cli\"");
    if (w->branch.len > 0) {
        buf_add_c(w->out, ",\"git\":{");
        json_add_member(w->out, "branch", buf_str(&w->branch));
        buf_add_byte(w->out, '}');
    }
    end_item(w);
}

/* Says with which model the answers that follow were given. */
static void codex_context(struct work *w, const struct message *m)
{
    struct str model = message_text(m, FIELD_MODEL, &w->scratch);

    if (model.n == 0 || str_eq(model, buf_str(&w->model)))
        return;
    buf_set(&w->model, model);
    begin_response_item(w, "turn_context", NULL);
    add_cwd(w);
    json_add_member(w->out, "model", model);
    buf_add_c(w->out, ",\"approval_policy\":\"on-request\","
                      "\"sandbox_policy\":{\"type\":\"read-only\"},\"summary\":\"auto\"");
    end_item(w);
}

/* Adds a text as a message to the model, and as the event by which Codex shows it. */
static void codex_text(struct work *w, enum role role, struct str text)
{
    static const char *const roles[] = {
        [ROLE_USER] = "user", [ROLE_ASSISTANT] = "assistant", [ROLE_SYSTEM] = "developer"};
    const char *kind = role == ROLE_ASSISTANT ? "output_text" : "input_text";

    begin_response_item(w, "response_item", "message");
    json_add_member(w->out, "role", str_of(roles[role]));
    buf_addf(w->out, ",\"content\":[{\"type\":\"%s\"", kind);
    json_add_member(w->out, "text", text);
    /* By this hist-import knows a system prompt of ours from the instructions of Codex. */
    buf_add_c(w->out, role == ROLE_SYSTEM ? "}],\"originator\":\"chathist\"" : "}]");
    end_item(w);
    if (role == ROLE_SYSTEM)
        return;
    begin_response_item(w, "event_msg", role == ROLE_USER ? "user_message" : "agent_message");
    json_add_member(w->out, "message", text);
    end_item(w);
}

static void add_codex_counts(struct work *w, const char *key, const int64_t count[USAGE_KINDS])
{
    json_add_key(w->out, key);
    buf_add_byte(w->out, '{');
    json_add_member_int(w->out, "input_tokens", count[USAGE_INPUT]);
    json_add_member_int(w->out, "cached_input_tokens", count[USAGE_CACHE_READ]);
    json_add_member_int(w->out, "output_tokens", count[USAGE_OUTPUT]);
    json_add_member_int(w->out, "reasoning_output_tokens", count[USAGE_REASONING]);
    json_add_member_int(w->out, "total_tokens", count[USAGE_INPUT] + count[USAGE_OUTPUT]);
    buf_add_byte(w->out, '}');
}

static void codex_usage(struct work *w, const struct message *m)
{
    struct usage u;

    usage_init(&u);
    usage_read_members(&u, m->field[FIELD_USAGE]);
    if (!usage_complete(&u))
        return;
    for (int kind = 0; kind < USAGE_KINDS; kind++) {
        u.at[kind] = u.at[kind] > 0 ? u.at[kind] : 0;
        w->spent[kind] += u.at[kind];
    }
    begin_response_item(w, "event_msg", "token_count");
    buf_add_c(w->out, ",\"info\":{");
    add_codex_counts(w, "total_token_usage", w->spent);
    add_codex_counts(w, "last_token_usage", u.at);
    buf_add_c(w->out, "},\"rate_limits\":null");
    end_item(w);
}

static void codex_calls(struct work *w, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf text = BUF_INIT(BUF_LINE);
    struct message_call call;

    while (message_next_call(&it, &call, &w->other)) {
        begin_response_item(w, "response_item", "function_call");
        add_tool_name(w->out, "name", json_text(call.name, &w->scratch));
        json_add_key(w->out, "arguments");
        buf_clear(&text);
        if (json_type(call.args) == JSON_STRING)
            json_decode(call.args, &text);
        else if (call.args.n > 0)
            json_add_compact(&text, call.args);
        json_add_string(w->out, buf_str(&text));
        json_add_member(w->out, "call_id", json_text(call.id, &w->scratch));
        end_item(w);
    }
    buf_release(&text);
}

static void codex_message(struct work *w, const struct message *m)
{
    struct str call = message_text(m, FIELD_TOOL_CALL_ID, &w->scratch);
    struct str text = message_content(m, &w->other);
    enum role role = m->role;

    if (role == ROLE_OTHER)
        return;
    begin_message(w, m);
    if (role == ROLE_TOOL && call.n > 0) {
        begin_response_item(w, "response_item", "function_call_output");
        json_add_member(w->out, "call_id", message_text(m, FIELD_TOOL_CALL_ID, &w->scratch));
        json_add_member(w->out, "output", text);
        end_item(w);
        return;
    }
    if (role == ROLE_ASSISTANT)
        codex_context(w, m);
    if (str_trim(text).n > 0)
        codex_text(w, role == ROLE_TOOL ? ROLE_USER : role, text);
    if (role == ROLE_ASSISTANT) {
        codex_calls(w, m);
        codex_usage(w, m);
    }
}

static void codex_session(struct export *x, const struct export_session *s)
{
    struct work w;

    begin_work(&w, x, s);
    codex_head(&w);
    for (size_t i = 0; i < s->count; i++)
        codex_message(&w, &s->at[i]);
    if (s->named) {
        begin_response_item(&w, "event_msg", "thread_name_updated");
        json_add_member(w.out, "thread_id", buf_str(&w.session));
        json_add_member(w.out, "thread_name", s->title);
        end_item(&w);
    }
    end_agent_records(&w);
}

/* `rollout-2024-06-27T15-00-00-ID.jsonl` */
static void codex_file_name(struct buf *out, const struct message *first)
{
    struct buf time = BUF_INIT(BUF_SMALL);
    int64_t us;

    time_add_iso(&time, time_parse_iso(first->timestamp, &us) ? us : 0);
    buf_truncate(&time, strlen("2024-06-27T15:00:00"));
    time.data[13] = time.data[16] = '-';
    buf_add_c(out, "rollout-");
    buf_add_str(out, buf_str(&time));
    buf_add_byte(out, '-');
    add_uuid(out, STR("session"), first->session_id);
    buf_add_c(out, ".jsonl");
    buf_release(&time);
}

const struct export_format export_codex = {
    .name = "codex",
    .suffix = "jsonl",
    .json = true,
    .single = true,
    .session = codex_session,
    .file_name = codex_file_name,
};

/* ---- atif: one document; the results of calls belong to the step of the calls ---- */

static void atif_calls(struct work *w, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct message_call call;
    const char *before = "[";

    if (!has_calls(m))
        return;
    json_add_key(w->out, "tool_calls");
    while (message_next_call(&it, &call, &w->other)) {
        buf_addf(w->out, "%s{", before);
        json_add_member(w->out, "tool_call_id", json_text(call.id, &w->scratch));
        json_add_member(w->out, "function_name", json_text(call.name, &w->scratch));
        json_add_key(w->out, "arguments");
        add_call_arguments(w->out, call.args);
        buf_add_byte(w->out, '}');
        before = ",";
    }
    buf_add_byte(w->out, ']');
}

static void atif_metrics(struct work *w, const struct message *m)
{
    struct usage u;

    usage_init(&u);
    usage_read_members(&u, m->field[FIELD_USAGE]);
    if (!usage_known(&u))
        return;
    json_add_key(w->out, "metrics");
    buf_add_byte(w->out, '{');
    add_count_if(w->out, "prompt_tokens", u.at[USAGE_INPUT]);
    add_count_if(w->out, "completion_tokens", u.at[USAGE_OUTPUT]);
    add_count_if(w->out, "cached_tokens", u.at[USAGE_CACHE_READ]);
    add_cost_if(w->out, "cost_usd", &u);
    buf_add_byte(w->out, '}');
}

/* Adds the results that follow message *i, and advances *i to the last of them. */
static void atif_results(struct work *w, const struct export_session *s, size_t *i)
{
    const char *before = "";

    if (*i + 1 == s->count || s->at[*i + 1].role != ROLE_TOOL)
        return;
    json_add_key(w->out, "observation");
    buf_add_c(w->out, "{\"results\":[");
    while (*i + 1 < s->count && s->at[*i + 1].role == ROLE_TOOL) {
        const struct message *m = &s->at[++*i];

        buf_addf(w->out, "%s{", before);
        add_member_if(w->out, "source_call_id", message_text(m, FIELD_TOOL_CALL_ID, &w->scratch));
        json_add_member(w->out, "content", message_content(m, &w->other));
        buf_add_byte(w->out, '}');
        before = ",";
    }
    buf_add_c(w->out, "]}");
}

static void atif_session(struct export *x, const struct export_session *s)
{
    static const char *const sources[] = {[ROLE_USER] = "user",
                                          [ROLE_ASSISTANT] = "agent",
                                          [ROLE_SYSTEM] = "system",
                                          [ROLE_TOOL] = "system"};
    struct work w;
    int64_t step = 0;

    begin_work(&w, x, s);
    buf_add_c(w.out, "{\"schema_version\":\"ATIF-v1.6\"");
    json_add_member(w.out, "session_id", buf_str(&w.session));
    buf_add_c(w.out, ",\"agent\":{\"name\":\"chathist\",\"version\":\"1\"");
    add_member_if(w.out, "model_name", s->model);
    buf_add_c(w.out, "},\"steps\":[");
    for (size_t i = 0; i < s->count; i++) {
        const struct message *m = &s->at[i];

        if (m->role == ROLE_OTHER)
            continue;
        begin_message(&w, m);
        buf_add_c(w.out, step > 0 ? ",\n{" : "\n{");
        json_add_member_int(w.out, "step_id", ++step);
        json_add_member(w.out, "timestamp", buf_str(&w.time));
        json_add_member(w.out, "source", str_of(sources[m->role]));
        json_add_member(w.out, "message", message_content(m, &w.other));
        if (m->role == ROLE_ASSISTANT) {
            add_member_if(w.out, "model_name", message_text(m, FIELD_MODEL, &w.scratch));
            atif_calls(&w, m);
            atif_metrics(&w, m);
        }
        /* Each step may have results, and a result without a call is not lost. */
        atif_results(&w, s, &i);
        buf_add_byte(w.out, '}');
    }
    buf_add_c(w.out, "\n]}\n");
    end_agent_records(&w);
}

const struct export_format export_atif = {
    .name = "atif",
    .suffix = "atif.json",
    .json = true,
    .single = true,
    .session = atif_session,
};
