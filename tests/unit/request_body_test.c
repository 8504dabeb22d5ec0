/*
 * The fields of a request that the user sets: by path, and merged with what is there.
 */
#include "test.h"

#include "llm/request_body.h"

static cJSON *parse(const char *json)
{
    cJSON *body = cjson_object();

    for (struct json_iter it = json_iter(str_of(json)); json_next(&it);) {
        char *name = mem_copy(it.key.p, it.key.n);

        cjson_set_raw(body, name, it.value);
        free(name);
    }
    return body;
}

static void check_body(const cJSON *body, const char *want, int line)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    cjson_print(body, &text);
    test_check_str(buf_c(&text), want, "body", __FILE__, line);
    buf_release(&text);
}

static void check_set(const char *json, const char *path, struct str value, const char *want,
                      int line)
{
    cJSON *body = parse(json);

    body_set_field(body, path, value);
    check_body(body, want, line);
    cJSON_Delete(body);
}
#define CHECK_SET(json, path, value, want) check_set(json, path, value, want, __LINE__)

TEST(a_field_is_set_and_removed_by_its_path)
{
    CHECK_SET("{\"a\":1}", "b", STR("2"), "{\"a\":1,\"b\":2}");
    CHECK_SET("{\"a\":1}", "a", STR("2"), "{\"a\":2}");
    CHECK_SET("{\"a\":1}", "a", STR_NONE, "{}");
    CHECK_SET("{\"a\":1}", "b.c.d", STR("2"), "{\"a\":1,\"b\":{\"c\":{\"d\":2}}}");
    CHECK_SET("{\"b\":{\"x\":12345678901234567890,\"c\":{\"d\":1}}}", "b.c.d", STR("2"),
              "{\"b\":{\"x\":12345678901234567890,\"c\":{\"d\":2}}}");
    CHECK_SET("{\"b\":{\"c\":{\"d\":1}},\"e\":3}", "b.c.d", STR_NONE, "{\"e\":3}");
    CHECK_SET("{\"b\":{\"c\":{\"d\":1},\"x\":0}}", "b.c.d", STR_NONE, "{\"b\":{\"x\":0}}");
    /* A path through another type changes nothing. */
    CHECK_SET("{\"b\":[1]}", "b.c", STR("2"), "{\"b\":[1]}");
    CHECK_SET("{\"b\":[1]}", "b.c", STR_NONE, "{\"b\":[1]}");
    CHECK_SET("{\"b\":{\"c\":7}}", "b.c.d", STR("2"), "{\"b\":{\"c\":7}}");
    CHECK_SET("{\"a\":1}", "b.c", STR_NONE, "{\"a\":1}");
}

TEST(a_field_is_found_by_its_path)
{
    cJSON *body = parse("{\"a\":{\"b\":[1],\"c\":\"x\"},\"d\":null}");
    struct buf scratch = BUF_INIT(SIZE_MAX);

    CHECK(str_eq_c(body_field(body, "a.c", &scratch), "\"x\""));
    CHECK(str_eq_c(body_field(body, "d", &scratch), "null"));
    CHECK(!body_field(body, "a.x", &scratch).p);
    CHECK(!body_field(body, "a.c.x", &scratch).p);
    CHECK(!body_field(body, "x.y", &scratch).p);
    buf_release(&scratch);
    cJSON_Delete(body);
}

/* ---- options ---- */

static const struct provider test_provider = {
    .name = "test",
    .base_url = "https://own",
    .effort_field = "reasoning.effort",
    .limit_field = "new_limit",
    .limit_elsewhere = "old_limit",
    .schema_field = "text.format",
};

