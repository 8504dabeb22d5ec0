#include "chathist/chat/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "chathist/base/json.h"
#include "chathist/base/path.h"
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
    {PROGRAM_PREFIX "chat", "talk to a language model"},
    {PROGRAM_PREFIX "hist-new", "start a session and print its id"},
    {PROGRAM_PREFIX "hist-sessions", "list sessions, the last used first"},
    {PROGRAM_PREFIX "hist-search", "search messages, the newest first"},
    {PROGRAM_PREFIX "hist-show", "print the messages of sessions"},
    {PROGRAM_PREFIX "hist-load", "make a past session current and print it"},
    {PROGRAM_PREFIX "hist-browse", "look through a history, full screen"},
    {PROGRAM_PREFIX "hist-title", "give a session a title, or print it"},
    {PROGRAM_PREFIX "hist-fork", "start a session with the beginning of another one"},
    {PROGRAM_PREFIX "hist-append", "store a message and print its id"},
    {PROGRAM_PREFIX "hist-export", "write sessions in other formats"},
    {PROGRAM_PREFIX "hist-import", "bring conversations with other programs into the history"},
    {PROGRAM_PREFIX "hist-sync", "keep histories on several machines equal"},
    {PROGRAM_PREFIX "hist-delete", "erase sessions"},
    {PROGRAM_PREFIX "hist-check", "verify a history"},
    {PROGRAM_PREFIX "hist-stats", "count messages and tokens"},
    {PROGRAM_PREFIX "hist-mcp", "let agents search the histories, by MCP"},
    {PROGRAM_PREFIX "chathist", "list the programs, say where everything is, set up a model"},
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

/* The functions below add members to the object `r`. A value of NULL does not exist. */
static void add_json_member(struct buf *r, const char *name, const char *json)
{
    json_add_key(r, name);
    buf_add_c(r, json);
}

static void add_text_member(struct buf *r, const char *name, const char *value)
{
    if (value)
        json_add_member(r, name, str_of(value));
    else
        add_json_member(r, name, "null");
}

static void add_bool(struct buf *r, const char *name, bool value)
{
    add_json_member(r, name, value ? "true" : "false");
}

/* Prints a value on a line; the name `history_bytes` is shown with blanks. */
static void print_named(struct out *out, struct str name, struct str value)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < name.n; i++)
        buf_add_byte(&line, name.p[i] == '_' ? ' ' : name.p[i]);
    while (line.len < VALUE_COLUMN)
        buf_add_byte(&line, ' ');
    vis_add_line(&line, value, true);
    buf_add_byte(&line, '\n');
    out_raw(out, buf_str(&line));
    buf_release(&line);
}

/* Prints a string, a boolean, null, or a number. */
static void print_value(struct out *out, struct str name, struct str value)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (json_type(value) == JSON_BOOL)
        value = json_is_true(value) ? STR("yes") : STR("no");
    else if (json_type(value) == JSON_STRING)
        value = json_text(value, &scratch);
    else if (json_is_null(value))
        value = STR("none");
    print_named(out, name, value);
    buf_release(&scratch);
}

/* Prints a line for each file of an object, whose values are sizes in bytes. */
static void print_files(struct out *out, struct str files)
{
    struct json_iter it = json_iter(files);
    struct buf text = BUF_INIT(BUF_LINE);

    while (json_next(&it)) {
        buf_clear(&text);
        json_decode_body(it.key, &text);
        buf_addf(&text, ", %.*s bytes", (int)it.value.n, it.value.p);
        print_named(out, STR("file"), buf_str(&text));
    }
    buf_release(&text);
}

/* Prints the object for people, a line for each value. */
static void print_report(struct out *out, struct str object)
{
    struct json_iter it = json_iter(object);

    while (json_next(&it)) {
        struct json_iter item = json_iter(it.value);

        if (json_type(it.value) == JSON_OBJECT)
            print_files(out, it.value);
        else if (json_type(it.value) != JSON_ARRAY)
            print_value(out, it.key, it.value);
        while (json_type(it.value) == JSON_ARRAY && json_next(&item))
            print_value(out, it.key, item.value);
    }
}

