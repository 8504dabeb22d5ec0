/*
 * The errors of servers in all their forms.
 */
#include "test.h"

#include "chathist/base/json.h"
#include "chathist/llm/provider_error.h"

static void check_answer(int status, const char *body, enum err_kind kind, const char *text,
                         int line)
{
    struct err e = ERR_INIT;

    test_check_int(provider_error_set_http(&e, status, str_of(body)), -1, body, __FILE__, line);
    test_check_int((long long)e.kind, (long long)kind, body, __FILE__, line);
    test_check_str(err_text(&e), text, body, __FILE__, line);
    err_release(&e);
}
#define ANSWER(status, body, kind, text) check_answer(status, body, kind, text, __LINE__)

TEST(a_message_is_found_in_each_form)
{
    ANSWER(404, "{\"error\":{\"message\":\"no such model\",\"type\":\"x\",\"code\":null}}",
           ERR_REQUEST, "HTTP 404: no such model");
    ANSWER(404, "{\"error\":\"model \\\"m\\\" not found\"}", ERR_REQUEST,
           "HTTP 404: model \"m\" not found");
    ANSWER(400, "{\"message\":\"a\"}", ERR_REQUEST, "HTTP 400: a");
    ANSWER(400, "{\"detail\":\"a\"}", ERR_REQUEST, "HTTP 400: a");
    ANSWER(422, "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"field required\"}]}", ERR_REQUEST,
           "HTTP 422: body: field required");
    ANSWER(400, "{\"object\":\"error\",\"message\":\"a\",\"code\":400}", ERR_REQUEST,
           "HTTP 400: a");
    ANSWER(400, "[{\"error\":{\"message\":\"a\"}}]", ERR_REQUEST, "HTTP 400: a");
    ANSWER(500, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"a\"}}",
           ERR_BUSY, "HTTP 500: a");
}

TEST(without_a_message_something_else_is_shown)
{
    ANSWER(500, "{\"error\":{\"type\":\"server_error\"}}", ERR_BUSY, "HTTP 500: server_error");
    ANSWER(500, "{\"error\":{\"message\":null,\"code\":\"oops\"}}", ERR_BUSY, "HTTP 500: oops");
    ANSWER(500, "{\"a\" : 1}", ERR_BUSY, "HTTP 500: {\"a\":1}");
    ANSWER(500, "{}", ERR_BUSY, "HTTP 500: {}");
    ANSWER(500, "[]", ERR_BUSY, "HTTP 500: no message");
    ANSWER(500, "", ERR_BUSY, "HTTP 500: no message");
    ANSWER(500, " \n ", ERR_BUSY, "HTTP 500: no message");
    ANSWER(500, "\"text\"", ERR_BUSY, "HTTP 500: \"text\"");
}

TEST(text_and_html)
{
    ANSWER(503, "\n  upstream gone \r\nsecond line", ERR_BUSY, "HTTP 503: upstream gone");
    ANSWER(502, "<html>\n<title>Bad Gateway</title>\n</html>\n", ERR_BUSY,
           "HTTP 502: Bad Gateway (an HTML page)");
    ANSWER(500, "{\"cut", ERR_BUSY, "HTTP 500: {\"cut");
}

TEST(messages_are_safe_to_show_and_short)
{
    struct buf body = BUF_INIT(BUF_SMALL), want = BUF_INIT(BUF_SMALL);

    ANSWER(400, "{\"error\":\"a\\u001b[2J\\nb\\u202ec\\u0000\"}", ERR_REQUEST,
           "HTTP 400: a^[[2J b<U+202E>c^@");
    buf_add_c(&want, "HTTP 400: ");
    for (int i = 0; i < 400; i++) {
        buf_add_c(&body, "ü");
        if (i < 300)
            buf_add_c(&want, "ü");
    }
    buf_add_c(&want, "…");
    ANSWER(400, buf_c(&body), ERR_REQUEST, buf_c(&want));
    buf_release(&body);
    buf_release(&want);
}

