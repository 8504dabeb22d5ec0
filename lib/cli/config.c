#include "chathist/cli/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/cli/palette.h"

/* The configuration key and the environment variable of each setting. History and session have no
 * key, because they are chosen for the moment. Programs that may be run have no variable, because
 * tools of a directory often set variables. */
static const struct {
    const char *key;
    const char *variable;
} settings[SETTING_COUNT] = {
    [SETTING_MODEL] = {"model", "CHAT_MODEL"},
    [SETTING_PROVIDER] = {"provider", "CHAT_PROVIDER"},
    [SETTING_BASE_URL] = {"base_url", "CHAT_BASE_URL"},
    [SETTING_API_KEY_COMMAND] = {"api_key_command", "CHAT_API_KEY_COMMAND"},
    [SETTING_SESSION_TIMEOUT] = {"session_timeout", "CHAT_SESSION_TIMEOUT"},
    [SETTING_MAX_MESSAGES] = {"max_messages", "CHAT_MAX_MESSAGES"},
    [SETTING_MAX_BYTES] = {"max_bytes", "CHAT_MAX_BYTES"},
    [SETTING_MAX_INPUT_TOKENS] = {"max_input_tokens", "CHAT_MAX_INPUT_TOKENS"},
    [SETTING_FSYNC] = {"fsync", "CHAT_FSYNC"},
    [SETTING_HISTORY_COPY] = {"history_copy", NULL},
    [SETTING_ACCEPT_DELETIONS] = {"accept_deletions", NULL},
    [SETTING_REMOTE] = {"remote", "CHAT_REMOTE"},
    [SETTING_TOOLS] = {"tools", NULL},
    [SETTING_ALLOW_TOOLS] = {"allow_tools", NULL},
    [SETTING_MCP] = {"mcp", NULL},
    [SETTING_PRICES] = {"prices", NULL},
    [SETTING_IMPORT] = {"import", NULL},
    [SETTING_IMPORT_EXCLUDE] = {"import.exclude", NULL},
    [SETTING_EMBED_MODEL] = {"embed.model", NULL},
    [SETTING_EMBED_BASE_URL] = {"embed.base_url", NULL},
    [SETTING_EFFORT] = {"effort", NULL},
    [SETTING_REASONING] = {"reasoning", NULL},
    [SETTING_STORE_REASONING] = {"store_reasoning", NULL},
    [SETTING_MAX_TOKENS] = {"max_tokens", NULL},
    [SETTING_CONNECT_TIMEOUT] = {"connect_timeout", NULL},
    [SETTING_FIRST_BYTE_TIMEOUT] = {"first_byte_timeout", NULL},
    [SETTING_IDLE_TIMEOUT] = {"idle_timeout", NULL},
    [SETTING_TOOL_TIMEOUT] = {"tool_timeout", NULL},
    [SETTING_RETRIES] = {"retries", NULL},
    [SETTING_MAX_ITERATIONS] = {"max_iterations", NULL},
    [SETTING_OPTION] = {"option", NULL},
    [SETTING_HEADER] = {"header", NULL},
    [SETTING_HEADER_COMMAND] = {"header_command", NULL},
    [SETTING_SERVICE] = {"service", NULL},
    [SETTING_COLOR] = {"color", NULL},
    [SETTING_SESSION] = {NULL, "CHAT_SESSION"},
    [SETTING_HISTORY] = {NULL, "CHAT_HISTORY"},
};

#define SESSION_TIMEOUT_MS ((int64_t)30 * 60 * 1000)
#define MAX_MESSAGES 20
#define MAX_BYTES 102400
#define MAX_INPUT_TOKENS 32000

const char *config_env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static void set_setting(struct config *c, enum setting s, const char *value, enum config_from from)
{
    if (!value)
        return;
    free(c->value[s]);
    c->value[s] = mem_text(value);
    c->from[s] = from;
}

void config_set(struct config *c, enum setting s, const char *value)
{
    set_setting(c, s, value, CONFIG_FLAG);
}

void config_set_preset(struct config *c, enum setting s, const char *value)
{
    set_setting(c, s, value, CONFIG_PRESET);
}

/* ---- files that decide for the user ---- */

static int refuse(const char *path, const char *why, struct err *e)
{
    return err_set(e, ERR_USAGE, "cannot use '%s': %s", path, why);
}

