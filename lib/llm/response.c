#include "chathist/llm/response.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/llm/secret.h"

/* The longest reason for a refusal, and the longest name of a part, that is kept, in code points.
 */
#define REFUSAL_MAX 300
#define NAME_MAX_SHOWN 80
/* What a server reports of its usage is kept up to this many bytes. */
#define RAW_USAGE_MAX ((size_t)64 << 10)

void response_init(struct response *a, const struct response_sink *sink)
{
    memset(a, 0, sizeof *a);
    buf_init(&a->text, RESPONSE_MAX);
    buf_init(&a->repaired, SIZE_MAX);
    buf_init(&a->extra, RESPONSE_MAX);
    buf_init(&a->reasoning, RESPONSE_MAX);
    opaque_init(&a->opaque);
    usage_init(&a->usage);
    buf_init(&a->raw_usage, RAW_USAGE_MAX);
    buf_init(&a->images, RESPONSE_MAX);
    a->sink = sink;
}

void response_release(struct response *a)
{
    for (size_t i = 0; i < a->calls_count; i++) {
        buf_release(&a->calls[i].id);
        buf_release(&a->calls[i].name);
        buf_release(&a->calls[i].args);
        buf_release(&a->calls[i].extra);
    }
    free(a->calls);
    free(a->model);
    free(a->finish_reason);
    free(a->refusal);
    free(a->asked);
    free(a->other);
    buf_release(&a->text);
    buf_release(&a->reasoning);
    buf_release(&a->repaired);
    buf_release(&a->extra);
    buf_release(&a->raw_usage);
    buf_release(&a->images);
    opaque_release(&a->opaque);
    response_init(a, a->sink);
}

static bool is_over_limit(const struct response *a)
{
    return a->text.len + a->calls_bytes > RESPONSE_MAX;
}

static int exceeds_limit(struct err *e)
{
    return err_set(e, ERR_INCOMPLETE, "answer is incomplete: it is longer than %zu MiB",
                   RESPONSE_MAX >> 20);
}

/* ---- the key ----
 *
 * A server may repeat the key that it was sent. It is replaced in the text and in the arguments of
 * calls, also if it comes in pieces: the end of the text is not passed on while it may be the
 * beginning of the key. Its first KEY_SHOWN bytes are passed on, so that ordinary text is not
 * delayed by a letter that the key happens to begin with. */

#define KEY_SHOWN 3

void response_add_secret(struct response *a, const char *text)
{
    struct str secret = secret_distinct(text);

    if (secret.n > 0 && a->secrets_count < RESPONSE_SECRETS)
        a->secrets[a->secrets_count++] = secret;
}

static void mask(const struct response *a, struct buf *b, size_t from, size_t fixed)
{
    for (size_t i = 0; i < a->secrets_count; i++)
        secret_mask(b, a->secrets[i], from, fixed);
}

static bool holds_secret(const struct response *a, struct str text)
{
    for (size_t i = 0; i < a->secrets_count; i++)
        if (str_find(text, a->secrets[i]))
            return true;
    return false;
}

/* Returns `text`, or a copy of it in scratch with the key masked. */
static struct str without_key(const struct response *a, struct str text, struct buf *scratch)
{
    if (!holds_secret(a, text))
        return text;
    buf_set(scratch, text);
    mask(a, scratch, 0, 0);
    return buf_str(scratch);
}

/* Returns how many bytes at the end of the text may be the beginning of a secret. */
static size_t partial_secret(const struct response *a, struct str text)
{
    size_t most = 0;

    for (size_t i = 0; i < a->secrets_count; i++) {
        struct str key = a->secrets[i];
        size_t n = key.n - 1 < text.n ? key.n - 1 : text.n;

        while (n > KEY_SHOWN && memcmp(text.p + text.n - n, key.p, n) != 0)
            n--;
        if (n > KEY_SHOWN && n > most)
            most = n;
    }
    return most;
}

/* ---- text ---- */

