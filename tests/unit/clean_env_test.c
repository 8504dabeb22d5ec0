#include "chathist/chat/tools.h"

#include <stdlib.h>

#include "test.h"

static bool has(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return true;
    return false;
}

TEST(keys_are_left_out)
{
    static const char *const keys[] = {"CHAT_API_KEY", "CHAT_API_KEY_COMMAND", "OPENAI_API_KEY",
                                       "ANTHROPIC_API_KEY"};
    char **env;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        setenv(keys[i], "x", 1);
    setenv("BASIS", "x", 1);
    setenv("COPY", "Bearer k1234567", 1);
    env = clean_env((const char *[]){"k1234567\n", NULL});
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK(!has(env, keys[i]));
    CHECK(has(env, "BASIS"));
    CHECK(!has(env, "COPY"));
    free(env);
    env = clean_env((const char *[]){"k123456", NULL});
    CHECK(has(env, "COPY"));
    free(env);
    env = clean_env(NULL);
    CHECK(has(env, "COPY"));
    clean_env_more(env, NULL);
    clean_env_more(env, (const char *[]){"k123456", NULL});
    CHECK(has(env, "COPY"));
    clean_env_more(env, (const char *[]){"x-234567890", "k1234567", NULL});
    CHECK(!has(env, "COPY"));
    CHECK(has(env, "BASIS"));
    free(env);
}
