#include "chathist/chat/server.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/cli/signals.h"
#include "chathist/llm/http.h"
#include "chathist/chat/model_cache.h"
#include "chathist/llm/models.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/provider_error.h"
#include "chat/secret_command.h"

/* The maximum number of models that a message names. */
#define NAMED_MODELS 5

/* ---- where a key comes from ---- */

/* Sets the source, unless it is set already or the value is empty. */
static void offer_key(struct key_source *s, enum key_kind kind, const char *value, const char *name)
{
    struct str text = str_of(value ? value : "");

    if (kind == KEY_VARIABLE)
        text = text_value(text.p);
    if (s->kind == KEY_NONE && text.n > 0)
        *s = (struct key_source){
            .kind = kind, .value = mem_copy(text.p, text.n), .name = mem_text(name)};
}

/* Returns the name under which the key of a provider is configured. */
static const char *key_name(const struct provider *p)
{
    return p->key_name ? p->key_name : p->name;
}

char *server_key_path(const struct config *c, const struct provider *p)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    char *path;

    buf_addf(&name, "chathist/keys/%s", key_name(p));
    path = c->config_home ? path_join(c->config_home, buf_c(&name)) : NULL;
    buf_release(&name);
    return path;
}

/* Returns the name of the provider's key file if it exists, else NULL. The caller frees it. */
static char *key_file(const struct config *c, const struct provider *p)
{
    char *file = server_key_path(c, p);
    struct stat st;

    if (file && lstat(file, &st) < 0) {
        free(file);
        file = NULL;
    }
    return file;
}

/* Finds where the key of a provider comes from. With `any`, keys that are not set for one provider
 * also apply. */
static void key_find(struct key_source *s, const struct config *c, const struct provider *p,
                     bool any)
{
    const char *command = c->value[SETTING_API_KEY_COMMAND];
    const char *const variables[] = {p->key_variable, p->shared_key_variable, p->token_variable};
    bool in_environment = c->from[SETTING_API_KEY_COMMAND] == CONFIG_ENVIRONMENT;
    struct buf own = BUF_INIT(BUF_SMALL);
    char *file = key_file(c, p);

    *s = (struct key_source){0};
    if (any)
        offer_key(s, KEY_VARIABLE, config_env("CHAT_API_KEY"), "CHAT_API_KEY");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (variables[i])
            offer_key(s, KEY_VARIABLE, config_env(variables[i]), variables[i]);
    if (any && in_environment)
        offer_key(s, KEY_COMMAND, command, "CHAT_API_KEY_COMMAND");
    for (size_t i = c->named_count; i-- > 0;) {
        const struct config_named *named = &c->named[i];

        if (named->setting != SETTING_API_KEY_COMMAND || strcmp(named->name, key_name(p)) != 0)
            continue;
        buf_clear(&own);
        config_key(named, &own);
        offer_key(s, KEY_COMMAND, named->value, buf_c(&own));
    }
    offer_key(s, KEY_FILE, file, "");
    if (any)
        offer_key(s, KEY_COMMAND, command, "api_key_command");
    buf_release(&own);
    free(file);
}

static bool key_in_configuration(const struct config *c, const struct provider *p)
{
    char *file = key_file(c, p);
    bool there = file || config_named(c, SETTING_API_KEY_COMMAND, key_name(p));

    free(file);
    return there;
}

static void key_release(struct key_source *s)
{
    secret_free(s->value);
    free(s->name);
}

enum key_kind server_key_kind(const struct config *c, const struct provider *p, struct buf *name)
{
    struct key_source s;
    enum key_kind kind;

    key_find(&s, c, p, p->needs_key || p->service);
    kind = s.kind;
    buf_clear(name);
    if (kind == KEY_VARIABLE)
        buf_add_c(name, s.name);
    key_release(&s);
    return kind;
}

static void key_check_names(const struct providers *known, const struct config *c)
{
    for (size_t i = 0; i < c->named_count; i++) {
        const char *name = c->named[i].name;
        const struct provider *p;

        if (c->named[i].setting != SETTING_API_KEY_COMMAND)
            continue;
        p = provider_find(known, str_of(name));
        if (!p)
            warnf("unknown provider '%s' in the user configuration: api_key_command.%s", name,
                  name);
        else if (strcmp(key_name(p), name) != 0)
            warnf("api_key_command.%s in the user configuration is not used: '%s' has the key of "
                  "'%s'",
                  name, name, key_name(p));
    }
}