/* Passes new text to the sink, all of it if this is its end. */
static int pass_text(struct response *a, bool ends, struct err *e)
{
    size_t held = 0;
    struct str delta;

    if (a->text.overflow || is_over_limit(a))
        return exceeds_limit(e);
    mask(a, &a->text, a->passed > KEY_SHOWN ? a->passed - KEY_SHOWN : 0, a->passed);
    if (!ends)
        held = partial_secret(a, buf_str(&a->text));
    if (a->text.len - held <= a->passed)
        return 0;
    delta = (struct str){a->text.data + a->passed, a->text.len - held - a->passed};
    a->passed += delta.n;
    if (!a->sink || !a->sink->text || a->sink->text(a->sink->arg, delta) == 0)
        return 0;
    a->sink_failed = true;
    return -1;
}

int response_add_text(struct response *a, struct str string, struct err *e)
{
    json_pieces_add(&a->pieces, string, &a->text);
    return pass_text(a, false, e);
}

int response_end_text(struct response *a, struct err *e)
{
    json_pieces_end(&a->pieces, &a->text);
    return pass_text(a, true, e);
}

int response_add_reasoning(struct response *a, struct str text)
{
    struct buf whole = BUF_INIT(SIZE_MAX);

    a->reasoned += text.n;
    if (text.n == 0 || !a->sink || !a->sink->reasoning)
        return 0;
    utf8_add_repaired(&whole, text);
    mask(a, &whole, 0, 0);
    if (a->sink->keep_reasoning && whole.len <= RESPONSE_MAX - a->reasoning.len)
        buf_add_str(&a->reasoning, buf_str(&whole));
    a->sink_failed = a->sink->reasoning(a->sink->arg, buf_str(&whole)) != 0;
    buf_release(&whole);
    return a->sink_failed ? -1 : 0;
}

void response_notice(const struct response *a, const char *text)
{
    if (a->sink && a->sink->notice)
        a->sink->notice(a->sink->arg, text);
}

void response_drop_media(struct response *a, enum response_media media)
{
    if (a->unkept & media)
        return;
    a->unkept |= media;
    response_notice(a, media == RESPONSE_IMAGE ? "the answer has an image, which is not kept"
                                               : "the answer has sound, which is not kept");
}

void response_add_image(struct response *a, struct str string)
{
    struct buf scratch = BUF_INIT(SIZE_MAX);
    struct str data = json_text(string, &scratch), url = data;

    if (str_starts(url, STR("data:"))) {
        (void)str_cut(&url, ',');
        data = url;
    }
    if (data.n == 0 || str_find(data, STR(":")) || str_find(data, STR("\n")) ||
        data.n >= a->images.max - a->images.len) {
        response_drop_media(a, RESPONSE_IMAGE);
    } else if (!str_find(buf_str(&a->images), data)) {
        buf_add_str(&a->images, data);
        buf_add_byte(&a->images, '\n');
    }
    buf_release(&scratch);
}

int response_add_citation(struct response *a, struct str json)
{
    struct buf scratch = BUF_INIT(SIZE_MAX);
    struct str citation;

    if (json_type(json) != JSON_OBJECT)
        return 0;
    citation = without_key(a, json, &scratch);
    opaque_add_citation(&a->opaque, citation);
    if (a->sink && a->sink->citation)
        a->sink_failed = a->sink->citation(a->sink->arg, citation) != 0;
    buf_release(&scratch);
    return a->sink_failed ? -1 : 0;
}

int response_add_citations(struct response *a, struct str json)
{
    int rc = 0;

    for (struct json_iter it = json_iter(json); rc == 0 && !it.object && json_next(&it);)
        rc = response_add_citation(a, it.value);
    return rc;
}

/* ---- usage ---- */

