/* hist-sync - keep histories on several machines equal. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/time.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/output.h"
#include "chathist/cli/progress.h"
#include "chathist/sync/postgres.h"
#include "chathist/sync/sync.h"

enum {
    KEY_SEARCH = OPT_LONG,
    KEY_SESSIONS,
    KEY_SHOW,
    KEY_ALL,
    KEY_NAME,
    KEY_ACCEPT,
    KEY_DRY_RUN,
    KEY_SERVE,
    KEY_MACHINES,
    KEY_RETIRE,
    KEY_FORCE
};

static const struct opt options[] = {
    {KEY_ALL, "all", OPT_FLAG, NULL, "every history that is registered as yours"},
    {KEY_NAME, "name", OPT_TEXT, "NAME", "the name that its copies on other machines have"},
    {KEY_ACCEPT, "accept-deletions", OPT_FLAG, NULL,
     "erase what another copy deleted, also if it is much"},
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL, "count what would be done, and do nothing"},
    {KEY_MACHINES, "machines", OPT_FLAG, NULL, "list the machines that have files in a directory"},
    {KEY_RETIRE, "retire", OPT_TEXT, "MACHINE",
     "read what a machine has in a directory, and remove its files"},
    {KEY_FORCE, "force", OPT_FLAG, NULL, "with --retire: do not ask"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the counts as JSON lines"},
    /* What --remote of the programs that read asks for (cli/remote), and hist-sync by ssh. */
    {KEY_SEARCH, "search", OPT_TEXT, "TEXT", NULL},
    {KEY_SESSIONS, "sessions", OPT_FLAG, NULL, NULL},
    {KEY_SHOW, "show", OPT_TEXT, "SESSION", NULL},
    {'n', "limit", OPT_NUMBER, "N", NULL},
    {KEY_SERVE, "serve", OPT_FLAG, NULL, NULL},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sync", "keep histories on several machines equal",
                                       "[init|push|pull] [PLACE]", OPT_FILE, options};

/* The exit statuses of the programs that print messages, which --remote passes on: no session has
 * the name of --show, and any failure that would have the same number otherwise. */
#define NOT_FOUND 1
#define NOT_READ 2

struct run {
    struct choice choice;
    struct histories histories; /* the histories of --all */
    struct out out;
    const char *place, *name;
    const char *verb;  /* init, push or pull; NULL: push and pull */
    struct str *texts; /* --search */
    size_t texts_count, texts_cap, limit;
    const char *session; /* --show */
    bool sessions;
    bool all, dry_run, serve, json, quiet, accept, machines, force;
    const char *retire;                      /* --retire */
    const struct sync_machine_entry *target; /* the machine that it names */
    size_t nameless;                         /* histories that --all leaves out */
    int status;
};

static bool is_verb(const struct run *r, const char *verb)
{
    return r->verb && strcmp(r->verb, verb) == 0;
}

static void add_count(struct buf *line, uint64_t n, const char *what)
{
    if (n > 0)
        buf_addf(line, "%s%" PRIu64 " %s", line->len > 0 ? ", " : "", n, what);
}

/* Reports the lines that could not be taken. */
static void print_refused(const struct run *r, const struct sync_job *job)
{
    uint64_t refused = job->count.refused;

    if (refused > 0 && !r->quiet)
        warnf("%" PRIu64 " line%s for '%s' in %s %s left out: damaged, or no message", refused,
              refused == 1 ? "" : "s", job->name,
              job->options.mark ? job->options.mark : "the other copy",
              refused == 1 ? "is" : "are");
}

/* Reports the lines that are still here because their deletions wait. That is a failure, because
 * the copies are not equal. */
