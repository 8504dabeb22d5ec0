#include "chathist/base/time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "test.h"

static void check_iso(int64_t us, const char *want)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    time_add_iso(&b, us);
    CHECK_STR(buf_c(&b), want);
    buf_release(&b);
}

static void check_parse(const char *text, int64_t want)
{
    int64_t us = -1;

    if (!CHECK(time_parse_iso(str_of(text), &us)) || !CHECK_INT(us, want))
        fprintf(stderr, "    of   %s\n", text);
}

/* Also: the result stays untouched. */
static void check_refused(const char *text)
{
    int64_t us = 4711;

    if (!CHECK(!time_parse_iso(str_of(text), &us)) || !CHECK_INT(us, 4711))
        fprintf(stderr, "    of   %s\n", text);
}

#define AT(seconds) ((int64_t)(seconds)*TIME_SECOND)
#define NOON_2024 INT64_C(1719500400) /* 2024-06-27T15:00:00Z */

TEST(iso_form)
{
    check_iso(0, "1970-01-01T00:00:00.000000+00:00");
    check_iso(AT(NOON_2024), "2024-06-27T15:00:00.000000+00:00");
    check_iso(AT(NOON_2024) + 7, "2024-06-27T15:00:00.000007+00:00");
    check_iso(-1, "1969-12-31T23:59:59.999999+00:00");
    check_iso(AT(951782399), "2000-02-28T23:59:59.000000+00:00");
    check_iso(AT(951782400), "2000-02-29T00:00:00.000000+00:00");
    check_iso(AT(951868800), "2000-03-01T00:00:00.000000+00:00");
    check_iso(AT(4107542399), "2100-02-28T23:59:59.000000+00:00");
    check_iso(AT(4107542400), "2100-03-01T00:00:00.000000+00:00");
    check_iso(AT(-62135596800), "0001-01-01T00:00:00.000000+00:00");
    check_iso(AT(253402300799) + 999999, "9999-12-31T23:59:59.999999+00:00");
}

TEST(iso_form_of_any_number)
{
    check_iso(INT64_MAX, "294247-01-10T04:00:54.775807+00:00");
    check_iso(INT64_MIN, "-290308-12-21T19:59:05.224192+00:00");
}

TEST(parse_what_we_write)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    bool same = true;

    /* A prime step through all years that are read. */
    for (int64_t us = AT(-62135596800); us <= AT(253402300799); us += INT64_C(86413100003) * 997) {
        int64_t back = 0;

        buf_clear(&b);
        time_add_iso(&b, us);
        same = same && time_parse_iso(buf_str(&b), &back) && back == us;
    }
    CHECK(same);
    buf_release(&b);
}

TEST(parse_forms_of_other_writers)
{
    check_parse("2024-06-27T15:00:00.000000+00:00", AT(NOON_2024));
    check_parse("2024-06-27T15:00:00Z", AT(NOON_2024));
    check_parse("2024-06-27t15:00:00z", AT(NOON_2024));
    check_parse("2024-06-27 15:00:00", AT(NOON_2024));
    check_parse("2024-06-27T15:00", AT(NOON_2024));
    check_parse("2024-06-27T15:00Z", AT(NOON_2024));
    check_parse("2024-06-27T17:00:00+02:00", AT(NOON_2024));
    check_parse("2024-06-27T17:00:00+0200", AT(NOON_2024));
    check_parse("2024-06-27 17:00:00+02", AT(NOON_2024));
    check_parse("2024-06-27T09:30:00-05:30", AT(NOON_2024));
    check_parse("2024-06-28T14:59:00+23:59", AT(NOON_2024));
    check_parse("2024-06-27T15:00:00-00:00", AT(NOON_2024));
    check_parse("2024-06-27", AT(NOON_2024 - 15 * 3600));
}

TEST(parse_fractions)
{
    check_parse("2024-06-27T15:00:00.5Z", AT(NOON_2024) + 500000);
    check_parse("2024-06-27T15:00:00,25Z", AT(NOON_2024) + 250000);
    check_parse("2024-06-27T15:00:00.123456Z", AT(NOON_2024) + 123456);
    check_parse("2024-06-27T15:00:00.123456999Z", AT(NOON_2024) + 123456);
    check_parse("2024-06-27T15:00:00.0000000000000000000000000000001", AT(NOON_2024));
    check_parse("1969-12-31T23:59:59.999999Z", -1);
}

