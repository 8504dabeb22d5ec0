/* hist-sessions - list sessions, the last used first. */
#include <inttypes.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/die.h"
#include "cli/term.h"
#include "front/start.h"
#include "hist/session.h"

static const struct opt options[] = {
    {'n', "limit", OPT_NUMBER, "N", "list at most N sessions (50), or all"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sessions", "list sessions, the last used first", "",
                                       OPT_FLAG, options};

#define LIMIT 50

/* The id in its colour. Gives how long it is. */
static size_t print_id(struct out *out, const struct session *s)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    size_t length;

    vis_add_line(&id, (struct str){s->id, s->id_len}, out->terminal);
    length = id.len;
    out_style(out, STYLE_ID);
    out_raw(out, buf_str(&id));
    out_style(out, STYLE_NONE);
    buf_release(&id);
    return length;
}

/* `id TAB last-used TAB count TAB preview`, whatever the text holds. */
static void print_record(struct out *out, const struct session *s)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    print_id(out, s);
    buf_add_byte(&line, '\t');
    vis_add_line(&line, str_of(s->last_used), false);
    buf_addf(&line, "\t%" PRIu64 "\t", s->count);
    vis_add_line(&line, (struct str){s->preview, s->preview_len}, false);
    buf_add_byte(&line, '\n');
    out_raw(out, buf_str(&line));
    buf_release(&line);
}

/* The same for a terminal: local time, columns, a preview that fits. */
static void print_columns(struct out *out, const struct session *s)
{
    struct buf middle = BUF_INIT(BUF_SMALL), preview = BUF_INIT(BUF_SMALL);
    size_t used = print_id(out, s);
    int64_t us;

    buf_add_c(&middle, "  ");
    if (clock_parse_iso(str_of(s->last_used), &us))
        clock_add_local(&middle, us);
    else
        vis_add_line(&middle, str_of(s->last_used), true);
    buf_addf(&middle, "  %4" PRIu64 "  ", s->count);
    used += middle.len;
    out_raw(out, buf_str(&middle));
    vis_add_line(&preview, (struct str){s->preview, s->preview_len}, true);
    out_raw(out, utf8_fit(buf_str(&preview), out->columns > used ? out->columns - used : 1));
    out_byte(out, '\n');
    buf_release(&middle);
    buf_release(&preview);
}

static void print_json(struct out *out, const struct session *s)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    session_add_json(&line, s);
    out_json_line(out, buf_str(&line));
    buf_release(&line);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_list list;
    struct err e = ERR_INIT;
    struct out out;
    char *value;
    size_t limit = LIMIT, operands;

    opt_start(&args, &program, argc, argv);
    while (opt_next(&args, &value) != 0)
        limit = opt_count("--limit", value);
    if (opt_operands(&args, &operands) && operands > 0)
        die_usage("no argument is expected");
    start_history(&config, &history, &args.common);
    out_start(&out, args.common.color);

    if (session_list_load(&list, history.path, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < list.count && i < limit; i++) {
        if (args.common.json)
            print_json(&out, &list.at[i]);
        else if (out.terminal)
            print_columns(&out, &list.at[i]);
        else
            print_record(&out, &list.at[i]);
    }
    start_report_bad(&history, list.bad_lines, args.common.quiet);

    session_list_release(&list);
    history_release(&history);
    config_release(&config);
    return out_close(&out, 0, exit_code(ERR_FAILURE));
}
