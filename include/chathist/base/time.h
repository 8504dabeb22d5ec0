/*
 * time - the time of day in microseconds since 1970 (UTC), its ISO 8601 form, and a monotonic
 * clock.
 *
 * Nothing here depends on the locale. Only time_add_local, time_add_zone, time_local_day and
 * time_parse_when depend on the time zone.
 */
#ifndef CHATHIST_BASE_TIME_H
#define CHATHIST_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

#define TIME_SECOND ((int64_t)1000000)
/* 10000-01-01 in UTC: a time is before it. */
#define TIME_YEAR_10000 (INT64_C(253402300800) * TIME_SECOND)

/* Returns the microseconds since 1970-01-01T00:00:00Z. */
int64_t time_now(void);
/* Returns the milliseconds of a monotonic clock. Only the difference of two readings has a meaning.
 */
int64_t time_ticks(void);

/* Adds a time as `2024-06-27T15:00:00.000000+00:00`. */
void time_add_iso(struct buf *out, int64_t us);
/* Adds a time as `2024-06-27 17:00` in local time, for a terminal. */
void time_add_local(struct buf *out, int64_t us);

/* Sets *day to the local date at a time, as days since 1970-01-01. Returns false if the C library
 * cannot convert the time. */
bool time_local_day(int64_t us, int64_t *day);
/* Adds the name of the local time zone at a time, such as `CET`. */
void time_add_zone(struct buf *out, int64_t us);

/* Reads ISO 8601 as other programs write it: a date, `T` or a blank, `hh:mm` or `hh:mm:ss`, an
 * optional fraction (digits below the microsecond are dropped), and `Z`, `±hh:mm`, `±hhmm`, `±hh`
 * or nothing (UTC). A date alone means its midnight. Years are 1 to 9999. Each part must be in its
 * range; second 60 counts as second 0 of the next minute. Returns false, with *us unchanged, for
 * anything else. */
bool time_parse_iso(struct str text, int64_t *us);

/* Reads the date of an HTTP header in the form that senders must use (RFC 9110 section 5.6.7):
 * `Sun, 06 Nov 1994 08:49:37 GMT`. The day of the week is not compared with the date. */
bool time_parse_http(struct str text, int64_t *us);

/* Reads a duration as people and systemd.time(7) write it, in milliseconds: numbers with units from
 * milliseconds to years, such as `30m`, `1h30min`, `2 weeks` or `1.5s`, or a number of seconds.
 * Returns false, with *ms unchanged, for anything else (a sign, `off`) and if the result does not
 * fit. */
bool time_parse_span(struct str text, int64_t *ms);

/* Reads such a duration, with its units, from the front of a text, and moves *text past it. Returns
 * false, with *text undefined, if the text does not begin with one. */
bool time_read_span(struct str *text, int64_t *ms);

/* Reads a time as people and git write it, and sets its first and its last microsecond:
 *  - the forms of time_parse_iso, but in local time if no zone is given, and meaning the whole
 *    day, minute or second that is written;
 *  - `today`, `yesterday`, or a day of the week: the latest one, or with `last` the one before
 *    today;
 *  - `now`;
 *  - a duration with its units before `now`: `7d` or `2 weeks ago`.
 * Returns false, with both unchanged, for anything else. */
bool time_parse_when(struct str text, int64_t now, int64_t *first, int64_t *last);

#endif
