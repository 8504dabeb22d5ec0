#include "chathist/cli/config.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/file.h"
#include "test.h"
#include "scratch.h"

/* A home of its own, and none of the variables that the one who runs this may have set. */
static void enter(void)
{
    static const char *const variables[] = {
        "CHAT_MODEL",           "CHAT_PROVIDER",     "CHAT_BASE_URL",  "CHAT_SESSION",
        "CHAT_HISTORY",         "CHAT_MAX_MESSAGES", "CHAT_MAX_BYTES", "CHAT_FSYNC",
        "CHAT_SESSION_TIMEOUT", "XDG_CONFIG_HOME",   "XDG_DATA_HOME",  "XDG_STATE_HOME",
        "CHAT_API_KEY_COMMAND", "XDG_CACHE_HOME",
    };

    scratch_enter();
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    setenv("HOME", scratch_dir, 1);
}

/* Loads a configuration of this text in a home of its own; leave ends it. */
static struct config load(const char *text, int result, struct err *e)
{
    struct config c;

    enter();
    CHECK_INT(file_make_dirs(".config/chathist", NULL), 1);
    if (text)
        scratch_put(".config/chathist/config", text);
    else
        CHECK_INT(mkfifo(".config/chathist/config", 0600), 0);
    CHECK_INT(config_load(&c, e), result);
    return c;
}

static void leave(struct config *c, struct err *e)
{
    config_release(c);
    err_release(e);
    scratch_leave();
}

TEST(a_flag_beats_the_environment_which_beats_the_file)
{
    struct err e = ERR_INIT;
    struct config c =
        load("# mine\n\n model = from file \nprovider=echo\nbase_url = http://x/?a=b\nmodel =\n"
             "session_timeout =\nheader.X =\noption.x =\n",
             0, &e);
    /* An empty value is not set. */
    CHECK(c.value[SETTING_SESSION_TIMEOUT] == NULL);
    CHECK(config_named(&c, SETTING_HEADER, "X") == NULL);
    CHECK_STR(config_named(&c, SETTING_OPTION, "x"), "");
    CHECK_STR(c.value[SETTING_MODEL], "from file");
    CHECK_STR(c.value[SETTING_BASE_URL], "http://x/?a=b");
    config_release(&c);
    setenv("CHAT_MODEL", "from environment", 1);
    /* An empty variable is not set. */
    setenv("CHAT_PROVIDER", "", 1);
    CHECK_INT(config_load(&c, &e), 0);
    CHECK_STR(c.value[SETTING_MODEL], "from environment");
    CHECK_INT(c.from[SETTING_MODEL], CONFIG_ENVIRONMENT);
    CHECK_STR(c.value[SETTING_PROVIDER], "echo");
    CHECK_INT(c.from[SETTING_PROVIDER], CONFIG_FILE);
    config_set(&c, SETTING_MODEL, "from flag");
    config_set(&c, SETTING_PROVIDER, NULL);
    CHECK_STR(c.value[SETTING_MODEL], "from flag");
    CHECK_INT(c.from[SETTING_MODEL], CONFIG_FLAG);
    CHECK_STR(c.value[SETTING_PROVIDER], "echo");
    unsetenv("CHAT_MODEL");
    unsetenv("CHAT_PROVIDER");
    leave(&c, &e);
}

TEST(a_bad_line_or_a_fifo_is_refused)
{
    static const struct {
        const char *text; /* NULL: a FIFO */
        const char *why;
    } rows[] = {{"model = x\nnonsense\n", "line 2 is not 'key = value'"}, {NULL, "is a FIFO"}};

    for (size_t i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct config c = load(rows[i].text, -1, &e);
        char want[512];

        snprintf(want, sizeof want, "cannot read '%s/.config/chathist/config': %s", scratch_dir,
                 rows[i].why);
        CHECK_STR(err_text(&e), want);
        CHECK_INT(e.kind, ERR_USAGE);
        leave(&c, &e);
    }
}

