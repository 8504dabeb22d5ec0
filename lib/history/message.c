#include "chathist/history/message.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/simd.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* What a known field holds when it is there. */
enum shape {
    SHAPE_STRING,
    SHAPE_NUMBER,
    SHAPE_TRUE,
    SHAPE_OBJECT,
    SHAPE_STRINGS, /* an array of strings */
    SHAPE_OBJECTS, /* an array of objects */
};

/* The five that every line has come first. */
#define REQUIRED_COUNT ((size_t)FIELD_CONTENT + 1)

#define ENTRY(name, shape)                                                                         \
    {                                                                                              \
        name, sizeof(name) - 1, shape, "no '" name "'", "'" name "' is not a string"               \
    }

static const struct {
    const char *name;
    size_t name_len;
    enum shape shape;
    const char *absent; /* what message_defect says of a required one */
    const char *wrong;
} fields[FIELD_COUNT] = {
    [FIELD_ID] = ENTRY("id", SHAPE_STRING),
    [FIELD_SESSION_ID] = ENTRY("session_id", SHAPE_STRING),
    [FIELD_TIMESTAMP] = ENTRY("timestamp", SHAPE_STRING),
    [FIELD_ROLE] = ENTRY("role", SHAPE_STRING),
    [FIELD_CONTENT] = ENTRY("content", SHAPE_STRING),
    [FIELD_IMAGES] = ENTRY("images", SHAPE_NUMBER),
    [FIELD_FILES] = ENTRY("files", SHAPE_STRINGS),
    [FIELD_FILES_MODIFIED] = ENTRY("files_modified", SHAPE_STRINGS),
    [FIELD_EDIT_RESULTS] = ENTRY("edit_results", SHAPE_OBJECTS),
    [FIELD_TOOL_CALLS] = ENTRY("tool_calls", SHAPE_OBJECTS),
    [FIELD_TOOL_CALL_ID] = ENTRY("tool_call_id", SHAPE_STRING),
    [FIELD_FAILED] = ENTRY("failed", SHAPE_TRUE),
    [FIELD_REPLY_TO] = ENTRY("reply_to", SHAPE_STRING),
    [FIELD_REPLACES] = ENTRY("replaces", SHAPE_STRINGS),
    [FIELD_RESET] = ENTRY("reset", SHAPE_TRUE),
    [FIELD_FORKED_FROM] = ENTRY("forked_from", SHAPE_STRING),
    [FIELD_ORIGIN] = ENTRY("origin", SHAPE_STRING),
    [FIELD_CWD] = ENTRY("cwd", SHAPE_STRING),
    [FIELD_GIT_BRANCH] = ENTRY("git_branch", SHAPE_STRING),
    [FIELD_SERVER] = ENTRY("server", SHAPE_STRING),
    [FIELD_THINKING] = ENTRY("thinking", SHAPE_OBJECTS),
    [FIELD_REASONING] = ENTRY("reasoning", SHAPE_STRING),
    [FIELD_MODEL] = ENTRY("model", SHAPE_STRING),
    [FIELD_PROVIDER] = ENTRY("provider", SHAPE_STRING),
    [FIELD_RESPONSE] = ENTRY("response", SHAPE_STRING),
    [FIELD_USAGE] = ENTRY("usage", SHAPE_OBJECT),
    [FIELD_FINISH_REASON] = ENTRY("finish_reason", SHAPE_STRING),
    [FIELD_ATTACHMENTS] = ENTRY("attachments", SHAPE_OBJECTS),
    [FIELD_CITATIONS] = ENTRY("citations", SHAPE_OBJECTS),
};

static const char *const shape_names[] = {
    [SHAPE_STRING] = "a string",
    [SHAPE_NUMBER] = "a number",
    [SHAPE_TRUE] = "true",
    [SHAPE_OBJECT] = "an object",
    [SHAPE_STRINGS] = "an array of strings",
    [SHAPE_OBJECTS] = "an array of objects",
};

static const struct str role_names[] = {
    [ROLE_USER] = STR("user"),
    [ROLE_ASSISTANT] = STR("assistant"),
    [ROLE_SYSTEM] = STR("system"),
    [ROLE_TOOL] = STR("tool"),
};