/* ---- getting it ---- */

static int refuse_key_file(const char *file, const char *reason, struct err *e)
{
    return err_set(e, ERR_USAGE, "cannot use the key in '%s': %s", file, reason);
}

/* Returns 0 if the file belongs to the user and no other user has access to it. */
static int check_private(const char *file, const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return refuse_key_file(file, "not a regular file", e);
    if (st->st_uid != geteuid())
        return refuse_key_file(file, "it belongs to another user", e);
    if (st->st_mode & (S_IRWXG | S_IRWXO))
        return err_set(e, ERR_USAGE,
                       "cannot use the key in '%s': others have access to it (chmod 600 '%s')",
                       file, file);
    return 0;
}

static int read_key(const char *file, struct buf *text, struct err *e)
{
    struct stat st;
    int result, fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", file);
    if (fstat(fd, &st) < 0)
        result = err_sys(e, errno, "cannot open '%s'", file);
    else
        result = check_private(file, &st, e);
    if (result == 0 && file_read_all(fd, text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", file);
    close(fd);
    return result;
}

static char *from_file(const char *file, struct err *e)
{
    struct buf text;
    struct str line;
    char *key = NULL;

    secret_buf_init(&text);
    if (read_key(file, &text, e) < 0 || text_clean(&text, file, e) < 0) {
        if (e)
            e->kind = ERR_USAGE;
    } else {
        line = str_trim(buf_str(&text));
        if (secret_valid(line, false))
            key = mem_copy(line.p, line.n);
        else
            refuse_key_file(
                file, line.n == 0 ? "it is empty" : "white space or a control character in it", e);
    }
    secret_buf_release(&text);
    return key;
}

static char *key_fetch(const struct key_source *s, const char *command_dir, struct err *e)
{
    switch (s->kind) {
    case KEY_VARIABLE:
        return mem_text(s->value);
    case KEY_COMMAND:
        return secret_command_run(s->value, command_dir, s->name, false, e);
    case KEY_FILE:
        return from_file(s->value, e);
    case KEY_NONE:
        break;
    }
    err_set(e, ERR_USAGE, "no key is set");
    return NULL;
}

/* ---- the provider ---- */

static int unknown_provider(const struct providers *known, const char *name, struct err *e)
{
    struct nearest meant = {.typed = name};
    struct buf names = BUF_INIT(BUF_SMALL);
    int result;

    for (size_t i = 0; i < known->count; i++) {
        buf_addf(&names, "%s%s", names.len ? ", " : "", known->at[i]->name);
        nearest_offer(&meant, known->at[i]->name);
    }
    if (meant.name)
        result = err_set(e, ERR_USAGE, "unknown provider '%s': did you mean %s?", name, meant.name);
    else
        result = err_set(e, ERR_USAGE, "unknown provider '%s': known are %s", name, buf_c(&names));
    buf_release(&names);
    return result;
}

/* Checks --base-url for a provider without a server. If the provider was set with less priority
 * (`weak`), it is dropped together with its model. */
static int check_flags(struct server *s, const struct config *c, bool weak, struct err *e)
{
    if (!s->provider || s->provider->base_url || c->from[SETTING_BASE_URL] != CONFIG_FLAG)
        return 0;
    if (!weak)
        return err_set(e, ERR_USAGE, "provider '%s' asks no server: --base-url does not go with it",
                       s->provider->name);
    s->provider = NULL;
    if (c->from[SETTING_MODEL] != CONFIG_FLAG) {
        free(s->model);
        s->model = NULL;
    }
    return 0;
}

static int choose_url(struct server *s, const struct config *c, struct err *e);

bool server_has_whole_name(const struct server *s, const struct config *c, const char *model)
{
    struct model_list list;
    bool found = false;
    char *path;

    if (s->provider->probe.path || s->provider->local)
        return true;
    path = model_cache_path(c->cache_home, MODEL_CACHE_DIR, s->provider, s->base_url);
    model_cache_load(path, INT64_MAX, &list);
    for (size_t i = 0; !found && i < list.count; i++)
        found = strcmp(list.at[i], model) == 0;
    model_list_release(&list);
    free(path);
    return found;
}

/* Returns whether a model whose name begins like that of another provider is one of the provider
 * that the settings name. It is beside -p and where server_has_whole_name says so. */
static bool is_whole_name(const struct config *c, const struct provider *named, const char *model)
{
    struct server s = {.provider = named};
    bool whole;

    if (c->from[SETTING_PROVIDER] >= CONFIG_PRESET &&
        c->from[SETTING_MODEL] != c->from[SETTING_PROVIDER])
        return false;
    whole = c->from[SETTING_PROVIDER] == CONFIG_FLAG ||
            (choose_url(&s, c, NULL) == 0 && server_has_whole_name(&s, c, model));
    free(s.base_url);
    return whole;
}

/* Chooses the provider that the settings name. The prefix of a model's name counts before
 * SETTING_PROVIDER, unless it belongs to the name (is_whole_name) or the provider of a flag or a
 * template makes a weaker model void. s->provider stays NULL if no setting names one. */
static int choose_named(struct server *s, const struct config *c, struct err *e)
{
    const char *name = c->value[SETTING_PROVIDER], *model = c->value[SETTING_MODEL];
    const struct provider *of_model = NULL, *named = NULL;

    if (model)
        provider_split(s->known, model, &of_model, &model);
    if (model && !*model)
        return err_set(e, ERR_USAGE, "'%s' names no model", c->value[SETTING_MODEL]);
    if (name && strcmp(name, "none") != 0) {
        named = provider_find(s->known, str_of(name));
        if (!named)
            return unknown_provider(s->known, name, e);
    }
    if (named && of_model && named != of_model) {
        if (is_whole_name(c, named, c->value[SETTING_MODEL])) {
            of_model = NULL;
            model = c->value[SETTING_MODEL];
        } else if (c->from[SETTING_PROVIDER] >= CONFIG_PRESET &&
                   c->from[SETTING_MODEL] < c->from[SETTING_PROVIDER]) {
            of_model = NULL; /* the model belongs to another provider */
            model = NULL;
        } else if (c->from[SETTING_PROVIDER] == CONFIG_PRESET &&
                   c->from[SETTING_MODEL] == CONFIG_PRESET) {
            return err_set(e, ERR_USAGE, "model '%s' is not one of provider '%s'",
                           c->value[SETTING_MODEL], name);
        }
    }
    s->provider = of_model ? of_model : named;
    s->model = mem_text(model);
    return check_flags(
        s, c, c->from[s->provider == of_model ? SETTING_MODEL : SETTING_PROVIDER] != CONFIG_FLAG,
        e);
}

/* ---- the base URL ---- */

/* Returns whether it is `host:port`, and no IPv6 address. */
static bool has_port(struct str host)
{
    struct str rest = host;

    str_cut(&rest, ':');
    return rest.p && !str_find(rest, STR(":")) && !str_starts(host, STR("["));
}

/* Reads OLLAMA_HOST as Ollama does (its envconfig): without a scheme it is http on port 11434, with
 * one the port of the scheme. 0.0.0.0 is an address to listen on. Other variables contain a URL. */
static char *url_of_host(const char *value)
{
    static const struct str everywhere = STR("0.0.0.0");
    struct buf url = BUF_INIT(BUF_SMALL);
    const char *mark = strstr(value, "://");
    struct str host = str_of(mark ? mark + 3 : value);

    buf_add(&url, value, mark ? (size_t)(mark - value) : 0);
    buf_add_c(&url, mark ? "://" : "http://");
    while (host.n > 0 && host.p[host.n - 1] == '/')
        host.n--;
    if (str_starts(host, everywhere))
        host = (struct str){host.p + everywhere.n, host.n - everywhere.n};
    /* A port without a host is on the loopback address. `::1` has brackets in a URL. */
    if (str_starts(host, STR("::"))) {
        buf_addf(&url, "[%.*s]", (int)host.n, host.p);
        host.n = 0;
    } else if (host.n == 0 || host.p[0] == ':') {
        buf_add_c(&url, "127.0.0.1");
    }
    buf_add_str(&url, host);
    if (!mark && !str_find(host, STR("]:")) && !has_port(host) && !str_find(host, STR("/")))
        buf_add_c(&url, ":11434");
    return buf_detach(&url);
}

static char *url_of_variable(const struct provider *p)
{
    const char *set = p->base_variable ? config_env(p->base_variable) : NULL;
    struct str text = set ? text_value(set) : STR_NONE;
    char *value, *url;

    if (!set || text.n == 0)
        return NULL;
    value = mem_copy(text.p, text.n);
    if (strcmp(p->base_variable, "OLLAMA_HOST") != 0)
        return value;
    url = url_of_host(value);
    free(value);
    return url;
}

/* Refuses URLs that libcurl would accept with another meaning: after `http://` it takes a path for
 * a host. */
static int check_url(const char *url, struct err *e)
{
    struct buf origin = BUF_INIT(BUF_SMALL);
    const char *mark = strstr(url, "://"), *shown;
    bool ok = mark && mark[3] != '\0' && !strchr("/?#", mark[3]) && http_origin(url, &origin);

    buf_release(&origin);
    if (ok)
        return 0;
    /* The message leaves out the parts that may be secret: user, password and query. */
    shown = strrchr(url, '@');
    shown = shown ? shown + 1 : url;
    return err_set(e, ERR_USAGE,
                   "bad base URL '%s%.*s': not of the form http[s]://HOST[:PORT]/PATH",
                   shown > url ? "***@" : "", (int)strcspn(shown, "?#"), shown);
}

/* Chooses the base URL: flag and CHAT_BASE_URL, then the provider's own variable, the user
 * configuration, the provider's default. */
static int choose_url(struct server *s, const struct config *c, struct err *e)
{
    const char *set = c->value[SETTING_BASE_URL];

    if (!s->provider->base_url)
        return 0;
    if (set && c->from[SETTING_BASE_URL] != CONFIG_FILE)
        s->base_url = mem_text(set);
    if (!s->base_url)
        s->base_url = url_of_variable(s->provider);
    if (!s->base_url)
        s->base_url = mem_text(set && !s->provider->service ? set : s->provider->base_url);
    return check_url(s->base_url, e);
}

/* Returns whether the base URL is at the provider's own host, or at one of its regions, such as
 * eu.api.openai.com. */
static bool is_at_home(const struct provider *p, const char *base_url)
{
    struct buf own = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_SMALL);
    bool home;

    buf_add_byte(&own, '.');
    buf_add_byte(&origin, '.');
    home = http_origin(p->base_url, &own) && http_origin(base_url, &origin) &&
           str_ends(buf_str(&origin), buf_str(&own));
    buf_release(&own);
    buf_release(&origin);
    return home;
}

static void set_address(struct server *s)
{
    struct buf own = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_SMALL);

    if (http_origin(s->base_url, &origin) && http_origin(s->provider->base_url, &own) &&
        (s->provider->service || !str_eq(buf_str(&own), buf_str(&origin))))
        s->address = mem_copy(origin.data, origin.len);
    buf_release(&own);
    buf_release(&origin);
}

