/*
 * OpenAI's wire: building requests, and reading events and responses.
 */
#define PROVIDER provider_openai
#include "provider.h"

#include "chathist/base/time.h"
#include "chathist/llm/provider_openai.h"

/* ---- the request ---- */

#define STREAM ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"
#define HEADERS "Content-Type: application/json\nAccept: text/event-stream\n"

/* Ids and names that one server wrote into a history and another refuses (wire_call_init). */
TEST(calls_get_the_form_that_servers_take)
{
    struct context c;
    struct ask ask = {.context = &c, .model = "m"};

    context_init(&c);
    context_set_system(&c, STR(" \n"));
    add_line(&c, LINE("assistant", "\"content\":\"\",\"tool_calls\":["
                                   "{\"id\":\"chatcmpl-tool-0123456789abcdef0123456789abcdef\","
                                   "\"name\":\"functions.f\",\"args\":\"{\\\"x\\\":1}\"},"
                                   "{\"id\":\"a\",\"name\":\"f\",\"args\":\"7\"}]"));
    add_line(&c, LINE("tool", "\"content\":\"r\",\"tool_call_id\":"
                              "\"chatcmpl-tool-0123456789abcdef0123456789abcdef\""));
    add_line(&c, LINE("tool", "\"content\":\"s\",\"tool_call_id\":\"a\""));
    add_line(&c, LINE("user", "\"content\":\"q\""));
    context_finish(&c);
    CHECK_REQUEST(&ask, "https://api.openai.com/v1/chat/completions",
                  "Content-Type: application/json\nAccept: application/json\n",
                  "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"…\"},"
                  "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
                  "{\"id\":\"call_dpg1zNgDd\",\"type\":\"function\",\"function\":{\"name\":"
                  "\"functions_f\",\"arguments\":\"{\\\"x\\\":1}\"}},"
                  "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                  "\"arguments\":\"{}\"}}]},"
                  "{\"role\":\"tool\",\"tool_call_id\":\"call_dpg1zNgDd\",\"content\":\"r\"},"
                  "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"s\"},"
                  "{\"role\":\"assistant\",\"content\":\"…\"},"
                  "{\"role\":\"user\",\"content\":\"q\"}],\"stream\":false}");
    context_release(&c);
}

/* Some servers number the calls of each response anew. */
TEST(many_calls_with_the_same_id_take_no_cubic_time)
{
    struct context c;
    struct ask ask = {.context = &c, .model = "m"};
    struct http_request r;
    struct err e = ERR_INIT;
    int64_t start = time_ticks();

    context_init(&c);
    context_add_text(&c, ROLE_USER, STR("q"));
    for (int i = 0; i < 3000; i++) {
        context_add_calls(&c, STR(""),
                          STR("[{\"id\":\"functions.f:0\",\"name\":\"f\",\"args\":{}}]"), STR_NONE,
                          (struct context_server){"openai", NULL});
        context_add_result(&c, STR("functions.f:0"), STR("r"), false);
    }
    context_finish(&c);
    http_request_init(&r);
    CHECK_INT(provider_openai.request(&provider_openai, &ask, &r, &e), 0);
    CHECK(time_ticks() - start < 5000);
    http_request_release(&r);
    context_release(&c);
}

TEST(tools_that_may_be_called)
{
    struct context c;
    const struct tool one = {.name = (char[]){"f"},
                             .description = (char[]){"say \"hi\""},
                             .parameters = (char[]){"{\"type\":\"object\",\"required\":[ \"x\"]}"}};
    const struct tool two = {
        .name = (char[]){"g"}, .description = (char[]){""}, .parameters = (char[]){"{}"}};
    const struct tool *const tools[] = {&one, &two};
    const struct ask_option option = {"tools", STR("[1]"), ASK_FLAG};
    struct ask ask = {
        .context = &c, .model = "m", .stream = true, .tools = tools, .tools_count = 2};

    context_init(&c);
    CHECK_REQUEST(&ask, "https://api.openai.com/v1/chat/completions", HEADERS,
                  "{\"model\":\"m\",\"messages\":[],\"tools\":["
                  "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":"
                  "\"say \\\"hi\\\"\",\"parameters\":{\"type\":\"object\",\"required\":[ \"x\"]}}},"
                  "{\"type\":\"function\",\"function\":{\"name\":\"g\",\"parameters\":{}}}]" STREAM
                  "}");
    ask.options = &option;
    ask.options_count = 1;
    ask.tools_count = 1;
    CHECK_REQUEST(
        &ask, "https://api.openai.com/v1/chat/completions", HEADERS,
        "{\"model\":\"m\",\"messages\":[],\"tools\":["
        "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":"
        "\"say \\\"hi\\\"\",\"parameters\":{\"type\":\"object\",\"required\":[ \"x\"]}}},1]" STREAM
        "}");
}

