/*
 * config - what the user has set: flag > environment > user configuration > default (chathist(5)).
 *
 * The user configuration is `${XDG_CONFIG_HOME:-~/.config}/chathist/config`: lines `key = value`,
 * `#` begins a comment line. A repository has no configuration that is read.
 */
#ifndef CHATHIST_CLI_CONFIG_H
#define CHATHIST_CLI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum setting {
    SETTING_MODEL,
    SETTING_PROVIDER,
    SETTING_BASE_URL,
    SETTING_API_KEY_COMMAND,
    SETTING_SESSION,
    SETTING_HISTORY,
    SETTING_SESSION_TIMEOUT,
    SETTING_MAX_MESSAGES,
    SETTING_MAX_BYTES,
    SETTING_FSYNC,
    SETTING_TOOLS,
    SETTING_ALLOW_TOOLS,
    SETTING_MCP,
    SETTING_COUNT,
};

/* Where a setting came from, the weakest first. */
enum config_from { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_PRESET, CONFIG_FLAG };

/* `api_key_command.NAME = …` or `mcp.NAME = …` of the user configuration. */
struct config_named {
    enum setting setting;
    char *name;
    char *value; /* not empty */
};

struct config {
    char *value[SETTING_COUNT]; /* NULL: not set anywhere; see config_set */
    enum config_from from[SETTING_COUNT];
    struct config_named *named; /* see config_named */
    size_t named_count, named_cap;
    char *home;
    char *cwd; /* NULL when it cannot be told, as after it was removed */
    char *data_home;
    char *state_home;
    char *config_home;
    char *cache_home;
};

/* Reads environment and user configuration. -1: an unreadable configuration, a line that is no
 * `key = value`; config_release is due then, too. Keys that are not known are warned of. */
int config_load(struct config *c, struct err *e);
void config_release(struct config *c);
/* A flag's value overrides; NULL leaves it. */
void config_set(struct config *c, enum setting s, const char *value);
/* A value that belongs to something that the user named by flag, a template for example; to be set
 * before the flags. */
void config_set_preset(struct config *c, enum setting s, const char *value);

/* The value that the user configuration has for this setting and that name alone; NULL: none. */
const char *config_named(const struct config *c, enum setting s, const char *name);
/* `${XDG_CONFIG_HOME:-~/.config}/chathist/NAME`, whether it exists or not, for programs that have
 * not loaded the configuration. The caller frees it; NULL when there is no home. */
char *config_user_file(const char *name);

/* Settings with a meaning; -1 and ERR_USAGE when the value has none. */
int config_session_timeout(const struct config *c, int64_t *ms, struct err *e); /* off: -1 */
int config_max_messages(const struct config *c, size_t *n, struct err *e);      /* all: SIZE_MAX */
int config_max_bytes(const struct config *c, size_t *n, struct err *e);
bool config_fsync(const struct config *c);

/* An environment variable that belongs to one provider or to no setting (OPENAI_API_KEY,
 * OLLAMA_HOST, …); NULL when unset or empty. */
const char *config_env(const char *name);

#endif
