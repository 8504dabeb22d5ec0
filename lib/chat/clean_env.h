/*
 * clean_env - the environment of what runs for the model, without keys.
 */
#ifndef CHATHIST_CHAT_CLEAN_ENV_H
#define CHATHIST_CHAT_CLEAN_ENV_H

/* Our environment without the variables that hold keys or say how to get one, and without any that
 * holds `key` (NULL: none is known). One of less than 8 characters is not looked for: it is no
 * secret, and would be part of many values. The caller frees the array, its strings are the
 * environment's. */
char **clean_env(const char *key);
/* Takes out of such an array what holds this key as well. */
void clean_env_more(char **env, const char *key);

#endif
