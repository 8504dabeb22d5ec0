#include "chathist/llm/refusals.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/regex.h"
#include "chathist/base/time.h"
#include "chathist/llm/provider_error.h"
#include "llm/provider_wire.h"
#include "llm/request_body.h"

/* ---- the list ---- */

static void refusal_release(struct refusal *refusal)
{
    for (size_t i = 0; i < REFUSED_TEXTS; i++)
        free(refusal->text[i]);
}

void refusals_end_exchange(struct refusals *f, size_t first, bool helped)
{
    size_t kept = first;

    for (size_t i = first; i < f->count; i++)
        if (helped && f->at[i].since != REFUSED_NOW)
            f->at[kept++] = f->at[i];
        else
            refusal_release(&f->at[i]);
    f->count = kept;
}

void refusals_release(struct refusals *f)
{
    refusals_end_exchange(f, 0, false);
    free(f->at);
    free(f->path);
    free(f->model);
    *f = (struct refusals){0};
}

static bool same_or_null(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool refusals_have(const struct refusals *f, const char *thing, const char *only)
{
    for (size_t i = 0; f && i < f->count; i++)
        if (strcmp(f->at[i].text[REFUSED_THING], thing) == 0 &&
            (!only || same_or_null(f->at[i].text[REFUSED_ONLY], only)))
            return true;
    return false;
}

/* Adds a refusal, whose strings the list then owns. Returns false, and releases it, if the same was
 * refused before. */
static bool add_new_refusal(struct refusals *f, struct refusal refusal)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->at[i].text[REFUSED_THING], refusal.text[REFUSED_THING]) == 0 &&
            same_or_null(f->at[i].text[REFUSED_ONLY], refusal.text[REFUSED_ONLY])) {
            refusal_release(&refusal);
            return false;
        }
    f->at = mem_grow(f->at, &f->cap, f->count + 1, sizeof *f->at);
    f->at[f->count++] = refusal;
    return true;
}

/* ---- the cache: a line of JSON for each refusal ---- */

#define KEEP (24 * 60 * 60 * TIME_SECOND)

static const char *const members[REFUSED_TEXTS] = {"field", "only", "value", "name"};

/* Reads a line of the model into f, and adds one of another model to `others`, unless that is NULL.
 * An entry older than a day is not used, nor a value that is no JSON: the file can be edited. */
static void read_cache_line(struct refusals *f, struct str line, struct buf *others)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct refusal got = {.since = 0};
    struct str value, json;
    int64_t age;

    if (!json_check(line, &value, NULL) || !json_int(json_get(value, "since"), &got.since))
        return;
    age = time_now() - got.since;
    if (age < 0 || age > KEEP)
        return;
    if (!json_is_text(json_get(value, "model"), f->model)) {
        if (others)
            buf_addf(others, "%.*s\n", (int)line.n, line.p);
        return;
    }
    for (size_t i = 0; i < REFUSED_TEXTS; i++) {
        json = json_text(json_get(value, members[i]), &scratch);
        got.text[i] = json.n > 0 ? mem_copy(json.p, json.n) : NULL;
    }
    buf_release(&scratch);
    if (got.text[REFUSED_THING] &&
        (!got.text[REFUSED_VALUE] || json_check(str_of(got.text[REFUSED_VALUE]), &json, NULL)))
        add_new_refusal(f, got);
    else
        refusal_release(&got);
}

static void read_cache(struct refusals *f, struct buf *others)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest = STR_NONE;

    if (f->path && file_read_state(f->path, &text, NULL) > 0)
        rest = buf_str(&text);
    while (rest.p && rest.n > 0)
        read_cache_line(f, str_cut(&rest, '\n'), others);
    buf_release(&text);
}

void refusals_load(struct refusals *f, char *path, const char *model)
{
    f->path = path;
    f->model = mem_text(model);
    read_cache(f, NULL);
    f->stored = f->count;
}

/* The directory of the cache is locked, so that chats at once do not lose each other's lines. If
 * another chat keeps the lock for a second, as one that is stopped does, this one goes on without
 * it. */
int refusals_store(struct refusals *f, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    int result = -1;
    char *dir;

    if (!f->path || f->count <= f->stored)
        return 0;
    dir = path_parent(f->path);
    if (file_make_dirs(dir, e) >= 0) {
        int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        for (int tries = 0; lock >= 0 && tries < 100 && flock(lock, LOCK_EX | LOCK_NB) < 0; tries++)
            poll(NULL, 0, 10);
        read_cache(f, &text);
        for (size_t i = 0; i < f->count; i++) {
            if (f->at[i].since <= 0)
                continue;
            buf_set(&line, STR("{"));
            json_add_member(&line, "model", str_of(f->model));
            for (size_t k = 0; k < REFUSED_TEXTS; k++)
                if (f->at[i].text[k])
                    json_add_member(&line, members[k], str_of(f->at[i].text[k]));
            json_add_member_int(&line, "since", f->at[i].since);
            buf_add_c(&line, "}\n");
            buf_add_str(&text, buf_str(&line));
        }
        result = file_replace(f->path, buf_str(&text), e);
        file_close(lock);
    }
    if (result == 0)
        f->stored = f->count;
    buf_release(&text);
    buf_release(&line);
    free(dir);
    return result;
}

/* ---- the text of the error ---- */

/* Finds the next match of a pattern from *from on, which then is its end. Returns false if there is
 * none, also if a limit of PCRE2 is reached. */
