#include "chathist/search/query.h"

#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/session_list.h"

enum kind {
    KIND_ROLE,
    KIND_SINCE,
    KIND_UNTIL,
    KIND_MODEL,
    KIND_FROM,
    KIND_FILE,
    KIND_TOOL,
    KIND_TITLE,
    KIND_REPO,
    KIND_SESSION,
    KIND_ID,
    KIND_COUNT,
    KIND_WORDS = KIND_COUNT, /* no field: a word or a phrase */
};

static const struct field_name {
    const char *name;
    enum kind kind;
} names[] = {
    {"role", KIND_ROLE},       {"since", KIND_SINCE}, {"after", KIND_SINCE}, {"until", KIND_UNTIL},
    {"before", KIND_UNTIL},    {"model", KIND_MODEL}, {"from", KIND_FROM},   {"file", KIND_FILE},
    {"tool", KIND_TOOL},       {"title", KIND_TITLE}, {"repo", KIND_REPO},   {"in", KIND_REPO},
    {"session", KIND_SESSION}, {"id", KIND_ID},
};
#define NAMES (sizeof names / sizeof *names)

const char *query_field(size_t number)
{
    return number < NAMES ? names[number].name : NULL;
}

struct query_term {
    enum kind kind;
    const char *name; /* of the field, as it was typed */
    bool unwanted;
    bool expression;          /* a regular expression, not a word */
    size_t at, n;             /* where it is in the query; a word without quotes is its own text */
    struct buf text;          /* the word, or the value of the field in the form of fold_value */
    int64_t time;             /* the value of since: or until:, in microseconds */
    struct hash_map sessions; /* whose title matches, in the history that was entered */
    bool met;                 /* by the repository of that history */
};

/* ---- values ---- */

/* Adds a text in the form in which the values of fields are compared. */
static void fold_value(struct buf *out, struct str text)
{
    struct buf composed = BUF_INIT(SIZE_MAX);

    if (utf8_ascii(text) < text.n) {
        utf8_add_composed(&composed, text);
        text = buf_str(&composed);
    }
    utf8_add_folded(out, text);
    buf_release(&composed);
}

enum where { ANYWHERE, AT_AN_END, WHOLE };

/* Returns whether a term is in the text, at this place. */
static bool is_in(const struct query_term *t, struct str text, enum where where)
{
    struct buf key = BUF_INIT(SIZE_MAX);
    struct str part = buf_str(&t->text);
    bool found;

    if (!text.p)
        return false;
    fold_value(&key, text);
    text = buf_str(&key);
    found = where == WHOLE       ? str_eq(text, part)
            : where == AT_AN_END ? str_starts(text, part) || str_ends(text, part)
                                 : str_find(text, part) != NULL;
    buf_release(&key);
    return found;
}

/* Returns whether the term is in any text inside a JSON value. */
static bool is_in_value(const struct query_term *t, struct str value)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str leaf;
    bool found = false;

    while (!found && json_next_leaf(&value, &leaf))
        found = is_in(t, json_text(leaf, &scratch), ANYWHERE);
    buf_release(&scratch);
    return found;
}

/* Returns whether the term is in an argument of a call whose key says that it names files. */
static bool is_file_of_call(const struct query_term *t, struct str args)
{
    struct json_iter it = json_iter(args);
    struct buf key = BUF_INIT(SIZE_MAX);
    bool found = false;

    while (!found && json_next(&it) && it.object) {
        buf_clear(&key);
        fold_value(&key, it.key);
        found = (str_find(buf_str(&key), STR("file")) || str_find(buf_str(&key), STR("path"))) &&
                is_in_value(t, it.value);
    }
    buf_release(&key);
    return found;
}

/* Returns whether a tool call of the message has that name, or with `file` that file. */
static bool is_in_calls(const struct query_term *t, const struct message *m, bool file)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf unpacked = BUF_INIT(BUF_LINE);
    struct message_call call;
    bool found = false;

    while (!found && message_next_call(&it, &call, &unpacked))
        found = file ? is_file_of_call(t, call.args)
                     : json_type(call.name) == JSON_STRING && is_in_value(t, call.name);
    buf_release(&unpacked);
    return found;
}

static bool is_model(const struct query_term *t, const struct message *m)
{
    struct buf name = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct str provider = message_text(m, FIELD_PROVIDER, &scratch);
    struct str model;
    bool found;

    if (provider.p) {
        buf_add_str(&name, provider);
        buf_add_byte(&name, ':');
    }
    model = message_text(m, FIELD_MODEL, &scratch);
    buf_add_str(&name, model);
    found = model.p && is_in(t, buf_str(&name), ANYWHERE);
    buf_release(&name);
    buf_release(&scratch);
    return found;
}

