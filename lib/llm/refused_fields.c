#include "chathist/llm/refused_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/llm/provider_error.h"
#include "llm/request_body.h"

/* ---- the list ---- */

void refused_field_release(struct refused_field *field)
{
    free(field->path);
    free(field->only);
    free(field->value);
    free(field->name);
}

void refused_fields_settle(struct refused_fields *f, size_t first, bool helped)
{
    size_t kept = first;

    for (size_t i = first; i < f->count; i++)
        if (helped && f->at[i].since != 0)
            f->at[kept++] = f->at[i];
        else
            refused_field_release(&f->at[i]);
    f->count = kept;
}

void refused_fields_release(struct refused_fields *f)
{
    refused_fields_settle(f, 0, false);
    free(f->at);
    *f = (struct refused_fields){0};
}

static char *copy_str(struct str s)
{
    return s.p ? mem_copy(s.p, s.n) : NULL;
}

static bool same_or_null(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool refused_fields_add(struct refused_fields *f, struct refused_field field)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->at[i].path, field.path) == 0 && same_or_null(f->at[i].only, field.only) &&
            f->at[i].with_tools == field.with_tools) {
            refused_field_release(&field);
            return false;
        }
    f->at = mem_grow(f->at, &f->cap, f->count + 1, sizeof *f->at);
    f->at[f->count++] = field;
    return true;
}

/* ---- the text of the error ---- */

static bool is_path_char(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '_' || c == '.';
}

static bool is_quote(char c)
{
    return c == '\'' || c == '"' || c == '`';
}

/* A word of the text: a name, or a path of names. */
struct word {
    struct str text;
    bool named; /* it stands where errors name a field */
};

/* Takes the next word from *rest, a part of `text`. */
static bool next_word(struct str text, struct str *rest, struct word *w)
{
    const char *end = text.p + text.n, *p = rest->p, *q;

    while (p < end && !is_path_char(*p))
        p++;
    for (q = p; q < end && is_path_char(*q);)
        q++;
    *rest = (struct str){q, (size_t)(end - q)};
    w->text = (struct str){p, (size_t)(q - p)};
    while (str_ends(w->text, STR(".")))
        w->text.n--;
    w->named = memchr(p, '_', (size_t)(q - p)) != NULL;
    w->named = w->named || (p > text.p && q < end && is_quote(p[-1]) && is_quote(*q));
    w->named = w->named || (p == text.p && q < end && *q == ':');
    w->named = w->named || (p >= text.p + 2 && p[-1] == ' ' && p[-2] == ':');
    return p < end;
}

static bool mentions_word(struct str text, const char *word)
{
    struct str rest = text;
    struct word w;

    while (next_word(text, &rest, &w))
        if (str_eq_c(w.text, word))
            return true;
    return false;
}

/* ---- the fields that an error names ---- */

/* How many names of an error are looked up in the request at most, and the length of the longest.
 * Each lookup reads the request, so a server could otherwise keep the program busy for minutes. */
#define LOOKUPS_MAX 500
#define NAME_MAX_BYTES 200

/* An error while it is read. */
struct reading {
    const struct provider *provider;
    const struct ask *ask;
    struct str sent;    /* the body of the request */
    struct str reply;   /* the error as it came */
    struct buf message; /* the text of the error */
    struct buf notice;
    size_t lookups;
    bool learned;
};

/* Returns true if a request cannot do without the field, or would mean something else. */
static bool is_needed(const struct reading *r, struct str path)
{
    static const char *const needed[] = {"model",     "messages", "input",  "system",
                                         "prompt",    "contents", "tools",  "instructions",
                                         "functions", "store",    "stream", "tool_choice"};
    struct str rest = path, first = str_cut(&rest, '.');
    const char *schema = r->provider->schema_field, *limit = r->provider->limit_field;

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (str_eq_c(first, needed[i]))
            return true;
    if (schema && str_starts(path, str_of(schema)))
        return true;
    /* The object around the schema. */
    if (r->ask->schema.p && schema && str_starts(str_of(schema), path))
        return true;
    return r->provider->needs_limit && limit && str_eq_c(path, limit);
}

