#include "chathist/browse/browse.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/terminal/markdown.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/query_offer.h"
#include "chathist/cli/signals.h"
#include "browse/actions.h"
#include "browse/model.h"
#include "browse/reader.h"
#include "browse/state.h"
#include "browse/view.h"
#include "browse/list.h"

/* How often the files are checked for changes, in milliseconds. */
#define WATCH_MS 250
/* A search is repeated for a growing file at most this often, in milliseconds. */
#define AGAIN_MS 1000
/* Two clicks on one row within this many milliseconds are a double click. */
#define TWICE_MS 400
/* After this many milliseconds a message says that the end waits for programs. */
#define SILENCE_MS 500

struct loop {
    const struct browse_setup *setup;
    struct browse_outcome *outcome;
    struct browse b;
    struct browse_view *view;
    struct browse_reader *reader;
    struct browse_jobs jobs;
    struct buf name; /* of the history, the key in the state file */
    /* What Tab has completed in the box, to what it can become, and which of these it is now. */
    struct buf completed;
    struct words offers;
    size_t offer; /* SIZE_MAX: what they have in common */
    int64_t watched, searched, clicked;
    size_t click_row;
    bool spoilt, over;
    bool hung_up; /* the terminal is gone: poll always reports it, but no key comes */
};

/* ---- how it ends ---- */

/* Appends the text of all sessions of the subject, or with `lines` their stored lines. Returns 0,
 * or -1 with *e set. */
static int read_subject(const struct browse *b, bool lines, struct buf *out, struct err *e)
{
    size_t history;
    struct str id;
    int result = 0;

    for (size_t i = 0; result == 0 && browse_subject(b, i, &history, &id); i++) {
        if (i > 0 && !lines)
            buf_add_byte(out, '\n');
        result = browse_act_read_session(b, history, id, SIZE_MAX, lines, out, e);
    }
    return result;
}

/* Puts the marked sessions, and what they hold, into the outcome. */
static void set_marked_outcome(struct loop *l)
{
    struct browse_outcome *o = l->outcome;
    size_t history;
    struct str id;

    if (!l->b.subject.marked)
        return;
    o->marked = mem_zalloc((l->b.marks.marked + 1) * sizeof *o->marked);
    for (; browse_subject(&l->b, o->marked_count, &history, &id); o->marked_count++) {
        struct browse_outcome_session *one = &o->marked[o->marked_count];

        one->history = history;
        buf_init(&one->id, BUF_LINE);
        buf_add_str(&one->id, id);
    }
    (void)read_subject(&l->b, l->setup->lines, &o->text, &o->failed);
}

/* Returns whether the sessions that are to be deleted have other messages than the question
 * counted. */
static bool has_news(struct loop *l)
{
    l->b.wants.sessions = true;
    (void)browse_read(l->reader, &l->b);
    return browse_deleted_messages(&l->b, NULL) != l->b.promised;
}

static void end_loop(struct loop *l, enum browse_end how)
{
    struct browse_outcome *o = l->outcome;
    const struct message *m = browse_message(&l->b);
    struct str id;

    if (l->b.deletes && has_news(l)) {
        browse_ask(&l->b, BROWSE_DELETE);
        return;
    }
    l->over = true;
    o->end = how;
    if (how == BROWSE_CHOSEN || how == BROWSE_CHOSEN_TO_PROMPT)
        set_marked_outcome(l);
    if (l->b.deletes)
        browse_act_run(&l->jobs, &l->b, BROWSE_DELETE);
    if (how == BROWSE_CANCELLED || o->marked_count > 0)
        return;
    o->nothing = !browse_chosen(&l->b, &o->history, &id);
    if (o->nothing)
        return;
    buf_add_str(&o->session, id);
    if (m)
        buf_add_str(&o->line, m->line);
}

/* ---- what keys leave to us ---- */

static void say_err(struct loop *l, struct err *e)
{
    browse_say(&l->b, err_text(e));
    err_release(e);
}

