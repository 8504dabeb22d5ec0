/* Sets of digests. */
#include "chathist/sync/merge.h"

#include "test.h"

TEST(digests_are_sorted_by_all_their_bits)
{
    struct digests d = {0};
    size_t wrong = 0, absent = 0;

    digests_sort(&d);
    CHECK_INT(digests_before(&d, 1), 0);
    CHECK(!digests_have(&d, 0));
    /* Each bit alone, from the highest on, each number twice, and the extremes. */
    for (unsigned bit = 64; bit-- > 0;) {
        digests_add(&d, UINT64_C(1) << bit);
        digests_add(&d, UINT64_C(1) << bit);
    }
    digests_add(&d, UINT64_MAX);
    digests_add(&d, 0);
    digests_sort(&d);
    CHECK_INT(d.count, 130);
    for (size_t i = 1; i < d.count; i++)
        wrong += d.at[i].digest < d.at[i - 1].digest;
    for (unsigned bit = 0; bit < 64; bit++) {
        size_t at = digests_before(&d, UINT64_C(1) << bit);

        /* Equal ones keep their order. */
        wrong += at != 1 + 2 * bit || d.at[at].number != 126 - 2 * bit ||
                 d.at[at + 1].number != 127 - 2 * bit;
        absent += !digests_have(&d, UINT64_C(1) << bit);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(absent, 0);
    CHECK(!digests_have(&d, 3));
    CHECK_INT(digests_before(&d, UINT64_MAX), 129);
    digests_release(&d);
}
