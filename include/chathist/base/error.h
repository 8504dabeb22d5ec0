/*
 * error - an error: a finished message and its kind.
 *
 * A function that can fail returns -1 and fills in the struct err that it was given. On success it
 * does not change it. A message is the text after "tool: ": `cannot open 'x': No such file or
 * directory`, with a lower-case first letter and without a full stop or newline. The library never
 * prints messages.
 */
#ifndef CHATHIST_BASE_ERROR_H
#define CHATHIST_BASE_ERROR_H

/* The kind says what a caller can do about the error. cli/diagnostics maps it to an exit status. */
enum err_kind {
    ERR_NONE = 0,
    ERR_FAILURE,    /* anything without another kind */
    ERR_USAGE,      /* the arguments or the configuration are wrong */
    ERR_ABSENT,     /* the named session or message does not exist */
    ERR_REQUEST,    /* the server refused the request (other 4xx) */
    ERR_AUTH,       /* 401, 403, or no key */
    ERR_NETWORK,    /* no connection, connection lost before a response, or TLS error */
    ERR_UNTRUSTED,  /* the server's certificate was refused; another attempt fails, too */
    ERR_TIMEOUT,    /* connected, but the server did not answer in time */
    ERR_BUSY,       /* rate limit or server error; another attempt may succeed later */
    ERR_QUOTA,      /* the account has no quota left; another attempt fails, too */
    ERR_REFUSED,    /* the model refused */
    ERR_TOO_LONG,   /* the context is too long for the model */
    ERR_INCOMPLETE, /* the answer broke off; the received part is kept */
    ERR_UNSAVED,    /* answered, but the history could not be written */
    ERR_LIMIT,      /* tool or iteration limit */
    ERR_SIGNAL,     /* a signal ended the operation */
};

struct err {
    enum err_kind kind;
    char *text; /* owned; NULL without an error */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .kind = ERR_NONE                                                                           \
    }

/* Frees the message and resets e. */
void err_release(struct err *e);

/* Both functions return -1, so that a caller can write `return err_set(...)`. e may be NULL. A
 * second error replaces the first, and its arguments may contain the first one's text. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with `: strerror(errnum)` appended; the kind is ERR_FAILURE. */
int err_sys(struct err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The arguments for "%.*s" that show a text, or the beginning of a very long one. */
#define ERR_SHOWN(text) (int)((text).n > 200 ? 200 : (text).n), (text).n ? (text).p : ""

/* Returns the message, or "" without an error; borrowed until e changes. */
const char *err_text(const struct err *e);

#endif
