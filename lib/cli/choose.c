#include "chathist/cli/choose.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/history/session.h"

/* ---- the options ---- */

/* Returns false if the key is not one of the options that choose. */
static bool set_option(struct choice *c, int key, char *value)
{
    int64_t first, last;

    switch (key) {
    case 'r':
        filter_add(&c->filter.roles, str_of(value));
        break;
    case 's':
        arg_list_add(&c->names, value);
        break;
    case 'n':
        c->limit = opt_count("--limit", value);
        break;
    /* The last --since counts, and the last --until. */
    case CHOOSE_SINCE:
        opt_when("--since", value, &first, &last);
        c->filter.has_since = true;
        c->filter.since = first;
        break;
    case CHOOSE_UNTIL:
        opt_when("--until", value, &first, &last);
        c->filter.has_until = true;
        c->filter.until = last;
        break;
    case CHOOSE_MODEL:
        filter_add(&c->filter.models, str_of(value));
        break;
    case CHOOSE_ALL:
        c->all = true;
        break;
    case CHOOSE_REPO:
        c->all = true;
        c->repo = value;
        break;
    case CHOOSE_DATABASE:
        c->remote = true;
        break;
    case CHOOSE_NO_PAGER:
        c->unpaged = true;
        break;
    case OPT_HISTORY:
        arg_list_add(&c->files, value);
        break;
    default:
        return false;
    }
    return true;
}

int choose_next(struct choice *c, struct opt_parser *p, char **value)
{
    char **operands;
    size_t count;
    int key;

    while ((key = opt_next(p, value)) != 0)
        if (!set_option(c, key, *value))
            return key;
    c->common = p->common;
    operands = opt_operands(p, &count);
    for (size_t i = 0; i < count && p->program->operand_kind == OPT_SESSION; i++)
        arg_list_add(&c->names, operands[i]);
    return 0;
}

bool choose_restricts(const struct choice *c)
{
    const struct filter *f = &c->filter;

    return f->has_since || f->has_until || f->roles.count > 0 || f->models.count > 0;
}

/* ---- histories ---- */

void choose_add_file(struct choice *c, const char *file)
{
    struct history h;

    start_reader_of_file(&c->config, &h, file, c->common.quiet);
    histories_add(&c->histories, h);
}

/* ---- names of sessions ---- */

static void add_session_name(struct choice *c, struct str name, bool exact)
{
    struct named_session added = {
        .name = BUF_INIT(BUF_LINE), .exact = exact, .id = BUF_INIT(BUF_LINE)};

    if (str_starts(name, STR("\""))) {
        struct str json;

        if (!json_check(name, &json, NULL))
            die_usage("bad session id %.*s: not a JSON string", ERR_SHOWN(name));
        json_decode(json, &added.name);
        added.exact = true;
    } else {
        buf_add_str(&added.name, name);
    }
    c->sessions =
        mem_grow(c->sessions, &c->sessions_cap, c->sessions_count + 1, sizeof *c->sessions);
    c->sessions[c->sessions_count++] = added;
}

static void read_name_lines(struct choice *c)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct str rest;

    if (file_read_all(STDIN_FILENO, &text) < 0) {
        err_sys(&e, errno, "cannot read standard input");
        die_err(&e);
    }
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_cut(&line, '\t');

        if (name.n > 0)
            add_session_name(c, name, true);
    }
    buf_release(&text);
}

static void read_name_operands(struct choice *c, const char *otherwise)
{
    if (c->names.count == 0 && otherwise)
        add_session_name(c, str_of(otherwise), false);
    for (size_t i = 0; i < c->names.count; i++) {
        if (strcmp(c->names.at[i], "-") == 0)
            read_name_lines(c);
        else
            add_session_name(c, str_of(c->names.at[i]), false);
    }
}

void choose_begin(struct choice *c, const char *otherwise)
{
    struct err e = ERR_INIT;

    if (config_load(&c->config, &e) < 0)
        die_err(&e);
    read_name_operands(c, otherwise);
}

/* ---- sessions of other histories ---- */

/* Does the present history have the session, or must it decide about the name? */
static bool decides_here(const struct choice *c, const struct named_session *name)
{
    struct str text = buf_str(&name->name);
    struct buf id = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    bool here;

    if (!name->exact && (str_eq_c(text, "current") || str_eq_c(text, "last") || text.n == 0))
        return true;
    here = history_look_up(&c->histories.at[0], text, name->exact, &id, &e) == 0 ||
           e.kind != ERR_ABSENT;
    err_release(&e);
    buf_release(&id);
    return here;
}

