/*
 * The wire of OpenAI's Responses API: a context becomes a request, events and whole responses
 * become a response.
 */
#define PROVIDER provider_responses
#include "provider.h"

#include "llm/provider_wire.h"

/* ---- the request ---- */

#define PROMPT LINE("user", "\"content\":\"q\"")
#define ANSWER(rest) LINE("assistant", "\"provider\":\"openai\"," rest)
#define CALL(args) "\"tool_calls\":[{\"id\":\"call_a\",\"name\":\"f\",\"args\":" args "}]"
#define RESULT LINE("tool", "\"content\":\"r\",\"tool_call_id\":\"call_a\"")
#define R(id)                                                                                      \
    "{\"type\":\"reasoning\",\"id\":\"" id "\",\"summary\":[],\"encrypted_content\":\"x\"}"
#define M "{\"type\":\"message\",\"id\":\"m\",\"phase\":\"final_answer\",\"content\":[]}"
#define MA                                                                                         \
    "{\"type\":\"message\",\"id\":\"m\",\"phase\":\"final_answer\",\"content\":[{\"type\":"        \
    "\"output_text\",\"text\":\"a\"}]}"
#define F                                                                                          \
    "{\"type\":\"function_call\",\"call_id\":\"call_a\",\"name\":\"f\",\"arguments\":\"{}\","      \
    "\"x\":1}"
#define FN(id, name)                                                                               \
    "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"" name "\",\"arguments\":\"{}"  \
    "\"}"
#define SENT_PROMPT "{\"type\":\"message\",\"role\":\"user\",\"content\":\"q\"}"
#define SENT_ANSWER(id, text)                                                                      \
    "{\"type\":\"message\",\"id\":\"" id "\",\"role\":\"assistant\",\"status\":\"completed\","     \
    "\"content\":[{\"type\":\"output_text\",\"text\":\"" text                                      \
    "\",\"annotations\":[],\"logprobs\":[]}]}"
#define SENT_CALL(id, args)                                                                        \
    "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":\"" args "\"" \
    "}"
#define SENT_RESULT "{\"type\":\"function_call_output\",\"call_id\":\"call_a\",\"output\":\"r\"}"

