/* import_script: what a script may cost and reach, what it is told when it is wrong, and what the
 * core makes of its facts. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "chathist/convert/import.h"
#include "chathist/convert/import_script.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "test.h"

#define HEAD "importer{name='t',form='lines',is=function(r) return r.t end,tree=true,unique=true,"

struct run {
    struct buf lines, warnings;
    struct import_count count;
};

static void take_line(void *arg, struct str line)
{
    struct run *r = arg;

    buf_add_str(&r->lines, line);
    buf_add_byte(&r->lines, '\n');
}

static void take_warning(void *arg, const char *message)
{
    struct run *r = arg;

    buf_addf(&r->warnings, "%s\n", message);
}

static void take_count(void *arg, const struct import_result *result)
{
    struct run *r = arg;

    r->count = result->count;
}

/* Whether answers that may grow wait, and how many seconds ago the file changed. */
static bool waits;
static time_t age;

/* Imports a file with this text by a script, without storing. Returns the error, or "". */
static char *import(const char *script, const char *text, struct run *r)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    char path[] = "import_script_test.XXXXXX", history[] = "import_script_test.none";
    int fd = mkstemp(path);
    struct history h = {.dir_fd = -100,
                        .pointer_fd = -100,
                        .kind = HISTORY_EXPLICIT,
                        .trusted = true,
                        .path = history,
                        .pointer = history,
                        .cancel_fd = -1};
    struct importers *all = importers_new();
    struct import_options o = {.dry_run = true,
                               .waits = waits,
                               .importers = all,
                               .listener = {take_warning, take_count, take_line, NULL, r}};
    struct err e = ERR_INIT;
    struct import *im;
    uint64_t bad;
    char *error;

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
          futimens(fd, times) == 0 && close(fd) == 0);
    buf_init(&r->lines, BUF_LINE);
    buf_init(&r->warnings, BUF_SMALL);
    if (importers_add(all, "t", "t.lua", str_of(script), &e) == 0) {
        im = import_new(&h, &o, &bad, &e);
        if (CHECK(im != NULL)) {
            (void)import_file(im, path, importers_named(all, "t"), NULL, &e);
            CHECK(import_finish(im, NULL) == 0);
        }
        import_free(im);
    }
    error = mem_text(err_text(&e));
    /* The name of the file differs each time. */
    for (char *at = error; (at = strstr(at, path));)
        memcpy(at, "FILE.............FILE....", strlen(path));
    err_release(&e);
    importers_free(all);
    unlink(path);
    return error;
}

static void run_release(struct run *r)
{
    buf_release(&r->lines);
    buf_release(&r->warnings);
}

/* The import of one record by this body of `record` ends with an error that contains `wanted`, or
 * names the record so. */
static void check_wrong(const char *body, const char *wanted)
{
    struct buf script = BUF_INIT(BUF_SMALL);
    struct run r = {0};
    char *error;

    buf_addf(&script, HEAD "record=function(r) %s end}", body);
    error = import(buf_c(&script), "{\"t\":1,\"a\":[1,2,3],\"text\":\"x\"}\n", &r);
    if (!CHECK(strstr(error, wanted) || strstr(buf_c(&r.warnings), wanted)))
        fprintf(stderr, "%s: %s%s\n", body, error, buf_c(&r.warnings));
    free(error);
    buf_release(&script);
    run_release(&r);
}

TEST(a_record_has_bounds)
{
    check_wrong("while true do end", ":1': t.lua:1: too many instructions for one record");
    check_wrong("local function f() return f() end return f()", "too many instructions");
    check_wrong("for i = 1, 10^9 do local x = r.a[3] end", "too many instructions");
    check_wrong("for i = 1, 10^9 do match('aaaa', 'b') end", "too many instructions");
    check_wrong("table.sort({3,2,1}, function(a, b) while true do end end)",
                "too many instructions");
    check_wrong("local s = 'x' while true do s = s .. s end", "t.lua: more memory");
    check_wrong("local t = {} while true do t[#t + 1] = {} end", "t.lua:1: too many instructions");
    check_wrong("local function f() return 1 + f() end f()", "t.lua: more memory");
    check_wrong(
        "local s = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' match(s .. 'b', '^(a+)+$')",
        "takes too long");
}

TEST(a_script_reaches_nothing_else)
{
    static const char *const names[] = {
        "io",        "os",         "package",        "debug",        "require",
        "load",      "loadfile",   "dofile",         "pcall",        "xpcall",
        "print",     "warn",       "collectgarbage", "setmetatable", "getmetatable",
        "coroutine", "string.rep", "string.find",    "string.gsub",  "string.dump",
        "table.move"};

    for (size_t i = 0; i < sizeof names / sizeof(char *); i++) {
        struct buf body = BUF_INIT(BUF_SMALL);

        buf_addf(&body, "bad(tostring(%s))", names[i]);
        check_wrong(buf_c(&body), ":1': nil");
        buf_release(&body);
    }
}