__attribute__((format(printf, 4, 5))) static bool
find_next(struct str text, size_t *from, struct str *found, const char *format, ...)
{
    struct buf pattern = BUF_INIT(BUF_LINE);
    struct regex *regex;
    bool is = false;
    va_list args;
    size_t at;

    va_start(args, format);
    buf_vaddf(&pattern, format, args);
    va_end(args);
    regex = regex_new_bytes(buf_str(&pattern), NULL);
    if (regex)
        is = regex_find(regex, text, *from, false, &at, &found->n, NULL) > 0;
    if (is) {
        found->p = text.p + at;
        *from = at + found->n;
    }
    regex_free(regex);
    buf_release(&pattern);
    return is;
}

static bool mentions_word(struct str text, const char *word)
{
    struct str found;

    return find_next(text, &(size_t){0}, &found, "(?<![\\w.])\\Q%s\\E(?!\\.*\\w)", word);
}

/* A name, or a path of names, where errors name a field: with an underscore, in quotes, after a
 * colon, or at the beginning before one. It is no type ("Item 'rs_1' of type 'reasoning' was
 * provided without ..."). */
#define NAME_END "[\\w.]*\\w"
#define QUOTE "['\"`]"
#define FIELD_NAME                                                                                 \
    "(?<![\\w.])(?:[a-zA-Z0-9.]*_(?:" NAME_END ")?|^" NAME_END "(?=:)|(?<=: )" NAME_END            \
    "|(?<=" QUOTE ")(?<! type .)" NAME_END "(?=" QUOTE "))"

/* A number of tokens, also `8,192`: no part of a name such as `gpt-4-32k`, of a date or a fraction,
 * no HTTP status, and no place in the request. */
#define NUMBER                                                                                     \
    "(?i)(?:(?:\\w*(?:code|status)|line|column|http(?:/[\\d.]+)?|messages\\[)\\W{0,6}[\\d,]+"      \
    "|[a-z_][\\w-]*+|\\d+-\\d+-[\\d-]*|[.@/]\\d+)(*SKIP)(*F)"                                      \
    "|(?:\\d{1,3}(?:,\\d{3})+|\\d++)(?![\\w-])"

/* Returns a number, of which commas are no part. */
static int64_t parse_counted(struct str digits)
{
    int64_t n = 0;

    for (size_t i = 0; i < digits.n && n < INT32_MAX; i++)
        n = ascii_is_digit(digits.p[i]) ? n * 10 + (digits.p[i] - '0') : n;
    return n;
}

/* ---- an error while it is read ---- */

/* How many names of an error are looked up in the request at most, and the length of the longest.
 * Each lookup reads the request, so a server could otherwise keep the program busy for minutes. */
#define LOOKUPS_MAX 500
#define NAME_MAX_BYTES 200
/* How much of an error is searched for words, in bytes. */
#define SEARCHED_MAX ((size_t)64 << 10)

/* How many numbers of an error are read. */
#define NUMBERS_MAX 64

struct reading {
    const struct provider *provider;
    const struct ask *ask;
    int status;
    bool too_long;
    struct str sent;         /* the body of the request */
    struct str reply;        /* the error as it came */
    struct str value, error; /* the same as JSON, and the object in it that describes the error */
    struct buf message;      /* the text of the error */
    int64_t numbers[NUMBERS_MAX]; /* the numbers in that text */
    size_t numbers_count;
    struct buf notice, typed; /* `typed` is the flag that set the refused field */
    unsigned has;             /* bits of enum has */
    size_t lookups;
    bool learned;
};

/* What a context has that can be sent in another way. */
enum has { HAS_SYSTEM = 1 << 0, HAS_RESULTS = 1 << 1, HAS_REASONING = 1 << 2 };

static unsigned what_it_has(const struct provider *p, const struct ask *ask)
{
    const struct context *c = ask->context;
    bool described = ask->schema.p && (refusals_have(ask->refused, REFUSED_SCHEMA, NULL) ||
                                       refusals_have(ask->refused, REFUSED_JSON_SCHEMA, NULL));
    unsigned has = described || (c && c->system_len > 0) ? HAS_SYSTEM : 0;

    for (size_t i = 0; c && i < c->count; i++)
        has |= (c->at[i].role == ROLE_TOOL ? HAS_RESULTS : 0) |
               (context_blocks(&c->at[i], wire_asked(p, ask)).p ? HAS_REASONING : 0);
    return has;
}

/* Adds a refusal. The texts are copied. */
static void learn(struct reading *r, int64_t since, const char *thing, const char *only,
                  const char *value, const char *name)
{
    const char *const text[REFUSED_TEXTS] = {thing, only, value, name};
    struct refusal f = {.since = since};

    for (size_t i = 0; i < REFUSED_TEXTS; i++)
        f.text[i] = text[i] ? mem_text(text[i]) : NULL;
    r->learned = add_new_refusal(r->ask->refused, f) || r->learned;
}

/* Returns a short text for a long one in REFUSED_ONLY. The caller frees it. */
static char *id_of(struct str text)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    buf_addf(&id, "%016" PRIx64, hash64(text, 0));
    return buf_detach(&id);
}

/* Adds the text of the error, decoded. Gateways send the error of another server as the text
 * `metadata.raw` (OpenRouter). */
static void add_error_text(struct buf *message, struct str error)
{
    static const char *const keys[] = {"message", "error", "detail", "msg"};

    if (json_type(error) == JSON_STRING) {
        buf_add_c(message, message->len > 0 ? " " : "");
        json_decode(error, message);
    } else if (json_type(error) == JSON_OBJECT) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            add_error_text(message, json_get(error, keys[i]));
        add_error_text(message, json_get(json_get(error, "metadata"), "raw"));
    }
    for (struct json_iter it = json_iter(error); !it.object && json_next(&it);)
        add_error_text(message, it.value);
}