TEST(a_context_becomes_the_input)
{
    static const struct {
        const char *lines[4];
        const char *input;
    } rows[] = {
        {{PROMPT}, SENT_PROMPT},
        {{PROMPT, ANSWER("\"content\":\"a \\\"b\\\"\"")},
         SENT_PROMPT "," SENT_ANSWER("msg_1", "a \\\"b\\\"")},
        /* A call without items is built, after its text. */
        {{PROMPT, ANSWER("\"content\":\"a\"," CALL("{\"x\":1}")), RESULT},
         SENT_PROMPT
         "," SENT_ANSWER("msg_1", "a") "," SENT_CALL("call_a", "{\\\"x\\\":1}") "," SENT_RESULT},
        /* Arguments that are no object would be refused in every later request. */
        {{PROMPT, ANSWER("\"content\":\"\"," CALL("\"{bad\"")), RESULT},
         SENT_PROMPT "," SENT_CALL("call_a", "{}") "," SENT_RESULT},
        /* Items go back as they are, with reasoning only before another item. */
        {{PROMPT,
          ANSWER("\"content\":\"\"," CALL("{}") ",\"thinking\":[" R("1") "," F "," R("2") "]"),
          RESULT},
         SENT_PROMPT "," R("1") "," F "," SENT_RESULT},
        {{PROMPT, ANSWER("\"content\":\"a\",\"thinking\":[" R("1") "," MA "]")},
         SENT_PROMPT "," R("1") "," MA},
        /* The item of a call that cannot go back is replaced in its place. */
        {{PROMPT,
          ANSWER("\"content\":\"\"," CALL("\"{bad\"") ",\"thinking\":[" R("1") "," F "," M "]"),
          RESULT},
         SENT_PROMPT "," R("1") "," SENT_CALL("call_a", "{}") "," M "," SENT_RESULT},
        {{PROMPT,
          ANSWER("\"content\":\"\"," CALL("{}") ",\"thinking\":[" R("1") "," FN("", "f") "]"),
          RESULT},
         SENT_PROMPT "," R("1") "," SENT_CALL("call_a", "{}") "," SENT_RESULT},
        {{PROMPT,
          ANSWER(
              "\"content\":\"\"," CALL("{}") ",\"thinking\":[" R("1") "," FN("call_a", "f.g") "]"),
          RESULT},
         SENT_PROMPT "," R("1") "," SENT_CALL("call_a", "{}") "," SENT_RESULT},
        /* These do not: of another provider, of another API, without the item of the call, with the
         * item of another call. */
        {{PROMPT, LINE("assistant", "\"provider\":\"openai-responses\",\"content\":\"a\","
                                    "\"thinking\":[" R("1") "," M "]")},
         SENT_PROMPT "," SENT_ANSWER("msg_1", "a")},
        {{PROMPT, ANSWER("\"content\":\"a\",\"thinking\":[{\"type\":\"extra_content\"}]")},
         SENT_PROMPT "," SENT_ANSWER("msg_1", "a")},
        {{PROMPT, ANSWER("\"content\":\"\"," CALL("{}") ",\"thinking\":[" R("1") "," M "]"),
          RESULT},
         SENT_PROMPT "," SENT_CALL("call_a", "{}") "," SENT_RESULT},
        {{PROMPT, ANSWER("\"content\":\"\"," CALL("{}") ",\"thinking\":[" F "," F "]"), RESULT},
         SENT_PROMPT "," SENT_CALL("call_a", "{}") "," SENT_RESULT},
        /* A text that was edited in the history. */
        {{PROMPT, ANSWER("\"content\":\"edited\",\"thinking\":[" R("1") "," MA "]")},
         SENT_PROMPT "," SENT_ANSWER("msg_1", "edited")},
        /* Texts that were merged no longer match their items. */
        {{PROMPT, ANSWER("\"content\":\"a\",\"thinking\":[" R("1") "," M "]"),
          ANSWER("\"content\":\"b\"")},
         SENT_PROMPT "," SENT_ANSWER("msg_1", "a\\n\\nb")},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct context c;
        struct ask ask = {.context = &c, .model = "m"};
        struct http_request r;
        struct buf want = BUF_INIT(BUF_LINE);

        context_init(&c);
        for (size_t k = 0; k < 4 && rows[i].lines[k]; k++)
            add_line(&c, rows[i].lines[k]);
        context_finish(&c);
        http_request_init(&r);
        CHECK_INT(provider_openai_own.request(&provider_openai_own, &ask, &r, NULL), 0);
        buf_addf(&want,
                 "{\"model\":\"m\",\"input\":[%s],\"stream\":false,\"store\":false,"
                 "\"include\":[\"reasoning.encrypted_content\"]}",
                 rows[i].input);
        CHECK_STR(buf_c(&r.body), buf_c(&want));
        CHECK_STR(buf_c(&r.url), "https://api.openai.com/v1/responses");
        buf_release(&want);
        http_request_release(&r);
        context_release(&c);
    }
}

TEST(the_address_of_the_endpoint)
{
    static const char *const urls[][2] = {
        {"https://h/v1", "https://h/v1/responses"},
        {"https://h/v1/responses", "https://h/v1/responses"},
        {"https://h/v1/chat/completions", "https://h/v1/responses"},
        {"https://h/openai/v1/?api-version=preview",
         "https://h/openai/v1/responses?api-version=preview"},
    };

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct context c;
        struct ask ask = {.context = &c, .model = "m", .base_url = urls[i][0]};
        struct http_request r;

        context_init(&c);
        http_request_init(&r);
        CHECK_INT(provider_responses.request(&provider_responses, &ask, &r, NULL), 0);
        CHECK_STR(buf_c(&r.url), urls[i][1]);
        http_request_release(&r);
        context_release(&c);
    }
}

