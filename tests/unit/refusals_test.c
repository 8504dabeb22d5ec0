/*
 * What an error refuses, in the words of the servers, and what is sent then.
 */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/time.h"
#include "chathist/llm/refusals.h"
#include "llm/request_body.h"
#include "scratch.h"

static const struct provider chat_provider = {
    .name = "chat",
    .base_url = "https://own",
    .effort_field = "reasoning_effort",
    .limit_field = "max_completion_tokens",
    .limit_elsewhere = "max_tokens",
    .schema_field = "response_format",
};

static const struct provider messages_provider = {
    .name = "messages",
    .base_url = "https://own",
    .effort_field = "output_config.effort",
    .limit_field = "max_tokens",
    .needs_limit = true,
    .schema_field = "output_config.format",
};

static cJSON *parse(struct str json)
{
    cJSON *body = cjson_object();

    for (struct json_iter it = json_iter(json); json_next(&it);) {
        char *name = mem_copy(it.key.p, it.key.n);

        cjson_set_raw(body, name, it.value);
        free(name);
    }
    return body;
}

/* Makes the body that is sent after the error, or an empty string if nothing was learned. */
static void ask_again(const struct provider *p, struct ask *ask, const char *sent,
                      const char *reply, struct buf *out, struct buf *notice)
{
    cJSON *body = parse(str_of(sent));

    if (refusals_learn(p, ask, 400, false, str_of(reply), str_of(sent), notice)) {
        body_leave_refused(body, p, ask);
        cjson_print(body, out);
    }
    cJSON_Delete(body);
}

static void check_again(const struct provider *p, struct ask ask, const char *sent,
                        const char *reply, const char *want, const char *want_notice, int line)
{
    struct refusals refused = {0};
    struct buf out = BUF_INIT(SIZE_MAX), notice = BUF_INIT(SIZE_MAX);

    ask.refused = &refused;
    ask_again(p, &ask, sent, reply, &out, &notice);
    test_check_str(buf_c(&out), want, "body", __FILE__, line);
    test_check_str(buf_c(&notice), want_notice, "notice", __FILE__, line);
    refusals_release(&refused);
    buf_release(&out);
    buf_release(&notice);
}
#define CHECK_AGAIN(sent, reply, want, notice)                                                     \
    check_again(&chat_provider, (struct ask){0}, sent, reply, want, notice, __LINE__)
#define CHECK_MESSAGES(sent, reply, want, notice)                                                  \
    check_again(&messages_provider, (struct ask){0}, sent, reply, want, notice, __LINE__)
#define WITHOUT(field) "the server refuses '" field "': asking without it"

TEST(openai_names_a_field_in_param)
{
    CHECK_AGAIN(
        "{\"model\":\"m\",\"max_tokens\":5}",
        "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this "
        "model. Use 'max_completion_tokens' instead.\",\"type\":\"invalid_request_error\","
        "\"param\":\"max_tokens\",\"code\":\"unsupported_parameter\"}}",
        "{\"model\":\"m\",\"max_completion_tokens\":5}",
        "the server refuses 'max_tokens': asking with 'max_completion_tokens'");
    CHECK_AGAIN(
        "{\"model\":\"m\",\"temperature\":0.2}",
        "{\"error\":{\"message\":\"Unsupported value: 'temperature' does not support 0.2 with "
        "this model. Only the default (1) value is supported.\",\"type\":"
        "\"invalid_request_error\",\"param\":\"temperature\",\"code\":\"unsupported_value\"}}",
        "{\"model\":\"m\"}", WITHOUT("temperature"));
    CHECK_AGAIN(
        "{\"text\":{\"verbosity\":\"low\"},\"input\":[]}",
        "{\"error\":{\"message\":\"Unsupported parameter: 'text.verbosity' is not supported with "
        "this model.\",\"param\":\"text.verbosity\"}}",
        "{\"input\":[]}", WITHOUT("text.verbosity"));
    CHECK_AGAIN(
        "{\"stream_options\":{\"include_usage\":true}}",
        "{\"error\":{\"message\":\"Unrecognized request argument supplied: stream_options\","
        "\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}",
        "{}", WITHOUT("stream_options"));
}

