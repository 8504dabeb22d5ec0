/*
 * The table of providers, and the meaning of an HTTP status.
 */
#include "test.h"

#include "chathist/llm/provider.h"

TEST(providers_are_found_by_name)
{
    size_t count = 0;

    for (const struct provider *const *p = provider_all(); *p; p++, count++) {
        CHECK(provider_find(str_of((*p)->name)) == *p);
        CHECK((*p)->request && (*p)->event && (*p)->whole);
        /* A provider without a server carries out the exchange itself and is never probed. */
        CHECK(((*p)->base_url == NULL) == ((*p)->exchange != NULL));
        CHECK((*p)->base_url || !(*p)->probe.path);
        if ((*p)->probe.path)
            CHECK(http_is_loopback((*p)->base_url) && !(*p)->needs_key);
    }
    CHECK(count >= 4);
    CHECK(provider_find(STR("openai")) != NULL);
    CHECK(provider_find(STR("echo")) != NULL);
    CHECK(provider_find(STR("OpenAI")) == NULL);
    CHECK(provider_find(STR("")) == NULL);
    CHECK(provider_find(STR("none")) == NULL);
}

static void check_split(const char *name, const char *provider, const char *model, int line)
{
    const struct provider *p = NULL;
    const char *m = NULL;

    provider_split(name, &p, &m);
    test_check_str(p ? p->name : NULL, provider, name, __FILE__, line);
    test_check_str(m, model, name, __FILE__, line);
}

TEST(a_model_name_may_begin_with_its_provider)
{
    check_split("openai:gpt-4o", "openai", "gpt-4o", __LINE__);
    check_split("ollama:llama3:8b", "ollama", "llama3:8b", __LINE__);
    check_split("llama3:8b", NULL, "llama3:8b", __LINE__);
    check_split("gpt-4o", NULL, "gpt-4o", __LINE__);
    check_split("echo:", "echo", "", __LINE__);
    check_split(":echo", NULL, ":echo", __LINE__);
    check_split("", NULL, "", __LINE__);
}
