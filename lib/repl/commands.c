#include "repl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/id.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/prompt.h"
#include "chathist/chat/request_settings.h"
#include "chathist/chat/template.h"
#include "chathist/cli/query_offer.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/cli/output.h"
#include "chathist/cli/signals.h"
#include "chathist/convert/export.h"
#include "chathist/history/session.h"
#include "chathist/history/session_list.h"
#include "chathist/history/thread.h"
#include "chathist/search/query.h"
#include "chathist/terminal/clipboard.h"
#include "repl/sessions.h"

/* ---- models and prompts ---- */

/* Requests the models of the present server, unless they are known. Returns 0, or -1 with *e
 * set. */
static int load_models(struct repl *r, const struct http_limits *limits, struct err *e)
{
    struct http_limits own = *limits;

    if (r->models_of == r->chat->server.provider && r->models.count > 0)
        return 0;
    model_list_release(&r->models);
    r->models_of = r->chat->server.provider;
    own.cancel_fd = line_signals_fd();
    if (chat_session_load_models(r->chat, &own, &r->models, e) == 0)
        return 0;
    model_list_release(&r->models);
    r->models = (struct model_list){0};
    return -1;
}

/* Completion does not wait longer for a slow server. */
#define MODELS_MS 2000

static void offer_models(struct repl *r, struct line_words *words, struct str typed)
{
    struct http_limits limits = {.connect_ms = MODELS_MS, .idle_ms = MODELS_MS};
    struct buf name = BUF_INIT(BUF_SMALL);

    load_models(r, &limits, NULL);
    for (size_t i = 0; i < r->models.count; i++) {
        struct str bare = str_of(r->models.at[i]);

        buf_clear(&name);
        buf_addf(&name, "%s:%s", r->models_of->name, r->models.at[i]);
        if (typed.n > 0 && str_starts(bare, typed))
            words_add(&words->all, bare);
        else
            line_offer(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

/* Uses another model. Reports an error and returns false if that fails. */
static bool change_model(struct repl *r, struct str name)
{
    struct chat_session *chat = r->chat;
    struct err e = ERR_INIT;
    char *copy = mem_copy(name.p, name.n);
    int result;

    /* The command that prints the key may use the terminal. */
    line_lend(r->line, true);
    result = chat_session_change_model(chat, copy, &e);
    line_lend(r->line, false);
    if (result < 0 && e.kind == ERR_SIGNAL)
        repl_set_interrupt(r, interrupt_signal());
    else if (result < 0)
        repl_report(&e);
    else
        repl_say(r, "model %s:%s", chat->server.provider->name, chat->server.model);
    err_release(&e);
    free(copy);
    return result == 0;
}

static void run_model(struct repl *r, struct str name)
{
    struct chat_session *chat = r->chat;
    struct buf line = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    if (name.n > 0) {
        change_model(r, name);
        return;
    }
    line_signals_forget();
    if (load_models(r, &chat->limits.http, &e) < 0) {
        repl_report(&e);
        return;
    }
    for (size_t i = 0; i < r->models.count; i++) {
        const char *model = r->models.at[i];
        bool present = chat->server.model && strcmp(model, chat->server.model) == 0;

        buf_clear(&line);
        buf_addf(&line, "%s %s:%s\n", present ? "*" : " ", chat->server.provider->name, model);
        out_text(r->out, buf_str(&line));
    }
    out_text_end(r->out);
    buf_release(&line);
}

static void run_system(struct repl *r, struct str text)
{
    struct buf present = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct thread t = {0};
    struct err e = ERR_INIT;

    if (text.n > 0) {
        /* Quotation marks around all of the text do not belong to it. */
        if (text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"' &&
            !memchr(text.p + 1, '"', text.n - 2))
            text = (struct str){text.p + 1, text.n - 2};
        repl_set_system(r, text);
        repl_say(r, "from the next prompt on");
        return;
    }
    buf_add_str(&present, buf_str(&r->system));
    if (!r->has_system && repl_load_thread(r, &t, &e) < 0) {
        repl_report(&e);
        return;
    }
    for (size_t i = t.count; i > 0 && !r->has_system; i--)
        if (t.at[i - 1].role == ROLE_SYSTEM) {
            buf_add_str(&present, message_content(&t.at[i - 1], &scratch));
            break;
        }
    if (present.len == 0) {
        repl_say(r, "there is no system prompt");
    } else {
        out_text(r->out, buf_str(&present));
        out_text_end(r->out);
        out_byte(r->out, '\n');
    }
    thread_release(&t);
    buf_release(&present);
    buf_release(&scratch);
}

static void run_tools(struct repl *r, struct str rest)
{
    const struct toolbox *box = &r->chat->toolbox;
    struct buf line = BUF_INIT(BUF_SMALL);

    (void)rest;
    for (size_t i = 0; i < box->count; i++) {
        buf_clear(&line);
        vis_add_line(&line, str_of(box->at[i]->name), true);
        buf_add_c(&line, "  ");
        vis_add_line(&line, str_of(box->at[i]->description), true);
        buf_add_byte(&line, '\n');
        out_raw(r->out, buf_str(&line));
    }
    if (box->count == 0)
        repl_say(r, "no tools were given to the model");
    buf_release(&line);
}

/* ---- settings ---- */

static const struct {
    const char *name;
    enum setting setting;
} settings[] = {
    {"effort", SETTING_EFFORT},
    {"reasoning", SETTING_REASONING},
    {"max_tokens", SETTING_MAX_TOKENS},
    {"max_input_tokens", SETTING_MAX_INPUT_TOKENS},
    {"max_messages", SETTING_MAX_MESSAGES},
    {"max_bytes", SETTING_MAX_BYTES},
};
#define SETTINGS (sizeof settings / sizeof *settings)
#define OPTION STR("option.")

static int check_setting(const struct config *c, enum setting s, struct err *e)
{
    const char *level;
    int64_t number;
    size_t limit;
    bool on;

    if (s == SETTING_REASONING)
        return config_switch(c, s, &on, e);
    if (s == SETTING_EFFORT)
        return config_effort(c, &level, e);
    if (s == SETTING_MAX_TOKENS)
        return config_max_tokens(c, &number, e);
    return config_limit(c, s, &limit, e);
}

/* Changes a setting of the configuration for this conversation. Returns 0, or -1 with *e set and
 * nothing changed. */
static int change_setting(struct config *c, enum setting s, struct str value, struct err *e)
{
    char *before = c->value[s];
    enum config_from from = c->from[s];

    c->value[s] = value.p ? mem_copy(value.p, value.n) : NULL;
    c->from[s] = CONFIG_FLAG;
    if (check_setting(c, s, e) == 0) {
        free(before);
        return 0;
    }
    free(c->value[s]);
    c->value[s] = before;
    c->from[s] = from;
    return -1;
}

/* Changes what /set, /persona and /template change. value.p NULL: it has no value any more. Reports
 * an error and returns false if that fails. */
static bool change(struct repl *r, struct str key, struct str value)
{
    struct err e = ERR_INIT;
    size_t i = 0;
    int result = 0;

    if (str_eq_c(key, "model") && value.p)
        return change_model(r, value);
    while (i < SETTINGS && !str_eq_c(key, settings[i].name))
        i++;
    if (i < SETTINGS)
        result = change_setting(&r->chat->choice.config, settings[i].setting, value, &e);
    else if (str_starts(key, OPTION) && key.n > OPTION.n)
        option_set_put(&r->chat->options, str_skip(key, OPTION.n), value);
    else
        result = err_set(&e, ERR_USAGE, "no setting '%.*s': /set lists them", (int)key.n, key.p);
    if (result < 0)
        repl_report(&e);
    else
        repl_say(r, "%.*s %.*s", (int)key.n, key.p, value.p ? (int)value.n : 1,
                 value.p ? value.p : "-");
    return result == 0;
}

static void print_setting(struct repl *r, const char *prefix, const char *name, struct str value)
{
    struct buf line = BUF_INIT(BUF_LINE);

    buf_addf(&line, "%s%s ", prefix, name);
    buf_add_str(&line, value.p ? value : STR("-"));
    buf_add_byte(&line, '\n');
    out_text(r->out, buf_str(&line));
    out_text_end(r->out);
    buf_release(&line);
}

static void list_settings(struct repl *r)
{
    const struct server *server = &r->chat->server;
    struct err e = ERR_INIT;
    struct buf model = BUF_INIT(BUF_SMALL);

    buf_addf(&model, "%s:%s", server->provider->name, server->model ? server->model : "");
    print_setting(r, "", "model", buf_str(&model));
    buf_release(&model);
    for (size_t i = 0; i < SETTINGS; i++)
        print_setting(r, "", settings[i].name,
                      str_of(r->chat->choice.config.value[settings[i].setting]));
    if (request_settings_load(&r->chat->settings, &r->chat->choice.config, r->chat->args,
                              &r->chat->options, &r->chat->known, server->provider, &e) < 0)
        repl_report(&e);
    for (size_t i = 0; i < r->chat->settings.options_count; i++)
        print_setting(r, "option.", r->chat->settings.options[i].key,
                      r->chat->settings.options[i].value);
}

static void run_set(struct repl *r, struct str rest)
{
    struct str value = rest, key = str_word(&value);

    value = str_trim(value);
    if (key.n == 0)
        list_settings(r);
    else if (value.n == 0)
        warnf("no value: try '/set %.*s VALUE', or - for none", (int)key.n, key.p);
    else
        change(r, key, str_eq_c(value, "-") ? STR_NONE : value);
}

/* Offers the names of settings, or values of the one that is typed. */
static void offer_settings(struct repl *r, struct line_words *words, struct str typed)
{
    static const char *const levels[] = {"none", "minimal", "low", "medium", "high", "max"};
    const char *blank = memchr(typed.p, ' ', typed.n);
    struct str key = {typed.p, blank ? (size_t)(blank - typed.p) : typed.n};

    if (!blank) {
        line_offer(words, typed, STR("model"));
        for (size_t i = 0; i < SETTINGS; i++)
            line_offer(words, typed, str_of(settings[i].name));
        line_offer(words, typed, OPTION);
        return;
    }
    words->from += key.n + 1;
    typed = str_skip(typed, key.n + 1);
    for (size_t i = 0; str_eq_c(key, "reasoning") && i < 2; i++)
        line_offer(words, typed, i == 0 ? STR("on") : STR("off"));
    for (size_t i = 0; str_eq_c(key, "effort") && i < sizeof levels / sizeof *levels; i++)
        line_offer(words, typed, str_of(levels[i]));
    if (str_eq_c(key, "model"))
        offer_models(r, words, typed);
}

/* ---- personas and templates ---- */

/* Makes the settings of a file those of the conversation. Returns false if one was refused. */
static bool apply_preset(struct repl *r, const struct preset *p)
{
    const char *provider = p->setting[SETTING_PROVIDER], *model = p->setting[SETTING_MODEL];
    struct buf name = BUF_INIT(BUF_SMALL), key = BUF_INIT(BUF_SMALL);
    bool ok = true;

    if (provider)
        buf_addf(&name, "%s:", provider);
    buf_add_c(&name, model ? model : "");
    if (name.len > 0)
        ok = change_model(r, buf_str(&name));
    for (size_t i = 0; ok && i < SETTINGS; i++)
        if (p->setting[settings[i].setting])
            ok = change(r, str_of(settings[i].name), str_of(p->setting[settings[i].setting]));
    for (size_t i = 0; ok && i < p->options_count; i++) {
        buf_clear(&key);
        buf_addf(&key, "option.%s", p->options[i].key);
        ok = change(r, buf_str(&key), p->options[i].value);
    }
    buf_release(&name);
    buf_release(&key);
    return ok;
}

static void run_persona(struct repl *r, struct str rest)
{
    struct preset p = PRESET_INIT("persona");
    struct buf text = BUF_INIT(PROMPT_MAX);
    char *name = mem_copy(rest.p, rest.n);
    struct err e = ERR_INIT;

    if (rest.n == 0) {
        if (presets_list("personas", r->out, &e) < 0)
            repl_report(&e);
    } else if (preset_load(&p, name, &e) < 0 || preset_expand(&p, NULL, 0, &text, &e) < 0) {
        repl_report(&e);
    } else if (apply_preset(r, &p) && text.len > 0) {
        repl_set_system(r, buf_str(&text));
        repl_say(r, "from the next prompt on: persona '%s'", name);
    }
    preset_release(&p);
    buf_release(&text);
    free(name);
}

/* Expands a template. Words NAME=VALUE at the start of `rest` are variables as long as the template
 * has them; the rest is the prompt. Returns 0, or -1 with *e set. */
static int expand_typed(const struct preset *p, struct str rest, struct buf *out, struct err *e)
{
    struct template_var *vars = NULL;
    size_t count = 1, cap = 0;
    int result = 0;
    bool more = true;

    vars = mem_grow(vars, &cap, 1, sizeof *vars);
    vars[0] = (struct template_var){.name = STR("input")};
    while (more) {
        struct str after = rest, value = str_word(&after), name;
        struct buf tried = BUF_INIT(PROMPT_MAX);
        struct err ignored = ERR_INIT;

        name = value.p ? str_cut(&value, '=') : STR_NONE;
        more = value.p && template_name_valid(name) && !str_eq_c(name, "input");
        if (!more)
            break;
        vars = mem_grow(vars, &cap, count + 1, sizeof *vars);
        vars[count] = (struct template_var){.name = name, .value = value};
        /* An error of another variable does not matter here. */
        (void)template_expand(p->body, p->line, vars, count + 1, &tried, &ignored);
        more = vars[count].used;
        buf_release(&tried);
        err_release(&ignored);
        if (more) {
            rest = str_trim(after);
            count++;
        }
    }
    for (size_t i = 0; i < count; i++)
        vars[i].used = vars[i].missing = false;
    if (rest.n > 0)
        vars[0].value = rest;
    result = preset_expand(p, vars, count, out, e);
    if (result == 0 && rest.n > 0 && !vars[0].used)
        buf_addf(out, "%s%.*s", out->len > 0 ? "\n\n" : "", (int)rest.n, rest.p);
    free(vars);
    return result;
}

static void run_insert(struct repl *r, struct str rest)
{
    struct buf printed = BUF_INIT(PROMPT_MAX), text = BUF_INIT(PROMPT_MAX);
    char shell[] = "/bin/sh", flag[] = "-c", *command = mem_copy(rest.n > 0 ? rest.p : "", rest.n);
    char *argv[] = {shell, flag, command, NULL};
    struct err e = ERR_INIT;
    int status = 0;

    if (rest.n > 0) {
        line_lend(r->line, true);
        status = process_read(argv, NULL, STR_NONE, &printed, line_signals_fd(), &e);
        line_lend(r->line, false);
        utf8_add_repaired(&text, str_trim(buf_str(&printed)));
    }
    if (rest.n == 0)
        warnf("a command is expected after /insert");
    else if (status < 0)
        repl_report(&e);
    else if (status > 0)
        warnf("nothing is inserted: the command ended with status %d", status);
    else if (printed.overflow)
        warnf("nothing is inserted: the command printed over %zu MiB", PROMPT_MAX >> 20);
    else if (text.len == 0)
        warnf("nothing is inserted: the command printed nothing");
    else
        line_begin_with(r->line, buf_str(&text));
    buf_release(&printed);
    buf_release(&text);
    err_release(&e);
    free(command);
}

static void run_template(struct repl *r, struct str rest)
{
    struct preset p = PRESET_INIT("template");
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct str word = str_word(&rest);
    char *name = mem_copy(word.p ? word.p : "", word.n);
    struct err e = ERR_INIT;

    if (word.n == 0) {
        if (presets_list("templates", r->out, &e) < 0)
            repl_report(&e);
    } else if (preset_load(&p, name, &e) < 0 || expand_typed(&p, str_trim(rest), &prompt, &e) < 0) {
        repl_report(&e);
    } else if (str_trim(buf_str(&prompt)).n == 0) {
        warnf("no prompt: template '%s' is empty", name);
    } else if (apply_preset(r, &p)) {
        if (p.system)
            repl_set_system(r, str_of(p.system));
        repl_ask(r, TURN_NEXT, buf_str(&prompt));
    }
    preset_release(&p);
    buf_release(&prompt);
    free(name);
}

/* ---- files ---- */

/* Returns the path that a typed name means. The caller frees it. */
static char *typed_path(const struct repl *r, struct str name)
{
    struct buf path = BUF_INIT(BUF_SMALL);

    if (str_starts(name, STR("~/")) && r->chat->choice.config.home) {
        buf_add_c(&path, r->chat->choice.config.home);
        name.p++;
        name.n--;
    }
    buf_add_str(&path, name);
    return buf_detach(&path);
}

static void run_file(struct repl *r, struct str name)
{
    struct err e = ERR_INIT;
    char *file = typed_path(r, name);

    if (str_eq_c(name, "-"))
        words_release(&r->files);
    else if (name.n > 0 && repl_attach(r, file, &e) < 0)
        repl_report(&e);
    for (size_t i = 0; i < r->files.count; i++)
        repl_say(r, "%s: goes with the next prompt", r->files.at[i]);
    if (r->files.count == 0)
        repl_say(r, "no file is attached");
    free(file);
}

/* Asks whether a file is to be overwritten. Returns true if the answer is yes. */
static bool confirm_overwrite(struct repl *r, const char *file)
{
    struct buf question = BUF_INIT(BUF_SMALL), answer = BUF_INIT(BUF_LINE);
    bool yes;

    vis_add_line(&question, str_of(file), true);
    buf_add_c(&question, " is there: overwrite it? [y/N] ");
    out_flush(r->out);
    yes = line_read(r->line, buf_str(&question), &answer) == LINE_TEXT &&
          confirm_letter(&answer) == 'y';
    buf_release(&question);
    buf_release(&answer);
    return yes;
}

static int add_bytes(void *arg, struct str bytes, struct err *e)
{
    (void)e;
    buf_add_str(arg, bytes);
    return 0;
}

/* Adds the conversation as Markdown. Returns 0, or -1 with *e set. */
static int add_markdown(const struct thread *t, struct buf *out, struct err *e)
{
    struct export x;
    int result = export_begin(&x, &export_md, add_bytes, out, e);

    x.title_line = t->title;
    if (result == 0)
        result = export_session(&x, t->at, t->count, e);
    if (result == 0)
        result = export_end(&x, e);
    export_release(&x);
    return result;
}

/* Adds the text of the last answer that has one. */
static void add_last_answer(const struct thread *t, struct buf *out)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    for (size_t i = t->count; i > 0 && out->len == 0; i--)
        if (t->at[i - 1].role == ROLE_ASSISTANT)
            buf_add_str(out, message_content(&t->at[i - 1], &scratch));
    buf_release(&scratch);
}

static void run_copy(struct repl *r, struct str rest)
{
    struct buf text = BUF_INIT(SIZE_MAX), said = BUF_INIT(BUF_SMALL);
    struct thread t = {0};
    struct err e = ERR_INIT;

    (void)rest;
    if (repl_load_thread(r, &t, &e) < 0) {
        repl_report(&e);
        return;
    }
    add_last_answer(&t, &text);
    out_flush(r->out);
    if (text.len == 0) {
        warnf("there is no answer yet to be copied");
    } else {
        line_signals_forget();
        clipboard_copy(buf_str(&text), STDOUT_FILENO, line_signals_fd(), &said);
        repl_say(r, "%s", buf_c(&said));
    }
    thread_release(&t);
    buf_release(&text);
    buf_release(&said);
}

/* Writes a new file (mode 0600), or replaces one after a question. Returns 1, 0 if the user
 * refuses, or -1 with *e set. */
static int save_text(struct repl *r, const char *path, struct str text, struct err *e)
{
    const char *why = history_file_of(r->chat->history, path);
    int fd, result;

    if (why)
        return err_set(e, ERR_USAGE, "'%s' %s", path, why);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        if (file_check_regular(path, e) < 0)
            return -1;
        if (!confirm_overwrite(r, path))
            return 0;
        return file_replace(path, text, e) < 0 ? -1 : 1;
    }
    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    result = file_write_all(fd, text.p, text.n);
    if (close(fd) < 0 || result < 0)
        return err_sys(e, errno, "cannot write '%s'", path);
    return 1;
}

static void run_save(struct repl *r, struct str rest)
{
    struct str name = rest, flag = str_cut(&name, ' ');
    bool answer = str_eq_c(flag, "-a");
    struct buf text = BUF_INIT(SIZE_MAX);
    struct thread t = {0};
    struct err e = ERR_INIT;
    char *file;
    int result;

    name = answer ? str_trim(name) : rest;
    if (name.n == 0) {
        warnf("no file: try '/save FILE', or '/save -a FILE' for the last answer alone");
        return;
    }
    file = typed_path(r, name);
    result = repl_load_thread(r, &t, &e);
    if (result == 0 && answer)
        add_last_answer(&t, &text);
    if (text.len > 0 && !str_ends(buf_str(&text), STR("\n")))
        buf_add_byte(&text, '\n');
    if (result == 0 && !answer && t.count > 0)
        result = add_markdown(&t, &text, &e);
    if (result == 0 && text.len == 0) {
        warnf("there is nothing yet to be saved");
    } else if (result == 0) {
        result = save_text(r, file, buf_str(&text), &e);
        repl_say(r, result > 0 ? "%s: saved" : "%s: not saved", file);
    }
    if (result < 0)
        repl_report(&e);
    thread_release(&t);
    free(file);
    buf_release(&text);
}

/* ---- the names of commands ---- */

/* The table of commands. */
static const struct repl_command *first_command(void);

const struct repl_command *repl_find_command(struct str name)
{
    for (const struct repl_command *c = first_command(); c->name; c++)
        if (c->run && str_eq_c(name, c->name))
            return c;
    return NULL;
}

/* A longer word is similar to no command. */
#define NAME_MAX_LEN 16

/* Returns the command that was probably meant, or NULL. */
static const struct repl_command *nearest_command(struct str name)
{
    char typed[NAME_MAX_LEN + 1] = {0};
    struct nearest meant = {.typed = typed};

    if (name.n > NAME_MAX_LEN)
        return NULL;
    memcpy(typed, name.p, name.n);
    for (const struct repl_command *c = first_command(); c->name; c++) {
        if (c->run && str_starts(str_of(c->name), name))
            return c;
        if (c->run)
            nearest_offer(&meant, c->name);
    }
    return meant.name ? repl_find_command(str_of(meant.name)) : NULL;
}

void repl_report_unknown(struct str name)
{
    const struct repl_command *nearest = nearest_command(name);
    int n = (int)name.n;

    if (nearest)
        warnf("unknown command '/%.*s': did you mean /%s? ('//%.*s' sends it)", n, name.p,
              nearest->name, n, name.p);
    else
        warnf("unknown command '/%.*s' (/help lists them, '//%.*s' sends it)", n, name.p, n,
              name.p);
}

/* ---- help ---- */

/* The column of explanations in /help. */
#define HELP_COLUMN 18

static void help_line(struct repl *r, const struct repl_command *c)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    size_t width;

    buf_addf(&line, "/%s %s", c->name, c->args);
    width = line.len;
    out_style(r->out, STYLE_BOLD);
    out_raw(r->out, buf_str(&line));
    out_style(r->out, STYLE_NONE);
    buf_clear(&line);
    buf_addf(&line, "%*s  %s\n", width < HELP_COLUMN ? (int)(HELP_COLUMN - width) : 0, "", c->help);
    if (c->run == repl_search)
        buf_addf(&line, "%*s%s\n%*s%s\n", HELP_COLUMN + 2, "", QUERY_HELP_WORDS, HELP_COLUMN + 2,
                 "", QUERY_HELP_FIELDS);
    out_raw(r->out, buf_str(&line));
    buf_release(&line);
}