TEST(parse_edges_of_ranges)
{
    check_parse("0001-01-01T00:00:00Z", AT(-62135596800));
    check_parse("9999-12-31T23:59:59Z", AT(253402300799));
    check_parse("2024-02-29T00:00:00Z", AT(1709164800));
    check_parse("2000-02-29T00:00:00Z", AT(951782400));
    check_parse("2016-12-31T23:59:60Z", AT(1483228800));
    check_refused("0000-01-01T00:00:00Z");
    check_refused("2024-00-01T00:00:00Z");
    check_refused("2024-13-01T00:00:00Z");
    check_refused("2024-01-00T00:00:00Z");
    check_refused("2024-01-32T00:00:00Z");
    check_refused("2024-04-31T00:00:00Z");
    check_refused("2023-02-29T00:00:00Z");
    check_refused("1900-02-29T00:00:00Z");
    check_refused("2024-02-30T00:00:00Z");
    check_refused("2024-01-01T24:00:00Z");
    check_refused("2024-01-01T00:60:00Z");
    check_refused("2024-01-01T00:00:61Z");
    check_refused("2024-01-01T00:00:00+24:00");
    check_refused("2024-01-01T00:00:00+00:60");
}

TEST(parse_refuses_what_is_no_time)
{
    static const char *const bad[] = {
        "",
        "yesterday",
        "2024",
        "2024-06",
        "2024-6-27",
        "24-06-27T15:00:00Z",
        "12024-06-27T15:00:00Z",
        "-2024-06-27T15:00:00Z",
        "2024-06-27T",
        "2024-06-27T15",
        "2024-06-27T15:",
        "2024-06-27T15:0",
        "2024-06-27T15:00:",
        "2024-06-27T15:00:0",
        "2024-06-27T15:00:00.",
        "2024-06-27T15:00:00.Z",
        "2024-06-27T15:00:00+",
        "2024-06-27T15:00:00+1",
        "2024-06-27T15:00:00+01:",
        "2024-06-27T15:00:00+01:0",
        "2024-06-27T15:00:00+01:000",
        "2024-06-27T15:00:00ZZ",
        "2024-06-27T15:00:00Z ",
        " 2024-06-27T15:00:00Z",
        "2024-06-27T15:00:00 Z",
        "2024-06-27  15:00:00",
        "2024-06-27x15:00:00",
        "2024/06/27T15:00:00Z",
        "2024-06-27T15.00.00Z",
        "2024-06-27T+5:00:00Z",
        "2024-06-27T15:00:00 +00:00",
        "\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa4-06-27",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_refused(bad[i]);

    int64_t us = 4711;

    CHECK(!time_parse_iso(STR_NONE, &us));
    CHECK(!time_parse_iso(STR("2024-06-27T15:00:00\0"), &us));
    CHECK_INT(us, 4711);
}

TEST(parse_does_not_depend_on_the_zone)
{
    setenv("TZ", "XXX-7", 1);
    tzset();
    check_parse("2024-06-27T15:00:00", AT(NOON_2024));
    check_iso(AT(NOON_2024), "2024-06-27T15:00:00.000000+00:00");
}

static void check_local(const char *zone, int64_t us, const char *want)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    setenv("TZ", zone, 1);
    tzset();
    time_add_local(&b, us);
    CHECK_STR(buf_c(&b), want);
    buf_release(&b);
}

TEST(local_time)
{
    check_local("UTC0", AT(NOON_2024), "2024-06-27 15:00");
    check_local("XXX-2", AT(NOON_2024), "2024-06-27 17:00");
    check_local("XXX-2", AT(NOON_2024) + 59 * TIME_SECOND, "2024-06-27 17:00");
    check_local("XXX+9:30", AT(NOON_2024), "2024-06-27 05:30");
    check_local("UTC0", -1, "1969-12-31 23:59");
}

/* The day that a clock on the wall shows, and what its zone is called then. */
static void check_day(const char *zone, const char *iso, const char *day, const char *name)
{
    struct buf got = BUF_INIT(BUF_SMALL), want = BUF_INIT(BUF_SMALL);
    int64_t us = 0, midnight = 0, local = -1;

    setenv("TZ", zone, 1);
    tzset();
    CHECK(time_parse_iso(str_of(iso), &us) && time_parse_iso(str_of(day), &midnight));
    CHECK(time_local_day(us, &local));
    buf_addf(&want, "%" PRId64 " %s", midnight / AT(86400), name);
    buf_addf(&got, "%" PRId64 " ", local);
    time_add_zone(&got, us);
    if (!CHECK_STR(buf_c(&got), buf_c(&want)))
        fprintf(stderr, "    of   %s in %s\n", iso, zone);
    buf_release(&got);
    buf_release(&want);
}

