#include "tui/browse_areas.h"

/* Side by side from so many columns on. */
#define BESIDE 80
#define LIST_MIN 32
#define LIST_MAX 64

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

struct browse_areas browse_areas_of(size_t rows, size_t columns)
{
    size_t body = less(rows, 3), wide = columns * 2 / 5;
    struct browse_areas a = {.stacked = columns < BESIDE,
                             .box = {0, 0, 1, columns},
                             .foot = {less(rows, 1), 0, 1, columns}};

    if (a.stacked) {
        size_t above = body / 3 > 2 ? body / 3 : body > 4 ? 2 : 1;

        a.list = (struct browse_rect){2, 0, above < body ? above : body, columns};
        a.rule = 2 + a.list.rows;
        a.text = (struct browse_rect){a.rule + 1, 0, less(body, a.list.rows + 1), columns};
    } else {
        wide = wide < LIST_MIN ? LIST_MIN : wide > LIST_MAX ? LIST_MAX : wide;
        a.list = (struct browse_rect){2, 0, body, wide};
        a.rule = wide;
        a.text = (struct browse_rect){2, wide + 2, body, columns - wide - 2};
    }
    return a;
}