/* Returns whether the value of an option of the user reaches the field, or is inside of it. */
static bool option_reaches(const struct provider *p, const struct ask_option *option,
                           const char *path)
{
    struct buf own = BUF_INIT(BUF_LINE);
    struct str value;
    bool reaches;

    body_option_path(p, option->key, &own);
    if (body_path_is_inside(str_of(path), buf_str(&own)) && path[own.len] == '.')
        reaches = !json_check(option->value, &value, NULL) || json_type(value) != JSON_OBJECT ||
                  body_field_in(value, path + own.len + 1).p;
    else
        reaches = body_path_is_inside(buf_str(&own), str_of(path));
    buf_release(&own);
    return reaches;
}

static enum ask_from option_from(const struct provider *p, const struct ask *ask, const char *path)
{
    enum ask_from from = ASK_PROVIDER;

    for (size_t i = 0; i < ask->options_count; i++)
        if (option_reaches(p, &ask->options[i], path) && ask->options[i].from > from)
            from = ask->options[i].from;
    return from;
}

static bool is_limit(const char *path)
{
    return strcmp(path, "max_tokens") == 0 || strcmp(path, "max_completion_tokens") == 0;
}

/* Returns who decided about the field, by an option or by another setting. */
static enum ask_from field_from(const struct provider *p, const struct ask *ask, const char *path)
{
    enum ask_from from = option_from(p, ask, path);
    const char *effort = p->effort_field;

    if (ask->effort && effort && str_starts(str_of(effort), str_of(path)) &&
        ask->effort_from > from)
        from = ask->effort_from;
    if (ask->max_tokens > 0 && (is_limit(path) || same_or_null(path, p->limit_field)) &&
        ask->max_tokens_from > from)
        from = ask->max_tokens_from;
    return from;
}

/* ---- replacements ---- */

/* Efforts, the lowest first. `xhigh` is a word of OpenAI. */
static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
enum { EFFORTS = sizeof efforts / sizeof *efforts };

/* Returns the effort that the error names and that is nearest to `max` or `minimal`, else NULL. */
static const char *named_effort(const struct reading *r, bool highest)
{
    for (size_t i = 1; i < EFFORTS; i++) {
        const char *effort = efforts[highest ? EFFORTS - i : i];

        if (strcmp(effort, highest ? "max" : "minimal") != 0 &&
            mentions_word(buf_str(&r->message), effort))
            return effort;
    }
    return NULL;
}

static void learn(struct reading *r, struct refused_field field)
{
    field.since = time_now();
    r->learned = refused_fields_add(r->ask->refused, field);
}

static char *json_string(const char *text)
{
    struct buf json = BUF_INIT(BUF_SMALL);

    json_add_string(&json, str_of(text));
    return buf_detach(&json);
}

/* Replaces the efforts `max` and `minimal`. Returns false if the error is about something else. */
static bool learn_effort(struct reading *r, const char *path)
{
    struct str value = body_field_in(r->sent, path);
    bool highest = json_is_text(value, "max");
    const char *effort;

    if (!same_or_null(path, r->provider->effort_field) ||
        (!highest && !json_is_text(value, "minimal")) ||
        option_from(r->provider, r->ask, path) == ASK_FLAG)
        return false;
    effort = named_effort(r, highest);
    if (!effort)
        return false;
    buf_addf(&r->notice, "the server does not know the effort '%s': asking with '%s'",
             highest ? "max" : "minimal", effort);
    learn(r, (struct refused_field){mem_text(path), copy_str(value), json_string(effort), NULL,
                                    false, 0});
    return true;
}

/* Does the error say that the name of the field is wrong, and not its value? */
static bool is_about_name(const struct reading *r, const char *other)
{
    return provider_error_mentions(buf_str(&r->message),
                                   WORDS("unsupported", "not supported", "unrecognized", "extra",
                                         "unknown", "unexpected", "not permitted")) ||
           mentions_word(buf_str(&r->message), other);
}