TEST(the_list_of_models)
{
    struct ask ask = {.key = "k"};
    struct http_request r;

    http_request_init(&r);
    CHECK_INT(provider_ollama_chat.models(&provider_ollama_chat, &ask, &r, NULL), 0);
    CHECK_STR(buf_c(&r.url), "http://127.0.0.1:11434/v1/models");
    CHECK_STR(buf_c(&r.headers), "Accept: application/json\nAuthorization: Bearer k\n");
    CHECK_INT(r.body.len, 0);
    http_request_release(&r);
    /* Gemini's own list has the limits of the models. */
    http_request_init(&r);
    CHECK_INT(provider_gemini.models(&provider_gemini, &ask, &r, NULL), 0);
    CHECK_STR(buf_c(&r.url),
              "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000");
    CHECK_STR(buf_c(&r.headers), "Accept: application/json\nx-goog-api-key: k\n");
    http_request_release(&r);
    ask.base_url = "https://gateway/v1/";
    http_request_init(&r);
    CHECK_INT(provider_gemini.models(&provider_gemini, &ask, &r, NULL), 0);
    CHECK_STR(buf_c(&r.url), "https://gateway/v1/models");
    http_request_release(&r);
}

/* ---- events ---- */

#define DELTA(delta) "{\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":null}]}"
#define FINISH(reason) "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}]}"

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
        "{\"choices\":null}",
        "{\"choices\":[]}",
        "{\"choices\":[null]}",
        "{\"choices\":[{}]}",
        "{\"choices\":[{\"delta\":null}]}",
        "{\"choices\":[{\"delta\":{\"content\":7,\"tool_calls\":{},\"refusal\":null}}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[null,7]}}]}",
        "{\"choices\":[{\"delta\":{},\"finish_reason\":\"\"}]}",
        "{\"choices\":[{\"delta\":{},\"finish_reason\":7}]}",
        "{\"usage\":null,\"model\":null,\"error\":null}",
        "{\"usage\":7}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"},\"finish_reason\":\"stop\"}]"
        "}",
        DELTA("\"reasoning_content\":\"hm\",\"reasoning\":\"hm\""),
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

/* The output of an answer whose usage has these members. */
static int64_t output_of(const char *members)
{
    struct buf chunk = BUF_INIT(BUF_SMALL);
    struct read r;
    int64_t output;

    read_init(&r);
    buf_addf(&chunk, "{\"usage\":{\"prompt_tokens\":30,%s}}", members);
    CHECK_INT(FEED(&r, buf_c(&chunk)), 0);
    CHECK_INT(r.a.usage.at[USAGE_INPUT], 30);
    output = r.a.usage.at[USAGE_OUTPUT];
    read_release(&r);
    buf_release(&chunk);
    return output;
}

TEST(reasoning_counted_beside_the_output_is_added)
{
#define REASONING(n) ",\"completion_tokens_details\":{\"reasoning_tokens\":" n "}"
    CHECK_INT(output_of("\"completion_tokens\":9,\"total_tokens\":39" REASONING("5")), 9);
    CHECK_INT(output_of("\"completion_tokens\":9,\"total_tokens\":44" REASONING("5")), 14);
    CHECK_INT(output_of("\"completion_tokens\":9,\"total_tokens\":44"), 14);
    CHECK_INT(output_of("\"completion_tokens\":9,\"total_tokens\":45" REASONING("5")), 9);
    CHECK_INT(output_of("\"completion_tokens\":9" REASONING("5")), 9);
    CHECK_INT(output_of("\"completion_tokens\":9,\"total_tokens\":-9223372036854775808"), 9);
    CHECK_INT(output_of("\"total_tokens\":44"), -1);
}

#define CALL(index, id, function)                                                                  \
    "{" index "\"id\":\"" id "\",\"type\":\"function\",\"function\":{" function "}}"