static bool is_from(const struct query_term *t, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool found = is_in(t, message_tool(m, &scratch), ANYWHERE);

    buf_release(&scratch);
    return found;
}

/* Returns whether a message has the property that a field demands. */
static bool is_met(const struct query_term *t, const struct message *m)
{
    int64_t us;

    switch (t->kind) {
    case KIND_ROLE:
        return is_in(t, m->role_text, WHOLE);
    case KIND_SINCE:
    case KIND_UNTIL:
        return time_parse_iso(m->timestamp, &us) &&
               (t->kind == KIND_SINCE ? us >= t->time : us <= t->time);
    case KIND_MODEL:
        return is_model(t, m);
    case KIND_FROM:
        return is_from(t, m);
    case KIND_FILE:
        return is_in_value(t, m->field[FIELD_FILES]) ||
               is_in_value(t, m->field[FIELD_FILES_MODIFIED]) || is_in_calls(t, m, true);
    case KIND_TOOL:
        return is_in_calls(t, m, false);
    case KIND_TITLE:
        return hash_map_find(&t->sessions, m->session_id) != NULL;
    case KIND_REPO:
        return t->met;
    case KIND_SESSION:
        return is_in(t, m->session_id, AT_AN_END);
    case KIND_ID:
        return is_in(t, m->session_id, AT_AN_END) || is_in(t, m->id, AT_AN_END);
    default:
        return true;
    }
}

/* The fields that any message of a session may meet, with query->in_session. */
#define NEEDS (1u << KIND_MODEL | 1u << KIND_FILE | 1u << KIND_TOOL)
#define ALL ((1u << KIND_COUNT) - 1)
/* The fields of which each must be met, not just one. */
#define LIMITS (1u << KIND_SINCE | 1u << KIND_UNTIL)

/* Returns those of these kinds of fields that the query wants. */
static unsigned wanted(const struct query *q, unsigned kinds)
{
    unsigned found = 0;

    for (size_t i = 0; i < q->count; i++)
        if (!q->terms[i].unwanted)
            found |= 1u << q->terms[i].kind & kinds & ~LIMITS;
    return found;
}

/* Adds the kinds of fields that the message meets. Returns false if it breaks one. */
static bool meets_fields(const struct query *q, unsigned kinds, const struct message *m,
                         unsigned *met)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct query_term *t = &q->terms[i];
        unsigned kind = 1u << t->kind & kinds;
        bool holds;

        if (kind == 0 || (*met & kind && !t->unwanted))
            continue;
        holds = is_met(t, m);
        if (holds ? t->unwanted : kind & LIMITS)
            return false;
        if (!(kind & LIMITS) && holds)
            *met |= kind;
    }
    return true;
}

bool query_accepts(const struct query *q, const struct message *m)
{
    unsigned kinds = q->in_session ? ALL & ~NEEDS : ALL, met = 0;

    return !q->fields || (meets_fields(q, kinds, m, &met) && met == wanted(q, kinds));
}

bool query_has_needs(const struct query *q)
{
    bool found = false;

    for (size_t i = 0; i < q->count; i++)
        found |= (1u << q->terms[i].kind & NEEDS) != 0;
    return found;
}

unsigned query_needs(const struct query *q)
{
    return wanted(q, NEEDS);
}

bool query_meets(const struct query *q, const struct message *m, unsigned *met)
{
    return meets_fields(q, NEEDS, m, met);
}

/* ---- a history ---- */

/* Fills in the sessions whose title, or else preview, holds the text of a term. */
static int find_titles(struct query_term *t, const struct history *h, struct err *e)
{
    struct session_list list;

    hash_map_release(&t->sessions);
    if (session_list_newest(&list, h, SIZE_MAX, e) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const struct session *s = &list.at[i];

        if (is_in(t, session_label(s), ANYWHERE))
            hash_map_add(&t->sessions, s->id);
    }
    session_list_release(&list);
    return 0;
}

int query_enter(struct query *q, const struct history *h, struct str repo, struct err *e)
{
    bool wanted = false, met = false;

    for (size_t i = 0; i < q->count; i++) {
        struct query_term *t = &q->terms[i];

        if (t->kind == KIND_TITLE && find_titles(t, h, e) < 0)
            return -1;
        if (t->kind != KIND_REPO)
            continue;
        t->met = is_in(t, repo, ANYWHERE);
        if (t->met && t->unwanted)
            return 0;
        wanted |= !t->unwanted;
        met |= t->met;
    }
    return met || !wanted;
}

/* ---- parsing ---- */

