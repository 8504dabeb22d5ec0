#include "llm/provider_wire.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/llm/provider_error.h"
#include "llm/request_body.h"

/* How much of an unusable event or response a message shows, in code points. */
#define EXCERPT_MAX 80

static void add_request_url(struct http_request *r, const struct provider *p, const struct ask *ask,
                            const char *version, const char *path)
{
    struct str query = str_of(ask->base_url ? ask->base_url : p->base_url);
    struct str base = str_cut(&query, '?');
    static const char *const endpoints[] = {"/chat/completions", "/messages", "/responses",
                                            "/api/chat"};

    while (str_ends(base, STR("/")))
        base.n--;
    /* Many services document the whole address of their endpoint. */
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        if (str_ends(base, str_of(endpoints[i])))
            base.n -= strlen(endpoints[i]);
    buf_add_str(&r->url, base);
    if (!str_ends(base, str_of(version)))
        buf_add_c(&r->url, version);
    buf_add_c(&r->url, path);
    if (query.n > 0) {
        buf_add_byte(&r->url, str_find(str_of(path), STR("?")) ? '&' : '?');
        buf_add_str(&r->url, query);
    }
}

/* ---- headers ---- */

/* Adds a header of the provider, unless the user gave one of that name. */
static int add_own_header(struct http_request *r, const struct ask *ask, const char *name,
                          struct str value, struct err *e)
{
    for (size_t i = 0; i < ask->headers_count; i++)
        if (strcasecmp(ask->headers[i].name, name) == 0)
            return 0;
    return http_add_header(r, name, value, e);
}

int wire_begin(struct http_request *r, const struct provider *p, const struct ask *ask, bool post,
               const char *version, const char *path, struct err *e)
{
    struct str json = STR("application/json");
    struct str stream = p->lines ? STR("application/x-ndjson") : STR("text/event-stream");
    bool token =
        ask->key_from && p->token_variable && strcmp(ask->key_from, p->token_variable) == 0;
    struct str key = str_trim(str_of(ask->key));
    struct buf value = BUF_INIT(BUF_SMALL);
    int rc;

    add_request_url(r, p, ask, version, path);
    if ((post && add_own_header(r, ask, "Content-Type", json, e) != 0) ||
        add_own_header(r, ask, "Accept", post && ask->stream ? stream : json, e) != 0)
        return -1;
    for (size_t i = 0; i < ask->headers_count; i++)
        if (http_add_header(r, ask->headers[i].name, str_of(ask->headers[i].value), e) != 0)
            return -1;
    if (p->version_header && add_own_header(r, ask, p->version_header, str_of(p->version), e) != 0)
        return -1;
    if (!ask->key || !*ask->key)
        return 0;
    if (p->key_header && !token)
        return add_own_header(r, ask, p->key_header, key, e);
    buf_add_c(&value, "Bearer "); /* RFC 6750 */
    buf_add_str(&value, key);
    rc = add_own_header(r, ask, "Authorization", buf_str(&value), e);
    buf_release(&value);
    return rc;
}

int wire_models(const struct provider *p, const struct ask *ask, struct http_request *r,
                struct err *e)
{
    return wire_begin(r, p, ask, false, "", "/models", e);
}

struct context_server wire_asked(const struct provider *p, const struct ask *ask)
{
    return (struct context_server){p->name, ask->address};
}

bool wire_has_option(const struct ask *ask, const char *key)
{
    for (size_t i = 0; i < ask->options_count; i++)
        if (strcmp(ask->options[i].key, key) == 0)
            return true;
    return false;
}

int wire_end_body(cJSON *body, const struct provider *p, const struct ask *ask,
                  struct http_request *r, struct err *e)
{
    int rc = body_add_options(body, p, ask, e);

    if (rc == 0) {
        body_leave_refused(body, p, ask);
        cjson_print(body, &r->body);
    }
    cJSON_Delete(body);
    return rc;
}

cJSON *wire_of_type(const char *type)
{
    cJSON *t = cjson_object();

    cjson_set_text(t, "type", str_of(type));
    return t;
}

cJSON *wire_text_part(const char *type, struct str text)
{
    cJSON *part = wire_of_type(type);

    cjson_set_text(part, "text", text);
    return part;
}

cJSON *wire_parts(const struct context_message *m, const char *text_type,
                  cJSON *(*part)(const struct attachment *a))
{
    struct str text = {m->content, m->n};
    cJSON *parts = cjson_array();

    if (str_trim(text).n > 0)
        cjson_push(parts, wire_text_part(text_type, text));
    for (size_t i = 0; i < m->attachments_count; i++)
        cjson_push(parts, part(&m->attachments[i]));
    return parts;
}

