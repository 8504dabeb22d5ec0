#include "front/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "cli/die.h"
#include "hist/session.h"

static void add_name(struct session_args *a, const struct history *h, struct str name)
{
    struct err e = ERR_INIT;
    struct buf id = BUF_INIT(BUF_SMALL);

    if (a->must_name && str_eq_c(name, "last"))
        die_usage("'%s' is not one of your own histories: name the session to load", h->dir);
    if (session_resolve(h, name, &id, &e) < 0) {
        if (e.kind != ERR_ABSENT)
            die_err(&e);
        warn_err(&e);
        err_release(&e);
        a->status = exit_code(ERR_ABSENT);
        return;
    }
    a->ids = mem_grow(a->ids, &a->cap, a->count + 1, sizeof *a->ids);
    a->ids[a->count++] = buf_detach(&id);
}

static void add_lines(struct session_args *a, const struct history *h)
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
            add_name(a, h, name);
    }
    buf_release(&text);
}

static void load(struct session_args *a, const struct history *h, char **names, size_t count,
                 const char *otherwise)
{
    if (count == 0)
        add_name(a, h, str_of(otherwise));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], "-") == 0)
            add_lines(a, h);
        else
            add_name(a, h, str_of(names[i]));
    }
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

bool session_args_has(const struct session_args *a, struct str id)
{
    for (size_t i = 0; i < a->count; i++)
        if (str_eq_c(id, a->ids[i]))
            return true;
    return false;
}

void session_args_release(struct session_args *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->ids[i]);
    free(a->ids);
}