TEST(local_days)
{
    static const char *const berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
    static const char *const sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3";

    /* A day of 23 hours, and one of 25, to the second. */
    check_day(berlin, "2024-03-30T22:59:59Z", "2024-03-30", "CET");
    check_day(berlin, "2024-03-30T23:00:00Z", "2024-03-31", "CET");
    check_day(berlin, "2024-03-31T00:59:59Z", "2024-03-31", "CET");
    check_day(berlin, "2024-03-31T01:00:00Z", "2024-03-31", "CEST");
    check_day(berlin, "2024-03-31T21:59:59Z", "2024-03-31", "CEST");
    check_day(berlin, "2024-03-31T22:00:00Z", "2024-04-01", "CEST");
    check_day(berlin, "2024-10-26T21:59:59Z", "2024-10-26", "CEST");
    check_day(berlin, "2024-10-26T22:00:00Z", "2024-10-27", "CEST");
    check_day(berlin, "2024-10-27T00:59:59Z", "2024-10-27", "CEST");
    check_day(berlin, "2024-10-27T01:00:00Z", "2024-10-27", "CET");
    check_day(berlin, "2024-10-27T22:59:59Z", "2024-10-27", "CET");
    check_day(berlin, "2024-10-27T23:00:00Z", "2024-10-28", "CET");
    /* In the south summer is at the turn of the year. */
    check_day(sydney, "2024-12-31T12:59:59Z", "2024-12-31", "AEDT");
    check_day(sydney, "2024-12-31T13:00:00Z", "2025-01-01", "AEDT");
    check_day(sydney, "2024-06-30T13:59:59Z", "2024-06-30", "AEST");
    check_day(sydney, "2024-06-30T14:00:00Z", "2024-07-01", "AEST");
    check_day(sydney, "2024-04-06T15:59:59Z", "2024-04-07", "AEDT");
    check_day(sydney, "2024-04-06T16:00:00Z", "2024-04-07", "AEST");
    /* Half hours, quarters, and the ends of the world. */
    check_day("IST-5:30", "2024-06-26T18:29:59Z", "2024-06-26", "IST");
    check_day("IST-5:30", "2024-06-26T18:30:00Z", "2024-06-27", "IST");
    check_day("NST3:30NDT,M3.2.0,M11.1.0", "2024-01-01T03:29:59Z", "2023-12-31", "NST");
    check_day("NST3:30NDT,M3.2.0,M11.1.0", "2024-07-01T02:30:00Z", "2024-07-01", "NDT");
    check_day("<+0545>-5:45", "2024-06-26T18:15:00Z", "2024-06-27", "+0545");
    check_day("<+14>-14", "2024-06-26T10:00:00Z", "2024-06-27", "+14");
    check_day("<-12>12", "2024-06-27T11:59:59Z", "2024-06-26", "-12");
    /* Days before 1970 are negative; 2024 has a leap day. */
    check_day("UTC0", "1969-12-31T23:59:59Z", "1969-12-31", "UTC");
    check_day("IST-5:30", "1969-12-31T18:29:59.999999Z", "1969-12-31", "IST");
    check_day("UTC0", "2024-02-29T23:59:59.999999Z", "2024-02-29", "UTC");
    /* An empty TZ means UTC. Its name differs: "UTC", or "Universal" since glibc 2.41. */
    check_local("", AT(NOON_2024), "2024-06-27 15:00");
    setenv("TZ", "UTC", 1);
    tzset();
}

/* Without TZ it is what the machine is set to, which has some name and is at most a day away. */
TEST(local_day_without_a_zone)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int64_t day = 0;

    unsetenv("TZ");
    tzset();
    CHECK(time_local_day(AT(NOON_2024), &day));
    CHECK(day >= NOON_2024 / 86400 - 1 && day <= NOON_2024 / 86400 + 1);
    time_add_zone(&name, AT(NOON_2024));
    CHECK(name.len > 0);
    buf_release(&name);
    setenv("TZ", "UTC", 1);
    tzset();
}