const char *field_name(enum field f)
{
    return fields[f].name;
}

const char *role_name(enum role r)
{
    return r < ROLE_OTHER ? role_names[r].p : NULL;
}

enum role role_of(struct str name)
{
    for (size_t r = 0; r < ROLE_OTHER; r++) {
        if (str_eq(name, role_names[r]))
            return (enum role)r;
    }
    return ROLE_OTHER;
}

enum ending message_ending(struct str reason, struct str *name)
{
    static const struct {
        enum ending ending;
        const char *theirs, *ours;
    } endings[] = {
        {ENDING_COMPLETE, "stop", "stop"},
        {ENDING_COMPLETE, "end", "stop"},
        {ENDING_COMPLETE, "end_turn", "stop"},
        {ENDING_COMPLETE, "eos", "stop"},
        {ENDING_COMPLETE, "eos_token", "stop"},
        {ENDING_COMPLETE, "stop_sequence", "stop"},
        {ENDING_COMPLETE, "complete", "stop"},
        {ENDING_COMPLETE, "completed", "stop"},
        {ENDING_COMPLETE, "tool_calls", "tool_calls"},
        {ENDING_COMPLETE, "tool_call", "tool_calls"},
        {ENDING_COMPLETE, "tool_use", "tool_calls"},
        {ENDING_COMPLETE, "function_call", "tool_calls"},
        {ENDING_LENGTH, "length", "length"},
        {ENDING_LENGTH, "max_tokens", "length"},
        {ENDING_LENGTH, "max_output_tokens", "length"},
        {ENDING_LENGTH, "max_length", "length"},
        {ENDING_LENGTH, "model_length", "length"},
        {ENDING_LENGTH, "token_limit", "length"},
        {ENDING_FULL, "model_context_window_exceeded", NULL},
        {ENDING_FULL, "error_limit", NULL},
        {ENDING_FILTERED, "content_filter", "content_filter"},
        {ENDING_FILTERED, "content_filtered", "content_filter"},
        {ENDING_FILTERED, "refusal", "content_filter"},
        {ENDING_FILTERED, "safety", NULL},
        {ENDING_FILTERED, "image_safety", NULL},
        {ENDING_FILTERED, "image_prohibited_content", NULL},
        {ENDING_FILTERED, "image_recitation", NULL},
        {ENDING_FILTERED, "recitation", NULL},
        {ENDING_FILTERED, "blocklist", NULL},
        {ENDING_FILTERED, "prohibited_content", NULL},
        {ENDING_FILTERED, "spii", NULL},
        {ENDING_FILTERED, "sensitive", NULL},
        {ENDING_FILTERED, "error_toxic", NULL},
        {ENDING_FILTERED, "guardrail_intervened", NULL},
        {ENDING_PAUSED, "pause_turn", NULL},
        {ENDING_PAUSED, "compaction", NULL},
    };

    if (name)
        *name = reason;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!str_eq_lower(reason, endings[i].theirs))
            continue;
        if (name && endings[i].ours)
            *name = str_of(endings[i].ours);
        return endings[i].ending;
    }
    return reason.n > 0 ? ENDING_BROKEN : ENDING_COMPLETE;
}

/* Returns the field that a raw key names, or FIELD_COUNT. `first` is the expected field, which
 * is tried first. */
static size_t field_of(struct str raw_key, size_t first)
{
    for (size_t i = 0, f = first; i < FIELD_COUNT; i++, f++) {
        if (f == FIELD_COUNT)
            f = 0;
        if (raw_key.n == fields[f].name_len && memcmp(raw_key.p, fields[f].name, raw_key.n) == 0)
            return f;
    }
    for (size_t f = 0; f < FIELD_COUNT && raw_key.n && memchr(raw_key.p, '\\', raw_key.n); f++) {
        if (json_key_is(raw_key, fields[f].name))
            return f;
    }
    return FIELD_COUNT;
}

/* ---- a line that was read ---- */

static bool is_content_null(size_t f, struct str value)
{
    return f == FIELD_CONTENT && json_type(value) == JSON_NULL;
}

/* Where the fields of an object are; of a repeated key the last. */
struct places {
    struct str *field;
    size_t next;  /* the field after the last one that was found */
    size_t plain; /* the fields before this one are strings known to have no escape */
};

