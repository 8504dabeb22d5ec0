/*
 * err - what went wrong: a finished message and its kind.
 *
 * A function that can fail returns -1 and fills the struct err it was given; on success it leaves
 * it untouched. Messages are what stands after "tool: ": `cannot open 'x': No such file or
 * directory`, lower case at the start, no full stop, no newline. The library never prints them.
 */
#ifndef CHATHIST_BASE_ERR_H
#define CHATHIST_BASE_ERR_H

/* What a caller can do about it. cli/die maps a kind to an exit code. */
enum err_kind {
    ERR_NONE = 0,
    ERR_FAILURE,    /* anything without a kind of its own */
    ERR_USAGE,      /* the arguments or the configuration are wrong */
    ERR_ABSENT,     /* a session or message that was named is not there */
    ERR_REQUEST,    /* the server refuses the request (other 4xx) */
    ERR_AUTH,       /* 401, 403, no key */
    ERR_NETWORK,    /* no connection, a connection lost before an answer, TLS */
    ERR_UNTRUSTED,  /* the server's certificate is not accepted: another try fails, too */
    ERR_TIMEOUT,    /* connected, but nothing was answered in time */
    ERR_BUSY,       /* rate limit or server error: worth another try later */
    ERR_QUOTA,      /* the account has nothing left: another try fails, too */
    ERR_REFUSED,    /* the model refused, or the context is too long for it */
    ERR_INCOMPLETE, /* the answer broke off; what came is kept */
    ERR_UNSAVED,    /* answered, but the history could not be written */
    ERR_LIMIT,      /* tool or iteration limit */
    ERR_SIGNAL,     /* a signal ended it */
};

struct err {
    enum err_kind kind;
    char *text; /* owned; NULL while nothing is wrong */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .kind = ERR_NONE                                                                           \
    }

/* Frees the message; e is then as after ERR_INIT. */
void err_release(struct err *e);

/* Both return -1, so that `return err_set(…)` reads well. e may be NULL: nobody asks. A second
 * error replaces the first, and its arguments may contain the first one's text. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with `: strerror(errnum)` behind it, kind ERR_FAILURE. */
int err_sys(struct err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The message, "" when nothing is wrong; borrowed until e changes. */
const char *err_text(const struct err *e);

#endif
