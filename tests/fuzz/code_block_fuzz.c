/*
 * code_block: what is found is no longer than the text and a newline, and ends with one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/terminal/markdown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = BUF_INIT(BUF_LINE);
    bool found = code_block_first((struct str){(const char *)data, size}, &out);

    if (!found && out.len > 0)
        abort();
    if (out.len > size + 1 || (out.len > 0 && out.data[out.len - 1] != '\n'))
        abort();
    buf_release(&out);
    return 0;
}
