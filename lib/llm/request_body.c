#include "llm/request_body.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"

/* ---- fields by their path ----
 *
 * Members of the body may be raw JSON, which cJSON does not look into. So a member that has to be
 * changed inside is printed and written anew. */

/* Prints a member of the body to `scratch`. Returns STR_NONE if it is missing. */
static struct str member_text(const cJSON *body, const char *name, struct buf *scratch)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(body, name);
    struct str value;

    buf_clear(scratch);
    if (!member)
        return STR_NONE;
    cjson_print(member, scratch);
    return json_check(buf_str(scratch), &value, NULL) ? value : STR_NONE;
}

/* Returns the first name of the path, which the caller frees, and sets *rest to the path inside
 * it, or to NULL. */
static char *first_name(const char *path, const char **rest)
{
    const char *dot = strchr(path, '.');

    *rest = dot ? dot + 1 : NULL;
    return mem_copy(path, dot ? (size_t)(dot - path) : strlen(path));
}

struct str body_field_in(struct str value, const char *path)
{
    const char *rest = path;

    while (rest && value.p) {
        char *name = first_name(rest, &rest);

        value = json_get(value, name);
        free(name);
    }
    return value;
}

struct str body_field(const cJSON *body, const char *path, struct buf *scratch)
{
    const char *rest;
    char *name = first_name(path, &rest);
    struct str value = body_field_in(member_text(body, name, scratch), rest);

    free(name);
    return value;
}

static bool is_empty_object(struct str value)
{
    struct json_iter it = json_iter(value);

    return json_type(value) == JSON_OBJECT && !json_next(&it);
}

/* Adds to `out` the object with the field set to `value`, or without it for STR_NONE. */
static void add_with_field(struct buf *out, struct str object, const char *path, struct str value)
{
    struct buf inner = BUF_INIT(SIZE_MAX);
    const char *rest;
    char *name = first_name(path, &rest);
    struct str old = json_get(object, name);

    if (rest) {
        if (!old.p && value.p)
            old = STR("{}");
        if (json_type(old) == JSON_OBJECT) {
            add_with_field(&inner, old, rest, value);
            old = value.p || !is_empty_object(buf_str(&inner)) ? buf_str(&inner) : STR_NONE;
        }
        value = old;
    }
    buf_add_byte(out, '{');
    for (struct json_iter it = json_iter(object); json_next(&it);) {
        if (json_key_is(it.key, name))
            continue;
        buf_addf(out, "%s\"%.*s\":", str_ends(buf_str(out), STR("{")) ? "" : ",", (int)it.key.n,
                 it.key.p);
        buf_add_str(out, it.value);
    }
    if (value.p) {
        json_add_key(out, name);
        buf_add_str(out, value);
    }
    buf_add_byte(out, '}');
    buf_release(&inner);
    free(name);
}

void body_set_field(cJSON *body, const char *path, struct str value)
{
    struct buf old = BUF_INIT(SIZE_MAX), changed = BUF_INIT(SIZE_MAX);
    const char *rest;
    char *name = first_name(path, &rest);
    struct str member = rest ? member_text(body, name, &old) : STR_NONE;

    if (rest && !member.p && value.p)
        member = STR("{}");
    if (rest && json_type(member) == JSON_OBJECT) {
        add_with_field(&changed, member, rest, value);
        value = value.p || !is_empty_object(buf_str(&changed)) ? buf_str(&changed) : STR_NONE;
    }
    if (!rest || changed.len > 0) {
        if (value.p)
            cjson_set_raw(body, name, value);
        else
            cJSON_DeleteItemFromObjectCaseSensitive(body, name);
    }
    free(name);
    buf_release(&old);
    buf_release(&changed);
}

/* ---- effort and limit ---- */

bool request_is_elsewhere(const struct provider *p, const struct ask *ask)
{
    return p->service || (p->base_url && ask->base_url && strcmp(ask->base_url, p->base_url) != 0);
}

static void set_unless_there(cJSON *body, const char *path, struct str value)
{
    struct buf scratch = BUF_INIT(SIZE_MAX);

    if (!body_field(body, path, &scratch).p)
        body_set_field(body, path, value);
    buf_release(&scratch);
}

/* ---- options ---- */

/* Returns whether the option goes into p->options_field. */
static bool is_inner_option(const struct provider *p, const char *key)
{
    for (size_t i = 0; p->options_field && p->body_fields[i]; i++)
        if (strcmp(key, p->body_fields[i]) == 0)
            return false;
    return p->options_field != NULL;
}

/* Returns whether it is that path, or one inside of it. */
static bool is_inside(struct str path, struct str outer)
{
    return str_starts(path, outer) && (path.n == outer.n || path.p[outer.n] == '.');
}