TEST(openai_takes_tools_only_without_effort)
{
    static const char reply[] = "{\"error\":{\"message\":\"Function tools with reasoning_effort "
                                "are not supported for gpt-5.6 "
                                "in /v1/chat/completions. To use function tools, use /v1/responses "
                                "or set reasoning_effort to "
                                "'none'.\",\"type\":\"invalid_request_error\",\"param\":"
                                "\"reasoning_effort\",\"code\":null}}";
    static const char notice[] =
        "the server takes tools only without reasoning: asking with reasoning_effort 'none'";
    struct ask ask = {.effort = "high", .effort_from = ASK_CONFIGURATION};

    CHECK_AGAIN("{\"tools\":[1]}", reply, "{\"tools\":[1],\"reasoning_effort\":\"none\"}", notice);
    check_again(&chat_provider, ask, "{\"tools\":[1],\"reasoning_effort\":\"high\"}", reply,
                "{\"tools\":[1],\"reasoning_effort\":\"none\"}", notice, __LINE__);
    ask.effort_from = ASK_FLAG;
    check_again(&chat_provider, ask, "{\"tools\":[1],\"reasoning_effort\":\"high\"}", reply, "",
                "--effort", __LINE__);
}

TEST(anthropic_names_a_field_at_the_beginning)
{
#define ERROR(text)                                                                                \
    "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"" text "\"}}"
    CHECK_MESSAGES("{\"max_tokens\":5,\"output_config\":{\"effort\":\"low\"}}",
                   ERROR("output_config.effort: Extra inputs are not permitted"),
                   "{\"max_tokens\":5}", WITHOUT("output_config.effort"));
    CHECK_MESSAGES(
        "{\"thinking\":{\"type\":\"adaptive\",\"display\":\"summarized\"}}",
        ERROR("thinking.type: Input tag 'adaptive' found using 'type' does not match any of "
              "the expected tags: 'disabled', 'enabled'"),
        "{}", WITHOUT("thinking"));
    CHECK_MESSAGES("{\"thinking\":{\"type\":\"enabled\"}}",
                   ERROR("thinking.enabled.budget_tokens: Field required"), "{}",
                   WITHOUT("thinking"));
    CHECK_MESSAGES("{\"temperature\":0.5}", ERROR("`temperature` is not supported by this model"),
                   "{}", WITHOUT("temperature"));
    CHECK_MESSAGES("{\"temperature\":5}", ERROR("temperature: range: 0..1"), "{}",
                   WITHOUT("temperature"));
    CHECK_MESSAGES("{\"output_config\":{\"effort\":\"max\"}}",
                   ERROR("output_config.effort: Input should be 'low', 'medium' or 'high'"),
                   "{\"output_config\":{\"effort\":\"high\"}}",
                   "the server does not know the effort 'max': asking with 'high'");
    /* Not the block of a message, and not what the request needs. */
    CHECK_MESSAGES("{\"thinking\":{\"type\":\"adaptive\"},\"messages\":[]}",
                   ERROR("messages.1.content.0: Invalid `signature` in `thinking` block"), "", "");
    CHECK_MESSAGES(
        "{\"max_tokens\":200000}",
        ERROR("max_tokens: 200000 > 64000, which is the maximum allowed number of output "
              "tokens for claude-x"),
        "{\"max_tokens\":64000}",
        "the server refuses an answer of 200000 tokens: asking with 64000");
    CHECK_MESSAGES("{\"tools\":[]}", ERROR("tools.0.input_schema: Field required"), "", "");
    CHECK_MESSAGES("{\"output_config\":{\"format\":{\"type\":\"json_schema\"}}}",
                   ERROR("output_config.format.schema: recursion is not supported"), "{}",
                   WITHOUT("output_config.format"));
#undef ERROR
}