static int check_dir_of(const char *file, struct err *e)
{
    char *dir = path_parent(file);
    const char *why = owner_fault_at(dir, OWNER_USER_OR_ROOT);
    int result = why ? refuse(dir, why, e) : 0;

    free(dir);
    return result;
}

int config_check_owner(const char *file, struct err *e)
{
    const char *why;

    if (check_dir_of(file, e) < 0)
        return -1;
    why = owner_fault_at(file, OWNER_USER_OR_ROOT);
    return why ? refuse(file, why, e) : 0;
}

int config_open(const char *file, struct err *e)
{
    struct stat st;
    const char *why;
    int fd;

    if (check_dir_of(file, e) < 0)
        return -1;
    /* Opening a FIFO would wait for a writer. */
    if (stat(file, &st) == 0 && S_ISFIFO(st.st_mode))
        return err_set(e, ERR_USAGE, "cannot read '%s': is a FIFO", file);
    fd = file_open_input(file, e);
    if (fd < 0)
        return -1;
    why = owner_fault(fd, OWNER_USER_OR_ROOT);
    if (!why)
        return fd;
    close(fd);
    return refuse(file, why, e);
}

/* ---- the user configuration ---- */

const char *config_named(const struct config *c, enum setting s, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < c->named_count; i++)
        if (c->named[i].setting == s && strcmp(c->named[i].name, name) == 0)
            value = c->named[i].value;
    return value;
}

/* The name of a server has no dot; the name of its property follows a dot. */
static bool is_mcp_key(struct str name)
{
    struct str property = name;

    str_cut(&property, '.');
    return !property.p || str_eq_c(property, "cwd") || str_eq_c(property, "url") ||
           str_eq_c(property, "instructions") || str_eq_c(property, "tools") ||
           (str_starts(property, STR("header.")) && property.n > 7) ||
           (str_starts(property, STR("header_command.")) && property.n > 15);
}

static void add_named(struct config *c, enum setting s, struct str name, struct str value,
                      bool service)
{
    if (value.n == 0 && s != SETTING_OPTION)
        return;
    c->named = mem_grow(c->named, &c->named_cap, c->named_count + 1, sizeof *c->named);
    c->named[c->named_count++] =
        (struct config_named){s, mem_copy(name.p, name.n), mem_copy(value.p, value.n), service};
}

/* Stores `service.NAME.PROPERTY`. A service has the settings of any provider (`header.NAME.…`).
 * Unknown properties are stored as well: they show that the user means a service (server_choose).
 * Returns false for them. */
static bool set_service(struct config *c, struct str name, struct str value)
{
    static const enum setting shared[] = {SETTING_OPTION, SETTING_HEADER, SETTING_HEADER_COMMAND};
    struct str property = name, service = str_cut(&property, '.'), rest = property;
    struct str setting = str_cut(&rest, '.');
    struct buf own = BUF_INIT(BUF_SMALL);
    enum setting s = SETTING_SERVICE;
    bool known = property.p && (str_eq_c(property, "base_url") || str_eq_c(property, "wire"));

    if (property.p && str_eq_c(property, "key_command")) {
        s = SETTING_API_KEY_COMMAND;
        name = service;
    }
    for (size_t i = 0; rest.n > 0 && i < sizeof shared / sizeof *shared; i++)
        if (str_eq_c(setting, settings[shared[i]].key)) {
            s = shared[i];
            buf_addf(&own, "%.*s.%.*s", (int)service.n, service.p, (int)rest.n, rest.p);
            name = buf_str(&own);
        }
    add_named(c, s, name, value, true);
    buf_release(&own);
    return known || s != SETTING_SERVICE;
}

void config_key(const struct config_named *named, struct buf *out)
{
    const char *key = settings[named->setting].key;
    struct str rest = str_of(named->name), service = str_cut(&rest, '.');

    if (!named->service || named->setting == SETTING_SERVICE)
        buf_addf(out, "%s.%s", key, named->name);
    else if (named->setting == SETTING_API_KEY_COMMAND)
        buf_addf(out, "service.%s.key_command", named->name);
    else
        buf_addf(out, "service.%.*s.%s.%.*s", (int)service.n, service.p, key, (int)rest.n, rest.p);
}

