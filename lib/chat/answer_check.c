#include "chathist/chat/answer_check.h"

#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/json.h"

int answer_check_load(struct answer_check *c, const char *file, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;

    *c = (struct answer_check){.file = file};
    if (!file)
        return 0;
    if (str_starts(str_of(file), STR("{")) && access(file, F_OK) < 0)
        return err_set(e, ERR_USAGE, "bad value '%s' for --schema: a file is expected", file);
    if (io_read_file(file, &text, e) < 0) {
        e->kind = ERR_USAGE;
        buf_release(&text);
        return -1;
    }
    c->schema = schema_new(buf_str(&text), &why);
    buf_release(&text);
    if (!c->schema)
        err_set(e, ERR_USAGE, "cannot use schema '%s': %s", file, err_text(&why));
    else if (json_type(schema_text(c->schema)) != JSON_OBJECT)
        err_set(e, ERR_USAGE, "cannot use schema '%s': is not an object", file);
    else
        return 0;
    err_release(&why);
    answer_check_release(c);
    return -1;
}

struct str answer_check_schema(const struct answer_check *c)
{
    return c->schema ? schema_text(c->schema) : STR_NONE;
}

int answer_check_text(const struct answer_check *c, struct str text, struct err *e)
{
    struct err why = ERR_INIT;
    struct str value;
    size_t at;

    if (!c->schema)
        return 0;
    if (!json_check(text, &value, &at))
        err_set(&why, ERR_FAILURE, "is not JSON at byte %zu", at);
    else if (schema_check(c->schema, value, &why) == 0)
        return 0;
    err_set(e, ERR_FAILURE, "answer does not match '%s': %s", c->file, err_text(&why));
    err_release(&why);
    return -1;
}

void answer_check_release(struct answer_check *c)
{
    schema_free(c->schema);
    *c = (struct answer_check){0};
}
