#include "chat/repl_commands.h"

#include "test.h"

static void check(const char *typed, enum repl_input want, const char *name, const char *rest,
                  int line)
{
    const struct repl_command *command = NULL;
    struct str got;
    struct buf text = BUF_INIT(BUF_SMALL);
    enum repl_input input = repl_read_input(str_of(typed), &command, &got);

    test_check_int(input, want, typed, __FILE__, line);
    buf_add_str(&text, got);
    test_check_str(buf_c(&text), rest, typed, __FILE__, line);
    test_check_str(command ? command->name : NULL, name, typed, __FILE__, line);
    buf_release(&text);
}

#define INPUT(typed, want, name, rest) check(typed, want, name, rest, __LINE__)

TEST(prompts)
{
    INPUT("hello", REPL_PROMPT, NULL, "hello");
    INPUT("  /new", REPL_PROMPT, NULL, "  /new");
    INPUT("", REPL_PROMPT, NULL, "");
    INPUT("/", REPL_PROMPT, NULL, "/");
    INPUT("/ is the root", REPL_PROMPT, NULL, "/ is the root");
    INPUT("//", REPL_PROMPT, NULL, "/");
    INPUT("//new", REPL_PROMPT, NULL, "/new");
    INPUT("///new", REPL_PROMPT, NULL, "//new");
    INPUT("/usr/bin/env is what?", REPL_PROMPT, NULL, "/usr/bin/env is what?");
    INPUT("/new/x", REPL_PROMPT, NULL, "/new/x");
}

TEST(commands)
{
    INPUT("/new", REPL_COMMAND, "new", "");
    INPUT("/new  Be brief.  ", REPL_COMMAND, "new", "Be brief.");
    INPUT("/file /usr/share/x", REPL_COMMAND, "file", "/usr/share/x");
    INPUT("/system\nline 1\nline 2\n", REPL_COMMAND, "system", "line 1\nline 2");
    INPUT("/exit", REPL_COMMAND, "exit", "");
}

TEST(words_that_are_commands_alone)
{
    INPUT("exit", REPL_COMMAND, "quit", "");
    INPUT("quit \t", REPL_COMMAND, "quit", "");
    INPUT(":q", REPL_COMMAND, "quit", "");
    INPUT("help", REPL_COMMAND, "help", "");
    INPUT("?", REPL_COMMAND, "help", "");
    INPUT(" exit", REPL_PROMPT, NULL, " exit");
    INPUT("exit now", REPL_PROMPT, NULL, "exit now");
    INPUT("Exit", REPL_PROMPT, NULL, "Exit");
    INPUT("exit\nquit", REPL_PROMPT, NULL, "exit\nquit");
    INPUT("??", REPL_PROMPT, NULL, "??");
}

TEST(unknown_ones)
{
    INPUT("/etc", REPL_UNKNOWN, NULL, "etc");
    INPUT("/newer x", REPL_UNKNOWN, NULL, "newer");
    INPUT("/NEW", REPL_UNKNOWN, NULL, "NEW");
    INPUT("/new\xff", REPL_UNKNOWN, NULL, "new\xff");
}

static const char *nearest(const char *name)
{
    const struct repl_command *c = repl_command_nearest(str_of(name));

    return c ? c->name : NULL;
}

TEST(what_was_meant)
{
    CHECK_STR(nearest("reg"), "regenerate");
    CHECK_STR(nearest("regenrate"), "regenerate");
    CHECK_STR(nearest("laod"), "load");
    CHECK_STR(nearest("serach"), "search");
    CHECK_STR(nearest("session"), "sessions");
    CHECK_STR(nearest("q"), "quit");
    CHECK_STR(nearest("models"), "model");
    CHECK_STR(nearest("newer"), "new");
    CHECK_STR(nearest("zz"), NULL);
    CHECK_STR(nearest("x"), NULL);
    CHECK_STR(nearest("elephant"), NULL);
    CHECK_STR(nearest(""), NULL);
    CHECK_STR(nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), NULL);
}

TEST(the_table)
{
    for (const struct repl_command *c = repl_commands(); c->name; c++) {
        CHECK(repl_command_find(str_of(c->name)) == c);
        CHECK(strlen(c->name) <= 16);
        CHECK(strlen(c->help) <= 60);
    }
    CHECK(repl_command_find(STR("ne")) == NULL);
    CHECK(repl_command_find(STR("")) == NULL);
}