static size_t term_end(struct str text)
{
    size_t n = 0;

    while (n < text.n && !ascii_is_space(text.p[n]))
        n++;
    return n;
}

/* Returns whether a name before digits was meant as that of a field whose values begin with digits. */
static bool is_near_field(struct str name)
{
    struct buf lower = BUF_INIT(BUF_SMALL);
    bool found = false;

    utf8_add_folded(&lower, name);
    for (size_t i = 0; i < NAMES && !found; i++) {
        enum kind kind = names[i].kind;

        found = (kind == KIND_SINCE || kind == KIND_UNTIL || kind == KIND_SESSION) &&
                str_distance(buf_str(&lower), str_of(names[i].name), 2) < 2;
    }
    buf_release(&lower);
    return found;
}

/* Returns whether a term that begins with an unknown name and a colon was meant as a field. That is
 * not so in `C:`, `https://`, `std::` and `localhost:80`, but in `befor:2026`. */
static bool names_no_field(struct str term, size_t name)
{
    struct str value = {term.p + name + 1, term.n - name - 1};
    size_t digits = 0;

    if (value.n > 0 && ascii_is_digit(*value.p) && is_near_field((struct str){term.p, name}))
        return true;
    while (digits < value.n && ascii_is_digit(value.p[digits]))
        digits++;
    return name > 1 && digits < value.n &&
           (digits > 0 || ascii_is_letter(*value.p) || *value.p == '"' || (*value.p & 0x80));
}

/* Sets *e to what is wrong with a name that no field has, and to those that there are. */
static int refuse_name(struct str name, struct err *e)
{
    struct buf all = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < NAMES; i++)
        buf_addf(&all, "%s%s:", i > 0 ? " " : "", names[i].name);
    err_set(e, ERR_USAGE, "no field '%.*s:' (%s); a text with a colon needs quotes", (int)name.n,
            name.p, buf_c(&all));
    buf_release(&all);
    return -1;
}

/* Removes the name of a field and its colon from the text, and sets the kind of the term. It is
 * KIND_WORDS, and nothing is removed, if the text begins with none. Returns 0, or -1 with *e set. */
static int cut_field(struct str *text, struct query_term *t, struct err *e)
{
    struct buf lower = BUF_INIT(BUF_SMALL);
    size_t n = 0, i = 0;

    while (n < text->n && ascii_is_letter(text->p[n]))
        n++;
    if (n == text->n || text->p[n] != ':')
        return 0;
    utf8_add_folded(&lower, (struct str){text->p, n});
    while (i < NAMES && !str_eq_c(buf_str(&lower), names[i].name))
        i++;
    buf_release(&lower);
    if (i == NAMES)
        return names_no_field((struct str){text->p, term_end(*text)}, n)
                   ? refuse_name((struct str){text->p, n}, e)
                   : 0;
    t->kind = names[i].kind;
    t->name = names[i].name;
    *text = str_skip(*text, n + 1);
    return 0;
}

/* Removes an expression between slashes and adds it to `out`. Returns false if there is none. */
static bool cut_expression(struct str *text, struct buf *out)
{
    size_t n = term_end(*text);

    if (n < 3 || text->p[0] != '/' || text->p[n - 1] != '/')
        return false;
    buf_add(out, text->p + 1, n - 2);
    *text = str_skip(*text, n);
    return true;
}

/* Removes the rest of a term and adds it to `out` without its quotes and backslashes. */
static void cut_value(struct str *text, bool begins, struct buf *out)
{
    bool quoted = false;
    size_t i = 0;

    if (begins && text->n > 1 && text->p[0] == '\\' && !ascii_is_space(text->p[1]) &&
        text->p[1] != '"' && text->p[1] != '\\')
        i++;
    for (; i < text->n && (quoted || !ascii_is_space(text->p[i])); i++) {
        if (text->p[i] == '\\' && i + 1 < text->n &&
            (text->p[i + 1] == '"' || text->p[i + 1] == '\\'))
            buf_add_byte(out, text->p[++i]);
        else if (text->p[i] == '"')
            quoted = !quoted;
        else
            buf_add_byte(out, text->p[i]);
    }
    *text = str_skip(*text, i);
}

static int set_time_value(struct query_term *t, struct str value, int64_t now, struct err *e)
{
    int64_t first, last;

    if (t->unwanted)
        return err_set(e, ERR_USAGE, "'-%s:' is not possible: %s: is its opposite", t->name,
                       t->kind == KIND_SINCE ? "until" : "since");
    if (!time_parse_when(value, now, &first, &last))
        return err_set(e, ERR_USAGE, "bad time '%.*s' for %s: a date, yesterday or 7d is expected",
                       (int)value.n, value.p, t->name);
    t->time = t->kind == KIND_SINCE ? first : last;
    return 0;
}

