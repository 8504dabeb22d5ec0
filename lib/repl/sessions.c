#include "repl/sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/context_window.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/show.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/cli/wide.h"
#include "chathist/history/session.h"
#include "chathist/history/stats.h"
#include "chathist/history/thread.h"
#include "chathist/search/forms.h"
#include "chathist/search/query.h"
#include "chathist/search/session_search.h"
#include "chathist/terminal/markdown_out.h"

/* The number of messages that /load shows. */
#define SHOWN_LAST 4
/* The default length of lists. */
#define LIST_MAX 20

/* Prints the number of a line in a list, and reduces the width that is left. The caller calls
 * out_measure after the line. */
static void add_list_number(struct repl *r, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    words_add(&r->listed, id);
    buf_addf(&text, "%2zu  ", r->listed.count);
    out_raw(r->out, buf_str(&text));
    r->out->columns -= r->out->columns > text.len ? text.len : 0;
    buf_release(&text);
}

/* Reads 1, 2, ... or `all`. Returns 0 for any other text. */
static size_t read_list_count(struct str text)
{
    size_t n;

    return opt_read_count(text, &n) ? n : 0;
}

void repl_sessions(struct repl *r, struct str text)
{
    struct history *h = r->chat->history;
    size_t most = text.n > 0 ? read_list_count(text) : LIST_MAX;
    struct session_list list;
    struct err e = ERR_INIT;

    if (most == 0) {
        warnf("bad number '%.*s': try '/sessions 10' or '/sessions all'", (int)text.n, text.p);
        return;
    }
    if (session_list_newest(&list, h, most == SIZE_MAX ? most : most + 1, &e) < 0) {
        repl_report(&e);
        return;
    }
    words_release(&r->listed);
    for (size_t i = 0; i < list.count && i < most; i++) {
        add_list_number(r, list.at[i].id);
        list_session(r->out, &list.at[i], &(struct list_form){0});
        out_measure(r->out);
    }
    if (list.count == 0)
        repl_say(r, "there are no sessions yet");
    else
        repl_say(r, "%s/load N continues one",
                 list.count > most ? "/sessions all lists older ones, " : "");
    start_report_bad(h, list.bad_lines, r->chat->args->common.quiet);
    session_list_release(&list);
}

/* ---- /search ---- */

struct looking {
    struct repl *r;
    struct query query;
    struct pattern pattern; /* all words in one message */
    struct session_texts texts;
    bool open;            /* the query was read */
    bool more;            /* there are more hits than are listed */
    struct filter filter; /* the filter of the next search that is opened */
    const atomic_bool *cancel;
};

static int open_here(void *looking, struct search *s, struct pattern *p, struct err *e)
{
    struct looking *l = looking;
    struct history *h = l->r->chat->history;

    if (search_open(s, h->dir_fd, h->path, p, &l->filter, e) < 0)
        return -1;
    s->query = &l->query;
    s->history = h;
    s->cancel = l->cancel;
    return 0;
}

/* Returns false, and prints nothing, if the list is full. */
static bool print_hit(struct looking *l, const struct hit *hit)
{
    struct hits_form form = {0};

    l->more = l->r->listed.count == LIST_MAX;
    if (l->more)
        return false;
    add_list_number(l->r, hit->message->session_id);
    hits_print(l->r->out, hit, &form);
    out_measure(l->r->out);
    return true;
}

/* Prints the messages that hold everything, the newest first: of all, of those that are no results
 * of tools, or of these. Returns -1 with *e set after an error. */
static int print_hits(struct looking *l, enum filter_results results, struct err *e)
{
    struct repl *r = l->r;
    struct search search;
    struct hit hit;
    int found = 0, result;

    l->filter.results = results;
    result = open_here(l, &search, &l->pattern, e);
    l->filter.results = FILTER_ANY;
    if (result < 0)
        return -1;
    while ((found = search_next(&search, &hit, e)) > 0 && print_hit(l, &hit))
        continue;
    start_report_bad(r->chat->history, search.scan.bad, r->chat->args->common.quiet);
    search_close(&search);
    return found;
}

