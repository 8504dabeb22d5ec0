/*
 * clock: a time that is read lies in the years that are read, and is the same after it was written
 * and read again; a date of HTTP lies in them, too; any number is written as some time; a span is
 * never negative; what a person writes does not end before it begins.
 */
#include <stdint.h>
#include <string.h>

#include "chathist/base/time.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With a zone a time may lie a day beyond the first and the last year. */
#define FIRST (INT64_C(-62135596800) * TIME_SECOND)
#define LAST (INT64_C(253402300800) * TIME_SECOND)
#define DAY (INT64_C(86400) * TIME_SECOND)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct buf iso = BUF_INIT(BUF_SMALL);
    int64_t us, again, ms;

    if (time_parse_iso(text, &us)) {
        demand(us >= FIRST - DAY && us <= LAST + DAY);
        time_add_iso(&iso, us);
        demand(time_parse_iso(buf_str(&iso), &again) == (us >= FIRST && us < LAST));
        demand(us < FIRST || us >= LAST || again == us);
    }
    if (time_parse_http(text, &us))
        demand(us >= FIRST && us <= LAST);
    if (time_parse_span(text, &ms))
        demand(ms >= 0);
    if (time_parse_when(text, 0, &us, &again))
        demand(us <= again && again < LAST + 2 * DAY);
    if (size >= sizeof(us)) {
        memcpy(&us, data, sizeof(us));
        buf_clear(&iso);
        time_add_iso(&iso, us);
        time_add_local(&iso, us);
        demand(!iso.overflow);
        if (us >= FIRST && us < LAST) {
            buf_truncate(&iso, sizeof("2024-06-27T15:00:00.000000+00:00") - 1);
            demand(time_parse_iso(buf_str(&iso), &again) && again == us);
        }
    }
    buf_release(&iso);
    return 0;
}
