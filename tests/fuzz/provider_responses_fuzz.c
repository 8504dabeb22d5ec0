/* provider_responses: its events, whole answers and errors; what must hold is in provider.h. */
#include "provider.h"

#include "llm/provider_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_provider(&provider_responses, data, size);
}