TEST(local_day_of_no_year)
{
    int64_t day = 4711;

    CHECK(!time_local_day(AT(-62135596800) - 1, &day));
    CHECK(!time_local_day(INT64_MIN, &day));
    CHECK_INT(day, 4711);
    CHECK(time_local_day(AT(-62135596800), &day));
    CHECK(time_local_day(INT64_MAX, &day));
}

TEST(spans)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"0", 0},
        {"90", 90000},
        {"300ms", 300},
        {"90s", 90000},
        {"30m", 1800000},
        {"2h", 7200000},
        {"7d", 604800000},
        {"007", 7000},
        {"3w", 1814400000},
        {"1h30m", 5400000},
        {"1h 30min", 5400000},
        {"5 minutes", 300000},
        {"2 Weeks", 1209600000},
        {"2.weeks", 1209600000},
        {"1M", 2630016000},
        {"2 years", 63115200000},
        {"1.5s", 1500},
        {"0.5h", 1800000},
        {"1.0004s", 1000},
        {"55s500ms", 55500},
        {"1d 1d", 172800000},
        {"9223372036854774", INT64_C(9223372036854774000)},
        {"106751991166d", INT64_C(9223372036742400000)},
    };
    static const char *const bad[] = {
        "",
        "off",
        "-1",
        "+1",
        "h",
        "1hh",
        "1h ",
        "1h.",
        " 1",
        "1.",
        "1.h.",
        "1..h",
        ".5h",
        "1h30",
        "90 1h",
        "1h, 30m",
        "1h ago",
        "1msx",
        "1 fortnight",
        "ms",
        "9223372036854775808",
        "1H",
        "9223372036854776",
        "106751991168d",
        "106751991166d 1d 1d",
        "99999999999999999999999999",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ms = -1;

        if (!CHECK(time_parse_span(str_of(good[i].text), &ms)) || !CHECK_INT(ms, good[i].ms))
            fprintf(stderr, "    of   %s\n", good[i].text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t ms = 4711;

        if (!CHECK(!time_parse_span(str_of(bad[i]), &ms)) || !CHECK_INT(ms, 4711))
            fprintf(stderr, "    of   %s\n", bad[i]);
    }
}

