#include "chathist/cli/choose.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/start.h"
#include "chathist/history/session.h"
#include "chathist/history/store.h"
#include "cli/remote.h"

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
    case CHOOSE_FROM:
        filter_add(&c->filter.tools, str_of(value));
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

    return f->has_since || f->has_until || f->roles.count > 0 || f->models.count > 0 ||
           f->tools.count > 0;
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

static void read_session_names(struct choice *c, const char *otherwise)
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

/* ---- sessions of other histories ---- */

/* Returns whether the present history has the session, or must decide about the name. */
static bool decides_here(const struct choice *c, const struct named_session *name)
{
    struct str text = buf_str(&name->name);
    struct buf id = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    bool here;

    if (!name->exact && (str_eq_c(text, "current") || str_eq_c(text, "last") || text.n == 0))
        return true;
    here = history_find_session(&c->histories.at[0], text, name->exact, &id, &e) == 0 ||
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

void choose_check_output(const struct choice *c, const char *option, const char *file)
{
    for (size_t i = 0; file && i < c->histories.count; i++) {
        const char *why = history_file_of(&c->histories.at[i], file);

        if (why)
            die_usage("%s: '%s' %s", option, file, why);
    }
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

/* ---- opening ---- */

static void tell_wait(const char *path)
{
    warnf("waiting for another program that writes '%s'", path);
}

static void tell_unmarked(const char *why)
{
    warnf("the next program cannot know that this session is yours: %s", why);
}

int choose_prepare(const struct choice *c, struct history *h, struct err *e)
{
    bool quiet = c->common.quiet;

    h->tell = quiet ? NULL : tell_wait;
    h->on_unmarked = quiet ? NULL : tell_unmarked;
    h->work = !quiet && progress_possible() ? progress_work : NULL;
    h->sync = true;
    return config_switch(&c->config, SETTING_FSYNC, &h->sync, e);
}

/* Adds the history of a file or, if it is NULL, that of this place. Returns it, valid until the
 * next one is added. */
static struct history *add_located(struct choice *c, const char *file, enum choose_use use)
{
    struct locate_from from = start_from(&c->config);
    bool expected = use == CHOOSE_READ || use == CHOOSE_CHANGE;
    struct err e = ERR_INIT;
    struct history h;
    struct stat st;

    from.explicit_file = file;
    from.may_be_nowhere = use == CHOOSE_STORE_IF_ANY;
    from.reader = use == CHOOSE_READ;
    if (locate(&h, &from, &e) < 0 || choose_prepare(c, &h, &e) < 0)
        die_err(&e);
    if (expected && h.kind == HISTORY_EXPLICIT && lstat(h.path, &st) < 0 && errno == ENOENT) {
        err_set(&e, ERR_FAILURE, "no history '%s'", h.path);
        die_err(&e);
    }
    histories_add(&c->histories, h);
    return &c->histories.at[c->histories.count - 1];
}

/* Opens the history of this place, and those that the program reaches from it. */
static void open_place(struct choice *c, const struct choose_want *want)
{
    const struct history *first = add_located(c, c->config.value[SETTING_HISTORY], want->use);
    const char *other = want->use == CHOOSE_READ ? first->other : NULL;
    bool only = other && strcmp(other, first->path) == 0;

    if (other && (only || want->reach == CHOOSE_BESIDE) && !c->common.quiet)
        warnf("reading '%s', which is not one of your own histories", other);
    if (other && !only && want->reach == CHOOSE_BESIDE)
        add_located(c, other, CHOOSE_READ);
    if (want->reach == CHOOSE_USERS && c->config.state_home)
        histories_add_all(&c->histories, &c->config);
}

/* Opens a history of what the program wants of the database. */
static void fetch_history(struct choice *c, const struct choose_want *want)
{
    bool names = c->names.count > 0 || (!want->texts && !want->list);
    struct remote remote = {.history = c->files.count > 0 ? c->files.at[0] : c->common.history,
                            .all = c->all,
                            .quiet = c->common.quiet,
                            .limit = names ? SIZE_MAX : want->limit};
    struct buf lines = BUF_INIT(SIZE_MAX);

    read_session_names(c, names ? "last" : NULL);
    if (c->repo)
        die_usage("--remote does not go with --repo");
    if (c->files.count > 1 || (c->all && c->files.count > 0))
        die_usage("--remote reads the copies of one history, or with --all those of all");
    for (size_t i = 0; i < c->sessions_count; i++)
        remote_session(&remote, &c->sessions[i].name, &c->sessions[i].exact, &lines);
    if (!names && want->list)
        remote_list(&remote, want->list, c->config.now);
    else if (!names)
        remote_matches(&remote, want->texts, &lines);
    add_located(c, remote_store(buf_str(&lines)), CHOOSE_READ);
    buf_release(&lines);
}

int choose_scan(const struct choice *c, const char *option, struct buf *printed, struct err *e)
{
    char *program = path_beside(c->common.self, PROGRAM_PREFIX "hist-import");
    char quiet[] = "--quiet", scan[] = "--scan", *last = mem_text(option);
    char *argv[] = {program, quiet, scan, last, NULL};
    int status = process_read(argv, NULL, STR_NONE, printed, -1, e);

    free(program);
    free(last);
    return status;
}

/* How old the last scan of all places may be. */
#define REFRESH_AGE (60 * TIME_SECOND)

/* Brings in new conversations with other programs, if the configuration says so and that was not
 * done within the last minute. */
static void scan_when_fresh(const struct choice *c)
{
    struct buf count = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct stat st = {0};
    int64_t age;
    char *cache;
    bool fresh;

    if (config_fresh(&c->config, &fresh, &e) < 0)
        die_err(&e);
    if (!fresh)
        return;
    cache = config_scan_cache(&c->config);
    if (cache)
        (void)stat(cache, &st);
    age = c->config.now - system_mtime(&st) / 1000;
    if ((age < 0 || age > REFRESH_AGE) && choose_scan(c, "--all", &count, &e) < 0)
        warn_err(&e);
    err_release(&e);
    free(cache);
    buf_release(&count);
}

struct history *choose_open(struct choice *c, const struct choose_want *want)
{
    bool given = c->files.count > 0 || c->all;
    struct err e = ERR_INIT;

    if (config_load(&c->config, &e) < 0)
        die_err(&e);
    config_set(&c->config, SETTING_HISTORY, c->common.history);
    if ((want->use == CHOOSE_READ || want->fresh) && c->files.count == 0 && !c->remote &&
        !c->config.value[SETTING_HISTORY])
        scan_when_fresh(c);
    if (c->remote) {
        fetch_history(c, want);
        return c->histories.at;
    }
    for (size_t i = 0; i < c->files.count; i++)
        add_located(c, c->files.at[i], CHOOSE_READ);
    if (c->all)
        histories_add_all(&c->histories, &c->config);
    if (c->repo)
        histories_restrict(&c->histories, c->repo);
    if (!given)
        open_place(c, want);
    read_session_names(c, want->session);
    if (want->reach == CHOOSE_ANYWHERE && !given && c->config.state_home &&
        c->histories.at[0].kind != HISTORY_EXPLICIT)
        find_elsewhere(c);
    if (want->checked && store_check(choose_home(c), &e) < 0)
        die_err(&e);
    return c->histories.at;
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
    result = history_find_session(h, text, name->exact, &name->id, &name->absent);
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

bool choose_hint_others(const struct choice *c)
{
    return !c->common.quiet && !c->remote && !choose_many(c) && c->files.count == 0 &&
           c->histories.count == 1 && histories_hint_others(&c->histories.at[0], &c->config);
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