static bool ends_in_v1(const char *base_url)
{
    struct str base = {base_url, strcspn(base_url, "?#")};

    while (str_ends(base, STR("/")))
        base.n--;
    return str_ends(base, STR("/v1"));
}

/* ---- the key ---- */

/* Returns host and port of the server, without a user and password. */
static const char *server_origin(const struct server *s, struct buf *origin)
{
    return http_origin(s->base_url, origin) ? buf_c(origin) : s->provider->name;
}

/* Returns whether the base URL is the provider's own. */
static bool is_own_url(const struct server *s)
{
    return !s->base_url || strcmp(s->base_url, s->provider->base_url) == 0;
}

int server_need_key(const struct server *s, const struct config *c, struct err *e)
{
    const struct provider *p = s->provider;
    struct buf file = BUF_INIT(BUF_LINE);
    int result;

    if (!p->base_url || !p->needs_key || s->key_source.kind != KEY_NONE || !is_own_url(s) ||
        server_headers_hold_key(&s->headers))
        return 0;
    if (c->config_home)
        buf_addf(&file,
                 ", or let '" PROGRAM_PREFIX
                 "chathist key %s' store it in '%s/chathist/keys/%s' with mode 600",
                 key_name(p), c->config_home, key_name(p));
    if (p->service)
        result =
            err_set(e, ERR_USAGE, "no key for '%s': set CHAT_API_KEY or service.%s.key_command%s",
                    p->name, p->name, buf_c(&file));
    else
        result = err_set(e, ERR_USAGE, "no key for '%s': set %s or CHAT_API_KEY%s", p->name,
                         p->key_variable, buf_c(&file));
    buf_release(&file);
    return result;
}