/* Copies what BROWSE_COPY or one of its variants says. */
static void copy_text_out(struct loop *l, enum browse_command command)
{
    const struct message *m = browse_message(&l->b);
    struct buf scratch = BUF_INIT(BUF_LINE), text = BUF_INIT(SIZE_MAX);
    struct err e = ERR_INIT;
    size_t history;
    struct str id;
    int result = 0;

    if (command == BROWSE_COPY_ID)
        for (size_t i = 0; browse_subject(&l->b, i, &history, &id); i++)
            buf_addf(&text, "%s%.*s", i > 0 ? "\n" : "", (int)id.n, id.p);
    else if (command == BROWSE_COPY_SESSION || (command == BROWSE_COPY && l->b.subject.marked))
        result = read_subject(&l->b, false, &text, &e);
    else if (!m)
        result = err_set(&e, ERR_ABSENT, "there is no message to copy");
    else if (command == BROWSE_COPY)
        buf_add_str(&text, message_content(m, &scratch));
    else if (!code_block_first(message_content(m, &scratch), &text))
        result = err_set(&e, ERR_ABSENT, "nothing to copy: the message has no code block");
    if (result == 0 && text.len == 0)
        result = err_set(&e, ERR_ABSENT, "nothing to copy: the message has no text");
    if (result < 0)
        say_err(l, &e);
    else
        clipboard_start(&l->jobs.clipboard, buf_str(&text), browse_view_fd(l->view));
    buf_release(&scratch);
    buf_release(&text);
}

static void open_on_terminal(struct loop *l, enum browse_command command)
{
    struct err e = ERR_INIT;

    browse_view_leave(l->view);
    line_signals_edit(false);
    if ((command == BROWSE_CHAT ? browse_act_chat(&l->b, &e)
                                : browse_act_open(&l->b, command, &e)) < 0)
        say_err(l, &e);
    line_signals_edit(true);
    browse_view_return(l->view);
    l->spoilt = true;
}

static void suspend(struct loop *l)
{
    browse_view_leave(l->view);
    line_signals_stop();
    browse_view_return(l->view);
    l->spoilt = true;
}

static void perform(struct loop *l, enum browse_command command)
{
    switch (command) {
    case BROWSE_NOTHING:
        break;
    case BROWSE_COPY:
    case BROWSE_COPY_CODE:
    case BROWSE_COPY_ID:
    case BROWSE_COPY_SESSION:
        copy_text_out(l, command);
        break;
    case BROWSE_CHAT:
    case BROWSE_PAGER:
    case BROWSE_EDITOR:
        open_on_terminal(l, command);
        break;
    case BROWSE_EXPORT:
        if (browse_act_complete_name(&l->b))
            browse_ask(&l->b, BROWSE_OVERWRITE);
        else
            browse_act_run(&l->jobs, &l->b, BROWSE_EXPORT);
        break;
    case BROWSE_OVERWRITE:
        browse_act_run(&l->jobs, &l->b, BROWSE_EXPORT);
        break;
    case BROWSE_FORK:
        browse_act_run(&l->jobs, &l->b, command);
        break;
    case BROWSE_REDRAW:
        browse_view_spoilt();
        break;
    case BROWSE_SUSPEND:
        suspend(l);
        break;
    case BROWSE_ENTER:
        end_loop(l, BROWSE_CHOSEN);
        break;
    case BROWSE_LOAD:
        end_loop(l, BROWSE_CHOSEN_TO_LOAD);
        break;
    case BROWSE_PROMPT:
        end_loop(l, BROWSE_CHOSEN_TO_PROMPT);
        break;
    default:
        end_loop(l, BROWSE_CANCELLED);
        break;
    }
}

/* ---- input ---- */

/* Finds what the text can be completed to, and sets *common to what all of that begins with.
 * Returns false if there is nothing. A word that is the name of a field stays. */