TEST(errors_name_the_script_and_the_record)
{
    struct run r = {0};
    char *error = import("importer{name='t',\nform=}", "", &r);

    CHECK(strstr(error, "cannot use 't.lua': t.lua:2: unexpected symbol"));
    free(error);
    run_release(&r);
    error = import("x = 1", "", &r);
    CHECK_STR(error, "cannot use 't.lua': t.lua: no importer{...}");
    free(error);
    run_release(&r);
    error = import("importer{name='u'}", "", &r);
    CHECK_STR(error, "cannot use 't.lua': 'name' is not the name of the file");
    free(error);
    run_release(&r);
    check_wrong("error('no')", ":1': t.lua:1: no");
    check_wrong("error({})", ":1': t.lua: an error without a message");
    check_wrong("error()", ":1': t.lua: an error without a message");
    check_wrong("message{role='bird'}", ":1': t.lua:1: no known 'role'");
    check_wrong("kept = kept or r; error(kept.t)", ":1': 1");
    check_wrong("match('a', '(')", "missing");
    check_wrong("beside('other.json')", "the head has no beside = 'other.json'");
    check_wrong("rows('SELECT 1')", "the file is no database");
    check_wrong("ignored('new')", "a record of an unknown type");
}

/* The texts of the lines that come of these records. */
static void check_lines(const char *script, const char *text, const char *wanted)
{
    struct run r = {0};
    char *error = import(script, text, &r);
    struct str rest = buf_str(&r.lines);
    struct buf got = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct message m = MESSAGE_INIT;

    CHECK_STR(error, "");
    while (rest.n > 0) {
        if (!CHECK(message_parse(&m, str_cut(&rest, '\n'))))
            break;
        buf_addf(&got, "%.*s:", (int)m.role_text.n, m.role_text.p);
        buf_add_str(&got, message_content(&m, &scratch));
        if (m.field[FIELD_REPLACES].p)
            buf_addf(&got, " replaces %zu", str_count(m.field[FIELD_REPLACES], ',') + 1);
        if (m.field[FIELD_FORKED_FROM].p)
            buf_add_c(&got, " forked");
        if (m.field[FIELD_USAGE].p)
            buf_addf(&got, " %.*s", (int)m.field[FIELD_USAGE].n, m.field[FIELD_USAGE].p);
        buf_add_byte(&got, '|');
    }
    buf_add_str(&got, buf_str(&r.warnings));
    CHECK_STR(buf_c(&got), wanted);
    free(error);
    message_release(&m);
    buf_release(&got);
    buf_release(&scratch);
    run_release(&r);
}

static const char plain[] =
    HEAD "record=function(r) link(r.id, r.after) if r.rewind then rewind(r.rewind) end "
         "if r.role then message{role=r.role,id=r.id,parent=r.role=='user' and r.after or nil,"
         "session=r.session,content=r.text,model='m',response=r.response,joins=r.joins,"
         "usage=r.usage and {input=r.usage[1],output=r.usage[2]},time='2026-01-01T00:00:00Z'} "
         "elseif r.usage then usage{input=r.usage[1],output=r.usage[2]} "
         "elseif r.title then title{text=r.title,given=r.given} end end}";

TEST(the_records_of_an_answer_are_joined)
{
    check_lines(
        plain,
        "{\"role\":\"user\",\"id\":1,\"text\":\"a\"}\n"
        "{\"role\":\"assistant\",\"id\":2,\"response\":\"r\",\"text\":\"b\",\"usage\":[1,2]}\n"
        "{\"role\":\"assistant\",\"id\":3,\"response\":\"r\",\"text\":\"c\",\"usage\":[1,3]}\n"
        "{\"role\":\"user\",\"id\":4,\"text\":\"d\"}\n"
        "{\"role\":\"assistant\",\"id\":5,\"response\":\"r\",\"text\":\"e\",\"usage\":[1,5]}\n",
        "user:a|assistant:b\n\nc {\"input_tokens\":1,\"output_tokens\":3}|user:d|"
        "assistant:e {\"input_tokens\":0,\"output_tokens\":2}|");
}

TEST(usage_that_follows_the_results_is_of_the_answer)
{
    check_lines(
        plain,
        "{\"role\":\"assistant\",\"id\":1,\"joins\":true,\"text\":\"a\"}\n"
        "{\"role\":\"tool\",\"id\":2,\"text\":\"b\"}\n{\"usage\":[7,8]}\n"
        "{\"role\":\"assistant\",\"id\":3,\"joins\":true,\"text\":\"c\"}\n{\"usage\":[9,1]}\n",
        "assistant:a {\"input_tokens\":7,\"output_tokens\":8}|tool:b|"
        "assistant:c {\"input_tokens\":9,\"output_tokens\":1}|");
}

