#include "chathist/chat/server.h"

#include <stdlib.h>

#include "test.h"

/* Only what a test sets is in the environment. */
static void clear(void)
{
    static const char *const variables[] = {
        "OPENAI_API_KEY",     "OPENAI_BASE_URL",  "CHAT_API_KEY",       "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL", "OLLAMA_HOST",      "OPENROUTER_API_KEY", "GROQ_API_KEY",
        "MISTRAL_API_KEY",    "DEEPSEEK_API_KEY", "GEMINI_API_KEY"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
}

static void set(struct config *c, enum setting s, const char *value, enum config_from from)
{
    config_set(c, s, value);
    c->from[s] = from;
}

/* Chooses with this configuration, which is released. */
static int choose(struct server *s, struct config *c, struct err *e)
{
    int result = server_choose(s, c, e);

    config_release(c);
    return result;
}

static void check(struct config *c, const char *provider, const char *model, const char *url,
                  const char *key)
{
    struct server s;
    struct err e = ERR_INIT;

    if (CHECK_INT(choose(&s, c, &e), 0)) {
        CHECK_STR(s.provider->name, provider);
        CHECK_STR(s.model, model);
        CHECK_STR(s.base_url, url);
        CHECK_STR(s.key, key);
    } else {
        CHECK_STR(err_text(&e), "");
    }
    err_release(&e);
    server_release(&s);
}

static void check_refused(struct config *c, enum err_kind kind, const char *message)
{
    struct server s;
    struct err e = ERR_INIT;

    CHECK_INT(choose(&s, c, &e), -1);
    CHECK_INT(e.kind, kind);
    CHECK_STR(err_text(&e), message);
    err_release(&e);
    server_release(&s);
}

TEST(a_key_in_the_environment_is_enough)
{
    struct config c = {0};

    clear();
    setenv("OPENAI_API_KEY", "k", 1);
    set(&c, SETTING_MODEL, "m", CONFIG_ENVIRONMENT);
    check(&c, "openai", "m", "https://api.openai.com/v1", "k");
}

TEST(a_model_can_name_its_provider)
{
    struct config c = {0};

    clear();
    set(&c, SETTING_MODEL, "ollama:llama3:8b", CONFIG_ENVIRONMENT);
    check(&c, "ollama", "llama3:8b", "http://127.0.0.1:11434/v1", NULL);
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "ollama", CONFIG_ENVIRONMENT);
    set(&c, SETTING_MODEL, "qwen:7b", CONFIG_FLAG);
    check(&c, "ollama", "qwen:7b", "http://127.0.0.1:11434/v1", NULL);
}

TEST(the_more_explicit_of_model_and_provider_counts)
{
    struct config c = {0};

    clear();
    set(&c, SETTING_PROVIDER, "openai", CONFIG_ENVIRONMENT);
    set(&c, SETTING_MODEL, "echo:x", CONFIG_FLAG);
    check(&c, "echo", "x", NULL, NULL);
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "ollama", CONFIG_FLAG);
    set(&c, SETTING_MODEL, "openai:gpt", CONFIG_ENVIRONMENT);
    check(&c, "ollama", NULL, "http://127.0.0.1:11434/v1", NULL);
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "ollama", CONFIG_FLAG);
    set(&c, SETTING_MODEL, "openai:gpt", CONFIG_FLAG);
    check_refused(&c, ERR_USAGE, "model 'openai:gpt' is not one of provider 'ollama'");
}

TEST(an_unknown_provider_is_refused)
{
    struct config c = {0};

    clear();
    set(&c, SETTING_PROVIDER, "acme", CONFIG_FLAG);
    check_refused(&c, ERR_USAGE,
                  "unknown provider 'acme': known are openai, anthropic, openrouter, groq, "
                  "mistral, deepseek, gemini, ollama, llamacpp, echo");
}