/* Stores a value with the key `KEY.NAME`. Returns false if no setting has such keys. */
static bool set_named(struct config *c, struct str key, struct str value)
{
    static const enum setting named[] = {SETTING_API_KEY_COMMAND, SETTING_MCP,
                                         SETTING_OPTION,          SETTING_HEADER,
                                         SETTING_HEADER_COMMAND,  SETTING_SERVICE};
    struct str name = key, own = str_cut(&name, '.');

    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (!str_eq_c(own, settings[named[i]].key) || name.n == 0)
            continue;
        if (named[i] == SETTING_MCP && !is_mcp_key(name))
            return false;
        if (named[i] == SETTING_SERVICE)
            return set_service(c, name, value);
        add_named(c, named[i], name, value, false);
        return true;
    }
    return false;
}

/* Returns whether the value is a command for the shell with the shell's quotes and comments. */
static bool is_command(enum setting s)
{
    return s == SETTING_API_KEY_COMMAND || s == SETTING_MCP;
}

/* Sets the colour of a role. Returns 1, 0 if it is another key, or -1 with *e set. */
static int set_role_color(struct str key, struct str value, const char *file, size_t number,
                          struct err *e)
{
    struct str role = key, own = str_cut(&role, '.');
    int result = str_eq_c(own, settings[SETTING_COLOR].key) ? palette_set(role, value) : -1;

    if (result == 0 || result == -1)
        return result == 0;
    return err_set(
        e, ERR_USAGE,
        "bad value '%.*s' for %.*s in '%s', line %zu: a number below 256, the name of one "
        "of the first 8 colours, or default is expected",
        (int)value.n, value.p, (int)key.n, key.p, file, number);
}

static int read_setting(struct config *c, struct str line, const char *file, size_t number,
                        struct err *e)
{
    struct str rest = str_trim(line), key;
    const char *fault;
    char *value;
    bool secret;
    int color;

    if (rest.n == 0 || rest.p[0] == '#')
        return 0;
    key = str_trim(str_cut(&rest, '='));
    if (!rest.p || key.n == 0)
        return err_set(e, ERR_USAGE, "cannot read '%s': line %zu is not 'key = value'", file,
                       number);
    rest = str_trim(rest);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (!settings[i].key || i >= SETTING_OPTION || !str_eq_c(key, settings[i].key))
            continue;
        if (rest.n == 0)
            return 0;
        /* The whole value is in quotes, as in TOML or a shell. */
        if (!is_command((enum setting)i) && rest.n >= 2 &&
            (rest.p[0] == '"' || rest.p[0] == '\'') && rest.p[rest.n - 1] == rest.p[0])
            return err_set(e, ERR_USAGE,
                           "cannot read '%s': line %zu: the value of %s takes no quotes", file,
                           number, settings[i].key);
        fault = is_command((enum setting)i) ? NULL : text_value_fault(rest);
        if (fault)
            return err_set(e, ERR_USAGE, "cannot read '%s': line %zu: bad value of %s: %s", file,
                           number, settings[i].key, fault);
        value = mem_copy(rest.p, rest.n);
        set_setting(c, (enum setting)i, value, CONFIG_FILE);
        c->line[i] = number;
        free(value);
        return 0;
    }
    color = set_role_color(key, rest, file, number, e);
    if (color != 0)
        return color < 0 ? -1 : 0;
    if (set_named(c, key, rest))
        return 0;
    /* `api_key` is the most likely unknown key, so it gets an explanation. */
    rest = key;
    secret = str_starts(key, STR("api_key")) || str_ends(str_cut(&rest, '.'), STR("_api_key"));
    warnf("unknown key '%.*s' in '%s', line %zu%s", (int)key.n, key.p, file, number,
          secret ? ": API keys belong in keys/PROVIDER beside this file, or use api_key_command"
                 : "");
    return 0;
}

