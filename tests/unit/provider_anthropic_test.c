/*
 * Anthropic's wire: building requests, and reading events and responses.
 */
#define PROVIDER provider_anthropic
#include "provider.h"

#include "chathist/base/json.h"
#include "chathist/llm/provider_anthropic.h"

/* ---- the request ---- */

#define URL "https://api.anthropic.com/v1/messages"
#define JSON_HEADER "Content-Type: application/json\n"
#define VERSION "anthropic-version: 2023-06-01\n"
#define CACHE "\"cache_control\":{\"type\":\"ephemeral\"},"
#define HEADERS JSON_HEADER "Accept: text/event-stream\n" VERSION

TEST(a_request_without_key_and_stream_and_with_options)
{
    struct context c;
    const struct ask_option options[] = {{"max_tokens", STR("7"), ASK_FLAG},
                                         {"tag", STR("plain text"), ASK_FLAG}};
    struct ask ask = {.context = &c,
                      .model = "m",
                      .key = "",
                      .base_url = "http://h:1/v1//?a=b",
                      .options = options,
                      .options_count = 2};

    context_init(&c);
    context_set_system(&c, STR(" \n"));
    context_add_text(&c, ROLE_USER, STR("a"));
    CHECK_REQUEST(
        &ask, "http://h:1/v1/messages?a=b", JSON_HEADER "Accept: application/json\n" VERSION,
        "{\"model\":\"m\",\"max_tokens\":7," CACHE "\"messages\":[{\"role\":\"user\",\"content\":"
        "\"a\"}],\"stream\":false,\"tag\":\"plain text\"}");
    context_release(&c);
}

#define USER(text) LINE("user", "\"content\":\"" text "\"")
#define CALLS(text, calls, more)                                                                   \
    LINE("assistant", "\"content\":\"" text "\",\"tool_calls\":[" calls "]" more)
#define CALL(id, name, args) "{\"id\":\"" id "\",\"name\":\"" name "\",\"args\":" args "}"
#define RESULT(id, text) LINE("tool", "\"content\":\"" text "\",\"tool_call_id\":\"" id "\"")

#define BLOCK "{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USE(id, name) "{'type':'tool_use','id':'" id "','name':'" name "','input':{}}"
#define ANSWER(id, text) "{'type':'tool_result','tool_use_id':'" id "','content':'" text "'}"
#define NO_PROMPT "the conversation does not end with a prompt"