static bool was_renamed_to(const struct refused_fields *f, const char *path)
{
    for (size_t i = 0; i < f->count; i++)
        if (same_or_null(f->at[i].name, path))
            return true;
    return false;
}

/* ---- what is refused by other words than the name of a field ---- */

/* The lengths of an answer to try if the server names none, and the shortest one that is tried. */
static const int64_t lengths[] = {8192, 4096};
#define LENGTH_LEAST 128
#define NUMBERS_MAX 64
/* How many lengths of one model are learned at most: each repeats the request. */
#define LENGTHS_MAX 8

/* A number in the text of an error, and the text between it and its neighbours. */
struct number {
    int64_t n;
    struct str before, after;
};

/* Returns whether the digits at p may be a number of tokens: they are no part of a name such as
 * `gpt-4-32k` or of a date, no HTTP status, and no place in the request. */
static bool begins_number(struct str text, const char *p)
{
    struct str before = {text.p, (size_t)(p - text.p)};
    int dashes = 0;

    if (str_ends(before, STR(".")) || str_ends(before, STR("@")) || str_ends(before, STR("/")))
        return false;
    for (; p > text.p && (p[-1] == '-' || ascii_is_digit(p[-1])); p--)
        dashes += p[-1] == '-';
    if (dashes > 1 || (p > text.p && (ascii_is_letter(p[-1]) || p[-1] == '_')))
        return false;
    before = str_skip(before, before.n < 12 ? 0 : before.n - 12);
    return !provider_error_mentions(
        before, WORDS("code", "status", "http", "line ", "column ", "messages["));
}

/* Reads the numbers of the text, also `8,192`. Returns how many there are. */
static size_t read_numbers(struct str text, struct number at[NUMBERS_MAX])
{
    const char *p = text.p, *end = text.p + text.n, *before = p;
    size_t count = 0;

    while (p < end && count < NUMBERS_MAX) {
        const char *start = p;
        int64_t n = 0;

        if (!ascii_is_digit(*p)) {
            p++;
            continue;
        }
        while (p < end) {
            bool comma = *p == ',' && end - p > 3 && ascii_is_digit(p[1]) && ascii_is_digit(p[2]) &&
                         ascii_is_digit(p[3]) && (end - p == 4 || !ascii_is_digit(p[4]));

            if (!comma && !ascii_is_digit(*p))
                break;
            if (!comma && n < INT32_MAX)
                n = n * 10 + (*p - '0');
            p++;
        }
        if (!begins_number(text, start) || (p < end && (ascii_is_letter(*p) || *p == '-')))
            continue;
        if (count > 0)
            at[count - 1].after.n = (size_t)(start - at[count - 1].after.p);
        at[count++] =
            (struct number){n, {before, (size_t)(start - before)}, {p, (size_t)(end - p)}};
        before = p;
    }
    return count;
}

/* Returns the number of the prompt's tokens if the text names it, or 0. `ours` is the length that
 * was sent. Servers write `P + OURS > MOST`, `TOTAL tokens (P in the messages, OURS in the
 * completion)` or `P input tokens`. */
static int64_t prompt_tokens(const struct number *at, size_t count, int64_t ours)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (str_eq_c(str_trim(at[i].after), "+"))
            return at[i].n == ours ? at[i + 1].n : at[i].n;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (at[k].n > 0 && at[k].n != ours && at[i].n - at[k].n == ours)
                return at[k].n;
    for (size_t i = 0; i < count; i++) {
        struct str after = at[i].after, first = str_cut(&after, '.');

        first.n = first.n < 24 ? first.n : 24;
        if (at[i].n != ours &&
            provider_error_mentions(first, WORDS("input tokens", "in the messages", "prompt tokens",
                                                 "in the prompt", "in your prompt", "of input")))
            return at[i].n;
    }
    return 0;
}