/* By the clock of a place that is an hour ahead in winter and two in summer. */
TEST(times_as_a_person_writes_them)
{
    static const struct {
        const char *text, *first, *last;
    } good[] = {
        {"2024-06-27", "2024-06-26T22:00:00.000000", "2024-06-27T21:59:59.999999"},
        {"2024-12-27", "2024-12-26T23:00:00.000000", "2024-12-27T22:59:59.999999"},
        {"2024-03-31", "2024-03-30T23:00:00.000000", "2024-03-31T21:59:59.999999"},
        {"2024-06-27T15:00", "2024-06-27T13:00:00.000000", "2024-06-27T13:00:59.999999"},
        {"2024-06-27 15:00:07", "2024-06-27T13:00:07.000000", "2024-06-27T13:00:07.999999"},
        {"2024-06-27T15:00:07.5", "2024-06-27T13:00:07.500000", "2024-06-27T13:00:07.500000"},
        {"2024-06-27T15:00Z", "2024-06-27T15:00:00.000000", "2024-06-27T15:00:59.999999"},
        {"2024-06-27T15:00:00+02:00", "2024-06-27T13:00:00.000000", "2024-06-27T13:00:00.999999"},
        {"today", "2024-06-26T22:00:00.000000", "2024-06-27T21:59:59.999999"},
        {"yesterday", "2024-06-25T22:00:00.000000", "2024-06-26T21:59:59.999999"},
        {"now", "2024-06-26T22:30:00.000000", "2024-06-26T22:30:00.000000"},
        {"7d", "2024-06-19T22:30:00.000000", "2024-06-19T22:30:00.000000"},
        {"90s", "2024-06-26T22:28:30.000000", "2024-06-26T22:28:30.000000"},
        {"2h", "2024-06-26T20:30:00.000000", "2024-06-26T20:30:00.000000"},
        {"3w", "2024-06-05T22:30:00.000000", "2024-06-05T22:30:00.000000"},
        {"2 weeks ago", "2024-06-12T22:30:00.000000", "2024-06-12T22:30:00.000000"},
        {"2.weeks.ago", "2024-06-12T22:30:00.000000", "2024-06-12T22:30:00.000000"},
        {"1h30m ago", "2024-06-26T21:00:00.000000", "2024-06-26T21:00:00.000000"},
        /* It is Thursday, 2024-06-27, there. */
        {"thursday", "2024-06-26T22:00:00.000000", "2024-06-27T21:59:59.999999"},
        {"last thursday", "2024-06-19T22:00:00.000000", "2024-06-20T21:59:59.999999"},
        {"Monday", "2024-06-23T22:00:00.000000", "2024-06-24T21:59:59.999999"},
        {"last.mon", "2024-06-23T22:00:00.000000", "2024-06-24T21:59:59.999999"},
        {"fri", "2024-06-20T22:00:00.000000", "2024-06-21T21:59:59.999999"},
        {"Today", "2024-06-26T22:00:00.000000", "2024-06-27T21:59:59.999999"},
        {"0001-01-01", "0000-12-31T23:00:00.000000", "0001-01-01T22:59:59.999999"},
    };
    static const char *const bad[] = {
        "",
        "7",
        "2024",
        "2024-06",
        "2024-02-30",
        "tomorrow",
        "-7d",
        "d",
        "15:00",
        "yesterday ",
        "now now",
        "99999999999999d",
        "7 ago",
        "ago",
        "7d ago ago",
        "7d before",
        "last",
        "last yesterday",
        "last last monday",
        "monday tuesday",
        "mo",
        "mond",
        "3 mondays ago",
    };
    int64_t now = 0;

    setenv("TZ", "XXX-1YYY,M3.5.0,M10.5.0/3", 1);
    tzset();
    CHECK(time_parse_iso(STR("2024-06-26T22:30:00Z"), &now));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct buf got = BUF_INIT(BUF_SMALL);
        struct buf want = BUF_INIT(BUF_SMALL);
        int64_t first = 0, last = 0;

        CHECK(time_parse_when(str_of(good[i].text), now, &first, &last));
        time_add_iso(&got, first);
        buf_add_byte(&got, ' ');
        time_add_iso(&got, last);
        buf_addf(&want, "%s+00:00 %s+00:00", good[i].first, good[i].last);
        /* Before there were zones, the C library may know a local mean time. */
        if (str_starts(str_of(good[i].text), STR("0001")))
            CHECK(last > first);
        else if (!CHECK_STR(buf_c(&got), buf_c(&want)))
            fprintf(stderr, "    of   %s\n", good[i].text);
        buf_release(&got);
        buf_release(&want);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t first = 4711, last = 4712;

        if (!CHECK(!time_parse_when(str_of(bad[i]), now, &first, &last)) ||
            !CHECK(first == 4711 && last == 4712))
            fprintf(stderr, "    of   %s\n", bad[i]);
    }
    setenv("TZ", "UTC", 1);
    tzset();
}

TEST(now_is_now)
{
    int64_t before = (int64_t)time(NULL);
    int64_t now = time_now();
    int64_t after = (int64_t)time(NULL);

    /* time() may lag behind by a clock tick. */
    CHECK(now >= AT(before) - TIME_SECOND && now < AT(after + 2));
}

TEST(ticks_go_forward_in_milliseconds)
{
    struct timespec pause = {0, 30 * 1000 * 1000};
    int64_t a = time_ticks();

    nanosleep(&pause, NULL);

    int64_t b = time_ticks();

    CHECK(b - a >= 29 && b - a < 10000);
}

static void check_http(const char *text, int64_t want)
{
    int64_t us = 4711;

    if (!CHECK_INT(time_parse_http(str_of(text), &us), want != 4711) || !CHECK_INT(us, want))
        fprintf(stderr, "    of   %s\n", text);
}

TEST(date_of_an_http_header)
{
    static const char *const none[] = {
        "",
        "Sun",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 ovD 1994 08:49:37 GMT",
        "unM, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
    };

    check_http("Sun, 06 Nov 1994 08:49:37 GMT", AT(784111777));
    check_http("Thu, 01 Jan 1970 00:00:00 GMT", 0);
    check_http("Thu, 29 Feb 2024 23:59:60 GMT", AT(1709251200));
    check_http("Tue, 31 Dec 2030 01:02:03 GMT", AT(1924909323));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        check_http(none[i], 4711);
}