/* Adds the settings of the ask to the body and checks the result, or the error. */
static void check_add(const char *json, const struct ask *ask, const char *want, const char *error,
                      int line)
{
    cJSON *body = parse(json);
    struct err e = ERR_INIT;
    int rc = body_add_options(body, &test_provider, ask, &e);

    test_check_int(rc, *error ? -1 : 0, "result", __FILE__, line);
    test_check_str(err_text(&e), error, "error", __FILE__, line);
    if (*error)
        test_check_int(e.kind, ERR_USAGE, "kind", __FILE__, line);
    else
        check_body(body, want, line);
    err_release(&e);
    cJSON_Delete(body);
}

static void check_option(const char *json, const char *key, struct str value, const char *want,
                         int line)
{
    struct ask_option option = {key, value, ASK_FLAG};
    struct ask ask = {.options = &option, .options_count = 1};

    check_add(json, &ask, want, "", line);
}
#define CHECK_OPTION(json, key, value, want) check_option(json, key, value, want, __LINE__)

TEST(an_option_replaces_or_adds_a_field)
{
    CHECK_OPTION("{\"a\":1}", "a", STR("2"), "{\"a\":2}");
    CHECK_OPTION("{\"a\":1}", "b", STR(" 0.20 "), "{\"a\":1,\"b\":0.20}");
    CHECK_OPTION("{\"a\":1}", "a", STR("plain text"), "{\"a\":\"plain text\"}");
    CHECK_OPTION("{\"a\":{\"b\":1}}", "a", STR("null"), "{\"a\":null}");
    CHECK_OPTION("{\"a\":[1]}", "a", STR("[2]"), "{\"a\":[2]}");
    CHECK_OPTION("{\"a\":1}", "b.c", STR("2"), "{\"a\":1,\"b.c\":2}");
    CHECK_OPTION("{\"a\":1}", "\xff", STR("2"), "{\"a\":1,\"\xef\xbf\xbd\":2}");
}

TEST(objects_are_merged_and_tools_joined)
{
    CHECK_OPTION("{\"a\":{\"b\":1,\"c\":{\"d\":2,\"e\":3}}}", "a",
                 STR("{\"c\":{\"e\":4,\"f\":5},\"g\":[6]}"),
                 "{\"a\":{\"b\":1,\"c\":{\"d\":2,\"e\":4,\"f\":5},\"g\":[6]}}");
    CHECK_OPTION("{\"tools\":[{\"x\":1},2]}", "tools", STR("[ {\"y\":3} ]"),
                 "{\"tools\":[{\"x\":1},2,{\"y\":3}]}");
    CHECK_OPTION("{\"tools\":[1]}", "tools", STR("[]"), "{\"tools\":[1]}");
    CHECK_OPTION("{\"tools\":[1]}", "tools", STR("null"), "{\"tools\":null}");
    CHECK_OPTION("{\"a\":{\"tools\":[1]}}", "a", STR("{\"tools\":[2]}"), "{\"a\":{\"tools\":[2]}}");
}

TEST(two_settings_for_one_field)
{
    struct ask_option option = {"reasoning", STR("{\"effort\":\"low\"}"), ASK_FLAG};
    struct ask ask = {
        .options = &option, .options_count = 1, .effort = "high", .effort_from = ASK_FLAG};

    check_add("{}", &ask, "",
              "--effort and -o reasoning contradict each other: both set 'reasoning.effort'",
              __LINE__);
    ask.effort = "low";
    check_add("{}", &ask, "{\"reasoning\":{\"effort\":\"low\"}}", "", __LINE__);
    ask.effort = "high";
    option.from = ASK_CONFIGURATION;
    check_add("{}", &ask, "{\"reasoning\":{\"effort\":\"high\"}}", "", __LINE__);
    ask.effort_from = ASK_CONFIGURATION;
    check_add("{}", &ask, "",
              "'effort' and 'option.reasoning' contradict each other: both set 'reasoning.effort'",
              __LINE__);
    option.from = ASK_TEMPLATE;
    check_add("{}", &ask, "{\"reasoning\":{\"effort\":\"low\"}}", "", __LINE__);
    /* A value that replaces the object around the field would lose it. */
    option = (struct ask_option){"reasoning", STR("null"), ASK_FLAG};
    ask.effort_from = ASK_FLAG;
    check_add("{}", &ask, "",
              "--effort and -o reasoning contradict each other: both set 'reasoning.effort'",
              __LINE__);
    ask.effort_from = ASK_CONFIGURATION;
    check_add("{}", &ask, "{\"reasoning\":null}", "", __LINE__);
    option.from = ASK_CONFIGURATION;
    ask.effort_from = ASK_FLAG;
    check_add("{}", &ask, "{\"reasoning\":{\"effort\":\"high\"}}", "", __LINE__);
    ask.effort_from = ASK_CONFIGURATION;
    /* Other members are no conflict. */
    option = (struct ask_option){"reasoning", STR("{\"summary\":\"auto\"}"), ASK_CONFIGURATION};
    check_add("{}", &ask, "{\"reasoning\":{\"effort\":\"high\",\"summary\":\"auto\"}}", "",
              __LINE__);
}

