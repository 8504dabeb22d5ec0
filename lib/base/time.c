#include "chathist/base/time.h"

#include <time.h>

#define SECONDS_A_DAY 86400

int64_t time_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * TIME_SECOND + t.tv_nsec / 1000;
}

int64_t time_ticks(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Years are counted from 1 March, so that the leap day is the last day of a year, and the lengths
 * of the months follow (153 m + 2) / 5. There are 146097 days in 400 years, and 719468 days from
 * 0000-03-01 to 1970-01-01. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t cycle = y / 400; /* years are positive here */
    int64_t of_cycle = y % 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return cycle * 146097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719468;
}

/* Returns the whole seconds of a time, rounded down, for times before 1970. */
static time_t whole_seconds(int64_t us)
{
    return (time_t)(us / TIME_SECOND - (us % TIME_SECOND < 0));
}

/* Writes a number of at most six digits, with leading zeros, and a character after it. Returns the
 * place after it. printf would take most of the time of a Markdown export. */
static char *put_number(char *p, int number, int digits, char after)
{
    p[digits] = after;
    for (int i = digits; i-- > 0; number /= 10)
        p[i] = (char)('0' + number % 10);
    return p + digits + 1;
}

void time_add_iso(struct buf *out, int64_t us)
{
    time_t seconds = whole_seconds(us);
    int fraction = (int)((us % TIME_SECOND + TIME_SECOND) % TIME_SECOND);
    char text[sizeof "2024-06-27T15:00:00.000000"], *p = text;
    struct tm tm;

    gmtime_r(&seconds, &tm); /* a 64-bit count of microseconds is in its range */
    if (tm.tm_year >= -1900 && tm.tm_year < 8100) {
        p = put_number(p, tm.tm_year + 1900, 4, '-');
        p = put_number(p, tm.tm_mon + 1, 2, '-');
        p = put_number(p, tm.tm_mday, 2, 'T');
        p = put_number(p, tm.tm_hour, 2, ':');
        p = put_number(p, tm.tm_min, 2, ':');
        p = put_number(p, tm.tm_sec, 2, '.');
        put_number(p, fraction, 6, '+');
        buf_add(out, text, sizeof text);
        buf_add_c(out, "00:00");
        return;
    }
    buf_addf(out, "%04lld-%02d-%02dT%02d:%02d:%02d.%06d+00:00", tm.tm_year + 1900LL, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
}

void time_add_local(struct buf *out, int64_t us)
{
    time_t seconds = whole_seconds(us);
    struct tm tm;

    if (!localtime_r(&seconds, &tm)) {
        time_add_iso(out, us);
        return;
    }
    buf_addf(out, "%04lld-%02d-%02d %02d:%02d", tm.tm_year + 1900LL, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min);
}

bool time_local_day(int64_t us, int64_t *day)
{
    time_t seconds = whole_seconds(us);
    struct tm tm;

    if (!localtime_r(&seconds, &tm) || tm.tm_year + 1900 < 1)
        return false;
    *day = days_of(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    return true;
}

void time_add_zone(struct buf *out, int64_t us)
{
    time_t seconds = whole_seconds(us);
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        buf_add_c(out, tm.tm_zone);
}

/* Removes exactly `digits` digits from the front. */
static bool cut_number(struct str *s, size_t digits, int *out)
{
    int value = 0;

    if (s->n < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (!ascii_is_digit(s->p[i]))
            return false;
        value = value * 10 + (s->p[i] - '0');
    }
    *s = str_skip(*s, digits);
    *out = value;
    return true;
}

static bool skip_either(struct str *s, char a, char b)
{
    if (!s->n || (s->p[0] != a && s->p[0] != b))
        return false;
    *s = str_skip(*s, 1);
    return true;
}

static bool skip_char(struct str *s, char c)
{
    return skip_either(s, c, c);
}

/* Counts the days of a date. Returns false if the date does not exist. */
static bool count_days(int year, int month, int day, int64_t *days)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (year < 1 || month < 1 || month > 12 || day < 1)
        return false;

    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    if (day > month_days[month - 1] + (month == 2 && leap))
        return false;
    *days = days_of(year, month, day);
    return true;
}

static bool read_date(struct str *s, int64_t *days)
{
    int year, month, day;

    return cut_number(s, 4, &year) && skip_char(s, '-') && cut_number(s, 2, &month) &&
           skip_char(s, '-') && cut_number(s, 2, &day) && count_days(year, month, day, days);
}

/* Reads a fraction. Digits below the microsecond are dropped. */
static bool read_fraction(struct str *s, int *micros)
{
    int unit = 100000;

    *micros = 0;
    if (!skip_either(s, '.', ','))
        return true;
    if (!s->n || !ascii_is_digit(s->p[0]))
        return false;
    while (s->n && ascii_is_digit(s->p[0])) {
        *micros += (s->p[0] - '0') * unit;
        unit /= 10;
        *s = str_skip(*s, 1);
    }
    return true;
}

static bool cut_time(struct str *s, int64_t *us)
{
    int hour, minute, second = 0, micros = 0;

    if (!cut_number(s, 2, &hour) || !skip_char(s, ':') || !cut_number(s, 2, &minute))
        return false;
    if (skip_char(s, ':') && (!cut_number(s, 2, &second) || !read_fraction(s, &micros)))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    *us = (hour * 3600 + minute * 60 + second) * TIME_SECOND + micros;
    return true;
}

static bool read_zone(struct str *s, int64_t *us)
{
    int hours, minutes = 0;

    *us = 0;
    if (s->n == 0 || skip_either(s, 'Z', 'z'))
        return true;

    bool west = s->p[0] == '-';

    if (!skip_either(s, '+', '-') || !cut_number(s, 2, &hours))
        return false;
    if (skip_char(s, ':') || s->n) {
        if (!cut_number(s, 2, &minutes))
            return false;
    }
    if (hours > 23 || minutes > 59)
        return false;
    *us = (hours * 3600 + minutes * 60) * TIME_SECOND * (west ? -1 : 1);
    return true;
}

/* ---- durations ---- */

/* The units of systemd.time(7): a month is 30.44 days, and a year is 365.25. */
static const struct {
    const char *names;
    int64_t ms;
} units[] = {
    {"ms msec msecs millisecond milliseconds", 1},
    {"s sec secs second seconds", 1000},
    {"m min mins minute minutes", 60 * 1000},
    {"h hr hrs hour hours", 3600 * 1000},
    {"d day days", (int64_t)SECONDS_A_DAY * 1000},
    {"w week weeks", (int64_t)SECONDS_A_DAY * 7000},
    {"M month months", 2630016000},
    {"y year years", 31557600000},
};

/* Compares without regard to case. But for a single letter case matters: m is a minute and M a
 * month. */
static bool same_word(struct str a, struct str b)
{
    if (a.n != b.n || (a.n == 1 && a.p[0] != b.p[0]))
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

/* Returns the place of a word, from 1, in a list that blanks separate, or 0 if it is not in the
 * list. */
static int find_word(const char *list, struct str word)
{
    struct str rest = str_of(list);

    for (int i = 1; rest.p; i++)
        if (same_word(word, str_cut(&rest, ' ')))
            return i;
    return 0;
}

static struct str cut_word(struct str *s)
{
    struct str word = {s->p, 0};

    while (word.n < s->n && ascii_is_letter(s->p[word.n]))
        word.n++;
    *s = str_skip(*s, word.n);
    return word;
}

/* Skips blanks, or the full stop of git's `2.weeks.ago`, if a word or a number comes next. */
static void skip_gap(struct str *s)
{
    size_t n = 0;

    if (s->n && s->p[0] == '.')
        n = 1;
    while (n < s->n && s->p[0] == ' ' && s->p[n] == ' ')
        n++;
    if (n < s->n && (ascii_is_letter(s->p[n]) || ascii_is_digit(s->p[n]))) {
        *s = str_skip(*s, n);
    }
}

static bool read_integer(struct str *s, int64_t *value)
{
    if (!s->n || !ascii_is_digit(s->p[0]))
        return false;
    for (*value = 0; s->n && ascii_is_digit(s->p[0]); s->p++, s->n--) {
        int digit = s->p[0] - '0';

        if (*value > (INT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return true;
}

/* Reads a number and its unit, in milliseconds. The unit may be missing if `bare` is set and
 * nothing else is left. */
static bool read_quantity(struct str *s, bool bare, int64_t *ms)
{
    int64_t whole, unit = 0;
    int micros = 0;
    struct str word;

    if (!read_integer(s, &whole))
        return false;
    if (s->n > 1 && s->p[0] == '.' && ascii_is_digit(s->p[1]) && !read_fraction(s, &micros))
        return false;
    skip_gap(s);
    word = cut_word(s);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (find_word(units[i].names, word))
            unit = units[i].ms;
    if (word.n == 0 && bare && s->n == 0)
        unit = 1000;
    if (unit == 0 || whole > (INT64_MAX - unit) / unit)
        return false;
    *ms = whole * unit + micros * unit / 1000000;
    return true;
}

/* Reads one or more quantities, such as `1h 30min`, from the front. */
static bool read_span(struct str *s, bool bare, int64_t *ms)
{
    struct str rest;
    int64_t one;

    if (!read_quantity(s, bare, ms))
        return false;
    for (rest = *s; skip_gap(&rest), rest.n && ascii_is_digit(rest.p[0]); rest = *s) {
        if (!read_quantity(&rest, false, &one) || one > INT64_MAX - *ms)
            break;
        *ms += one;
        *s = rest;
    }
    return true;
}

bool time_read_span(struct str *text, int64_t *ms)
{
    return read_span(text, false, ms);
}

bool time_parse_span(struct str text, int64_t *ms)
{
    int64_t value;

    if (!read_span(&text, true, &value) || text.n)
        return false;
    *ms = value;
    return true;
}

/* ---- times ---- */

/* A time that was read: the local or zoned time as written, the offset of the zone if there was
 * one, and the length of the smallest part that was written. */
struct written {
    int64_t wall, zone, unit;
    bool zoned;
};

static bool read_iso(struct str text, struct written *w)
{
    int64_t days, of_day = 0;
    const char *time;

    *w = (struct written){.unit = SECONDS_A_DAY * TIME_SECOND};
    if (!read_date(&text, &days))
        return false;
    if (text.n) {
        if (!skip_either(&text, 'T', 't') && !skip_char(&text, ' '))
            return false;
        time = text.p;
        if (!cut_time(&text, &of_day))
            return false;
        w->unit = text.p - time == sizeof("hh:mm") - 1      ? 60 * TIME_SECOND
                  : text.p - time == sizeof("hh:mm:ss") - 1 ? TIME_SECOND
                                                            : 1;
        w->zoned = text.n > 0;
        if (!read_zone(&text, &w->zone) || text.n)
            return false;
    }
    w->wall = days * SECONDS_A_DAY * TIME_SECOND + of_day;
    return true;
}

bool time_parse_iso(struct str text, int64_t *us)
{
    struct written w;

    if (!read_iso(text, &w))
        return false;
    *us = w.wall - w.zone;
    return true;
}

/* Returns the time at which a local clock shows `wall`. */
static int64_t of_local(int64_t wall)
{
    time_t seconds = whole_seconds(wall);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    tm.tm_isdst = tm.tm_wday = -1;

    time_t at = mktime(&tm);

    /* -1 is a valid time, too. A failure leaves the day of the week unset. */
    if (at == -1 && tm.tm_wday < 0)
        return wall;
    return (int64_t)at * TIME_SECOND + (wall - seconds * TIME_SECOND);
}

/* Reads `7d` or `1h30m ago`. A bare number is refused, because it could be a year. */
static bool read_ago(struct str text, int64_t now, int64_t *us)
{
    int64_t ms;

    if (!read_span(&text, false, &ms) || ms > INT64_MAX / 4000)
        return false;
    skip_gap(&text);
    if (text.n && !(find_word("ago", cut_word(&text)) && text.n == 0))
        return false;
    *us = now - ms * 1000;
    return true;
}

/* Reads `today`, `yesterday`, `monday` or `last monday` as a number of days before today. `last`
 * never means today. */
static bool read_day(struct str text, int64_t now, int *before)
{
    struct str word = cut_word(&text);
    bool last = find_word("last", word) != 0;
    int64_t day;
    int weekday;

    if (last) {
        skip_gap(&text);
        word = cut_word(&text);
    }
    if (text.n)
        return false;
    *before = find_word("today yesterday", word) - 1;
    if (*before >= 0)
        return !last;
    /* 1970-01-01 was a Thursday. */
    weekday = find_word("thursday friday saturday sunday monday tuesday wednesday", word);
    if (weekday == 0)
        weekday = find_word("thu fri sat sun mon tue wed", word);
    if (weekday == 0 || !time_local_day(now, &day))
        return false;
    *before = (int)(((day - (weekday - 1)) % 7 + 7) % 7);
    if (last && *before == 0)
        *before = 7;
    return true;
}

bool time_parse_when(struct str text, int64_t now, int64_t *first, int64_t *last)
{
    struct written w = {.unit = SECONDS_A_DAY * TIME_SECOND};
    int64_t us = now, day;
    int before;

    if (find_word("now", text) || read_ago(text, now, &us)) {
        *first = *last = us;
        return true;
    }
    if (read_day(text, now, &before)) {
        if (!time_local_day(now, &day))
            return false;
        w.wall = (day - before) * SECONDS_A_DAY * TIME_SECOND;
    } else if (!read_iso(text, &w)) {
        return false;
    }
    *first = w.zoned ? w.wall - w.zone : of_local(w.wall);
    /* A day can have 23 or 25 hours. */
    *last = (w.zoned ? *first + w.unit : of_local(w.wall + w.unit)) - 1;
    return true;
}

/* Returns the place of a three-letter name, from 1, in a list without separators, or 0. */
static int read_time_name(struct str *s, const char *names)
{
    const char *at = NULL;

    if (s->n >= 3)
        at = str_find(str_of(names), (struct str){s->p, 3});
    if (!at || (at - names) % 3 != 0)
        return 0;
    *s = str_skip(*s, 3);
    return (int)((at - names) / 3) + 1;
}

bool time_parse_http(struct str text, int64_t *us)
{
    int64_t days, of_day;
    int year, month, day;

    if (!read_time_name(&text, "MonTueWedThuFriSatSun") || !skip_char(&text, ',') ||
        !skip_char(&text, ' ') || !cut_number(&text, 2, &day) || !skip_char(&text, ' '))
        return false;
    month = read_time_name(&text, "JanFebMarAprMayJunJulAugSepOctNovDec");
    if (month == 0 || !skip_char(&text, ' ') || !cut_number(&text, 4, &year) ||
        !skip_char(&text, ' ') || !cut_time(&text, &of_day) || !str_eq_c(text, " GMT") ||
        !count_days(year, month, day, &days))
        return false;
    *us = days * SECONDS_A_DAY * TIME_SECOND + of_day;
    return true;
}