static void print_waiting(struct run *r, const struct sync_job *job)
{
    uint64_t lines = job->count.waiting, sessions = job->count.waiting_sessions;
    char host[256] = "";

    if (lines == 0)
        return;
    if (r->serve && gethostname(host, sizeof(host) - 1) < 0)
        *host = '\0';
    warnf("%" PRIu64 " line%s of %" PRIu64 " session%s of '%s'%s%s that another copy deleted %s: "
          "--accept-deletions erases %s",
          lines, lines == 1 ? "" : "s", sessions, sessions == 1 ? "" : "s", job->name,
          *host ? " on " : "", host,
          r->dry_run   ? "would wait"
          : lines == 1 ? "waits"
                       : "wait",
          lines == 1 ? "it" : "them");
    if (r->status == 0)
        r->status = exit_code(ERR_FAILURE);
}

/* Asks whether deletions are accepted. */
static bool ask_deletions(void *arg, uint64_t lines, uint64_t sessions)
{
    const struct sync_job *job = arg;
    struct buf text = BUF_INIT(BUF_SMALL);
    bool accepted;

    buf_addf(&text,
             PROGRAM_PREFIX "hist-sync: another copy of '%s' deleted %" PRIu64 " line%s of %" PRIu64
                            " session%s: erase %s here, too? [y/N] ",
             job->name, lines, lines == 1 ? "" : "s", sessions, sessions == 1 ? "" : "s",
             lines == 1 ? "it" : "them");
    accepted = confirm_yes(buf_c(&text)) > 0;
    buf_release(&text);
    return accepted;
}

/* Prints the result for a history: NAME, COUNTS. Prints nothing if nothing was to be done. */
static void print_count(struct run *r, const struct sync_job *job)
{
    const struct merge_count *c = &job->count;
    struct buf line = BUF_INIT(BUF_SMALL), counts = BUF_INIT(BUF_SMALL);

    if (r->json) {
        buf_add_byte(&line, '{');
        json_add_member(&line, "name", str_of(job->name));
        json_add_member(&line, "history", str_of(job->history->path));
        json_add_member_int(&line, "received", (int64_t)c->received);
        json_add_member_int(&line, "sent", (int64_t)c->sent);
        json_add_member_int(&line, "deleted", (int64_t)c->deleted);
        json_add_member_int(&line, "conflicts", (int64_t)c->conflicts);
        json_add_member_int(&line, "waiting", (int64_t)c->waiting);
        buf_add_byte(&line, '}');
        out_json_line(&r->out, buf_str(&line));
    } else {
        add_count(&counts, c->received, "received");
        add_count(&counts, c->sent, "sent");
        add_count(&counts, c->deleted, "deleted");
        if (counts.len > 0 && !r->quiet)
            buf_addf(&line, "%s\t%s\n", job->name, buf_c(&counts));
        out_text(&r->out, buf_str(&line));
    }
    print_refused(r, job);
    print_waiting(r, job);
    buf_release(&line);
    buf_release(&counts);
}

static bool is_ssh(const char *place)
{
    return strncmp(place, "ssh://", strlen("ssh://")) == 0;
}

/* Returns 0, or -1 with *e set. */
static int sync_at_place(struct sync_job *job, struct err *e)
{
    if (sync_is_postgres(job->place))
        return sync_postgres(job, e);
    if (!is_ssh(job->place))
        return sync_dir(job, e);
    job->ssh = config_env("CHAT_SSH");
    job->program = PROGRAM_PREFIX "hist-sync";
    return sync_ssh(job, e);
}

static void prepare_history(struct run *r, struct history *h)
{
    struct err e = ERR_INIT;

    h->sync = true;
    if (config_switch(&r->choice.config, SETTING_FSYNC, &h->sync, &e) < 0 ||
        (!r->accept &&
         config_switch(&r->choice.config, SETTING_ACCEPT_DELETIONS, &r->accept, &e) < 0))
        die_err(&e);
    h->work = !r->quiet && !r->serve && progress_possible() ? progress_work : NULL;
}

/* Returns whether the machine that is to be removed has a copy of this history. */
static bool is_concerned(const struct run *r, const char *name)
{
    for (size_t i = 0; r->target && i < r->target->count; i++)
        if (strcmp(r->target->histories[i].name, name) == 0)
            return true;
    return !r->target;
}

