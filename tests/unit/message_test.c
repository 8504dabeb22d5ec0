#include "chathist/history/message.h"

#include <stdlib.h>

#include "chathist/base/json.h"
#include "test.h"

#define HEAD "\"id\":\"1-a\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\""
#define LINE "{" HEAD ",\"content\":\"hello\"}"

static void check_str(struct str got, const char *want)
{
    CHECK_MEM(got.p, got.n, want, strlen(want));
}

/* ---- reading ---- */

TEST(a_plain_line_is_borrowed_whole)
{
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    const char *line = LINE;

    CHECK(message_parse(&m, str_of(line)));
    CHECK(m.line.p == line);
    CHECK_INT(m.line.n, strlen(line));
    check_str(m.id, "1-a");
    check_str(m.session_id, "s");
    check_str(m.timestamp, "t");
    check_str(m.role_text, "user");
    CHECK_INT(m.role, ROLE_USER);
    check_str(message_content(&m, &scratch), "hello");
    CHECK_INT(m.own.len, 0);
    CHECK_INT(scratch.len, 0);
    CHECK(m.field[FIELD_MODEL].p == NULL);
    message_release(&m);
    buf_release(&scratch);
}

TEST(tolerated_forms_are_read)
{
    static const char *const lines[] = {
        "\xef\xbb\xbf" LINE,
        LINE "\r",
        "  " LINE " \t",
        "{\"content\":\"hello\",\"role\":\"user\",\"timestamp\":\"t\",\"session_id\":\"s\",\"id\":"
        "\"1-a\"}",
        "{ \"id\" : \"1-a\" , "
        "\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":\"hello\" }",
        "{\"\\u0069d\":\"1-a\",\"session_i\\u0064\":\"\\u0073\",\"timestamp\":\"\\u0074\",\"role\":"
        "\"us\\u0065r\","
        "\"content\":\"hell\\u006f\"}",
        "{\"role\":\"tool\",\"content\":5," HEAD ",\"content\":\"hello\"}",
        "{" HEAD ",\"content\":\"hello\",\"tool_calls\":[{\"id\":\"x\",\"role\":\"tool\","
        "\"content\":\"no\"}]}",
        "{" HEAD ",\"content\":\"hello\",\"images\":\"many\",\"files\":7,\"reset\":0}",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct message m = MESSAGE_INIT;
        struct buf scratch = BUF_INIT(BUF_LINE);

        if (!CHECK(message_parse(&m, str_of(lines[i]))))
            fprintf(stderr, "    %s\n", lines[i]);
        CHECK(message_defect(str_of(lines[i])) == NULL);
        check_str(m.id, "1-a");
        check_str(m.session_id, "s");
        check_str(m.timestamp, "t");
        check_str(m.role_text, "user");
        CHECK_INT(m.role, ROLE_USER);
        check_str(message_content(&m, &scratch), "hello");
        CHECK(!message_is_reset(&m));
        message_release(&m);
        buf_release(&scratch);
    }
}

TEST(content_survives_what_json_can_hold)
{
    static const struct {
        const char *json, *want;
        size_t n;
    } cases[] = {
        {"null", "", 0},
        {"\"\"", "", 0},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\ud800\"", "\xef\xbf\xbd", 3},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 4},
        {"\"\\/\\n\"", "/\n", 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct message m = MESSAGE_INIT;
        struct buf scratch = BUF_INIT(BUF_LINE);
        struct buf line = BUF_INIT(BUF_LINE);

        buf_addf(&line, "{" HEAD ",\"content\":%s}", cases[i].json);
        CHECK(message_parse(&m, buf_str(&line)));

        struct str got = message_content(&m, &scratch);

        CHECK_MEM(got.p, got.n, cases[i].want, cases[i].n);
        message_release(&m);
        buf_release(&scratch);
        buf_release(&line);
    }
}