static bool find_offers(struct loop *l, struct str text, struct str *common)
{
    words_release(&l->offers);
    query_offer(&l->offers, text, l->setup->histories, l->setup->count);
    l->offer = SIZE_MAX;
    for (size_t i = 0; i < l->offers.count; i++) {
        struct str one = str_of(l->offers.at[i]);

        *common = i == 0 ? one : *common;
        /* It ends between two code points. */
        while (!str_starts(one, *common) || ((unsigned char)common->p[common->n] & 0xc0) == 0x80)
            common->n--;
    }
    return l->offers.count > 1 || (l->offers.count == 1 && common->n > text.n &&
                                   !str_eq_c(str_skip(*common, text.n), ":"));
}

/* Completes the field at the end of the box as far as all values have it, and says which there are.
 * If the text is the one that this has made, the next value takes the place of the last one, or
 * with `back` the one before it. Returns false if there is nothing to complete; then the key moves
 * on. */
static bool complete_field(struct loop *l, bool back, int64_t now)
{
    const struct browse_edit *box = &l->b.query;
    struct str text = buf_str(&box->text), becomes = text;
    size_t count = l->offers.count, last = text.n;
    struct buf said = BUF_INIT(SIZE_MAX);

    while (last > 0 && text.p[last - 1] != ' ')
        last--;
    if (count > 1 && box->at == text.n && str_eq(text, buf_str(&l->completed))) {
        size_t before = l->offer < count ? l->offer + count - 1 : count - 1;

        l->offer = (back ? before : l->offer + 1) % count;
        becomes = str_of(l->offers.at[l->offer]);
    } else if (back || box->at < text.n || text.n < last + 2 || !find_offers(l, text, &becomes)) {
        return false;
    }
    browse_complete(&l->b, becomes, now);
    buf_set(&l->completed, buf_str(&box->text));
    for (size_t i = 0; i < l->offers.count && l->offers.count > 1; i++)
        buf_addf(&said, "%s%s", i > 0 ? "  " : "", l->offers.at[i] + last);
    browse_say(&l->b, buf_c(&said));
    buf_release(&said);
    return true;
}

/* Applies the keys, clicks and pastes that have arrived. */
static void apply_input(struct loop *l)
{
    struct browse_input in;

    while (!l->over && browse_view_input(l->view, &in)) {
        int64_t now = time_ticks();
        enum browse_command command = BROWSE_NOTHING;

        bool tab =
            in.kind == BROWSE_KEY && (in.key == BROWSE_KEY_TAB || in.key == BROWSE_KEY_BACKTAB);

        if (tab && l->b.mode == BROWSE_NORMAL && l->b.focus == BROWSE_BOX &&
            complete_field(l, in.key == BROWSE_KEY_BACKTAB, now)) {
            continue;
        } else if (in.kind == BROWSE_KEY) {
            command = browse_press(&l->b, in.key, now);
        } else if (in.kind == BROWSE_PASTED) {
            browse_paste(&l->b, in.key, now);
        } else if (in.kind == BROWSE_WHEEL) {
            browse_wheel(&l->b, in.row, in.column, in.lines);
        } else {
            bool twice = in.row == l->click_row && now - l->clicked < TWICE_MS;

            command = browse_click(&l->b, in.row, in.column, twice, now);
            l->click_row = in.row;
            l->clicked = twice ? 0 : now;
        }
        perform(l, command);
    }
}

/* Applies all input that has arrived, and reads the data that commands wait for. */
static void apply_and_read(struct loop *l)
{
    do {
        enum browse_command command;

        if (browse_read(l->reader, &l->b) && l->b.searching && l->searched == 0)
            l->searched = browse_asks_meaning(&l->b) ? 0 : time_ticks();
        if (l->b.wants.like)
            browse_act_run(&l->jobs, &l->b, BROWSE_LIKE);
        while (!l->over && (command = browse_go_on(&l->b)) != BROWSE_NOTHING)
            perform(l, command);
        apply_input(l);
    } while (!l->over && (l->b.wants.sessions || l->b.wants.messages || l->b.wants.search));
}