void wire_set_content(cJSON *to, const char *member, const struct context_message *m,
                      const char *text_type, cJSON *(*part)(const struct attachment *a))
{
    if (m->attachments_count > 0)
        cjson_set(to, member, wire_parts(m, text_type, part));
    else
        cjson_set_text(to, member, (struct str){m->content, m->n});
}

void wire_set_data_url(cJSON *to, const char *member, const struct attachment *a)
{
    struct buf url = BUF_INIT(SIZE_MAX);

    buf_addf(&url, "data:%s;base64,%s", a->type, a->base64);
    cjson_set_text(to, member, buf_str(&url));
    buf_release(&url);
}

cJSON *wire_message(enum role role, struct str text)
{
    cJSON *message = cjson_object();

    cjson_set_text(message, "role", str_of(role_name(role)));
    cjson_set_text(message, "content", text);
    return message;
}

/* The content of a message that is only sent to keep the order of roles. */
#define STAND_IN "…"

cJSON *wire_messages(const struct context *c, struct str system, struct context_server asked,
                     bool nine, wire_message_of *message, wire_add_images *add_images)
{
    cJSON *array = cjson_array();
    struct call_ids ids;
    size_t from = 0;

    wire_call_ids_init(&ids, nine);
    if (str_trim(system).n > 0)
        cjson_push(array, wire_message(ROLE_SYSTEM, system));
    for (size_t i = 0; i < c->count; i++) {
        const struct context_message *m = &c->at[i];
        bool after_result = i > 0 && m[-1].role == ROLE_TOOL;

        if (i == 0 && m->role != ROLE_USER)
            cjson_push(array, wire_message(ROLE_USER, STR(STAND_IN)));
        if (after_result && m->role == ROLE_USER)
            cjson_push(array, wire_message(ROLE_ASSISTANT, STR(STAND_IN)));
        if (!after_result)
            from = i;
        cjson_push(array, message(m, asked, &ids));
        if (m->role == ROLE_TOOL && (i + 1 == c->count || m[1].role != ROLE_TOOL))
            add_images(array, &c->at[from], i + 1 - from);
    }
    wire_call_ids_release(&ids);
    return array;
}

void wire_set_tool(cJSON *to, const struct tool *tool, const char *schema)
{
    cjson_set_text(to, "name", str_of(tool->name));
    if (*tool->description)
        cjson_set_text(to, "description", str_of(tool->description));
    cjson_set_raw(to, schema, str_of(tool->parameters));
}

cJSON *wire_schema(const struct ask *ask)
{
    cJSON *t = cjson_object();
    struct buf name = BUF_INIT(BUF_LINE);

    for (struct json_iter it = json_iter(ask->schema); json_next(&it);) {
        buf_clear(&name);
        json_decode_body(it.key, &name);
        if (!str_eq_c(buf_str(&name), "$schema"))
            cjson_set_raw(t, buf_c(&name), it.value);
    }
    buf_release(&name);
    return t;
}

void wire_set_schema(cJSON *to, const struct ask *ask)
{
    cjson_set_text(to, "name", STR("answer"));
    cjson_set(to, "schema", wire_schema(ask));
    cjson_set(to, "strict", cJSON_CreateBool(ask->schema_fits & SCHEMA_STRICT));
}

void wire_add_schema(const struct ask *ask, struct buf *system)
{
    cJSON *t = wire_schema(ask);

    if (system->len > 0)
        buf_add_c(system, "\n\n");
    buf_add_c(system,
              "Answer with one JSON value and nothing else: no words before or after it, no "
              "code fence. It must be valid against this JSON Schema:\n");
    cjson_print(t, system);
    cJSON_Delete(t);
}

void wire_set_model(struct response *a, struct str model)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (!a->model)
        response_set_model(a, json_text(model, &scratch));
    buf_release(&scratch);
}

int wire_add_reasoning(struct response *a, struct str string)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    int rc = response_add_reasoning(a, json_text(string, &scratch));

    buf_release(&scratch);
    return rc;
}

int wire_add_call(struct response *a, int64_t index, struct str id, struct str name,
                  struct str args, struct err *e)
{
    struct buf id_text = BUF_INIT(BUF_LINE), name_text = BUF_INIT(BUF_LINE);
    int rc =
        response_add_call(a, index, json_text(id, &id_text), json_text(name, &name_text), args, e);

    buf_release(&id_text);
    buf_release(&name_text);
    return rc;
}

void wire_read_usage(struct response *a, struct usage *to, struct str usage,
                     const struct wire_usage *members)
{
    response_add_usage(a, usage);
    for (; json_type(usage) == JSON_OBJECT && members->inner; members++)
        usage_read(
            to, members->kind,
            json_get(members->outer ? json_get(usage, members->outer) : usage, members->inner));
}