static void sync_one(struct run *r, struct history *h)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct sync_job job = {.history = h,
                           .place = r->place,
                           .push = !is_verb(r, "pull"),
                           .pull = !is_verb(r, "push"),
                           .retire = r->retire};

    prepare_history(r, h);
    job.options =
        (struct merge_options){.dry_run = r->dry_run,
                               .mark = sync_is_postgres(r->place) ? "the database" : r->place,
                               .warn = r->quiet ? NULL : warn_message,
                               .accept_deletions = r->accept,
                               .accept = isatty(STDERR_FILENO) ? ask_deletions : NULL,
                               .arg = &job};
    if (r->name)
        buf_add_c(&name, r->name);
    if (!r->name && sync_name(&name, h, &e) < 0 && r->all && e.kind == ERR_USAGE) {
        r->nameless++;
    } else if (e.kind != ERR_NONE) {
        warn_err(&e);
        r->status = exit_code(e.kind);
    } else if (is_concerned(r, buf_c(&name))) {
        job.name = buf_c(&name);
        if (sync_at_place(&job, &e) < 0) {
            warn_err(&e);
            r->status = exit_code(e.kind);
        }
        print_count(r, &job);
    }
    err_release(&e);
    buf_release(&name);
}

/* Returns the history that --serve is to serve, or NULL with *e set. */
static struct history *find_served(struct run *r, struct history *h, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct history *found = NULL;
    size_t count = 0;

    if (h->kind == HISTORY_EXPLICIT)
        return h;
    if (strcmp(r->name, "own") == 0) {
        histories_add_own(&r->histories, &r->choice.config);
        return &r->histories.at[0];
    }
    histories_add_all(&r->histories, &r->choice.config);
    for (size_t i = 0; i < r->histories.count; i++) {
        struct err why = ERR_INIT;

        if (sync_name(&name, &r->histories.at[i], &why) < 0) {
            if (why.kind != ERR_USAGE)
                warn_err(&why);
            err_release(&why);
        } else if (str_eq_c(buf_str(&name), r->name)) {
            found = &r->histories.at[i];
            count++;
        }
    }
    buf_release(&name);
    if (count == 1)
        return found;
    err_set(e, ERR_ABSENT, "%s history is called '%s': %s", count == 0 ? "no" : "more than one",
            r->name,
            count == 0 ? "use chat in a clone there first, or name a file" : "name a file");
    return NULL;
}

/* Serves a history. Errors go to the other side, which prints them; ssh brings warnings there. */
static void serve(struct run *r, struct history *h)
{
    struct sync_job job = {
        .name = r->name,
        .options = {.dry_run = r->dry_run, .warn = r->quiet ? NULL : warn_message},
    };
    struct buf line = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    job.history = find_served(r, h, &e);
    if (!job.history) {
        buf_addf(&line, "X %s\n", err_text(&e));
        out_raw(&r->out, buf_str(&line));
    } else {
        prepare_history(r, job.history);
        job.options.accept_deletions = r->accept;
        (void)sync_serve(&job, STDIN_FILENO, STDOUT_FILENO, &e);
        print_refused(r, &job);
        print_waiting(r, &job);
    }
    if (e.kind != ERR_NONE)
        r->status = exit_code(e.kind);
    buf_release(&line);
    err_release(&e);
}

/* ---- all histories ---- */

/* Synchronises the user's own history, those that are registered, and that of this directory. The
 * first and the last one may not exist yet. */
static void sync_all(struct run *r, struct history *h)
{
    bool listed = h->kind != HISTORY_REPOSITORY || !h->trusted;

    histories_add_own(&r->histories, &r->choice.config);
    histories_add_all(&r->histories, &r->choice.config);
    for (size_t i = 0; i < r->histories.count; i++) {
        listed = listed || path_same(r->histories.at[i].path, h->path);
        if (r->histories.at[i].kind != HISTORY_EXPLICIT)
            sync_one(r, &r->histories.at[i]);
    }
    if (!listed)
        sync_one(r, h);
    if (r->nameless > 0 && !r->quiet && !r->retire)
        hintf(false, "%zu histories without a remote are left out: --name synchronises one",
              r->nameless);
}

