/*
 * messages: a text of any bytes gives a context that can be cut and settled; what is added is
 * never more than what the text can hold.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/llm/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct context c;

    context_init(&c);
    if (messages_add(&c, (struct str){(const char *)data, size}) > size || c.count > size)
        abort();
    context_begin_turn(&c);
    context_add_text(&c, ROLE_USER, STR("next"));
    context_cut(&c, 20, 1000);
    context_finish(&c);
    if (c.count == 0 || c.at[c.count - 1].role != ROLE_USER)
        abort();
    context_release(&c);
    return 0;
}