/* A key without a provider is used for every server, except a keyless one that was not named. */
static void choose_key(struct server *s, const struct config *c)
{
    const struct provider *p = s->provider;

    if (!p->base_url)
        return;
    key_find(&s->key_source, c, p, p->needs_key || p->service || !is_own_url(s));
    if (s->key_source.kind == KEY_VARIABLE)
        s->key = key_fetch(&s->key_source, s->command_dir, NULL);
}

int server_try_key(struct server *s, struct err *e)
{
    if (!s->key && s->key_source.kind != KEY_NONE) {
        s->key = key_fetch(&s->key_source, s->command_dir, e);
        if (!s->key)
            return -1;
    }
    return server_headers_load(&s->headers, s->command_dir, e);
}

int server_load_key(struct server *s, struct err *e)
{
    int result = server_try_key(s, e);

    if (result < 0 && e && e->kind == ERR_SIGNAL)
        die_signal(interrupt_signal());
    return result;
}

int server_check_key(const struct server *s, struct err *e)
{
    struct buf origin = BUF_INIT(BUF_SMALL);

    bool header = s->key_source.kind == KEY_NONE;

    if ((header && s->headers.count == 0) || !s->base_url ||
        strncasecmp(s->base_url, "https:", 6) == 0 || http_is_loopback(s->base_url))
        return 0;
    err_set(e, ERR_USAGE, "refusing to send a %s to '%s' over plain http: use https or --insecure",
            header ? "header" : "key", server_origin(s, &origin));
    buf_release(&origin);
    return -1;
}