/* ---- the machines of a directory ---- */

/* Returns 0, or prints an error and returns -1; the list may have a part then. */
static int read_machines(struct run *r, const struct history *h, struct sync_machines *l)
{
    struct merge_options to = {.warn = warn_message};
    struct err e = ERR_INIT;

    if (sync_machines_read(l, r->place, h, &to, &e) == 0)
        return 0;
    warn_err(&e);
    r->status = exit_code(e.kind);
    err_release(&e);
    return -1;
}

static void add_machine_json(struct buf *line, const struct sync_machine_entry *m)
{
    struct buf time = BUF_INIT(BUF_SMALL);

    time_add_iso(&time, m->last_run);
    buf_add_byte(line, '{');
    json_add_member(line, "machine", str_of(m->name));
    json_add_member(line, "host", str_of(m->host));
    json_add_member(line, "last_run", buf_str(&time));
    json_add_member_int(line, "bytes", (int64_t)m->bytes);
    buf_add_c(line, ",\"histories\":[");
    for (size_t i = 0; i < m->count; i++) {
        if (i > 0)
            buf_add_byte(line, ',');
        json_add_string(line, str_of(m->histories[i].name));
    }
    buf_addf(line, "],\"this\":%s}", m->own ? "true" : "false");
    buf_release(&time);
}

/* Prints `name TAB host TAB last run TAB bytes`, and ` TAB this machine` where it is; on a terminal
 * in columns. */
static void print_machines(struct run *r, const struct sync_machines *l)
{
    struct buf line = BUF_INIT(BUF_LINE);
    int name = 0, host = 0;

    for (size_t i = 0; r->out.terminal && i < l->count; i++) {
        int n = (int)strlen(l->at[i].name), k = (int)strlen(l->at[i].host);

        name = n > name ? n : name;
        host = k > host ? k : host;
    }
    for (size_t i = 0; i < l->count; i++) {
        const struct sync_machine_entry *m = &l->at[i];

        buf_clear(&line);
        if (r->json) {
            add_machine_json(&line, m);
            out_json_line(&r->out, buf_str(&line));
            continue;
        }
        buf_addf(&line, "%-*s%s%-*s%s", name, m->name, r->out.terminal ? "  " : "\t", host, m->host,
                 r->out.terminal ? "  " : "\t");
        if (r->out.terminal) {
            time_add_local(&line, m->last_run);
            buf_addf(&line, "  %8" PRIu64 " KiB%s\n", (m->bytes + 1023) / 1024,
                     m->own ? "  this machine" : "");
        } else {
            time_add_iso(&line, m->last_run);
            buf_addf(&line, "\t%" PRIu64 "%s\n", m->bytes, m->own ? "\tthis machine" : "");
        }
        out_text(&r->out, buf_str(&line));
    }
    buf_release(&line);
}

static struct sync_machine_entry *find_machine(const struct sync_machines *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->at[i].name, name) == 0)
            return &l->at[i];
    return NULL;
}

/* Asks the user. Ends the program if no terminal can be asked. */
static bool confirmed(const struct sync_machine_entry *m)
{
    struct buf question = BUF_INIT(BUF_LINE);
    int yes;

    buf_addf(&question, "remove the files of '%s' (last run ", m->name);
    time_add_local(&question, m->last_run);
    buf_addf(&question, ", %" PRIu64 " KiB)? [y/N] ", (m->bytes + 1023) / 1024);
    yes = confirm_yes(buf_c(&question));
    buf_release(&question);
    if (yes < 0)
        die_usage("there is no terminal to ask on: nothing is removed without --force");
    return yes > 0;
}

