#include "chathist/chat/template.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/config.h"
#include "chathist/cli/diagnostics.h"

/* ---- the body ---- */

static bool begins_name(char c)
{
    return ascii_is_letter(c) || c == '_';
}

bool template_name_valid(struct str name)
{
    if (name.n == 0 || !begins_name(name.p[0]))
        return false;
    for (size_t i = 1; i < name.n; i++)
        if (!begins_name(name.p[i]) && name.p[i] != '-' && !ascii_is_digit(name.p[i]))
            return false;
    return true;
}

/* Adds the value of the text between the braces. */
static int expand_var(struct str inside, size_t line, struct template_var *vars, size_t count,
                      struct buf *out, struct err *e)
{
    struct str otherwise = inside, name = str_trim(str_cut(&otherwise, ':'));
    struct template_var *var = NULL;

    if (!template_name_valid(name))
        return err_set(e, ERR_USAGE, "line %zu: '{{' begins no variable ('{{{{' stands for it)",
                       line);
    for (size_t i = 0; i < count; i++)
        if (str_eq(vars[i].name, name)) {
            vars[i].used = true;
            var = &vars[i];
        }
    if (var && var->value.p)
        buf_add_str(out, var->value);
    else if (otherwise.p)
        buf_add_str(out, str_trim(otherwise));
    else if (var)
        var->missing = true;
    if (!(var && var->value.p) && !otherwise.p)
        return err_set(e, ERR_USAGE, "line %zu: no value for '%.*s'", line, (int)name.n, name.p);
    return 0;
}

static size_t lines_in(struct str s)
{
    size_t lines = 0;

    for (size_t i = 0; s.p && i < s.n; i++)
        lines += s.p[i] == '\n';
    return lines;
}

int template_expand(struct str text, size_t line, struct template_var *vars, size_t count,
                    struct buf *out, struct err *e)
{
    static const struct str open = STR("{{"), close = STR("}}"), escape = STR("{{{{");

    for (;;) {
        const char *at = str_find(text, open), *end;
        struct str before, rest;

        if (!at) {
            buf_add_str(out, text);
            return 0;
        }
        before = (struct str){text.p, (size_t)(at - text.p)};
        rest = (struct str){at, text.n - before.n};
        line += lines_in(before);
        buf_add_str(out, before);
        if (str_starts(rest, escape)) {
            buf_add_str(out, open);
            text = (struct str){rest.p + escape.n, rest.n - escape.n};
            continue;
        }
        /* The first of three braces is text. */
        if (str_starts(rest, STR("{{{"))) {
            buf_add_byte(out, '{');
            text = (struct str){rest.p + 1, rest.n - 1};
            continue;
        }
        rest = (struct str){rest.p + open.n, rest.n - open.n};
        end = str_find(rest, close);
        if (expand_var(end ? (struct str){rest.p, (size_t)(end - rest.p)} : STR_NONE, line, vars,
                       count, out, e) < 0)
            return -1;
        line += lines_in((struct str){rest.p, (size_t)(end - rest.p)});
        text = (struct str){end + close.n, rest.n - (size_t)(end - rest.p) - close.n};
    }
}

/* ---- files ---- */

/* The length of the beginning that a list shows, in characters. */
#define BEGINNING 60

/* ---- one file ---- */

/* Returns `chathist/templates/NAME`, or the name itself if it is a path; or NULL with *e set. The
 * caller frees it. */
static char *preset_file(const struct preset *p, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    char *file;

    if (strchr(p->name, '/'))
        return mem_text(p->name);
    /* Names that begin with a dot are refused: `..`, and files that editors leave. */
    if (p->name[0] == '.' || p->name[0] == '\0') {
        err_set(e, ERR_USAGE, "bad name '%s' for a %s", p->name, p->kind);
        return NULL;
    }
    buf_addf(&name, "%ss/%s", p->kind, p->name);
    file = config_user_file(buf_c(&name));
    buf_release(&name);
    if (!file)
        err_set(e, ERR_USAGE, "no %s '%s': there is no home directory", p->kind, p->name);
    return file;
}

/* A path on the command line is the user's own choice; a file named by a NAME must be trusted.
 * Returns the descriptor, or -1 with *e set. */
