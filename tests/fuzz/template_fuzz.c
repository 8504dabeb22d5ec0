/*
 * template: what has no braces comes out as it was, and a value is found whole in what comes out.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/chat/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct template_var vars[] = {{STR("input"), STR("{{a}} {{{{"), false, false},
                                  {STR("a"), STR_NONE, false, false}};
    struct template_head head = {.rest = {(const char *)data, size}};
    struct buf out = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    int more;

    while ((more = template_head_next(&head, &e)) > 0)
        if (head.key.n == 0)
            abort();
    if (more == 0 && template_expand(head.rest, head.line + 1, vars, 2, &out, &e) == 0) {
        if (!str_find(head.rest, STR("{{")) && !str_eq(buf_str(&out), head.rest))
            abort();
        if (vars[0].used && !str_find(buf_str(&out), vars[0].value))
            abort();
    }
    err_release(&e);
    buf_release(&out);
    return 0;
}
