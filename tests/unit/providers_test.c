/*
 * The table of providers, and the meaning of an HTTP status.
 */
#include "test.h"

#include "chathist/llm/provider.h"

TEST(providers_are_found_by_name)
{
    struct providers known;
    size_t count = 0;

    providers_init(&known);
    for (const struct provider *const *p = provider_all(); *p; p++, count++) {
        CHECK(provider_find(&known, str_of((*p)->name)) == *p);
        CHECK((*p)->request && (*p)->event && (*p)->whole);
        /* A provider without a server carries out the exchange itself and is never probed. */
        CHECK(((*p)->base_url == NULL) == ((*p)->exchange != NULL));
        CHECK((*p)->base_url || !(*p)->probe.path);
        if ((*p)->probe.path)
            CHECK(http_is_loopback((*p)->base_url) && !(*p)->needs_key);
    }
    CHECK(count >= 4);
    CHECK(provider_find(&known, STR("openai")) != NULL);
    CHECK(provider_find(&known, STR("echo")) != NULL);
    CHECK(provider_find(&known, STR("OpenAI")) == NULL);
    CHECK(provider_find(&known, STR("")) == NULL);
    CHECK(provider_find(&known, STR("none")) == NULL);
    providers_release(&known);
}

static void check_split(const char *name, const char *provider, const char *model, int line)
{
    const struct provider *p = NULL;
    const char *m = NULL;
    struct providers known;

    providers_init(&known);
    provider_split(&known, name, &p, &m);
    test_check_str(p ? p->name : NULL, provider, name, __FILE__, line);
    test_check_str(m, model, name, __FILE__, line);
    providers_release(&known);
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
