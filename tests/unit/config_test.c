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

static void put_config(const char *text)
{
    CHECK_INT(file_make_dirs(".config/chathist", NULL), 1);
    scratch_put(".config/chathist/config", text);
}

TEST(nothing_is_set_by_default)
{
    struct config c;
    struct err e = ERR_INIT;
    int64_t ms;
    size_t n;
    bool sync;

    enter();
    CHECK_INT(config_load(&c, &e), 0);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        CHECK(c.value[i] == NULL);
    CHECK_INT(config_session_timeout(&c, &ms, &e), 0);
    CHECK_INT(ms, 30 * 60 * 1000);
    CHECK_INT(config_max_messages(&c, &n, &e), 0);
    CHECK_INT(n, 20);
    CHECK_INT(config_max_bytes(&c, &n, &e), 0);
    CHECK_INT(n, 102400);
    CHECK_INT(config_fsync(&c, &sync, &e), 0);
    CHECK(sync);
    CHECK_STR(c.home, scratch_dir);
    CHECK_STR(c.cwd, scratch_dir);
    config_release(&c);
    scratch_leave();
}

TEST(a_working_directory_that_is_gone_is_not_told)
{
    struct config c;
    struct err e = ERR_INIT;

    enter();
    CHECK(mkdir("gone", 0700) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    CHECK_INT(config_load(&c, &e), 0);
    CHECK(c.cwd == NULL);
    CHECK_STR(c.home, scratch_dir);
    config_release(&c);
    CHECK_INT(chdir(scratch_dir), 0);
    scratch_leave();
}

TEST(a_flag_beats_the_environment_which_beats_the_file)
{
    struct config c;
    struct err e = ERR_INIT;

    enter();
    put_config("# mine\n\n model = from file \nprovider=echo\nbase_url = http://x/?a=b\n");
    setenv("CHAT_MODEL", "from environment", 1);
    CHECK_INT(config_load(&c, &e), 0);
    CHECK_STR(c.value[SETTING_MODEL], "from environment");
    CHECK_INT(c.from[SETTING_MODEL], CONFIG_ENVIRONMENT);
    CHECK_STR(c.value[SETTING_PROVIDER], "echo");
    CHECK_INT(c.from[SETTING_PROVIDER], CONFIG_FILE);
    CHECK_STR(c.value[SETTING_BASE_URL], "http://x/?a=b");
    config_set(&c, SETTING_MODEL, "from flag");
    config_set(&c, SETTING_PROVIDER, NULL);
    CHECK_STR(c.value[SETTING_MODEL], "from flag");
    CHECK_INT(c.from[SETTING_MODEL], CONFIG_FLAG);
    CHECK_STR(c.value[SETTING_PROVIDER], "echo");
    config_release(&c);
    unsetenv("CHAT_MODEL");
    scratch_leave();
}

TEST(an_empty_variable_is_not_set)
{
    struct config c;
    struct err e = ERR_INIT;

    enter();
    put_config("model = from file\n");
    setenv("CHAT_MODEL", "", 1);
    CHECK_INT(config_load(&c, &e), 0);
    CHECK_STR(c.value[SETTING_MODEL], "from file");
    config_release(&c);
    unsetenv("CHAT_MODEL");
    scratch_leave();
}

TEST(a_line_that_is_no_setting_is_refused)
{
    struct config c;
    struct err e = ERR_INIT;
    struct buf want = BUF_INIT(BUF_SMALL);

    enter();
    put_config("model = x\nnonsense\n");
    CHECK_INT(config_load(&c, &e), -1);
    buf_addf(&want, "cannot read '%s/.config/chathist/config': line 2 is not 'key = value'",
             scratch_dir);
    CHECK_STR(err_text(&e), buf_c(&want));
    CHECK_INT(e.kind, ERR_USAGE);
    config_release(&c);
    err_release(&e);
    buf_release(&want);
    scratch_leave();
}

TEST(a_configuration_that_is_a_fifo_is_not_waited_for)
{
    struct config c;
    struct err e = ERR_INIT;

    enter();
    CHECK_INT(file_make_dirs(".config/chathist", NULL), 1);
    CHECK_INT(mkfifo(".config/chathist/config", 0600), 0);
    CHECK_INT(config_load(&c, &e), -1);
    CHECK(str_ends(str_of(err_text(&e)), STR("/.config/chathist/config': is a FIFO")));
    config_release(&c);
    err_release(&e);
    scratch_leave();
}

TEST(xdg_directories_are_absolute_or_ignored)
{
    struct config c;
    struct err e = ERR_INIT;
    struct buf want = BUF_INIT(BUF_SMALL);

    enter();
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("XDG_STATE_HOME", "relative", 1);
    CHECK_INT(config_load(&c, &e), 0);
    CHECK_STR(c.data_home, "/data");
    buf_addf(&want, "%s/.local/state", scratch_dir);
    CHECK_STR(c.state_home, buf_c(&want));
    config_release(&c);
    buf_release(&want);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_STATE_HOME");
    scratch_leave();
}

static void check_timeout(const char *text, int result, int64_t want)
{
    struct config c = {0};
    struct err e = ERR_INIT;
    int64_t ms = 0;

    config_set(&c, SETTING_SESSION_TIMEOUT, text);
    CHECK_INT(config_session_timeout(&c, &ms, &e), result);
    if (result == 0)
        CHECK_INT(ms, want);
    else
        CHECK_INT(e.kind, ERR_USAGE);
    err_release(&e);
    config_release(&c);
}

TEST(session_timeouts)
{
    check_timeout("off", 0, -1);
    check_timeout("90", 0, 90000);
    check_timeout("2h", 0, 7200000);
    check_timeout("soon", -1, 0);
    check_timeout("-5", -1, 0);
}

static void check_count(const char *text, int result, size_t want)
{
    struct config c = {0};
    struct err e = ERR_INIT;
    size_t n = 4711;

    config_set(&c, SETTING_MAX_MESSAGES, text);
    CHECK_INT(config_max_messages(&c, &n, &e), result);
    if (result == 0)
        CHECK(n == want);
    else
        CHECK_STR(err_text(&e)[0] == 'b' ? "bad" : err_text(&e), "bad");
    err_release(&e);
    config_release(&c);
}

TEST(counts)
{
    check_count("all", 0, SIZE_MAX);
    check_count("0", 0, 0);
    check_count("18446744073709551616", -1, 0);
    check_count("5x", -1, 0);
    check_count(" 5", -1, 0);
}

TEST(settings_for_one_name)
{
    struct config c;
    struct err e = ERR_INIT;

    enter();
    put_config("api_key_command = any\n"
               "api_key_command.a = one\n"
               "api_key_command.b =\n"
               "api_key_command.a = two = 2\n");
    CHECK_INT(config_load(&c, &e), 0);
    CHECK_STR(c.value[SETTING_API_KEY_COMMAND], "any");
    CHECK_INT(c.from[SETTING_API_KEY_COMMAND], CONFIG_FILE);
    CHECK_STR(config_named(&c, SETTING_API_KEY_COMMAND, "a"), "two = 2");
    CHECK(config_named(&c, SETTING_API_KEY_COMMAND, "b") == NULL);
    CHECK(config_named(&c, SETTING_API_KEY_COMMAND, "") == NULL);
    CHECK(config_named(&c, SETTING_MODEL, "a") == NULL);
    config_release(&c);
    scratch_leave();
}

static void check_user_file(const char *want)
{
    char *file = config_user_file("templates");

    CHECK_STR(file, want);
    free(file);
}

TEST(files_beside_the_configuration)
{
    enter();
    setenv("HOME", "/home/me", 1);
    check_user_file("/home/me/.config/chathist/templates");
    setenv("XDG_CONFIG_HOME", "/etc/mine", 1);
    check_user_file("/etc/mine/chathist/templates");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    check_user_file("/home/me/.config/chathist/templates");
    scratch_leave();
}

TEST(values_by_name)
{
    struct config c;
    struct err e = ERR_INIT;

    enter();
    put_config("mcp = a b\nmcp.a = npx -y x=y\nmcp.b=1\nmcp.b = 2\nmcp.none =\n");
    setenv("MCP", "nothing", 1);
    CHECK_INT(config_load(&c, &e), 0);
    CHECK_STR(c.value[SETTING_MCP], "a b");
    CHECK_STR(config_named(&c, SETTING_MCP, "a"), "npx -y x=y");
    CHECK_STR(config_named(&c, SETTING_MCP, "b"), "2");
    CHECK(config_named(&c, SETTING_MCP, "none") == NULL);
    CHECK(config_named(&c, SETTING_MODEL, "a") == NULL);
    config_release(&c);
    scratch_leave();
}