TEST(base_urls_by_precedence)
{
    struct config c = {0};

    clear();
    setenv("OPENAI_BASE_URL", "http://env/v1", 1);
    set(&c, SETTING_BASE_URL, "http://file/v1", CONFIG_FILE);
    check(&c, "openai", NULL, "http://env/v1", NULL);
    c = (struct config){0};
    set(&c, SETTING_BASE_URL, "http://chat/v1", CONFIG_ENVIRONMENT);
    check(&c, "openai", NULL, "http://chat/v1", NULL);
    unsetenv("OPENAI_BASE_URL");
    c = (struct config){0};
    set(&c, SETTING_BASE_URL, "http://file/v1", CONFIG_FILE);
    check(&c, "openai", NULL, "http://file/v1", NULL);
}

TEST(keys_stay_with_their_provider)
{
    struct config c = {0};

    clear();
    setenv("OPENAI_API_KEY", "openai key", 1);
    setenv("CHAT_API_KEY", "chat key", 1);
    set(&c, SETTING_PROVIDER, "ollama", CONFIG_FLAG);
    check(&c, "ollama", NULL, "http://127.0.0.1:11434/v1", NULL);
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "ollama", CONFIG_FLAG);
    set(&c, SETTING_BASE_URL, "https://mine/v1", CONFIG_ENVIRONMENT);
    check(&c, "ollama", NULL, "https://mine/v1", "chat key");
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "echo", CONFIG_FLAG);
    check(&c, "echo", NULL, NULL, NULL);
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "openai", CONFIG_FLAG);
    check(&c, "openai", NULL, "https://api.openai.com/v1", "chat key");
    clear();
}

TEST(no_key_is_said_before_anything_is_asked)
{
    struct config c = {0};

    clear();
    setenv("ANTHROPIC_API_KEY", "not for this one", 1);
    set(&c, SETTING_PROVIDER, "openai", CONFIG_FLAG);
    check_refused(&c, ERR_USAGE, "no key for 'openai': set OPENAI_API_KEY or CHAT_API_KEY");
    clear();
}

TEST(a_host_of_ollama_is_a_configuration)
{
    struct config c = {0};

    clear();
    setenv("OLLAMA_HOST", "127.0.0.1:1", 1);
    check(&c, "ollama", NULL, "http://127.0.0.1:1/v1", NULL);
    clear();
}

TEST(a_key_alone_tells_the_provider)
{
    struct config c = {0};

    clear();
    setenv("ANTHROPIC_API_KEY", "key a", 1);
    check(&c, "anthropic", NULL, "https://api.anthropic.com", "key a");
    setenv("ANTHROPIC_BASE_URL", "http://mine", 1);
    check(&c, "anthropic", NULL, "http://mine", "key a");
    unsetenv("ANTHROPIC_API_KEY");
    check(&c, "anthropic", NULL, "http://mine", NULL);
    setenv("OPENAI_API_KEY", "key o", 1);
    check(&c, "openai", NULL, "https://api.openai.com/v1", "key o");
    set(&c, SETTING_MODEL, "anthropic:claude", CONFIG_ENVIRONMENT);
    check(&c, "anthropic", "claude", "http://mine", NULL);
    c = (struct config){0};
    unsetenv("OPENAI_API_KEY");
    /* A key for any server is for one of the usual kind. */
    setenv("ANTHROPIC_API_KEY", "key a", 1);
    setenv("CHAT_API_KEY", "key c", 1);
    check(&c, "openai", NULL, "https://api.openai.com/v1", "key c");
    set(&c, SETTING_PROVIDER, "anthropic", CONFIG_FLAG);
    check(&c, "anthropic", NULL, "http://mine", "key c");
    clear();
}

TEST(services_with_a_key_of_their_own)
{
    static const char *const services[][3] = {
        {"gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"},
        {"deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com"},
        {"mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"},
        {"groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"},
        {"openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"},
    };
    struct config c = {0};

    clear();
    /* Each counts before those that have a key already. */
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
        setenv(services[i][1], services[i][0], 1);
        check(&c, services[i][0], NULL, services[i][2], services[i][0]);
    }
    setenv("ANTHROPIC_API_KEY", "key a", 1);
    check(&c, "anthropic", NULL, "https://api.anthropic.com", "key a");
    set(&c, SETTING_MODEL, "mistral:a/b:c", CONFIG_ENVIRONMENT);
    check(&c, "mistral", "a/b:c", "https://api.mistral.ai/v1", "mistral");
    clear();
    c = (struct config){0};
    set(&c, SETTING_PROVIDER, "deepseek", CONFIG_FLAG);
    check_refused(&c, ERR_USAGE, "no key for 'deepseek': set DEEPSEEK_API_KEY or CHAT_API_KEY");
}

