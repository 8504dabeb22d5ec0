#include "chathist/history/mend.h"

#include <errno.h>
#include <string.h>

#include "chathist/base/io.h"
#include "chathist/base/json.h"
#include "chathist/history/index.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"

/* In so many places of a line it is tried whether a message begins there: each trial may read the
 * rest of the line. */
#define TRIALS_MAX 4096

static bool is_blank(struct str text)
{
    return str_trim(text).n == 0;
}

/* Is there a message at the start of the text, whatever follows it? */
static bool starts_message(struct str text, struct str *message)
{
    struct str value;
    size_t at = 0;

    if (json_check(text, &value, &at))
        at = text.n;
    *message = str_trim((struct str){text.p, at});
    return message->n > 0 && !message_defect(*message);
}

/* Does it hold whole messages, and nothing else up to its end? */
static bool only_messages(struct str text)
{
    struct str message;

    do {
        if (!starts_message(text, &message))
            return false;
        text.n -= (size_t)(message.p - text.p) + message.n;
        text.p = message.p + message.n;
    } while (!is_blank(text));
    return true;
}

static bool take(struct str *rest, struct str message)
{
    rest->n -= (size_t)(message.p - rest->p) + message.n;
    rest->p = message.p + message.n;
    return true;
}

bool mend_next(struct str *rest, struct str *garbage, struct str *message)
{
    struct str from = *rest;

    *garbage = (struct str){rest->p, 0};
    if (starts_message(from, message))
        return take(rest, *message);
    for (size_t trials = 0; trials < TRIALS_MAX && from.n > 0; trials++) {
        const char *brace = memchr(from.p, '{', from.n);

        if (!brace)
            return false;
        from = (struct str){brace, from.n - (size_t)(brace - from.p)};
        if (only_messages(from)) {
            garbage->n = (size_t)(brace - rest->p);
            return starts_message(from, message) && take(rest, *message);
        }
        from.p++;
        from.n--;
    }
    return false;
}

static void set_aside(struct mend *m, struct rewrite *r, const struct line *l, struct str part)
{
    if (is_blank(part))
        return;
    rewrite_set_part_aside(r, l->at + (off_t)(part.p - l->text.p), part.n);
    m->moved++;
}

/* A line that is no message. */
static void salvage(struct mend *m, struct rewrite *r, const struct line *l)
{
    struct str rest = l->text;
    struct str garbage, message;
    uint64_t found = 0;

    while (!l->too_long && mend_next(&rest, &garbage, &message)) {
        set_aside(m, r, l, garbage);
        rewrite_add(r, message);
        found++;
    }
    m->recovered += found;
    if (found > 0) {
        set_aside(m, r, l, rest);
    } else {
        rewrite_set_aside(r, l);
        m->moved++;
    }
}

static void begin(void *arg)
{
    *(struct mend *)arg = (struct mend){0};
}

static void judge(void *arg, struct rewrite *r, const struct line *l)
{
    struct mend *m = arg;
    bool good = !l->too_long && (is_blank(l->text) || !message_defect(l->text));

    if (!good) {
        salvage(m, r, l);
    } else if (l->terminated || is_blank(l->text)) {
        rewrite_keep(r, l);
    } else {
        rewrite_add(r, l->text);
        m->ended++;
    }
}

int mend_run(struct mend *m, struct history *h, struct err *e)
{
    struct rewriter by = {.arg = m, .begin = begin, .line = judge};
    bool removable;

    /* The rewrite sweeps only the directory of the history. */
    if (h->pointer_fd != h->dir_fd && io_sweep(h->pointer_fd, h->pointer, !h->dir, true, e) < 0)
        return -1;
    if (index_defect(h, &removable) && removable && io_unlink(h->dir_fd, h->index) < 0)
        return err_sys(e, errno, "cannot remove '%s'", h->index);
    return rewrite_run(h, &by, e);
}
