/*
 * import_claude_code - transcripts of Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl.
 *
 * Its maker does not document the format. Others describe it (ticpu/claude-conversation-search-mcp,
 * docs/jsonl-format.md; alicoding/claude-parser, docs/JSONL-STRUCTURE.md;
 * simonw/claude-code-transcripts): each line is a record with `type`, `uuid`, `sessionId` and
 * `timestamp`; records of type `user` and `assistant` have a `message` of Anthropic's Messages API.
 *
 *   - A response has one record for each content block, all with the same message id. They are
 *     joined, and the usage of the last record counts. If other records separate them, they become
 *     several lines, and each line has only the tokens that the lines before do not have.
 *   - Results of tools are user records: each becomes a tool message.
 *   - The summary that replaces a conversation that grew too long (isCompactSummary) is a user
 *     record. It becomes a system message, so that the session can be continued with it.
 *   - isSidechain records are messages of subagents, in separate files or between other records.
 *     They become sessions called SESSION:AGENT, if messages of subagents are wanted.
 *   - The title of a session is that of its last custom-title record, which the user gave, else of
 *     its last ai-title, else of the last summary whose leafUuid is a message of the session; the
 *     others are of sessions in other files.
 *   - A record of an unknown type is reported if it has a `message`. Other unknown records are
 *     notes of the program (queues, snapshots), which change with each version.
 *   - isMeta records, names and output of commands, and notes that the user interrupted a response
 *     were written by the program in the user's name. They are not imported, nor is reasoning.
 *   - Messages keep the order of the file, because the links between records are unreliable.
 */
#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "convert/import_reader.h"

#define FORMAT "claude-code"

enum key {
    KEY_TYPE,
    KEY_UUID,
    KEY_SESSION,
    KEY_SIDECHAIN,
    KEY_AGENT,
    KEY_META,
    KEY_COMPACT,
    KEY_API_ERROR,
    KEY_TIME,
    KEY_MESSAGE,
    KEY_COST,
    KEY_COUNT
};
static const char *const keys[KEY_COUNT] = {
    "type",      "uuid",    "sessionId",        "isSidechain",
    "agentId",   "isMeta",  "isCompactSummary", "isApiErrorMessage",
    "timestamp", "message", "costUSD",
};

struct reader {
    struct source *source;
    struct import_message answer; /* its records are being joined */
    struct buf message_id;
    struct import_message other;
    struct buf uuid;
    struct buf session;   /* of the file, without subagents */
    struct buf title;     /* of a title record */
    bool custom;          /* the user gave it */
    struct buf summaries; /* records, one a line */
    struct hash_map ids;  /* of responses -> index in `given` */
    struct usage *given;  /* their usage in the messages that were given */
    size_t given_count, given_cap;
};

/* ---- usage ---- */

static struct usage *usage_given(struct reader *r, struct str id)
{
    size_t i = hash_map_number(&r->ids, &id);

    if (i == r->given_count) {
        r->given = mem_grow(r->given, &r->given_cap, i + 1, sizeof *r->given);
        r->given[r->given_count++] = (struct usage){0};
    }
    return &r->given[i];
}

/* The records of a response can be on several lines, if a tool result or an earlier import
 * separates them. Subtracts from the usage of m what earlier lines have, so that tokens count
 * once. */
static void count_once(struct reader *r, struct str id, struct import_message *m)
{
    struct usage *given;

    if (id.n == 0)
        return;
    given = usage_given(r, id);
    for (int i = 0; i < USAGE_KINDS; i++) {
        int64_t *tokens = &m->usage.at[i], more = *tokens - given->at[i];

        if (more > 0)
            given->at[i] = *tokens;
        if (*tokens >= 0)
            *tokens = more > 0 ? more : *tokens == 0 && given->at[i] == 0 ? 0 : -1;
    }
    /* A line that adds output adds no input, which is not the same as an unknown one. */
    for (int i = 0; usage_known(&m->usage) && i <= USAGE_OUTPUT; i++)
        if (given->at[i] > 0 && m->usage.at[i] < 0)
            m->usage.at[i] = 0;
}

/* Gives the response whose records were joined. */
static int give_answer(struct reader *r, struct err *e)
{
    int result = 0;

    if (!import_is_empty(&r->answer))
        count_once(r, buf_str(&r->message_id), &r->answer);
    if (r->answer.origin.len > 0)
        result = import_give(r->source, &r->answer, e);
    import_message_clear(&r->answer, ROLE_ASSISTANT);
    buf_clear(&r->message_id);
    return result;
}