/* Finds the sessions that the present history does not have in the others of the user. */
static void find_elsewhere(struct choice *c)
{
    struct buf id = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    for (size_t i = 0; i < c->sessions_count; i++) {
        struct named_session *name = &c->sessions[i];

        name->bound = true;
        if (decides_here(c, name))
            continue;
        if (c->histories.count == 1)
            histories_add_all(&c->histories, &c->config);
        if (histories_find(&c->histories, 1, buf_str(&name->name), name->exact, &name->home, &id,
                           &e) < 0)
            die_err(&e);
    }
    buf_release(&id);
}

struct history *choose_home(const struct choice *c)
{
    size_t home = c->sessions_count > 0 ? c->sessions[0].home : 0;

    for (size_t i = 1; i < c->sessions_count; i++)
        if (c->sessions[i].home != home)
            die_usage("the sessions are in several histories: name those of one");
    return &c->histories.at[home];
}

void choose_tell_homes(const struct choice *c)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < c->sessions_count && !c->common.quiet; i++) {
        const struct named_session *one = &c->sessions[i];

        if (one->home == 0)
            continue;
        buf_clear(&name);
        history_name_add(&name, &c->histories.at[one->home]);
        warnf("session '%.*s' is in %s", ERR_SHOWN(buf_str(&one->name)), buf_c(&name));
    }
    buf_release(&name);
}

void choose_open(struct choice *c, enum choose_reach reach, const char *otherwise)
{
    bool all = reach == CHOOSE_USERS, others = reach == CHOOSE_OTHERS;
    struct err e = ERR_INIT;
    struct history first;

    if (all || reach == CHOOSE_PLACE) {
        start_history(&c->config, &first, &c->common);
        if (all)
            start_expect(&first);
        histories_add(&c->histories, first);
        if (all && c->config.state_home)
            histories_add_all(&c->histories, &c->config);
    } else if (c->files.count > 0 || c->all) {
        if (config_load(&c->config, &e) < 0)
            die_err(&e);
        for (size_t i = 0; i < c->files.count; i++)
            choose_add_file(c, c->files.at[i]);
        if (c->all)
            histories_add_all(&c->histories, &c->config);
        if (c->repo)
            histories_restrict(&c->histories, c->repo);
    } else {
        start_reader(&c->config, &first, &c->common, others);
        histories_add(&c->histories, first);
        /* With CHOOSE_OTHERS another program's history is read, too. */
        if (others && first.other && strcmp(first.other, first.path) != 0)
            choose_add_file(c, first.other);
    }
    read_name_operands(c, otherwise);
    if (reach == CHOOSE_ANYWHERE && c->files.count == 0 && !c->all && c->config.state_home &&
        c->histories.at[0].kind != HISTORY_EXPLICIT)
        find_elsewhere(c);
}

bool choose_many(const struct choice *c)
{
    return !c->remote && (c->all || c->histories.count > 1);
}

/* ---- sessions ---- */

/* Looks a session up. Returns whether the history has it; any other error ends the program. */
static bool resolve_session(const struct history *h, struct named_session *name)
{
    struct str text = buf_str(&name->name);
    int result;

    buf_clear(&name->id);
    result = history_look_up(h, text, name->exact, &name->id, &name->absent);
    if (result < 0 && name->absent.kind == ERR_USAGE)
        die_usage("%s", err_text(&name->absent));
    if (result < 0 && name->absent.kind != ERR_ABSENT)
        die_err(&name->absent);
    name->found |= result == 0;
    return result == 0;
}

bool choose_in(struct choice *c, const struct history *h)
{
    filter_clear(&c->filter.sessions);
    for (size_t i = 0; i < c->sessions_count; i++) {
        struct named_session *name = &c->sessions[i];

        if (name->bound && h != &c->histories.at[name->home])
            continue;
        /* An empty id is not an absent one. */
        if (resolve_session(h, name))
            filter_add(&c->filter.sessions, buf_str(&name->id));
    }
    return c->filter.sessions.count > 0 || (c->names.count == 0 && c->sessions_count == 0);
}

int choose_one(struct choice *c)
{
    const struct history *home;

    if (c->names.count > 1)
        die_usage("one session is expected");
    if (c->sessions_count == 0) {
        warnf("no session was given");
        return exit_code(ERR_ABSENT);
    }
    home = choose_home(c);
    (void)choose_in(c, home);
    if (c->filter.sessions.count > 1)
        die_usage("one session is expected, %zu were given", c->filter.sessions.count);
    return choose_report(c);
}