void response_add_usage(struct response *a, struct str object)
{
    struct str sides[] = {buf_str(&a->raw_usage), object};
    struct buf merged = BUF_INIT(RAW_USAGE_MAX), key = BUF_INIT(BUF_LINE);

    buf_add_byte(&merged, '{');
    for (int i = 0; i < 2 && json_type(object) == JSON_OBJECT; i++)
        for (struct json_iter it = json_iter(sides[i]); json_next(&it);) {
            struct str other, value = it.value;

            buf_clear(&key);
            json_decode_body(it.key, &key);
            other = json_get(sides[1 - i], buf_c(&key));
            if (i == 0 ? !json_is_null(other) : other.p != NULL)
                value = i == 0 ? other : STR_NONE;
            if (json_is_null(value))
                continue;
            json_add_key(&merged, buf_c(&key));
            json_add_compact(&merged, value);
        }
    buf_add_byte(&merged, '}');
    if (merged.len > 2 && !merged.overflow)
        buf_set(&a->raw_usage, buf_str(&merged));
    buf_release(&merged);
    buf_release(&key);
}

void response_add_usage_member(struct response *a, const char *name, struct str value)
{
    struct buf object = BUF_INIT(RAW_USAGE_MAX);

    if (json_is_null(value) || str_eq(json_get(buf_str(&a->raw_usage), name), value))
        return;
    buf_add_byte(&object, '{');
    json_add_key(&object, name);
    json_add_compact(&object, value);
    buf_add_byte(&object, '}');
    response_add_usage(a, object.overflow ? STR_NONE : buf_str(&object));
    buf_release(&object);
}

void response_count_charge(struct response *a, struct str type)
{
    struct buf name = BUF_INIT(BUF_LINE), number = BUF_INIT(BUF_SMALL);
    int64_t n = 0;

    buf_set(&name, type);
    json_int(json_get(buf_str(&a->raw_usage), buf_c(&name)), &n);
    buf_addf(&number, "%" PRId64, n + 1);
    response_add_usage_member(a, buf_c(&name), buf_str(&number));
    buf_release(&name);
    buf_release(&number);
}

void response_finish_usage(struct response *a, struct str head_cost)
{
    struct str number;

    if (json_check(head_cost, &number, NULL) && json_type(number) == JSON_NUMBER)
        response_add_usage_member(a, "response_cost", number);
    mask(a, &a->raw_usage, 0, 0);
    usage_read_cost(&a->usage, buf_str(&a->raw_usage));
}

/* ---- calls ---- */

/* Returns whether a piece belongs to the call c. A name after the complete text of an object begins
 * another one. */
static bool continues_call(const struct tool_call *c, struct str id, struct str name)
{
    struct str args = buf_str(&c->args), value;

    if (id.n > 0 && c->id.len > 0)
        return str_eq(id, buf_str(&c->id));
    return name.n == 0 || !str_ends(str_trim(args), STR("}")) || !json_check(args, &value, NULL) ||
           json_type(value) != JSON_OBJECT;
}

struct tool_call *response_call_at(const struct response *a, int64_t index)
{
    for (size_t i = a->calls_count; i-- > 0;)
        if (a->calls[i].index == index)
            return &a->calls[i];
    return NULL;
}

int response_add_call(struct response *a, int64_t index, struct str id, struct str name,
                      struct str args, struct err *e)
{
    struct tool_call *c = response_call_at(a, index);
    size_t before;

    if (!c || !continues_call(c, id, name)) {
        if (a->calls_count == RESPONSE_CALLS_MAX)
            return err_set(e, ERR_INCOMPLETE,
                           "answer is incomplete: it has more than %d tool calls",
                           RESPONSE_CALLS_MAX);
        a->calls = mem_grow(a->calls, &a->calls_cap, a->calls_count + 1, sizeof *a->calls);
        c = &a->calls[a->calls_count++];
        c->index = index;
        c->pieces = (struct json_pieces){0};
        buf_init(&c->id, BUF_SMALL);
        buf_init(&c->name, BUF_SMALL);
        buf_init(&c->args, RESPONSE_MAX);
        buf_init(&c->extra, RESPONSE_MAX);
    }
    if (c->id.len == 0)
        utf8_add_repaired(&c->id, id);
    /* Servers send the name once, or in every delta, or in pieces. */
    if (!str_eq(name, buf_str(&c->name)))
        utf8_add_repaired(&c->name, name);
    before = c->args.len;
    if (json_type(args) == JSON_OBJECT)
        json_add_compact(&c->args, args);
    else
        json_pieces_add(&c->pieces, args, &c->args);
    a->calls_bytes += id.n + name.n + c->args.len - before;
    if (c->id.overflow || c->name.overflow || c->args.overflow || is_over_limit(a))
        return exceeds_limit(e);
    return 0;
}

