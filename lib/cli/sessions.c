#include "chathist/cli/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/session.h"

int sessions_resolve_named(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    if (!h->trusted && str_eq_c(name, "last"))
        return err_set(e, ERR_USAGE,
                       "'%s' is not one of your own histories: name the session to load", h->path);
    return session_resolve(h, name, id, e);
}

static int resolve_exact(const struct history *h, struct str text, struct buf *id, struct err *e)
{
    int found = session_exists(h, text, e);

    if (found == 0)
        return err_set(e, ERR_ABSENT, "no session '%.*s'", (int)(text.n > 200 ? 200 : text.n),
                       text.n ? text.p : "");
    if (found > 0)
        buf_add_str(id, text);
    return found > 0 ? 0 : -1;
}

/* Returns 0, or -1 if the session is absent. Any other error ends the program. */
static int add_name(struct session_args *a, const struct history *h,
                    const struct session_name *name, struct err *e)
{
    struct str text = {name->text, name->len};
    struct buf id = BUF_INIT(BUF_LINE);
    int result;

    if (name->exact)
        result = resolve_exact(h, text, &id, e);
    else if (a->must_name)
        result = sessions_resolve_named(h, text, &id, e);
    else
        result = session_resolve(h, text, &id, e);
    if (result < 0) {
        buf_release(&id);
        if (e->kind == ERR_USAGE)
            die_usage("%s", err_text(e));
        if (e->kind != ERR_ABSENT)
            die_err(e);
        return -1;
    }
    a->bytes = mem_resize(a->bytes, a->count + 1, sizeof *a->bytes);
    a->ids = mem_grow(a->ids, &a->cap, a->count + 1, sizeof *a->ids);
    a->bytes[a->count] = id;
    /* An empty id is not an absent one. */
    a->ids[a->count++] = (struct str){buf_c(&id), id.len};
    return 0;
}

/* ---- names ---- */

static void keep_name(struct session_names *n, struct str name, bool exact)
{
    struct buf decoded = BUF_INIT(BUF_LINE);

    if (str_starts(name, STR("\""))) {
        struct str json;

        if (!json_check(name, &json, NULL))
            die_usage("bad session id %.*s: not a JSON string", (int)(name.n > 200 ? 200 : name.n),
                      name.p);
        json_decode(json, &decoded);
        name = buf_str(&decoded);
        exact = true;
    }
    n->at = mem_grow(n->at, &n->cap, n->count + 1, sizeof *n->at);
    n->at[n->count++] = (struct session_name){
        .text = mem_copy(name.n ? name.p : "", name.n), .len = name.n, .exact = exact};
    buf_release(&decoded);
}

static void keep_lines(struct session_names *n)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest;

    if (file_read_all(STDIN_FILENO, &text) < 0) {
        struct err e = ERR_INIT;

        err_sys(&e, errno, "cannot read standard input");
        die_err(&e);
    }
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_cut(&line, '\t');

        if (name.n > 0)
            keep_name(n, name, true);
    }
    buf_release(&text);
}

void session_names_read(struct session_names *n, char **names, size_t count, const char *otherwise)
{
    *n = (struct session_names){0};
    if (count == 0 && otherwise)
        keep_name(n, str_of(otherwise), false);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], "-") == 0)
            keep_lines(n);
        else
            keep_name(n, str_of(names[i]), false);
    }
}

void session_names_release(struct session_names *n)
{
    for (size_t i = 0; i < n->count; i++) {
        free(n->at[i].text);
        err_release(&n->at[i].absent);
    }
    free(n->at);
}

void session_args_resolve(struct session_args *a, const struct history *h, struct session_names *n)
{
    for (size_t i = 0; i < n->count; i++) {
        struct session_name *name = &n->at[i];

        if (add_name(a, h, name, &name->absent) == 0)
            name->found = true;
    }
}

int session_names_report(const struct session_names *n)
{
    int status = 0;

    for (size_t i = 0; i < n->count; i++) {
        if (n->at[i].found)
            continue;
        warn_err(&n->at[i].absent);
        status = exit_code(ERR_ABSENT);
    }
    return status;
}

/* ---- the digits at the end of an id ---- */

/* The most sessions that an ambiguous name lists. */
#define DIGITS_MOST 8

static int take_generated(const struct session_list *l, struct str name, struct buf *id,
                          struct err *e)
{
    struct buf all = BUF_INIT(BUF_SMALL);
    int found = 0;

    for (size_t i = 0; i < l->count; i++) {
        struct str one = {l->at[i].id, l->at[i].id_len};

        if (!id_session_generated(one))
            continue;
        buf_addf(&all, "%s%s", found++ > 0 ? ", " : "", l->at[i].id);
        buf_clear(id);
        buf_add_str(id, one);
    }
    if (found > 1)
        found = err_set(e, ERR_USAGE, "session '%.*s' is ambiguous: %s", (int)name.n, name.p,
                        buf_c(&all));
    buf_release(&all);
    return found;
}

int sessions_find_digits(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    struct buf generated = BUF_INIT(BUF_SMALL), end = BUF_INIT(BUF_SMALL);
    struct session_list l;
    int found = 0;

    buf_addf(&generated, "sess_0_%.*s", (int)name.n, name.p);
    buf_addf(&end, "_%.*s", (int)name.n, name.p);
    if (id_session_generated(buf_str(&generated)) && name.n == ID_SESSION_DIGITS) {
        found = session_exists(h, name, e);
        if (found == 0 && session_list_named(&l, h, buf_str(&end), DIGITS_MOST, e) < 0)
            found = -1;
        else if (found == 0) {
            found = take_generated(&l, name, id, e);
            session_list_release(&l);
        } else if (found > 0)
            found = 0;
    }
    buf_release(&generated);
    buf_release(&end);
    return found;
}

/* ---- the arguments of one history ---- */

void session_args_load(struct session_args *a, const struct history *h, char **names, size_t count,
                       const char *otherwise)
{
    struct session_names n;

    *a = (struct session_args){0};
    session_names_read(&n, names, count, otherwise);
    session_args_resolve(a, h, &n);
    a->status = session_names_report(&n);
    session_names_release(&n);
}

void session_args_clear(struct session_args *a)
{
    for (size_t i = 0; i < a->count; i++)
        buf_release(&a->bytes[i]);
    a->count = 0;
}

void session_args_release(struct session_args *a)
{
    session_args_clear(a);
    free(a->bytes);
    free(a->ids);
}
