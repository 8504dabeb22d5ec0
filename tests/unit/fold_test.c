#include "chathist/base/utf8.h"

#include <stdlib.h>

#include "test.h"

/* Rows of CaseFolding.txt. */
TEST(fold_common_and_simple)
{
    static const struct {
        int32_t from, to;
    } rows[] = {
        {'A', 'a'},         {'Z', 'z'},         {'a', 'a'},
        {'@', '@'},         {'[', '['},         {0xb5, 0x3bc}, /* C: micro sign */
        {0xc0, 0xe0},                                          /* C */
        {0xde, 0xfe},                                          /* C */
        {0xdf, 0xdf},                                          /* F alone: sharp s */
        {0x130, 0x130},     /* F and T alone: capital I with dot above */
        {0x131, 0x131},     /* dotless i */
        {0x17f, 's'},       /* C: long s */
        {0x1c5, 0x1c6},     /* C: titlecase dz */
        {0x1f0, 0x1f0},     /* F alone */
        {0x3a3, 0x3c3},     /* C: capital sigma */
        {0x3c2, 0x3c3},     /* C: final sigma */
        {0x3d0, 0x3b2},     /* C: beta symbol */
        {0x410, 0x430},     /* C: Cyrillic */
        {0x13a0, 0x13a0},   /* Cherokee folds to capitals */
        {0x13f8, 0x13f0},   /* C */
        {0xab70, 0x13a0},   /* C */
        {0x1e9e, 0xdf},     /* S: capital sharp s */
        {0x1f88, 0x1f80},   /* S: Greek with prosgegrammeni */
        {0x1fbc, 0x1fb3},   /* S */
        {0x1ffc, 0x1ff3},   /* S */
        {0x2126, 0x3c9},    /* C: ohm sign */
        {0x212a, 'k'},      /* C: kelvin sign */
        {0x212b, 0xe5},     /* C: angstrom sign */
        {0xff21, 0xff41},   /* C: fullwidth */
        {0x10400, 0x10428}, /* C: Deseret */
        {0x1e900, 0x1e922}, /* C: Adlam */
        {0x4e2d, 0x4e2d},   {0x1f600, 0x1f600}, {0x10ffff, 0x10ffff},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!CHECK_INT(utf8_fold(rows[i].from), rows[i].to))
            fprintf(stderr, "    of   U+%04X\n", (unsigned)rows[i].from);
    }
}

TEST(folding_twice_changes_nothing)
{
    bool stable = true;

    for (int32_t cp = 0; cp <= 0x10ffff; cp++)
        stable = stable && utf8_fold(utf8_fold(cp)) == utf8_fold(cp);
    CHECK(stable);
}

/* ---- all of CaseFolding.txt ---- */

/* The rows that came after Unicode 15, which is what some systems have: their first and last code
 * point and the version. */
static const struct {
    int32_t first, last;
    unsigned version; /* 1510 for 15.1.0 */
} added[] = {
    {0x1c89, 0x1c89, 1600},   {0x1fd3, 0x1fd3, 1510}, {0x1fe3, 0x1fe3, 1510},
    {0xa7cb, 0xa7cc, 1600},   {0xa7ce, 0xa7ce, 1700}, {0xa7d2, 0xa7d4, 1700},
    {0xa7da, 0xa7dc, 1600},   {0xfb05, 0xfb05, 1510}, {0x10d50, 0x10d65, 1600},
    {0x16ea0, 0x16eb8, 1700},
};

static bool is_newer(int32_t cp, unsigned version)
{
    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++)
        if (cp >= added[i].first && cp <= added[i].last)
            return added[i].version > version;
    return false;
}

#define TABLE_VERSION 1700
#define CODE_POINTS 0x110000

/* The file's version, and into `to` what each code point folds to by it; 0: there is no file. */
static unsigned read_rows(int32_t *to)
{
    static const char *const paths[] = {"/usr/share/unicode/CaseFolding.txt",
                                        "/usr/share/unicode/ucd/CaseFolding.txt"};
    FILE *file = NULL;
    char line[1000], status;
    unsigned from, into, major, minor, version = 0;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && !file; i++)
        file = fopen(paths[i], "r");
    if (!file)
        return 0;
    for (int32_t cp = 0; cp < CODE_POINTS; cp++)
        to[cp] = cp;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "# CaseFolding-%u.%u", &major, &minor) == 2)
            version = major * 100 + minor * 10;
        else if (sscanf(line, "%x; %c; %x", &from, &status, &into) == 3 &&
                 (status == 'C' || status == 'S') && from < CODE_POINTS)
            to[from] = (int32_t)into;
    }
    fclose(file);
    return version;
}

/* Not only every row: no code point folds that has none, so that what folds to the same is what the
 * file says, and nothing else. */
TEST(folding_is_that_of_the_whole_file)
{
    int32_t *to = malloc(CODE_POINTS * sizeof *to);
    unsigned version = read_rows(to);
    int rows = 0, unknown = 0;

    if (version == 0) {
        puts("# skipped: no CaseFolding.txt (package unicode-data)");
        free(to);
        return;
    }
    for (int32_t cp = 0; cp < CODE_POINTS; cp++) {
        rows += to[cp] != cp;
        if (to[cp] == utf8_fold(cp) || (to[cp] == cp && is_newer(cp, version)))
            continue;
        /* Rows of a version that came after the table are no fault, but worth a new table. */
        if (version > TABLE_VERSION && utf8_fold(cp) == cp)
            unknown++;
        else if (!CHECK_INT(utf8_fold(cp), to[cp]))
            fprintf(stderr, "    of   U+%04X\n", (unsigned)cp);
    }
    CHECK(rows > 1400);
    if (unknown > 0)
        printf("# CaseFolding.txt has %d rows that are newer than our table\n", unknown);
    free(to);
}

TEST(what_folds_to_the_same_is_found_the_other_way_round)
{
    for (int32_t cp = 0; cp < 0x20000; cp++) {
        int32_t same[UTF8_FOLD_SAME];
        size_t count = utf8_fold_same(cp, same);
        bool found = false;

        CHECK_INT(same[0], utf8_fold(cp));
        for (size_t i = 0; i < count; i++) {
            CHECK_INT(utf8_fold(same[i]), utf8_fold(cp));
            found = found || same[i] == cp;
            for (size_t k = 0; k < i; k++)
                CHECK(same[k] != same[i]);
        }
        if (!CHECK(found))
            return;
    }
}