/* Returns the length to ask for instead of `ours`, or 0 if there is none: the largest number of the
 * text that is less, without the tokens of the prompt. *passing is set if it holds for this prompt
 * only. */
static int64_t shorter_length(const struct number *at, size_t count, int status, int64_t ours,
                              bool *passing)
{
    int64_t prompt = prompt_tokens(at, count, ours), best = 0;
    bool named = false;

    *passing = *passing || prompt > 0;

    for (size_t i = 0; i < count; i++) {
        int64_t n = at[i].n - prompt;

        if (at[i].n < LENGTH_LEAST || at[i].n == ours || at[i].n == prompt || at[i].n == status ||
            (prompt > 0 && n == ours))
            continue;
        named = named || prompt > 0;
        if (n > best && n < ours)
            best = n;
    }
    /* The number is the length of the prompt and the answer. */
    if (*passing && prompt == 0 && status != 402)
        best /= 2;
    /* If the prompt alone is too long, a shorter answer does not help. */
    for (size_t i = 0; best == 0 && !named && i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i] < ours)
            best = lengths[i];
    return best;
}

/* The names of the field for the length of an answer. */
static const char *const length_fields[] = {"max_tokens", "max_completion_tokens",
                                            "max_output_tokens", "options.num_predict"};

static bool is_length(const char *path)
{
    for (size_t i = 0; i < sizeof length_fields / sizeof *length_fields; i++)
        if (strcmp(path, length_fields[i]) == 0)
            return true;
    return false;
}

/* Returns whether the error is about `ours`, the length that was sent. */
static bool is_about_length(const struct reading *r, const struct number *at, size_t count,
                            int64_t ours)
{
    bool about = provider_error_mentions(
        r->reply, WORDS("max_tokens", "max_completion_tokens", "max_output_tokens", "max tokens",
                        "maximum tokens", "output tokens", "completion tokens", "num_predict"));

    for (size_t i = 0; i < count; i++)
        about = about || at[i].n == ours;
    return about && provider_error_mentions(
                        buf_str(&r->message),
                        WORDS("large", "exceed", "at most", "maximum", "less than", "range",
                              "illegal", "limit", "reduce", "fewer", "lower", "too many",
                              "too high", "too big", "greater", "must be", "should be", ">", "<="));
}

/* Asks for a shorter answer if the server refuses a length that the user has not typed. What holds
 * for this prompt only (`passing`), or what the account can pay for now, is not remembered. */
static bool learn_length(struct reading *r, int status, bool passing)
{
    struct number at[NUMBERS_MAX];
    size_t count = read_numbers(buf_str(&r->message), at), before = 0;
    char ours[24], value[24];
    const char *path = NULL;
    int64_t n = 0, less;

    for (size_t i = 0; !path && i < sizeof length_fields / sizeof *length_fields; i++)
        if (json_int(body_field_in(r->sent, length_fields[i]), &n))
            path = length_fields[i];
    for (size_t i = 0; i < r->ask->refused->count; i++)
        before += is_length(r->ask->refused->at[i].path) && r->ask->refused->at[i].only;
    if (!path || before == LENGTHS_MAX || field_from(r->provider, r->ask, path) == ASK_FLAG ||
        !is_about_length(r, at, count, n))
        return false;
    passing = passing || status == 402;
    less = shorter_length(at, count, status, n, &passing);
    if (less == 0)
        return false;
    (void)snprintf(ours, sizeof ours, "%" PRId64, n);
    (void)snprintf(value, sizeof value, "%" PRId64, less);
    buf_addf(&r->notice, "the server refuses an answer of %s tokens: asking with %s", ours, value);
    r->learned = refused_fields_add(
        r->ask->refused, (struct refused_field){mem_text(path), mem_text(ours), mem_text(value),
                                                NULL, false, passing ? 0 : time_now()});
    return r->learned;
}