TEST(refused_lines_have_a_reason)
{
    static const struct {
        const char *line, *why;
        size_t n; /* 0: strlen */
    } cases[] = {
        {"", "not JSON", 0},
        {"{", "not JSON", 0},
        {"{\"id\":\"1-a\",\"session", "not JSON", 0},
        {"\0\0\0", "NUL bytes", 3},
        {LINE LINE, "more than one value", 0},
        {LINE " x", "more than one value", 0},
        {"[" LINE "]", "not an object", 0},
        {"5", "not an object", 0},
        {"{}", "no 'id'", 0},
        {"{" HEAD "}", "no 'content'", 0},
        {"{" HEAD ",\"content\":5}", "'content' is not a string", 0},
        {"{" HEAD ",\"content\":[]}", "'content' is not a string", 0},
        {"{" HEAD ",\"content\":\"\",\"role\":null}", "'role' is not a string", 0},
        {"{" HEAD ",\"content\":\"\",\"id\":7}", "'id' is not a string", 0},
        {"{" HEAD ",\"content\":\"\",\"timestamp\":1719}", "'timestamp' is not a string", 0},
        {"{" HEAD ",\"content\":\"\xff\"}", "not UTF-8", 0},
        {"{\"x\":" LINE "}", "no 'id'", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct message m = MESSAGE_INIT;
        struct str line = {cases[i].line, cases[i].n ? cases[i].n : strlen(cases[i].line)};

        CHECK(!message_parse(&m, line));
        CHECK_STR(message_defect(line), cases[i].why);
        message_release(&m);
    }
}

TEST(escaped_fields_stay_right_however_long)
{
    struct message m = MESSAGE_INIT;
    struct buf line = BUF_INIT(BUF_LINE);

    buf_add_c(&line, "{\"id\":\"\\u0041\",\"session_id\":\"");
    for (int i = 0; i < 10000; i++)
        buf_add_c(&line, "\\u0042");
    buf_add_c(&line, "\",\"timestamp\":\"\",\"role\":\"\\u0043\",\"content\":\"\"}");
    for (int round = 0; round < 2; round++) {
        CHECK(message_parse(&m, buf_str(&line)));
        check_str(m.id, "A");
        CHECK_INT(m.session_id.n, 10000);
        CHECK(m.session_id.p[0] == 'B' && m.session_id.p[9999] == 'B');
        check_str(m.timestamp, "");
        check_str(m.role_text, "C");
        CHECK_INT(m.role, ROLE_OTHER);
    }
    message_release(&m);
    buf_release(&line);
}

TEST(optional_fields_are_found_by_their_type)
{
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);

    CHECK(message_parse(
        &m, STR("{" HEAD ",\"content\":\"\",\"model\":\"m\\n\",\"provider\":5,\"reset\":true}")));
    check_str(message_text(&m, FIELD_MODEL, &scratch), "m\n");
    CHECK(message_text(&m, FIELD_PROVIDER, &scratch).p == NULL);
    CHECK(message_text(&m, FIELD_REPLY_TO, &scratch).p == NULL);
    check_str(m.field[FIELD_PROVIDER], "5");
    CHECK(!message_is_reset(&m)); /* not a system line */
    CHECK(message_parse(&m, STR("{" HEAD ",\"content\":\"\",\"role\":\"system\",\"reset\":true}")));
    CHECK(message_is_reset(&m));
    CHECK(
        message_parse(&m, STR("{" HEAD ",\"content\":\"\",\"role\":\"system\",\"reset\":false}")));
    CHECK(!message_is_reset(&m));
    message_release(&m);
    buf_release(&scratch);
}

TEST(roles_and_fields_have_names)
{
    CHECK_STR(role_name(ROLE_TOOL), "tool");
    CHECK(role_name(ROLE_OTHER) == NULL);
    CHECK_INT(role_of(STR("assistant")), ROLE_ASSISTANT);
    CHECK_INT(role_of(STR("User")), ROLE_OTHER);
    CHECK_INT(role_of(STR_NONE), ROLE_OTHER);
    CHECK_STR(field_name(FIELD_ID), "id");
    CHECK_STR(field_name(FIELD_FINISH_REASON), "finish_reason");
}

/* ---- writing ---- */

