/*
 * A history of any bytes, read in blocks of any size, gives the lines that one block of all bytes
 * gives, and the same bad ones; looking for one session gives what a look at every line gives. The
 * first two bytes are the sizes of the block and the longest line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/history/scan.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct place {
    off_t at;
    size_t n;
    bool terminated, too_long;
};

struct places {
    struct place *at;
    size_t count, cap;
};

static void open_scan(struct scan *s, const char *path, bool whole, const uint8_t *sizes)
{
    demand(scan_open(s, FILE_CWD, path, NULL) == 0);
    s->block_size = whole ? SCAN_BLOCK : 1 + (size_t)sizes[0];
    s->line_max = 1 + (size_t)sizes[1] * 4;
}

/* Every line, and that its text is what stands in the file there. */
static struct places places_of(const char *path, bool whole, const uint8_t *sizes, struct str file)
{
    struct places all = {0};
    struct scan s;
    struct line l;

    open_scan(&s, path, whole, sizes);
    while (scan_line(&s, &l, NULL) > 0) {
        demand(l.at >= 0 && (size_t)l.at + l.text.n <= file.n);
        demand(memcmp(file.p + l.at, l.text.p, l.text.n) == 0);
        all.at = mem_grow(all.at, &all.cap, all.count + 1, sizeof(*all.at));
        all.at[all.count++] = (struct place){l.at, l.text.n, l.terminated, l.too_long};
    }
    scan_close(&s);
    return all;
}

/* The number of messages, of those of session `s`, and of bad lines. */
static void count(const char *path, bool whole, const uint8_t *sizes, bool only, size_t found[2],
                  uint64_t *bad)
{
    struct message m = MESSAGE_INIT;
    struct scan s;

    open_scan(&s, path, whole, sizes);
    if (only)
        scan_only(&s, STR("s"));
    found[0] = found[1] = 0;
    while (scan_message(&s, &m, NULL, NULL) > 0) {
        found[0]++;
        found[1] += str_eq_c(m.session_id, "s");
    }
    *bad = s.bad;
    message_release(&m);
    scan_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/scan_fuzz.XXXXXX";
    size_t found[3][2];
    uint64_t bad[3];

    if (size < 2)
        return 0;

    struct str file = {(const char *)data + 2, size - 2};
    int fd = mkstemp(path);

    demand(fd >= 0 && file_write_all(fd, file.p, file.n) == 0);
    close(fd);

    struct places blocks = places_of(path, false, data, file);
    struct places whole = places_of(path, true, data, file);

    demand(blocks.count == whole.count);
    for (size_t i = 0; i < blocks.count; i++) {
        const struct place *a = &blocks.at[i], *b = &whole.at[i];

        demand(a->at == b->at && a->n == b->n);
        demand(a->terminated == b->terminated && a->too_long == b->too_long);
    }
    count(path, false, data, false, found[0], &bad[0]);
    count(path, true, data, false, found[1], &bad[1]);
    count(path, false, data, true, found[2], &bad[2]);
    demand(found[0][0] == found[1][0] && bad[0] == bad[1]);
    demand(found[2][0] == found[0][1] && bad[2] <= bad[0]);
    unlink(path);
    free(blocks.at);
    free(whole.at);
    return 0;
}
