#include "chathist/cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* Milliseconds until the spinner appears, until work is shown, and until the spinner has seconds. */
#define SHOWN_AFTER 400
#define WORK_SHOWN_AFTER 1000
#define SECONDS_AFTER 3000
/* Milliseconds between two changes. */
#define STEP 100
/* The width of a terminal that does not report it. */
#define COLUMNS 79
/* The time that is left is shown in minutes from this number of seconds on. */
#define MINUTES_FROM 120

static struct {
    int64_t since; /* time_ticks of the beginning; 0: nothing goes on */
    int64_t drawn; /* time_ticks of the last change */
    unsigned turns;
    bool visible;
    struct task task; /* the last one that was reported */
    int64_t began;    /* time_ticks of its beginning */
    uint64_t from;    /* the amount done then */
    const char *parts_name;
    uint64_t parts_all, parts_done; /* progress_parts; done: those before this task */
} shown;

bool progress_possible(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0 &&
           tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static void write_progress(struct str text)
{
    /* An error of stderr cannot be reported. */
    if (file_write_all(STDERR_FILENO, text.p, text.n) < 0)
        errno = 0;
}

/* Returns whether the line is to be drawn now. */
static bool time_to_draw(int64_t now, int64_t delay)
{
    if (shown.since == 0)
        shown.since = now;
    return now - shown.since >= delay && now - shown.drawn >= STEP;
}

/* The pager may have taken over standard error. */
static void draw(int64_t now, struct str text)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    struct winsize size = {0};

    shown.drawn = now;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    buf_add_byte(&line, '\r');
    buf_add_str(&line, utf8_fit(text, size.ws_col > 1 ? size.ws_col - 1U : COLUMNS));
    buf_add_c(&line, "\033[K");
    write_progress(buf_str(&line));
    buf_release(&line);
    shown.visible = true;
}

/* ---- waiting ---- */

/* `name` is NULL if it has none. */
static void show_spinner(const char *name)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t now = time_ticks();

    if (shown.task.name)
        progress_end();
    if (!time_to_draw(now, SHOWN_AFTER))
        return;
    buf_addf(&text, "%c", "|/-\\"[shown.turns++ % 4]);
    if (name)
        buf_addf(&text, " %s", name);
    if (name || now - shown.since >= SECONDS_AFTER)
        buf_addf(&text, " %" PRId64 " s", (now - shown.since) / 1000);
    draw(now, buf_str(&text));
    buf_release(&text);
}

void progress_turn(void)
{
    show_spinner(NULL);
}

void progress_tool(const char *name, int64_t began)
{
    shown.since = began;
    show_spinner(name);
}

/* ---- work ---- */

static void add_amount_of(struct buf *line, uint64_t n, const char *unit)
{
    buf_add_scaled(line, n, unit ? "" : " ");
    buf_addf(line, "%s%s", unit ? " " : n < 1000 ? "bytes" : "B", unit ? unit : "");
}

void progress_add_text(struct buf *line, const struct task *t, uint64_t from, int64_t ms)
{
    uint64_t done = t->done > from ? t->done - from : 0, rate, left;

    buf_add_c(line, t->name);
    if (t->all == 0 || t->done > t->all) {
        buf_addf(line, " %" PRId64 " s", ms / 1000);
        return;
    }
    buf_addf(line, " %d %% of ", (int)(100.0 * (double)t->done / (double)t->all));
    add_amount_of(line, t->all, t->unit);
    rate = ms > 0 ? (uint64_t)((double)done * 1000 / (double)ms) : 0;
    if (rate == 0)
        return;
    buf_add_c(line, ", ");
    add_amount_of(line, rate, t->unit);
    left = (t->all - t->done + rate - 1) / rate;
    buf_addf(line, "/s, %" PRIu64 "%s left", left < MINUTES_FROM ? left : left / 60,
             left < MINUTES_FROM ? " s" : " min");
}

static bool is_part_of_work(const struct task *t)
{
    return shown.parts_name && strcmp(t->name, shown.parts_name) == 0;
}

void progress_parts(const char *name, uint64_t all)
{
    shown.parts_name = name;
    shown.parts_all = all;
    shown.parts_done = 0;
}

static void show_work(const struct task *t, int64_t delay)
{
    int64_t now = time_ticks();
    struct buf text = BUF_INIT(BUF_SMALL);
    struct task whole;

    if (!t) {
        progress_erase();
        return;
    }
    if (is_part_of_work(t) && shown.task.name && is_part_of_work(&shown.task) &&
        t->done < shown.task.done) {
        shown.parts_done += shown.task.all;
    } else if (!shown.task.name || strcmp(t->name, shown.task.name) != 0 ||
               t->done < shown.task.done) {
        shown.began = now;
        shown.from = t->done;
    }
    shown.task = whole = *t;
    if (is_part_of_work(t)) {
        whole.done += shown.parts_done;
        whole.all = shown.parts_all;
    }
    if (!time_to_draw(now, delay))
        return;
    progress_add_text(&text, &whole, shown.from, now - shown.began);
    draw(now, buf_str(&text));
    buf_release(&text);
}

void progress_work(const struct task *t)
{
    show_work(t, WORK_SHOWN_AFTER);
}

void progress_wait(const struct task *t)
{
    shown.drawn = 0;
    show_work(t, 0);
}

/* ---- the end ---- */

void progress_erase(void)
{
    if (shown.visible)
        write_progress(STR("\r\033[K"));
    shown.visible = false;
}

void progress_end(void)
{
    progress_erase();
    shown.since = 0;
    shown.task = (struct task){0};
}