static int read_config_text(const char *file, struct buf *text, struct err *e)
{
    struct stat st = {0};
    int fd, result;

    if (stat(file, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0
                                                   : err_sys(e, errno, "cannot open '%s'", file);
    fd = config_open(file, e);
    if (fd < 0)
        return -1;
    result = file_read_all(fd, text);
    if (result < 0)
        err_sys(e, errno, "cannot read '%s'", file);
    close(fd);
    return result < 0 ? -1 : text_clean(text, file, e);
}

static int read_file(struct config *c, struct err *e)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str rest;
    char *file;
    int result;

    if (!c->config_home)
        return 0;
    file = path_join(c->config_home, "chathist/config");
    result = read_config_text(file, &text, e);
    if (result < 0)
        e->kind = ERR_USAGE;
    rest = buf_str(&text);
    for (size_t number = 1; result == 0 && rest.p; number++)
        result = read_setting(c, str_cut(&rest, '\n'), file, number, e);
    buf_release(&text);
    free(file);
    return result;
}

/* Replaces the last line of the text that sets the key, or adds one. */
static void set_config_line(struct buf *text, const char *key, struct str value)
{
    struct str rest = buf_str(text), found = STR_NONE, line;
    struct buf changed = BUF_INIT(SIZE_MAX);

    while (rest.p) {
        struct str part;

        line = part = str_cut(&rest, '\n');
        if (str_eq_c(str_trim(str_cut(&part, '=')), key) && part.p)
            found = line;
    }
    if (!found.p)
        found = (struct str){buf_c(text) + text->len, 0};
    buf_add(&changed, text->data, (size_t)(found.p - buf_c(text)));
    if (changed.len > 0 && changed.data[changed.len - 1] != '\n')
        buf_add_byte(&changed, '\n');
    buf_addf(&changed, "%s = %.*s", key, (int)value.n, value.p);
    if (found.n == 0)
        buf_add_byte(&changed, '\n');
    buf_add(&changed, found.p + found.n, text->len - (size_t)(found.p + found.n - buf_c(text)));
    buf_release(text);
    *text = changed;
}

int config_file_set(const char *key, struct str value, struct err *e)
{
    char *file = config_user_file("config"), *dir = file ? path_parent(file) : NULL;
    char *real = file ? path_real(file, NULL) : NULL; /* the file may be a link */
    struct buf text = BUF_INIT(BUF_LINE);
    int result = -1;

    if (!file)
        err_set(e, ERR_FAILURE, "cannot store '%s': there is no home directory", key);
    else if (file_make_dirs(dir, e) >= 0 && read_config_text(file, &text, e) >= 0) {
        set_config_line(&text, key, value);
        result = file_replace(real ? real : file, buf_str(&text), e);
    }
    buf_release(&text);
    free(real);
    free(file);
    free(dir);
    return result;
}

/* Paths and commands may have any byte. */
static int read_variable(struct config *c, enum setting s, struct err *e)
{
    const char *text = config_env(settings[s].variable), *fault;
    bool any = is_command(s) || s == SETTING_HISTORY || s == SETTING_SESSION;
    struct str trimmed = any || !text ? STR_NONE : text_value(text);
    char *value;

    if (any || trimmed.n == 0) {
        set_setting(c, s, text, CONFIG_ENVIRONMENT);
        return 0;
    }
    fault = text_value_fault(trimmed);
    if (fault)
        return err_set(e, ERR_USAGE, "bad value '%s' for %s: %s", text, settings[s].variable,
                       fault);
    value = mem_copy(trimmed.p, trimmed.n);
    set_setting(c, s, value, CONFIG_ENVIRONMENT);
    free(value);
    return 0;
}

/* ---- where the user's things are ---- */

static char *home_dir(void)
{
    const char *home = config_env("HOME");
    const struct passwd *pw;

    if (!home) {
        pw = getpwuid(geteuid());
        home = pw ? pw->pw_dir : NULL;
    }
    return home && *home == '/' ? mem_text(home) : NULL;
}

/* Returns an XDG base directory, or NULL if it is not set and the home directory is unknown. The
 * specification says that a relative value is ignored. */
static char *xdg_dir(const struct config *c, const char *variable, const char *fallback)
{
    const char *dir = config_env(variable);

    if (dir && *dir == '/')
        return mem_text(dir);
    return c->home ? path_join(c->home, fallback) : NULL;
}

/* Returns the working directory, or NULL if it was removed. */
static char *working_dir(void)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    size_t size = 256;

    for (;; size *= 2) {
        char *room = buf_room(&b, size);

        if (room && getcwd(room, size))
            return b.data;
        if (!room || errno != ERANGE) {
            buf_release(&b);
            return NULL;
        }
    }
}