/* A path below a directory, NULL if that is unknown or the file does not exist. */
static void add_file_place(struct buf *r, const char *name, const char *dir, const char *file)
{
    char *path = dir ? path_join(dir, file) : NULL;

    add_text_member(r, name, path && access(path, F_OK) == 0 ? path : NULL);
    free(path);
}

/* ---- the history ---- */

/* Returns whether `name` is the history itself or one of its companions. In a directory of the
 * history's own every file is. */
static bool is_companion(const struct history *h, const char *name)
{
    return name[0] != '.' &&
           (h->kind != HISTORY_EXPLICIT || str_starts(str_of(name), str_of(path_base(h->path))));
}

/* Adds the files of the history with their sizes. */
static void add_history_files(struct buf *r, const struct history *h, const char *dir)
{
    struct dirent **entries = NULL;
    int count = dir ? scandir(dir, &entries, NULL, alphasort) : 0;
    struct stat st;

    add_json_member(r, "files", "{");
    for (int i = 0; i < count; i++) {
        char *path = path_join(dir, entries[i]->d_name);

        if (is_companion(h, entries[i]->d_name) && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            json_add_member_int(r, entries[i]->d_name, st.st_size);
        free(path);
        free(entries[i]);
    }
    free(entries);
    buf_add_byte(r, '}');
}

/* Adds one of the histories below. */
static void add_foreign_one(struct buf *r, const char *path, size_t *count)
{
    if ((*count)++ == 0)
        add_json_member(r, "foreign_histories", "[");
    else
        buf_add_byte(r, ',');
    json_add_string(r, str_of(path));
}

/* Adds the histories beside this one that are not part of it: those that earlier versions set
 * aside, and another program's. hist-import brings them here. */
static void add_foreign(struct buf *r, const struct history *h)
{
    struct dirent **entries = NULL;
    int entry_count = h->dir ? scandir(h->dir, &entries, NULL, alphasort) : 0;
    size_t count = 0;

    for (int i = 0; i < entry_count; i++) {
        struct str name = str_of(entries[i]->d_name);
        char *path = path_join(h->dir, entries[i]->d_name);

        if (str_starts(name, STR("foreign")) && str_ends(name, STR(".jsonl")))
            add_foreign_one(r, path, &count);
        free(path);
        free(entries[i]);
    }
    free(entries);
    if (h->other)
        add_foreign_one(r, h->other, &count);
    if (count > 0)
        buf_add_byte(r, ']');
}

static void add_session_members(struct buf *r, const struct history *h)
{
    struct buf id = BUF_INIT(BUF_SMALL), time = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int64_t since = 0;
    int found = session_current(h, &id, &since, &e);

    add_text_member(r, "session", found > 0 ? buf_c(&id) : NULL);
    if (found > 0) {
        time_add_iso(&time, since);
        add_text_member(r, "session_since", buf_c(&time));
    }
    if (found < 0)
        add_text_member(r, "session_error", err_text(&e));
    err_release(&e);
    buf_release(&id);
    buf_release(&time);
}

static void add_history_members(struct buf *r, const struct history *h)
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
        add_text_member(r, "history", NULL);
        add_text_member(r, "history_error", h->nowhere);
        return;
    }
    exists = lstat(h->path, &st) == 0;
    add_text_member(r, "history", h->path);
    add_text_member(r, "history_kind", kinds[h->kind]);
    add_bool(r, "history_exists", exists);
    if (exists) {
        json_add_member_int(r, "history_bytes", st.st_size);
        add_bool(r, "history_trusted", h->trusted);
        second = history_second_name(h, &st);
        add_text_member(r, "second_name", second);
    }
    if (h->notice)
        add_text_member(r, "notice", h->notice);
    if (h->trust_fault)
        add_text_member(r, "trust_error", h->trust_fault);
    add_foreign(r, h);
    add_session_members(r, h);
    add_history_files(r, h, h->dir ? h->dir : parent && *parent ? parent : ".");
    free(parent);
    free(second);
}