/* Prints the hits of a search for sessions, as many as the list has room for. Returns 0, or -1 with
 * *e set. */
static int print_found(struct looking *l, const struct session_hits *hits, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct search s;
    struct hit hit = {0};
    int result = open_here(l, &s, &l->texts.any, e);

    if (result < 0)
        return -1;
    for (size_t i = 0; i < hits->count && result == 0 && !l->more; i++) {
        result = session_search_read(&s, hits->at[i].place, &line, &hit, e);
        if (result == 0)
            print_hit(l, &hit);
    }
    search_close(&s);
    buf_release(&line);
    return result;
}

/* Prints the newest message with each word in the sessions that hold all of them, or all but
 * `may_lack`. Returns 0, or -1 with *e set. */
static int print_found_sessions(struct looking *l, size_t may_lack, struct err *e)
{
    struct session_search of = {.wanted = l->texts.at,
                                .wanted_count = l->texts.count,
                                .may_lack = may_lack,
                                .best = true,
                                .query = &l->query,
                                .newest_only = true,
                                .open = open_here,
                                .ctx = l};
    int result = session_search_run(&of, e);

    if (result == 0 && of.hits.count > 0 && !atomic_load(l->cancel)) {
        repl_say(l->r, may_lack ? "no session has all words; these have all but one:"
                                : "no message has all words; these sessions have them:");
        result = print_found(l, &of.hits, e);
    }
    session_search_release(&of);
    return result;
}

static void drop_repl_query(struct looking *l)
{
    session_texts_release(&l->texts);
    pattern_release(&l->pattern);
    query_release(&l->query);
}

/* Reads a query for the history. Returns 1; 0 if the query excludes it; -1 with *e set and nothing
 * to release. */
static int read_query(struct looking *l, struct str text, struct err *e)
{
    struct history h = *l->r->chat->history;
    struct buf name = BUF_INIT(BUF_LINE);
    int result;

    if (query_open(&l->query, &l->pattern, text, time_now(), e) < 0)
        return -1;
    l->texts = (struct session_texts){0};
    h.cancel = l->cancel;
    history_name_add(&name, &h);
    result = query_enter(&l->query, &h, buf_str(&name), e);
    buf_release(&name);
    if (result < 0 || session_texts_of(&l->texts, &l->query, e) < 0) {
        drop_repl_query(l);
        return -1;
    }
    return result;
}

/* Returns whether nothing was found yet, and the search is to go on. */
static bool wants_more(const struct looking *l, int result)
{
    return result >= 0 && l->r->listed.count == 0 && !atomic_load(l->cancel);
}

/* Lists the messages, or else the sessions, that hold all words. Returns -1 with *e set after an
 * error. */
static int list_all_words(struct looking *l, struct err *e)
{
    bool apart = l->texts.count > 1;
    int result = print_hits(l, apart ? FILTER_NO_RESULTS : FILTER_ANY, e);

    if (apart && result >= 0 && !l->more && !atomic_load(l->cancel))
        result = print_hits(l, FILTER_RESULTS, e);
    if (wants_more(l, result) && session_texts_help(&l->texts, &l->query, 0))
        result = print_found_sessions(l, 0, e);
    return result;
}

static int open_repl_for_forms(void *looking, size_t history, struct search *s, struct pattern *p,
                               struct err *e)
{
    struct looking *l = looking;

    (void)history;
    l->query.in_session = true;
    return open_here(l, s, p, e) == 0 ? 1 : -1;
}

/* Lists what the query finds with other forms of its words, if there are any; then the query is
 * that one. Returns -1 with *e set after an error. */
static int list_forms(struct looking *l, struct str text, struct err *e)
{
    struct forms f = {.text = text,
                      .query = &l->query,
                      .histories = 1,
                      .together = true,
                      .open = open_repl_for_forms,
                      .ctx = l};
    struct buf asked = BUF_INIT(SIZE_MAX);
    int result = forms_run(&f, e);

    l->query.in_session = false;
    if (result == 0 && f.asked.len > 0 && !atomic_load(l->cancel)) {
        repl_say(l->r, "%s:", buf_c(&f.said));
        buf_add_str(&asked, buf_str(&f.asked));
    }
    forms_release(&f);
    if (asked.len > 0) {
        drop_repl_query(l);
        l->open = false;
        result = read_query(l, buf_str(&asked), e);
        l->open = result >= 0;
        result = result > 0 ? list_all_words(l, e) : result;
    }
    buf_release(&asked);
    return result;
}