TEST(xdg_directories_are_absolute_or_ignored)
{
    static const char *const values[][2] = {{"", ".config/chathist/templates"},
                                            {"relative", ".config/chathist/templates"},
                                            {"/etc/mine", "/etc/mine/chathist/templates"}};
    struct err e = ERR_INIT;
    struct config c;

    for (size_t i = 0; i < 3; i++) {
        char want[512];
        char *file;

        enter();
        setenv("XDG_CONFIG_HOME", values[i][0], 1);
        setenv("XDG_DATA_HOME", "/data", 1);
        CHECK_INT(config_load(&c, &e), 0);
        CHECK_STR(c.data_home, "/data");
        file = config_user_file("templates");
        snprintf(want, sizeof want, "%s%s%s", i < 2 ? scratch_dir : "", i < 2 ? "/" : "",
                 values[i][1]);
        CHECK_STR(file, want);
        free(file);
        unsetenv("XDG_CONFIG_HOME");
        unsetenv("XDG_DATA_HOME");
        leave(&c, &e);
    }
}

TEST(values)
{
    static const struct {
        enum setting setting;
        const char *text;
        int result;
        int64_t want;
    } rows[] = {
        {SETTING_SESSION_TIMEOUT, "off", 0, -1},
        {SETTING_SESSION_TIMEOUT, "90", 0, 90000},
        {SETTING_SESSION_TIMEOUT, "2h", 0, 7200000},
        {SETTING_SESSION_TIMEOUT, "soon", -1, 0},
        {SETTING_SESSION_TIMEOUT, "-5", -1, 0},
        {SETTING_MAX_MESSAGES, "all", 0, -1}, /* SIZE_MAX */
        {SETTING_MAX_MESSAGES, "0", 0, 0},
        {SETTING_MAX_MESSAGES, "", 0, 20}, /* not set */
        {SETTING_MAX_MESSAGES, "18446744073709551616", -1, 0},
        {SETTING_MAX_MESSAGES, "5x", -1, 0},
        {SETTING_MAX_MESSAGES, " 5", -1, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct config c = {0};
        struct err e = ERR_INIT;
        int64_t got = 4711;
        size_t n = 4711;
        int result;

        config_set(&c, rows[i].setting, rows[i].text);
        if (rows[i].setting == SETTING_MAX_MESSAGES)
            result = config_limit(&c, SETTING_MAX_MESSAGES, &n, &e);
        else
            result = config_session_timeout(&c, &got, &e);
        if (rows[i].setting == SETTING_MAX_MESSAGES)
            got = (int64_t)n;
        CHECK_INT(result, rows[i].result);
        if (result == 0)
            CHECK_INT(got, rows[i].want);
        else
            CHECK_INT(e.kind, ERR_USAGE);
        err_release(&e);
        config_release(&c);
    }
}

TEST(settings_for_one_name)
{
    struct err e = ERR_INIT;
    struct config c = load("api_key_command = any\n"
                           "api_key_command.a = one\n"
                           "api_key_command.b =\n"
                           "api_key_command.a = two = 2\n"
                           "mcp.a = npx -y x=y\n",
                           0, &e);

    CHECK_STR(c.value[SETTING_API_KEY_COMMAND], "any");
    CHECK_INT(c.from[SETTING_API_KEY_COMMAND], CONFIG_FILE);
    CHECK_STR(config_named(&c, SETTING_API_KEY_COMMAND, "a"), "two = 2");
    CHECK_STR(config_named(&c, SETTING_MCP, "a"), "npx -y x=y");
    CHECK(config_named(&c, SETTING_API_KEY_COMMAND, "b") == NULL);
    CHECK(config_named(&c, SETTING_API_KEY_COMMAND, "") == NULL);
    CHECK(config_named(&c, SETTING_MODEL, "a") == NULL);
    leave(&c, &e);
}