/* ---- the length of an answer ---- */

/* The lengths of an answer to try if the server names none, and the shortest one that is tried. */
#define LENGTH_FIRST 8192
#define LENGTH_SECOND 4096
#define LENGTH_LEAST 128
/* How many lengths of one model are learned at most: each repeats the request. */
#define LENGTHS_MAX 8

#define PROMPT_TOKENS                                                                              \
    "(?i)\\d[\\d,]*(?=[^\\d.]{0,12}(?:input tokens|prompt tokens|of input"                         \
    "|in (?:the messages|the prompt|your prompt)))"

/* Returns the number of the prompt's tokens if the text names it, or 0. `ours` is the length that
 * was sent. Servers write `P + OURS > MOST`, `TOTAL tokens (P in the messages, OURS in the
 * completion)` or `P input tokens`. */
static int64_t prompt_tokens(const struct reading *r, int64_t ours)
{
    struct str text = buf_str(&r->message), found;
    const int64_t *at = r->numbers;
    size_t from = 0;

    if (find_next(text, &from, &found, "\\d[\\d,]*(?= ?\\+ ?\\d)") &&
        (parse_counted(found) != ours || find_next(text, &from, &found, "\\d[\\d,]*")))
        return parse_counted(found);
    for (size_t i = 0; i < r->numbers_count; i++)
        for (size_t k = 0; k < r->numbers_count; k++)
            if (at[k] > 0 && at[k] != ours && at[i] - at[k] == ours)
                return at[k];
    for (from = 0; find_next(text, &from, &found, "%s", PROMPT_TOKENS);)
        if (parse_counted(found) != ours)
            return parse_counted(found);
    return 0;
}

/* Returns the length to ask for instead of `ours`, or 0: the largest number of the
 * text that is less, without the tokens of the prompt. *passing is set if it holds for this prompt
 * only. */
static int64_t shorter_length(const struct reading *r, int64_t ours, bool *passing)
{
    int64_t prompt = prompt_tokens(r, ours), best = 0;
    bool named = false;

    *passing = r->too_long || r->status == 402 || prompt > 0;
    for (size_t i = 0; i < r->numbers_count; i++) {
        int64_t number = r->numbers[i], n = number - prompt;

        if (number < LENGTH_LEAST || number == ours || number == prompt || number == r->status ||
            (prompt > 0 && n == ours))
            continue;
        named = named || prompt > 0;
        if (n > best && n < ours)
            best = n;
    }
    /* The number is the length of the prompt and the answer. */
    if (*passing && prompt == 0 && r->status != 402)
        best /= 2;
    /* If the prompt alone is too long, a shorter answer does not help. */
    if (best == 0 && !named && ours > LENGTH_SECOND)
        best = ours > LENGTH_FIRST ? LENGTH_FIRST : LENGTH_SECOND;
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

/* Asks for a shorter answer: the largest number of the error that is less than ours, without the
 * tokens of the prompt, else 8192, then 4096. What holds for this prompt only (`passing`), or what
 * the account can pay for now, is not remembered. */
static void learn_length(struct reading *r)
{
    size_t before = 0;
    bool passing;
    bool about = provider_error_mentions(
        r->reply, WORDS("max_tokens", "max_completion_tokens", "max_output_tokens", "max tokens",
                        "maximum tokens", "output tokens", "completion tokens", "num_predict"));
    char ours[24], value[24];
    const char *path = NULL;
    int64_t n = 0, less;

    for (size_t i = 0; !path && i < sizeof length_fields / sizeof *length_fields; i++)
        if (json_int(body_field_in(r->sent, length_fields[i]), &n))
            path = length_fields[i];
    for (size_t i = 0; i < r->ask->refused->count; i++)
        before += is_length(r->ask->refused->at[i].text[REFUSED_THING]) &&
                  r->ask->refused->at[i].text[REFUSED_ONLY];
    for (size_t i = 0; i < r->numbers_count; i++)
        about = about || r->numbers[i] == n;
    if (!path || before == LENGTHS_MAX || !about ||
        !provider_error_mentions(buf_str(&r->message),
                                 WORDS("large", "exceed", "at most", "maximum", "less than",
                                       "range", "illegal", "limit", "reduce", "fewer", "lower",
                                       "too many", "too high", "too big", "greater", "must be",
                                       "should be", ">", "<=")) ||
        body_field_is_typed(r->provider, r->ask, path, &r->typed))
        return;
    less = shorter_length(r, n, &passing);
    if (less == 0)
        return;
    (void)snprintf(ours, sizeof ours, "%" PRId64, n);
    (void)snprintf(value, sizeof value, "%" PRId64, less);
    buf_addf(&r->notice, "the server refuses an answer of %s tokens: asking with %s", ours, value);
    learn(r, passing ? REFUSED_NOW : time_now(), path, ours, value, NULL);
}

/* ---- fields that the error names ---- */

/* Returns true if a request cannot do without the field, or would mean something else. */
static bool is_needed(const struct reading *r, struct str path)
{
    struct str schema = r->ask->schema.p ? str_of(r->provider->schema_field) : STR_NONE, found;

    if (find_next(path, &(size_t){0}, &found,
                  "^(?:model|messages|input|system|tools|instructions|store|stream)(?:\\.|$)"))
        return true;
    return (schema.p && (str_starts(path, schema) || str_starts(schema, path))) ||
           (r->provider->needs_limit && str_eq_c(path, r->provider->limit_field));
}

/* Replaces the efforts `max` and `minimal` by the nearest one that the error names. Returns false
 * if it is about something else. `xhigh` is a word of OpenAI. */
static bool learn_effort(struct reading *r, const char *path)
{
    static const char *const efforts[] = {"minimal", "low", "medium", "high", "xhigh", "max"};
    enum { EFFORTS = sizeof efforts / sizeof *efforts };
    struct str value = body_field_in(r->sent, path);
    bool highest = json_is_text(value, "max");
    const char *ours = highest ? "max" : "minimal", *effort = NULL;
    char only[16], json[16];

    for (size_t i = 1; !effort && i < EFFORTS; i++)
        if (mentions_word(buf_str(&r->message), efforts[highest ? EFFORTS - 1 - i : i]))
            effort = efforts[highest ? EFFORTS - 1 - i : i];
    if (!effort || !same_or_null(path, r->provider->effort_field) || !json_is_text(value, ours) ||
        body_option_from(r->provider, r->ask, path, NULL) == ASK_FLAG)
        return false;
    (void)snprintf(only, sizeof only, "\"%s\"", ours);
    (void)snprintf(json, sizeof json, "\"%s\"", effort);
    buf_addf(&r->notice, "the server does not know the effort '%s': asking with '%s'", ours,
             effort);
    learn(r, time_now(), path, only, json, NULL);
    return true;
}

/* Gives the limit its other name, if the error says that its name is wrong, and not its value, and
 * the other one has not been refused. */
static bool learn_limit(struct reading *r, const char *path)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens"};
    const char *other = names[strcmp(path, names[0]) == 0];

    if ((other == names[0] && strcmp(path, names[1]) != 0) ||
        body_option_from(r->provider, r->ask, path, NULL) == ASK_FLAG ||
        body_field_in(r->sent, other).p || refusals_have(r->ask->refused, other, NULL) ||
        (!mentions_word(buf_str(&r->message), other) &&
         !provider_error_mentions(buf_str(&r->message),
                                  WORDS("unsupported", "not supported", "unrecognized", "extra",
                                        "unknown", "unexpected", "not permitted"))))
        return false;
    buf_addf(&r->notice, "the server refuses '%s': asking with '%s'", path, other);
    learn(r, time_now(), path, NULL, NULL, other);
    return true;
}

