/* hist-check - verify a history, and repair it. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/signals.h"
#include "chathist/history/check.h"
#include "chathist/history/location.h"

enum { KEY_REPAIR = OPT_LONG };

static const struct opt options[] = {
    CHOOSE_LIMIT("print at most N problems and N warnings, or all (10 on a terminal, else all)"),
    {KEY_REPAIR, "repair", OPT_FLAG, NULL, "move bad lines to a quarantine file"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print findings as JSON lines"},
    {OPT_QUIET, "quiet", OPT_FLAG, NULL, "print problems only: no warnings, no summary"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-check", "verify a history", "", OPT_FLAG, options};

#define LIMIT_ON_TERMINAL 10

struct report {
    struct out out;
    bool json, quiet;
    size_t limit;      /* the most of each kind that are printed */
    size_t printed[2]; /* problems and warnings */
};

static void print_report_line(struct report *r, struct buf *line)
{
    buf_add_byte(line, '\n');
    out_raw(&r->out, buf_str(line));
    buf_release(line);
}

static void print_json_finding(struct report *r, const struct finding *f)
{
    struct buf line = BUF_INIT(8 * BUF_SMALL);

    buf_add_byte(&line, '{');
    json_add_member(&line, "type", f->warning ? STR("warning") : STR("problem"));
    json_add_member(&line, "file", str_of(f->file));
    if (f->line > 0)
        json_add_member_int(&line, "line", (int64_t)f->line);
    json_add_member(&line, "reason", f->reason);
    buf_add_byte(&line, '}');
    print_report_line(r, &line);
}

/* `FILE:LINE: reason`, as compilers print it. */
static void print_finding(void *arg, const struct finding *f)
{
    struct report *r = arg;
    struct buf line = BUF_INIT(8 * BUF_SMALL);

    if ((f->warning && r->quiet) || r->printed[f->warning] == r->limit)
        return;
    r->printed[f->warning]++;
    if (r->json) {
        print_json_finding(r, f);
        return;
    }
    vis_add_line(&line, str_of(f->file), r->out.terminal);
    if (f->line > 0)
        buf_addf(&line, ":%" PRIu64, f->line);
    buf_add_c(&line, f->warning ? ": warning: " : ": ");
    buf_add_str(&line, f->reason);
    print_report_line(r, &line);
}

static void add_count_words(struct buf *line, uint64_t n, const char *what, const char *behind)
{
    buf_addf(line, "%" PRIu64 " %s%s%s", n, what, n == 1 ? "" : "s", behind);
}

/* Says how many findings were not printed. */
static void print_unprinted(struct report *r, uint64_t all, bool warnings)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    if (r->json || (warnings && r->quiet) || all == r->printed[warnings])
        return;
    buf_add_c(&line, "and ");
    add_count_words(&line, all - r->printed[warnings], warnings ? "more warning" : "more problem",
                    " (-n all prints all)");
    print_report_line(r, &line);
}

static void print_summary(struct report *r, const struct check *c)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    print_unprinted(r, c->problems, false);
    print_unprinted(r, c->warnings, true);
    if (r->quiet)
        return;
    if (r->json) {
        buf_add_c(&line, "{\"type\":\"summary\"");
        json_add_member_int(&line, "lines", (int64_t)c->lines);
        json_add_member_int(&line, "messages", (int64_t)c->messages);
        json_add_member_int(&line, "sessions", (int64_t)c->sessions);
        json_add_member_int(&line, "problems", (int64_t)c->problems);
        json_add_member_int(&line, "warnings", (int64_t)c->warnings);
        buf_add_byte(&line, '}');
    } else {
        add_count_words(&line, c->lines, "line", ", ");
        add_count_words(&line, c->messages, "message", ", ");
        add_count_words(&line, c->sessions, "session", ": ");
        add_count_words(&line, c->problems, "problem", ", ");
        add_count_words(&line, c->warnings, "warning", "");
    }
    print_report_line(r, &line);
}

static void print_repaired(struct report *r, const struct repair *m, const struct history *h)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    char *quarantine = path_with_suffix(h->path, HISTORY_QUARANTINE);

    if (r->json) {
        buf_add_c(&line, "{\"type\":\"repair\"");
        json_add_member_int(&line, "moved", (int64_t)m->moved);
        json_add_member_int(&line, "recovered", (int64_t)m->recovered);
        json_add_member_int(&line, "ended", (int64_t)m->ended);
        json_add_member(&line, "quarantine", str_of(quarantine));
        buf_add_byte(&line, '}');
        print_report_line(r, &line);
    } else if (!r->quiet) {
        buf_add_c(&line, "repaired: ");
        add_count_words(&line, m->recovered, "message", " recovered, ");
        add_count_words(&line, m->moved, "bad part", " moved");
        if (m->moved > 0) {
            buf_add_c(&line, " to '");
            vis_add_line(&line, str_of(quarantine), r->out.terminal);
            buf_add_byte(&line, '\'');
        }
        print_report_line(r, &line);
    }
    free(quarantine);
}

/* The findings were printed before. */
static void repair_history(struct report *r, struct history *h)
{
    struct err e = ERR_INIT;
    struct repair m = {0};
    int result;

    (void)out_flush(&r->out);
    h->cancel_fd = interrupt_begin(&e);
    if (h->cancel_fd < 0)
        die_err(&e);
    result = repair_run(&m, h, &e);
    if (result < 0 && interrupt_signal() != 0)
        die_signal(interrupt_signal());
    if (result < 0)
        die_err(&e);
    interrupt_end();
    print_repaired(r, &m, h);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice choice = {0};
    struct history *h;
    struct report report = {0};
    struct check check = {.found = print_finding, .arg = &report};
    struct err e = ERR_INIT;
    char *value;
    bool repairs = false, problems;

    opt_start(&args, &program, argc, argv);
    while (choose_next(&choice, &args, &value) != 0)
        repairs = true;
    h = choose_open(&choice, &(struct choose_want){.use = CHOOSE_CHANGE, .checked = repairs});
    out_start(&report.out, args.common.color);
    report.json = args.common.json;
    report.quiet = args.common.quiet;
    report.limit = choice.limit > 0                      ? choice.limit
                   : report.out.terminal && !report.json ? LIMIT_ON_TERMINAL
                                                         : SIZE_MAX;

    if (check_run(&check, h, &e) < 0)
        die_err(&e);
    print_summary(&report, &check);
    problems = check.problems > 0;
    if (problems && repairs) {
        signal(SIGPIPE, SIG_IGN);
        repair_history(&report, h);
        problems = false;
    }

    choose_release(&choice);
    return out_close(&report.out, problems ? exit_code(ERR_ABSENT) : 0);
}
