#include "chathist/chat/server.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
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

struct row {
    const char *env; /* NAME=VALUE, separated by blanks */
    /* settings, and where each comes from */
    const char *set_provider;
    enum config_from provider_from;
    const char *set_model;
    enum config_from model_from;
    const char *set_url;
    enum config_from url_from;
    /* what is chosen, or the error */
    const char *provider, *model, *url, *key, *error;
};

static void set(struct config *c, enum setting s, const char *value, enum config_from from)
{
    config_set(c, s, value);
    c->from[s] = from;
}

static void set_env(const char *env)
{
    struct str rest = str_of(env);

    clear();
    while (rest.n > 0) {
        struct str value = str_cut(&rest, ' '), name = str_cut(&value, '=');
        char *n = mem_copy(name.p, name.n), *v = mem_copy(value.p, value.n);

        setenv(n, v, 1);
        free(n);
        free(v);
    }
}

static void check(const struct row *r)
{
    struct config c = {0};
    struct providers known;
    struct server s;
    struct err e = ERR_INIT;

    set_env(r->env);
    set(&c, SETTING_PROVIDER, r->set_provider, r->provider_from);
    set(&c, SETTING_MODEL, r->set_model, r->model_from);
    set(&c, SETTING_BASE_URL, r->set_url, r->url_from);
    providers_init(&known);
    if (server_choose(&s, &known, &c, NULL, 0, &e) == 0 && server_need_key(&s, &c, &e) == 0) {
        CHECK_STR(s.provider->name, r->provider);
        CHECK_STR(s.model, r->model);
        CHECK_STR(s.base_url, r->url);
        CHECK_STR(s.key, r->key);
        CHECK(!r->error);
    } else {
        CHECK_INT(e.kind, ERR_USAGE);
        CHECK_STR(err_text(&e), r->error);
    }
    config_release(&c);
    err_release(&e);
    server_release(&s);
    providers_release(&known);
    clear();
}

#define FLAG(x) x, CONFIG_FLAG
#define ENV(x) x, CONFIG_ENVIRONMENT
#define IN_FILE(x) x, CONFIG_FILE
#define UNSET NULL, CONFIG_DEFAULT
#define OLLAMA "http://127.0.0.1:11434"
#define OPENAI "https://api.openai.com/v1"
#define ANTHROPIC "https://api.anthropic.com"
#define GEMINI "https://generativelanguage.googleapis.com/v1beta/openai"
#define REFUSED(message) NULL, NULL, NULL, NULL, message
#define CHOSEN(provider, model, url, key) provider, model, url, key, NULL