/* ---- the response ---- */

#define DELTA(index, text)                                                                         \
    "{\"type\":\"response.output_text.delta\",\"output_index\":" index ",\"delta\":\"" text "\"}"
#define ADDED(index, item)                                                                         \
    "{\"type\":\"response.output_item.added\",\"output_index\":" index ",\"item\":" item "}"
#define DONE(index, item)                                                                          \
    "{\"type\":\"response.output_item.done\",\"output_index\":" index ",\"item\":" item "}"
#define END(status, rest) "{\"type\":\"response." status "\",\"response\":{" rest "}}"
#define COMPLETED END("completed", "\"usage\":null")
#define MESSAGE(text)                                                                              \
    "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"" text "\"}]}"
#define CALLING(id, args)                                                                          \
    "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":\"" args "\"" \
    "}"
#define ARGUMENTS(index, text)                                                                     \
    "{\"type\":\"response.function_call_arguments.delta\",\"output_index\":" index                 \
    ",\"delta\":\"" text "\"}"
#define CALLED(id, args) "{\"id\":\"" id "\",\"name\":\"f\",\"args\":" args "}"

TEST(events_become_a_response)
{
    static const struct {
        const char *events[8];
        const char *text, *calls, *finish;
    } rows[] = {
        {{DELTA("0", "a"), DELTA("0", ""), DELTA("0", "b"), COMPLETED}, "ab", "[]", "stop"},
        {{ADDED("0", MESSAGE("")), DELTA("0", "a"), DONE("0", MESSAGE("a")), COMPLETED},
         "a",
         "[]",
         "stop"},
        /* Without deltas, and without items. */
        {{DONE("0", MESSAGE("a")), COMPLETED}, "a", "[]", "stop"},
        {{END("completed", "\"output\":[" MESSAGE("a") "]")}, "a", "[]", "stop"},
        /* The last event repeats the items. */
        {{DONE("0", MESSAGE("a")), END("completed", "\"output\":[" MESSAGE("a") "]")},
         "a",
         "[]",
         "stop"},
        /* Two messages are two paragraphs. */
        {{ADDED("0", MESSAGE("")), DELTA("0", "a"), DONE("0", MESSAGE("a")),
          ADDED("1", MESSAGE("")), DELTA("1", "b"), DELTA("1", "c"), DONE("1", MESSAGE("bc")),
          COMPLETED},
         "a\n\nbc",
         "[]",
         "stop"},
        {{DONE("0", MESSAGE("a")), DONE("1", MESSAGE("")), DONE("2", MESSAGE("b")), COMPLETED},
         "a\n\nb",
         "[]",
         "stop"},
        /* A pair of surrogates in two deltas. */
        {{DELTA("0", "\\ud83d"), DELTA("0", "\\ude00"), COMPLETED},
         "\xf0\x9f\x98\x80",
         "[]",
         "stop"},
        /* calls */
        {{ADDED("0", CALLING("c1", "")), ARGUMENTS("0", "{\\\"a\\\""), ARGUMENTS("0", ":1}"),
          DONE("0", CALLING("c1", "{\\\"a\\\":1}")), COMPLETED},
         "",
         "[" CALLED("c1", "{\"a\":1}") "]",
         "tool_calls"},
        {{DONE("0", CALLING("c1", "{\\\"a\\\":1}")), DONE("1", CALLING("c2", "")), COMPLETED},
         "",
         "[" CALLED("c1", "{\"a\":1}") "," CALLED("c2", "{}") "]",
         "tool_calls"},
        /* All at the same index. */
        {{DONE("0", CALLING("c1", "{}")), DONE("0", CALLING("c2", "{}")), COMPLETED},
         "",
         "[" CALLED("c1", "{}") "," CALLED("c2", "{}") "]",
         "tool_calls"},
        /* Arguments of a tool that runs at the server. */
        {{ARGUMENTS("0", "{}"), DELTA("1", "a"), COMPLETED}, "a", "[]", "stop"},
        {{"{\"type\":\"response.refusal.delta\",\"delta\":\"no\"}", COMPLETED},
         "no",
         "[]",
         "content_filter"},
        {{DELTA("0", "a"),
          END("incomplete", "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}")},
         "a",
         "[]",
         "length"},
        {{END("incomplete", "\"incomplete_details\":{\"reason\":\"content_filter\"}")},
         "",
         "[]",
         "content_filter"},
        /* Some servers end every stream with the same event. */
        {{DELTA("0", "a"), END("completed", "\"status\":\"incomplete\",\"incomplete_details\":{"
                                            "\"reason\":\"max_output_tokens\"}")},
         "a",
         "[]",
         "length"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct response a;
        struct err e = ERR_INIT;
        struct buf calls = BUF_INIT(BUF_LINE);
        int rc = 0;

        response_init(&a, NULL);
        for (size_t k = 0; rc == 0 && k < 8 && rows[i].events[k]; k++)
            rc = provider_responses.event(&a, STR("message"), str_of(rows[i].events[k]), &e);
        CHECK_INT(rc, 1);
        CHECK(a.finished);
        response_end_text(&a, NULL);
        response_finish_calls(&a);
        response_calls_json(&a, &calls);
        CHECK_STR(buf_c(&a.text), rows[i].text);
        CHECK_STR(buf_c(&calls), rows[i].calls);
        CHECK_STR(a.finish_reason, rows[i].finish);
        buf_release(&calls);
        response_release(&a);
        err_release(&e);
    }
}

TEST(what_is_missing_null_or_unknown_is_passed_over)
{
    static const char *const events[] = {
        "{}",
        "[]",
        "null",
        "7",
        "",
        "{\"type\":null}",
        "{\"type\":\"response.new.delta\",\"delta\":\"x\"}",
        "{\"type\":\"response.output_text.delta\"}",
        "{\"type\":\"response.output_text.delta\",\"delta\":7}",
        "{\"type\":\"response.output_item.done\",\"item\":null}",
        "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":7}}",
        "{\"type\":\"response.output_item.added\",\"item\":{}}",
        "{\"type\":\"response.output_text.annotation.added\",\"annotation\":7}",
        "{\"type\":\"response.created\"}",
    };
    struct response a;
    struct err e = ERR_INIT;

    response_init(&a, NULL);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        CHECK_INT(provider_responses.event(&a, STR("message"), str_of(events[i]), &e), 0);
    CHECK_INT(a.text.len + a.calls_count, 0);
    CHECK(!a.finished && !a.finish_reason && !a.model);
    /* A mark at the end does not complete a response. */
    CHECK_INT(provider_responses.event(&a, STR("message"), STR("[DONE]"), &e), 0);
    CHECK(!a.finished);
    response_release(&a);
    err_release(&e);
}