static void read_signals(struct loop *l)
{
    int signo;

    while ((signo = line_signals_next()) != 0) {
        if (signo == SIGTSTP)
            suspend(l);
        else if (signo == SIGWINCH || signo == SIGCONT)
            l->spoilt = true;
        else if (!l->over) {
            l->outcome->signal = signo;
            l->over = true;
            l->outcome->end = BROWSE_CANCELLED;
        }
    }
    if (line_signals_fatal() && !l->over) {
        l->outcome->signal = line_signals_fatal();
        l->over = true;
    }
}

/* Has the files looked at now and then, and the search repeated after a change. */
static void watch(struct loop *l, int64_t now)
{
    struct browse *b = &l->b;

    if (now - l->watched >= WATCH_MS || l->jobs.changed) {
        b->wants.sessions = true;
        l->watched = now;
        l->jobs.changed = false;
    }
    if (l->searched != 0 && now - l->searched >= AGAIN_MS && !b->repeating) {
        l->searched = 0;
        if (b->searching && b->search_due == 0 && !b->back.list)
            browse_search(b, true);
    }
}

/* ---- the loop ---- */

/* Waits for a key, a signal or a program, or until the time to look at the files. Meanwhile it
 * searches and counts hits in slices, until there is something new to draw. */
static void wait_and_work(struct loop *l)
{
    struct browse *b = &l->b;
    struct pollfd fds[3] = {{.fd = browse_view_fd(l->view), .events = POLLIN},
                            {.fd = line_signals_fd(), .events = POLLIN},
                            {.fd = clipboard_fd(&l->jobs.clipboard), .events = POLLOUT}};
    int64_t until = l->watched + WATCH_MS;
    bool news = false, busy = true;
    int ready = 0;

    if (b->search_due != 0 && b->search_due < until)
        until = b->search_due;
    while (ready == 0 && busy && !news) {
        int64_t left = until - time_ticks();
        bool counts = browse_pane_is_counting(&b->pane);

        busy = left > 0 && (counts || browse_is_busy(l->reader, b));
        if (browse_jobs_busy(&l->jobs) && left > BROWSE_JOBS_MS)
            left = BROWSE_JOBS_MS;
        ready = poll(fds, 3, busy || left < 0 ? 0 : (int)left);
        if (ready == 0 && busy && counts) {
            browse_pane_count(&b->pane);
            news = !browse_pane_is_counting(&b->pane);
        }
        if (ready == 0 && busy && browse_is_busy(l->reader, b))
            news = browse_search_on(l->reader, b) || news;
        news = news || browse_jobs_busy(&l->jobs);
    }
    if (ready <= 0)
        return;
    if (fds[1].revents)
        read_signals(l);
    l->hung_up = fds[0].revents & (POLLHUP | POLLERR | POLLNVAL);
}

static void measure(struct loop *l)
{
    size_t rows, columns;

    browse_view_measure(l->view, &rows, &columns);
    browse_resize(&l->b, rows, columns);
    l->spoilt = false;
}

static void go(struct loop *l)
{
    measure(l);
    /* It says that the sessions are being read. */
    browse_view_draw(l->view, &l->b);
    while (!l->over) {
        int64_t now = time_ticks();

        if (l->spoilt)
            measure(l);
        browse_tick(&l->b, now);
        watch(l, now);
        apply_and_read(l);
        if (l->over)
            return;
        browse_view_draw(l->view, &l->b);
        wait_and_work(l);
        if (l->hung_up && !l->over) {
            l->over = true;
            l->outcome->signal = SIGHUP;
        }
        browse_jobs_step(&l->jobs, &l->b, NULL);
    }
}