TEST(a_refusal_is_told_from_a_bad_request)
{
    ANSWER(400, "{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}",
           ERR_TOO_LONG, "HTTP 400: x");
    ANSWER(400,
           "{\"error\":{\"message\":\"x\",\"type\":\"exceed_context_size_error\",\"code\":400}}",
           ERR_TOO_LONG, "HTTP 400: x");
    ANSWER(400, "{\"error\":{\"message\":\"x\",\"code\":\"content_policy_violation\"}}",
           ERR_REFUSED, "HTTP 400: x");
    ANSWER(400, "{\"message\":\"This model's Maximum Context Length is 1\"}", ERR_TOO_LONG,
           "HTTP 400: This model's Maximum Context Length is 1");
    ANSWER(413, "{\"message\":\"too many tokens\"}", ERR_TOO_LONG, "HTTP 413: too many tokens");
    ANSWER(500, "{\"error\":\"the context size is exceeded\"}", ERR_TOO_LONG,
           "HTTP 500: the context size is exceeded");
    ANSWER(429, "{\"message\":\"too many tokens per minute\"}", ERR_BUSY,
           "HTTP 429: too many tokens per minute");
    ANSWER(401, "{\"message\":\"no context length for you\"}", ERR_AUTH,
           "HTTP 401: no context length for you");
    ANSWER(413, "<html>", ERR_TOO_LONG, "HTTP 413: an HTML page");
}

/* llama.cpp's words. A second request would get the same answer. */
TEST(what_a_server_cannot_do_is_not_tried_again)
{
    ANSWER(500,
           "{\"error\":{\"code\":500,\"type\":\"server_error\","
           "\"message\":\"image input is not supported - hint: x\"}}",
           ERR_REQUEST, "HTTP 500: image input is not supported - hint: x");
    ANSWER(501, "{\"error\":{\"code\":501,\"type\":\"not_supported_error\",\"message\":\"a\"}}",
           ERR_REQUEST, "HTTP 501: a");
    ANSWER(429, "{\"error\":{\"message\":\"image input is not supported\"}}", ERR_BUSY,
           "HTTP 429: image input is not supported");
}

TEST(an_account_without_quota_is_not_a_busy_server)
{
    ANSWER(429,
           "{\"error\":{\"message\":\"x\",\"type\":\"insufficient_quota\",\"code\":\"insufficient_"
           "quota\"}}",
           ERR_QUOTA, "HTTP 429: x (the account has no quota left: not tried again)");
    ANSWER(429, "{\"error\":{\"message\":\"x\",\"type\":\"exceeded_current_quota_error\"}}",
           ERR_QUOTA, "HTTP 429: x (the account has no quota left: not tried again)");
    ANSWER(429, "{\"error\":{\"message\":\"x\",\"code\":\"rate_limit_exceeded\"}}", ERR_BUSY,
           "HTTP 429: x");
    ANSWER(400, "{\"error\":{\"message\":\"x\",\"code\":\"insufficient_quota\"}}", ERR_REQUEST,
           "HTTP 400: x");
}

static void check_reported(const char *json, enum err_kind kind, const char *text, int line)
{
    struct err e = ERR_INIT;
    struct str value;

    if (!test_check(json_check(str_of(json), &value, NULL), json, __FILE__, line))
        return;
    test_check(provider_error_reported(value) == (text != NULL), json, __FILE__, line);
    if (text) {
        test_check_int(provider_error_set_reported(&e, value), -1, json, __FILE__, line);
        test_check_int((long long)e.kind, (long long)kind, json, __FILE__, line);
        test_check_str(err_text(&e), text, json, __FILE__, line);
    }
    err_release(&e);
}
#define REPORTED(json, kind, text) check_reported(json, kind, text, __LINE__)
#define NOT_REPORTED(json) check_reported(json, ERR_NONE, NULL, __LINE__)