enum ask_from body_option_from(const struct provider *p, const struct ask *ask, const char *path,
                               const char **key)
{
    enum ask_from from = ASK_PROVIDER;
    struct buf own = BUF_INIT(BUF_LINE);

    for (size_t i = 0; i < ask->options_count; i++) {
        const struct ask_option *option = &ask->options[i];
        struct str value;
        bool reaches;

        if (option->from <= from)
            continue;
        buf_clear(&own);
        if (is_inner_option(p, option->key))
            buf_addf(&own, "%s.", p->options_field);
        buf_add_c(&own, option->key);
        if (is_inside(str_of(path), buf_str(&own)) && path[own.len] == '.')
            reaches = !json_check(option->value, &value, NULL) || json_type(value) != JSON_OBJECT ||
                      body_field_in(value, path + own.len + 1).p;
        else
            reaches = is_inside(buf_str(&own), str_of(path));
        if (reaches) {
            from = option->from;
            if (key)
                *key = option->key;
        }
    }
    buf_release(&own);
    return from;
}

bool body_field_is_typed(const struct provider *p, const struct ask *ask, const char *path,
                         struct buf *flag)
{
    bool effort = ask->effort && ask->effort_from == ASK_FLAG && p->effort_field &&
                  str_starts(str_of(p->effort_field), str_of(path));
    /* Chat Completions has two names for the limit. */
    bool limit = ask->max_tokens > 0 && ask->max_tokens_from == ASK_FLAG &&
                 (strcmp(path, "max_tokens") == 0 || strcmp(path, "max_completion_tokens") == 0 ||
                  (p->limit_field && strcmp(path, p->limit_field) == 0));
    const char *key = NULL, *setting = limit ? "--max-tokens" : effort ? "--effort" : NULL;
    bool option = body_option_from(p, ask, path, &key) == ASK_FLAG;

    if (flag && option) {
        buf_set(flag, STR("-o "));
        buf_add_c(flag, key);
    } else if (flag && setting) {
        buf_set(flag, str_of(setting));
    }
    return option || setting;
}

/* The fields that settings of the user other than options decide. */
enum { EFFORT, LIMIT, SCHEMA, TOOLS, DECIDED };

/* One of them. */
struct decided {
    const char *path; /* NULL: not used */
    const char *flag, *key;
    enum ask_from from;
};

/* One option while it is added. */
struct adding {
    const struct provider *provider;
    const struct ask_option *option;
    struct decided decided[DECIDED];
    struct buf path; /* the path of the value that is looked at */
    bool failed;
    struct err *e;
};

static void conflict(struct adding *a, const struct decided *d)
{
    const char *key = a->option->key;

    a->failed = true;
    const char *path = strlen(d->path) > a->path.len ? d->path : buf_c(&a->path);

    if (d->from == ASK_FLAG)
        err_set(a->e, ERR_USAGE, "%s and -o %s contradict each other: both set '%s'", d->flag, key,
                path);
    else
        err_set(a->e, ERR_USAGE, "'%s' and 'option.%s' contradict each other: both set '%s'",
                d->key, key, path);
}

/* Adds to `out` the new value of the field a->path: `ours`, the present one, or `theirs`, that of
 * the option. A setting may decide the field, the object around it, or a field inside of it, which
 * would be lost with its object. */
static void add_chosen_value(struct adding *a, struct buf *out, struct str ours, struct str theirs)
{
    struct str own = buf_str(&a->path);
    const struct decided *d = NULL;

    for (size_t i = DECIDED; i-- > 0;) {
        struct str path = str_of(a->decided[i].path);

        if (path.p && (is_inside(own, path) || is_inside(path, own)))
            d = &a->decided[i];
    }
    if (d && !json_equal(ours, theirs)) {
        if (d->from == a->option->from)
            conflict(a, d);
        else if (d->from > a->option->from)
            theirs = ours;
    }
    buf_add_str(out, theirs);
}

/* Adds the two values merged: the members of two objects, the elements of two arrays of tools; for
 * any other value the chosen one. */
static void add_both(struct adding *a, struct buf *out, struct str ours, struct str theirs)
{
    const struct str both[] = {ours, theirs};
    const char *schema = a->decided[SCHEMA].path;
    bool objects = json_type(ours) == JSON_OBJECT && json_type(theirs) == JSON_OBJECT;
    bool arrays = json_type(ours) == JSON_ARRAY && json_type(theirs) == JSON_ARRAY;
    struct buf name = BUF_INIT(SIZE_MAX);
    size_t before = a->path.len;

    /* Members of two schemas together would be a third one. */
    if ((!objects || (schema && str_eq_c(buf_str(&a->path), schema))) &&
        (!arrays || !str_eq_c(buf_str(&a->path), "tools"))) {
        add_chosen_value(a, out, ours, theirs);
        return;
    }
    buf_add_byte(out, objects ? '{' : '[');
    for (size_t i = 0; i < 2; i++)
        for (struct json_iter it = json_iter(both[i]); json_next(&it);) {
            struct str other;

            if (arrays) {
                buf_add_c(out, str_ends(buf_str(out), STR("[")) ? "" : ",");
                buf_add_str(out, it.value);
                continue;
            }
            buf_clear(&name);
            json_decode_body(it.key, &name);
            other = json_get(both[1 - i], buf_c(&name));
            if (i == 1 && other.p)
                continue; /* added with ours */
            json_add_key(out, buf_c(&name));
            if (other.p) {
                buf_addf(&a->path, ".%s", buf_c(&name));
                add_both(a, out, it.value, other);
                buf_truncate(&a->path, before);
            } else {
                buf_add_str(out, it.value);
            }
        }
    buf_add_byte(out, objects ? '}' : ']');
    buf_release(&name);
}