int config_load(struct config *c, struct err *e)
{
    *c = (struct config){.cwd = working_dir(), .now = time_now()};
    c->home = home_dir();
    c->data_home = xdg_dir(c, "XDG_DATA_HOME", ".local/share");
    c->state_home = xdg_dir(c, "XDG_STATE_HOME", ".local/state");
    c->config_home = xdg_dir(c, "XDG_CONFIG_HOME", ".config");
    c->cache_home = xdg_dir(c, "XDG_CACHE_HOME", ".cache");
    if (read_file(c, e) < 0)
        return -1;
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings[i].variable && read_variable(c, (enum setting)i, e) < 0)
            return -1;
    return 0;
}

char *config_user_file(const char *name)
{
    struct config c = {.home = home_dir()};
    char *config_home = xdg_dir(&c, "XDG_CONFIG_HOME", ".config");
    char *dir = config_home ? path_join(config_home, "chathist") : NULL;
    char *file = dir ? path_join(dir, name) : NULL;

    free(c.home);
    free(config_home);
    free(dir);
    return file;
}

void config_release(struct config *c)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        free(c->value[i]);
    for (size_t i = 0; i < c->named_count; i++) {
        free(c->named[i].name);
        free(c->named[i].value);
    }
    free(c->named);
    free(c->home);
    free(c->cwd);
    free(c->data_home);
    free(c->state_home);
    free(c->config_home);
    free(c->cache_home);
}

const char *config_command_dir(const struct config *c)
{
    struct stat st;

    return c->home && stat(c->home, &st) == 0 && S_ISDIR(st.st_mode) ? c->home : "/";
}

/* ---- settings with a meaning ---- */

static int bad_value(const struct config *c, enum setting s, const char *wanted, struct err *e)
{
    if (c->from[s] == CONFIG_FILE)
        return err_set(e, ERR_USAGE,
                       "bad value '%s' for %s in '%s/chathist/config', line %zu: %s is expected",
                       c->value[s], settings[s].key, c->config_home, c->line[s], wanted);
    return err_set(e, ERR_USAGE, "bad value '%s' for %s: %s is expected", c->value[s],
                   settings[s].variable ? settings[s].variable : settings[s].key, wanted);
}

int config_limit(const struct config *c, enum setting s, size_t *n, struct err *e)
{
    const char *text = c->value[s];

    *n = s == SETTING_MAX_MESSAGES ? MAX_MESSAGES
         : s == SETTING_MAX_BYTES  ? MAX_BYTES
                                   : MAX_INPUT_TOKENS;
    if (!text || !*text || opt_read_count(str_of(text), n))
        return 0;
    return bad_value(c, s, "a number or 'all'", e);
}

int config_session_timeout(const struct config *c, int64_t *ms, struct err *e)
{
    const char *text = c->value[SETTING_SESSION_TIMEOUT];

    *ms = SESSION_TIMEOUT_MS;
    if (!text)
        return 0;
    if (strcmp(text, "off") == 0)
        *ms = -1;
    else if (!time_parse_span(str_of(text), ms))
        return bad_value(c, SETTING_SESSION_TIMEOUT, "a time such as 90s, 30min, 2h, or 'off'", e);
    return 0;
}

int config_effort(const struct config *c, const char **level, struct err *e)
{
    const char *text = c->value[SETTING_EFFORT];

    *level = text && *text ? text : NULL;
    if (!*level || opt_choice(EFFORT_WORDS, str_of(text)) <= opt_choice(EFFORT_WORDS, STR("max")))
        return 0;
    return bad_value(c, SETTING_EFFORT, EFFORT_LEVELS, e);
}

int config_max_tokens(const struct config *c, int64_t *n, struct err *e)
{
    const char *text = c->value[SETTING_MAX_TOKENS];
    size_t read = 0;

    *n = 0;
    if (!text || !*text)
        return 0;
    if (!opt_read_count(str_of(text), &read) || read > INT32_MAX)
        return bad_value(c, SETTING_MAX_TOKENS, "a number", e);
    if (read == 0)
        return bad_value(c, SETTING_MAX_TOKENS, "a number of at least 1", e);
    *n = (int64_t)read;
    return 0;
}

int config_milliseconds(const struct config *c, enum setting s, long *ms, struct err *e)
{
    const char *text = c->value[s];

    if (!text || !*text || opt_read_milliseconds(str_of(text), ms))
        return 0;
    return bad_value(c, s, "a time such as 30s or 5min", e);
}