static void check_format(const struct draft *d, const char *want)
{
    struct buf out = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    CHECK_INT(draft_format(d, &out, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK_STR(buf_c(&out), want);
    err_release(&e);
    buf_release(&out);
}

/* A draft that was read from JSON is written as `want`. */
static void check_rewrite(const char *json, const char *want)
{
    struct draft d;
    struct err e = ERR_INIT;

    draft_init(&d);
    CHECK_INT(draft_from_json(&d, str_of(json), &e), 0);
    CHECK_STR(err_text(&e), "");
    check_format(&d, want);
    err_release(&e);
    draft_release(&d);
}

TEST(fields_are_written_in_their_order)
{
    struct draft d;

    draft_init(&d);
    draft_set_text(&d, FIELD_MODEL, STR("m"));
    draft_message(&d, ROLE_ASSISTANT, STR("a \"b\"\n\x01\xff"));
    draft_set_text(&d, FIELD_FINISH_REASON, STR("stop"));
    draft_set_int(&d, FIELD_IMAGES, 2);
    draft_set_text(&d, FIELD_TIMESTAMP, STR("t"));
    draft_set_text(&d, FIELD_SESSION_ID, STR("s"));
    draft_set_text(&d, FIELD_ID, STR("old"));
    draft_set_text(&d, FIELD_ID, STR("1-a"));
    draft_push_text(&d, FIELD_FILES, STR("x"));
    draft_push_text(&d, FIELD_FILES, STR("y\t"));
    CHECK(draft_has(&d, FIELD_FILES));
    CHECK(!draft_has(&d, FIELD_MODEL)); /* draft_message has dropped it */
    check_format(&d,
                 "{\"id\":\"1-a\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"assistant\","
                 "\"content\":\"a \\\"b\\\"\\n\\u0001\xef\xbf\xbd\",\"images\":2,"
                 "\"files\":[\"x\",\"y\\t\"],\"finish_reason\":\"stop\"}\n");
    draft_release(&d);
}

TEST(pushing_goes_on_from_an_array_that_was_set)
{
    struct draft d;

    draft_init(&d);
    draft_set(&d, FIELD_REPLACES, STR("[ ]"));
    draft_push_text(&d, FIELD_REPLACES, STR("1"));
    CHECK_STR(buf_c(&d.field[FIELD_REPLACES]), "[ \"1\"]");
    draft_push_text(&d, FIELD_REPLACES, STR("2"));
    CHECK_STR(buf_c(&d.field[FIELD_REPLACES]), "[ \"1\",\"2\"]");
    draft_release(&d);
}

TEST(unknown_members_are_kept_byte_for_byte)
{
    check_rewrite(
        "{\"x\" : 1.0e+400, \"content\":\"c\",\"role\":\"user\",\"a\\u0062\":{ \"id\" : "
        "12345678901234567890 },"
        "\"timestamp\":\"t\",\"session_id\":\"s\",\"id\":\"1\",\"x\":\"\\ud800\\/\"}",
        "{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":"
        "\"c\","
        "\"x\":1.0e+400,\"a\\u0062\":{ \"id\" : 12345678901234567890 },\"x\":\"\\ud800\\/\"}\n");
    check_rewrite(
        "{" HEAD ",\"content\":\"\\u0000\\u00e9\",\"usage\":{\"input_tokens\":9007199254740993},"
        "\"tool_calls\":[{\"id\":\"c\", \"args\":\"{bad\"}]}",
        "{" HEAD
        ",\"content\":\"\\u0000\\u00e9\",\"tool_calls\":[{\"id\":\"c\", \"args\":\"{bad\"}],"
        "\"usage\":{\"input_tokens\":9007199254740993}}\n");
}

TEST(a_line_stays_one_line)
{
    check_rewrite("{\n" HEAD
                  ",\n\"content\":\"a\\nb\",\"usage\":{\n \"n\": 1\n},\"x\":[\n1,\r\n\"a  b\"]\n}",
                  "{" HEAD ",\"content\":\"a\\nb\",\"usage\":{\"n\":1},\"x\":[1,\"a  b\"]}\n");
}

TEST(null_is_absent_but_for_content)
{
    check_rewrite("{" HEAD ",\"content\":null,\"model\":null,\"files\":null,\"y\":null}",
                  "{" HEAD ",\"content\":\"\",\"y\":null}\n");
}

TEST(the_last_of_a_repeated_key_counts)
{
    check_rewrite("{\"images\":[]," HEAD ",\"content\":5,\"images\":3,\"content\":\"c\"}",
                  "{" HEAD ",\"content\":\"c\",\"images\":3}\n");
}

TEST(wrong_types_are_refused_by_name)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"{\"content\":5}", "'content' is not a string"},
        {"{\"role\":{}}", "'role' is not a string"},
        {"{\"images\":\"1\"}", "'images' is not a number"},
        {"{\"files\":\"a\"}", "'files' is not an array of strings"},
        {"{\"files\":[\"a\",1]}", "'files' is not an array of strings"},
        {"{\"replaces\":{\"a\":\"b\"}}", "'replaces' is not an array of strings"},
        {"{\"tool_calls\":{}}", "'tool_calls' is not an array of objects"},
        {"{\"tool_calls\":[\"x\"]}", "'tool_calls' is not an array of objects"},
        {"{\"reset\":false}", "'reset' is not true"},
        {"{\"usage\":[]}", "'usage' is not an object"},
        {"[]", "not a JSON object"},
        {"{\"a\":1} 5", "not valid JSON"},
        {"", "not valid JSON"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct draft d;
        struct err e = ERR_INIT;

        draft_init(&d);
        draft_set_text(&d, FIELD_MODEL, STR("m"));
        CHECK_INT(draft_from_json(&d, str_of(cases[i].json), &e), -1);
        CHECK_INT(e.kind, ERR_USAGE);
        CHECK_STR(err_text(&e), cases[i].why);
        CHECK_STR(buf_c(&d.field[FIELD_MODEL]), "\"m\"");
        err_release(&e);
        draft_release(&d);
    }
}

