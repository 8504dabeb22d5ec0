/*
 * schema: the first line is a schema, the rest a value. Every value is valid or not, with a
 * message, and so is the same value without its white space.
 */
#include <stdint.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/llm/schema.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1: valid; 0: not; -1: the bounds were reached. */
static int check(struct schema *s, struct str value)
{
    struct err e = ERR_INIT;
    int valid = schema_check(s, value, &e) == 0;

    demand(valid == (err_text(&e)[0] == '\0'));
    demand(e.kind == (valid ? ERR_NONE : ERR_FAILURE));
    if (strstr(err_text(&e), "too ") || strstr(err_text(&e), "limit"))
        valid = -1;
    err_release(&e);
    return valid;
}

static void try_schema(struct str text, struct str value)
{
    struct buf compact = BUF_INIT(SIZE_MAX);
    struct err e = ERR_INIT;
    struct schema *s = schema_new(text, &e);
    int valid;

    if (s) {
        valid = check(s, value);
        json_add_compact(&compact, value);
        demand(check(s, buf_str(&compact)) == valid);
    } else {
        demand(e.kind == ERR_USAGE && err_text(&e)[0] != '\0');
    }
    schema_free(s);
    err_release(&e);
    buf_release(&compact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, value;
    struct str schema = str_cut(&rest, '\n');

    if (json_check(rest, &value, NULL))
        try_schema(schema, value);
    else
        try_schema(schema, STR("{\"a\":[1,\"b\",null]}"));
    return 0;
}