/* Sets the text of a term. Returns 1; 0 if it has none; -1 with *e set. */
static int set_term_value(struct query_term *t, struct str value, int64_t now, struct err *e)
{
    struct regex *regex = t->expression ? regex_new(value, true, false, e) : NULL;

    if (t->expression && !regex)
        return -1;
    regex_free(regex);
    value = t->expression ? value : str_trim(value);
    if (t->kind == KIND_WORDS)
        buf_add_str(&t->text, value);
    else if (value.n == 0)
        return err_set(e, ERR_USAGE, "'%s:' needs a value", t->name);
    else if (t->kind != KIND_SINCE && t->kind != KIND_UNTIL)
        fold_value(&t->text, value);
    else if (set_time_value(t, value, now, e) < 0)
        return -1;
    return value.n > 0;
}

/* Removes a term from the text. Returns 1 and the term; 0 if it is empty; -1 with *e set. */
static int cut_term(struct str *text, int64_t now, struct query_term *t, struct err *e)
{
    struct buf value = BUF_INIT(SIZE_MAX), repaired = BUF_INIT(SIZE_MAX);
    bool hyphens = str_starts(*text, STR("--"));
    int result;

    *t = (struct query_term){.text = BUF_INIT(SIZE_MAX), .kind = KIND_WORDS, .n = text->n};
    if (text->n > 1 && text->p[0] == '-' && !hyphens && !ascii_is_space(text->p[1])) {
        t->unwanted = true;
        *text = str_skip(*text, 1);
    }
    result = hyphens ? 0 : cut_field(text, t, e);
    t->expression = t->kind == KIND_WORDS && cut_expression(text, &value);
    if (!t->expression)
        cut_value(text, t->kind == KIND_WORDS, &value);
    t->n -= text->n;
    utf8_add_repaired(&repaired, buf_str(&value));
    if (result == 0)
        result = set_term_value(t, buf_str(&repaired), now, e);
    if (result <= 0)
        buf_release(&t->text);
    buf_release(&value);
    buf_release(&repaired);
    return result;
}

/* ---- words and phrases ---- */

/* The characters of Markdown that may stand beside white space, white space, and both. */
#define MARKUP "*_`~"
#define SPACE "\\t-\\r "
#define GAP "[" MARKUP "]*[" SPACE "][" MARKUP SPACE "]*"
/* A letter without an accent is not found in one with a combining accent (U+0300 to U+036F),
 * because the composed form of that does not hold the letter either. */
#define WORD_END "(?![\\x{300}-\\x{36f}])"

/* Returns the length of a character with the marks that follow it. */
static size_t cluster_at(struct str text, size_t at)
{
    int32_t cp;
    size_t end = at + utf8_decode(str_skip(text, at), &cp);

    while (end < text.n) {
        size_t n = utf8_decode(str_skip(text, end), &cp);

        if (!utf8_is_mark(cp))
            break;
        end += n;
    }
    return end - at;
}