/* Lists what a query finds. Returns -1 with *e set after an error. */
static int list_found(struct looking *l, struct str text, struct err *e)
{
    int result = read_query(l, text, e);

    l->open = result >= 0;
    words_release(&l->r->listed);
    if (result <= 0)
        return result;
    result = list_all_words(l, e);
    if (wants_more(l, result))
        result = list_forms(l, text, e);
    if (wants_more(l, result) && session_texts_help(&l->texts, &l->query, 1))
        result = print_found_sessions(l, 1, e);
    return result;
}

void repl_search(struct repl *r, struct str text)
{
    struct looking l = {.r = r, .cancel = line_signals_cancel()};
    struct err e = ERR_INIT;
    int result;

    if (text.n == 0) {
        warnf("no query: try '/search WORD...'");
        return;
    }
    line_signals_forget();
    result = list_found(&l, text, &e);
    if (atomic_load(l.cancel)) {
        repl_set_interrupt(r, line_signals_fatal() ? line_signals_fatal() : SIGINT);
        err_release(&e);
    } else if (result < 0) {
        repl_report(&e);
    } else if (r->listed.count == 0) {
        repl_say(r, "nothing was found");
    } else {
        repl_say(r, "%s/load N continues the session of one", l.more ? "there are more; " : "");
    }
    if (l.open)
        drop_repl_query(&l);
}

/* ---- /load ---- */

/* Continues a session of the history, and shows its last messages. The system prompt for the next
 * turn is dropped, attached files are kept. Reports an error. */
static void load_by_id(struct repl *r, const struct buf *id)
{
    struct chat_session *chat = r->chat;
    struct history *h = chat->history;
    const struct filter every = {0};
    struct show show = {
        .last = SHOWN_LAST, .filter = &every, .print = chat->events.marked ? markdown_print : NULL};
    bool quiet = chat->args->common.quiet;
    struct err e = ERR_INIT;
    size_t messages;

    if (!chat->store.in_memory && choose_try_current(&chat->choice, h, buf_str(id), &e) < 0) {
        repl_report(&e);
        return;
    }
    buf_set(&chat->session.id, buf_str(id));
    chat->session.fresh = chat->session.make_current = false;
    repl_forget_system(r);
    if (chat->store.in_memory && repl_copy_to_memory(chat, &e) < 0) {
        repl_report(&e);
        return;
    }
    messages = show_session(r->out, h, buf_str(id), &show);
    start_report_bad(h, show.bad_lines, quiet);
    repl_say(r, "session %s, %zu message%s", buf_c(id), messages, messages == 1 ? "" : "s");
}

/* The argument is a number of the last list, or the name of a session. */
void repl_load(struct repl *r, struct str name)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    size_t n = read_list_count(name);
    bool listed = n > 0 && n <= r->listed.count;
    struct err e = ERR_INIT;

    if (listed)
        buf_add_c(&id, r->listed.at[n - 1]);
    if (name.n == 0)
        warnf("no session: try '/load ID', or '/load N' after a list");
    else if (!listed && session_resolve(r->chat->history, name, &id, &e) < 0)
        repl_report(&e);
    else
        load_by_id(r, &id);
    buf_release(&id);
}

/* Begins a new session with a system prompt, by default the one of the command line. */
void repl_new(struct repl *r, struct str system)
{
    struct chat_session *chat = r->chat;

    choose_session(&chat->session, (struct resume_request){.fresh = true}, &chat->choice, false,
                   true);
    chat->store.settled = false;
    buf_clear(&chat->store.memory);
    repl_forget_system(r);
    if (system.n > 0)
        repl_set_system(r, system);
    else if (chat->args->system)
        repl_set_system(r, str_of(chat->args->system));
    repl_say(r, "session %s", buf_c(&chat->session.id));
}