int response_add_extra(struct response *a, struct tool_call *c, const char *member, struct str json,
                       struct err *e)
{
    struct buf *extra = c ? &c->extra : &a->extra;

    if (json_type(json) != JSON_OBJECT)
        return 0;
    /* LiteLLM repeats the one of all calls in many events. */
    if (!c)
        buf_clear(extra);
    buf_add_c(extra, extra->len > 0 ? "" : "{");
    json_add_key(extra, member);
    json_add_compact(extra, json);
    a->calls_bytes += c ? json.n : 0;
    return extra->overflow || is_over_limit(a) ? exceeds_limit(e) : 0;
}

/* Moves the objects that came beside a call, or beside all calls, to a->opaque.thinking. Of a
 * member that came twice the last value counts. */
static void add_extra(struct response *a, struct buf *extra, struct str id)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    if (extra->len > 0)
        buf_add_byte(extra, '}');
    for (struct json_iter it = json_iter(buf_str(extra)); a->calls_count > 0 && json_next(&it);) {
        buf_clear(&name);
        json_decode_body(it.key, &name);
        opaque_add_member(&a->opaque, buf_c(&name), id, it.value);
    }
    buf_clear(extra);
    buf_release(&name);
}

void response_finish_calls(struct response *a)
{
    for (size_t i = 0; i < a->calls_count; i++) {
        struct tool_call *c = &a->calls[i];

        json_pieces_end(&c->pieces, &c->args);
        mask(a, &c->args, 0, 0);
        mask(a, &c->id, 0, 0);
        mask(a, &c->name, 0, 0);
        if (c->id.len == 0) {
            buf_add_c(&c->id, "call_");
            id_add_message(&c->id, time_now() / 1000);
        }
        if (c->name.len == 0)
            buf_add_c(&c->name, "unnamed");
        if (str_trim(buf_str(&c->args)).n == 0)
            buf_set(&c->args, STR("{}"));
    }
    opaque_finish(&a->opaque, a->calls_count > 0);
    add_extra(a, &a->extra, STR_NONE);
    for (size_t i = 0; i < a->calls_count; i++)
        add_extra(a, &a->calls[i].extra, buf_str(&a->calls[i].id));
    /* The blocks go back unchanged or not at all, so blocks that hold the key are not kept. */
    if (holds_secret(a, buf_str(&a->opaque.container)))
        buf_clear(&a->opaque.container);
    if (holds_secret(a, buf_str(&a->opaque.thinking)) ||
        holds_secret(a, buf_str(&a->opaque.turn))) {
        buf_clear(&a->opaque.thinking);
        buf_clear(&a->opaque.turn);
        a->opaque.turn_cut = true;
    }
    if (a->finish_reason && strcmp(a->finish_reason, a->calls_count ? "stop" : "tool_calls") == 0)
        response_set_finish(a, str_of(a->calls_count ? "tool_calls" : "stop"));
}

static void set_text(const struct response *a, char **field, struct str value)
{
    struct buf scratch = BUF_INIT(SIZE_MAX);

    if (value.n == 0)
        return;
    value = without_key(a, value, &scratch);
    free(*field);
    *field = mem_copy(value.p, value.n);
    buf_release(&scratch);
}

void response_set_model(struct response *a, struct str model)
{
    set_text(a, &a->model, model);
}

void response_set_finish(struct response *a, struct str reason)
{
    (void)message_ending(reason, &reason);
    set_text(a, &a->finish_reason, reason);
}

