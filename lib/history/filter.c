#include "chathist/history/filter.h"

#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"

void filter_add(struct filter_list *l, struct str value)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count] = value;
    hash_map_set(&l->places, value, l->count++);
}

bool filter_has(const struct filter_list *l, struct str value)
{
    return hash_map_find(&l->places, value);
}

void filter_clear(struct filter_list *l)
{
    free(l->at);
    hash_map_release(&l->places);
    *l = (struct filter_list){0};
}

void filter_release(struct filter *f)
{
    filter_clear(&f->roles);
    filter_clear(&f->sessions);
    filter_clear(&f->models);
    filter_clear(&f->files);
    filter_clear(&f->tools);
    *f = (struct filter){0};
}

/* Returns whether the filter has the model, or `provider:model`. */
static bool has_model(const struct filter *f, const struct message *m)
{
    struct buf model_scratch = BUF_INIT(BUF_LINE), provider_scratch = BUF_INIT(BUF_LINE);
    struct str model = message_text(m, FIELD_MODEL, &model_scratch);
    struct str provider = message_text(m, FIELD_PROVIDER, &provider_scratch);
    bool found = model.p && filter_has(&f->models, model);

    for (size_t i = 0; i < f->models.count && model.p && provider.p && !found; i++) {
        struct str name = f->models.at[i];

        found = name.n == provider.n + 1 + model.n && str_starts(name, provider) &&
                name.p[provider.n] == ':' && str_ends(name, model);
    }
    buf_release(&model_scratch);
    buf_release(&provider_scratch);
    return found;
}

/* Returns a path in the form in which paths are compared. */
static struct str plain_path(struct str path)
{
    while (path.n > 2 && path.p[0] == '.' && path.p[1] == '/') {
        path = str_skip(path, 2);
        for (; path.n > 1 && path.p[0] == '/'; path.n--)
            path.p++;
    }
    return path;
}

static bool names_file(const struct filter *f, struct str array)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(array);
    bool found = false;

    if (json_type(array) != JSON_ARRAY)
        return false;
    while (!found && json_next(&it)) {
        struct str path = json_text(it.value, &scratch);

        for (size_t i = 0; i < f->files.count && path.p && !found; i++)
            found = str_eq(plain_path(path), plain_path(f->files.at[i]));
    }
    buf_release(&scratch);
    return found;
}

static bool is_of_tool(const struct filter *f, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool found = filter_has(&f->tools, message_tool(m, &scratch));

    buf_release(&scratch);
    return found;
}

static bool message_in_time(const struct filter *f, const struct message *m)
{
    int64_t us;

    return time_parse_iso(m->timestamp, &us) && (!f->has_since || us >= f->since) &&
           (!f->has_until || us <= f->until);
}

bool filter_is_empty(const struct filter *f)
{
    return !f->roles.count && !f->sessions.count && !f->models.count && !f->files.count &&
           !f->tools.count && !f->has_since && !f->has_until && f->results == FILTER_ANY;
}

bool filter_match(const struct filter *f, const struct message *m)
{
    return (f->roles.count == 0 || filter_has(&f->roles, m->role_text)) &&
           (f->results == FILTER_ANY || (m->role == ROLE_TOOL) == (f->results == FILTER_RESULTS)) &&
           (f->sessions.count == 0 || filter_has(&f->sessions, m->session_id)) &&
           (f->models.count == 0 || has_model(f, m)) &&
           (f->files.count == 0 || names_file(f, m->field[FIELD_FILES]) ||
            names_file(f, m->field[FIELD_FILES_MODIFIED])) &&
           (f->tools.count == 0 || is_of_tool(f, m)) &&
           ((!f->has_since && !f->has_until) || message_in_time(f, m));
}
