#include "chat/clean_env.h"

#include <stdlib.h>

#include "chathist/base/process.h"
#include "chathist/base/mem.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/provider_error.h"

/* What is looked for; STR_NONE: nothing. */
static struct str secret_of(const char *key)
{
    struct str secret = str_trim(str_of(key));

    return secret.n < SECRET_MIN ? STR_NONE : secret;
}

char **clean_env(const char *key)
{
    const char **names = NULL;
    size_t count = 0, cap = 0;
    char **env;

    for (const struct provider *const *p = provider_all(); *p; p++) {
        if (!(*p)->key_variable)
            continue;
        names = mem_grow(names, &cap, count + 1, sizeof *names);
        names[count++] = (*p)->key_variable;
    }
    names = mem_grow(names, &cap, count + 3, sizeof *names);
    names[count++] = "CHAT_API_KEY";
    names[count++] = "CHAT_API_KEY_COMMAND";
    names[count] = NULL;
    env = child_env_without(names, secret_of(key));
    free(names);
    return env;
}

void clean_env_more(char **env, const char *key)
{
    struct str secret = secret_of(key);
    char **kept = env;

    for (; secret.n > 0 && *env; env++)
        if (!str_find(str_of(*env), secret))
            *kept++ = *env;
    if (secret.n > 0)
        *kept = NULL;
}
