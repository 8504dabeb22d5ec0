/*
 * tool_exec: a declaration of any bytes is refused with a reason, or gives a name that every
 * provider takes and parameters that are a JSON object of the type `object`.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/chat/tool_exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tool_exec t = {0};
    struct err e = ERR_INIT;
    struct buf type = BUF_INIT(BUF_SMALL);
    struct str value;

    if (tool_exec_declare(&t.tool, (struct str){(const char *)data, size}, &e) == 0) {
        if (!tool_name_valid(str_of(t.tool.name)) || !t.tool.description ||
            !json_check(str_of(t.tool.parameters), &value, NULL) ||
            !str_eq_c(json_text(json_get(value, "type"), &type), "object"))
            abort();
    } else if (e.kind != ERR_USAGE || *err_text(&e) == '\0') {
        abort();
    }
    buf_release(&type);
    tool_exec_release(&t);
    err_release(&e);
    return 0;
}