TEST(provider_model_url_and_key)
{
    static const struct row rows[] = {
        {"OPENAI_API_KEY=k", UNSET, ENV("m"), UNSET, CHOSEN("openai", "m", OPENAI, "k")},
        {"OPENAI_API_KEY=k", UNSET, ENV("openai-chat:m"), UNSET,
         CHOSEN("openai-chat", "m", OPENAI, "k")},
        {"OPENAI_API_KEY=k OPENAI_BASE_URL=http://env/v1", UNSET, ENV("openai-responses:m"), UNSET,
         CHOSEN("openai-responses", "m", "http://env/v1", "k")},
        /* A model can name its provider; the more explicit of the two counts. */
        {"", UNSET, ENV("ollama:llama3:8b"), UNSET, CHOSEN("ollama", "llama3:8b", OLLAMA, NULL)},
        {"", ENV("ollama"), FLAG("qwen:7b"), UNSET, CHOSEN("ollama", "qwen:7b", OLLAMA, NULL)},
        {"", ENV("openai"), FLAG("echo:x"), UNSET, CHOSEN("echo", "x", NULL, NULL)},
        {"", FLAG("ollama"), ENV("openai:gpt"), UNSET, CHOSEN("ollama", NULL, OLLAMA, NULL)},
        {"", FLAG("ollama"), FLAG("openai:gpt"), UNSET,
         CHOSEN("ollama", "openai:gpt", OLLAMA, NULL)},
        {"", FLAG("acme"), UNSET, UNSET,
         REFUSED("unknown provider 'acme': known are openai, openai-responses, openai-chat, "
                 "anthropic, openrouter, groq, "
                 "mistral, deepseek, gemini, ollama, llamacpp, lmstudio, vllm, "
                 "docker, echo")},
        /* base URLs by precedence */
        {"OPENAI_BASE_URL=http://env/v1", UNSET, UNSET, IN_FILE("http://file/v1"),
         CHOSEN("openai", NULL, "http://env/v1", NULL)},
        {"OPENAI_BASE_URL=http://env/v1", UNSET, UNSET, ENV("http://chat/v1"),
         CHOSEN("openai", NULL, "http://chat/v1", NULL)},
        {"", UNSET, UNSET, IN_FILE("http://file/v1"),
         CHOSEN("openai", NULL, "http://file/v1", NULL)},
        /* Keys stay with their provider. */
        {"OPENAI_API_KEY=o CHAT_API_KEY=c", FLAG("ollama"), UNSET, UNSET,
         CHOSEN("ollama", NULL, OLLAMA, NULL)},
        {"OPENAI_API_KEY=o CHAT_API_KEY=c", FLAG("ollama"), UNSET, ENV("https://mine/v1"),
         CHOSEN("ollama", NULL, "https://mine/v1", "c")},
        {"OPENAI_API_KEY=o CHAT_API_KEY=c", FLAG("echo"), UNSET, UNSET,
         CHOSEN("echo", NULL, NULL, NULL)},
        {"OPENAI_API_KEY=o CHAT_API_KEY=c", FLAG("openai"), UNSET, UNSET,
         CHOSEN("openai", NULL, OPENAI, "c")},
        {"ANTHROPIC_API_KEY=a", FLAG("openai"), UNSET, UNSET,
         REFUSED("no key for 'openai': set OPENAI_API_KEY or CHAT_API_KEY")},
        {"", FLAG("deepseek"), UNSET, UNSET,
         REFUSED("no key for 'deepseek': set DEEPSEEK_API_KEY or CHAT_API_KEY")},
        /* What is set in the environment implies the provider. */
        {"OLLAMA_HOST=127.0.0.1:1", UNSET, UNSET, UNSET,
         CHOSEN("ollama", NULL, "http://127.0.0.1:1", NULL)},
        {"ANTHROPIC_API_KEY=a", UNSET, UNSET, UNSET, CHOSEN("anthropic", NULL, ANTHROPIC, "a")},
        {"ANTHROPIC_API_KEY=a ANTHROPIC_BASE_URL=http://mine", UNSET, UNSET, UNSET,
         CHOSEN("anthropic", NULL, "http://mine", "a")},
        {"ANTHROPIC_BASE_URL=http://mine", UNSET, UNSET, UNSET,
         CHOSEN("anthropic", NULL, "http://mine", NULL)},
        {"ANTHROPIC_BASE_URL=http://mine OPENAI_API_KEY=o", UNSET, UNSET, UNSET,
         CHOSEN("openai", NULL, OPENAI, "o")},
        {"ANTHROPIC_BASE_URL=http://mine OPENAI_API_KEY=o", UNSET, ENV("anthropic:claude"), UNSET,
         CHOSEN("anthropic", "claude", "http://mine", NULL)},
        {"ANTHROPIC_API_KEY=a CHAT_API_KEY=c", UNSET, UNSET, UNSET,
         CHOSEN("openai", NULL, OPENAI, "c")},
        {"ANTHROPIC_API_KEY=a CHAT_API_KEY=c", FLAG("anthropic"), UNSET, UNSET,
         CHOSEN("anthropic", NULL, ANTHROPIC, "c")},
        /* services with a key of their own, in the order of the table of providers */
        {"GEMINI_API_KEY=g", UNSET, UNSET, UNSET, CHOSEN("gemini", NULL, GEMINI, "g")},
        {"GEMINI_API_KEY=g DEEPSEEK_API_KEY=d", UNSET, UNSET, UNSET,
         CHOSEN("deepseek", NULL, "https://api.deepseek.com", "d")},
        {"DEEPSEEK_API_KEY=d MISTRAL_API_KEY=m", UNSET, UNSET, UNSET,
         CHOSEN("mistral", NULL, "https://api.mistral.ai/v1", "m")},
        {"MISTRAL_API_KEY=m GROQ_API_KEY=q", UNSET, UNSET, UNSET,
         CHOSEN("groq", NULL, "https://api.groq.com/openai/v1", "q")},
        {"GROQ_API_KEY=q OPENROUTER_API_KEY=r", UNSET, UNSET, UNSET,
         CHOSEN("openrouter", NULL, "https://openrouter.ai/api/v1", "r")},
        {"OPENROUTER_API_KEY=r ANTHROPIC_API_KEY=a", UNSET, UNSET, UNSET,
         CHOSEN("anthropic", NULL, ANTHROPIC, "a")},
        {"ANTHROPIC_API_KEY=a MISTRAL_API_KEY=m", UNSET, ENV("mistral:a/b:c"), UNSET,
         CHOSEN("mistral", "a/b:c", "https://api.mistral.ai/v1", "m")},
        {"", ENV("none"), UNSET, UNSET,
         REFUSED("no model server is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY, "
                 "CHAT_BASE_URL or CHAT_PROVIDER, run 'chathist setup', or try '-p echo' (it "
                 "answers with your own prompt)")},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
}

TEST(ollama_hosts)
{
    static const char *const hosts[][2] = {
        {"OLLAMA_HOST=10.0.0.1", "http://10.0.0.1:11434"},
        {"OLLAMA_HOST=box:1234", "http://box:1234"},
        {"OLLAMA_HOST=0.0.0.0", OLLAMA},
        {"OLLAMA_HOST=0.0.0.0:99", "http://127.0.0.1:99"},
        {"OLLAMA_HOST=https://box/", "https://box"},
        {"OLLAMA_HOST=http://box:1/", "http://box:1"},
        {"OLLAMA_HOST=:99", "http://127.0.0.1:99"},
        {"OLLAMA_HOST=::1", "http://[::1]:11434"},
        {"OLLAMA_HOST=[::1]:99", "http://[::1]:99"},
        {"OLLAMA_HOST=box/v1", "http://box/v1"},
        {"OLLAMA_HOST=[::1]", "http://[::1]:11434"},
    };

    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct row r = {hosts[i][0], FLAG("ollama"), UNSET, UNSET,
                        CHOSEN("ollama", NULL, hosts[i][1], NULL)};

        check(&r);
    }
}

static void check_insecure(const char *url, const char *message)
{
    struct config c = {0};
    struct providers known;
    struct server s;
    struct err e = ERR_INIT;

    set(&c, SETTING_BASE_URL, url, CONFIG_FLAG);
    providers_init(&known);
    if (CHECK_INT(server_choose(&s, &known, &c, NULL, 0, &e), 0)) {
        CHECK_INT(server_check_key(&s, &e), message ? -1 : 0);
        CHECK_STR(err_text(&e), message ? message : "");
    }
    config_release(&c);
    err_release(&e);
    server_release(&s);
    providers_release(&known);
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
