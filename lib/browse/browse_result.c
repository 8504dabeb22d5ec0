#include "browse/browse_result.h"

#include <stdlib.h>

#include "chathist/base/mem.h"

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

/* ---- into the state ---- */

bool browse_take_failure(struct buf *out, const struct browse_result *r)
{
    size_t before = out->len;

    if (r->kind != BROWSE_RAN || r->status == 0 || r->ended)
        return false;
    buf_add_str(out, str_trim(buf_str(&r->said)));
    if (r->error.kind != ERR_NONE)
        buf_add_c(out, err_text(&r->error));
    if (out->len == before)
        buf_addf(out, "failed with status %d", r->status);
    return true;
}

/* It is chosen when the sessions are read again, for it may be among them already, and the file is
 * no other then. */
static void choose_fork(struct browse *b, struct str id)
{
    buf_clear(&b->back.session);
    buf_add_str(&b->back.session, id);
    b->back.row = 0;
    b->back.list = true;
    b->back.text = false;
    b->wants.sessions = true;
}

static void take_run(struct browse *b, const struct browse_result *r)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str id = str_trim(buf_str(&r->out));

    if (browse_take_failure(&text, r)) {
        /* It says why. */
    } else if (r->about == BROWSE_EXPORT) {
        buf_addf(&text, "exported to '%s'", buf_c(&r->name));
    } else if (r->about == BROWSE_DELETE) {
        buf_add_c(&text, "deleted");
    } else {
        buf_addf(&text, "forked: '%.*s'", (int)id.n, id.p ? id.p : "");
        if (!b->searching)
            choose_fork(b, id);
    }
    browse_say(b, buf_c(&text));
    buf_release(&text);
}

static void take_copied(struct browse *b, const struct browse_result *r)
{
    if (r->status == 0)
        browse_say(b, "copied");
    else if (r->sent)
        browse_say(b, "sent to the terminal");
    else if (r->error.kind != ERR_NONE)
        browse_say(b, err_text(&r->error));
    else
        browse_say(b, "cannot copy: no wl-copy, xclip, xsel or pbcopy, and the terminal cannot");
}

bool browse_take(struct browse *b, struct browse_result *r)
{
    switch (r->kind) {
    case BROWSE_SESSIONS:
        /* A list that cannot be read again stays as it was, and is tried again when its file
         * changes. */
        if (r->error.kind == ERR_NONE || !b->sessions_known)
            browse_take_sessions(b, &r->sessions);
        break;
    case BROWSE_THREAD:
        browse_take_thread(b, r->number, &r->thread, &r->parts, r->every);
        break;
    case BROWSE_HITS:
        browse_take_hits(b, r->number, &r->hits, r->done);
        break;
    case BROWSE_RAN:
        take_run(b, r);
        return true;
    case BROWSE_COPIED:
        take_copied(b, r);
        return false;
    }
    if (r->error.kind != ERR_NONE)
        browse_say(b, err_text(&r->error));
    return false;
}
