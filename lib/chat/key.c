#include "chathist/chat/key.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/path.h"
#include "chathist/base/proc.h"
#include "chathist/cli/die.h"
#include "chathist/cli/interrupt.h"

/* ---- where it comes from ---- */

static char *copy(const char *s)
{
    return mem_copy(s, strlen(s));
}

/* Takes `value` for the source unless there is one already, or no value. */
static void offer(struct key_source *s, enum key_kind kind, const char *value, const char *name)
{
    if (s->kind != KEY_NONE || !value || !*value)
        return;
    *s = (struct key_source){.kind = kind, .value = copy(value), .name = copy(name)};
}

/* The name of the provider's key file when there is one; the caller frees it. */
static char *file_of(const struct config *c, const char *provider)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct stat st;
    char *file = NULL;

    buf_addf(&name, "chathist/keys/%s", provider);
    if (c->config_home)
        file = path_join(c->config_home, buf_c(&name));
    buf_release(&name);
    if (file && lstat(file, &st) < 0) {
        free(file);
        file = NULL;
    }
    return file;
}

void key_find(struct key_source *s, const struct config *c, const struct key_owner *o)
{
    const char *command = c->value[SETTING_API_KEY_COMMAND];
    bool in_environment = c->from[SETTING_API_KEY_COMMAND] == CONFIG_ENVIRONMENT;
    struct buf own = BUF_INIT(BUF_SMALL);
    char *file = file_of(c, o->name);

    *s = (struct key_source){0};
    buf_addf(&own, "api_key_command.%s", o->name);
    if (o->any)
        offer(s, KEY_VARIABLE, config_env("CHAT_API_KEY"), "CHAT_API_KEY");
    if (o->variable)
        offer(s, KEY_VARIABLE, config_env(o->variable), o->variable);
    if (o->any && in_environment)
        offer(s, KEY_COMMAND, command, "CHAT_API_KEY_COMMAND");
    offer(s, KEY_COMMAND, config_named(c, SETTING_API_KEY_COMMAND, o->name), buf_c(&own));
    offer(s, KEY_FILE, file, "");
    if (o->any)
        offer(s, KEY_COMMAND, command, "api_key_command");
    if (s->kind == KEY_COMMAND)
        s->dir = copy(config_command_dir(c));
    buf_release(&own);
    free(file);
}

void key_source_release(struct key_source *s)
{
    key_wipe(s->value);
    free(s->dir);
    free(s->name);
    *s = (struct key_source){0};
}

bool key_in_configuration(const struct config *c, const char *provider)
{
    char *file = file_of(c, provider);
    bool there = file || config_named(c, SETTING_API_KEY_COMMAND, provider);

    free(file);
    return there;
}

void key_check_names(const struct config *c, bool (*known)(const char *name))
{
    for (size_t i = 0; i < c->named_count; i++)
        if (c->named[i].setting == SETTING_API_KEY_COMMAND && !known(c->named[i].name))
            warnf("unknown provider '%s' in the user configuration: api_key_command.%s",
                  c->named[i].name, c->named[i].name);
}

/* ---- getting it ---- */

/* Room for all of it at once: a buf that moved would leave a copy behind. */
static void buf_init_secret(struct buf *b)
{
    buf_init(b, KEY_MAX);
    buf_room(b, KEY_MAX);
}

static void release_secret(struct buf *b)
{
    mem_wipe(b->data, b->cap);
    buf_release(b);
}

/* A header holds it: nothing that would end the header or part it. */
static bool is_key(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == '\x7f')
            return false;
    return s.n > 0;
}

static int no_key(const struct key_source *s, struct err *e, const char *reason)
{
    return err_set(e, ERR_USAGE, "no key from the command in '%s': %s", s->name, reason);
}

