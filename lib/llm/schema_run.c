#include "llm/schema_run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"

bool schema_fail(struct schema_run *run, const struct schema_place *place, const char *fmt, ...)
{
    va_list ap;

    if (run->quiet || run->why.len > 0)
        return false;
    schema_add_pointer(&run->why, place);
    if (run->why.len > 0)
        buf_add_c(&run->why, ": ");
    va_start(ap, fmt);
    buf_vaddf(&run->why, fmt, ap);
    va_end(ap);
    run->why_depth = schema_place_depth(place);
    return false;
}

bool schema_stop(struct schema_run *run, const struct schema_place *place, const char *why)
{
    if (run->stopped)
        return false;
    run->stopped = true;
    run->quiet = 0;
    schema_forget(run);
    return schema_fail(run, place, "%s", why);
}

void schema_forget(struct schema_run *run)
{
    buf_clear(&run->why);
    run->why_depth = 0;
}

void schema_marks_fit(struct schema_marks *m, struct str value)
{
    size_t count = 0;

    if (m->at)
        return;
    for (struct json_iter it = json_iter(value); json_next(&it);)
        count++;
    m->at = mem_zalloc(count);
    m->count = count;
}

void schema_mark(struct schema_marks *m, size_t i)
{
    if (i < m->count)
        m->at[i] = 1;
}

bool schema_marked(const struct schema_marks *m, size_t i)
{
    return i < m->count && m->at[i];
}

void schema_marks_join(struct schema_marks *m, const struct schema_marks *from)
{
    for (size_t i = 0; i < from->count && i < m->count; i++)
        m->at[i] |= from->at[i];
}

void schema_marks_release(struct schema_marks *m)
{
    free(m->at);
    *m = (struct schema_marks){0};
}