TEST(an_incomplete_draft_is_not_written)
{
    struct draft d;
    struct err e = ERR_INIT;
    struct buf out = BUF_INIT(BUF_LINE);

    draft_init(&d);
    draft_message(&d, ROLE_USER, STR(""));
    CHECK_INT(draft_format(&d, &out, &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e), "the message has no 'id'");
    CHECK_INT(out.len, 0);
    err_release(&e);
    draft_release(&d);
    buf_release(&out);
}

/* The draft whose line, without its newline, is `length` bytes long. */
static void make_length(struct draft *d, size_t length)
{
    struct buf content = BUF_INIT(BUF_LINE * 2);
    size_t frame = strlen("{" HEAD ",\"content\":\"\"}");
    char *to = buf_room(&content, length - frame);

    memset(to, 'x', length - frame);
    buf_grew(&content, length - frame);
    draft_init(d);
    CHECK_INT(draft_from_json(d, STR("{" HEAD "}"), NULL), 0);
    draft_set_text(d, FIELD_CONTENT, buf_str(&content));
    buf_release(&content);
}

TEST(a_line_over_the_limit_is_not_written)
{
    struct draft d;
    struct err e = ERR_INIT;
    struct buf out = BUF_INIT(BUF_LINE * 2);

    make_length(&d, BUF_LINE);
    CHECK_INT(draft_format(&d, &out, &e), 0);
    CHECK_INT(out.len, BUF_LINE + 1);
    draft_release(&d);
    buf_clear(&out);

    static const size_t over[] = {1, 100, 1000000};

    for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
        make_length(&d, BUF_LINE + over[i]);
        CHECK_INT(draft_format(&d, &out, &e), -1);
        CHECK_STR(err_text(&e), "the message is longer than 64 MiB");
        CHECK_INT(out.len, 0);
        draft_release(&d);
    }
    err_release(&e);
    buf_release(&out);
}

/* ---- lines of our own ---- */

/* Is it read as it is when a blank before it keeps it from being taken for one of our own? */
static bool reads_like_any_other(struct str line)
{
    struct message own = MESSAGE_INIT, other = MESSAGE_INIT;
    struct buf shifted = BUF_INIT(BUF_LINE);
    bool valid, same;

    buf_add_byte(&shifted, ' ');
    buf_add_str(&shifted, line);
    valid = message_parse(&own, line);
    same = message_parse(&other, buf_str(&shifted)) == valid &&
           (message_defect(line) != NULL) == !valid;
    for (size_t f = 0; valid && same && f < FIELD_COUNT; f++)
        same = (own.field[f].p == NULL) == (other.field[f].p == NULL) &&
               str_eq(own.field[f], other.field[f]);
    if (valid && same)
        same = str_eq(own.line, other.line) && str_eq(own.id, other.id) &&
               str_eq(own.session_id, other.session_id) && str_eq(own.timestamp, other.timestamp) &&
               str_eq(own.role_text, other.role_text) && own.role == other.role;
    message_release(&own);
    message_release(&other);
    buf_release(&shifted);
    return same;
}

#define OWN_TIME ",\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\""
#define OWN                                                                                        \
    "{\"id\":\"1719500000000-a1b2c3d4\",\"session_id\":\"sess_1719500000000_f0e1d2\"" OWN_TIME

