#include "cli/calendar.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "chathist/base/mem.h"

#define WEEK 7
/* A year, and the week that it began in. */
#define WEEKS 53
#define WEEKS_MIN 4
/* `Mon `. */
#define LABEL 4
#define SECONDS_A_DAY 86400

static const char *const shades[] = {"\xc2\xb7", "\xe2\x96\x91", "\xe2\x96\x92", "\xe2\x96\x93",
                                     "\xe2\x96\x88"};
#define DARKEST ((size_t)4)

struct calendar {
    struct out *out;
    int64_t first, last; /* days; the first is a Monday */
    size_t weeks, width; /* columns of a week */
    uint64_t *messages;  /* of each day */
    uint64_t most;
};

/* 0 for a Monday. 1970-01-01 was a Thursday. */
static int64_t weekday(int64_t day)
{
    return ((day + 3) % WEEK + WEEK) % WEEK;
}

static void take_days(struct calendar *c, const struct stats_table *days)
{
    for (size_t i = 0; i < days->count; i++) {
        const struct stats_row *row = &days->at[i];

        if (row->day < c->first || row->day > c->last)
            continue;
        c->messages[row->day - c->first] = row->count.messages;
        if (row->count.messages > c->most)
            c->most = row->count.messages;
    }
}

/* Nothing, or one of four parts of the most. */
static size_t shade_of(const struct calendar *c, uint64_t messages)
{
    size_t part;

    if (messages == 0)
        return 0;
    part = (size_t)(((double)messages * (double)DARKEST - 1) / (double)c->most) + 1;
    return part < DARKEST ? part : DARKEST;
}

/* A month's name above the week that its first day is in, where there is room. */
static void print_months(const struct calendar *c)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct buf line = BUF_INIT(BUF_SMALL);

    for (size_t week = 0; week < c->weeks; week++) {
        time_t sunday = (time_t)((c->first + (int64_t)week * WEEK + WEEK - 1) * SECONDS_A_DAY);
        size_t at = LABEL + week * c->width;
        struct tm tm;

        if (!gmtime_r(&sunday, &tm) || tm.tm_mday > WEEK || (line.len > 0 && line.len >= at) ||
            at + 3 > LABEL + c->weeks * c->width)
            continue;
        while (line.len < at)
            buf_add_byte(&line, ' ');
        buf_add(&line, &names[(size_t)tm.tm_mon * 3], 3);
    }
    buf_add_byte(&line, '\n');
    out_style(c->out, STYLE_DIM);
    out_raw(c->out, buf_str(&line));
    out_style(c->out, STYLE_NONE);
    buf_release(&line);
}

static void print_day(const struct calendar *c, int64_t day)
{
    size_t shade = shade_of(c, c->messages[day - c->first]);

    out_style(c->out, shade ? STYLE_PLOT : STYLE_DIM);
    out_raw(c->out, str_of(shades[shade]));
    /* Squares rather than upright bars, where there is room. */
    if (c->width > 1)
        out_raw(c->out, str_of(shade ? shades[shade] : " "));
    out_style(c->out, STYLE_NONE);
}

static void print_row(const struct calendar *c, int64_t of_week)
{
    static const char *const labels[WEEK] = {"Mon ", "    ", "Wed ", "    ",
                                             "Fri ", "    ", "    "};

    out_style(c->out, STYLE_DIM);
    out_raw(c->out, str_of(labels[of_week]));
    out_style(c->out, STYLE_NONE);
    for (size_t week = 0; week < c->weeks; week++) {
        int64_t day = c->first + (int64_t)week * WEEK + of_week;

        if (day <= c->last)
            print_day(c, day);
    }
    out_byte(c->out, '\n');
}

void calendar_print(struct out *o, const struct stats_table *days, int64_t last)
{
    size_t room = o->columns > LABEL ? o->columns - LABEL : 0;
    struct calendar c = {.out = o, .last = last, .weeks = WEEKS, .width = 2};

    if (room < WEEKS * c.width)
        c.width = 1;
    if (c.weeks > room)
        c.weeks = room;
    if (c.weeks < WEEKS_MIN)
        return;
    c.first = last - weekday(last) - (int64_t)(c.weeks - 1) * WEEK;
    c.messages = mem_zalloc(c.weeks * WEEK * sizeof *c.messages);
    take_days(&c, days);
    if (c.most > 0) {
        print_months(&c);
        for (int64_t of_week = 0; of_week < WEEK; of_week++)
            print_row(&c, of_week);
        out_byte(o, '\n');
    }
    free(c.messages);
}
