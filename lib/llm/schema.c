#include "chathist/llm/schema.h"

#include <stdlib.h>

#include "chathist/base/mem.h"
#include "llm/schema_apply.h"
#include "llm/schema_index.h"
#include "llm/schema_link.h"

/* Recursion over schemas is bounded by the depth of their text, by SCHEMA_DEPTH else. */

struct schema *schema_new(struct str text, struct err *e)
{
    struct schema *s = mem_zalloc(sizeof *s);
    size_t at;

    buf_init(&s->text, BUF_LINE);
    buf_add_str(&s->text, text);
    if (s->text.overflow) {
        err_set(e, ERR_USAGE, "is over 64 MiB");
        goto fail;
    }
    if (!json_check(buf_str(&s->text), &s->root, &at)) {
        err_set(e, ERR_USAGE, "is not JSON at byte %zu", at);
        goto fail;
    }
    if (schema_index_add(s, s->root, 0, NULL, e) < 0 || schema_link(s, e) < 0)
        goto fail;
    return s;

fail:
    schema_free(s);
    return NULL;
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    schema_index_release(s);
    free(s);
}

struct str schema_text(const struct schema *s)
{
    return s->root;
}

int schema_check(const struct schema *s, struct str value, struct err *e)
{
    struct schema_run *run = mem_zalloc(sizeof *run);
    bool held;

    run->schema = s;
    buf_init(&run->why, BUF_LINE);
    held = schema_apply(run, s->root, NULL, value, NULL);
    if (!held)
        err_set(e, ERR_FAILURE, "%s", buf_c(&run->why));
    buf_release(&run->why);
    free(run);
    return held ? 0 : -1;
}
