/*
 * clock - the time of day in microseconds since 1970 (UTC), its ISO 8601 form, and a clock that
 * only goes forward.
 *
 * Nothing here depends on the locale, and only clock_add_local, clock_add_zone, clock_local_day and
 * clock_parse_when on the time zone.
 */
#ifndef CHATHIST_BASE_CLOCK_H
#define CHATHIST_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

#define CLOCK_SECOND ((int64_t)1000000)

/* Microseconds since 1970-01-01T00:00:00Z. */
int64_t clock_now(void);
/* Milliseconds of a clock that does not jump when the time of day is set; only the difference of
 * two readings means something. */
int64_t clock_ticks(void);

/* Adds a time as `2024-06-27T15:00:00.000000+00:00`. */
void clock_add_iso(struct buf *out, int64_t us);
/* Adds a time as `2024-06-27 17:00` in local time, for a terminal. */
void clock_add_local(struct buf *out, int64_t us);

/* The day that the local calendar shows at a time, counted from 1970-01-01: false when it cannot be
 * told. */
bool clock_local_day(int64_t us, int64_t *day);
/* Adds what the local time zone is called at a time, `CET`. */
void clock_add_zone(struct buf *out, int64_t us);

/* Reads ISO 8601 as other writers produce it: a date, `T` or a blank, `hh:mm` or `hh:mm:ss`, a
 * fraction of any length or none (digits below the microsecond are dropped), and `Z`, `±hh:mm`,
 * `±hhmm`, `±hh` or nothing (UTC). A date alone is its midnight. Years 1 to 9999; each part must be
 * in its range, with second 60 taken as the next minute's 0. false, and *us untouched, when it is
 * not a time. */
bool clock_parse_iso(struct str text, int64_t *us);

/* Reads the date of an HTTP header, in the form that is sent (RFC 9110 section 5.6.7): `Sun, 06 Nov
 * 1994 08:49:37 GMT`. The name of the day is not compared with the date. */
bool clock_parse_http(struct str text, int64_t *us);

/* Reads a duration as a person and systemd.time(7) write it, into milliseconds: numbers with units
 * from milliseconds to years, `30m`, `1h30min`, `2 weeks`, `1.5s`, or a number of seconds. Returns
 * false, and leaves *ms alone, for anything else (a sign, `off`) and if it does not fit. */
bool clock_parse_span(struct str text, int64_t *ms);

/* Reads a time as a person and git write it, into its first and its last microsecond: the forms of
 * clock_parse_iso, but in local time without a zone, and meaning the whole day, minute or second
 * that is written; `today`, `yesterday`, a day of the week (the latest one, with `last` before
 * today); `now`; a duration with its units, `7d` or `2 weeks ago`: that long before `now`. Returns
 * false, and leaves both alone, for anything else. */
bool clock_parse_when(struct str text, int64_t now, int64_t *first, int64_t *last);

#endif