static void set_field(void *ctx, struct str raw_key, struct str value)
{
    struct places *p = ctx;
    size_t f = field_of(raw_key, p->next);

    if (f < FIELD_COUNT) {
        p->field[f] = value;
        p->next = f + 1;
        if (f < p->plain)
            p->plain = f;
    }
}

/* Checks that a line begins as our programs write it, with an id, a session id, a time and a role
 * without escapes. Sets these fields to their JSON values and returns the offset of the next
 * member, or 0. */
static size_t own_line_head(struct str line, struct str field[FIELD_CONTENT]);

/* Returns whether it is JSON. Notes where the fields are when it is an object, and what else it is,
 * if that. */
static bool check_fields(struct str text, struct str *value, struct places *places)
{
    size_t own;

    places->next = places->plain = 0;
    for (size_t f = 0; f < FIELD_COUNT; f++)
        places->field[f] = STR_NONE;
    own = own_line_head(text, places->field);
    if (own) {
        places->next = places->plain = FIELD_CONTENT;
        return json_check_from(text, own, value, set_field, places);
    }
    for (size_t f = 0; f < REQUIRED_COUNT; f++)
        places->field[f] = STR_NONE;
    return json_check_members(text, value, set_field, places);
}

/* Returns the defect of the five required fields from `f` on, or NULL if they are valid. */
static const char *required_defect(const struct str field[FIELD_COUNT], size_t f)
{
    for (; f < REQUIRED_COUNT; f++) {
        if (!field[f].p)
            return fields[f].absent;
        if (json_type(field[f]) != JSON_STRING && !is_content_null(f, field[f]))
            return fields[f].wrong;
    }
    return NULL;
}

bool message_parse(struct message *m, struct str line)
{
    struct str *const decoded[] = {
        [FIELD_ID] = &m->id,
        [FIELD_SESSION_ID] = &m->session_id,
        [FIELD_TIMESTAMP] = &m->timestamp,
        [FIELD_ROLE] = &m->role_text,
    };
    size_t count = sizeof(decoded) / sizeof(decoded[0]);
    struct places places = {.field = m->field};

    if (!check_fields(utf8_without_bom(line), &m->line, &places) ||
        json_type(m->line) != JSON_OBJECT || required_defect(m->field, places.plain))
        return false;

    /* Every text with escapes is added to `own`, which may move; so it is pointed into at the
     * end. */
    buf_clear(&m->own);
    for (size_t i = 0; i < count; i++) {
        struct str value = m->field[i];

        *decoded[i] = (struct str){value.p + 1, value.n - 2};
        if (i >= places.plain && !json_plain(value)) {
            size_t before = m->own.len;

            if (!json_decode(value, &m->own) || m->own.overflow)
                return false;
            *decoded[i] = (struct str){NULL, m->own.len - before};
        }
    }
    for (size_t i = places.plain, at = 0; i < count; i++) {
        if (!decoded[i]->p) {
            decoded[i]->p = buf_c(&m->own) + at;
            at += decoded[i]->n;
        }
    }
    m->role = role_of(m->role_text);
    return true;
}

const char *message_defect(struct str line)
{
    struct str text = utf8_without_bom(line);
    struct str field[FIELD_COUNT];
    struct places places = {.field = field};
    struct str value;
    size_t at = 0;

    if (text.n > 0 && text.p[0] == '\0' && memcmp(text.p, text.p + 1, text.n - 1) == 0)
        return "NUL bytes";
    if (!json_check(text, &value, &at)) {
        if (utf8_valid(text) < text.n)
            return "not UTF-8";
        if (json_check((struct str){text.p, at}, &value, NULL))
            return "more than one value";
        return json_too_deep(text) ? "nested too deeply" : "not JSON";
    }
    if (json_type(value) != JSON_OBJECT)
        return "not an object";
    check_fields(text, &value, &places);
    return required_defect(field, 0);
}

void message_release(struct message *m)
{
    buf_release(&m->own);
    *m = (struct message)MESSAGE_INIT;
}

struct str message_content(const struct message *m, struct buf *scratch)
{
    struct str content = m->field[FIELD_CONTENT];