/* ---- the title ---- */

void repl_title(struct repl *r, struct str text)
{
    struct chat_session *chat = r->chat;
    struct buf title = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct str id = buf_str(&chat->session.id);
    int result;

    if (text.n == 0) {
        if (session_title(chat->history, id, &title, NULL, &e) < 0)
            repl_report(&e);
        else
            repl_say(r, "%s", title.len > 0 ? buf_c(&title) : "the session has no title");
        buf_release(&title);
        return;
    }
    if (chat->store.in_memory || (chat->session.fresh && !chat->store.settled)) {
        warnf("no title: %s",
              chat->store.in_memory ? "nothing is stored" : "the session has no message yet");
        return;
    }
    result = session_set_title(chat->history, id, str_eq_c(text, "-") ? STR("") : text, &e);
    if (result < 0)
        repl_report(&e);
    else if (str_eq_c(text, "-"))
        repl_say(r, "the session has no title now");
    else
        repl_say(r, "title '%.*s'", (int)text.n, text.p);
}

/* ---- what the session is ---- */

/* The column in which the values of /info begin. */
#define INFO_COLUMN 10

__attribute__((format(printf, 3, 4))) static void info_line(struct repl *r, const char *name,
                                                            const char *fmt, ...)
{
    struct buf line = BUF_INIT(BUF_LINE);
    va_list ap;

    buf_addf(&line, "%-*s", INFO_COLUMN, name);
    va_start(ap, fmt);
    buf_vaddf(&line, fmt, ap);
    va_end(ap);
    buf_add_byte(&line, '\n');
    out_text(r->out, buf_str(&line));
    out_text_end(r->out);
    buf_release(&line);
}

/* Prints how much of the model's context the next turn takes. */
static void info_context(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct context_estimate estimate;
    size_t window = chat_session_window(chat);
    struct err e = ERR_INIT;

    if (context_estimate(&estimate, &chat->choice.config, chat->history, buf_str(&chat->session.id),
                         &e) < 0)
        repl_report(&e);
    else if (window == 0)
        info_line(r, "context", "about %zu tokens in %zu messages; the limit is unknown",
                  estimate.tokens, estimate.messages);
    else
        info_line(r, "context", "about %zu tokens in %zu messages, %zu of %zu left",
                  estimate.tokens, estimate.messages,
                  window > estimate.tokens ? window - estimate.tokens : 0, window);
}

static void info_cost(struct repl *r, const struct stats *s)
{
    struct buf amount = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; s->prices && i < s->total_costs.count; i++) {
        const struct stats_cost *c = &s->total_costs.at[i];

        if (i == PRICES_UNKNOWN || c->answers == 0)
            continue;
        buf_clear(&amount);
        amount_add_text(&amount, stats_cost_sum(c));
        info_line(r, "cost", "%s %s", buf_c(&amount), prices_currency(s->prices, i));
    }
    buf_release(&amount);
}

/* Prints what the answers of the session have used, as hist-stats counts it. */
static void info_usage(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct prices prices = PRICES_INIT;
    struct filter filter = {0};
    struct stats stats;
    struct err e = ERR_INIT;

    filter_add(&filter.sessions, buf_str(&chat->session.id));
    stats_init(&stats);
    stats.prices = &prices;
    if (config_prices(&chat->choice.config, NULL, &prices, &e) < 0 ||
        stats_scan(&stats, chat->history, &filter, SIZE_MAX, NULL, &e) < 0) {
        repl_report(&e);
    } else {
        info_line(r, "used", "%" PRIu64 " input and %" PRIu64 " output tokens%s", stats.total.input,
                  stats.total.output,
                  stats.total.unknown > 0 ? ", without answers whose tokens are unknown" : "");
        info_cost(r, &stats);
    }
    stats_release(&stats);
    prices_release(&prices);
    filter_release(&filter);
}