/* Learns that the field which the error means with this path is refused. Returns false if the
 * request has no such field. The member `type` belongs to its object, which means nothing without
 * it. */
static bool learn_field(struct reading *r, struct str path)
{
    char *field, *dot;
    bool found;

    if (path.n > NAME_MAX_BYTES || r->lookups >= LOOKUPS_MAX)
        return false;
    r->lookups++;
    field = mem_copy(path.p, path.n);
    while (!body_field_in(r->sent, field).p && (dot = strrchr(field, '.')) != NULL)
        *dot = '\0';
    dot = strrchr(field, '.');
    if (dot && strcmp(dot, ".type") == 0)
        *dot = '\0';
    found = *field && body_field_in(r->sent, field).p;
    if (found && !is_needed(r, str_of(field)) && !learn_effort(r, field) &&
        !learn_limit(r, field) && !body_field_is_typed(r->provider, r->ask, field, &r->typed)) {
        buf_addf(&r->notice, "the server refuses '%s': asking without it", field);
        learn(r, time_now(), field, NULL, NULL, NULL);
    }
    free(field);
    return found;
}

/* Reads the name of a field: `max_tokens`, `messages[0].content`, ["body","reasoning_effort"]. */
static bool learn_place(struct reading *r, struct str place)
{
    struct buf path = BUF_INIT(BUF_LINE);
    struct str name;
    bool found;

    for (size_t from = 0;
         find_next(place, &from, &name, "(?<=\")[^\",[\\]\\\\][^\"[\\\\]*+(?=[\"[])");) {
        if (path.len == 0 && str_eq_c(name, "body"))
            continue;
        buf_add_c(&path, path.len > 0 ? "." : "");
        buf_add_str(&path, name);
    }
    found = path.len > 0 && learn_field(r, buf_str(&path));
    buf_release(&path);
    return found;
}

/* Learns the fields that the error names. In its text the first word that is one decides, but a
 * text about a message names none, and `user` is a role where the text is about roles. */
static void learn_fields(struct reading *r)
{
    struct str text = buf_str(&r->message), name;
    bool found = learn_place(r, json_get(r->error, "param"));
    /* Mistral has the details inside of the message. */
    const struct str details[] = {json_get(r->error, "detail"), json_get(r->value, "detail"),
                                  json_get(json_get(r->error, "message"), "detail")};
    bool roles = provider_error_mentions(text, WORDS("role"));

    for (size_t i = 0; !found && i < sizeof details / sizeof *details; i++)
        for (struct json_iter it = json_iter(details[i]);
             !it.object && !r->learned && json_next(&it);)
            found = learn_place(r, json_get(it.value, "loc")) || found;
    found = found || provider_error_mentions(text, WORDS("messages.", "messages["));
    for (size_t from = 0;
         !found && r->lookups < LOOKUPS_MAX && find_next(text, &from, &name, "%s", FIELD_NAME);)
        found = !(str_eq_c(name, "user") && roles) && learn_field(r, name);
}

/* ---- tools ---- */

/* The most tools that are sent if the server does not say how many it takes: OpenAI's number. */
#define TOOLS_MOST 128

