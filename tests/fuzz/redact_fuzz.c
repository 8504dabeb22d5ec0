/* A JSON value without a secret stays as it was, and with its secrets replaced it is JSON. */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/convert/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, value;
    static struct redactor *r;
    struct buf once = BUF_INIT(SIZE_MAX), twice = BUF_INIT(SIZE_MAX);

    if (!r)
        r = redactor_new(NULL);
    if (json_check(text, &value, NULL)) {
        if (!redact_json(r, value, &once) && !str_eq(buf_str(&once), value))
            abort();
        if (!json_check(buf_str(&once), &value, NULL))
            abort();
        redact_json(r, value, &twice);
        if (!json_check(buf_str(&twice), &value, NULL))
            abort();
    }
    buf_release(&once);
    buf_release(&twice);
    return 0;
}