TEST(two_names_of_the_limit)
{
    struct ask_option option = {"old_limit", STR("6"), ASK_FLAG};
    struct ask ask = {
        .options = &option, .options_count = 1, .max_tokens = 5, .max_tokens_from = ASK_FLAG};

    check_add("{}", &ask, "",
              "--max-tokens and -o old_limit contradict each other: both set 'new_limit'",
              __LINE__);
    option.value = STR("5");
    check_add("{}", &ask, "{\"new_limit\":5}", "", __LINE__);
    option.value = STR("6");
    ask.max_tokens_from = ASK_CONFIGURATION;
    check_add("{}", &ask, "{\"old_limit\":6}", "", __LINE__);
    ask.max_tokens_from = ASK_FLAG;
    option.from = ASK_CONFIGURATION;
    check_add("{}", &ask, "{\"new_limit\":5}", "", __LINE__);
    option.key = "new_limit";
    check_add("{}", &ask, "{\"new_limit\":5}", "", __LINE__);
    option.from = ASK_FLAG;
    check_add("{}", &ask, "",
              "--max-tokens and -o new_limit contradict each other: both set 'new_limit'",
              __LINE__);
}

TEST(options_that_are_no_fields_go_into_an_object)
{
    static const char *const fields[] = {"model", "think", "options", NULL};
    static const struct provider inner = {.name = "inner",
                                          .limit_field = "options.limit",
                                          .options_field = "options",
                                          .body_fields = fields};
    struct ask_option options[] = {{"think", STR("true"), ASK_FLAG},
                                   {"seed", STR("7"), ASK_FLAG},
                                   {"stop", STR("a b"), ASK_CONFIGURATION},
                                   {"options", STR("{\"top_k\":1}"), ASK_FLAG}};
    struct ask ask = {.options = options, .options_count = 4};
    struct buf path = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    cJSON *body = parse("{\"options\":{\"size\":3}}");

    CHECK_INT(body_add_options(body, &inner, &ask, &e), 0);
    check_body(body,
               "{\"options\":{\"size\":3,\"seed\":7,\"stop\":\"a b\",\"top_k\":1},\"think\":true}",
               __LINE__);
    cJSON_Delete(body);
    options[0] = (struct ask_option){"limit", STR("5"), ASK_FLAG};
    ask.max_tokens = 6;
    ask.max_tokens_from = ASK_FLAG;
    body = parse("{}");
    CHECK_INT(body_add_options(body, &inner, &ask, &e), -1);
    CHECK_STR(err_text(&e),
              "--max-tokens and -o limit contradict each other: both set 'options.limit'");
    cJSON_Delete(body);
    CHECK(body_field_is_typed(&inner, &ask, "options.seed", &path));
    CHECK_STR(buf_c(&path), "-o seed");
    CHECK(!body_field_is_typed(&inner, &ask, "think", &path));
    buf_release(&path);
    err_release(&e);
}
