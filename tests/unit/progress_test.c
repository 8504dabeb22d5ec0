#include "chathist/cli/progress.h"

#include "test.h"

TEST(how_far_a_task_is)
{
    static const struct {
        struct task task;
        uint64_t from;
        int64_t ms;
        const char *text;
    } rows[] = {
        {{"check", NULL, 430, 1000}, 0, 1000, "check 43 % of 1.0 kB, 430 bytes/s, 2 s left"},
        {{"check", NULL, 516000000, 1200000000},
         0,
         1664,
         "check 43 % of 1.2 GB, 310 MB/s, 3 s left"},
        /* What was done before does not count for the rate. */
        {{"index", NULL, 600, 900}, 500, 1000, "index 66 % of 900 bytes, 100 bytes/s, 3 s left"},
        {{"send", "lines", 50, 12000}, 0, 1000, "send 0 % of 12.0k lines, 50 lines/s, 3 min left"},
        {{"send", "lines", 1, 2000}, 0, 1000, "send 0 % of 2.0k lines, 1 lines/s, 33 min left"},
        {{"read", NULL, 9, 9}, 0, 1000, "read 100 % of 9 bytes, 9 bytes/s, 0 s left"},
        {{"read", NULL, 0, 9}, 0, 5000, "read 0 % of 9 bytes"},
        {{"read", NULL, 5, 9}, 0, 0, "read 55 % of 9 bytes"},
        /* The size is unknown, or was wrong. */
        {{"sync", NULL, 0, 0}, 0, 12345, "sync 12 s"},
        {{"import", NULL, 10, 9}, 0, 999, "import 0 s"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf line = BUF_INIT(BUF_SMALL);

        progress_add_text(&line, &rows[i].task, rows[i].from, rows[i].ms);
        CHECK_STR(buf_c(&line), rows[i].text);
        buf_release(&line);
    }
}
