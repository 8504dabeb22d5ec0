/*
 * The index of another machine in a folder of hist-sync, of any bytes. The lines of the other
 * machines arrive in any case.
 */
#include <stdint.h>

#include "folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct merge_count count;

    if (!folder_path) {
        folder_make();
        /* The files that an index can name. */
        folder_write_segment("evil", FACT_LINE, STR(GOOD_LINE "x\n"));
        folder_write_segment("evil", FACT_DELETION, STR("{\"session_id\":\"s\",\"id\":\"x\"}\n"));
    }
    folder_write("evil", "index", (struct str){(const char *)data, size});
    (void)folder_sync(true, &count);
    demand(count.received == 1);
    return 0;
}
