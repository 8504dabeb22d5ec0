/* hist-sessions - list sessions, the last used first. */
#include <stdint.h>

#include "chathist/base/utf8.h"
#include "chathist/cli/brief.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/session_match.h"
#include "chathist/cli/session_rows.h"
#include "chathist/cli/start.h"
#include "chathist/cli/wide.h"
#include "chathist/history/message.h"

#define LIMIT_ON_TERMINAL 50
/* The columns of a terminal: those of the headings of an id and of the name of a history, those
 * that the name gets in any case if it needs them, and those of the time, the number, the gaps and
 * a short title. */
#define ID_LEAST (sizeof "session" - 1)
#define NAME_LEAST (sizeof "repository" - 1)
#define NAME_COLUMNS ((size_t)12)
#define OTHER_COLUMNS ((size_t)47)
/* In the order of enum rows_by. */
#define SORT_KEYS "last|created|count|size|title"

enum { KEY_ID = OPT_LONG, KEY_MATCH, KEY_SORT, KEY_REVERSE };

static const struct opt options[] = {
    CHOOSE_LIMIT("list at most N sessions, or all (50 on a terminal, else all)"),
    CHOOSE_SESSIONS,
    {KEY_ID, "id", OPT_TEXT, "TEXT", "list only sessions whose id TEXT begins, or else ends"},
    {KEY_MATCH, "match", OPT_QUERY, "QUERY",
     "only sessions with a message, or a title, that meets QUERY"},
    {KEY_SORT, "sort", OPT_CHOICE, SORT_KEYS, "sort by this: the last used, the longest, ..."},
    {KEY_REVERSE, "reverse", OPT_FLAG, NULL, "the other way round: the oldest, the shortest, ..."},
    CHOOSE_HISTORIES,
    CHOOSE_REMOTE,
    CHOOSE_PAGER,
    BRIEF_OPTIONS,
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sessions", "list sessions, the last used first", "",
                                       OPT_FLAG, options};

/* Sets the name of the history of that number, or if `brief`, the end that tells it from others. */
static void set_shown_name(struct buf *name, const struct histories *l, size_t number, bool brief)
{
    buf_clear(name);
    if (brief)
        history_name_add_end(name, l->at, l->count, number);
    else
        history_name_add(name, &l->at[number]);
}

static void widen(size_t *width, const struct buf *text)
{
    size_t columns = wide_columns(buf_str(text));

    if (columns > *width)
        *width = columns;
}

/* Chooses the columns of the first `limit` rows on a terminal. *brief is set if whole names of
 * histories leave no room for titles. */
static struct list_form choose_columns(const struct out *out, const struct choice *c,
                                       const struct session_rows *rows, size_t limit, bool *brief)
{
    struct list_form form = {.json = c->common.json};
    struct buf text = BUF_INIT(8 * BUF_LINE);
    size_t most = list_id_most(out), last = 0, room;

    *brief = false;
    for (size_t i = 0; out->terminal && i < rows->count && i < limit; i++) {
        size_t number = rows->at[i].history;

        buf_clear(&text);
        list_add_id(&text, rows->at[i].session->id);
        widen(&form.id_width, &text);
        if (!choose_many(c))
            continue;
        set_shown_name(&text, &c->histories, number, false);
        widen(&form.name_width, &text);
        set_shown_name(&text, &c->histories, number, true);
        widen(&last, &text);
    }
    buf_release(&text);
    form.id_width = form.id_width > most       ? most
                    : form.id_width < ID_LEAST ? ID_LEAST
                                               : form.id_width;
    room = form.id_width + OTHER_COLUMNS + NAME_COLUMNS;
    room = out->columns > room ? out->columns - room + NAME_COLUMNS : NAME_COLUMNS;
    if (form.name_width > room) {
        *brief = true;
        form.name_width = last < room ? last : room;
    }
    if (form.name_width > 0 && form.name_width < NAME_LEAST)
        form.name_width = NAME_LEAST;
    return form;
}

/* Returns a text without the word that it was cut in, if it has as many code points as are kept: a
 * part of a secret is not known as one. */
static struct str without_cut(struct str text, size_t most)
{
    if (utf8_count(text) >= most)
        while (text.n > 0 && !ascii_is_space(text.p[--text.n]))
            ;
    return text;
}

static void print_session_row(struct out *out, const struct session *s, struct list_form *form,
                              struct brief *brief)
{
    struct buf line = BUF_INIT(SIZE_MAX), text = BUF_INIT(BUF_LINE);
    struct session shown = *s;

    if (!brief_changes(brief)) {
        list_session(out, s, form);
        return;
    }
    if (brief->redact) {
        shown.preview = without_cut(s->preview, MESSAGE_PREVIEW);
        shown.title = without_cut(s->title, MESSAGE_TITLE);
    }
    list_add_json(&line, &shown, form->history);
    if (brief_add(brief, buf_str(&line), STR(""), &text) > 0)
        out_json_line(out, buf_str(&text));
    buf_release(&line);
    buf_release(&text);
}

/* Prints at most `limit` rows. */
static void print_rows(struct out *out, const struct choice *c, const struct session_rows *rows,
                       struct brief *brief, size_t limit)
{
    bool names_brief;
    struct list_form form = choose_columns(out, c, rows, limit, &names_brief);
    struct buf name = BUF_INIT(BUF_SMALL);
    size_t printed = 0;

    for (size_t i = 0; i < rows->count; i++) {
        const struct history *h = &c->histories.at[rows->at[i].history];

        if (choose_many(c)) {
            set_shown_name(&name, &c->histories, rows->at[i].history, names_brief);
            form.history = h->path;
            form.name = buf_c(&name);
        }
        /* The database has only what the user stored. */
        if (!brief_wants(brief, c->remote ? NULL : h, rows->at[i].session->id))
            continue;
        if (printed == limit)
            break;
        if (printed++ == 0 && out->terminal && !form.json && !brief_changes(brief))
            list_heading(out, &form);
        print_session_row(out, rows->at[i].session, &form, brief);
    }
    brief_end(brief, out);
    for (size_t i = 0; i < c->histories.count; i++)
        start_report_bad(&c->histories.at[i], rows->lists[i].bad_lines, c->common.quiet);
    buf_release(&name);
}

int main(int argc, char **argv)
{
    struct choice choice = {0};
    struct opt_parser args;
    struct session_rows rows = {0};
    struct brief brief = {0};
    struct err e = ERR_INIT;
    struct out out;
    char *value;
    size_t limit;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&choice, &args, &value)) != 0) {
        if (key == KEY_ID)
            rows.id = value;
        else if (key == KEY_MATCH)
            session_match_query(&choice, value);
        else if (key == KEY_SORT)
            rows.by = (enum rows_by)opt_choice(SORT_KEYS, str_of(value));
        else if (!brief_read_option(&brief, key, value))
            rows.reverse = true;
    }
    brief_check_options(&brief, args.common.json, false);
    brief.config = &choice.config;
    out_start(&out, args.common.color);
    if (!choice.unpaged)
        out_page(&out);
    limit = choice.limit > 0 ? choice.limit : out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    rows.limit = brief.own || brief.except ? SIZE_MAX : limit;
    if (session_rows_load(&rows, &choice, &e) < 0)
        die_err(&e);
    if (rows.said.len > 0)
        warnf("%s", buf_c(&rows.said));
    print_rows(&out, &choice, &rows, &brief, limit);
    status = choose_report(&choice);
    if (rows.count == 0)
        choose_hint_others(&choice);

    brief_release(&brief);
    session_rows_release(&rows, choice.histories.count);
    choose_release(&choice);
    return out_close(&out, status);
}