/* Synchronises the histories that the machine has, and removes its files. */
static void retire(struct run *r, struct history *h)
{
    struct sync_machines before, after;
    const struct sync_machine_entry *rest;

    /* If a part cannot be read, it is found again below. */
    (void)read_machines(r, h, &before);
    r->status = 0;
    r->target = find_machine(&before, r->retire);
    if (!r->target) {
        warnf("no machine is called '%s' in '%s'", r->retire, r->place);
        r->status = exit_code(ERR_FAILURE);
    } else if (r->target->own) {
        die_usage("'%s' is the name of this machine", r->retire);
    } else if (r->force || confirmed(r->target)) {
        if (r->all)
            sync_all(r, h);
        else
            sync_one(r, h);
        rest = read_machines(r, h, &after) == 0 && r->status == 0 ? find_machine(&after, r->retire)
                                                                  : NULL;
        for (size_t i = 0; rest && i < rest->count; i++)
            warnf("'%s/%s' still has %zu files of '%s': no history with this name is here",
                  r->place, rest->name, rest->histories[i].files, rest->histories[i].name);
        if (rest)
            r->status = exit_code(ERR_FAILURE);
        sync_machines_release(&after);
    }
    r->target = NULL;
    sync_machines_release(&before);
}

/* ---- databases ---- */

static int print_result(void *arg, struct str line, struct err *e)
{
    struct run *r = arg;

    (void)e;
    out_json_line(&r->out, line);
    return 0;
}

static bool is_reading(const struct run *r)
{
    return r->texts_count > 0 || r->sessions || r->session;
}

/* Prints what --search, --sessions or --show asks for. */
static void print_from_database(struct run *r, const struct history *h)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct sync_job job = {.place = r->place};
    struct err e = ERR_INIT;
    int result = 0;

    if (r->name)
        buf_add_c(&name, r->name);
    else if (!r->all)
        result = sync_name(&name, h, &e);
    job.name = r->all ? NULL : buf_c(&name);
    if (result == 0 && r->session)
        result = sync_postgres_show(&job, str_of(r->session), print_result, r, &e);
    else if (result == 0 && r->sessions)
        result = sync_postgres_sessions(&job, r->limit, print_result, r, &e);
    else if (result == 0)
        result =
            sync_postgres_search(&job, r->texts, r->texts_count, r->limit, print_result, r, &e);
    if (result < 0) {
        warn_err(&e);
        r->status = exit_code(e.kind) == NOT_FOUND ? NOT_READ : exit_code(e.kind);
        if (e.kind == ERR_ABSENT)
            r->status = NOT_FOUND;
    }
    err_release(&e);
    buf_release(&name);
}

static void make_tables(struct run *r)
{
    struct sync_job job = {.place = r->place, .options = {.warn = r->quiet ? NULL : warn_message}};
    struct err e = ERR_INIT;

    if (sync_postgres_init(&job, &e) < 0)
        die_err(&e);
}

/* Takes [init|push|pull] [PLACE]. */
static void read_operands(struct run *r, struct opt_parser *args)
{
    size_t count;
    char **operands = opt_operands(args, &count);

    if (count > 0 && (strcmp(operands[0], "init") == 0 || strcmp(operands[0], "push") == 0 ||
                      strcmp(operands[0], "pull") == 0)) {
        r->verb = operands[0];
        operands++;
        count--;
    }
    if (count > 1)
        die_usage("one place is expected: a directory, ssh://HOST or postgresql://...");
    r->place = count > 0 ? operands[0] : NULL;
}

/* Ends the program if nothing can be synchronised with the place, before it asks for a name. */
static void check_place(const char *place)
{
    struct err e = ERR_INIT;
    struct stat st;
    int reason = 0;

    if (is_ssh(place)) {
        if (sync_ssh_check(place, &e) < 0)
            die_err(&e);
    } else if (!sync_is_postgres(place)) {
        if (strstr(place, "://"))
            die_usage("bad place '%s': a directory, ssh://HOST or postgresql://... is expected",
                      place);
        if (stat(place, &st) < 0)
            reason = errno;
        else if (!S_ISDIR(st.st_mode))
            reason = ENOTDIR;
    }
    if (reason) {
        err_sys(&e, reason, "cannot open directory '%s'", place);
        die_err(&e);
    }
}