TEST(items_are_kept_if_they_hold_more_than_texts_and_calls)
{
    static const struct {
        const char *events[3];
        const char *kept;
    } rows[] = {
        {{DONE("0", MESSAGE("a")), COMPLETED}, ""},
        {{DONE("0", CALLING("c1", "{}")), COMPLETED}, ""},
        {{DONE("0", R("1")), DONE("1", MESSAGE("a")), COMPLETED}, "[" R("1") "," MESSAGE("a") "]"},
        {{DONE("0", M), COMPLETED}, "[" M "]"},
        {{END("completed", "\"output\":[" R("1") "]")}, "[" R("1") "]"},
        {{DONE("0", "{\"type\":\"web_search_call\", \"id\" : \"ws\"}"), COMPLETED},
         "[{\"type\":\"web_search_call\",\"id\":\"ws\"}]"},
        /* A response that is not complete keeps none. */
        {{DONE("0", R("1")), DELTA("1", "a"),
          END("incomplete", "\"incomplete_details\":{\"reason\":"
                            "\"max_output_tokens\"}")},
         ""},
        {{DONE("0", R("1")), DELTA("1", "a")}, ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct response a;

        response_init(&a, NULL);
        for (size_t k = 0; k < 3 && rows[i].events[k]; k++)
            provider_responses.event(&a, STR("message"), str_of(rows[i].events[k]), NULL);
        response_finish_calls(&a);
        CHECK_STR(buf_c(&a.opaque.thinking), rows[i].kept);
        response_release(&a);
    }
}

TEST(completed_with_another_status_is_not_complete)
{
#define INCOMPLETE "answer is incomplete: its status is: "
    static const struct {
        const char *end, *text;
    } rows[] = {
        {END("completed", "\"status\":\"cancelled\""), INCOMPLETE "'cancelled'"},
        {END("completed", "\"status\":\"in_progress\""), INCOMPLETE "'in_progress'"},
        {END("completed", "\"status\":\"in\\u005fprogress\""), INCOMPLETE "'in_progress'"},
        {END("completed", "\"status\":\"queued\""), INCOMPLETE "'queued'"},
        {END("completed", "\"status\":\"Completed \""), INCOMPLETE "'Completed'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct response a;
        struct err e = ERR_INIT;

        response_init(&a, NULL);
        CHECK_INT(provider_responses.event(&a, STR("message"), STR(DELTA("0", "a")), &e), 0);
        CHECK_INT(provider_responses.event(&a, STR("message"), str_of(rows[i].end), &e), -1);
        CHECK_STR(err_text(&e), rows[i].text);
        CHECK(!a.finished);
        response_release(&a);
        err_release(&e);
    }
#undef INCOMPLETE
}

TEST(errors_have_the_kind_of_their_code)
{
    static const struct {
        const char *code;
        enum err_kind kind;
    } rows[] = {
        {"rate_limit_exceeded", ERR_BUSY},
        {"server_error", ERR_BUSY},
        {"vector_store_timeout", ERR_BUSY},
        {"insufficient_quota", ERR_QUOTA},
        {"context_length_exceeded", ERR_TOO_LONG},
        {"invalid_prompt", ERR_REFUSED},
        {"bio_policy", ERR_REFUSED},
        {"misalignment_policy_violation", ERR_REFUSED},
        {"image_content_policy_violation", ERR_REFUSED},
        {"invalid_image_format", ERR_REQUEST},
        {"image_too_large", ERR_REQUEST},
        {"empty_image_file", ERR_REQUEST},
        {"data_residency_mismatch", ERR_REQUEST},
        {"invalid_api_key", ERR_AUTH},
    };
    static const char *const forms[] = {
        "{\"type\":\"error\",\"code\":\"%s\",\"message\":\"m\"}",
        "{\"type\":\"error\",\"error\":{\"type\":\"t\",\"code\":\"%s\",\"message\":\"m\"}}",
        "{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"%s\",\"message\":\"m\"}}"
        "}",
        "{\"status\":\"failed\",\"error\":{\"code\":\"%s\",\"message\":\"m\"},\"output\":[]}",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            struct response a;
            struct err e = ERR_INIT;
            struct buf text = BUF_INIT(BUF_LINE);
            struct str rest = str_of(forms[k]), before = str_cut(&rest, '%');

            buf_add_str(&text, before);
            buf_add_c(&text, rows[i].code);
            buf_add_str(&text, str_skip(rest, 1));
            response_init(&a, NULL);
            if (k < 3)
                CHECK_INT(provider_responses.event(&a, STR("message"), buf_str(&text), &e), -1);
            else
                CHECK_INT(provider_responses.whole(&a, buf_str(&text), &e), -1);
            CHECK_INT(e.kind, rows[i].kind);
            buf_release(&text);
            response_release(&a);
            err_release(&e);
        }
}
