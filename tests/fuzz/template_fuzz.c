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
    struct preset p = PRESET_INIT("template");
    struct buf out = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    buf_add(&p.text, data, size);
    if (preset_parse(&p, &e) == 0 && template_expand(p.body, p.line, vars, 2, &out, &e) == 0) {
        if (!str_find(p.body, STR("{{")) && !str_eq(buf_str(&out), p.body))
            abort();
        if (vars[0].used && !str_find(buf_str(&out), vars[0].value))
            abort();
    }
    preset_release(&p);
    err_release(&e);
    buf_release(&out);
    return 0;
}