TEST(pydantic_names_fields_in_loc)
{
    CHECK_AGAIN(
        "{\"max_completion_tokens\":5,\"seed\":1}",
        "{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":["
        "\"body\",\"max_completion_tokens\"],\"msg\":\"Extra inputs are not permitted\","
        "\"input\":5}]},\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}",
        "{\"seed\":1,\"max_tokens\":5}",
        "the server refuses 'max_completion_tokens': asking with 'max_tokens'");
    CHECK_AGAIN(
        "{\"seed\":1}",
        "{\"detail\":[{\"loc\":[\"body\",\"seed\"],\"msg\":\"Extra inputs are not permitted\"}]}",
        "{}", WITHOUT("seed"));
    CHECK_AGAIN(
        "{\"messages\":[],\"seed\":1}",
        "{\"detail\":[{\"loc\":[\"body\",\"messages\",0,\"role\"],\"msg\":\"Input should be "
        "'user'\"}]}",
        "", "");
    /* A missing field cannot be left out. */
    CHECK_AGAIN(
        "{\"seed\":1}",
        "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"n\"],\"msg\":\"Field required\"}]}",
        "", "");
}

TEST(other_servers_name_a_field_in_the_text)
{
    /* Groq */
    CHECK_AGAIN("{\"logprobs\":true}",
                "{\"error\":{\"message\":\"property 'logprobs' is unsupported\",\"type\":"
                "\"invalid_request_error\"}}",
                "{}", WITHOUT("logprobs"));
    /* llama.cpp */
    CHECK_AGAIN(
        "{\"stream_options\":{}}",
        "{\"error\":{\"code\":400,\"message\":\"Unsupported param: stream_options\",\"type\":"
        "\"invalid_request_error\"}}",
        "{}", WITHOUT("stream_options"));
    CHECK_AGAIN("{\"echo\":true}",
                "{\"error\":{\"code\":400,\"message\":\"Unsupported param: echo\"}}", "{}",
                WITHOUT("echo"));
    /* vLLM */
    CHECK_AGAIN("{\"reasoning_effort\":\"low\",\"seed\":1}",
                "{\"object\":\"error\",\"message\":\"[{'type': 'extra_forbidden', 'loc': ('body', "
                "'reasoning_effort'), 'msg': 'Extra inputs are not permitted', 'input': 'low'}]\","
                "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
                "{\"seed\":1}", WITHOUT("reasoning_effort"));
    /* Gemini */
    CHECK_AGAIN(
        "{\"seed\":1}",
        "[{\"error\":{\"code\":400,\"message\":\"Invalid JSON payload received. Unknown name "
        "\\\"seed\\\": Cannot find field.\",\"status\":\"INVALID_ARGUMENT\"}}]",
        "{}", WITHOUT("seed"));
    /* DeepSeek */
    CHECK_AGAIN(
        "{\"reasoning_effort\":\"max\"}",
        "{\"error\":{\"message\":\"Failed to deserialize the JSON body into the target type: "
        "reasoning_effort: unknown variant `max`, expected one of `low`, `medium`, `high` at line "
        "1 column 99\",\"type\":\"invalid_request_error\"}}",
        "{\"reasoning_effort\":\"high\"}",
        "the server does not know the effort 'max': asking with 'high'");
    CHECK_AGAIN(
        "{\"reasoning_effort\":\"minimal\"}",
        "Invalid value: 'minimal'. Supported values of reasoning_effort are: 'none', 'low', and "
        "'high'.",
        "{\"reasoning_effort\":\"low\"}",
        "the server does not know the effort 'minimal': asking with 'low'");
    /* OpenRouter passes on the text of the service. */
    CHECK_AGAIN(
        "{\"top_k\":1}",
        "{\"error\":{\"message\":\"Provider returned error\",\"code\":400,\"metadata\":{\"raw\":"
        "\"{\\\"error\\\":{\\\"message\\\":\\\"Unsupported parameter: 'top_k'\\\"}}\"}}}",
        "{}", WITHOUT("top_k"));
}

TEST(words_of_the_text_that_name_no_field)
{
    CHECK_AGAIN(
        "{\"stop\":\"x\",\"user\":\"u\",\"n\":1}",
        "{\"error\":{\"message\":\"Conversation roles must alternate user and assistant and then "
        "stop\"}}",
        "", "");
    CHECK_AGAIN(
        "{\"messages\":[],\"response_format\":{}}",
        "{\"error\":{\"message\":\"'messages' must contain the word 'json' in some form, to use "
        "'response_format' of type 'json_object'.\",\"param\":\"messages\"}}",
        "", "");
    CHECK_AGAIN("{\"seed\":1}", "<html>nginx</html>", "", "");
    CHECK_AGAIN("{\"seed\":1}", "", "", "");
    CHECK_AGAIN("{\"seed\":1}", "[]", "", "");
}

TEST(a_long_text_takes_no_quadratic_time)
{
    struct refusals refused = {0};
    struct context c;
    struct ask ask = {.context = &c, .refused = &refused};
    struct buf reply = BUF_INIT(SIZE_MAX), sent = BUF_INIT(SIZE_MAX), notice = BUF_INIT(SIZE_MAX);
    int64_t start = time_ticks();

    context_init(&c);
    for (int i = 0; i < 300000; i++)
        buf_add_c(&reply, "x_ ");
    buf_add_c(&sent, "{\"messages\":[\"");
    for (int i = 0; i < 1000000; i++)
        buf_add_c(&sent, "abc");
    buf_add_c(&sent, "\"]}");
    CHECK(!refusals_learn(&chat_provider, &ask, 400, false, buf_str(&reply), buf_str(&sent),
                          &notice));
    buf_clear(&reply);
    buf_add_c(&reply, "{\"error\":{\"param\":\"top_p");
    for (int i = 0; i < 500000; i++)
        buf_add_c(&reply, ".a");
    buf_add_c(&reply, "\"}}");
    CHECK(!refusals_learn(&chat_provider, &ask, 400, false, buf_str(&reply),
                          STR("{\"top_p\":1,\"messages\":[]}"), &notice));
    CHECK(time_ticks() - start < 5000);
    refusals_release(&refused);
    buf_release(&reply);
    buf_release(&sent);
    buf_release(&notice);
}

TEST(what_a_flag_set_is_not_left_out)
{
    struct ask_option option = {"seed", STR("1"), ASK_FLAG};
    struct ask ask = {.options = &option, .options_count = 1};
    static const char reply[] = "{\"error\":{\"message\":\"unknown\",\"param\":\"seed\"}}";

    check_again(&chat_provider, ask, "{\"seed\":1}", reply, "", "-o seed", __LINE__);
    option.from = ASK_TEMPLATE;
    check_again(&chat_provider, ask, "{\"seed\":1}", reply, "{}", WITHOUT("seed"), __LINE__);
    /* An option reaches only what its value has. */
    option = (struct ask_option){"reasoning", STR("{\"summary\":\"auto\"}"), ASK_FLAG};
    check_again(&chat_provider, ask, "{\"reasoning\":{\"summary\":\"auto\",\"x\":1}}",
                "{\"error\":{\"param\":\"reasoning.x\"}}", "{\"reasoning\":{\"summary\":\"auto\"}}",
                WITHOUT("reasoning.x"), __LINE__);
    check_again(&chat_provider, ask, "{\"reasoning\":{\"summary\":\"auto\",\"x\":1}}",
                "{\"error\":{\"param\":\"reasoning.summary\"}}", "", "-o reasoning", __LINE__);
    ask = (struct ask){.max_tokens = 5, .max_tokens_from = ASK_FLAG};
    check_again(&chat_provider, ask, "{\"max_tokens\":5}",
                "{\"error\":{\"message\":\"max_tokens is too large: 5\",\"param\":\"max_tokens\"}}",
                "", "--max-tokens", __LINE__);
    check_again(&chat_provider, ask, "{\"max_tokens\":5}",
                "{\"error\":{\"message\":\"Unknown field\",\"param\":\"max_tokens\"}}",
                "{\"max_completion_tokens\":5}",
                "the server refuses 'max_tokens': asking with 'max_completion_tokens'", __LINE__);
    ask = (struct ask){.effort = "low", .effort_from = ASK_FLAG};
    check_again(&chat_provider, ask, "{\"reasoning_effort\":\"low\"}",
                "{\"error\":{\"param\":\"reasoning_effort\"}}", "", "--effort", __LINE__);
}

/* Checks what is refused of a request with a schema, a result of a tool and reasoning. */
static void check_thing(const char *sent, const char *text, const char *want, int line)
{
    struct refusals refused = {0};
    struct context c;
    const struct provider *p = strstr(sent, "output_config") ? &messages_provider : &chat_provider;
    char *name = mem_text(p->name);
    struct context_message at[] = {
        {.role = ROLE_ASSISTANT, .thinking = (char[]){"[]"}, .provider = name},
        {.role = ROLE_TOOL}};
    struct ask ask = {.refused = &refused, .context = &c, .schema = STR("{}")};
    struct buf notice = BUF_INIT(SIZE_MAX);

    context_init(&c);
    c.at = at;
    c.count = 2;
    refusals_learn(p, &ask, 400, false, str_of(text), str_of(sent), &notice);
    test_check_str(refused.count > 0 ? refused.at[0].text[REFUSED_THING] : "", want, text, __FILE__,
                   line);
    refusals_release(&refused);
    buf_release(&notice);
    free(name);
}
#define CHECK_THING(sent, text, want) check_thing(sent, text, want, __LINE__)

TEST(what_is_no_field_is_refused_by_its_words)
{
#define CHAT "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}}"
#define OLDER "{\"response_format\":{\"type\":\"json_object\"}}"
#define MESSAGES "{\"output_config\":{\"format\":{}}}"
    CHECK_THING(CHAT, "response_format: json_schema is not supported", REFUSED_JSON_SCHEMA);
    CHECK_THING(OLDER, "'response_format' is not supported", REFUSED_SCHEMA);
    CHECK_THING(MESSAGES, "output_config.format: Extra inputs are not permitted", REFUSED_SCHEMA);
    CHECK_THING(MESSAGES, "output_config: Extra inputs are not permitted", REFUSED_SCHEMA);
    CHECK_THING(MESSAGES, "output_config.effort: not supported", "");
    CHECK_THING("{}", "messages.1.content.0: Invalid `signature` in `thinking` block",
                REFUSED_REASONING);
    CHECK_THING("{}", "The encrypted content of the item is from another organization",
                REFUSED_REASONING);
    CHECK_THING("{}", "Only user and assistant roles are supported", REFUSED_RESULTS);
    CHECK_THING("{}", "reasoning_content must be passed back", REFUSED_SILENCE);
    CHECK_THING("{\"thinking\":{}}", "adaptive thinking is not supported on this model",
                "thinking");
    CHECK_THING("{\"think\":true}", "m does not support thinking", "think");
}

TEST(a_field_that_is_named_goes_before_a_part_of_the_conversation)
{
    CHECK_THING("{\"parallel_tool_calls\":false}",
                "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
                "parallel_tool_calls");
    CHECK_THING("{\"chat_template_kwargs\":{},\"tools\":[]}",
                "the template takes no option with tools: chat_template_kwargs",
                "chat_template_kwargs");
    CHECK_THING("{\"include\":[]}", "'include' is unknown: encrypted content is not available",
                "include");
    CHECK_THING("{\"thinking\":{}}",
                "litellm.BadRequestError: {\"error\":{\"message\":\"messages.1.content.0: Invalid "
                "`signature` in `thinking` block\"}}",
                REFUSED_REASONING);
    /* A role and the type of an item are no fields. */
    CHECK_THING("{\"user\":\"u\"}", "Only 'user' and 'assistant' roles are supported",
                REFUSED_RESULTS);
    CHECK_THING("{\"reasoning\":{}}",
                "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
                REFUSED_REASONING);
}

TEST(a_flag_that_the_error_names_changes_no_conversation)
{
    struct ask_option option = {"parallel_tool_calls", STR("false"), ASK_FLAG};
    struct context_message result = {.role = ROLE_TOOL};
    struct context c;
    struct ask ask = {.context = &c, .options = &option, .options_count = 1};

    context_init(&c);
    c.at = &result;
    c.count = 1;
    check_again(&chat_provider, ask, "{\"parallel_tool_calls\":false}",
                "{\"error\":{\"message\":\"Unsupported parameter: 'parallel_tool_calls'\"}}", "",
                "-o parallel_tool_calls", __LINE__);
    /* One that it does not name is not to blame. */
    option = (struct ask_option){"tools", STR("[{\"type\":\"x\"}]"), ASK_FLAG};
    check_again(&chat_provider, ask, "{\"tools\":[{\"type\":\"x\"}]}",
                "{\"error\":{\"message\":\"The prompt is empty\"}}", "", "", __LINE__);
}

TEST(both_names_of_the_limit_can_be_refused)
{
    struct refusals refused = {0};
    struct ask ask = {.refused = &refused, .max_tokens = 5, .max_tokens_from = ASK_CONFIGURATION};
    struct buf out = BUF_INIT(SIZE_MAX), notice = BUF_INIT(SIZE_MAX);

    ask_again(&chat_provider, &ask, "{\"max_tokens\":5}",
              "{\"error\":{\"message\":\"Unsupported parameter\",\"param\":\"max_tokens\"}}", &out,
              &notice);
    CHECK_STR(buf_c(&out), "{\"max_completion_tokens\":5}");
    CHECK(refusals_learn(&chat_provider, &ask, 400, false,
                         STR("{\"error\":{\"message\":\"Unsupported parameter\",\"param\":"
                             "\"max_completion_tokens\"}}"),
                         buf_str(&out), &notice));
    cJSON *body = parse(STR("{\"max_tokens\":5}"));
    body_leave_refused(body, &chat_provider, &ask);
    buf_clear(&out);
    cjson_print(body, &out);
    CHECK_STR(buf_c(&out), "{}");
    /* The same field is not refused twice. */
    CHECK(!refusals_learn(&chat_provider, &ask, 400, false,
                          STR("{\"error\":{\"param\":\"max_completion_tokens\"}}"),
                          STR("{\"max_completion_tokens\":5}"), &notice));
    cJSON_Delete(body);
    refusals_release(&refused);
    buf_release(&out);
    buf_release(&notice);
}

/* ---- the length of an answer ---- */

/* Checks which length is asked for instead of 128000 (0: the error is about something else), and
 * whether it is remembered. */
static void check_length(int status, bool too_long, const char *text, const char *want,
                         bool remembered, int line)
{
    struct refusals refused = {0};
    struct ask ask = {.refused = &refused};
    struct buf notice = BUF_INIT(SIZE_MAX), reply = BUF_INIT(SIZE_MAX);

    buf_add_c(&reply, "{\"error\":{\"message\":");
    json_add_string(&reply, str_of(text));
    buf_add_c(&reply, "}}");
    refusals_learn(&messages_provider, &ask, status, too_long, buf_str(&reply),
                   STR("{\"max_tokens\":128000}"), &notice);
    test_check_str(refused.count > 0 ? refused.at[0].text[REFUSED_VALUE] : "", want, text, __FILE__,
                   line);
    refusals_end_exchange(&refused, 0, true);
    test_check_int((long long)refused.count, remembered, text, __FILE__, line);
    refusals_release(&refused);
    buf_release(&notice);
    buf_release(&reply);
}
#define CHECK_LENGTH(status, too_long, text, want, remembered)                                     \
    check_length(status, too_long, text, want, remembered, __LINE__)

TEST(the_length_of_an_answer_is_read)
{
    CHECK_LENGTH(400, false, "max_tokens: 128000 > 64000, which is the maximum", "64000", true);
    CHECK_LENGTH(422, false, "max_tokens: Input should be less than 8192", "8192", true);
    CHECK_LENGTH(400, false, "the valid range of max_tokens is 1-8,192", "8192", true);
    CHECK_LENGTH(400, false, "max_tokens: must be lower", "8192", true);
    CHECK_LENGTH(400, false, "max_tokens: Field required", "", false);
    /* Other numbers. */
    CHECK_LENGTH(400, false,
                 "max_tokens is too large: m-2024-07-18 takes 4096, m-20240718 and 2024-07-18 are "
                 "names",
                 "4096", true);
    CHECK_LENGTH(500, false, "Error code: 400 - max_tokens is too large", "8192", true);
    CHECK_LENGTH(400, false, "HTTP 422: max_tokens too large for m@20240 at line 1 column 300",
                 "8192", true);
    /* These depend on the prompt, or on what the account can pay for. */
    CHECK_LENGTH(400, true,
                 "input length and `max_tokens` exceed context limit: 80000 + 128000 > 200000",
                 "120000", false);
    CHECK_LENGTH(400, true, "the maximum context length is 4096 tokens: reduce max_tokens", "2048",
                 false);
    CHECK_LENGTH(402, false, "fewer max_tokens: 128000 requested, but can only afford 4096", "4096",
                 false);
    /* The prompt alone is too long. */
    CHECK_LENGTH(400, true,
                 "input length and `max_tokens` exceed context limit: 210000 + 128000 > 200000", "",
                 false);
    CHECK_LENGTH(400, true, "prompt is too long: 210000 tokens > 200000 maximum", "", false);
    CHECK_LENGTH(400, true, "prompt is too long: 1280001 tokens > 200000 maximum", "", false);
}

TEST(a_length_is_not_lowered_without_end)
{
    struct refusals refused = {0};
    struct ask ask = {.refused = &refused};
    struct buf notice = BUF_INIT(SIZE_MAX), sent = BUF_INIT(SIZE_MAX), reply = BUF_INIT(SIZE_MAX);
    int tries = 0, length = 128000;

    do {
        buf_clear(&sent);
        buf_clear(&reply);
        buf_addf(&sent, "{\"max_tokens\":%d}", length);
        buf_addf(&reply, "max_tokens: %d > %d, the maximum", length, length - 1);
        length--;
    } while (refusals_learn(&messages_provider, &ask, 400, false, buf_str(&reply), buf_str(&sent),
                            &notice) &&
             ++tries < 1000);
    CHECK_INT(tries, 8);
    refusals_release(&refused);
    buf_release(&notice);
    buf_release(&sent);
    buf_release(&reply);
}

TEST(other_statuses_refuse_nothing)
{
    struct refusals refused = {0};
    struct ask ask = {.refused = &refused};
    struct buf notice = BUF_INIT(SIZE_MAX);
    static const int statuses[] = {401, 403, 404, 429, 503};

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        CHECK(!refusals_learn(&chat_provider, &ask, statuses[i], false,
                              STR("{\"error\":{\"param\":\"seed\"}}"), STR("{\"seed\":1}"),
                              &notice));
    buf_release(&notice);
}

/* ---- the cache ---- */

static void learn_seed(struct refusals *f)
{
    struct ask ask = {.refused = f};
    struct buf notice = BUF_INIT(SIZE_MAX);

    CHECK(refusals_learn(&chat_provider, &ask, 400, false, STR("{\"error\":{\"param\":\"seed\"}}"),
                         STR("{\"seed\":1}"), &notice));
    buf_release(&notice);
}

static void load(struct refusals *f, const char *path, const char *model)
{
    refusals_release(f);
    refusals_load(f, mem_text(path), model);
}

TEST(the_cache_keeps_what_was_refused_for_a_model_and_a_day)
{
    struct refusals f = {0}, g = {0};
    struct err e = ERR_INIT;
    const char *path = "cache/refused/h";

    scratch_enter();
    load(&f, path, "m");
    learn_seed(&f);
    CHECK_INT(refusals_store(&f, &e), 0);
    CHECK_INT(f.stored, 1);
    load(&g, path, "m");
    if (CHECK_INT(g.count, 1))
        CHECK_STR(g.at[0].text[REFUSED_THING], "seed");
    CHECK_INT(g.stored, 1);
    load(&g, path, "other");
    CHECK_INT(g.count, 0);
    /* Another model does not replace those of this one. */
    learn_seed(&g);
    CHECK_INT(refusals_store(&g, &e), 0);
    load(&g, path, "m");
    CHECK_INT(g.count, 1);
    /* Two programs at once have learned different fields. */
    load(&f, path, "m");
    g.at[0].text[REFUSED_THING][0] = 'S';
    g.stored = 0;
    CHECK_INT(refusals_store(&g, &e), 0);
    load(&g, path, "m");
    CHECK_INT(g.count, 2);
    CHECK_INT(refusals_store(&f, &e), 0);
    /* What is too old is gone. */
    g.at[0].since -= 25 * 60 * 60 * TIME_SECOND;
    g.stored = 0;
    CHECK_INT(unlink(path), 0);
    CHECK_INT(refusals_store(&g, &e), 0);
    load(&g, path, "m");
    CHECK_INT(g.count, 1);
    refusals_release(&f);
    refusals_release(&g);
    err_release(&e);
    scratch_leave();
}