void repl_info(struct repl *r, struct str rest)
{
    struct chat_session *chat = r->chat;
    const struct server *server = &chat->server;
    struct buf title = BUF_INIT(BUF_LINE);
    struct thread t = {0};
    struct err e = ERR_INIT;

    (void)rest;
    info_line(r, "session", "%s", buf_c(&chat->session.id));
    if (!chat->store.in_memory &&
        session_title(chat->history, buf_str(&chat->session.id), &title, NULL, &e) < 0)
        repl_report(&e);
    if (title.len > 0)
        info_line(r, "title", "%s", buf_c(&title));
    buf_release(&title);
    info_line(r, "history", "%s%s", chat->history->path ? chat->history->path : "none",
              chat->store.in_memory ? " (nothing is stored)" : "");
    info_line(r, "provider", "%s%s%s", server->provider->name, server->base_url ? ", " : "",
              server->base_url ? server->base_url : "");
    info_line(r, "model", "%s", server->model ? server->model : "not known yet");
    if (repl_load_thread(r, &t, &e) < 0) {
        repl_report(&e);
        return;
    }
    info_line(r, "messages", "%zu", t.count);
    thread_release(&t);
    if (chat->store.in_memory)
        return;
    info_context(r);
    info_usage(r);
}

/* ---- the last exchange ---- */

/* How many lines of a prompt and of an answer are shown. */
#define LAST_LINES 3

/* Adds how long ago a time was, in one unit. */
static void add_age(struct buf *out, int64_t then, int64_t now)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}};
    int64_t seconds = now > then ? (now - then) / TIME_SECOND : 0;

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        int64_t n = seconds / units[i].seconds;

        if (n == 0)
            continue;
        buf_addf(out, "%" PRId64 " %s%s ago", n, units[i].name, n == 1 ? "" : "s");
        return;
    }
    buf_add_c(out, "just now");
}

/* Prints the beginning of a message, dim. */
static void print_short(struct repl *r, const char *who, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE), line = BUF_INIT(SIZE_MAX), shown = BUF_INIT(SIZE_MAX);
    size_t room = (r->out->columns ? r->out->columns : 80) * LAST_LINES;

    buf_addf(&line, "%s ", who);
    vis_add_line(&line, message_content(m, &scratch), true);
    wide_add_fitted(&shown, buf_str(&line), room);
    repl_print_dim(r, buf_str(&shown));
    buf_release(&scratch);
    buf_release(&line);
    buf_release(&shown);
}

/* Prints a prompt and its answer, or the one of them that exists. */
static void print_exchange(struct repl *r, const struct message *prompt,
                           const struct message *answer)
{
    const struct message *last = answer ? answer : prompt;
    struct buf age = BUF_INIT(BUF_SMALL);
    int64_t then;

    if (last && time_parse_iso(last->timestamp, &then))
        add_age(&age, then, time_now());
    repl_say(r, "the session goes on; its last exchange%s%s:", age.len > 0 ? ", " : "",
             buf_c(&age));
    buf_release(&age);
    if (prompt)
        print_short(r, ">", prompt);
    if (answer)
        print_short(r, "<", answer);
}

void repl_show_last(struct repl *r)
{
    struct chat_session *chat = r->chat;
    const struct message *prompt = NULL, *answer = NULL;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct thread t;

    if (chat->session.fresh || chat->history->unreadable || chat->args->common.quiet)
        return;
    if (thread_find(&t, chat->history, buf_str(&chat->session.id), false, &e) < 0) {
        repl_report(&e);
        return;
    }
    for (size_t i = t.count; i > 0 && !prompt; i--) {
        const struct message *m = &t.at[i - 1];

        if (m->role == ROLE_USER)
            prompt = m;
        else if (m->role == ROLE_ASSISTANT && !answer && message_content(m, &scratch).n > 0)
            answer = m;
    }
    if (prompt || answer)
        print_exchange(r, prompt, answer);
    buf_release(&scratch);
    thread_release(&t);
}

/* ---- /browse ---- */

/* What hist-browse prints: `{"action":"session"|"message","history":...,"session_id":...,
 * "content":...}`. */
struct chosen {
    struct buf line;
    struct buf history, session, content;
    bool message; /* the content is for the draft */
};

#define CHOSEN_INIT                                                                                \
    {                                                                                              \
        .line = BUF_INIT(SIZE_MAX), .history = BUF_INIT(SIZE_MAX), .session = BUF_INIT(SIZE_MAX),  \
        .content = BUF_INIT(SIZE_MAX)                                                              \
    }

