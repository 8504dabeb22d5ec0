/*
 * A history of any bytes. Deleting a session leaves exactly the other lines. Repairing leaves a
 * history without problems, in which every good line still stands in its order; nothing is lost:
 * history and quarantine together hold the bytes that were there, but for blanks between lines; and
 * another repair finds nothing to do.
 */
#include <stdint.h>

#include "chathist/history/check.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"
#include "chathist/history/session_list.h"
#include "chathist/history/store.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* How often each byte is there. */
static void count_bytes(struct str text, size_t counts[256])
{
    for (size_t i = 0; i < text.n; i++)
        if (!is_blank(text.p[i]))
            counts[(unsigned char)text.p[i]]++;
}

/* Do the lines of `parts` stand in `whole`, in their order and apart? */
static void demand_in_order(struct str parts, struct str whole)
{
    while (parts.n > 0) {
        struct str line = str_cut(&parts, '\n');
        const char *at = line.n > 0 ? str_find(whole, line) : whole.p;

        demand(at || line.n == 0);
        if (line.n > 0) {
            whole.n -= (size_t)(at - whole.p) + line.n;
            whole.p = at + line.n;
        }
    }
}

/* Of these lines, only those of that session (NULL: of any), or only the others. */
static struct buf lines_of(struct str text, const struct buf *session, bool others)
{
    struct buf out = BUF_INIT(SIZE_MAX);
    struct message m = MESSAGE_INIT;

    while (text.n > 0) {
        const char *start = text.p;
        struct str line = str_cut(&text, '\n');
        bool meant =
            message_parse(&m, line) && (!session || str_eq(m.session_id, buf_str(session)));

        if (meant != others)
            buf_add(&out, start, line.n + (start[line.n] == '\n'));
    }
    message_release(&m);
    return out;
}

static void found(void *arg, const struct finding *f)
{
    (void)arg;
    demand(f->reason.n > 0);
}

/* A rewrite without the lines of a session. */
struct leave_out {
    struct str session;
    struct message message;
};

static void begin(void *arg)
{
    (void)arg;
}

static void keep_others(void *arg, struct rewrite *r, const struct line *l)
{
    struct leave_out *o = arg;

    if (!message_parse(&o->message, l->text) || !str_eq(o->message.session_id, o->session))
        rewrite_keep(r, l);
}

static void try_delete(struct history *h, struct str text)
{
    struct leave_out out = {.message = MESSAGE_INIT};
    struct rewriter by = {.arg = &out, .begin = begin, .line = keep_others};
    struct buf id = BUF_INIT(SIZE_MAX);
    struct session_list list;

    demand(session_list_load(&list, h, NULL) == 0);
    if (list.count > 0)
        buf_add_str(&id, list.at[0].id);
    session_list_release(&list);
    if (id.len > 0) {
        struct buf wanted = lines_of(text, &id, true), got;

        out.session = buf_str(&id);
        demand(rewrite_run(h, &by, NULL) >= 0);
        got = scratch_read(h->path);
        demand(str_eq(buf_str(&got), buf_str(&wanted)));
        buf_release(&got);
        buf_release(&wanted);
    }
    message_release(&out.message);
    buf_release(&id);
}

static void try_repair(struct history *h, struct str text)
{
    char *aside = path_with_suffix(h->path, HISTORY_QUARANTINE);
    struct check check = {.found = found};
    size_t before[256] = {0}, after[256] = {0};
    struct buf good, history, again, quarantine;
    struct repair repair;

    unlink(aside);
    scratch_write(h->path, text);
    h->is_history = false;
    /* What is no history stays as it is. */
    if (store_check(h, NULL) < 0) {
        demand(repair_run(&repair, h, NULL) < 0);
        history = scratch_read(h->path);
        demand(str_eq(buf_str(&history), text));
        buf_release(&history);
        free(aside);
        return;
    }
    demand(repair_run(&repair, h, NULL) >= 0);
    history = scratch_read(h->path);
    quarantine = scratch_read(aside);
    good = lines_of(text, NULL, false);
    demand_in_order(buf_str(&history), text);
    demand_in_order(buf_str(&quarantine), text);
    demand_in_order(buf_str(&good), buf_str(&history));
    count_bytes(text, before);
    count_bytes(buf_str(&history), after);
    count_bytes(buf_str(&quarantine), after);
    demand(memcmp(before, after, sizeof before) == 0);
    demand((repair.moved > 0) == (quarantine.len > 0));

    demand(check_run(&check, h, NULL) == 0 && check.problems == 0);
    demand(repair_run(&repair, h, NULL) == 0);
    again = scratch_read(h->path);
    demand(str_eq(buf_str(&history), buf_str(&again)));
    buf_release(&good);
    buf_release(&history);
    buf_release(&again);
    buf_release(&quarantine);
    free(aside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf copy = BUF_INIT(SIZE_MAX);
    struct history h = {.kind = HISTORY_EXPLICIT,
                        .dir_fd = FILE_CWD,
                        .pointer_fd = FILE_CWD,
                        .path = scratch_path("h"),
                        .pointer = scratch_path("h.session"),
                        .dir_exists = true,
                        .trusted = true,
                        .cancel_fd = -1};

    /* With a NUL behind it. */
    buf_add(&copy, (const char *)data, size);
    scratch_write(h.path, buf_str(&copy));
    try_delete(&h, buf_str(&copy));
    try_repair(&h, buf_str(&copy));
    buf_release(&copy);
    history_release(&h);
    return 0;
}