int server_check_key_file(const struct server *s, struct err *e)
{
    char *key;
    bool usable;

    if (s->key_source.kind != KEY_FILE)
        return 0;
    key = from_file(s->key_source.value, e);
    usable = key != NULL;
    secret_free(key);
    return usable ? 0 : -1;
}

/* ---- all together ---- */

/* Returns whether a server that a probe found at its usual port may be used. Any user can listen
 * there, so it must belong to this user or the system. */
static bool is_own_server(const struct provider *p, const char *url)
{
    struct buf origin = BUF_INIT(BUF_SMALL);
    const struct passwd *user;
    const char *port;
    uid_t uid;
    bool foreign;

    port = http_origin(url, &origin) ? strrchr(buf_c(&origin), ':') : NULL;
    foreign = port && owner_foreign_listener((unsigned)strtoul(port + 1, NULL, 10), &uid);
    if (foreign) {
        user = getpwuid(uid);
        warnf("not using the %s server at %s: it belongs to user %s (-p %s uses it)", p->name,
              buf_c(&origin), user ? user->pw_name : "without a name", p->name);
    }
    buf_release(&origin);
    return !foreign;
}

static bool is_set(const char *variable)
{
    return variable && config_env(variable);
}

/* The most servers that are looked for. */
#define PROBES_MAX 8

/* Returns the URL at which a server of the provider on this machine is looked for. The caller frees
 * it. */
static char *probe_url(const struct provider *p)
{
    char *url = url_of_variable(p);

    return url ? url : mem_text(p->base_url);
}

bool server_answers(const struct provider *p)
{
    char *url = probe_url(p);
    struct model_probe probe = {.provider = p, .base_url = url};

    models_probe(&probe, 1);
    free(url);
    return probe.there;
}

/* Looks for a server on the loopback ports. Returns false if none answers. One that another user
 * owns is passed over, and then the others are looked for again. */
static bool probe_loopback(struct server *s)
{
    struct model_probe probes[PROBES_MAX] = {0};
    char *urls[PROBES_MAX];
    size_t count = 0, i = 0;

    for (const struct provider *const *p = provider_all(); *p && count < PROBES_MAX; p++) {
        if (!(*p)->probe.path)
            continue;
        urls[count] = probe_url(*p);
        probes[count] = (struct model_probe){.provider = *p, .base_url = urls[count]};
        count++;
    }
    for (size_t from = 0; !s->found && from < count; from = i + 1) {
        models_probe(probes + from, count - from);
        for (i = from; i < count && !probes[i].there; i++)
            continue;
        s->found = i < count && (is_set(probes[i].provider->base_variable) ||
                                 is_own_server(probes[i].provider, probes[i].base_url));
    }
    if (s->found)
        s->provider = probes[i].provider;
    for (size_t k = 0; k < count; k++)
        free(urls[k]);
    return s->found;
}

