#include "chathist/cli/nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Returns how many characters must be added, removed, replaced or swapped with the next one to turn
 * one name into the other, at most `enough`. */
static size_t distance(const char *a, const char *b, size_t enough)
{
    while (*a && *a == *b)
        a++, b++;
    if ((!*a && !*b) || enough == 0)
        return 0;

    size_t best = enough;
    const size_t steps[][2] = {{1, 0}, {0, 1}, {1, 1}, {2, 2}};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        bool swapped = a[0] && b[0] && a[0] == b[1] && a[1] && a[1] == b[0];

        if (strnlen(a, steps[i][0]) < steps[i][0] || strnlen(b, steps[i][1]) < steps[i][1] ||
            (steps[i][0] == 2 && !swapped))
            continue;
        size_t n = 1 + distance(a + steps[i][0], b + steps[i][1], best - 1);

        best = n < best ? n : best;
    }
    return best;
}

void nearest_offer(struct nearest *n, const char *name)
{
    size_t length = strlen(n->typed), most = length / 3 < 3 ? length / 3 + 1 : 4;
    size_t far = distance(n->typed, name, most);
    bool within = (length > 3 && strstr(name, n->typed)) || strstr(n->typed, name);

    if (far == most && !within)
        return;
    if (far == most)
        far = most + 1;
    if (!n->name || far < n->far || (far == n->far && strlen(name) > strlen(n->name))) {
        n->far = far;
        n->name = name;
    }
}
