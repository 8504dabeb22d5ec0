/* Secrets in anything: text without one stays, and what is left of a JSON value is JSON. */
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
    if (!redact_text(r, text, &once) && !str_eq(buf_str(&once), text))
        abort();
    buf_clear(&once);
    if (json_check(text, &value, NULL)) {
        redact_json(r, value, &once);
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