TEST(a_line_of_our_own_is_read_like_any_other)
{
    static const char bytes[] = "\"\\{}:,[ aX0\t\r\n\x01\x7f\xc3\xe2\xff";
    static const char *const lines[] = {
        OWN ",\"role\":\"user\",\"content\":\"a\\u00e9\",\"id\":\"twice\",\"files\":[\"x\"]}",
        OWN ",\"role\":\"assistant\",\"content\":\"\",\"role\":\"us\\u0065r\",\"x\":0}",
        OWN ",\"role\":\"system\",\"timestamp\":\"\\t\",\"reset\":true,\"content\":null}",
        OWN ",\"role\":\"tool\",\"content\":\"\",\"id\":\"\\u00e9\",\"session_id\":\"s\\/\"}",
        "{\"id\":\"1719500000000-a1b2c3d4\",\"session_id\":\"6f2c1f4e-8d0b-4a57-9c3e-"
        "2b7d5a9e1f00\"" OWN_TIME ",\"role\":\"developer\",\"content\":\"a\"}",
        OWN ",\"role\":\"other\",\"content\":\"a\"}",
        OWN ",\"role\":\"user\"}",
    };
    bool all = true;

    for (size_t l = 0; l < sizeof(lines) / sizeof(lines[0]); l++) {
        size_t length = strlen(lines[l]);
        char *line = malloc(length);

        memcpy(line, lines[l], length);
        for (size_t n = 0; n <= length; n++)
            all = all && reads_like_any_other((struct str){line, n});
        for (size_t i = 0; i < length; i++) {
            char was = line[i];

            for (size_t k = 0; k < sizeof(bytes); k++) {
                line[i] = bytes[k];
                if (!reads_like_any_other((struct str){line, length})) {
                    all = false;
                    fprintf(stderr, "    line %zu, byte %zu is %02x\n", l, i,
                            (unsigned char)bytes[k]);
                }
            }
            line[i] = was;
        }
        free(line);
    }
    CHECK(all);
}

static void check_calls(const char *calls, const char *want, int line)
{
    struct json_iter it = json_iter(str_of(calls));
    struct buf scratch = BUF_INIT(BUF_SMALL), got = BUF_INIT(BUF_SMALL);
    struct message_call call;

    while (message_next_call(&it, &call, &scratch))
        buf_addf(&got, "%.*s %.*s %.*s;", (int)call.id.n, call.id.p ? call.id.p : "",
                 (int)call.name.n, call.name.p ? call.name.p : "", (int)call.args.n,
                 call.args.p ? call.args.p : "");
    test_check_str(buf_c(&got), want, calls, __FILE__, line);
    buf_release(&scratch);
    buf_release(&got);
}

static void check_sources(const char *citations, const char *want, int line)
{
    struct hash_map urls = {0};
    struct buf got = BUF_INIT(BUF_SMALL);

    message_sources(str_of(citations), &urls);
    for (size_t i = 0; i < urls.count; i++)
        buf_addf(&got, "%s;", urls.entries[i].key.p);
    test_check_str(buf_c(&got), want, citations, __FILE__, line);
    hash_map_release(&urls);
    buf_release(&got);
}

#define SOURCES(citations, want) check_sources(citations, want, __LINE__)

TEST(sources_once_and_in_order)
{
    struct buf many = BUF_INIT(BUF_LINE);
    struct hash_map urls = {0};

    SOURCES("[{\"url\":\"https://b/\"},{\"url_citation\":{\"url\":\"https:\\/\\/a\"}},"
            "{\"url\":\"https:\\/\\/b/\"},{\"url\":\"https://c\"}]",
            "https://b/;https://a;https://c;");
    SOURCES("[7,null,\"https://a\",{},{\"url\":7},{\"url\":\"\"},{\"url_citation\":\"a\"}]", "");
    SOURCES("{\"a\":{\"url\":\"https://a\"}}", "");
    SOURCES("", "");
    for (int i = 0; i < 60; i++)
        buf_addf(&many, "%s{\"url\":\"https://a/%d\"}", i > 0 ? "," : "[", i);
    buf_add_byte(&many, ']');
    message_sources(buf_str(&many), &urls);
    CHECK_INT(urls.count, MESSAGE_SOURCES);
    hash_map_release(&urls);
    buf_release(&many);
}

#define CALLS(calls, want) check_calls(calls, want, __LINE__)

TEST(calls_in_the_forms_of_three_writers)
{
    CALLS("[{\"id\":\"a\",\"name\":\"f\",\"args\":{\"k\":1}},{\"id\":\"b\",\"name\":\"f\",\"args\":"
          "\"{cut\"}]",
          "\"a\" \"f\" {\"k\":1};\"b\" \"f\" \"{cut\";");
    CALLS("[{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
          "\\\"k\\\":1}\"}},"
          "{\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{cut\"}},"
          "{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":{\"k\":2}}},{\"id\":\"d\","
          "\"function\":{\"name\":\"f\"}}]",
          "\"a\" \"f\" {\"k\":1};\"b\" \"f\" \"{cut\";\"c\" \"f\" {\"k\":2};\"d\" \"f\" ;");
    CALLS("[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"k\":1}}]",
          "\"a\" \"f\" {\"k\":1};");
    CALLS("[7,null,\"x\",{},{\"function\":\"f\"}]", "  ;  ;");
    CALLS("{\"a\":{}}", "");
    CALLS("", "");
}