/* Sets up the state before the first screen. */
static void start_loop(struct loop *l)
{
    const struct browse_setup *s = l->setup;
    char *real = path_real(s->histories[0].path, NULL);
    struct err e = ERR_INIT;

    buf_init(&l->name, BUF_SMALL);
    buf_init(&l->completed, SIZE_MAX);
    buf_add_c(&l->name, real ? real : s->histories[0].path);
    free(real);
    browse_init(&l->b, s->count);
    l->b.places = s->histories;
    l->b.choosing = s->choosing;
    l->b.for_chat = s->for_chat;
    l->b.self = s->self;
    if (s->session.p)
        browse_open(&l->b, s->session_history, s->session);
    else if (s->query.p)
        browse_edit_set(&l->b.query, s->query);
    else if (s->state_path && browse_state_load(&l->b, s->state_path, buf_str(&l->name), &e) < 0)
        say_err(l, &e);
    if (l->b.query.text.len > 0) {
        l->b.searching = true;
        browse_search(&l->b, false);
    }
}

/* Returns whether the user has sent a signal to end the program. */
static bool is_in_a_hurry(struct loop *l)
{
    bool hurry = l->outcome->signal != 0;
    int signo;

    while ((signo = line_signals_next()) != 0)
        hurry = hurry || signo == SIGINT || signo == line_signals_fatal();
    if (!l->outcome->signal)
        l->outcome->signal = line_signals_fatal();
    return hurry;
}

/* Waits for the programs that were requested, until a signal comes, and records what failed. The
 * terminal has already been given back. */
static void end_jobs(struct loop *l)
{
    struct buf failures = BUF_INIT(BUF_LINE);
    int64_t begin = time_ticks();
    bool told = l->setup->tell_wait == NULL;

    /* A search is not waited for. */
    buf_clear(&l->b.searched);
    while (browse_jobs_busy(&l->jobs) && !is_in_a_hurry(l)) {
        browse_jobs_step(&l->jobs, &l->b, &failures);
        if (!told && browse_jobs_busy(&l->jobs) && time_ticks() - begin >= SILENCE_MS) {
            l->setup->tell_wait();
            told = true;
        }
        file_wait(line_signals_fd(), BROWSE_JOBS_MS);
    }
    browse_jobs_stop(&l->jobs, &failures);
    if (failures.len > 0)
        err_set(&l->outcome->failed, ERR_FAILURE, "%s", buf_c(&failures));
    buf_release(&failures);
}

int browse_loop(const struct browse_setup *setup, struct browse_outcome *outcome, struct err *e)
{
    struct loop l = {.setup = setup, .outcome = outcome};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int result = -1;

    *outcome = (struct browse_outcome){.end = BROWSE_CANCELLED};
    buf_init(&outcome->session, BUF_LINE);
    buf_init(&outcome->line, BUF_LINE);
    buf_init(&outcome->text, SIZE_MAX);
    start_loop(&l);
    /* A program that receives a text may end early. */
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &before);
    /* This comes before curses, which keeps handlers that are installed already. */
    if (line_signals_begin(e) == 0) {
        line_signals_edit(true);
        l.view = browse_view_open(setup->color, setup->mouse, e);
        if (l.view) {
            l.reader = browse_reader_new(setup->histories, setup->count);
            go(&l);
            result = 0;
            browse_view_close(l.view);
            browse_reader_free(l.reader);
        }
        line_signals_edit(false);
        end_jobs(&l);
        line_signals_end();
    }
    if (result == 0 && setup->state_path)
        (void)browse_state_save(&l.b, setup->state_path, buf_str(&l.name), &outcome->forgot);
    outcome->bad_lines = l.b.sessions.lists[0].bad_lines;
    outcome->undeleted = l.b.deletes ? 0 : l.b.marks.deleted;
    browse_release(&l.b);
    buf_release(&l.name);
    buf_release(&l.completed);
    words_release(&l.offers);
    sigaction(SIGPIPE, &before, NULL);
    return result;
}

void browse_outcome_release(struct browse_outcome *o)
{
    for (size_t i = 0; i < o->marked_count; i++)
        buf_release(&o->marked[i].id);
    free(o->marked);
    buf_release(&o->text);
    buf_release(&o->session);
    buf_release(&o->line);
    err_release(&o->forgot);
    err_release(&o->failed);
}