void response_ask_client(struct response *a, struct str type, struct str name)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    if (!type.p) {
        free(a->asked);
        a->asked = NULL;
        return;
    }
    vis_add_line(&shown, utf8_first(type, NAME_MAX_SHOWN), true);
    if (name.n > 0) {
        buf_add_c(&shown, " of '");
        vis_add_line(&shown, utf8_first(name, NAME_MAX_SHOWN), true);
        buf_add_byte(&shown, '\'');
    }
    set_text(a, &a->asked, buf_str(&shown));
    buf_release(&shown);
}

void response_set_other(struct response *a, struct str type)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    vis_add_line(&shown, utf8_first(type, NAME_MAX_SHOWN), true);
    set_text(a, &a->other, buf_str(&shown));
    buf_release(&shown);
}

void response_set_refusal(struct response *a, struct str category, struct str explanation)
{
    struct buf shown = BUF_INIT(BUF_SMALL);
    struct str why = str_trim(explanation), kind = str_trim(category);

    vis_add_line(&shown, utf8_first(why, REFUSAL_MAX), true);
    if (kind.n > 0) {
        buf_add_c(&shown, why.n > 0 ? " (" : "");
        vis_add_line(&shown, utf8_first(kind, REFUSAL_MAX), true);
        buf_add_c(&shown, why.n > 0 ? ")" : "");
    }
    set_text(a, &a->refusal, buf_str(&shown));
    buf_release(&shown);
}

int response_join(struct response *a, struct response *next, struct err *e)
{
    struct buf *raw = &a->raw_usage, array = BUF_INIT(RAW_USAGE_MAX);

    buf_add_str(&a->text, buf_str(&next->text));
    a->passed = a->text.len;
    opaque_join(&a->opaque, &next->opaque);
    buf_add_str(&a->reasoning, buf_str(&next->reasoning));
    free(a->calls);
    a->calls = next->calls;
    a->calls_count = next->calls_count;
    a->calls_cap = next->calls_cap;
    a->calls_bytes = next->calls_bytes;
    next->calls = NULL;
    next->calls_count = next->calls_cap = 0;
    usage_sum(&a->usage, &next->usage);
    /* Several responses reported an array. */
    if (raw->len > 0 && next->raw_usage.len > 0) {
        buf_addf(&array, "%s%.*s,", *raw->data == '[' ? "" : "[",
                 (int)(raw->len - (*raw->data == '[')), raw->data);
        buf_add_str(&array, buf_str(&next->raw_usage));
        buf_add_byte(&array, ']');
    }
    if (array.overflow)
        buf_clear(raw);
    else if (next->raw_usage.len > 0)
        buf_set(raw, buf_str(array.len > 0 ? &array : &next->raw_usage));
    buf_release(&array);
    buf_add_str(&a->images, buf_str(&next->images));
    response_set_model(a, str_of(next->model));
    response_set_finish(a, str_of(next->finish_reason));
    set_text(a, &a->refusal, str_of(next->refusal));
    set_text(a, &a->asked, str_of(next->asked));
    a->finished = next->finished;
    a->refused = next->refused;
    a->reasoned += next->reasoned;
    a->sink_failed = next->sink_failed;
    return a->text.overflow || is_over_limit(a) ? exceeds_limit(e) : 0;
}

void response_add_members(const struct tool_call *c, struct buf *out)
{
    struct str value;

    json_add_member(out, "id", buf_str(&c->id));
    json_add_member(out, "name", buf_str(&c->name));
    json_add_key(out, "args");
    if (json_check(buf_str(&c->args), &value, NULL) && json_type(value) == JSON_OBJECT)
        json_add_compact(out, value);
    else
        json_add_string(out, buf_str(&c->args));
}

void response_calls_json(const struct response *a, struct buf *out)
{
    buf_add_byte(out, '[');
    for (size_t i = 0; i < a->calls_count; i++) {
        buf_add_c(out, i > 0 ? ",{" : "{");
        response_add_members(&a->calls[i], out);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
}