static int judge(const struct key_source *s, int status, struct str line, struct err *e)
{
    if (status > 128)
        return err_set(e, ERR_USAGE, "no key from the command in '%s': ended by signal %d", s->name,
                       status - 128);
    if (status != 0)
        return err_set(e, ERR_USAGE, "no key from the command in '%s': exit status %d", s->name,
                       status);
    if (line.n == 0)
        return no_key(s, e, "nothing on its first line");
    if (!is_key(line))
        return no_key(s, e, "white space or a control character in it");
    return 0;
}

/* Catches signals meanwhile: who asks for the key may have something to clean up. -1: ERR_SIGNAL,
 * or it could not be run. */
static int run(char *const argv[], const char *dir, struct buf *printed, struct err *e)
{
    int cancel_fd = interrupt_begin(e), status;

    if (cancel_fd < 0)
        return -1;
    status = proc_read(argv, dir, printed, cancel_fd, e);
    /* It was meant for us as well. */
    if (status == 128 + SIGINT && !interrupt_signal())
        raise(SIGINT);
    if (interrupt_signal())
        status = err_set(e, ERR_SIGNAL, "interrupted");
    interrupt_end();
    return status;
}

static char *from_command(const struct key_source *s, struct err *e)
{
    struct err why = ERR_INIT;
    char shell[] = "/bin/sh", flag[] = "-c";
    char *argv[] = {shell, flag, s->value, NULL};
    struct buf printed;
    struct str rest, line;
    char *key = NULL;
    int status;

    buf_init_secret(&printed);
    status = run(argv, s->dir, &printed, &why);
    rest = buf_str(&printed);
    line = str_trim(str_cut(&rest, '\n'));
    if (why.kind == ERR_SIGNAL)
        err_set(e, ERR_SIGNAL, "%s", err_text(&why));
    else if (status < 0)
        no_key(s, e, err_text(&why));
    else if (status == 0 && printed.len == KEY_MAX && rest.n == 0)
        no_key(s, e, "its first line is too long");
    else if (judge(s, status, line, e) == 0)
        key = mem_copy(line.p, line.n);
    release_secret(&printed);
    err_release(&why);
    return key;
}

static int refuse(const char *file, const char *reason, struct err *e)
{
    return err_set(e, ERR_USAGE, "cannot use the key in '%s': %s", file, reason);
}

/* Only the user has access to it, whoever may have put it, or the link to it, there. */
static int check_file(const char *file, const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return refuse(file, "not a regular file", e);
    if (st->st_uid != geteuid())
        return refuse(file, "it belongs to another user", e);
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
        result = check_file(file, &st, e);
    if (result == 0 && io_read_all(fd, text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", file);
    close(fd);
    return result;
}

/* Its one line end goes, be it LF or CR LF. */
static struct str without_line_end(struct str s)
{
    if (str_ends(s, STR("\n")))
        s.n--;
    if (str_ends(s, STR("\r")))
        s.n--;
    return s;
}

static char *from_file(const char *file, struct err *e)
{
    struct buf text;
    struct str line;
    char *key = NULL;

    buf_init_secret(&text);
    if (read_key(file, &text, e) < 0) {
        if (e)
            e->kind = ERR_USAGE;
    } else {
        line = without_line_end(buf_str(&text));
        if (is_key(line))
            key = mem_copy(line.p, line.n);
        else
            refuse(file, line.n == 0 ? "it is empty" : "white space or a control character in it",
                   e);
    }
    release_secret(&text);
    return key;
}

char *key_fetch(const struct key_source *s, struct err *e)
{
    switch (s->kind) {
    case KEY_VARIABLE:
        return copy(s->value);
    case KEY_COMMAND:
        return from_command(s, e);
    case KEY_FILE:
        return from_file(s->value, e);
    case KEY_NONE:
        break;
    }
    err_set(e, ERR_USAGE, "no key is set");
    return NULL;
}

void key_wipe(char *key)
{
    if (key)
        mem_wipe(key, strlen(key));
    free(key);
}
