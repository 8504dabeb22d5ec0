/*
 * A segment of another machine in a folder of hist-sync, of any bytes, under the name that its
 * lines have: a first byte that is odd makes it one of deletions. What is taken is a history, and
 * synchronising once more takes nothing.
 */
#include <stdint.h>

#include "chathist/history/message.h"
#include "folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand_messages(struct str text)
{
    struct message m = MESSAGE_INIT;

    while (text.n > 0)
        demand(message_parse(&m, str_cut(&text, '\n')));
    message_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"h", "h.deleted", "h.session"};
    struct merge_count first, again;
    struct buf history, now;
    char *path = NULL;

    if (size == 0)
        return 0;
    folder_make();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path = scratch_path(names[i]);
        unlink(path);
        free(path);
    }
    folder_write_segment("evil", data[0] % 2 == 1 ? FACT_DELETION : FACT_LINE,
                         (struct str){(const char *)data + 1, size - 1});
    (void)folder_sync(false, &first);
    demand(first.received >= 1 || data[0] % 2 == 1);
    path = scratch_path("h");
    history = scratch_read(path);
    demand_messages(buf_str(&history));
    (void)folder_sync(false, &again);
    now = scratch_read(path);
    demand(again.received == 0 && again.deleted == 0 && again.sent == 0);
    demand(str_eq(buf_str(&history), buf_str(&now)));
    buf_release(&history);
    buf_release(&now);
    free(path);
    return 0;
}
