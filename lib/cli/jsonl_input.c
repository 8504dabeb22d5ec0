#include "chathist/cli/jsonl_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/store.h"

/* Checks a draft alone, because the store would refuse the whole batch. Returns 0, or -1 with *e
 * set. */
static int check_fields(const struct draft *d, struct err *e)
{
    if (!draft_has(d, FIELD_CONTENT))
        return err_set(e, ERR_USAGE, "no 'content'");
    return draft_storable(d, e);
}

static void add_line(struct jsonl_input *in, struct str line, const char *role)
{
    struct buf repaired = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct draft *d;

    in->number++;
    if (str_trim(line).n == 0)
        return;
    if (utf8_valid(line) < line.n) {
        utf8_add_repaired(&repaired, line);
        line = buf_str(&repaired);
    }
    in->drafts = mem_grow(in->drafts, &in->cap, in->count + 1, sizeof *in->drafts);
    d = &in->drafts[in->count];
    draft_init(d);
    if (draft_from_json(d, line, &e) == 0 && check_fields(d, &e) == 0) {
        if (!draft_has(d, FIELD_ROLE))
            draft_set_text(d, FIELD_ROLE, str_of(role));
        in->count++;
    } else {
        warnf("cannot store line %zu: %s", in->number, err_text(&e));
        draft_release(d);
        in->refused = true;
    }
    err_release(&e);
    buf_release(&repaired);
}

static void release_batch(struct jsonl_input *in)
{
    for (size_t i = 0; i < in->count; i++)
        draft_release(&in->drafts[i]);
    in->count = 0;
}

bool jsonl_input_next(struct jsonl_input *in, const char *role)
{
    struct err e = ERR_INIT;
    struct str rest;
    int more;

    release_batch(in);
    if (in->ended)
        return false;
    more = file_read_some(STDIN_FILENO, &in->pending);
    if (more < 0) {
        err_sys(&e, errno, "cannot read line %zu from standard input", in->number + 1);
        die_err(&e);
    }
    rest = buf_str(&in->pending);
    while (rest.n > 0 && memchr(rest.p, '\n', rest.n))
        add_line(in, str_cut(&rest, '\n'), role);
    in->ended = more == 0;
    if (in->ended && rest.n > 0)
        add_line(in, rest, role);
    buf_consume(&in->pending, in->pending.len - (in->ended ? 0 : rest.n));
    return true;
}

void jsonl_input_release(struct jsonl_input *in)
{
    release_batch(in);
    free(in->drafts);
    buf_release(&in->pending);
}