/* Adds the option as the value of the field of the same name, or of the object around it. cJSON
 * writes the bytes of a key unchanged, so they have to be valid UTF-8. */
static void add_body_option(cJSON *body, struct adding *a)
{
    struct buf text = BUF_INIT(SIZE_MAX), old = BUF_INIT(SIZE_MAX), merged = BUF_INIT(SIZE_MAX);
    struct buf key = BUF_INIT(SIZE_MAX);
    bool inner = is_inner_option(a->provider, a->option->key);
    struct str ours, theirs;

    buf_clear(&a->path);
    utf8_add_repaired(&key, str_of(a->option->key));
    buf_add_c(&a->path, inner ? a->provider->options_field : buf_c(&key));
    if (inner) {
        buf_add_byte(&text, '{');
        json_add_key(&text, buf_c(&key));
    }
    if (json_check(a->option->value, &theirs, NULL))
        buf_add_str(&text, theirs);
    else
        json_add_string(&text, a->option->value);
    buf_add_c(&text, inner ? "}" : "");
    theirs = buf_str(&text);
    ours = member_text(body, buf_c(&a->path), &old);
    if (ours.p) {
        add_both(a, &merged, ours, theirs);
        theirs = buf_str(&merged);
    }
    cjson_set_raw(body, buf_c(&a->path), theirs);
    buf_release(&text);
    buf_release(&old);
    buf_release(&merged);
    buf_release(&key);
}

/* Handles an option with another name for the limit, after the limit was set. Returns true if the
 * option need not be added. */
static bool is_limit_again(cJSON *body, struct adding *a, const struct provider *p)
{
    const struct decided *d = &a->decided[LIMIT];
    struct buf scratch = BUF_INIT(SIZE_MAX);
    const char *key = a->option->key;
    bool done = true;

    if (!d->path || !p->limit_elsewhere || strcmp(key, d->path) == 0 ||
        (strcmp(key, p->limit_field) != 0 && strcmp(key, p->limit_elsewhere) != 0))
        return false;
    buf_set(&a->path, str_of(d->path));
    if (a->option->from > d->from) {
        body_set_field(body, d->path, STR_NONE);
        done = false;
    } else if (a->option->from == d->from &&
               !str_eq(body_field(body, d->path, &scratch), str_trim(a->option->value))) {
        conflict(a, d);
    }
    buf_release(&scratch);
    return done;
}

int body_add_options(cJSON *body, const struct provider *p, const struct ask *ask, struct err *e)
{
    const char *effort = ask->effort ? p->effort_field : NULL;
    const char *limit = ask->max_tokens == 0                                 ? NULL
                        : p->limit_elsewhere && request_is_elsewhere(p, ask) ? p->limit_elsewhere
                                                                             : p->limit_field;
    const char *schema = ask->schema.p ? p->schema_field : NULL;
    const char *tools = ask->tools_count + ask->hosted_tools_count > 0 ? "tools" : NULL;
    struct adding a = {
        .provider = p,
        .decided = {[EFFORT] = {effort, "--effort", "effort", ask->effort_from},
                    [LIMIT] = {limit, "--max-tokens", "max_tokens", ask->max_tokens_from},
                    [SCHEMA] = {schema, "--schema", NULL, ASK_FLAG},
                    [TOOLS] = {tools, ask->tools_flag, "tools",
                               ask->tools_flag ? ASK_FLAG : ASK_CONFIGURATION}},
        .path = BUF_INIT(SIZE_MAX),
        .e = e};
    struct buf value = BUF_INIT(BUF_SMALL);

    if (effort && !p->own_effort) {
        json_add_string(&value, str_of(ask->effort));
        set_unless_there(body, effort, buf_str(&value));
    }
    buf_clear(&value);
    buf_addf(&value, "%" PRId64, ask->max_tokens);
    if (limit)
        set_unless_there(body, limit, buf_str(&value));
    buf_release(&value);
    for (size_t i = 0; !a.failed && i < ask->options_count; i++) {
        a.option = &ask->options[i];
        if (!is_limit_again(body, &a, p))
            add_body_option(body, &a);
    }
    buf_release(&a.path);
    return a.failed ? -1 : 0;
}
