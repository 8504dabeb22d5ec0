#include "chathist/base/error.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/buf.h"

void err_release(struct err *e)
{
    free(e->text);
    *e = (struct err)ERR_INIT;
}

/* The new message may be made from the old one, so it is complete before the old one is freed. */
static void replace(struct err *e, enum err_kind kind, struct buf *text)
{
    char *old = e->text;

    e->kind = kind;
    e->text = buf_detach(text);
    free(old);
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE);
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    replace(e, kind, &text);
    return -1;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE);
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    buf_addf(&text, ": %s", strerror(errnum));
    replace(e, ERR_FAILURE, &text);
    return -1;
}

const char *err_text(const struct err *e)
{
    return e && e->text ? e->text : "";
}