TEST(a_prompt_that_follows_an_earlier_message_replaces_what_was_said_since)
{
    static const char begin[] =
        "{\"role\":\"user\",\"id\":\"a\",\"text\":\"a\"}\n"
        "{\"role\":\"assistant\",\"id\":\"b\",\"after\":\"a\",\"text\":\"b\"}\n"
        "{\"id\":\"note\",\"after\":\"b\"}\n"
        "{\"role\":\"user\",\"id\":\"c\",\"after\":\"note\",\"text\":\"c\"}\n"
        "{\"role\":\"assistant\",\"id\":\"d\",\"after\":\"c\",\"text\":\"d\"}\n";
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_addf(&text, "%s{\"role\":\"user\",\"id\":\"e\",\"after\":\"note\",\"text\":\"e\"}\n",
             begin);
    check_lines(plain, buf_c(&text), "user:a|assistant:b|user:c|assistant:d|user:e replaces 2|");
    buf_clear(&text);
    buf_addf(&text, "%s{\"role\":\"user\",\"id\":\"e\",\"after\":\"gone\",\"text\":\"e\"}\n",
             begin);
    check_lines(plain, buf_c(&text), "user:a|assistant:b|user:c|assistant:d|user:e|");
    buf_clear(&text);
    buf_addf(&text, "%s{\"rewind\":1}\n{\"role\":\"user\",\"id\":\"e\",\"text\":\"e\"}\n", begin);
    check_lines(plain, buf_c(&text), "user:a|assistant:b|user:c|assistant:d|user:e replaces 2|");
    buf_release(&text);
    /* Results of tools beside the chain stay. */
    check_lines(plain,
                "{\"role\":\"assistant\",\"id\":\"a\",\"text\":\"a\"}\n"
                "{\"role\":\"tool\",\"id\":\"b\",\"after\":\"a\",\"text\":\"b\"}\n"
                "{\"role\":\"user\",\"id\":\"c\",\"after\":\"a\",\"text\":\"c\"}\n",
                "assistant:a|tool:b|user:c|");
}

TEST(the_copies_of_a_fork_name_their_lines_and_have_no_usage)
{
    check_lines(
        plain,
        "{\"role\":\"user\",\"id\":\"a\",\"session\":\"one\",\"text\":\"a\"}\n"
        "{\"role\":\"assistant\",\"id\":\"b\",\"session\":\"one\",\"text\":\"b\",\"usage\":[1,2]}\n"
        "{\"role\":\"user\",\"id\":\"a\",\"session\":\"two\",\"text\":\"a\"}\n"
        "{\"role\":\"assistant\",\"id\":\"b\",\"session\":\"two\",\"text\":\"b\",\"usage\":[1,2]}"
        "\n",
        "user:a|assistant:b {\"input_tokens\":1,\"output_tokens\":2}|user:a forked|"
        "assistant:b forked|");
}

TEST(an_answer_that_may_grow_waits)
{
    static const char prompt[] = "{\"role\":\"user\",\"id\":1,\"text\":\"a\"}\n",
                      answer[] = "{\"role\":\"assistant\",\"id\":2,\"response\":\"r\","
                                 "\"text\":\"b\"}\n",
                      result[] = "{\"role\":\"tool\",\"id\":3,\"text\":\"c\"}\n";
    struct buf text = BUF_INIT(BUF_SMALL);

    waits = true;
    buf_addf(&text, "%s%s", prompt, answer);
    check_lines(plain, buf_c(&text), "user:a|");
    age = 100;
    check_lines(plain, buf_c(&text), "user:a|assistant:b|");
    age = 0;
    buf_add_c(&text, result);
    check_lines(plain, buf_c(&text), "user:a|assistant:b|tool:c|");
    waits = false;
    buf_release(&text);
}

TEST(a_title_may_come_before_the_messages_of_its_session)
{
    static const char script[] =
        "importer{name='t',form='elements',is=function(r) return r.t end,record=function(r) "
        "if r.title then title{text=r.title,session=r.session} "
        "else message{role='user',id=r.id,session=r.session,content=r.text} end end}";

    check_lines(script,
                "[{\"title\":\"one\",\"session\":\"s\"},"
                "{\"id\":1,\"session\":\"r\",\"text\":\"a\"},"
                "{\"id\":1,\"session\":\"s\",\"text\":\"b\"},"
                "{\"title\":\"two\",\"session\":\"none\"}]",
                "user:a|user:b|title:one|");
}

TEST(a_blank_title_counts_for_nothing)
{
    check_lines(plain,
                "{\"role\":\"user\",\"id\":1,\"text\":\"a\"}\n{\"title\":\"one\",\"given\":true}\n"
                "{\"title\":\" \",\"given\":true}\n{\"title\":\"two\"}\n",
                "user:a|title:one|");
}
