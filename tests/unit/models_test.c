#include "chathist/llm/models.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/llm/provider_openai.h"
#include "test.h"

/* Takes a connection, and answers what is on it if the request begins so. */
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

/* What a probe says of a server that answers so to the request for that path. */
static bool probe(const struct provider *p, const char *wanted, const char *status,
                  const char *body)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    char url[64], answer[1024];
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
    there = models_probe(p, url);
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

/* Many a program on such a port answers 200 to every path. */
TEST(what_has_no_such_list_is_none)
{
    static const char *const pages[] = {"<!DOCTYPE html>", "{\"status\":\"ok\"}",
                                        "{\"models\":null,\"data\":{}}", "[]", ""};

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        CHECK(!probe(&provider_ollama, "GET ", "200 OK", pages[i]));
        CHECK(!probe(&provider_llamacpp, "GET ", "200 OK", pages[i]));
    }
}
