#include "chathist/llm/provider.h"

#include <string.h>

#include "chathist/llm/provider_anthropic.h"
#include "llm/provider_wire.h"
#include "chathist/llm/provider_openai.h"

static const struct provider *const providers[] = {
    &provider_openai,
    &provider_anthropic,
    &provider_openrouter,
    &provider_groq,
    &provider_mistral,
    &provider_deepseek,
    &provider_gemini,
    &provider_ollama,
    &provider_llamacpp,
    &provider_echo,
    NULL,
};

const struct provider *const *provider_all(void)
{
    return providers;
}

const struct provider *provider_find(struct str name)
{
    for (const struct provider *const *p = providers; *p; p++)
        if (str_eq_c(name, (*p)->name))
            return *p;
    return NULL;
}

void provider_split(const char *name, const struct provider **provider, const char **model)
{
    const char *colon = strchr(name, ':');

    *provider = colon ? provider_find((struct str){name, (size_t)(colon - name)}) : NULL;
    *model = *provider ? colon + 1 : name;
}