/* Asks for the whole answer at once if the server does not stream. */
static bool learn_stream(struct reading *r, bool named)
{
    struct str text = buf_str(&r->message);

    if (!json_is_true(body_field_in(r->sent, "stream")) ||
        option_from(r->provider, r->ask, "stream") == ASK_FLAG ||
        mentions_word(text, "stream_options") ||
        (!named && !mentions_word(text, "stream") && !mentions_word(text, "Stream") &&
         !provider_error_mentions(text, WORDS("streaming"))))
        return false;
    if (!named &&
        !provider_error_mentions(text, WORDS("support", "verified", "allowed", "available",
                                             "disabled", "false", "permitted", "implemented",
                                             "invalid", "cannot", "unknown", "must")))
        return false;
    buf_addf(&r->notice, "the server does not stream: asking for the whole answer");
    learn(r, (struct refused_field){mem_text("stream"), mem_text("true"), mem_text("false"), NULL,
                                    false, 0});
    return r->learned;
}

/* Sends the system prompt before the first prompt if the model knows no such role. */
static bool learn_system(struct reading *r)
{
    struct str text = buf_str(&r->message);

    if (!r->ask->context || r->ask->context->system_len == 0 ||
        !(str_starts(text, STR("system:")) ||
          provider_error_mentions(
              text, WORDS("system role", "system message", "system prompt", "system instruction",
                          "'system'", "`system`", "\"system\"", "'instructions'",
                          "developer instruction", "developer message", "developer role",
                          "'developer'", "roles must", "roles are", "messages[0].role",
                          "messages.0.role", "'user' or 'assistant'", "user or assistant"))) ||
        !provider_error_mentions(
            text, WORDS("support", "allowed", "permitted", "enabled", "unknown", "unexpected",
                        "invalid", "must", "should be", "expected", "only", "not accept",
                        "unrecognized", "no such", "unavailable", "not available", "without")))
        return false;
    buf_addf(&r->notice, "the model knows no system prompt: it is sent before the first prompt");
    learn(r, (struct refused_field){.path = mem_text(REFUSED_SYSTEM)});
    return r->learned;
}

/* Gives the limit its other name. */
static bool learn_limit(struct reading *r, const char *path)
{
    const char *other = strcmp(path, "max_tokens") == 0 ? "max_completion_tokens" : "max_tokens";

    if (!is_limit(path) || option_from(r->provider, r->ask, path) == ASK_FLAG ||
        body_field_in(r->sent, other).p || !is_about_name(r, other) ||
        was_renamed_to(r->ask->refused, path))
        return false;
    buf_addf(&r->notice, "the server refuses '%s': asking with '%s'", path, other);
    learn(r, (struct refused_field){mem_text(path), NULL, NULL, mem_text(other), false, 0});
    return true;
}

/* Sets the effort `none` for requests with tools. OpenAI's words: "Function tools with
 * reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools,
 * use /v1/responses or set reasoning_effort to 'none'." */
static bool learn_tools_without_effort(struct reading *r)
{
    const char *effort = r->provider->effort_field;
    struct str text = buf_str(&r->message);

    if (!effort || !body_field_in(r->sent, "tools").p || !mentions_word(text, effort) ||
        !mentions_word(text, "none") || !provider_error_mentions(text, WORDS("tool")) ||
        field_from(r->provider, r->ask, effort) == ASK_FLAG)
        return false;
    buf_addf(&r->notice, "the server takes tools only without reasoning: asking with %s 'none'",
             effort);
    learn(r, (struct refused_field){mem_text(effort), NULL, json_string("none"), NULL, true, 0});
    return true;
}

/* Returns the field that the error means with this path, which the caller frees, or NULL if the
 * request has none. The member `type` belongs to its object, which means nothing without it. */
static char *field_meant(const struct reading *r, struct str path)
{
    char *field = mem_copy(path.p, path.n), *dot;

    while (!body_field_in(r->sent, field).p && (dot = strrchr(field, '.')) != NULL)
        *dot = '\0';
    dot = strrchr(field, '.');
    if (dot && strcmp(dot, ".type") == 0)
        *dot = '\0';
    if (*field && body_field_in(r->sent, field).p)
        return field;
    free(field);
    return NULL;
}