    return is_content_null(FIELD_CONTENT, content) ? STR("") : json_text(content, scratch);
}

struct str message_preview(const struct message *m, struct buf *scratch)
{
    return utf8_first(message_content(m, scratch), MESSAGE_PREVIEW);
}

struct str message_text(const struct message *m, enum field f, struct buf *scratch)
{
    return json_text(m->field[f], scratch);
}

struct str message_tool(const struct message *m, struct buf *scratch)
{
    struct str origin = message_text(m, FIELD_ORIGIN, scratch), session = str_cut(&origin, '/');

    if (session.n == 0 && m->role != ROLE_OTHER)
        return STR(MESSAGE_OURS);
    return str_cut(&session, ':');
}

bool message_next_call(struct json_iter *it, struct message_call *call, struct buf *scratch)
{
    struct str function;

    while (!it->object && json_next(it)) {
        if (json_type(it->value) != JSON_OBJECT)
            continue;
        function = json_get(it->value, "function");
        *call = (struct message_call){.id = json_get(it->value, "id"),
                                      .name = json_get(it->value, "name"),
                                      .args = json_get(it->value, "args")};
        if (!call->name.p)
            call->name = json_get(function, "name");
        if (!call->args.p)
            call->args = json_get(it->value, "input");
        if (call->args.p)
            return true;
        call->args = json_get(function, "arguments");
        buf_clear(scratch);
        if (json_type(call->args) == JSON_STRING && json_add_object(scratch, call->args))
            call->args = buf_str(scratch);
        return true;
    }
    return false;
}

void message_sources(struct str citations, struct hash_map *urls)
{
    struct json_iter it = json_iter(citations);
    struct buf scratch = BUF_INIT(BUF_LINE);

    while (!it.object && urls->count < MESSAGE_SOURCES && json_next(&it)) {
        struct str url = json_get(it.value, "url");

        if (json_type(url) != JSON_STRING)
            url = json_get(json_get(it.value, "url_citation"), "url");
        url = json_text(url, &scratch);
        if (url.n > 0)
            hash_map_add(urls, url);
    }
    buf_release(&scratch);
}

bool message_is_reset(const struct message *m)
{
    return m->role == ROLE_SYSTEM && json_is_true(m->field[FIELD_RESET]);
}

bool message_is_title(const struct message *m)
{
    return m->role == ROLE_OTHER && str_eq_c(m->role_text, MESSAGE_TITLE_ROLE);
}

struct str message_title(const struct message *m, struct buf *scratch)
{
    return utf8_first(str_trim(message_content(m, scratch)), MESSAGE_TITLE);
}

/* ---- a line to be written ---- */

void draft_init(struct draft *d)
{
    for (size_t f = 0; f < FIELD_COUNT; f++)
        buf_init(&d->field[f], BUF_LINE);
    buf_init(&d->unknown, BUF_LINE);
}

void draft_release(struct draft *d)
{
    for (size_t f = 0; f < FIELD_COUNT; f++)
        buf_release(&d->field[f]);
    buf_release(&d->unknown);
}

/* Byte for byte, unless there are line ends between its tokens: a line of the history has none. */
static void add_on_one_line(struct buf *out, struct str json)
{
    if (json.n && memchr(json.p, '\n', json.n))
        json_add_compact(out, json);
    else
        buf_add_str(out, json);
}

void draft_set(struct draft *d, enum field f, struct str json)
{
    buf_clear(&d->field[f]);
    add_on_one_line(&d->field[f], json);
}

void draft_set_text(struct draft *d, enum field f, struct str text)
{
    buf_clear(&d->field[f]);
    json_add_string(&d->field[f], text);
}

void draft_set_int(struct draft *d, enum field f, long long n)
{
    buf_clear(&d->field[f]);
    buf_addf(&d->field[f], "%lld", n);
}

void draft_set_usage(struct draft *d, const struct usage *u, struct str raw)
{
    if (!usage_known(u))
        return;
    buf_clear(&d->field[FIELD_USAGE]);
    usage_add_object(u, raw, &d->field[FIELD_USAGE]);
}