/* Adds a character, composed, as itself or decomposed. */
static void add_cluster(struct buf *out, struct str cluster)
{
    struct buf decomposed = BUF_INIT(SIZE_MAX);

    utf8_add_decomposed(&decomposed, cluster);
    if (str_eq(cluster, buf_str(&decomposed))) {
        regex_add_quoted(out, cluster);
    } else {
        buf_add_c(out, "(?:");
        regex_add_quoted(out, cluster);
        buf_add_byte(out, '|');
        regex_add_quoted(out, buf_str(&decomposed));
        buf_add_byte(out, ')');
    }
    buf_release(&decomposed);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Adds an expression for base/regex that matches the text, which must be valid UTF-8, as the query
 * means it: white space is any white space, beside which markup may stand, and a character with an
 * accent has its composed or its decomposed form. The page's script makes the same one. */
static void add_expression(struct buf *out, struct str text)
{
    struct buf composed = BUF_INIT(SIZE_MAX);

    utf8_add_composed(&composed, text);
    text = buf_str(&composed);
    for (size_t i = 0, n; i < text.n; i += n) {
        n = cluster_at(text, i);
        if (is_space(text.p[i])) {
            for (n = 1; i + n < text.n && is_space(text.p[i + n]); n++)
                ;
            buf_add_c(out, GAP);
        } else {
            add_cluster(out, (struct str){text.p + i, n});
        }
    }
    buf_add_c(out, WORD_END);
    buf_release(&composed);
}

/* Adds a term as an alternative to the current group of a pattern. */
static int add_term_to(const struct query_term *t, struct pattern *p, struct err *e)
{
    struct buf expression = BUF_INIT(SIZE_MAX);
    bool regex = p->regex;
    int result;

    if (t->expression)
        buf_add_str(&expression, buf_str(&t->text));
    else
        add_expression(&expression, buf_str(&t->text));
    p->regex = true;
    result = pattern_add(p, buf_str(&expression), e);
    if (result < 0)
        err_set(e, ERR_USAGE, "'%.200s' is too long for a word or a phrase", buf_c(&t->text));
    p->regex = regex;
    buf_release(&expression);
    return result;
}

int query_parse(struct query *q, struct str text, int64_t now, struct err *e)
{
    const char *begin = text.p;
    struct query_term t;

    *q = (struct query){0};
    pattern_init(&q->unwanted);
    for (;;) {
        size_t at;
        int result;

        while (text.n > 0 && ascii_is_space(text.p[0]))
            text = str_skip(text, 1);
        if (text.n == 0)
            return 0;
        at = (size_t)(text.p - begin);
        result = cut_term(&text, now, &t, e);
        t.at = at;
        if (result > 0) {
            q->terms = mem_grow(q->terms, &q->cap, q->count + 1, sizeof *q->terms);
            q->terms[q->count++] = t;
            q->fields |= t.kind != KIND_WORDS;
        }
        if (result < 0 || (result > 0 && t.kind == KIND_WORDS && t.unwanted &&
                           add_term_to(&t, &q->unwanted, e) < 0)) {
            query_release(q);
            return -1;
        }
    }
}

void query_copy(struct query *to, const struct query *from)
{
    *to = (struct query){.fields = from->fields, .in_session = from->in_session};
    pattern_copy(&to->unwanted, &from->unwanted);
    to->terms = mem_grow(NULL, &to->cap, from->count, sizeof *to->terms);
    for (; to->count < from->count; to->count++) {
        const struct query_term *t = &from->terms[to->count];

        to->terms[to->count] = (struct query_term){.kind = t->kind,
                                                   .name = t->name,
                                                   .unwanted = t->unwanted,
                                                   .expression = t->expression,
                                                   .at = t->at,
                                                   .n = t->n,
                                                   .text = BUF_INIT(SIZE_MAX),
                                                   .time = t->time};
        buf_add_str(&to->terms[to->count].text, buf_str(&t->text));
    }
}

void query_release(struct query *q)
{
    for (size_t i = 0; i < q->count; i++) {
        buf_release(&q->terms[i].text);
        hash_map_release(&q->terms[i].sessions);
    }
    free(q->terms);
    pattern_release(&q->unwanted);
    *q = (struct query){0};
}

bool query_is_empty(const struct query *q)
{
    return q->count == 0;
}

bool query_has_fields(const struct query *q)
{
    return q->fields;
}

bool query_is_words(const struct query *q)
{
    return !q->fields && q->unwanted.count == 0;
}

bool query_has_unwanted(const struct query *q)
{
    return q->unwanted.count > 0 && !q->in_session;
}

size_t query_words(const struct query *q)
{
    size_t count = 0;

    for (size_t i = 0; i < q->count; i++)
        count += q->terms[i].kind == KIND_WORDS && !q->terms[i].unwanted;
    return count;
}

/* Returns the wanted word of that number. */
static const struct query_term *word_at(const struct query *q, size_t number)
{
    const struct query_term *t = q->terms;

    while (t->kind != KIND_WORDS || t->unwanted || number-- > 0)
        t++;
    return t;
}

int query_add_word(const struct query *q, size_t number, struct pattern *p, struct err *e)
{
    return add_term_to(word_at(q, number), p, e);
}

struct str query_word(const struct query *q, size_t number, size_t *at, size_t *n)
{
    const struct query_term *t = word_at(q, number);

    *at = t->at;
    *n = t->n;
    return t->expression || t->text.len != t->n ? STR("") : buf_str(&t->text);
}

int query_add_words(const struct query *q, struct pattern *p, struct err *e)
{
    size_t count = query_words(q);

    for (size_t i = 0; i < count; i++)
        if ((p->count > 0 && pattern_next_group(p, e) < 0) || query_add_word(q, i, p, e) < 0)
            return -1;
    return p->count > 0 ? 0 : pattern_add(p, STR(""), e);
}

int query_open(struct query *q, struct pattern *p, struct str text, int64_t now, struct err *e)
{
    if (query_parse(q, text, now, e) < 0)
        return -1;
    pattern_init(p);
    if (query_add_words(q, p, e) == 0)
        return 0;
    pattern_release(p);
    query_release(q);
    return -1;
}