/* Learns that the field is refused. Returns false if the request has no such field. */
static bool learn_field(struct reading *r, struct str path)
{
    char *field;

    if (path.n > NAME_MAX_BYTES || r->lookups == LOOKUPS_MAX)
        return false;
    r->lookups++;
    field = field_meant(r, path);
    if (!field)
        return false;
    if (!is_needed(r, str_of(field)) && !learn_effort(r, field) && !learn_limit(r, field) &&
        field_from(r->provider, r->ask, field) != ASK_FLAG) {
        buf_addf(&r->notice, "the server refuses '%s': asking without it", field);
        learn(r, (struct refused_field){.path = mem_text(field)});
    }
    free(field);
    return true;
}

/* ---- reading an error ---- */

/* Adds the text of the error, decoded. Gateways send the error of another server as the text
 * `metadata.raw` (OpenRouter). */
static void add_message(struct buf *message, struct str error)
{
    static const char *const keys[] = {"message", "error", "detail", "msg"};

    if (json_type(error) == JSON_STRING) {
        buf_add_byte(message, ' ');
        if (message->len == 1)
            buf_clear(message);
        json_decode(error, message);
        return;
    }
    if (json_type(error) != JSON_OBJECT && json_type(error) != JSON_ARRAY)
        return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        add_message(message, json_get(error, keys[i]));
    add_message(message, json_get(json_get(error, "metadata"), "raw"));
    if (json_type(error) == JSON_ARRAY)
        for (struct json_iter it = json_iter(error); json_next(&it);)
            add_message(message, it.value);
}

/* Reads `param`: `max_tokens`, `text.format`, `messages[0].content`. */
static bool learn_param(struct reading *r, struct str error)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str param = json_text(json_get(error, "param"), &scratch);
    bool found = false;

    param = str_cut(&param, '[');
    while (str_ends(param, STR(".")))
        param.n--;
    if (param.n > 0)
        found = learn_field(r, param);
    buf_release(&scratch);
    return found;
}

/* Reads `loc`: ["body", "reasoning_effort"]. */
static bool learn_loc(struct reading *r, struct str loc)
{
    struct buf path = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    bool found = false;

    for (struct json_iter it = json_iter(loc); json_next(&it);) {
        struct str name = json_text(it.value, &scratch);

        if (path.len == 0 && str_eq_c(name, "body"))
            continue;
        if (name.n == 0)
            break;
        buf_add_c(&path, path.len > 0 ? "." : "");
        buf_add_str(&path, name);
    }
    if (path.len > 0)
        found = learn_field(r, buf_str(&path));
    buf_release(&path);
    buf_release(&scratch);
    return found;
}

/* Reads the entries of `detail`, which may be inside of `message` (Mistral). */
static bool learn_detail(struct reading *r, struct str error)
{
    struct str detail = json_get(error, "detail");
    bool found = false;

    if (!detail.p)
        detail = json_get(json_get(error, "message"), "detail");
    for (struct json_iter it = json_iter(detail); !it.object && !r->learned && json_next(&it);)
        found = learn_loc(r, json_get(it.value, "loc")) || found;
    return found;
}

/* Reads the text. The first word that is a field of the request decides. */
static void learn_text(struct reading *r)
{
    struct str text = buf_str(&r->message), rest = text;
    bool found = false;
    struct word w;

    while (!found && next_word(text, &rest, &w))
        found = w.named && learn_field(r, w.text);
}

/* Reads an error. One that says that the conversation is too long (`too_long`) may mean the length
 * of the answer, which is counted with it. */