void draft_push_text(struct draft *d, enum field f, struct str text)
{
    struct buf *b = &d->field[f];

    if (!b->len) {
        buf_add_byte(b, '[');
    } else {
        struct json_iter it = json_iter(buf_str(b));
        bool some = json_next(&it);

        buf_truncate(b, b->len - 1);
        if (some)
            buf_add_byte(b, ',');
    }
    json_add_string(b, text);
    buf_add_byte(b, ']');
}

bool draft_has(const struct draft *d, enum field f)
{
    return d->field[f].len > 0;
}

void draft_message(struct draft *d, enum role role, struct str content)
{
    for (size_t f = 0; f < FIELD_COUNT; f++)
        buf_clear(&d->field[f]);
    buf_clear(&d->unknown);
    if (role < ROLE_OTHER)
        draft_set_text(d, FIELD_ROLE, role_names[role]);
    draft_set_text(d, FIELD_CONTENT, content);
}

/* Returns whether every element of an array is of that type. */
static bool all_of(struct str array, enum json_type type)
{
    struct json_iter it = json_iter(array);

    if (json_type(array) != JSON_ARRAY)
        return false;
    while (json_next(&it)) {
        if (json_type(it.value) != type)
            return false;
    }
    return true;
}

static bool has_shape(struct str value, enum shape shape)
{
    switch (shape) {
    case SHAPE_STRING:
        return json_type(value) == JSON_STRING;
    case SHAPE_NUMBER:
        return json_type(value) == JSON_NUMBER;
    case SHAPE_TRUE:
        return json_is_true(value);
    case SHAPE_OBJECT:
        return json_type(value) == JSON_OBJECT;
    case SHAPE_STRINGS:
        return all_of(value, JSON_STRING);
    case SHAPE_OBJECTS:
        return all_of(value, JSON_OBJECT);
    }
    return false;
}

int draft_from_json(struct draft *d, struct str object, struct err *e)
{
    struct str field[FIELD_COUNT];
    struct places places = {.field = field};
    struct str value;

    if (!check_fields(utf8_without_bom(object), &value, &places))
        return err_set(e, ERR_USAGE, "not valid JSON");
    if (json_type(value) != JSON_OBJECT)
        return err_set(e, ERR_USAGE, "not a JSON object");
    for (size_t f = 0; f < FIELD_COUNT; f++) {
        if (!json_is_null(field[f]) && !has_shape(field[f], fields[f].shape))
            return err_set(e, ERR_USAGE, "'%s' is not %s", fields[f].name,
                           shape_names[fields[f].shape]);
    }

    for (size_t f = 0; f < FIELD_COUNT; f++) {
        if (is_content_null(f, field[f]))
            draft_set_text(d, FIELD_CONTENT, STR(""));
        else if (!json_is_null(field[f]))
            draft_set(d, (enum field)f, field[f]);
    }

    struct json_iter it = json_iter(value);

    while (json_next(&it)) {
        if (field_of(it.key, 0) < FIELD_COUNT)
            continue;
        if (d->unknown.len)
            buf_add_byte(&d->unknown, ',');
        buf_add_byte(&d->unknown, '"');
        buf_add_str(&d->unknown, it.key);
        buf_add_c(&d->unknown, "\":");
        add_on_one_line(&d->unknown, it.value);
    }
    return 0;
}

int draft_fits(const struct draft *d, size_t more, struct err *e)
{
    bool overflow = d->unknown.overflow;
    /* Braces; a field brings its own comma. */
    size_t n = more + d->unknown.len + (d->unknown.len ? 2 : 1);

    for (size_t f = 0; f < FIELD_COUNT; f++) {
        overflow = overflow || d->field[f].overflow;
        if (d->field[f].len)
            n += d->field[f].len + fields[f].name_len + sizeof("\"\":,") - 1;
    }
    if (overflow || n > BUF_LINE)
        return err_set(e, ERR_FAILURE, "the message is longer than %zu MiB", BUF_LINE >> 20);
    return 0;
}

int draft_check(const struct draft *d, struct err *e)
{
    for (size_t f = 0; f < REQUIRED_COUNT; f++)
        if (!d->field[f].len && !d->field[f].overflow)
            return err_set(e, ERR_USAGE, "the message has no '%s'", fields[f].name);
    return draft_fits(d, 0, e);
}