static bool chosen_parse(struct chosen *c)
{
    static const char *const keys[] = {"action", "history", "session_id", "content"};
    struct str values[4];

    json_pick(str_trim(buf_str(&c->line)), keys, values, 4);
    c->message = str_eq_c(values[0], "\"message\"");
    json_decode(values[3], &c->content);
    return json_decode(values[1], &c->history) && json_decode(values[2], &c->session);
}

/* Runs hist-browse, which gets the terminal, and reads what it prints. Returns its exit status, or
 * -1 with *e set. */
static int run_browser(const struct repl *r, struct str query, struct buf *line, struct err *e)
{
    const struct history *h = r->chat->history;
    char *program = path_beside(r->chat->args->self, PROGRAM_PREFIX "hist-browse");
    char *text = mem_copy(query.p ? query.p : "", query.n);
    char print[] = "--print", form[] = "chat", history[] = "--history", end[] = "--";
    char *argv[8] = {program, print, form};
    size_t count = 3;
    FILE *file = tmpfile();
    int status = -1;

    if (h->kind == HISTORY_EXPLICIT) {
        argv[count++] = history;
        argv[count++] = h->path;
    }
    argv[count++] = end;
    if (query.n > 0)
        argv[count++] = text;
    if (!file)
        err_sys(e, errno, "cannot make a temporary file");
    else
        status = process_run(argv, fileno(file), e);
    if (status == 0 &&
        (lseek(fileno(file), 0, SEEK_SET) < 0 || file_read_all(fileno(file), line) < 0))
        status = err_sys(e, errno, "cannot read what " PROGRAM_PREFIX "hist-browse has printed");
    if (file)
        fclose(file);
    free(program);
    free(text);
    return status;
}

/* Returns true if it is the history of this conversation. */
static bool is_history_here(const struct repl *r, struct str path)
{
    char *real = r->chat->history->path ? path_real(r->chat->history->path, NULL) : NULL;
    bool is = real && str_eq_c(path, real);

    free(real);
    return is;
}

/* A session of another history is continued as a copy, if the user wants that. */
static void continue_elsewhere(struct repl *r, const struct chosen *c)
{
    struct chat_session *chat = r->chat;
    struct buf copy = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct choice from = {.common = {.history = buf_c(&c->history), .quiet = true}};
    struct history *home = choose_open(&from, &(struct choose_want){.reach = CHOOSE_ONE});
    int copied = 0;

    if (chat->store.in_memory) {
        warnf("session '%s' is in '%s', and nothing is stored here", buf_c(&c->session),
              buf_c(&c->history));
    } else {
        line_lend(r->line, true);
        copied = choose_offer_copy(chat->history, home, buf_str(&c->session), &copy,
                                   chat->args->common.quiet, &e);
        line_lend(r->line, false);
    }
    if (copied < 0)
        repl_report(&e);
    else if (copied > 0)
        load_by_id(r, &copy);
    choose_release(&from);
    buf_release(&copy);
}

void repl_browse(struct repl *r, struct str query)
{
    struct chosen c = CHOSEN_INIT;
    struct err e = ERR_INIT;
    int status;

    out_flush(r->out);
    line_lend(r->line, true);
    status = run_browser(r, query, &c.line, &e);
    line_lend(r->line, false);
    out_measure(r->out);
    if (status < 0)
        repl_report(&e);
    else if (status == 127)
        warnf("cannot run " PROGRAM_PREFIX "hist-browse: it was not found");
    else if (status == 0 && !chosen_parse(&c))
        warnf(PROGRAM_PREFIX "hist-browse has printed no choice");
    else if (status == 0 && c.message)
        line_begin_with(r->line, buf_str(&c.content));
    else if (status == 0 && is_history_here(r, buf_str(&c.history)))
        load_by_id(r, &c.session);
    else if (status == 0)
        continue_elsewhere(r, &c);
    buf_release(&c.line);
    buf_release(&c.history);
    buf_release(&c.session);
    buf_release(&c.content);
}
