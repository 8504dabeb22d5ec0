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

/* Sets the message. It may be made from the old one, so it is complete before the old one is
 * freed. */
static void set_message(struct err *e, enum err_kind kind, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void set_message(struct err *e, enum err_kind kind, const char *fmt, va_list ap)
{
    struct buf text = BUF_INIT(BUF_LINE);

    buf_vaddf(&text, fmt, ap);
    free(e->text);
    e->kind = kind;
    e->text = buf_detach(&text);
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, fmt);
    set_message(e, kind, fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, fmt);
    set_message(e, ERR_FAILURE, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_FAILURE, "%s: %s", err_text(e), strerror(errnum));
}

const char *err_text(const struct err *e)
{
    return e && e->text ? e->text : "";
}