TEST(a_conversation_becomes_messages)
{
    /* Lines and messages, which are written with ' for ", or an error. */
    static const struct {
        const char *lines[7], *want[6];
    } rows[] = {
        /* Calls and their results, of which one is blank. */
        {{USER("q"), CALLS("hm", CALL("a", "f", "{\"x\": 1}") "," CALL("b", "g", "{}"), ""),
          RESULT("b", " \\n"), RESULT("a", "r"), USER("and"),
          LINE("assistant", "\"content\":\"done\""), USER("more")},
         {"{'role':'user','content':'q'}",
          "{'role':'assistant','content':[{'type':'text','text':'hm'},"
          "{'type':'tool_use','id':'a','name':'f','input':{'x':1}}," USE("b", "g") "]}",
          "{'role':'user','content':[" ANSWER("a", "r") ",{'type':'tool_result','tool_use_id':'b'},"
                                                        "{'type':'text','text':'and'}]}",
          "{'role':'assistant','content':'done'}", "{'role':'user','content':'more'}"}},
        /* The API refuses is_error without a content. */
        {{USER("q"), CALLS("", CALL("a", "f", "{}") "," CALL("b", "f", "{}"), ""),
          LINE("tool", "\"content\":\"r\",\"tool_call_id\":\"a\",\"failed\":true"),
          LINE("tool", "\"content\":\"\",\"tool_call_id\":\"b\",\"failed\":true")},
         {"{'role':'user','content':'q'}",
          "{'role':'assistant','content':[" USE("a", "f") "," USE("b", "f") "]}",
          "{'role':'user','content':["
          "{'type':'tool_result','tool_use_id':'a','content':'r','is_error':true},"
          "{'type':'tool_result','tool_use_id':'b'}]}"}},
        /* Neighbours of one role are one message. */
        {{USER("q"), LINE("assistant", "\"content\":\"a\""), CALLS("b", CALL("a", "f", "{}"), ""),
          RESULT("a", "r")},
         {"{'role':'user','content':'q'}",
          "{'role':'assistant','content':[{'type':'text','text':'a\\n\\nb'}," USE("a", "f") "]}",
          "{'role':'user','content':[" ANSWER("a", "r") "]}"}},
        /* The user begins and ends. */
        {{LINE("assistant", "\"content\":\"hi\""), USER("q")},
         {"{'role':'user','content':'…'}", "{'role':'assistant','content':'hi'}",
          "{'role':'user','content':'q'}"}},
        {{USER("q"), LINE("assistant", "\"content\":\"cut off\"")}, {NO_PROMPT}},
        {{USER("  \\t")}, {NO_PROMPT}},
        {{LINE("system", "\"content\":\"\"")}, {NO_PROMPT}},
        /* Ids and names are made acceptable. */
        {{USER("q"), CALLS("", CALL("f:0", "a.b", "{}") "," CALL("f_0", "\\n", "{}"), ""),
          RESULT("f:0", "1"), RESULT("f_0", "2"), CALLS("", CALL("f:0", "a.b", "{}"), ""),
          RESULT("f:0", "3")},
         {"{'role':'user','content':'q'}",
          "{'role':'assistant','content':[" USE("call_hC8RPvWda", "a_b") "," USE("f_0", "_") "]}",
          "{'role':'user','content':[" ANSWER("call_hC8RPvWda", "1") "," ANSWER("f_0", "2") "]}",
          "{'role':'assistant','content':[" USE("call_iC8RPvWda", "a_b") "]}",
          "{'role':'user','content':[" ANSWER("call_iC8RPvWda", "3") "]}"}},
        /* Arguments that are no object. */
        {{USER("q"),
          CALLS("", CALL("a", "f", "\"{\\\"x\"") "," CALL("b", "f", "\" {\\\"y\\\": [1]}\""), ""),
          RESULT("a", "1"), RESULT("b", "2"), CALLS("", CALL("c", "f", "\"[1]\""), ""),
          RESULT("c", "3")},
         {"{'role':'user','content':'q'}",
          "{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f','input':"
          "{'INVALID_JSON':'{\\'x'}},{'type':'tool_use','id':'b','name':'f','input':{'y':[1]}}]}",
          "{'role':'user','content':[" ANSWER("a", "1") "," ANSWER("b", "2") "]}",
          "{'role':'assistant','content':[{'type':'tool_use','id':'c','name':'f','input':"
          "{'INVALID_JSON':'[1]'}}]}",
          "{'role':'user','content':[" ANSWER("c", "3") "]}"}},
        /* Thinking of another provider stays. */
        {{USER("q"),
          CALLS("", CALL("a", "f", "{}"), ",\"thinking\":[" BLOCK ",7],\"provider\":\"other\""),
          RESULT("a", "r")},
         {"{'role':'user','content':'q'}", "{'role':'assistant','content':[" USE("a", "f") "]}",
          "{'role':'user','content':[" ANSWER("a", "r") "]}"}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct context c;
        struct ask ask = {.context = &c, .model = "m"};
        struct http_request r;
        struct err e = ERR_INIT;
        struct buf want = BUF_INIT(BUF_SMALL), got = BUF_INIT(BUF_SMALL);
        struct str value = STR_NONE;

        context_init(&c);
        for (size_t k = 0; k < 7 && rows[i].lines[k]; k++)
            add_line(&c, rows[i].lines[k]);
        context_finish(&c);
        for (size_t k = 0; k < 6 && rows[i].want[k]; k++)
            buf_addf(&want, "%s%s", k > 0 ? "," : "", rows[i].want[k]);
        for (size_t k = 0; k < want.len; k++)
            want.data[k] = want.data[k] == '\'' ? '"' : want.data[k];
        http_request_init(&r);
        if (provider_anthropic.request(&provider_anthropic, &ask, &r, &e) == 0) {
            CHECK(json_check(buf_str(&r.body), &value, NULL));
            value = json_get(value, "messages");
            buf_add(&got, value.p + 1, value.n - 2);
        }
        CHECK_STR(got.len ? buf_c(&got) : err_text(&e), buf_c(&want));
        http_request_release(&r);
        context_release(&c);
        err_release(&e);
        buf_release(&want);
        buf_release(&got);
    }
}

/* Composes a request of an earlier and of this turn, as two programs would. The blocks of the first
 * answer were bound to `asked`. */
static void check_bound(const struct ask *first, const struct ask *second, bool sent, int line)
{
    struct context c;
    struct ask ask = *first;
    struct response a;
    struct buf text = BUF_INIT(BUF_SMALL), blocks = BUF_INIT(BUF_SMALL);
    struct http_request r;
    struct err e = ERR_INIT;

    context_init(&c);
    ask.context = &c;
    context_add_text(&c, ROLE_USER, STR("q"));
    response_init(&a, NULL);
    http_request_init(&r);
    CHECK_INT(provider_anthropic.request(&provider_anthropic, &ask, &r, &e), 0);
    a.opaque.before = r.prompt;
    http_request_release(&r);
    opaque_begin(&a.opaque, 0,
                 STR("{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}"));
    opaque_end(&a.opaque, 0);
    opaque_add_replay(&a.opaque, &blocks);
    buf_addf(&text,
             "{\"id\":\"1-0\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00.000000+00:"
             "00\",\"role\":\"assistant\",\"content\":\"t\","
             "\"provider\":\"anthropic\",\"thinking\":%s}",
             buf_c(&blocks));
    add_line(&c, buf_c(&text));
    context_add_text(&c, ROLE_USER, STR("and"));
    context_finish(&c);
    ask = *second;
    ask.context = &c;
    http_request_init(&r);
    provider_anthropic.request(&provider_anthropic, &ask, &r, &e);
    test_check_str(str_find(buf_str(&r.body),
                            STR("{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
                                "\"thinking\":\"\",\"signature\":\"s\"}," TEXT("t") "]}"))
                       ? "sent"
                   : str_find(buf_str(&r.body), STR("{\"role\":\"assistant\",\"content\":\"t\"}"))
                       ? "left out"
                       : buf_c(&r.body),
                   sent ? "sent" : "left out", "thinking", __FILE__, line);
    http_request_release(&r);
    err_release(&e);
    buf_release(&text);
    buf_release(&blocks);
    response_release(&a);
    context_release(&c);
}
#define CHECK_BOUND(first, second, sent) check_bound(first, second, sent, __LINE__)

TEST(thinking_goes_back_in_a_later_turn_after_the_same_request)
{
    const struct tool tool = {.name = (char[]){"f"},
                              .description = (char[]){""},
                              .parameters = (char[]){"{\"type\":\"object\"}"}};
    const struct tool *const tools[] = {&tool};
    const char *const hosted[] = {"web_search"};
    const struct ask_option system = {"system", STR("x"), ASK_FLAG},
                            top_k = {"top_k", STR("1"), ASK_FLAG};
    struct ask ask = {.model = "m"}, other = ask;

    CHECK_BOUND(&ask, &ask, true);
    other.effort = "high"; /* neither the effort nor the limit is in front of the messages */
    other.max_tokens = 9;
    other.options = &top_k;
    other.options_count = 1;
    CHECK_BOUND(&ask, &other, true);
    other.options = &system;
    CHECK_BOUND(&ask, &other, false);
    CHECK_BOUND(&other, &other, true);
    other = ask;
    other.model = "n";
    CHECK_BOUND(&ask, &other, false);
    other = ask;
    other.tools = tools;
    other.tools_count = 1;
    CHECK_BOUND(&ask, &other, false);
    other = ask;
    other.hosted_tools = hosted;
    other.hosted_tools_count = 1;
    CHECK_BOUND(&ask, &other, false);
    other = ask;
    other.schema = STR("{\"type\":\"object\"}");
    CHECK_BOUND(&ask, &other, false);
}

static void check_fields(struct ask ask, const char *wanted, int line)
{
    struct context c;
    struct http_request r;
    struct err e = ERR_INIT;
    struct buf got = BUF_INIT(BUF_SMALL);
    struct str body;

    context_init(&c);
    context_add_text(&c, ROLE_USER, STR("q"));
    ask.context = &c;
    ask.model = "m";
    http_request_init(&r);
    test_check_int(provider_anthropic.request(&provider_anthropic, &ask, &r, &e), 0, "request",
                   __FILE__, line);
    if (json_check(buf_str(&r.body), &body, NULL)) {
        buf_add_str(&got, json_get(body, "thinking"));
        buf_add_c(&got, " ");
        buf_add_str(&got, json_get(body, "output_config"));
        buf_add_c(&got, " ");
        buf_add_str(&got, json_get(body, "tools"));
    }
    test_check_str(buf_c(&got), wanted, "fields", __FILE__, line);
    buf_release(&got);
    http_request_release(&r);
    err_release(&e);
    context_release(&c);
}
#define CHECK_FIELDS(wanted, ...) check_fields((struct ask){__VA_ARGS__}, wanted, __LINE__)

TEST(thinking_effort_and_format)
{
#define ADAPTIVE "{\"type\":\"adaptive\",\"display\":\"summarized\"} "
#define FORMAT "\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}"
    const struct ask_option enabled = {
        "thinking", STR("{\"type\":\"enabled\",\"budget_tokens\":2000}"), ASK_FLAG};
    const struct ask_option config = {"output_config", STR("{\"effort\":\"xhigh\"}"), ASK_FLAG};
    struct str schema = STR("{\"type\":\"object\"}");

    CHECK_FIELDS("  ", .model = "m");
    CHECK_FIELDS(ADAPTIVE " ", .show_reasoning = true);
    CHECK_FIELDS("{\"type\":\"disabled\"}  ", .effort = "none", .show_reasoning = true);
    CHECK_FIELDS(ADAPTIVE "{\"effort\":\"low\"} ", .effort = "minimal");
    CHECK_FIELDS(ADAPTIVE "{\"effort\":\"max\"} ", .effort = "max");
    CHECK_FIELDS("{\"type\":\"enabled\",\"budget_tokens\":2000}  ", .show_reasoning = true,
                 .options = &enabled, .options_count = 1);
    CHECK_FIELDS(ADAPTIVE "{\"effort\":\"high\"," FORMAT "} ", .effort = "high", .schema = schema,
                 .schema_fits = SCHEMA_ANTHROPIC);
    CHECK_FIELDS(" {" FORMAT ",\"effort\":\"xhigh\"} ", .schema = schema,
                 .schema_fits = SCHEMA_ANTHROPIC, .options = &config, .options_count = 1);
    CHECK_FIELDS("  ", .schema = schema, .schema_fits = SCHEMA_STRICT);
}

TEST(tools_of_the_server)
{
    const char *const names[] = {"web_search", "web_search_20260318", "x_123", "y"};

    CHECK_FIELDS("  [{\"type\":\"web_search_20250305\",\"name\":\"web_search\"},"
                 "{\"type\":\"web_search_20260318\",\"name\":\"web_search\"},"
                 "{\"type\":\"x_123\",\"name\":\"x_123\"},{\"type\":\"y\",\"name\":\"y\"}]",
                 .hosted_tools = names, .hosted_tools_count = 4);
}

#define TOOLS_START                                                                                \
    "{\"model\":\"m\",\"max_tokens\":128000," CACHE                                                \
    "\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"                                         \
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"old\","   \
    "\"input\":{}}]},"                                                                             \
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":" \
    "\"r\"}]}],\"tools\":["
#define TOOLS_END ",\"stream\":true}"

TEST(tools_that_may_be_called)
{
    struct context c;
    const struct tool one = {.name = (char[]){"f"},
                             .description = (char[]){"say \"hi\""},
                             .parameters = (char[]){"{\"type\":\"object\",\"required\":[ \"x\"]}"}};
    const struct tool two = {.name = (char[]){"g"},
                             .description = (char[]){""},
                             .parameters = (char[]){"{\"type\":\"object\"}"}};
    const struct tool *const tools[] = {&one, &two};
    const struct ask_option option = {"tools", STR("[1]"), ASK_FLAG};
    struct ask ask = {.context = &c, .model = "m", .stream = true};

    context_init(&c);
    add_line(&c, USER("q"));
    add_line(&c, CALLS("", CALL("a", "old", "{}"), ""));
    add_line(&c, RESULT("a", "r"));
    /* Without tools, the earlier calls' tools are declared with tool_choice none. */
    CHECK_REQUEST(&ask, URL, HEADERS,
                  TOOLS_START "{\"name\":\"old\",\"input_schema\":{\"type\":\"object\"}}],"
                              "\"tool_choice\":{\"type\":\"none\"}" TOOLS_END);
    ask.tools = tools;
    ask.tools_count = 2;
    CHECK_REQUEST(&ask, URL, HEADERS,
                  TOOLS_START "{\"name\":\"f\",\"description\":\"say \\\"hi\\\"\",\"input_schema\":"
                              "{\"type\":\"object\",\"required\":[ \"x\"]}},"
                              "{\"name\":\"g\",\"input_schema\":{\"type\":\"object\"}}]" TOOLS_END);
    ask.options = &option;
    ask.options_count = 1;
    ask.tools_count = 1;
    CHECK_REQUEST(&ask, URL, HEADERS,
                  TOOLS_START "{\"name\":\"f\",\"description\":\"say \\\"hi\\\"\",\"input_schema\":"
                              "{\"type\":\"object\",\"required\":[ \"x\"]}},1]" TOOLS_END);
    context_release(&c);
}

/* ---- events ---- */

#define START(index, block)                                                                        \
    "{\"type\":\"content_block_start\",\"index\":" index ",\"content_block\":{" block "}}"
#define DELTA(index, delta)                                                                        \
    "{\"type\":\"content_block_delta\",\"index\":" index ",\"delta\":{" delta "}}"
#define FINISH(reason) "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"}}"

#define USAGE(usage) "{\"type\":\"message_delta\",\"delta\":{},\"usage\":" usage "}"

TEST(usage_and_model_are_noted)
{
    struct read r;

    read_init(&r);
    CHECK_INT(FEED(&r, "{\"type\":\"message_start\",\"message\":{\"model\":\"m-1\",\"usage\":"
                       "{\"input_tokens\":3,\"cache_creation_input_tokens\":20,"
                       "\"cache_read_input_tokens\":100,\"output_tokens\":1}}}"),
              0);
    CHECK_STR(r.a.model, "m-1");
    CHECK_INT(r.a.usage.at[USAGE_INPUT], 123);
    CHECK_INT(r.a.usage.at[USAGE_OUTPUT], 1);
    CHECK_INT(FEED(&r, USAGE("{\"input_tokens\":null,\"output_tokens\":9}"), USAGE("null"),
                   USAGE("{\"input_tokens\":-4,\"output_tokens\":99999999999999999}")),
              0);
    CHECK_INT(r.a.usage.at[USAGE_INPUT], 123);
    CHECK_INT(r.a.usage.at[USAGE_OUTPUT], 9);
    CHECK_INT(FEED(&r, USAGE("{\"cache_read_input_tokens\":200}")), 0);
    CHECK_INT(r.a.usage.at[USAGE_INPUT], 223);
    CHECK_INT(FEED(&r, USAGE("{\"input_tokens\":0,\"cache_read_input_tokens\":0}")), 0);
    CHECK_INT(r.a.usage.at[USAGE_INPUT], 223);
    CHECK_INT(r.a.usage.at[USAGE_CACHE_READ], 200);
    CHECK(!r.a.finished);
    read_release(&r);
}

TEST(what_is_missing_null_or_unknown_is_passed_over)
{
    static const char *const events[] = {
        "{}",
        "[]",
        "null",
        "7",
        "\"x\"",
        "",
        "  ",
        "{\"type\":7}",
        "{\"type\":\"message_start\"}",
        "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":null}",
        "{\"type\":\"content_block_start\",\"content_block\":[7]}",
        "{\"type\":\"content_block_delta\",\"delta\":\"text_delta\"}",
        START("0", "\"type\":\"odd\",\"text\":\"no\""),
        DELTA("0", "\"type\":\"odd_delta\",\"text\":\"no\""),
        DELTA("0", "\"text\":\"no\""),
        DELTA("0", "\"type\":\"text_delta\",\"text\":7"),
        DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":null"),
        FINISH(""),
        "{\"type\":\"odd\",\"delta\":{\"stop_reason\":\"end_turn\"},\"error\":null}",
        NULL,
    };
    struct read r;

    read_init(&r);
    CHECK_INT(feed(&r, events), 0);
    CHECK_INT(r.a.text.len, 0);
    CHECK_INT(r.a.calls_count, 0);
    CHECK(!r.a.finished && !r.a.finish_reason && !r.a.model);
    CHECK_INT(r.a.usage.at[USAGE_INPUT], -1);
    read_release(&r);
}