TEST(calls_without_index_or_with_the_same)
{
    struct read r;

    read_init(&r);
    CHECK_INT(
        FEED(&r,
             DELTA("\"tool_calls\":[" CALL(
                 "", "a",
                 "\"name\":\"f\",\"arguments\":{\"x\": 1}") "," CALL("", "b",
                                                                     "\"name\":\"g\",\"arguments\":"
                                                                     "\"{}\"") "]"),
             DELTA("\"tool_calls\":[" CALL("\"index\":null,", "c", "\"name\":\"f\"") "]"),
             DELTA("\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"y\\\":2}\"}}]"),
             DELTA("\"tool_calls\":[" CALL("\"index\":0,", "d", "\"name\":\"h\"") "]")),
        0);
    CHECK_CALLS(&r, "[{\"id\":\"a\",\"name\":\"f\",\"args\":{\"x\":1}},"
                    "{\"id\":\"b\",\"name\":\"g\",\"args\":{}},"
                    "{\"id\":\"c\",\"name\":\"f\",\"args\":{\"y\":2}},"
                    "{\"id\":\"d\",\"name\":\"h\",\"args\":{}}]");
    read_release(&r);
}

TEST(calls_with_neither_index_nor_id)
{
    struct read r;

    read_init(&r);
    CHECK_INT(FEED(&r, DELTA("\"tool_calls\":[{\"function\":{\"name\":\"f\"}},"
                             "{\"function\":{\"name\":\"g\"}}]")),
              0);
    CHECK_INT(r.a.calls_count, 2);
    CHECK_STR(buf_c(&r.a.calls[0].name), "f");
    CHECK_STR(buf_c(&r.a.calls[1].name), "g");
    read_release(&r);
}

TEST(the_call_of_2023)
{
    struct read r;

    read_init(&r);
    CHECK_INT(FEED(&r, DELTA("\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}"),
                   DELTA("\"function_call\":{\"arguments\":\"{}\"}"), FINISH("function_call")),
              0);
    CHECK_INT(r.a.calls_count, 1);
    CHECK_STR(buf_c(&r.a.calls[0].name), "f");
    CHECK_STR(buf_c(&r.a.calls[0].args), "{}");
    CHECK_STR(r.a.finish_reason, "tool_calls");
    read_release(&r);
}

TEST(errors_inside_a_stream)
{
    EVENT_ERROR("message", "{\"error\":{\"message\":\"a\",\"code\":502}}", ERR_BUSY,
                "server error 502: a");
    EVENT_ERROR("message", "{\"error\":\"a\"}", ERR_BUSY, "server error: a");
    EVENT_ERROR("message", "{\"object\":\"error\",\"message\":\"a\"}", ERR_BUSY, "server error: a");
    EVENT_ERROR("error", "{\"message\":\"a\",\"code\":500}", ERR_BUSY, "server error 500: a");
    EVENT_ERROR(
        "message",
        "{\"choices\":[{\"error\":{\"message\":\"a\",\"code\":429},\"finish_reason\":\"error\"}]}",
        ERR_BUSY, "server error 429: a");
}

TEST(an_event_that_is_no_json)
{
    EVENT_ERROR("message", "upstream\ntimed out", ERR_INCOMPLETE,
                "answer is incomplete: an event is not JSON: 'upstream timed out'");
    EVENT_ERROR("message", "{\"choices\":", ERR_INCOMPLETE,
                "answer is incomplete: an event is not JSON: '{\"choices\":'");
}

/* ---- whole answers ---- */

TEST(a_whole_answer_in_parts_with_calls)
{
    struct read r;

    read_init(&r);
    CHECK_INT(
        provider_openai.whole(
            &r.a,
            STR("{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"b\"}],\"tool_calls\":[" CALL(
                    "", "x", "\"name\":\"f\",\"arguments\":\"{}\"") "]}}]}"),
            &r.e),
        0);
    CHECK_STR(buf_c(&r.a.text), "ab");
    CHECK_CALLS(&r, "[{\"id\":\"x\",\"name\":\"f\",\"args\":{}}]");
    CHECK(r.a.finished);
    read_release(&r);
}

TEST(a_whole_answer_that_is_none)
{
    WHOLE_ERROR("{\"error\":{\"message\":\"a\",\"code\":503}}", ERR_BUSY, "server error 503: a");
    WHOLE_ERROR("[{\"error\":{\"message\":\"a\",\"code\":400}}]", ERR_REQUEST,
                "server error 400: a");
    WHOLE_ERROR("{\"choices\":[", ERR_BUSY, "the server's answer is not JSON: '{\"choices\":['");
    WHOLE_ERROR("{\"choices\":[]}", ERR_BUSY,
                "the server's answer has no choices: '{\"choices\":[]}'");
    WHOLE_ERROR("{}", ERR_BUSY, "the server's answer has no choices: '{}'");
}