/* Returns the name of a tool of the request, or its type. The text is in `scratch`. */
static struct str name_of_tool(struct str tool, struct buf *scratch)
{
    struct str name = json_get(json_get(tool, "function"), "name");

    if (!name.p)
        name = json_get(tool, "name");
    return json_text(name.p ? name : json_get(tool, "type"), scratch);
}

/* Returns whether the tool is left out, because the server has refused one declared like this. With
 * a reading, the server refuses it now. One that the user typed stays: as an option, or as one of
 * the server. */
static bool leaves_tool(const struct provider *p, const struct ask *ask, struct str tool,
                        struct reading *r)
{
    struct buf thing = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct str name = name_of_tool(tool, &scratch);
    bool may = name.n > 0 && body_option_from(p, ask, "tools", NULL) != ASK_FLAG &&
               !(ask->tools_flag && ask->hosted_tools_count > 0),
         out;
    char *id = id_of(tool);

    for (size_t i = 0; i < ask->tools_count; i++)
        may = may || str_eq_c(name, ask->tools[i]->name);
    buf_addf(&thing, "tool %.*s", (int)name.n, name.n > 0 ? name.p : "");
    out = may && refusals_have(ask->refused, buf_c(&thing), id);
    if (r && !may) {
        body_field_is_typed(r->provider, r->ask, "tools", &r->typed);
    } else if (r && !out) {
        buf_addf(&r->notice, r->learned ? ", '%s'" : "the server refuses the tool '%s'",
                 buf_c(&thing) + strlen("tool "));
        learn(r, time_now(), buf_c(&thing), id, NULL, NULL);
    }
    buf_release(&thing);
    buf_release(&scratch);
    free(id);
    return out;
}

/* A place in the list of tools: `tools[3].function.name`, `tools.3.custom.input_schema`,
 * ["body","tools",3]. Google counts the functions of its only tool
 * (`tools[0].function_declarations[7]`), and Bedrock from 1 (`toolConfig.tools.1.member`). */
#define BEFORE_PLACE "(?!,)[\\[./\\\\\"',]+(?:(?<=,) )?"
#define FUNCTIONS "\\W{1,3}function_?[dD]eclarations"
#define TOOL_PLACE                                                                                 \
    "tools" BEFORE_PLACE "(?:\\d+" FUNCTIONS BEFORE_PLACE "\\K\\d+|\\K\\d++(?!" FUNCTIONS "))"     \
    "(?:\\.member)?"

/* The name of a tool in a text: `function 'x'`, `tool x`, `name: x`, `x: ...` at the beginning. */
#define TOOL_NAMED "(?:(?<=" QUOTE "|: |ool |nction )|^(?=[\\w-]+:))\\Q%.*s\\E(?![\\w-])"

/* Sends fewer tools than `count`. */
static void learn_many_tools(struct reading *r, size_t count)
{
    const int64_t *at = r->numbers;
    struct str text = buf_str(&r->message);
    int64_t most = 0, all = (int64_t)count;
    char only[24], value[24];

    if ((!provider_error_mentions(text, WORDS("tools", "functions", "function declarations")) &&
         !str_find(r->reply, STR("\"tools\""))) ||
        !provider_error_mentions(text, WORDS("too many", "too long", "maximum", "at most",
                                             "more than", "exceed", "limit", "up to", "max ")))
        return;
    for (size_t i = 0; i < r->numbers_count; i++)
        if (at[i] > most && at[i] < all && at[i] != r->status)
            most = at[i];
    if (most == 0 && provider_error_mentions(text, WORDS("too many tools", "too many function")))
        most = all > TOOLS_MOST ? TOOLS_MOST : all / 2;
    if (most == 0 || body_field_is_typed(r->provider, r->ask, "tools", &r->typed) ||
        (r->ask->tools_flag && r->ask->hosted_tools_count > 0))
        return;
    (void)snprintf(only, sizeof only, "%" PRId64, all);
    (void)snprintf(value, sizeof value, "%" PRId64, most);
    buf_addf(&r->notice,
             "the server takes at most %" PRId64 " tools: the last %" PRId64 " are left out", most,
             all - most);
    learn(r, time_now(), REFUSED_MANY, only, value, NULL);
}

/* Leaves out the tools whose schema has the property that the error names. Moonshot names no more:
 * "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path
 * 'properties.source': type is not defined>". */
static void learn_property(struct reading *r, struct str list)
{
    struct str text = buf_str(&r->message), word;

    for (size_t from = 0; r->lookups < LOOKUPS_MAX &&
                          find_next(text, &from, &word, "(?<![\\w.])properties\\." NAME_END);) {
        char *path = mem_copy(word.p, word.n);

        for (struct json_iter it = json_iter(list); r->lookups < LOOKUPS_MAX && json_next(&it);) {
            struct str tool = json_get(it.value, "function"), schema;

            r->lookups++;
            tool = tool.p ? tool : it.value;
            schema = json_get(tool, "parameters");
            if (body_field_in(schema.p ? schema : json_get(tool, "input_schema"), path).p)
                leaves_tool(r->provider, r->ask, it.value, r);
        }
        free(path);
    }
}

/* Leaves out the tools that the error names by their places, names or properties, or the only one
 * that is sent, or the last ones if they are too many. */