int draft_format(const struct draft *d, struct buf *out, struct err *e)
{
    if (draft_check(d, e) < 0)
        return -1;
    buf_add_byte(out, '{');
    for (size_t f = 0; f < FIELD_COUNT; f++) {
        if (d->field[f].len) {
            json_add_key(out, fields[f].name);
            buf_add_str(out, buf_str(&d->field[f]));
        }
    }
    if (d->unknown.len) {
        buf_add_byte(out, ',');
        buf_add_str(out, buf_str(&d->unknown));
    }
    buf_add_c(out, "}\n");
    return 0;
}

/* ---- lines that our programs wrote ---- */

/* Inlined, so that the text is compared as words. */
static inline bool skip_literal(const char **at, const char *end, struct str text)
{
    if ((size_t)(end - *at) < text.n || memcmp(*at, text.p, text.n) != 0)
        return false;
    *at += text.n;
    return true;
}

/* Takes the rest of a string of n bytes that stand for themselves; notes all of it. Inlined, as n
 * is known. */
static inline bool read_plain_string(const char **at, const char *end, size_t n, struct str *value)
{
    const char *p = *at;

    if ((size_t)(end - p) <= n || p[n] != '"' || !simd_all_plain(p, n))
        return false;
    *value = (struct str){p - 1, n + 2};
    *at = p + n + 1;
    return true;
}

/* A session id is one of our own, or a UUID. `tool` is as long as `user`. */
static size_t own_line_head(struct str line, struct str field[FIELD_CONTENT])
{
    const char *p = line.p, *end = line.p + line.n;

    if (!line.n || !skip_literal(&p, end, STR("{\"id\":\"")) ||
        !read_plain_string(&p, end, strlen("1719500000000-a1b2c3d4"), &field[FIELD_ID]) ||
        !skip_literal(&p, end, STR(",\"session_id\":\"")) ||
        (!read_plain_string(&p, end, strlen("sess_1719500000000_f0e1d2"),
                            &field[FIELD_SESSION_ID]) &&
         !read_plain_string(&p, end, strlen("6f2c1f4e-8d0b-4a57-9c3e-2b7d5a9e1f00"),
                            &field[FIELD_SESSION_ID])) ||
        !skip_literal(&p, end, STR(",\"timestamp\":\"")) ||
        !read_plain_string(&p, end, strlen("2024-06-27T15:00:00.000000+00:00"),
                           &field[FIELD_TIMESTAMP]) ||
        !skip_literal(&p, end, STR(",\"role\":\"")) ||
        (!read_plain_string(&p, end, strlen("user"), &field[FIELD_ROLE]) &&
         !read_plain_string(&p, end, strlen("assistant"), &field[FIELD_ROLE]) &&
         !read_plain_string(&p, end, strlen("system"), &field[FIELD_ROLE])) ||
        !skip_literal(&p, end, STR(",")))
        return 0;
    return (size_t)(p - line.p);
}

/* The members after the role. */
struct members {
    struct str content;
    bool repeated; /* perhaps one of the five that every line has */
    bool calls;    /* there are tool calls */
};

static void set_member(void *ctx, struct str raw_key, struct str value)
{
    static const struct str required[] = {STR("id"), STR("session_id"), STR("timestamp"),
                                          STR("role"), STR("content")};
    struct members *m = ctx;

    if (!m->content.p) {
        m->content = value;
        return;
    }
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
        m->repeated = m->repeated || str_eq(raw_key, required[i]);
    m->repeated = m->repeated || (raw_key.n && memchr(raw_key.p, '\\', raw_key.n));
    m->calls = m->calls || str_eq(raw_key, STR("tool_calls"));
}

bool own_line_check(struct str line, struct str *timestamp, struct str *content, bool *calls)
{
    struct str field[FIELD_CONTENT], value;
    struct members m = {.content = STR_NONE};
    size_t at = own_line_head(line, field);
    const char *p = line.p + at;

    if (!at || !skip_literal(&p, line.p + line.n, STR("\"content\":\"")) ||
        !json_check_from(line, at, &value, set_member, &m) || m.repeated)
        return false;
    *timestamp = json_body(field[FIELD_TIMESTAMP]);
    *content = (struct str){m.content.p + 1, m.content.n - 2};
    *calls = m.calls;
    return true;
}
