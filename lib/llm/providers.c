#include "chathist/llm/provider.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chathist/base/memory.h"
#include "chathist/llm/provider_anthropic.h"
#include "chathist/llm/provider_openai.h"
#include "llm/provider_wire.h"

static const struct provider *const built_in[] = {
    &provider_openai_own, &provider_responses, &provider_openai_chat, &provider_anthropic,
    &provider_openrouter, &provider_groq,      &provider_mistral,     &provider_deepseek,
    &provider_gemini,     &provider_ollama,    &provider_llamacpp,    &provider_lmstudio,
    &provider_vllm,       &provider_docker,    &provider_echo,        NULL,
};

const struct provider *const *provider_all(void)
{
    return built_in;
}

static void add_provider(struct providers *known, const struct provider *p)
{
    known->at = mem_grow(known->at, &known->cap, known->count + 2, sizeof(struct provider *));
    known->at[known->count++] = p;
    known->at[known->count] = NULL;
}

void providers_init(struct providers *known)
{
    *known = (struct providers){0};
    for (const struct provider *const *p = built_in; *p; p++)
        add_provider(known, *p);
}

void providers_release(struct providers *known)
{
    while (known->services) {
        struct service *s = known->services;

        known->services = s->next;
        free(s->name);
        free(s->base_url);
        free(s);
    }
    free(known->at);
    *known = (struct providers){0};
}

const struct provider *provider_find(const struct providers *known, struct str name)
{
    for (const struct provider *const *p = known->at; *p; p++)
        if (str_eq_c(name, (*p)->name))
            return *p;
    return NULL;
}

int provider_add(struct providers *known, struct str name, const char *base_url, const char *wire,
                 bool local, struct err *e)
{
    static const struct provider *const wires[] = {&provider_openai_chat, &provider_responses,
                                                   &provider_anthropic};
    const struct provider *like = NULL;
    struct service *s;

    for (size_t i = 0; i < sizeof wires / sizeof(struct provider *); i++)
        if (strcmp(wires[i]->name, wire) == 0)
            like = wires[i];
    if (!like)
        return err_set(e, ERR_USAGE,
                       "bad value '%s' for service.%.*s.wire: openai-chat, openai-responses or "
                       "anthropic is expected",
                       wire, (int)name.n, name.p);
    if (!tool_name_valid(name) || name.p[0] == '-' || str_eq_c(name, "none") ||
        provider_find(known, name))
        return err_set(e, ERR_USAGE, "cannot use service '%.*s': %s", (int)name.n, name.p,
                       provider_find(known, name) ? "a provider has that name"
                                                  : "a name has letters, digits, '-' and '_'");
    s = mem_zalloc(sizeof *s);
    *s = (struct service){*like, mem_copy(name.p, name.n), mem_text(base_url), known->services};
    known->services = s;
    s->provider.name = s->name;
    s->provider.base_url = s->base_url;
    s->provider.service = true;
    s->provider.local = local;
    s->provider.needs_key = strncasecmp(base_url, "https:", 6) == 0 && !local;
    s->provider.key_variable = s->provider.token_variable = NULL;
    s->provider.base_variable = s->provider.key_name = NULL;
    add_provider(known, &s->provider);
    return 0;
}

struct str tool_undated(struct str name)
{
    size_t n = name.n;

    while (n > 0 && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
        n--;
    return n > 1 && name.n - n == 8 && name.p[n - 1] == '_' ? (struct str){name.p, n - 1} : name;
}

int provider_check(const struct provider *p, const struct ask *ask, struct err *e)
{
    for (size_t i = 0; i < ask->context->count && !p->documents; i++) {
        const struct context_message *m = &ask->context->at[i];

        for (size_t k = 0; k < m->attachments_count; k++)
            if (!attachment_is_image(&m->attachments[k]))
                return err_set(e, ERR_USAGE,
                               "provider '%s' takes no PDF: convert '%s' to text, for example with "
                               "pdftotext(1)",
                               p->name, m->attachments[k].name);
    }
    if (ask->hosted_tools_count > 0 && !p->hosted_tools)
        return err_set(e, ERR_USAGE, "provider '%s' runs no tools itself: -T @%s cannot be used",
                       p->name, ask->hosted_tools[0]);
    for (size_t i = 0; i < ask->hosted_tools_count; i++)
        for (const char *const *tool = p->client_tools; tool && *tool; tool++)
            if (str_eq_c(tool_undated(str_of(ask->hosted_tools[i])), *tool))
                return err_set(e, ERR_USAGE,
                               "the tool '@%s' runs on this machine, and chat cannot carry it "
                               "out: '-T FILE' adds a program",
                               ask->hosted_tools[i]);
    if (ask->effort && ask->effort_from == ASK_FLAG && !p->effort_field)
        return err_set(e, ERR_USAGE, "provider '%s' does not reason: --effort cannot be used",
                       p->name);
    if (ask->max_tokens > 0 && ask->max_tokens_from == ASK_FLAG && !p->limit_field)
        return err_set(e, ERR_USAGE, "provider '%s' has no limit: --max-tokens cannot be used",
                       p->name);
    for (size_t i = 0; !p->base_url && i < ask->headers_count; i++)
        if (ask->headers[i].from == ASK_FLAG)
            return err_set(e, ERR_USAGE, "provider '%s' asks no server: --header cannot be used",
                           p->name);
    return 0;
}

size_t ask_tools_bytes(const struct ask *ask)
{
    size_t n = 0;

    for (size_t i = 0; i < ask->tools_count; i++)
        n += strlen(ask->tools[i]->name) + strlen(ask->tools[i]->description) +
             strlen(ask->tools[i]->parameters);
    return n;
}

void provider_split(const struct providers *known, const char *name,
                    const struct provider **provider, const char **model)
{
    const char *colon = strchr(name, ':');

    *provider = colon ? provider_find(known, (struct str){name, (size_t)(colon - name)}) : NULL;
    *model = *provider ? colon + 1 : name;
}