/* Sets the session of a record, or the name of the file if the record has none. */
static void set_session(struct import_message *m, struct reader *r, const struct str *value)
{
    struct buf id = BUF_INIT(BUF_SMALL), agent = BUF_INIT(BUF_SMALL);

    if (!json_decode(value[KEY_SESSION], &id) || id.len == 0)
        buf_add_str(&id, source_stem(r->source));
    if (json_is_true(value[KEY_SIDECHAIN])) {
        struct str text = json_text(value[KEY_AGENT], &agent);

        buf_add_byte(&id, ':');
        buf_add_str(&id, text.n > 0 ? text : STR("sidechain"));
    }
    import_set_session(m, FORMAT, buf_str(&id));
    if (!json_is_true(value[KEY_SIDECHAIN]))
        buf_set(&r->session, buf_str(&m->session));
    buf_release(&id);
    buf_release(&agent);
}

/* ---- the title ---- */

/* Takes a record that has a title: a title that the user gave stays. */
static void take_title(struct reader *r, struct str type, struct str record)
{
    bool custom = json_is_text(type, "custom-title");
    struct str title = json_get(record, custom ? "customTitle" : "aiTitle");

    if (json_is_text(type, "summary")) {
        buf_add_str(&r->summaries, record);
        buf_add_byte(&r->summaries, '\n');
    } else if (json_type(title) == JSON_STRING && (custom || !r->custom)) {
        buf_clear(&r->title);
        (void)json_decode(title, &r->title);
        r->custom = custom;
    }
}

static int give_title(struct reader *r, struct err *e)
{
    struct str rest = buf_str(&r->summaries), session = buf_str(&r->session);
    struct buf leaf = BUF_INIT(BUF_SMALL);
    bool titled = r->title.len > 0;

    while (rest.n > 0 && !titled) {
        struct str record = str_cut(&rest, '\n');

        if (!import_knows(r->source, session, json_text(json_get(record, "leafUuid"), &leaf), NULL))
            continue;
        buf_clear(&r->title);
        (void)json_decode(json_get(record, "summary"), &r->title);
    }
    buf_release(&leaf);
    return session.n > 0 ? import_give_title(r->source, session, buf_str(&r->title), e) : 0;
}

/* Anthropic does not count the tokens of the cache as input, chathist(5) does. Versions of the
 * program before June 2025 also wrote what the response cost. */
static void set_usage(struct import_message *m, struct str value, struct str cost)
{
    struct usage u;

    usage_init(&u);
    usage_read(&u, USAGE_INPUT, json_get(value, "input_tokens"));
    usage_read(&u, USAGE_OUTPUT, json_get(value, "output_tokens"));
    usage_read(&u, USAGE_CACHE_READ, json_get(value, "cache_read_input_tokens"));
    usage_read(&u, USAGE_CACHE_WRITE, json_get(value, "cache_creation_input_tokens"));
    if (u.at[USAGE_INPUT] >= 0)
        u.at[USAGE_INPUT] += usage_cached(&u);
    usage_read(&u, USAGE_COST, cost);
    usage_replace(&m->usage, &u);
}

static int take_answer(struct reader *r, const struct str *value, struct err *e)
{
    struct str message = value[KEY_MESSAGE];
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct import_message *m = &r->answer;
    struct str id = json_text(json_get(message, "id"), &scratch), uuid = buf_str(&r->uuid);
    int result = 0;

    import_message_clear(&r->other, ROLE_ASSISTANT);
    set_session(&r->other, r, value);
    /* An earlier import may have stored some records of a response before others were written. */
    if (import_skips(r->source, buf_str(&r->other.session), uuid)) {
        set_usage(&r->other, json_get(message, "usage"), value[KEY_COST]);
        count_once(r, id, &r->other);
        goto out;
    }
    if (m->origin.len > 0 && id.n > 0 && str_eq(id, buf_str(&r->message_id)) &&
        str_eq(buf_str(&m->session), buf_str(&r->other.session))) {
        import_add_part(m, uuid);
    } else {
        if (give_answer(r, e) < 0) {
            result = -1;
            goto out;
        }
        buf_add_str(&r->message_id, id);
        buf_add_str(&m->session, buf_str(&r->other.session));
        import_set_part(m, uuid);
        import_set_time(m, value[KEY_TIME]);
        buf_add_c(&m->provider, "anthropic");
        import_set_text(&m->model, json_get(message, "model"));
    }
    import_add_content(m, json_get(message, "content"));
    set_usage(m, json_get(message, "usage"), value[KEY_COST]);
    import_set_finish(m, json_get(message, "stop_reason"));
    /* The program itself wrote this message instead of a response. */
    if (str_eq_c(buf_str(&m->model), "<synthetic>")) {
        buf_clear(&m->model);
        usage_init(&m->usage);
    }
    if (json_is_true(value[KEY_API_ERROR]))
        buf_set(&m->finish, STR("error"));
out:
    buf_release(&scratch);
    return result;
}

/* ---- messages of the user ---- */

/* Returns whether the program wrote this text in the user's name. A command that the user sends as
 * a prompt begins with <command-message>, and is imported. */
