/* The cache of llm/refused_fields: a file for each server, as for the lists of models, with a line
 * of JSON for each field. */
#include "chathist/llm/refused_fields.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/llm/models.h"

#define KEEP (24 * 60 * 60 * TIME_SECOND)

static void add_line(struct buf *out, const struct refused_field *f, const char *model)
{
    struct buf line = BUF_INIT(BUF_LINE);

    buf_add_byte(&line, '{');
    json_add_member(&line, "model", str_of(model));
    json_add_member(&line, "field", str_of(f->path));
    if (f->only)
        json_add_member(&line, "only", str_of(f->only));
    if (f->value)
        json_add_member(&line, "value", str_of(f->value));
    if (f->name)
        json_add_member(&line, "name", str_of(f->name));
    json_add_member_int(&line, "with_tools", f->with_tools);
    json_add_member_int(&line, "since", f->since);
    buf_add_c(&line, "}\n");
    buf_add_str(out, buf_str(&line));
    buf_release(&line);
}

/* Returns a copy of a member's text, or NULL. */
static char *member_copy(struct str line, const char *name)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str value = json_text(json_get(line, name), &text);
    char *copy = value.n > 0 ? mem_copy(value.p, value.n) : NULL;

    buf_release(&text);
    return copy;
}

/* Reads a line. Returns false, without anything to release, if it is older than a day or no field.
 * The file can be edited, so a value that is no JSON is not used. */
static bool read_line(struct str line, char **model, struct refused_field *f)
{
    struct str value, json;
    int64_t age, tools = 0;

    if (!json_check(line, &value, NULL) || !json_int(json_get(value, "since"), &f->since))
        return false;
    age = time_now() - f->since;
    if (age < 0 || age > KEEP)
        return false;
    *model = member_copy(value, "model");
    f->path = member_copy(value, "field");
    f->only = member_copy(value, "only");
    f->value = member_copy(value, "value");
    f->name = member_copy(value, "name");
    f->with_tools = json_int(json_get(value, "with_tools"), &tools) && tools == 1;
    if (*model && f->path && (!f->value || json_check(str_of(f->value), &json, NULL)))
        return true;
    free(*model);
    refused_field_release(f);
    return false;
}

/* Reads the lines of the cache: those of `model` into f (unless it is NULL), the others into
 * `others` (unless it is NULL). */
static void read_lines(const char *path, const char *model, struct refused_fields *f,
                       struct buf *others)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest = STR_NONE;

    if (path && file_read_state(path, &text, NULL) > 0)
        rest = buf_str(&text);
    while (rest.p && rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct refused_field field = {0};
        char *of;

        if (!read_line(line, &of, &field))
            continue;
        if (f && strcmp(of, model) == 0) {
            refused_fields_add(f, field);
        } else {
            if (others && strcmp(of, model) != 0)
                add_line(others, &field, of);
            refused_field_release(&field);
        }
        free(of);
    }
    buf_release(&text);
}

void refused_fields_load(struct refused_fields *f, const char *dir, const struct provider *p,
                         const char *base_url, const char *model)
{
    char *path = model_cache_path(dir, p, base_url);

    read_lines(path, model, f, NULL);
    f->stored = f->count;
    free(path);
}

/* Opens and locks the directory of the cache, so that chats at once do not lose each other's lines.
 * If another chat keeps the lock for a second, as one that is stopped does, this one goes on
 * without it. Returns a descriptor, or -1. */
static int lock_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int tries = 0; fd >= 0 && tries < 100 && flock(fd, LOCK_EX | LOCK_NB) < 0; tries++)
        poll(NULL, 0, 10);
    return fd;
}

int refused_fields_store(struct refused_fields *f, const char *dir, const struct provider *p,
                         const char *base_url, const char *model, struct err *e)
{
    char *path = model_cache_path(dir, p, base_url);
    struct buf text = BUF_INIT(BUF_LINE);
    int result = -1;

    if (path && file_make_dirs(dir, e) >= 0) {
        int lock = lock_dir(dir);

        read_lines(path, model, f, &text);
        for (size_t i = 0; i < f->count; i++)
            add_line(&text, &f->at[i], model);
        result = file_replace(path, buf_str(&text), e);
        file_close(lock);
    }
    if (result == 0)
        f->stored = f->count;
    buf_release(&text);
    free(path);
    return result;
}