static void learn_tools(struct reading *r)
{
    struct str list = json_get(r->sent, "tools"), text = buf_str(&r->message), found;
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t count = 0, from = 0;
    /* Not about a call of the model. */
    bool by_name =
        !provider_error_mentions(r->reply, WORDS("messages[", "messages.", "tool_calls",
                                                 "tool call", "tool_use_failed")) &&
        provider_error_mentions(text, WORDS("schema", "valid", "support", "must", "allowed", "long",
                                            "missing", "require", "duplicate", "unique", "reserved",
                                            "malformed", "expected", "unknown"));
    bool by_schema = by_name && provider_error_mentions(text, WORDS("schema")) &&
                     provider_error_mentions(text, WORDS("tool", "function"));

    for (struct json_iter it = json_iter(list); json_next(&it);)
        count++;
    while (count > 0 && r->lookups++ < LOOKUPS_MAX &&
           find_next(r->reply, &from, &found, "%s", TOOL_PLACE))
        leaves_tool(r->provider, r->ask,
                    json_at(list, (size_t)(parse_counted(found) - str_ends(found, STR(".member")))),
                    r);
    for (struct json_iter it = json_iter(list); by_name && json_next(&it);) {
        struct str name = name_of_tool(it.value, &scratch);
        size_t start = 0;

        if ((by_schema && count == 1) ||
            (name.n > 0 && find_next(text, &start, &found, TOOL_NAMED, (int)name.n, name.p)))
            leaves_tool(r->provider, r->ask, it.value, r);
    }
    if (by_schema && !r->learned)
        learn_property(r, list);
    if (r->learned)
        buf_addf(&r->notice, ": asking without %s",
                 str_find(buf_str(&r->notice), STR("', '")) ? "them" : "it");
    else if (count > 0 && from == 0)
        learn_many_tools(r, count);
    buf_release(&scratch);
}

/* ---- the table of what can be refused ---- */

/* Sets the effort `none` for requests with tools. OpenAI's words: "Function tools with
 * reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools,
 * use /v1/responses or set reasoning_effort to 'none'." */
static void learn_tools_without_effort(struct reading *r)
{
    const char *effort = r->provider->effort_field;
    struct str text = buf_str(&r->message);

    if (!effort || !body_field_in(r->sent, "tools").p || !mentions_word(text, effort) ||
        !mentions_word(text, "none") || !provider_error_mentions(text, WORDS("tool")) ||
        body_field_is_typed(r->provider, r->ask, effort, NULL))
        return;
    buf_addf(&r->notice, "the server takes tools only without reasoning: asking with %s 'none'",
             effort);
    learn(r, time_now(), "tools", NULL, "\"none\"", effort);
}

/* The things that can be refused, in the order in which the error is compared with them: first what
 * chat or the configuration chose, then parts of the conversation, whose rules look for words that
 * many errors have. The error must have one of the words `about` it, and its text one of the words
 * `how`, unless that is NULL. */
static const struct rule {
    const char *thing;
    const char
        *field; /* the field of the request, which the user has not set by a flag; NULL: none */
    /* The field of the schema, of which only this one is refused; empty: the provider's. */
    const char *schema;
    unsigned has; /* bits of enum has, all of which the context must have */
    const char *const *about, *const *how;
    const char *but;   /* the text must have none of this */
    const char *value; /* the value that is sent instead; NULL: none */
    bool sent;         /* only the value that was sent is */
    bool here;
    const char *notice;
    void (*learn)(struct reading *r); /* reads the error instead */
    bool any;   /* also if the conversation is too long, or the account cannot pay for the answer */
    int status; /* this status counts, too */
} rules[] = {
    {.learn = learn_tools},
    {.learn = learn_tools_without_effort},
    /* Groq, and servers of llama.cpp's kind. The older form of response_format has the schema
     * beside the type. */
    {.thing = REFUSED_JSON_SCHEMA,
     .schema = "response_format.json_schema",
     .about = WORDS("response_format", "response format", "json_schema")},
    {.thing = REFUSED_SCHEMA,
     .schema = "",
     .about = WORDS("response_format", "response format", "json_schema", "text.format", "'text'",
                    "output_config.format", "output_config:", "output_format", "output format",
                    "structured output")},
    /* Ollama: a schema that cannot be made a grammar. */
    {.thing = REFUSED_SCHEMA, .schema = "format", .about = WORDS("format", "schema", "grammar")},
    /* DeepSeek and Kimi demand a member that the messages of other models lack. */
    {.thing = REFUSED_SILENCE,
     .about = WORDS("reasoning_content"),
     .how = WORDS("missing", "passed back", "required", "must be", "must have", "must contain",
                  "is needed", "expected")},
    /* Gemini demands the signature of a call, also of one that another model made. */
    {.thing = REFUSED_UNSIGNED,
     .about = WORDS("thought_signature", "thought signature"),
     .how = WORDS("missing", "required", "must have", "must be")},
    /* A container that has expired, or that is another one's. */
    {.thing = "container",
     .field = "container",
     .about = WORDS("container"),
     .sent = true,
     .here = true,
     .notice = "the server does not know its container any more: it is left out",
     .status = 404},
    {.thing = "thinking",
     .field = "thinking",
     .about = WORDS("adaptive thinking"),
     .notice = "the model has no adaptive thinking: 'thinking' is left out"},
    {.thing = "think", /* Ollama, server/routes.go */
     .field = "think",
     .about = WORDS("does not support thinking"),
     .notice = "the model does not reason: asking without 'think'"},
    {.learn = learn_length, .any = true},
    {.thing = "stream",
     .field = "stream",
     .about = WORDS("streaming", "'stream'", "\"stream\"", "`stream`", " stream", "stream="),
     .but = "stream_options",
     .how = WORDS("support", "verified", "allowed", "available", "disabled", "false", "permitted",
                  "implemented", "invalid", "cannot", "unknown", "must"),
     .sent = true,
     .value = "false",
     .notice = "the server does not stream: asking for the whole answer"},
    {.learn = learn_fields},
    /* From here on the conversation itself is changed: only if no field was named above. */
    /* OpenAI's code `invalid_encrypted_content`: it is from another organisation or a model that is
     * gone; the model does not reason, an item is missing beside it, or the server does not take
     * such items back (llama.cpp, server-common.cpp). */
    {.thing = REFUSED_REASONING,
     .has = HAS_REASONING,
     .about = WORDS("encrypted", "'reasoning'", "'rs_", "of 'item'", "item['", "item type",
                    "\"param\":\"input", "\"param\": \"input", "input item", "reasoning_content",
                    "reasoning_details", ".reasoning'", "thinking_blocks", "extra_content",
                    "provider_specific_fields"),
     .here = true,
     .notice = "the server does not take its earlier reasoning back: it is left out"},
    /* "messages.1.content.0: Invalid `signature` in `thinking` block", "... cannot be modified" */
    {.thing = REFUSED_REASONING,
     .has = HAS_REASONING,
     .about = WORDS("messages."),
     .how = WORDS("thinking", "compaction"),
     .here = true,
     .notice = "the server refuses the model's earlier thinking: it is left out"},
    /* The templates of several models (Gemma, Llama 2) know no role but system, user and assistant.
     * A server then answers with the exception of the template, such as llama.cpp's HTTP 400
     * "Conversation roles must alternate user/assistant/user/assistant/...". */
    {.thing = REFUSED_RESULTS,
     .has = HAS_RESULTS,
     .about = WORDS("template", "role", "tool"),
     .notice = "the server takes no results of tools: they are sent as text"},
    {.thing = REFUSED_SYSTEM,
     .has = HAS_SYSTEM,
     .about = WORDS("system role", "system message", "system prompt", "system instruction",
                    "system:", "'system'", "`system`", "\"system\"", "'instructions'",
                    "developer instruction", "developer message", "developer role", "'developer'",
                    "roles must", "roles are", "messages[0].role", "messages.0.role",
                    "'user' or 'assistant'", "user or assistant"),
     .how = WORDS("support", "allowed", "permitted", "enabled", "unknown", "unexpected", "invalid",
                  "must", "should be", "expected", "only", "not accept", "unrecognized", "no such",
                  "unavailable", "not available", "without"),
     .notice = "the model knows no system prompt: it is sent before the first prompt"},
};