static bool is_context(struct str string)
{
    static const char *const beginnings[] = {"<command-name>", "<local-command-",
                                             "[Request interrupted by user]",
                                             "[Request interrupted by user for tool use]"};
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = json_text(string, &scratch);
    bool is = false;

    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        is = is || str_starts(text, str_of(beginnings[i]));
    buf_release(&scratch);
    return is;
}

/* Appends content (JSON) without the texts of the program. */
static void add_said(struct buf *out, struct str content)
{
    struct json_iter it = json_iter(content);

    if (json_type(content) != JSON_ARRAY) {
        buf_add_str(out, is_context(content) ? STR("null") : content);
        return;
    }
    buf_add_byte(out, '[');
    while (json_next(&it)) {
        if (is_context(json_type(it.value) == JSON_STRING ? it.value : json_get(it.value, "text")))
            continue;
        if (out->len > 1)
            buf_add_byte(out, ',');
        buf_add_str(out, it.value);
    }
    buf_add_byte(out, ']');
}

static int take_user(struct reader *r, const struct str *value, struct err *e)
{
    struct import_message *m = &r->other;
    struct buf said = BUF_INIT(BUF_LINE);
    int result;

    if (give_answer(r, e) < 0)
        return -1;
    import_message_clear(m, json_is_true(value[KEY_COMPACT]) ? ROLE_SYSTEM : ROLE_USER);
    set_session(m, r, value);
    import_set_part(m, buf_str(&r->uuid));
    import_set_time(m, value[KEY_TIME]);
    add_said(&said, json_get(value[KEY_MESSAGE], "content"));
    result = import_give_content(r->source, m, buf_str(&said), e);
    buf_release(&said);
    return result;
}

static int take(void *arg, struct str record, struct err *e)
{
    struct reader *r = arg;
    /* Records of these types have no message of the conversation. */
    static const char *const others[] = {"system", "attachment", "progress", "summary", NULL};
    static const char *const titles[] = {"summary", "custom-title", "ai-title", NULL};
    struct str value[KEY_COUNT], type;
    const char *wrong = NULL;
    bool answer, user;

    json_pick(record, keys, value, KEY_COUNT);
    type = value[KEY_TYPE];
    answer = json_is_text(type, "assistant");
    user = json_is_text(type, "user");
    buf_clear(&r->uuid);
    if (json_body(type).n == 0)
        wrong = "no 'type'";
    else if ((answer || user) && (!json_decode(value[KEY_UUID], &r->uuid) || r->uuid.len == 0))
        wrong = "no 'uuid'";
    else if ((answer || user) && json_type(value[KEY_MESSAGE]) != JSON_OBJECT)
        wrong = "no 'message'";
    else if (!answer && !user && !import_is_one_of(type, others) &&
             json_type(value[KEY_MESSAGE]) == JSON_OBJECT)
        wrong = "a message of an unknown type";
    if (wrong)
        import_bad(r->source, wrong);
    else if (import_is_one_of(type, titles))
        take_title(r, type, record);
    else if (json_is_true(value[KEY_META]) ||
             (json_is_true(value[KEY_SIDECHAIN]) && !r->source->subagents))
        return 0;
    else if (answer)
        return take_answer(r, value, e);
    else if (user)
        return take_user(r, value, e);
    return 0;
}

static int read_claude_code(struct source *s, struct err *e)
{
    struct reader r = {.source = s};
    int got;

    import_message_init(&r.answer);
    import_message_init(&r.other);
    buf_init(&r.message_id, BUF_SMALL);
    buf_init(&r.uuid, BUF_SMALL);
    buf_init(&r.session, BUF_SMALL);
    buf_init(&r.title, BUF_LINE);
    buf_init(&r.summaries, BUF_LINE);
    import_message_clear(&r.answer, ROLE_ASSISTANT);
    got = import_each_object(s, source_line, take, &r, e);
    if (got == 0)
        got = give_answer(&r, e);
    if (got == 0)
        got = give_title(&r, e);
    import_message_release(&r.answer);
    import_message_release(&r.other);
    free(r.given);
    hash_map_release(&r.ids);
    buf_release(&r.message_id);
    buf_release(&r.uuid);
    buf_release(&r.session);
    buf_release(&r.title);
    buf_release(&r.summaries);
    return got;
}

/* ---- the format ---- */

static bool is_claude_record(struct str object)
{
    return (import_has_string(object, "sessionId") && import_has_string(object, "type")) ||
           (json_has_type(object, "summary") && import_has_string(object, "leafUuid")) ||
           json_has_type(object, "file-history-snapshot");
}

static bool is_claude_code(struct str head)
{
    return import_some_line(head, is_claude_record) ||
           (str_starts(str_trim(head), STR("{\"")) && str_find(head, STR("\"parentUuid\":")) &&
            str_find(head, STR("\"sessionId\":\"")));
}

const struct import_format import_claude_code = {"claude-code", is_claude_code, read_claude_code};
