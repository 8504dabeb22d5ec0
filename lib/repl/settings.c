#include "repl/commands.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/prompt.h"
#include "chathist/chat/request_settings.h"
#include "chathist/chat/template.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"
#include "chathist/history/thread.h"

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

void repl_offer_models(struct repl *r, struct line_words *words, struct str typed)
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

static void list_models(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    line_signals_forget();
    if (load_models(r, &chat->args->limits, &e) < 0) {
        repl_report(&e);
        return;
    }
    for (size_t i = 0; i < r->models.count; i++) {
        const char *model = r->models.at[i];
        bool present = chat->server.model && strcmp(model, chat->server.model) == 0;

        buf_clear(&name);
        buf_addf(&name, "%s %s:%s\n", present ? "*" : " ", chat->server.provider->name, model);
        out_text(r->out, buf_str(&name));
    }
    out_text_end(r->out);
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
        repl_note_interrupt(r, interrupt_signal());
    else if (result < 0)
        repl_report(&e);
    else
        repl_say(r, "model %s:%s", chat->server.provider->name, chat->server.model);
    err_release(&e);
    free(copy);
    return result == 0;
}

void repl_model(struct repl *r, struct str name)
{
    if (name.n == 0)
        list_models(r);
    else
        change_model(r, name);
}

/* Returns the text without the quotation marks around all of it. */
static struct str unquoted(struct str text)
{
    bool quoted = text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"' &&
                  !memchr(text.p + 1, '"', text.n - 2);

    return quoted ? (struct str){text.p + 1, text.n - 2} : text;
}

void repl_system(struct repl *r, struct str text)
{
    struct buf present = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct thread t = {0};
    struct err e = ERR_INIT;

    if (text.n > 0) {
        repl_set_system(r, unquoted(text));
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

void repl_tools(struct repl *r, struct str rest)
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

/* Changes what /set, /role and /template change. value.p NULL: it has no value any more. Reports an
 * error and returns false if that fails. */
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
        result = change_setting(&r->chat->config, settings[i].setting, value, &e);
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
        print_setting(r, "", settings[i].name, str_of(r->chat->config.value[settings[i].setting]));
    if (request_settings_load(&r->chat->settings, &r->chat->config, r->chat->args,
                              &r->chat->options, server->provider, &e) < 0)
        repl_report(&e);
    for (size_t i = 0; i < r->chat->settings.options_count; i++)
        print_setting(r, "option.", r->chat->settings.options[i].key,
                      r->chat->settings.options[i].value);
}

void repl_set(struct repl *r, struct str rest)
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

void repl_offer_settings(struct repl *r, struct line_words *words, struct str typed)
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
    for (size_t i = 0; str_eq_c(key, "effort") && i < sizeof levels / sizeof *levels; i++)
        line_offer(words, typed, str_of(levels[i]));
    if (str_eq_c(key, "model"))
        repl_offer_models(r, words, typed);
}

/* ---- personas and templates ---- */

/* Makes the settings of a file those of the conversation. Returns false if one was refused. */
static bool take_settings(struct repl *r, const struct preset *p)
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

void repl_role(struct repl *r, struct str rest)
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
    } else if (take_settings(r, &p) && text.len > 0) {
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

void repl_template(struct repl *r, struct str rest)
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
    } else if (take_settings(r, &p)) {
        if (p.system)
            repl_set_system(r, str_of(p.system));
        repl_ask(r, TURN_NEXT, buf_str(&prompt));
    }
    preset_release(&p);
    buf_release(&prompt);
    free(name);
}
