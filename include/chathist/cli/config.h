/*
 * config - the settings of the user: flag > environment > user configuration > default
 * (chathist(5)). The user configuration is `${XDG_CONFIG_HOME:-~/.config}/chathist/config`: lines
 * `key = value`; `#` begins a comment line. Repositories have no configuration.
 */
#ifndef CHATHIST_CLI_CONFIG_H
#define CHATHIST_CLI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/process.h"
#include "chathist/history/prices.h"

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
    SETTING_MAX_INPUT_TOKENS,
    SETTING_FSYNC,
    SETTING_HISTORY_COPY,
    SETTING_ACCEPT_DELETIONS, /* of hist-sync */
    SETTING_REMOTE,           /* the place of hist-sync and of --remote */
    SETTING_TOOLS,
    SETTING_ALLOW_TOOLS,
    SETTING_MCP,
    SETTING_PRICES,
    SETTING_IMPORT,         /* config_fresh */
    SETTING_IMPORT_EXCLUDE, /* config_excludes */
    SETTING_EMBED_MODEL,    /* this and the next: cli/like.h */
    SETTING_EMBED_BASE_URL,
    SETTING_EFFORT,
    SETTING_REASONING,
    SETTING_STORE_REASONING,
    SETTING_MAX_TOKENS,
    SETTING_CONNECT_TIMEOUT, /* this and the five below: request_limits_load */
    SETTING_FIRST_BYTE_TIMEOUT,
    SETTING_IDLE_TIMEOUT,
    SETTING_TOOL_TIMEOUT,
    SETTING_RETRIES,
    SETTING_MAX_ITERATIONS,
    SETTING_OPTION, /* this and the following have only names, `option.NAME` */
    SETTING_HEADER,
    SETTING_HEADER_COMMAND,
    SETTING_SERVICE, /* `NAME.…`, but keys, headers and options are stored as those above */
    SETTING_COLOR,   /* `ROLE`; they go to cli/palette and are not stored */
    SETTING_COUNT,
};

/* Where a setting came from, the weakest first. */
enum config_from { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_PRESET, CONFIG_FLAG };

/* `KEY.NAME = …` of the user configuration, for api_key_command, mcp, option, header,
 * header_command and service. */
struct config_named {
    enum setting setting;
    char *name;
    char *value;  /* not empty, except for an option */
    bool service; /* the user wrote `service.…` (config_key) */
};

struct config {
    char *value[SETTING_COUNT]; /* NULL: not set anywhere; see config_set */
    enum config_from from[SETTING_COUNT];
    size_t line[SETTING_COUNT]; /* the line of the user configuration, if it came from there */
    struct config_named *named; /* see config_named */
    size_t named_count, named_cap;
    char *home;
    char *cwd; /* NULL if it is unknown, for example because it was removed */
    char *data_home;
    char *state_home;
    char *config_home;
    char *cache_home;
    int64_t now; /* microseconds since 1970, when it was loaded: the clock of this run */
};

/* Reads the environment and the user configuration, and warns about unknown keys. Returns 0, or -1
 * with *err set to ERR_USAGE if the configuration cannot be read, can be written by other users
 * (config_open), or has a line that is not `key = value` without quotes. The caller calls
 * config_release in either case. */
int config_load(struct config *c, struct err *e);
void config_release(struct config *c);
/* A flag's value overrides; NULL leaves it. */
void config_set(struct config *c, enum setting s, const char *value);
/* A value that belongs to something that the user named by flag, a template for example; to be set
 * before the flags. */
void config_set_preset(struct config *c, enum setting s, const char *value);

/* The value that the user configuration has for this setting and that name alone; NULL: none. */
const char *config_named(const struct config *c, enum setting s, const char *name);
/* Adds the key as the user wrote it, for messages. */
void config_key(const struct config_named *named, struct buf *out);
/* Writes `KEY = VALUE` into the user configuration: in the place of the last line with that key,
 * else as a new line. Everything else in the file stays. Returns 0, or -1 with *err set, also if
 * the file is a link: the user keeps it elsewhere. */
int config_file_set(const char *key, struct str value, struct err *e);
/* `${XDG_CONFIG_HOME:-~/.config}/chathist/NAME`, whether it exists or not, for programs that have
 * not loaded the configuration. The caller frees it; NULL without a home directory. */
char *config_user_file(const char *name);

/* The directory in which commands of the configuration run: the home directory, or `/` without
 * one. In the working directory, which may be a repository of other people, launchers such as
 * npx and `python3 -m` would run what the repository brings. */
const char *config_command_dir(const struct config *c);

/* Opens a file that decides for the user, as configuration and templates do, for reading. Returns
 * the descriptor, or -1 with ERR_USAGE if it is a FIFO, or if it, or its directory, could have been
 * written by a user other than this one and root (base/owner). */
int config_open(const char *file, struct err *e);
/* Returns 0 if config_open would trust the file, or if it does not exist. For programs, which need
 * not be readable. */
int config_check_owner(const char *file, struct err *e);

/* Each of these reads one setting. Returns 0, or -1 with *err set to ERR_USAGE if its value is
 * bad. */
int config_session_timeout(const struct config *c, int64_t *ms, struct err *e); /* off: -1 */
/* max_messages, max_bytes or max_input_tokens; all: SIZE_MAX. */
int config_limit(const struct config *c, enum setting s, size_t *n, struct err *e);
/* How much models reason, one of EFFORT_WORDS. NULL: not set. */
int config_effort(const struct config *c, const char **level, struct err *e);
/* The most tokens of a response. 0: not set. */
int config_max_tokens(const struct config *c, int64_t *n, struct err *e);
/* A time in milliseconds, a number, or a switch. If it is not set, the value stays. */
int config_milliseconds(const struct config *c, enum setting s, long *ms, struct err *e);
int config_number(const struct config *c, enum setting s, unsigned *n, struct err *e);
int config_switch(const struct config *c, enum setting s, bool *on, struct err *e);
/* The path of the cache of hist-import --scan (cli/import_cache.h), whose modification time says
 * when all places were scanned; NULL without a directory for caches. The caller frees it. */
char *config_scan_cache(const struct config *c);
/* import = fresh: programs that read histories bring in new conversations first. */
int config_fresh(const struct config *c, bool *fresh, struct err *e);
/* Adds the paths that import.exclude names, as written and without links. No scan imports the
 * conversations of these places, and no agent sees them. Returns 0; or -1 with *err set to
 * ERR_USAGE if the setting is no list of absolute paths. */
int config_excluded(const struct config *c, struct words *paths, struct err *e);
/* Returns whether a path is one of these, or below one. */
bool config_excludes(const struct words *paths, struct str path);
/* Reads the file of prices: `named` unless that is NULL, else the one that the user configuration
 * names, else `prices` beside it if that exists. Returns 1, 0 without such a file, or -1 with *err
 * set to ERR_USAGE. */
int config_prices(const struct config *c, const char *named, struct prices *p, struct err *e);

#define EFFORT_WORDS "none|minimal|low|medium|high|xhigh|max"
#define EFFORT_LEVELS "none, minimal, low, medium, high, xhigh or max"

/* An environment variable that belongs to one provider or to no setting (OPENAI_API_KEY,
 * OLLAMA_HOST, …); NULL when unset or empty. */
const char *config_env(const char *name);

#endif