TEST(an_error_inside_an_answer)
{
    REPORTED("{\"error\":{\"message\":\"a\",\"code\":429}}", ERR_BUSY, "server error 429: a");
    REPORTED("{\"error\":{\"message\":\"a\",\"code\":\"401\"}}", ERR_AUTH, "server error 401: a");
    REPORTED("{\"error\":{\"message\":\"a\",\"code\":400}}", ERR_REQUEST, "server error 400: a");
    REPORTED("{\"object\":\"error\",\"message\":\"a\",\"code\":500}", ERR_BUSY,
             "server error 500: a");
    REPORTED("{\"error\":\"a\"}", ERR_BUSY, "server error: a");
    REPORTED("{\"error\":true,\"message\":\"a\"}", ERR_BUSY, "server error: a");
    REPORTED("{\"error\":{\"message\":\"a\",\"type\":\"rate_limit_error\"}}", ERR_BUSY,
             "server error: a");
    REPORTED("{\"error\":{\"message\":\"a\",\"type\":\"invalid_request_error\"}}", ERR_REQUEST,
             "server error: a");
    REPORTED("{\"error\":{\"message\":\"a\",\"code\":\"invalid_api_key\"}}", ERR_AUTH,
             "server error: a");
    REPORTED("{\"error\":{\"message\":\"a\",\"code\":\"context_length_exceeded\"}}", ERR_TOO_LONG,
             "server error: a");
    REPORTED("{\"error\":1}", ERR_BUSY, "server error: {\"error\":1}");
}

TEST(only_a_truthy_error_is_one)
{
    NOT_REPORTED("{\"error\":null}");
    NOT_REPORTED("{\"error\":false}");
    NOT_REPORTED("{\"error\":\"\"}");
    NOT_REPORTED("{\"error\":0}");
    NOT_REPORTED("{\"error\":{}}");
    NOT_REPORTED("{\"error\":[]}");
    NOT_REPORTED("{\"object\":\"chat.completion.chunk\"}");
    NOT_REPORTED("{\"Error\":\"a\"}");
    NOT_REPORTED("[1]");
    NOT_REPORTED("null");
}

TEST(a_status_means_a_kind)
{
    static const struct {
        int status;
        enum err_kind kind;
    } rows[] = {{302, ERR_REQUEST}, {400, ERR_REQUEST}, {401, ERR_AUTH},
                {403, ERR_AUTH},    {404, ERR_REQUEST}, {408, ERR_REQUEST},
                {429, ERR_BUSY},    {500, ERR_BUSY},    {529, ERR_BUSY}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = ERR_INIT;

        provider_error_set_http(&e, rows[i].status, STR("x"));
        CHECK_INT(e.kind, rows[i].kind);
        err_release(&e);
    }
}

/* A key that is masked in responses is masked in errors, too, and not the other way round. */
TEST(which_keys_are_masked)
{
    static const struct {
        const char *key, *shown;
        bool in_response;
    } rows[] = {
        {"sk-1abcd", "bad '***'", true},         {" sk-1abcd\n", "bad '***'", true},
        {"sk-1abc", "bad 'sk-1abc'", false},     {"not-needed", "bad '***'", false},
        {"12345678", "bad '***'", false},        {"correct-horse-battery", "bad '***'", true},
        {"two words 12345", "bad '***'", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str key = str_trim(str_of(rows[i].key));
        struct err e = ERR_INIT;

        err_set(&e, ERR_AUTH, "bad '%.*s'", (int)key.n, key.p);
        provider_error_mask(&e, &(struct ask){.key = rows[i].key});
        CHECK_STR(err_text(&e), rows[i].shown);
        CHECK((secret_distinct(rows[i].key).n > 0) == rows[i].in_response);
        err_release(&e);
    }
    CHECK(secret_of(NULL).n == 0);
}