#define ERROR(type) "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"a\"}}"

TEST(errors_inside_a_stream)
{
    EVENT_ERROR("error", ERROR("overloaded_error"), ERR_BUSY, "server error: a");
    EVENT_ERROR("message", ERROR("rate_limit_error"), ERR_BUSY, "server error: a");
    EVENT_ERROR("error", ERROR("api_error"), ERR_BUSY, "server error: a");
    EVENT_ERROR("error", ERROR("timeout_error"), ERR_BUSY, "server error: a");
    EVENT_ERROR("error", ERROR("authentication_error"), ERR_AUTH, "server error: a");
    EVENT_ERROR("error", ERROR("permission_error"), ERR_AUTH, "server error: a");
    EVENT_ERROR("error", ERROR("invalid_request_error"), ERR_REQUEST, "server error: a");
    EVENT_ERROR("error", ERROR("not_found_error"), ERR_REQUEST, "server error: a");
    EVENT_ERROR("error", ERROR("billing_error"), ERR_REQUEST, "server error: a");
    EVENT_ERROR("error", "{\"message\":\"a\"}", ERR_BUSY, "server error: a");
    EVENT_ERROR("message", "{\"error\":\"a\"}", ERR_BUSY, "server error: a");
    EVENT_ERROR("message", "{\"type\":", ERR_INCOMPLETE,
                "answer is incomplete: an event is not JSON: '{\"type\":'");
}

/* ---- whole answers ---- */

TEST(a_whole_answer_that_is_none)
{
    WHOLE_ERROR(ERROR("overloaded_error"), ERR_BUSY, "server error: a");
    WHOLE_ERROR("{\"content\":[", ERR_BUSY, "the server's answer is not JSON: '{\"content\":['");
    WHOLE_ERROR("{\"content\":null}", ERR_BUSY,
                "the server's answer has no content: '{\"content\":null}'");
    WHOLE_ERROR("[]", ERR_BUSY, "the server's answer has no content: '[]'");
}
