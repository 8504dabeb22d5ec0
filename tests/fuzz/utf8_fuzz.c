/*
 * utf8: repaired text is valid and stable, and folding keeps the number of code points. The first
 * byte says how many are counted off.
 */
#include <stdint.h>

#include "chathist/base/utf8.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf repaired = BUF_INIT(SIZE_MAX), other = BUF_INIT(SIZE_MAX);

    if (!size)
        return 0;

    struct str text = {(const char *)data + 1, size - 1};
    size_t valid = utf8_valid(text);

    utf8_add_repaired(&repaired, text);
    demand(utf8_valid(buf_str(&repaired)) == repaired.len);
    demand((valid == text.n) == str_eq(text, buf_str(&repaired)));
    demand(utf8_count(text) == utf8_count(buf_str(&repaired)));
    utf8_add_repaired(&other, buf_str(&repaired));
    demand(str_eq(buf_str(&repaired), buf_str(&other)));

    struct str first = utf8_first(text, data[0]);

    demand(first.n <= text.n && utf8_count(first) <= data[0]);
    buf_clear(&other);
    utf8_add_folded(&other, buf_str(&repaired));
    demand(utf8_valid(buf_str(&other)) == other.len);
    demand(utf8_count(buf_str(&other)) == utf8_count(buf_str(&repaired)));
    buf_release(&repaired);
    buf_release(&other);
    return 0;
}