int wire_unusable(struct err *e, enum err_kind kind, const char *what, struct str data)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    provider_error_add_excerpt(&shown, data, EXCERPT_MAX);
    err_set(e, kind, "%s: '%s'", what, buf_c(&shown));
    buf_release(&shown);
    return -1;
}

/* Copies data to `out` with an empty string and blanks in place of NaN and Infinity outside of
 * strings, which Python's json module writes for numbers (docs.python.org/3/library/json.html,
 * "Infinite and NaN Number Values"). Where a number is wanted, an empty string counts as a missing
 * one. Returns false if the data has neither. */
static bool without_nan(struct str data, struct buf *out)
{
    static const char *const words[] = {"NaN", "-Infinity", "Infinity"};
    bool inside = false, found = false;

    buf_set(out, data);
    for (size_t i = 0; i < out->len; i++) {
        if (inside && out->data[i] == '\\')
            i++;
        else if (out->data[i] == '"')
            inside = !inside;
        for (size_t k = 0; !inside && k < sizeof words / sizeof *words; k++)
            if (str_starts(str_skip(data, i), str_of(words[k]))) {
                memset(out->data + i, ' ', strlen(words[k]));
                memset(out->data + i, '"', 2);
                i += strlen(words[k]) - 1;
                found = true;
                break;
            }
    }
    return found && !out->overflow;
}

int wire_parse_event(struct response *a, struct str data, struct str *value, struct err *e)
{
    if (json_check(data, value, NULL) ||
        (without_nan(data, &a->repaired) && json_check(buf_str(&a->repaired), value, NULL)))
        return 0;
    if (json_too_deep(data))
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: an event is nested more than %d levels deep",
                       JSON_DEPTH);
    return wire_unusable(e, ERR_INCOMPLETE, "answer is incomplete: an event is not JSON", data);
}

int wire_read_typed_event(struct response *a, struct str event, struct str data,
                          wire_typed_event *known, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str value, type;
    int rc;

    if (str_trim(data).n == 0)
        return 0;
    if (wire_parse_event(a, data, &value, e) != 0)
        return -1;
    type = json_text(json_get(value, "type"), &scratch);
    if (type.n == 0)
        type = event;
    if (str_eq_c(type, "error") || provider_error_reported(value))
        rc = provider_error_set_reported(e, value);
    else
        rc = known(a, type, value, e);
    buf_release(&scratch);
    return rc;
}

int wire_parse_whole(struct str body, struct str *value, struct err *e)
{
    if (json_check(body, value, NULL))
        return 0;
    if (json_too_deep(body))
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: it is nested more than %d levels deep", JSON_DEPTH);
    return wire_unusable(e, ERR_BUSY, "the server's answer is not JSON", str_trim(body));
}

/* ---- ids and names of tool calls ---- */

#define ALNUM "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define SHORT_ID 9

static const struct str call_id_alnum = STR(ALNUM);
static const struct str call_id_accepted = STR(ALNUM "_-");

void wire_call_ids_init(struct call_ids *ids, bool nine)
{
    *ids = (struct call_ids){.nine = nine, .waiting = BUF_INIT(BUF_LINE)};
}

void wire_call_ids_release(struct call_ids *ids)
{
    hash_map_release(&ids->taken);
    hash_map_release(&ids->given);
    free(ids->next);
    buf_release(&ids->waiting);
}

static bool call_id_fits(const struct call_ids *ids, struct str id)
{
    struct str allowed = ids->nine ? call_id_alnum : call_id_accepted;

    if (ids->nine ? id.n != SHORT_ID : id.n == 0 || id.n > CALL_ID_MAX)
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (!memchr(allowed.p, id.p[i], allowed.n))
            return false;
    return true;
}

/* Makes an id of a number. */
static void call_id_make(const struct call_ids *ids, struct buf *id, uint64_t number)
{
    buf_set(id, str_of(ids->nine ? "" : "call_"));
    for (size_t i = 0; i < SHORT_ID; i++, number /= call_id_alnum.n)
        buf_add_byte(id, call_id_alnum.p[number % call_id_alnum.n]);
}

/* The k-th call with the same id does not try the replacements of those before it again. */
static void add_call_id(struct call_ids *ids, struct str id, struct buf *out)
{
    size_t known = ids->given.count, number = hash_map_number(&ids->given, &id);

    ids->next = hash_map_values(&ids->given, ids->next, sizeof *ids->next);
    if (number == known)
        ids->next[number] = hash_fnv(id);
    if (call_id_fits(ids, id))
        buf_add_str(out, id);
    else
        call_id_make(ids, out, ids->next[number]++);
    /* An earlier call of the request may have the id. */
    while (!hash_map_add(&ids->taken, buf_str(out)))
        call_id_make(ids, out, ids->next[number]++);
}