/* A session whose latest message has no time that can be read is within no bounds. One without a
 * message has the time of its first title. */
static bool session_in_time(const struct filter *f, const struct session *s)
{
    int64_t used;

    if (!f->has_since && !f->has_until)
        return true;
    if (!time_parse_iso(s->last_used, &used))
        return false;
    if (s->count > 0)
        used = s->used;
    return (!f->has_since || used >= f->since) && (!f->has_until || used <= f->until);
}

int choose_mark(const struct choice *c, const struct session_list *l, bool *marked,
                const struct history *h, struct err *e)
{
    struct filter filter = {.roles = c->filter.roles, .models = c->filter.models};
    struct message m = MESSAGE_INIT;
    struct hash_map passed = {0};
    struct scan scan;
    int result;

    for (size_t i = 0; i < l->count; i++)
        marked[i] = marked[i] && session_in_time(&c->filter, &l->at[i]);
    if (filter_is_empty(&filter))
        return 0;
    if (scan_open(&scan, h->dir_fd, h->path, e) < 0)
        return -1;
    while ((result = scan_message(&scan, &m, NULL, e)) > 0)
        if (filter_match(&filter, &m))
            hash_map_add(&passed, m.session_id);
    for (size_t i = 0; i < l->count; i++)
        marked[i] = marked[i] && hash_map_find(&passed, l->at[i].id);
    hash_map_release(&passed);
    message_release(&m);
    scan_close(&scan);
    return result;
}

/* Removes the sessions that are not chosen from a list of all sessions. */
static int restrict_to_chosen(const struct choice *c, struct session_list *l,
                              const struct history *h, size_t limit, struct err *e)
{
    const struct filter_list *named = &c->filter.sessions;
    bool *marked = mem_zalloc(l->count);
    int result;

    for (size_t i = 0; i < l->count; i++)
        marked[i] = named->count == 0 || filter_has(named, l->at[i].id);
    result = choose_mark(c, l, marked, h, e);
    session_list_restrict(l, marked, limit);
    free(marked);
    if (result < 0)
        session_list_release(l);
    return result;
}

/* Lists the generated ids of which the text begins the digits. */
static int list_digits(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e)
{
    size_t kept = 0;

    session_list_release(l);
    if (session_list_newest(l, h, SIZE_MAX, e) < 0)
        return -1;
    for (size_t i = 0; i < l->count && kept < limit; i++)
        if (id_session_digits_begin(l->at[i].id, text))
            l->at[kept++] = l->at[i];
    l->count = kept;
    return 0;
}

int choose_list(struct choice *c, struct session_list *l, const struct history *h, const char *id,
                size_t limit, struct err *e)
{
    bool all = c->sessions_count == 0 && !choose_restricts(c);
    size_t most = all ? limit : SIZE_MAX;

    *l = (struct session_list){0};
    if (!choose_in(c, h))
        return 0;
    if ((id ? session_list_named(l, h, str_of(id), most, e) : session_list_newest(l, h, most, e)) <
        0)
        return -1;
    if (id && l->count == 0 && list_digits(l, h, str_of(id), most, e) < 0)
        return -1;
    return all ? 0 : restrict_to_chosen(c, l, h, limit, e);
}

void choose_hint_others(const struct choice *c)
{
    if (!c->common.quiet && !c->remote && !choose_many(c) && c->files.count == 0 &&
        c->histories.count == 1)
        histories_hint_others(&c->histories.at[0], &c->config);
}

int choose_status(const struct choice *c)
{
    for (size_t i = 0; i < c->sessions_count; i++)
        if (!c->sessions[i].found)
            return exit_code(ERR_ABSENT);
    return 0;
}

int choose_report(const struct choice *c)
{
    for (size_t i = 0; i < c->sessions_count; i++)
        if (!c->sessions[i].found)
            warn_err(&c->sessions[i].absent);
    return choose_status(c);
}

void choose_release(struct choice *c)
{
    histories_release(&c->histories);
    config_release(&c->config);
    for (size_t i = 0; i < c->sessions_count; i++) {
        buf_release(&c->sessions[i].name);
        err_release(&c->sessions[i].absent);
        buf_release(&c->sessions[i].id);
    }
    free(c->sessions);
    filter_release(&c->filter);
    free(c->names.at);
    free(c->files.at);
}
