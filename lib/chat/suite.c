#include "chathist/chat/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/chat/server.h"
#include "chathist/cli/options.h"
#include "chathist/history/session.h"
#include "chathist/llm/http.h"

/* The column in which values begin. */
#define VALUE_COLUMN 18

static const struct {
    const char *name, *purpose;
} programs[] = {
    {"chat", "talk to a language model"},
    {"hist-new", "start a session and print its id"},
    {"hist-sessions", "list sessions, the last used first"},
    {"hist-search", "search the content of messages, the newest first"},
    {"hist-show", "print the messages of sessions"},
    {"hist-load", "make a past session current and print it"},
    {"hist-browse", "look through a history, full screen"},
    {"hist-fork", "start a session with the beginning of another one"},
    {"hist-append", "store a message and print its id"},
    {"hist-export", "write sessions in other formats"},
    {"hist-import", "bring conversations with other programs into the history"},
    {"hist-delete", "erase sessions"},
    {"hist-check", "verify a history"},
    {"hist-stats", "count messages and tokens"},
    {"chathist", "list the programs, or print where everything is"},
};

void suite_list(struct out *out, bool json)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        buf_clear(&line);
        if (json) {
            buf_add_byte(&line, '{');
            json_add_member(&line, "name", str_of(programs[i].name));
            json_add_member(&line, "purpose", str_of(programs[i].purpose));
            buf_add_byte(&line, '}');
        } else {
            buf_addf(&line, "%-*s%s", VALUE_COLUMN, programs[i].name, programs[i].purpose);
        }
        buf_add_byte(&line, '\n');
        out_raw(out, buf_str(&line));
    }
    buf_release(&line);
}

/* ---- the report ---- */

struct report {
    struct out *out;
    struct buf json; /* the object so far; without --json it stays empty */
    bool as_json;
};

/* The name of a value, `history_bytes`, is shown with blanks to people. */
static void say_line(struct report *r, const char *name, struct str value)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    for (const char *c = name; *c; c++)
        buf_add_byte(&line, *c == '_' ? ' ' : *c);
    while (line.len < VALUE_COLUMN)
        buf_add_byte(&line, ' ');
    out_raw(r->out, buf_str(&line));
    buf_clear(&line);
    vis_add_line(&line, value, true);
    buf_add_byte(&line, '\n');
    out_raw(r->out, buf_str(&line));
    buf_release(&line);
}

/* A value of NULL does not exist. */
static void say_text(struct report *r, const char *name, const char *value)
{
    if (!r->as_json) {
        say_line(r, name, str_of(value ? value : "none"));
    } else if (value) {
        json_add_member(&r->json, name, str_of(value));
    } else {
        json_add_key(&r->json, name);
        buf_add_c(&r->json, "null");
    }
}

static void say_number(struct report *r, const char *name, int64_t n)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_add_number(&text, (uint64_t)n);
    if (r->as_json)
        json_add_member_int(&r->json, name, n);
    else
        say_line(r, name, buf_str(&text));
    buf_release(&text);
}

static void say_bool(struct report *r, const char *name, bool value)
{
    if (!r->as_json) {
        say_text(r, name, value ? "yes" : "no");
        return;
    }
    json_add_key(&r->json, name);
    buf_add_c(&r->json, value ? "true" : "false");
}

/* A path below a directory, NULL if that is unknown or the file does not exist. */
static void say_file(struct report *r, const char *name, const char *dir, const char *file)
{
    char *path = dir ? path_join(dir, file) : NULL;

    say_text(r, name, path && access(path, F_OK) == 0 ? path : NULL);
    free(path);
}

/* ---- the history ---- */

/* Is `name` the history itself or one of its companions? In a directory of the history's own every
 * file is. */