static int open_preset(const struct preset *p, const char *file, struct err *e)
{
    struct stat st;

    if (strchr(p->name, '/'))
        return file_open_input(file, e);
    if (stat(file, &st) < 0 && errno == ENOENT)
        return err_set(e, ERR_USAGE, "no %s '%s': there is no '%s'", p->kind, p->name, file);
    return config_open(file, e);
}

/* ---- its settings ---- */

/* The keys that a file can set, but for `system` and options. */
static const struct {
    const char *key;
    enum setting setting;
} keys[] = {{"model", SETTING_MODEL},
            {"provider", SETTING_PROVIDER},
            {"effort", SETTING_EFFORT},
            {"max_tokens", SETTING_MAX_TOKENS}};

static const struct str fence = STR("---");

/* Ends a piece of the text with NUL, in place of the blank or newline after it. */
static const char *terminated(struct preset *p, struct str piece)
{
    char *text = p->text.data;
    size_t at = (size_t)(piece.p - text);

    if (!text)
        return NULL; /* an empty text has no piece */
    text[at + piece.n] = '\0';
    return text + at;
}

static int read_preset_setting(struct preset *p, struct str key, struct str value, size_t line,
                               struct err *e)
{
    static const struct str option = STR("option.");

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (str_eq_c(key, keys[i].key)) {
            if (text_value_fault(value))
                return err_set(e, ERR_USAGE, "line %zu: bad value of %s: %s", line, keys[i].key,
                               text_value_fault(value));
            p->setting[keys[i].setting] = terminated(p, value);
            return 0;
        }
    if (str_eq_c(key, "system") && strcmp(p->kind, "template") == 0) {
        p->system = terminated(p, value);
    } else if (str_starts(key, option) && key.n > option.n) {
        p->options =
            mem_grow(p->options, &p->options_cap, p->options_count + 1, sizeof *p->options);
        p->options[p->options_count++] =
            (struct ask_option){terminated(p, key) + option.n, value, ASK_TEMPLATE};
    } else {
        return err_set(e, ERR_USAGE, "line %zu: unknown key '%.*s'", line, (int)key.n, key.p);
    }
    return 0;
}

/* Reads the lines of the head from *rest on, which becomes what follows it. */
static int parse_head(struct preset *p, struct str *rest, struct err *e)
{
    while (rest->p) {
        struct str line = str_trim(str_cut(rest, '\n')), value = line, key;

        p->line++;
        if (str_eq(line, fence))
            return 0;
        if (line.n == 0 || line.p[0] == '#')
            continue;
        key = str_trim(str_cut(&value, '='));
        if (!value.p || key.n == 0)
            return err_set(e, ERR_USAGE, "line %zu is not 'key = value'", p->line - 1);
        if (read_preset_setting(p, key, str_trim(value), p->line - 1, e) < 0)
            return -1;
    }
    return err_set(e, ERR_USAGE, "the settings at its head do not end with '---'");
}

int preset_parse(struct preset *p, struct err *e)
{
    struct str text = buf_str(&p->text), rest = text;
    bool has_head = str_eq(str_trim(str_cut(&rest, '\n')), fence);

    p->line = has_head ? 2 : 1;
    if (has_head && parse_head(p, &rest, e) < 0)
        return -1;
    p->body = has_head ? rest : text;
    /* Blank lines between the head and the text, and the final newline, do not count. */
    while (has_head && p->body.n > 0 && p->body.p[0] == '\n') {
        p->line++;
        p->body = str_skip(p->body, 1);
    }
    if (str_ends(p->body, STR("\n")))
        p->body.n--;
    return 0;
}

int preset_load(struct preset *p, const char *name, struct err *e)
{
    char *file;
    int fd;

    p->name = name;
    file = preset_file(p, e);
    fd = file ? open_preset(p, file, e) : -1;
    if (fd >= 0 && file_read_all(fd, &p->text) < 0)
        err_sys(e, errno, "cannot read '%s'", file);
    else if (fd >= 0)
        (void)text_clean(&p->text, file, e);
    file_close(fd);
    free(file);
    if (e->kind == ERR_NONE && preset_parse(p, e) < 0)
        err_set(e, ERR_USAGE, "cannot use %s '%s': %s", p->kind, p->name, err_text(e));
    if (e->kind == ERR_NONE)
        return 0;
    e->kind = ERR_USAGE;
    return -1;
}

