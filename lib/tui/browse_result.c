#include "tui/browse_result.h"

#include <stdlib.h>

#include "base/mem.h"

struct browse_result *browse_result_new(enum browse_result_kind kind)
{
    struct browse_result *r = mem_zalloc(sizeof *r);

    r->kind = kind;
    buf_init(&r->name, BUF_LINE);
    buf_init(&r->out, BUF_LINE);
    buf_init(&r->said, BUF_SMALL);
    return r;
}

void browse_result_free(struct browse_result *r)
{
    if (!r)
        return;
    err_release(&r->error);
    browse_sessions_release(&r->sessions);
    browse_parts_release(&r->parts);
    thread_release(&r->thread);
    browse_hits_release(&r->hits);
    buf_release(&r->name);
    buf_release(&r->out);
    buf_release(&r->said);
    free(r);
}