static void show_help(struct repl *r, struct str name)
{
    const struct repl_command *c = first_command();

    if (str_starts(name, STR("/")))
        name = (struct str){name.p + 1, name.n - 1};
    if (name.n > 0) {
        c = repl_find_command(name);
        if (c)
            help_line(r, c);
        else
            warnf("there is no command '/%.*s'", (int)name.n, name.p);
        return;
    }
    for (; c->name; c++)
        if (c->run)
            help_line(r, c);
        else
            repl_print_dim(r, str_of(c->name));
    out_raw(
        r->out,
        STR("\nAlt-Enter, Shift-Enter or Ctrl-J begins a new line, as \\ does at the end of one;\n"
            "\"\"\" begins and ends a text of several. //x sends /x.\n"
            "exit, quit and :q alone leave, help and ? show this; a blank before them sends them.\n"
            "Ctrl-C stops an answer, Ctrl-R looks for an earlier prompt.\n"));
}

static void leave(struct repl *r, struct str rest)
{
    (void)rest;
    r->leave = true;
}

/* ---- completion ---- */

/* The maximum number of sessions that are offered, the newest. */
#define SESSIONS_MAX 40

static void offer_commands(struct line_words *words, struct str typed, const char *before)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (const struct repl_command *c = first_command(); c->name; c++) {
        if (!c->run)
            continue;
        buf_clear(&name);
        buf_addf(&name, "%s%s", before, c->name);
        line_offer(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

static void offer_command_names(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    offer_commands(words, typed, "");
}

static void offer_all(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    line_offer(words, typed, STR("all"));
}

static void offer_sessions(struct repl *r, struct line_words *words, struct str typed)
{
    struct session_list list;
    size_t i;

    if (session_list_newest(&list, r->chat->history, SIZE_MAX, NULL) < 0)
        return;
    for (i = 0; i < list.count && words->all.count < SESSIONS_MAX; i++)
        line_offer(words, typed, list.at[i].id);
    if (words->all.count == 0)
        for (i = 0; i < list.count && words->all.count < SESSIONS_MAX; i++)
            if ((typed.n >= SESSION_SUFFIX_MIN && str_ends(list.at[i].id, typed)) ||
                id_session_digits_begin(list.at[i].id, typed))
                words_add(&words->all, list.at[i].id);
    session_list_release(&list);
}

struct offered {
    struct line_words *words;
    struct str typed;
};

static void offer_preset(void *arg, const char *kind, const char *name)
{
    struct offered *o = arg;

    (void)kind;
    line_offer(o->words, o->typed, str_of(name));
}

static void offer_presets(const char *what, struct line_words *words, struct str typed)
{
    struct offered o = {words, typed};

    if (!memchr(typed.p, ' ', typed.n))
        presets_each(what, offer_preset, &o, NULL);
}

static void offer_personas(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    offer_presets("personas", words, typed);
}

static void offer_templates(struct repl *r, struct line_words *words, struct str typed)
{
    (void)r;
    offer_presets("templates", words, typed);
}

/* Offers the fields of a query for its last word, or values of its last field. */
static void offer_fields(struct repl *r, struct line_words *words, struct str typed)
{
    struct words offers = {0};
    size_t n = typed.n;

    while (n > 0 && typed.p[n - 1] != ' ')
        n--;
    query_offer(&offers, typed, r->chat->history, 1);
    words->from += n;
    for (size_t i = 0; i < offers.count; i++)
        words_add(&words->all, str_skip(str_of(offers.at[i]), n));
    words_release(&offers);
}

static bool is_dot(struct str path)
{
    return str_eq_c(path, "./") || str_eq_c(path, "../") || str_ends(path, STR("/./")) ||
           str_ends(path, STR("/../"));
}

/* Offers files whose names begin with the typed text; hidden ones after a typed dot. */
static void offer_files(struct repl *r, struct line_words *words, struct str typed)
{
    struct buf pattern = BUF_INIT(BUF_SMALL), word = BUF_INIT(BUF_SMALL);
    char *path = typed_path(r, typed);
    bool below_home = str_starts(typed, STR("~/")) && path[0] != '~';
    size_t home = below_home ? strlen(path) - typed.n + 1 : 0;
    glob_t found;

    for (const char *c = path; *c; c++)
        buf_addf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
    buf_add_byte(&pattern, '*');
    if (glob(buf_c(&pattern), GLOB_MARK, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            buf_clear(&word);
            buf_addf(&word, "%s%s", below_home ? "~" : "", found.gl_pathv[i] + home);
            if (!is_dot(buf_str(&word)))
                words_add(&words->all, buf_str(&word));
        }
        globfree(&found);
    }
    free(path);
    buf_release(&pattern);
    buf_release(&word);
}

void repl_complete(void *arg, struct str before, struct line_words *words)
{
    struct repl *r = arg;
    const struct repl_command *command;
    struct str typed = before, name;

    if (!str_starts(before, STR("/")) || str_find(before, STR("\n")))
        return;
    name = str_cut(&typed, ' ');
    if (!typed.p) {
        offer_commands(words, before, "/");
        return;
    }
    command = repl_find_command((struct str){name.p + 1, name.n - 1});
    if (!command || !command->offer)
        return;
    while (str_starts(typed, STR(" ")) ||
           (command->run == run_save && str_starts(typed, STR("-a ")))) {
        size_t n = typed.p[0] == ' ' ? 1 : 3;

        typed = str_skip(typed, n);
    }
    words->from = (size_t)(typed.p - before.p);
    command->offer(r, words, typed);
}

/* ---- the table ---- */

static const struct repl_command *first_command(void)
{
    static const struct repl_command commands[] = {
        {"Sessions", "", "", NULL, NULL},
        {"new", "[SYSTEM]", "start a new session", repl_new, NULL},
        {"load", "SESSION|N", "continue a past session, or the Nth of the last list", repl_load,
         offer_sessions},
        {"search", "QUERY", "search all messages, the newest first", repl_search, offer_fields},
        {"browse", "[QUERY]", "look through the history, and continue a session or take a message",
         repl_browse, offer_fields},
        {"sessions", "[N|all]", "list the sessions, the last used first", repl_sessions, offer_all},
        {"title", "[TEXT]", "name this session (-: no name), or show its name", repl_title, NULL},
        {"info", "", "describe this session: place, model, tokens, cost", repl_info, NULL},
        {"Prompts and answers", "", "", NULL, NULL},
        {"regenerate", "", "answer the last prompt again", repl_regenerate, NULL},
        {"edit", "[TEXT]", "replace the last prompt, without TEXT in the editor", repl_edit, NULL},
        {"template", "[NAME [TEXT]]", "send a prompt made of a template, or list them",
         run_template, offer_templates},
        {"copy", "", "copy the last answer to the clipboard", run_copy, NULL},
        {"file", "[FILE|-]", "attach a file to the next prompt (-: none), or list them", run_file,
         offer_files},
        {"insert", "COMMAND", "put what a command prints into the next prompt", run_insert, NULL},
        {"save", "[-a] FILE", "write the conversation, or (-a) the last answer, to a file",
         run_save, offer_files},
        {"Settings", "", "", NULL, NULL},
        {"model", "[NAME]", "ask another model, or list them", run_model, offer_models},
        {"system", "[TEXT]", "set the system prompt (\"\": none), or show it", run_system, NULL},
        {"persona", "[NAME]", "take a persona from now on, or list them", run_persona,
         offer_personas},
        {"set", "[KEY VALUE]", "change a setting or option (-: none), or list them", run_set,
         offer_settings},
        {"tools", "", "list the tools that the model may call", run_tools, NULL},
        {"This program", "", "", NULL, NULL},
        {"help", "[COMMAND]", "list the commands", show_help, offer_command_names},
        {"quit", "", "leave, as Ctrl-D does", leave, NULL},
        {"exit", "", "leave, as Ctrl-D does", leave, NULL},
        {0},
    };

    return commands;
}