/* Returns the field of the schema that a rule is about, or NULL if it is about no schema. */
static const char *schema_field(const struct provider *p, const struct rule *rule)
{
    return rule->schema && !*rule->schema ? p->schema_field : rule->schema;
}

/* Learns what a rule of the table says, if the request has the thing and the user did not set it by
 * a flag. The schema is not in its field if an option is there. A part of the conversation does not
 * give way to a flag that the error names. What comes as the server's own failure may be one: it is
 * not remembered for a day. */
static void apply_rule(struct reading *r, const struct rule *rule)
{
    struct str text = buf_str(&r->message);
    const char *field = rule->field ? rule->field : schema_field(r->provider, rule);
    struct str sent = field ? body_field_in(r->sent, field) : STR_NONE;
    char *id;

    if (rule->learn) {
        rule->learn(r);
        return;
    }
    if ((rule->but && mentions_word(text, rule->but)) ||
        (!provider_error_mentions(text, rule->about) &&
         !provider_error_mentions(r->reply, rule->about)) ||
        (rule->how && !provider_error_mentions(text, rule->how)) ||
        (r->has & rule->has) != rule->has || (rule->has && r->typed.len > 0) ||
        (field && (!sent.p || (rule->value && str_eq_c(sent, rule->value)))))
        return;
    if (rule->schema && (!field || !r->ask->schema.p ||
                         body_option_from(r->provider, r->ask, field, NULL) != ASK_PROVIDER))
        return;
    if (rule->field && body_field_is_typed(r->provider, r->ask, field, &r->typed))
        return;
    id = rule->schema ? id_of(r->ask->schema) : rule->sent ? mem_copy(sent.p, sent.n) : NULL;
    learn(r, rule->here || r->status >= 500 ? REFUSED_HERE : time_now(), rule->thing, id,
          rule->value, NULL);
    buf_add_c(&r->notice, rule->notice ? rule->notice : "");
    free(id);
}

bool refusals_learn(const struct provider *p, const struct ask *ask, int status, bool too_long,
                    struct str reply, struct str sent, struct buf *notice)
{
    struct str found;
    struct reading r = {.provider = p,
                        .ask = ask,
                        .status = status,
                        .too_long = too_long,
                        .reply = {reply.p, reply.n < SEARCHED_MAX ? reply.n : SEARCHED_MAX},
                        .has = what_it_has(p, ask),
                        .message = BUF_INIT(BUF_LINE),
                        .notice = BUF_INIT(BUF_LINE),
                        .typed = BUF_INIT(BUF_LINE)};
    bool bad = status == 400 || status == 422;
    bool all = !too_long && (bad || status == 500 || status == 501);
    bool any = all || bad || status == 402 || status == 404 || status == 413;

