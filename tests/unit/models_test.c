#include "chathist/chat/model_cache.h"
#include "chathist/llm/models.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "llm/provider_wire.h"
#include "chathist/llm/provider_openai.h"
#include "test.h"
#include <sys/stat.h>
#include <time.h>
#include <utime.h>
#include "chathist/base/file_replace.h"
#include "chathist/base/time.h"
#include "scratch.h"

/* Accepts a connection, and sends the answer if the request begins with `wanted`. */
static void serve(int listener, const char *wanted, const char *answer)
{
    char request[4096] = "";
    size_t have = 0;
    ssize_t n;
    int fd = accept(listener, NULL, NULL);

    while (!strstr(request, "\r\n\r\n") && have < sizeof request - 1 &&
           (n = read(fd, request + have, sizeof request - 1 - have)) > 0)
        have += (size_t)n;
    if (strncmp(request, wanted, strlen(wanted)) != 0)
        answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    while ((n = write(fd, answer, strlen(answer))) > 0)
        answer += n;
    close(fd);
}

/* Probes a server that gives this answer to the request for that path. */
static bool probe(const struct provider *p, const char *wanted, const char *status,
                  const char *body)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    struct sockaddr_in mute = at;
    char url[64], other[64], answer[1024];
    int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct model_probe probes[2];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there;
    pid_t child;

    CHECK_INT(bind(listener, (struct sockaddr *)&at, length), 0);
    CHECK_INT(listen(listener, 1), 0);
    CHECK_INT(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", ntohs(at.sin_port));
    snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
             strlen(body), body);
    child = fork();
    if (child == 0) {
        serve(listener, wanted, answer);
        _exit(0);
    }
    close(listener);
    /* Another server accepts the connection and says nothing. */
    CHECK_INT(bind(silent, (struct sockaddr *)&mute, length), 0);
    CHECK_INT(listen(silent, 1), 0);
    CHECK_INT(getsockname(silent, (struct sockaddr *)&mute, &length), 0);
    snprintf(other, sizeof other, "http://127.0.0.1:%d", ntohs(mute.sin_port));
    probes[0] = (struct model_probe){.provider = p, .base_url = other};
    probes[1] = (struct model_probe){.provider = p, .base_url = url};
    models_probe(probes, 2);
    CHECK(!probes[0].there);
    there = probes[1].there;
    close(silent);
    waitpid(child, NULL, 0);
    return there;
}

TEST(a_server_is_known_by_its_list_of_models)
{
    const char *ollama = "GET /api/tags HTTP/1.1\r\n", *llamacpp = "GET /v1/models HTTP/1.1\r\n";

    CHECK(probe(&provider_ollama, ollama, "200 OK", "{\"models\":[{\"name\":\"small\"}]}"));
    CHECK(probe(&provider_ollama, ollama, "200 OK", "{\"models\":[]}"));
    CHECK(probe(&provider_llamacpp, llamacpp, "200 OK",
                "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}"));
    CHECK(!probe(&provider_llamacpp, llamacpp, "503 Service Unavailable", "{\"data\":[]}"));
}

/* Many programs on such a port answer 200 to every path. */
TEST(what_has_no_such_list_is_none)
{
    static const char *const pages[] = {"<!DOCTYPE html>", "{\"status\":\"ok\"}",
                                        "{\"models\":null,\"data\":{}}", "[]", ""};

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        CHECK(!probe(&provider_ollama, "GET ", "200 OK", pages[i]));
        CHECK(!probe(&provider_llamacpp, "GET ", "200 OK", pages[i]));
    }
}

/* ---- model cache ---- */

#define DAY ((int64_t)24 * 60 * 60 * TIME_SECOND)

static const struct provider one = {.name = "one"}, two = {.name = "two"};

static bool load(const char *dir, const struct provider *p, const char *url, struct model_list *l)
{
    char *path = model_cache_path(".", dir, p, url);
    bool found = model_cache_load(path, DAY, l);

    free(path);
    return found;
}

static int store(const char *dir, const struct provider *p, const char *url,
                 const struct model_list *l, struct err *e)
{
    char *path = model_cache_path(".", dir, p, url);
    int result = model_cache_store(path, l, e);

    free(path);
    return result;
}

TEST(a_list_is_kept_for_its_server)
{
    const char *dir = "cache/models", *file = "cache/models/one@h:1%v1";
    struct model_list l = {0}, got;
    struct err e = ERR_INIT;
    struct stat st;

    scratch_enter();
    CHECK(!load(dir, &one, "http://h:1/v1", &got));
    model_list_add(&l, STR("a:1"), 0);
    model_list_add(&l, STR("bad\nname"), 0);
    model_list_add(&l, STR("b c"), 0);
    CHECK_INT(store(dir, &one, "http://me:secret@h:1/v1?key=x", &l, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK(!load(dir, &one, "http://h:1/other", &got));
    CHECK(!load(dir, &one, "http://h:1", &got));
    if (CHECK(load(dir, &one, "http://h:1/v1/#x", &got))) {
        CHECK_INT(got.count, 2);
        CHECK_STR(got.at[0], "a:1");
        CHECK_STR(got.at[1], "b c");
    }
    model_list_release(&got);
    /* What is no name is not shown. */
    CHECK(file_replace("cache/models/one@h:3%v1", STR("a\x1b[31m\tx\n\xff\nok\t8\n\0\n"), &e) == 0);
    if (CHECK(load(dir, &one, "http://h:3/v1", &got))) {
        CHECK_INT(got.count, 1);
        CHECK_STR(got.at[0], "ok");
    }
    model_list_release(&got);
    CHECK(!load(dir, &two, "http://h:1/v1", &got));
    CHECK(!load(dir, &one, "http://h:2/v1", &got));
    CHECK(!load(dir, &one, "nonsense", &got));
    CHECK_INT(stat(file, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(stat(dir, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
    /* Too old, and in the future. */
    for (int days = -2; days <= 2; days += 4) {
        time_t at = time(NULL) + days * 24 * 60 * 60;

        CHECK_INT(utime(file, &(struct utimbuf){at, at}), 0);
        CHECK(!load(dir, &one, "http://h:1/v1", &got));
    }
    model_list_release(&l);
    scratch_leave();
}

TEST(what_is_in_the_way_is_an_error_or_nothing)
{
    const char *dir = "file", *below = "file/models";
    struct model_list l = {0}, got;
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(file_replace(dir, STR("x"), &e), 0);
    CHECK_INT(store(below, &one, "http://h:1/v1", &l, &e), -1);
    CHECK(*err_text(&e) != '\0');
    CHECK(!load(below, &one, "http://h:1/v1", &got));
    CHECK(!model_cache_path(".", below, &one, "nonsense"));
    err_release(&e);
    scratch_leave();
}
