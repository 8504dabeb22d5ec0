#include "front/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "cli/die.h"
#include "hist/session.h"

int sessions_resolve_named(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    if (!h->trusted && str_eq_c(name, "last"))
        return err_set(e, ERR_USAGE,
                       "'%s' is not one of your own histories: name the session to load", h->dir);
    return session_resolve(h, name, id, e);
}

/* 0; -1: it is absent. Anything else that is wrong ends the program. */
static int add_name(struct session_args *a, const struct history *h, struct str name, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    int result =
        a->must_name ? sessions_resolve_named(h, name, &id, e) : session_resolve(h, name, &id, e);

    if (result < 0) {
        if (e->kind == ERR_USAGE)
            die_usage("%s", err_text(e));
        if (e->kind != ERR_ABSENT)
            die_err(e);
        return -1;
    }
    a->ids = mem_grow(a->ids, &a->cap, a->count + 1, sizeof *a->ids);
    a->ids[a->count++] = buf_detach(&id);
    return 0;
}

/* ---- names ---- */

static void keep_name(struct session_names *n, struct str name)
{
    n->at = mem_grow(n->at, &n->cap, n->count + 1, sizeof *n->at);
    n->at[n->count++] = (struct session_name){.text = mem_copy(name.p, name.n), .len = name.n};
}

static void keep_lines(struct session_names *n)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest;

    if (io_read_all(STDIN_FILENO, &text) < 0) {
        struct err e = ERR_INIT;

        err_sys(&e, errno, "cannot read standard input");
        die_err(&e);
    }
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_trim(str_cut(&line, '\t'));

        if (name.n > 0)
            keep_name(n, name);
    }
    buf_release(&text);
}

void session_names_read(struct session_names *n, char **names, size_t count)
{
    *n = (struct session_names){0};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], "-") == 0)
            keep_lines(n);
        else
            keep_name(n, str_of(names[i]));
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

        if (add_name(a, h, (struct str){name->text, name->len}, &name->absent) == 0)
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

/* ---- the arguments of one history ---- */

static void load(struct session_args *a, const struct history *h, char **names, size_t count,
                 const char *otherwise)
{
    char *only = mem_copy(otherwise ? otherwise : "", otherwise ? strlen(otherwise) : 0);
    struct session_names n;

    session_names_read(&n, count > 0 ? names : &only, count > 0 ? count : 1);
    session_args_resolve(a, h, &n);
    a->status = session_names_report(&n);
    session_names_release(&n);
    free(only);
}

void session_args_load(struct session_args *a, const struct history *h, char **names, size_t count,
                       const char *otherwise)
{
    *a = (struct session_args){0};
    load(a, h, names, count, otherwise);
}

void session_args_load_named(struct session_args *a, const struct history *h, char **names,
                             size_t count)
{
    *a = (struct session_args){.must_name = !h->trusted};
    load(a, h, names, count, "last");
}

void session_args_release(struct session_args *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->ids[i]);
    free(a->ids);
}
