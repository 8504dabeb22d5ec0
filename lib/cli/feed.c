#include "chathist/cli/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/store.h"

/* What the store would refuse together with all the other lines of the batch. */
static int check_fields(const struct draft *d, struct err *e)
{
    if (!draft_has(d, FIELD_CONTENT))
        return err_set(e, ERR_USAGE, "no 'content'");
    return draft_storable(d, e);
}

static void add_line(struct feed *f, struct str line, const char *role)
{
    struct buf repaired = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct draft *d;

    f->number++;
    if (str_trim(line).n == 0)
        return;
    if (utf8_valid(line) < line.n) {
        utf8_add_repaired(&repaired, line);
        line = buf_str(&repaired);
    }
    f->drafts = mem_grow(f->drafts, &f->cap, f->count + 1, sizeof *f->drafts);
    d = &f->drafts[f->count];
    draft_init(d);
    if (draft_from_json(d, line, &e) == 0 && check_fields(d, &e) == 0) {
        if (!draft_has(d, FIELD_ROLE))
            draft_set_text(d, FIELD_ROLE, str_of(role));
        f->count++;
    } else {
        warnf("cannot store line %zu: %s", f->number, err_text(&e));
        draft_release(d);
        f->refused = true;
    }
    err_release(&e);
    buf_release(&repaired);
}

static void release_batch(struct feed *f)
{
    for (size_t i = 0; i < f->count; i++)
        draft_release(&f->drafts[i]);
    f->count = 0;
}

bool feed_next(struct feed *f, const char *role)
{
    struct err e = ERR_INIT;
    struct str rest;
    int more;

    release_batch(f);
    if (f->ended)
        return false;
    more = io_read_some(STDIN_FILENO, &f->pending);
    if (more < 0) {
        err_sys(&e, errno, "cannot read line %zu from standard input", f->number + 1);
        die_err(&e);
    }
    rest = buf_str(&f->pending);
    while (rest.n > 0 && memchr(rest.p, '\n', rest.n))
        add_line(f, str_cut(&rest, '\n'), role);
    f->ended = more == 0;
    if (f->ended && rest.n > 0)
        add_line(f, rest, role);
    buf_consume(&f->pending, f->pending.len - (f->ended ? 0 : rest.n));
    return true;
}

void feed_release(struct feed *f)
{
    release_batch(f);
    free(f->drafts);
    buf_release(&f->pending);
}