int config_number(const struct config *c, enum setting s, unsigned *n, struct err *e)
{
    const char *text = c->value[s];

    if (!text || !*text || opt_read_number(str_of(text), n))
        return 0;
    return bad_value(c, s, "a number", e);
}

int config_switch(const struct config *c, enum setting s, bool *on, struct err *e)
{
    const char *text = c->value[s];
    bool off = text && (strcmp(text, "0") == 0 || strcmp(text, "off") == 0);

    if (text && !off && strcmp(text, "1") != 0 && strcmp(text, "on") != 0)
        return bad_value(c, s, "1, 0, on or off", e);
    if (text)
        *on = !off;
    return 0;
}

char *config_scan_cache(const struct config *c)
{
    return c->cache_home ? path_join(c->cache_home, "chathist/scan") : NULL;
}

int config_fresh(const struct config *c, bool *fresh, struct err *e)
{
    const char *text = c->value[SETTING_IMPORT];

    *fresh = text && strcmp(text, "fresh") == 0;
    if (text && !*fresh && strcmp(text, "off") != 0)
        return bad_value(c, SETTING_IMPORT, "fresh or off", e);
    return 0;
}

/* Returns a path of the configuration, or NULL if it is neither absolute nor begins with `~/`. The
 * caller frees it. */
static char *user_path(const struct config *c, const char *path)
{
    if (*path == '/')
        return mem_text(path);
    return strncmp(path, "~/", 2) == 0 && c->home ? path_join(c->home, path + 2) : NULL;
}

static bool is_below(struct str path, const char *dir)
{
    struct str top = str_of(dir);

    while (top.n > 0 && top.p[top.n - 1] == '/')
        top.n--;
    return str_starts(path, top) && (path.n == top.n || path.p[top.n] == '/');
}

int config_excluded(const struct config *c, struct words *paths, struct err *e)
{
    const char *text = c->value[SETTING_IMPORT_EXCLUDE];
    struct words named = {0};
    int result = text ? words_split(&named, str_of(text), e) : 0;

    for (size_t i = 0; result == 0 && i < named.count; i++) {
        char *dir = user_path(c, named.at[i]), *real = dir ? path_real(dir, NULL) : NULL;

        if (!dir)
            result = bad_value(c, SETTING_IMPORT_EXCLUDE,
                               "a list of paths that begin with '/' or '~/'", e);
        else
            words_add(paths, str_of(dir));
        if (real)
            words_add(paths, str_of(real));
        free(dir);
        free(real);
    }
    words_release(&named);
    return result;
}

bool config_excludes(const struct words *paths, struct str path)
{
    for (size_t i = 0; i < paths->count; i++)
        if (is_below(path, paths->at[i]))
            return true;
    return false;
}

/* Returns the path of the file of prices; NULL with *e set; or NULL alone if no file is named and
 * the home directory is unknown. */
static char *prices_file(const struct config *c, struct err *e)
{
    const char *value = c->value[SETTING_PRICES];
    char *path;

    if (!value || !*value)
        return c->config_home ? path_join(c->config_home, "chathist/prices") : NULL;
    path = user_path(c, value);
    if (!path)
        bad_value(c, SETTING_PRICES, "a path that begins with '/' or '~/'", e);
    return path;
}

int config_prices(const struct config *c, const char *named, struct prices *p, struct err *e)
{
    bool wanted = named || (c->value[SETTING_PRICES] && *c->value[SETTING_PRICES]);
    struct buf text = BUF_INIT(BUF_LINE);
    char *file = named ? mem_text(named) : prices_file(c, e);
    int result = wanted ? -1 : 0;

    if (file && named)
        result = file_read(file, &text, e) < 0 ? -1 : 1;
    else if (file)
        result = file_read_state(file, &text, e);
    if (result == 0 && wanted)
        result = err_set(e, ERR_USAGE, "cannot read '%s': No such file or directory", file);
    if (result < 0)
        e->kind = ERR_USAGE;
    if (result > 0 &&
        (text_clean(&text, file, e) < 0 || prices_read(p, buf_str(&text), file, e) < 0))
        result = -1;
    buf_release(&text);
    free(file);
    return result;
}