/* Chooses the place of the user configuration if none was given, and checks that the options go
 * with it. */
static void choose_place(struct run *r)
{
    if (!r->place)
        r->place = r->choice.config.value[SETTING_REMOTE];
    if (!r->place || !*r->place)
        die_usage("no place is given, by an argument, the setting 'remote' or CHAT_REMOTE: a "
                  "directory, ssh://HOST or postgresql://... is expected");
    if (r->verb && !sync_is_postgres(r->place))
        die_usage("'%s' is for a database: postgresql://...", r->verb);
    if ((r->machines || r->retire) &&
        (sync_is_postgres(r->place) || strncmp(r->place, "ssh://", strlen("ssh://")) == 0))
        die_usage("--machines and --retire are for a directory, not for '%s'", r->place);
    if (is_reading(r) && (r->verb || !sync_is_postgres(r->place)))
        die_usage("--remote, --search, --sessions and --show read a database: postgresql://... as "
                  "an argument, the setting 'remote' or CHAT_REMOTE");
    check_place(r->place);
}

static void parse(struct run *r, struct opt_parser *args)
{
    char *value;
    int key;

    while ((key = opt_next(args, &value)) != 0) {
        r->all |= key == KEY_ALL;
        r->accept |= key == KEY_ACCEPT;
        r->dry_run |= key == KEY_DRY_RUN;
        r->serve |= key == KEY_SERVE;
        r->sessions |= key == KEY_SESSIONS;
        r->machines |= key == KEY_MACHINES;
        r->force |= key == KEY_FORCE;
        if (key == KEY_RETIRE)
            r->retire = value;
        if (key == KEY_NAME)
            r->name = value;
        if (key == KEY_SHOW)
            r->session = value;
        if (key == 'n')
            r->limit = opt_count("--limit", value);
        if (key == KEY_SEARCH) {
            r->texts = mem_grow(r->texts, &r->texts_cap, r->texts_count + 1, sizeof(*r->texts));
            r->texts[r->texts_count++] = str_of(value);
        }
    }
    r->json = args->common.json;
    r->quiet = args->common.quiet;
    read_operands(r, args);
    if (r->serve && (r->all || !r->name || r->verb || r->place))
        die_usage("--serve needs a name, and takes no --all and no place");
    if (r->all && (r->name || args->common.history))
        die_usage("--all takes neither --name nor --history");
    if (r->machines + !!r->retire + r->serve + is_reading(r) + r->dry_run > 1 &&
        (r->machines || r->retire))
        die_usage("--machines and --retire stand alone");
    if (r->retire && !r->name && !args->common.history)
        r->all = true;
    if (r->name && !sync_name_valid(str_of(r->name)))
        die_usage("bad name '%s': up to 200 letters, digits and . _ : / + ~ @ - are expected",
                  r->name);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct run r = {.limit = SIZE_MAX};
    struct history *h;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    parse(&r, &args);
    r.choice.common = args.common;
    h = choose_open(&r.choice, &(struct choose_want){.use = CHOOSE_STORE});
    out_start(&r.out, args.common.color);
    if (!r.serve)
        choose_place(&r);
    if (r.serve) {
        serve(&r, h);
    } else if (is_verb(&r, "init")) {
        make_tables(&r);
    } else if (is_reading(&r)) {
        print_from_database(&r, h);
    } else if (r.machines) {
        struct sync_machines list;

        (void)read_machines(&r, h, &list);
        print_machines(&r, &list);
        sync_machines_release(&list);
    } else if (r.retire) {
        retire(&r, h);
    } else if (r.all) {
        sync_all(&r, h);
    } else {
        sync_one(&r, h);
    }
    free(r.texts);
    histories_release(&r.histories);
    choose_release(&r.choice);
    return out_close(&r.out, r.status);
}