/* Returns the provider that other settings imply: openai for a base URL or a key without a
 * provider, else the first provider that is set up in the environment, then in the
 * configuration. */
static const struct provider *implied_provider(const struct providers *known,
                                               const struct config *c)
{
    const char *command = c->value[SETTING_API_KEY_COMMAND];
    bool from_file = c->from[SETTING_API_KEY_COMMAND] == CONFIG_FILE;
    const struct provider *const *p;

    if (c->value[SETTING_BASE_URL] || config_env("CHAT_API_KEY") || (command && !from_file))
        return provider_find(known, STR("openai"));
    for (p = known->at; *p; p++)
        if ((*p)->needs_key && (is_set((*p)->base_variable) || is_set((*p)->key_variable) ||
                                is_set((*p)->token_variable)))
            return *p;
    for (p = known->at; *p; p++)
        if ((*p)->needs_key && key_in_configuration(c, *p))
            return *p;
    return command && *command ? provider_find(known, STR("openai")) : NULL;
}

/* Adds the beginning of the model's name to `typed`. Returns the provider that it probably means,
 * or NULL. */
static const char *meant_prefix(const struct server *s, struct buf *typed)
{
    const char *model = s->model, *colon = model ? strchr(model, ':') : NULL;
    struct nearest meant = {0};

    if (!colon)
        return NULL;
    buf_add(typed, model, (size_t)(colon - model));
    meant.typed = buf_c(typed);
    if (provider_find(s->known, buf_str(typed)))
        return NULL;
    for (const struct provider *const *p = s->known->at; *p; p++)
        nearest_offer(&meant, (*p)->name);
    return meant.name;
}

static int no_server(const struct server *s, const char *looked, struct err *e)
{
    struct buf typed = BUF_INIT(BUF_LINE), why = BUF_INIT(BUF_LINE);
    const char *meant = meant_prefix(s, &typed);
    int result;

    if (meant)
        buf_addf(&why, "'%s' is no provider (did you mean %s%s?), and ", buf_c(&typed), meant,
                 strchr(s->model, ':'));
    result = err_set(e, ERR_USAGE,
                     "%sno model server is configured%s: set OPENAI_API_KEY, ANTHROPIC_API_KEY, "
                     "CHAT_BASE_URL or CHAT_PROVIDER, run '" PROGRAM_PREFIX
                     "chathist setup', or try '-p echo' (it "
                     "answers with your own prompt)",
                     buf_c(&why), looked);
    buf_release(&typed);
    buf_release(&why);
    return result;
}

/* Returns the value of service.NAME.PROPERTY, or NULL. */
static const char *service_property(const struct config *c, struct str name, const char *property)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const char *value;

    buf_addf(&key, "%.*s.%s", (int)name.n, name.p, property);
    value = config_named(c, SETTING_SERVICE, buf_c(&key));
    buf_release(&key);
    return value;
}

int server_providers(struct providers *known, const struct config *c, struct err *e)
{
    providers_init(known);
    for (size_t i = 0; i < c->named_count; i++) {
        struct str rest = str_of(c->named[i].name), name = str_cut(&rest, '.');
        const struct provider *p = c->named[i].service ? provider_find(known, name) : NULL;
        struct buf key = BUF_INIT(BUF_SMALL);
        const char *url, *wire;

        if (!c->named[i].service || (p && p->service))
            continue;
        url = service_property(c, name, "base_url");
        wire = service_property(c, name, "wire");
        if (!url) {
            config_key(&c->named[i], &key);
            err_set(e, ERR_USAGE, "cannot use '%s': there is no service.%.*s.base_url", buf_c(&key),
                    (int)name.n, name.p);
            buf_release(&key);
            return -1;
        }
        if (check_url(url, e) < 0 || provider_add(known, name, url, wire ? wire : "openai-chat",
                                                  http_is_loopback(url), e) < 0)
            return -1;
    }
    return 0;
}