void preset_release(struct preset *p)
{
    free(p->options);
    buf_release(&p->text);
}

int preset_expand(const struct preset *p, struct template_var *vars, size_t count, struct buf *out,
                  struct err *e)
{
    struct buf bytes = BUF_INIT(PROMPT_MAX);
    int result = template_expand(p->body, p->line, vars, count, &bytes, e);

    if (result < 0 && count > 0 && vars[0].missing && str_eq_c(vars[0].name, "input"))
        err_set(e, ERR_USAGE, "no prompt: %s '%s' is for one", p->kind, p->name);
    else if (result < 0)
        err_set(e, ERR_USAGE, "cannot use %s '%s': %s", p->kind, p->name, err_text(e));
    else
        utf8_add_repaired(out, buf_str(&bytes));
    if (result == 0 && (bytes.overflow || out->overflow))
        result = err_set(e, ERR_USAGE, "%s '%s' becomes too long", p->kind, p->name);
    buf_release(&bytes);
    return result;
}

/* ---- variables ---- */

static void read_vars(struct presets *p, const struct chat_args *a)
{
    p->vars_count = a->vars.count + 1;
    p->vars = mem_zalloc(p->vars_count * sizeof *p->vars);
    p->vars[0].name = STR("input");
    for (size_t i = 0; i < a->vars.count; i++) {
        struct template_var *var = &p->vars[i + 1];

        var->value = str_of(a->vars.at[i]);
        var->name = str_cut(&var->value, '=');
        if (!template_name_valid(var->name))
            die_usage("bad name '%.*s' for --var: letters, digits, '_' and '-' are expected",
                      (int)var->name.n, var->name.p);
        if (str_eq(var->name, p->vars[0].name))
            die_usage("bad name 'input' for --var: it is the prompt");
    }
}

static void expand_body(const struct preset *p, struct template_var *vars, size_t count,
                        struct buf *out)
{
    struct err e = ERR_INIT;

    if (preset_expand(p, vars, count, out, &e) == 0)
        return;
    if (count > 0 && vars[0].missing && str_eq_c(vars[0].name, "input"))
        die_usage("%s, give it as arguments or on standard input", err_text(&e));
    die_err(&e);
}

/* ---- what chat makes of them ---- */