    if (!ask->refused || !any || !json_check(sent, &r.sent, NULL))
        return false;
    reply = provider_error_body(reply);
    if (!json_check(reply, &r.value, NULL)) {
        buf_add_str(&r.message, str_trim(reply));
        r.value = STR_NONE;
    }
    r.error = provider_error_object(&r.value);
    add_error_text(&r.message, r.error);
    buf_truncate(&r.message, SEARCHED_MAX);
    for (size_t from = 0; r.numbers_count < NUMBERS_MAX &&
                          find_next(buf_str(&r.message), &from, &found, "%s", NUMBER);)
        r.numbers[r.numbers_count++] = parse_counted(found);
    for (size_t i = 0; !r.learned && i < sizeof rules / sizeof *rules; i++) {
        buf_clear(&r.notice);
        if (all || (rules[i].any && status != 404) || rules[i].status == status)
            apply_rule(&r, &rules[i]);
    }
    buf_add_str(notice, buf_str(r.learned ? &r.notice : &r.typed));
    buf_release(&r.message);
    buf_release(&r.notice);
    buf_release(&r.typed);
    return r.learned;
}

/* ---- applying ---- */

static void leave_tools(cJSON *body, const struct provider *p, const struct ask *ask)
{
    const struct refusals *f = ask->refused;
    struct buf scratch = BUF_INIT(SIZE_MAX), kept = BUF_INIT(SIZE_MAX);
    struct str tools = f && f->count > 0 ? body_field(body, "tools", &scratch) : STR_NONE;
    int64_t most = INT64_MAX, value, count = 0;

    for (size_t i = 0; f && i < f->count; i++)
        if (strcmp(f->at[i].text[REFUSED_THING], REFUSED_MANY) == 0 &&
            json_int(str_of(f->at[i].text[REFUSED_VALUE]), &value) && value < most)
            most = value;
    for (struct json_iter it = json_iter(tools); json_next(&it) && count < most;) {
        if (leaves_tool(p, ask, it.value, NULL))
            continue;
        buf_add_byte(&kept, count++ > 0 ? ',' : '[');
        buf_add_str(&kept, it.value);
    }
    buf_add_byte(&kept, ']');
    if (tools.p && kept.len < tools.n)
        body_set_field(body, "tools", count > 0 ? buf_str(&kept) : STR_NONE);
    buf_release(&scratch);
    buf_release(&kept);
}

void body_leave_refused(cJSON *body, const struct provider *p, const struct ask *ask)
{
    struct buf scratch = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; ask->refused && i < ask->refused->count; i++) {
        char *const *text = ask->refused->at[i].text;
        const char *path = text[REFUSED_THING], *only = text[REFUSED_ONLY];
        const char *name = text[REFUSED_NAME];
        struct str value = body_field(body, path, &scratch);

        if (!value.p || (only && !str_eq_c(value, only)))
            continue;
        /* Another word for the same is not less than the user wants. */
        if ((only && !is_length(path)) || (name && !text[REFUSED_VALUE])
                ? body_option_from(p, ask, path, NULL) == ASK_FLAG
                : body_field_is_typed(p, ask, name ? name : path, NULL))
            continue;
        if (name && !text[REFUSED_VALUE])
            body_set_field(body, name, value);
        body_set_field(body, name && text[REFUSED_VALUE] ? name : path,
                       str_of(text[REFUSED_VALUE]));
        /* This field is refused without a stream. */
        if (strcmp(path, "stream") == 0)
            body_set_field(body, "stream_options", STR_NONE);
    }
    leave_tools(body, p, ask);
    buf_release(&scratch);
}

/* Puts the system prompt before the first prompt, in `first`. */
static void fold_system(struct context *c, struct buf *first)
{
    bool begins = c->count > 0 && c->at[0].role == ROLE_USER;

    if (!begins) {
        memmove(c->at + 1, c->at, c->count++ * sizeof *c->at);
        c->at[0] = (struct context_message){.role = ROLE_USER};
        c->turn++;
    }
    buf_add(first, c->system, c->system_len);
    if (begins) {
        buf_add_c(first, "\n\n");
        buf_add(first, c->at[0].content, c->at[0].n);
    }
    c->at[0].content = first->data;
    c->at[0].n = first->len;
    c->system = NULL;
    c->system_len = 0;
}

int refusals_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                     struct err *e)
{
    struct buf system = BUF_INIT(SIZE_MAX), first = BUF_INIT(SIZE_MAX);
    struct context as_text, c = *ask->context;
    const struct refusals *f = ask->refused;
    struct ask changed = *ask;
    char *id = id_of(ask->schema);
    int result;

    context_init(&as_text);
    if (refusals_have(f, REFUSED_RESULTS, NULL)) {
        wire_calls_to_text(&c, &as_text);
        c.at = as_text.at;
        c.count = as_text.count;
        c.turn = as_text.turn;
    }
    c.cap = 0;
    c.at = memcpy(mem_grow(NULL, &c.cap, c.count + 1, sizeof *c.at), c.at, c.count * sizeof *c.at);
    for (size_t i = 0; refusals_have(f, REFUSED_REASONING, NULL) && i < c.count; i++)
        c.at[i].thinking = NULL;
    changed.schema_beside = ask->schema.p && refusals_have(f, REFUSED_JSON_SCHEMA, id);
    if (ask->schema.p && (changed.schema_beside || refusals_have(f, REFUSED_SCHEMA, id))) {
        buf_add(&system, c.system, c.system_len);
        wire_add_schema(ask, &system);
        c.system = system.data;
        c.system_len = system.len;
        if (refusals_have(f, REFUSED_SCHEMA, id))
            changed.schema = STR_NONE;
    }
    if (c.system_len > 0 && refusals_have(f, REFUSED_SYSTEM, NULL))
        fold_system(&c, &first);
    changed.context = &c;
    result = p->request(p, &changed, r, e);
    context_release(&as_text);
    buf_release(&system);
    buf_release(&first);
    free(c.at);
    free(id);
    return result;
}