int server_choose(struct server *s, const struct providers *known, const struct config *c,
                  const struct ask_header *headers, size_t headers_count, struct err *e)
{
    const char *name = c->value[SETTING_PROVIDER];

    *s = (struct server){.known = known, .command_dir = mem_text(config_command_dir(c))};
    key_check_names(known, c);
    if (choose_named(s, c, e) < 0)
        return -1;
    if (!s->provider)
        s->provider = implied_provider(known, c);
    if (!s->provider && !name && !probe_loopback(s) && config_env("OLLAMA_HOST"))
        s->provider = provider_find(
            known, STR("ollama")); /* the message is then that Ollama does not answer */
    if (!s->provider)
        return no_server(s, name ? "" : ", and none answers on its usual port of this machine", e);
    if (choose_url(s, c, e) < 0)
        return -1;
    if (s->provider->elsewhere && !is_at_home(s->provider, s->base_url))
        s->provider = s->provider->elsewhere;
    if (s->provider->at_v1 && ends_in_v1(s->base_url))
        s->provider = s->provider->at_v1;
    if (s->base_url)
        set_address(s);
    if (server_headers_choose(&s->headers, known, c, s->provider, !s->found, headers, headers_count,
                              e) < 0)
        return -1;
    choose_key(s, c);
    return 0;
}

void server_report(const struct server *s)
{
    struct buf origin = BUF_INIT(BUF_SMALL), typed = BUF_INIT(BUF_LINE);
    /* Names of local models contain a colon (`llama3:8b`), so local servers are excepted. */
    bool local = s->provider->probe.path || s->provider->local;
    const char *meant = local ? NULL : meant_prefix(s, &typed);

    if (meant)
        warnf("'%s' is no provider: asking %s for the model '%s'; did you mean %s%s?",
              buf_c(&typed), s->provider->name, s->model, meant, strchr(s->model, ':'));
    buf_release(&typed);
    if (s->found)
        warnf("using %s at %s%s%s", s->provider->name, server_origin(s, &origin),
              s->model ? ", model " : "", s->model ? s->model : "");
    buf_release(&origin);
}

static int too_many(const struct server *s, const struct model_list *l, struct err *e)
{
    struct buf names = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_SMALL);
    int result;

    for (size_t i = 0; i < l->count && i < NAMED_MODELS; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", l->at[i]);
    result = err_set(e, ERR_USAGE, "no model is chosen: set CHAT_MODEL or use -m; '%s' has %s%s",
                     server_origin(s, &origin), l->count ? buf_c(&names) : "none",
                     l->count > NAMED_MODELS ? ", …" : "");
    buf_release(&names);
    buf_release(&origin);
    return result;
}

int server_choose_model(struct server *s, struct err *e)
{
    struct http_limits limits = {
        .connect_ms = HTTP_CONNECT_MS, .idle_ms = HTTP_CONNECT_MS, .cancel_fd = -1};
    struct ask ask = {.limits = limits};
    struct model_list list;
    int result;

    if (s->model)
        return 0;
    if (server_load_key(s, e) < 0)
        return -1;
    server_address(s, &ask);
    result = model_list_load(&list, s->provider, &ask, e);
    if (result == 0 && (list.count == 1 || (s->found && list.count > 0)))
        s->model = mem_text(list.at[0]);
    else if (result == 0)
        result = too_many(s, &list, e);
    model_list_release(&list);
    return result;
}

void server_trust(struct http_limits *limits)
{
    limits->ca_file = config_env("CURL_CA_BUNDLE");
    if (limits->ca_file)
        return;
    limits->ca_dir = config_env("SSL_CERT_DIR");
    limits->ca_file = config_env("SSL_CERT_FILE");
}

void server_address(const struct server *s, struct ask *ask)
{
    server_trust(&ask->limits);
    ask->model = s->model;
    ask->base_url = s->base_url;
    ask->address = s->address;
    ask->key = s->key;
    ask->headers = s->headers.ready;
    ask->headers_count = s->headers.ready_count;
    ask->key_from = s->key_source.kind == KEY_FILE ? s->key_source.value : s->key_source.name;
}

const char *const *server_secrets(struct server *s)
{
    size_t count = 0;

    free(s->secrets);
    s->secrets = mem_zalloc((s->headers.ready_count + 2) * sizeof *s->secrets);
    if (s->key)
        s->secrets[count++] = s->key;
    for (size_t i = 0; i < s->headers.ready_count; i++)
        if (s->headers.ready[i].secret)
            s->secrets[count++] = header_secret(&s->headers.ready[i]);
    return s->secrets;
}

void server_release(struct server *s)
{
    free(s->model);
    free(s->base_url);
    free(s->address);
    key_release(&s->key_source);
    secret_free(s->key);
    refusals_release(&s->refused);
    server_headers_release(&s->headers);
    free(s->command_dir);
    free(s->secrets);
}