static void load_preset(struct preset *p, const char *name, struct chat_args *a)
{
    struct err e = ERR_INIT;

    if (!name)
        return;
    if (preset_load(p, name, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (p->setting[i])
            a->preset[i] = p->setting[i];
    for (size_t i = 0; i < p->options_count; i++)
        chat_args_add_option(a, p->options[i]);
}

void presets_load(struct presets *p, struct chat_args *a)
{
    read_vars(p, a);
    load_preset(&p->persona, a->persona, a);
    load_preset(&p->template, a->template_name, a);
    if (a->persona && p->template.system)
        die_usage("template '%s' has a system prompt of its own: --persona does not go with it",
                  a->template_name);
    if (a->persona)
        expand_body(&p->persona, p->vars + 1, p->vars_count - 1, &p->system);
    if (p->system.len > 0)
        a->system = buf_c(&p->system);
    if (!a->system)
        a->system = p->template.system;
}

void presets_expand(struct presets *p, const struct chat_args *a, struct buf *prompt, bool attached)
{
    struct buf text = BUF_INIT(PROMPT_MAX);

    if (a->template_name) {
        if (prompt->len > 0)
            p->vars[0].value = buf_str(prompt);
        expand_body(&p->template, p->vars, p->vars_count, &text);
        if (prompt->len > 0 && !p->vars[0].used) {
            if (text.len > 0)
                buf_add_c(&text, "\n\n");
            buf_add_str(&text, buf_str(prompt));
        }
        buf_set(prompt, buf_str(&text));
        if (text.overflow)
            die_usage("prompt is too long: over %zu MiB", PROMPT_MAX >> 20);
        if (!attached && str_trim(buf_str(prompt)).n == 0)
            die_usage("no prompt: template '%s' is empty", a->template_name);
    }
    for (size_t i = 1; i < p->vars_count; i++)
        if (!p->vars[i].used)
            die_usage("unused variable '%.*s': no template or persona has it",
                      (int)p->vars[i].name.n, p->vars[i].name.p);
    buf_release(&text);
}

void presets_release(struct presets *p)
{
    preset_release(&p->template);
    preset_release(&p->persona);
    free(p->vars);
    buf_release(&p->system);
}

/* ---- a new one ---- */

/* Adds `PREFIXKEY = VALUE`. */
static int add_setting_line(struct buf *out, const char *prefix, const char *key, struct str value,
                            struct err *e)
{
    if (str_has_control(value))
        return err_set(e, ERR_USAGE, "cannot save '%s' in a template: its value has several lines",
                       key);
    buf_addf(out, "%s%s = %.*s\n", prefix, key, (int)value.n, value.p);
    return 0;
}

int preset_save(const struct chat_args *a, struct err *e)
{
    struct preset p = {.kind = "template", .name = a->save, .text = BUF_INIT(PRESET_MAX)};
    struct buf body = BUF_INIT(PRESET_MAX);
    char *file = preset_file(&p, e), *dir = file ? path_parent(file) : NULL;
    int result = dir ? file_make_dirs(dir, e) : -1;

    buf_add_c(&p.text, "---\n");
    for (size_t i = 0; result >= 0 && i < sizeof keys / sizeof *keys; i++)
        if (a->setting[keys[i].setting])
            result =
                add_setting_line(&p.text, "", keys[i].key, str_of(a->setting[keys[i].setting]), e);
    if (result >= 0 && a->system)
        result = add_setting_line(&p.text, "", "system", str_of(a->system), e);
    for (size_t i = 0; result >= 0 && i < a->options_count; i++)
        result = add_setting_line(&p.text, "option.", a->options[i].key, a->options[i].value, e);
    buf_add_c(&p.text, "---\n");
    prompt_add_words(&body, a->words, a->words_count);
    buf_addf(&p.text, "%s\n", body.len > 0 ? buf_c(&body) : "{{input}}");
    if (result >= 0 && access(file, F_OK) == 0)
        result = err_set(e, ERR_USAGE, "there is a template '%s': remove '%s' first", p.name, file);
    else if (result >= 0)
        result = file_replace(file, buf_str(&p.text), e);
    if (result >= 0)
        notef("chat -t %s uses '%s'", p.name, file);
    preset_release(&p);
    buf_release(&body);
    free(file);
    free(dir);
    return result < 0 ? -1 : 0;
}

/* ---- the list ---- */

/* Returns whether `-t` accepts the name and one line of the list can hold it. */
static bool is_listed_name(const char *name)
{
    struct str text = str_of(name);

    return !str_has_control(text) && name[0] != '.' && !str_ends(text, STR("~"));
}

static void list_one(void *arg, const char *kind, const char *name)
{
    struct preset p = PRESET_INIT(kind);
    struct buf line = BUF_INIT(PRESET_MAX);
    struct out *out = arg;
    struct err e = ERR_INIT;

    if (preset_load(&p, name, &e) < 0)
        warn_err(&e);
    out_text(out, str_of(name));
    out_text_end(out);
    out_byte(out, '\t');
    vis_add_line(&line, utf8_first(str_trim(p.body), BEGINNING), false);
    out_text(out, buf_str(&line));
    out_text_end(out);
    out_byte(out, '\n');
    err_release(&e);
    buf_release(&line);
    preset_release(&p);
}

int presets_each(const char *what, preset_fn *fn, void *arg, struct err *e)
{
    char *kind = mem_copy(what, strlen(what) - 1), *dir = config_user_file(what);
    struct dirent **entries = NULL;
    int result = dir ? config_check_owner(dir, e) : 0;
    int count = dir && result == 0 ? scandir(dir, &entries, NULL, alphasort) : 0;

    if (count < 0 && errno != ENOENT && errno != ENOTDIR)
        result = err_sys(e, errno, "cannot open '%s'", dir);
    for (int i = 0; i < count; i++) {
        char *file = path_join(dir, entries[i]->d_name);
        struct stat st;

        if (is_listed_name(entries[i]->d_name) && stat(file, &st) == 0 && S_ISREG(st.st_mode))
            fn(arg, kind, entries[i]->d_name);
        free(file);
        free(entries[i]);
    }
    free(entries);
    free(dir);
    free(kind);
    return result;
}

int presets_list(const char *what, struct out *out, struct err *e)
{
    return presets_each(what, list_one, out, e);
}