TEST(nothing_configured_and_no_probe)
{
    struct config c = {0};

    clear();
    set(&c, SETTING_PROVIDER, "none", CONFIG_ENVIRONMENT);
    check_refused(&c, ERR_USAGE,
                  "no model server is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY, "
                  "CHAT_BASE_URL or CHAT_PROVIDER, or try '-p echo' (it answers with your own "
                  "prompt)");
}

static void check_ollama_host(const char *host, const char *url)
{
    struct config c = {0};

    setenv("OLLAMA_HOST", host, 1);
    set(&c, SETTING_PROVIDER, "ollama", CONFIG_FLAG);
    check(&c, "ollama", NULL, url, NULL);
}

TEST(ollama_hosts)
{
    clear();
    check_ollama_host("10.0.0.1", "http://10.0.0.1:11434/v1");
    check_ollama_host("box:1234", "http://box:1234/v1");
    check_ollama_host("0.0.0.0", "http://127.0.0.1:11434/v1");
    check_ollama_host("0.0.0.0:99", "http://127.0.0.1:99/v1");
    check_ollama_host("https://box/", "https://box/v1");
    check_ollama_host("http://box:1/", "http://box:1/v1");
    check_ollama_host(":99", "http://127.0.0.1:99/v1");
    check_ollama_host("::1", "http://[::1]:11434/v1");
    check_ollama_host("[::1]:99", "http://[::1]:99/v1");
    check_ollama_host("[::1]", "http://[::1]:11434/v1");
    clear();
}

static void check_insecure(const char *url, const char *message)
{
    struct config c = {0};
    struct server s;
    struct err e = ERR_INIT;

    set(&c, SETTING_BASE_URL, url, CONFIG_FLAG);
    if (CHECK_INT(choose(&s, &c, &e), 0)) {
        CHECK_INT(server_check_key(&s, &e), message ? -1 : 0);
        CHECK_STR(err_text(&e), message ? message : "");
    }
    err_release(&e);
    server_release(&s);
}

TEST(a_key_in_the_clear_stays_on_this_machine)
{
    static const char *const fine[] = {"https://far/v1",      "HTTPS://far/v1",
                                       "http://localhost/v1", "http://LocalHost:1/",
                                       "http://a.localhost/", "http://127.0.0.1/v1",
                                       "http://127.9.9.9/v1", "http://[::1]:8080/v1"};
    static const struct {
        const char *url, *origin;
    } refused[] = {
        {"http://far/v1", "far:80"},
        {"HTTP://far:8080", "far:8080"},
        /* libcurl asks the DNS for a name that ends in a dot. */
        {"http://localhost./", "localhost.:80"},
        {"http://localhost.far/v1", "localhost.far:80"},
        {"http://notlocalhost/", "notlocalhost:80"},
        {"http://127.0.0.1.far/", "127.0.0.1.far:80"},
        {"http://128.0.0.1/", "128.0.0.1:80"},
        {"http://0.0.0.0/", "0.0.0.0:80"},
        {"http://[::2]/", "[::2]:80"},
        {"http://127.0.0.1@far/", "far:80"},
    };
    struct buf message = BUF_INIT(BUF_SMALL);

    clear();
    setenv("CHAT_API_KEY", "k", 1);
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        check_insecure(fine[i], NULL);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        buf_clear(&message);
        buf_addf(&message,
                 "refusing to send a key to '%s' over plain http: use https or --insecure",
                 refused[i].origin);
        check_insecure(refused[i].url, buf_c(&message));
    }
    clear();
    check_insecure("http://far/v1", NULL);
    buf_release(&message);
}