static void read_error(struct reading *r, int status, bool too_long, struct str reply)
{
    bool learns = !too_long && (status == 400 || status == 422 || status == 500 || status == 501);
    bool about_length = learns || status == 400 || status == 402 || status == 413 || status == 422;
    struct str value, error;

    if (!json_check(reply, &value, NULL)) {
        buf_add_str(&r->message, str_trim(reply));
        value = STR_NONE;
    }
    if (json_type(value) == JSON_ARRAY)
        value = json_at(value, 0);
    error = json_type(json_get(value, "error")) == JSON_OBJECT ? json_get(value, "error") : value;
    add_message(&r->message, error);
    if (about_length && learn_length(r, status, too_long))
        return;
    if (!learns || learn_stream(r, json_is_text(json_get(error, "param"), "stream")) ||
        learn_system(r))
        return;
    if (!learn_tools_without_effort(r) && !learn_param(r, error) && !learn_detail(r, error) &&
        !learn_detail(r, value))
        learn_text(r);
}

bool refused_fields_learn(const struct provider *p, const struct ask *ask, int status,
                          bool too_long, struct str reply, struct str sent, struct buf *notice)
{
    struct reading r = {.provider = p,
                        .ask = ask,
                        .reply = reply,
                        .message = BUF_INIT(BUF_LINE),
                        .notice = BUF_INIT(BUF_LINE)};

    if (!ask->refused || !json_check(sent, &r.sent, NULL))
        return false;
    read_error(&r, status, too_long, reply);
    if (r.learned)
        buf_add_str(notice, buf_str(&r.notice));
    buf_release(&r.message);
    buf_release(&r.notice);
    return r.learned;
}

/* ---- applying ---- */

static bool applies(const struct refused_field *f, const struct provider *p, const struct ask *ask,
                    const cJSON *body, struct str value)
{
    if (f->with_tools && !cJSON_GetObjectItemCaseSensitive(body, "tools"))
        return false;
    if (!value.p && !f->with_tools)
        return false;
    if (f->only && !str_eq_c(value, f->only))
        return false;
    /* Another word for the same is not less than the user wants. */
    if ((f->only && !is_length(f->path)) || f->name)
        return option_from(p, ask, f->path) != ASK_FLAG;
    return field_from(p, ask, f->path) != ASK_FLAG;
}

void body_leave_refused(cJSON *body, const struct provider *p, const struct ask *ask)
{
    struct buf scratch = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; ask->refused && i < ask->refused->count; i++) {
        const struct refused_field *f = &ask->refused->at[i];
        struct str value = body_field(body, f->path, &scratch);

        if (!applies(f, p, ask, body, value))
            continue;
        if (f->name)
            body_set_field(body, f->name, value);
        body_set_field(body, f->path, str_of(f->value));
        /* This field is refused without a stream. */
        if (strcmp(f->path, "stream") == 0)
            body_set_field(body, "stream_options", STR_NONE);
    }
    buf_release(&scratch);
}

int refused_fields_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                           struct err *e)
{
    const struct context *c = ask->context;
    struct ask changed = *ask;
    struct context with = *c;
    struct buf first = BUF_INIT(SIZE_MAX);
    bool refused = false, begins = c->count > 0 && c->at[0].role == ROLE_USER;
    int result;

    for (size_t i = 0; ask->refused && i < ask->refused->count; i++)
        refused = refused || strcmp(ask->refused->at[i].path, REFUSED_SYSTEM) == 0;
    if (!refused || c->system_len == 0)
        return p->request(p, ask, r, e);
    with.cap = 0;
    with.count = c->count + !begins;
    with.at = mem_grow(NULL, &with.cap, with.count, sizeof *with.at);
    with.at[0] = (struct context_message){.role = ROLE_USER};
    memcpy(with.at + !begins, c->at, c->count * sizeof *c->at);
    buf_add(&first, c->system, c->system_len);
    if (begins) {
        buf_add_c(&first, "\n\n");
        buf_add(&first, c->at[0].content, c->at[0].n);
    }
    with.at[0].content = first.data;
    with.at[0].n = first.len;
    with.turn += !begins;
    with.system = NULL;
    with.system_len = 0;
    changed.context = &with;
    result = p->request(p, &changed, r, e);
    free(with.at);
    buf_release(&first);
    return result;
}