void wire_add_call_name(struct buf *out, struct str name)
{
    if (name.n == 0)
        buf_add_c(out, "unnamed");
    for (size_t i = 0; i < name.n && i < TOOL_NAME_MAX; i++)
        buf_add_byte(out,
                     memchr(call_id_accepted.p, name.p[i], call_id_accepted.n) ? name.p[i] : '_');
}

/* Adds the arguments of a call as the text of an object, `{}` if they are not one. Returns whether
 * they are one. */
static bool add_call_arguments(struct buf *out, struct str args)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str value = args;
    bool object;

    if (json_decode(args, &text) && !json_check(buf_str(&text), &value, NULL))
        value = STR_NONE;
    object = json_type(value) == JSON_OBJECT;
    json_add_compact(out, object ? value : STR("{}"));
    buf_release(&text);
    return object;
}

void wire_call_init(struct wire_call *c, struct call_ids *ids, struct str call)
{
    struct buf text = BUF_INIT(BUF_LINE);

    *c = (struct wire_call){BUF_INIT(BUF_SMALL), BUF_INIT(BUF_SMALL), BUF_INIT(BUF_LINE),
                            BUF_INIT(BUF_LINE)};
    add_call_id(ids, json_text(json_get(call, "id"), &text), &c->id);
    wire_add_call_name(&c->name, json_text(json_get(call, "name"), &text));
    if (!add_call_arguments(&c->args, json_get(call, "args")))
        json_decode(json_get(call, "args"), &c->bad);
    buf_addf(&ids->waiting, "%s %s\n", buf_c(&c->id), buf_c(&c->name));
    buf_release(&text);
}

void wire_call_release(struct wire_call *c)
{
    buf_release(&c->id);
    buf_release(&c->name);
    buf_release(&c->args);
    buf_release(&c->bad);
}

void wire_set_result(cJSON *result, struct call_ids *ids, const char *key, const char *name_key)
{
    struct str rest = buf_str(&ids->waiting), name = str_cut(&rest, '\n');
    struct str id = str_cut(&name, ' ');
    size_t n = ids->waiting.len - rest.n;

    if (id.n == 0)
        return;
    if (name_key)
        cjson_set_text(result, name_key, name);
    cjson_set_text(result, key, id);
    buf_consume(&ids->waiting, n);
}

/* ---- calls and results as text ---- */

/* Adds a line for each call, after a blank line if there is text before them. */
static void add_calls_as_text(struct buf *out, struct str calls)
{
    struct buf name = BUF_INIT(BUF_LINE);

    buf_add_c(out, out->len > 0 ? "\n\n" : "");
    for (struct json_iter it = json_iter(calls); json_next(&it);) {
        struct str text = json_text(json_get(it.value, "name"), &name);

        buf_add_c(out, str_ends(buf_str(out), STR("]")) ? "\n" : "");
        buf_add_c(out, "[call of the tool ");
        buf_add_str(out, text);
        buf_add_c(out, ": ");
        add_call_arguments(out, json_get(it.value, "args"));
        buf_add_c(out, "]");
    }
    buf_release(&name);
}

void wire_calls_to_text(const struct context *c, struct context *to)
{
    struct json_iter calls = json_iter(STR_NONE); /* the calls whose results come next */
    struct buf text = BUF_INIT(SIZE_MAX), name = BUF_INIT(BUF_LINE);

    for (size_t i = 0; i < c->count; i++) {
        const struct context_message *m = &c->at[i];
        enum role role = m->role == ROLE_TOOL ? ROLE_USER : m->role;

        buf_clear(&text);
        if (m->role == ROLE_TOOL && json_next(&calls)) {
            buf_add_c(&text, "[result of the tool ");
            buf_add_str(&text, json_text(json_get(calls.value, "name"), &name));
            buf_add_c(&text, "]\n");
        }
        buf_add(&text, m->content, m->n);
        if (m->tool_calls) {
            calls = json_iter(str_of(m->tool_calls));
            add_calls_as_text(&text, str_of(m->tool_calls));
        }
        if (i == c->turn)
            context_begin_turn(to);
        context_add_text(to, role, buf_str(&text));
        if (m->attachments_count > 0)
            context_set_attachments(to, m->attachments, m->attachments_count);
    }
    buf_release(&text);
    buf_release(&name);
    context_finish(to);
}