static bool is_companion(const struct history *h, const char *name)
{
    const char *slash = strrchr(h->path, '/'), *file = slash ? slash + 1 : h->path;

    return name[0] != '.' &&
           (h->kind != HISTORY_EXPLICIT || str_starts(str_of(name), str_of(file)));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The files of the history with their sizes. */
static void say_files(struct report *r, const struct history *h, const char *dir)
{
    struct dirent **entries = NULL;
    int count = dir ? scandir(dir, &entries, NULL, by_name) : 0;
    struct buf text = BUF_INIT(BUF_SMALL);
    struct stat st;

    if (r->as_json) {
        json_add_key(&r->json, "files");
        buf_add_byte(&r->json, '{');
    }
    for (int i = 0; i < count; i++) {
        char *path = path_join(dir, entries[i]->d_name);

        if (is_companion(h, entries[i]->d_name) && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            buf_clear(&text);
            buf_addf(&text, "%s, %lld bytes", entries[i]->d_name, (long long)st.st_size);
            if (r->as_json)
                json_add_member_int(&r->json, entries[i]->d_name, st.st_size);
            else
                say_line(r, "file", buf_str(&text));
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    if (r->as_json)
        buf_add_byte(&r->json, '}');
    buf_release(&text);
}

static void say_session(struct report *r, const struct history *h)
{
    struct buf id = BUF_INIT(BUF_SMALL), time = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int64_t since = 0;
    int found = session_current(h, &id, &since, &e);

    say_text(r, "session", found > 0 ? buf_c(&id) : NULL);
    if (found > 0) {
        time_add_iso(&time, since);
        say_text(r, "session_since", buf_c(&time));
    }
    if (found < 0)
        say_text(r, "session_error", err_text(&e));
    err_release(&e);
    buf_release(&id);
    buf_release(&time);
}

static void say_history(struct report *r, const struct history *h)
{
    static const char *const kinds[] = {
        [HISTORY_EXPLICIT] = "file",
        [HISTORY_REPOSITORY] = "repository",
        [HISTORY_HERE] = "directory",
        [HISTORY_USER] = "user",
    };
    char *parent = h->dir ? NULL : path_parent(h->path), *second = NULL;
    struct stat st;
    bool exists;

    if (h->nowhere) {
        say_text(r, "history", NULL);
        say_text(r, "history_error", h->nowhere);
        return;
    }
    exists = lstat(h->path, &st) == 0;
    say_text(r, "history", h->path);
    say_text(r, "history_kind", kinds[h->kind]);
    say_bool(r, "history_exists", exists);
    if (exists) {
        say_number(r, "history_bytes", st.st_size);
        say_bool(r, "history_trusted", h->trusted);
        second = history_second_name(h, &st);
        say_text(r, "second_name", second);
    }
    if (h->notice)
        say_text(r, "notice", h->notice);
    if (h->doubt)
        say_text(r, "trust_error", h->doubt);
    for (size_t i = 0; i < h->foreign_count; i++)
        say_text(r, "foreign_history", h->foreign[i]);
    say_session(r, h);
    say_files(r, h, h->dir ? h->dir : parent && *parent ? parent : ".");
    free(parent);
    free(second);
}

/* ---- the model server ---- */

static void say_key(struct report *r, const struct key_source *key)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    if (key->kind == KEY_COMMAND)
        buf_addf(&text, "the command in %s", key->name);
    else if (key->kind != KEY_NONE)
        buf_add_c(&text, key->kind == KEY_FILE ? key->value : key->name);
    say_text(r, "key_from", key->kind == KEY_NONE ? NULL : buf_c(&text));
    buf_release(&text);
}

static void say_server(struct report *r, const struct config *c)
{
    struct buf origin = BUF_INIT(BUF_SMALL);
    struct server server;
    struct err e = ERR_INIT;

    if (server_choose(&server, c, &e) < 0) {
        say_text(r, "provider", NULL);
        say_text(r, "provider_error", err_text(&e));
    } else {
        say_text(r, "provider", server.provider->name);
        say_text(r, "model", server.model);
        if (server.base_url && http_origin(server.base_url, &origin))
            say_text(r, "server", buf_c(&origin));
        say_key(r, &server.key_source);
    }
    err_release(&e);
    server_release(&server);
    buf_release(&origin);
}

/* ---- the machine ---- */

static void say_versions(struct report *r)
{
    struct buf system = BUF_INIT(BUF_SMALL);
    struct utsname name;

    say_text(r, "version", opt_version());
    if (uname(&name) == 0)
        buf_addf(&system, "%s %s %s", name.sysname, name.release, name.machine);
    say_text(r, "system", system.len > 0 ? buf_c(&system) : NULL);
    say_text(r, "http_library", http_library());
    buf_release(&system);
}

/* The values are not printed, because some of them are keys. */
static void say_environment(struct report *r)
{
    static const char *const names[] = {
        "CHAT_API_KEY",
        "CHAT_API_KEY_COMMAND",
        "CHAT_BASE_URL",
        "CHAT_FSYNC",
        "CHAT_HISTORY",
        "CHAT_MAX_BYTES",
        "CHAT_MAX_MESSAGES",
        "CHAT_MODEL",
        "CHAT_PROVIDER",
        "CHAT_SESSION",
        "CHAT_SESSION_TIMEOUT",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OLLAMA_HOST",
        "GIT_DIR",
        "GIT_COMMON_DIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "https_proxy",
        "HTTPS_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "NO_COLOR",
    };
    struct buf set = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (config_env(names[i]))
            buf_addf(&set, "%s%s", set.len > 0 ? " " : "", names[i]);
    say_text(r, "environment", set.len > 0 ? buf_c(&set) : NULL);
    buf_release(&set);
}

void suite_report(struct out *out, const struct config *c, const struct history *h, bool json)
{
    struct report r = {.out = out, .json = BUF_INIT(8 * BUF_LINE), .as_json = json};

    if (json)
        buf_add_byte(&r.json, '{');
    say_versions(&r);
    say_history(&r, h);
    say_file(&r, "configuration", c->config_home, "chathist/config");
    say_file(&r, "keys", c->config_home, "chathist/keys");
    say_file(&r, "templates", c->config_home, "chathist/templates");
    say_file(&r, "tools", c->config_home, "chathist/tools");
    say_file(&r, "register", c->state_home, "chathist/histories");
    say_server(&r, c);
    say_environment(&r);
    if (json) {
        buf_add_byte(&r.json, '}');
        out_json_line(out, buf_str(&r.json));
    }
    buf_release(&r.json);
}