/* ---- the model server ---- */

static void add_server(struct buf *r, const struct config *c)
{
    struct buf origin = BUF_INIT(BUF_SMALL), from = BUF_INIT(BUF_SMALL);
    struct providers known;
    struct server server = {0};
    const struct key_source *key = &server.key_source;
    struct err e = ERR_INIT;

    if (server_providers(&known, c, &e) < 0 || server_choose(&server, &known, c, NULL, 0, &e) < 0 ||
        server_need_key(&server, c, &e) < 0) {
        add_text_member(r, "provider", NULL);
        add_text_member(r, "provider_error", err_text(&e));
    } else {
        add_text_member(r, "provider", server.provider->name);
        add_text_member(r, "model", server.model);
        if (server.base_url && http_origin(server.base_url, &origin))
            add_text_member(r, "server", buf_c(&origin));
        if (key->kind == KEY_COMMAND)
            buf_addf(&from, "the command in %s", key->name);
        else if (key->kind != KEY_NONE)
            buf_add_c(&from, key->kind == KEY_FILE ? key->value : key->name);
        add_text_member(r, "key_from", key->kind == KEY_NONE ? NULL : buf_c(&from));
        if (server_check_key_file(&server, &e) < 0)
            add_text_member(r, "key_error", err_text(&e));
    }
    err_release(&e);
    server_release(&server);
    providers_release(&known);
    buf_release(&origin);
    buf_release(&from);
}

/* ---- the machine ---- */

/* The values are not printed, because some of them are keys. */
static void add_environment(struct buf *r)
{
    struct str names =
        STR("CHAT_API_KEY CHAT_API_KEY_COMMAND CHAT_BASE_URL CHAT_FSYNC CHAT_HISTORY "
            "CHAT_MAX_BYTES CHAT_MAX_INPUT_TOKENS CHAT_MAX_MESSAGES CHAT_MODEL CHAT_PROVIDER "
            "CHAT_SESSION "
            "CHAT_SESSION_TIMEOUT OPENAI_API_KEY OPENAI_BASE_URL ANTHROPIC_API_KEY "
            "ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL OLLAMA_HOST GIT_DIR GIT_COMMON_DIR "
            "XDG_CONFIG_HOME "
            "XDG_DATA_HOME XDG_STATE_HOME https_proxy HTTPS_PROXY http_proxy ALL_PROXY "
            "NO_COLOR");
    struct buf set = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);

    while (names.p) {
        buf_set(&name, str_cut(&names, ' '));
        if (config_env(buf_c(&name)))
            buf_addf(&set, "%s%s", set.len > 0 ? " " : "", buf_c(&name));
    }
    add_text_member(r, "environment", set.len > 0 ? buf_c(&set) : NULL);
    buf_release(&set);
    buf_release(&name);
}

void suite_report(struct out *out, const struct config *c, const struct history *h, bool json)
{
    struct buf r = BUF_INIT(8 * BUF_LINE), system = BUF_INIT(BUF_SMALL);
    struct utsname name;

    buf_add_byte(&r, '{');
    add_text_member(&r, "version", opt_version());
    if (uname(&name) == 0)
        buf_addf(&system, "%s %s %s", name.sysname, name.release, name.machine);
    add_text_member(&r, "system", system.len > 0 ? buf_c(&system) : NULL);
    add_text_member(&r, "http_library", http_library());
    add_history_members(&r, h);
    add_file_place(&r, "configuration", c->config_home, "chathist/config");
    add_file_place(&r, "keys", c->config_home, "chathist/keys");
    add_file_place(&r, "templates", c->config_home, "chathist/templates");
    add_file_place(&r, "personas", c->config_home, "chathist/personas");
    add_file_place(&r, "tools", c->config_home, "chathist/tools");
    add_file_place(&r, "register", c->state_home, "chathist/histories");
    add_server(&r, c);
    add_environment(&r);
    buf_add_byte(&r, '}');
    if (json)
        out_json_line(out, buf_str(&r));
    else
        print_report(out, buf_str(&r));
    buf_release(&system);
    buf_release(&r);
}
