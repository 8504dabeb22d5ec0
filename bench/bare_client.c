/*
 * bare_client PORT: the least that a client of a model server can do: connects to a loopback port,
 * sends a request that is fixed, and reads the response to its end. bench/startup.sh compares chat
 * with it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY                                                                                       \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"stream\":true}"

int main(int argc, char **argv)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[512], response[4096];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int n = snprintf(request, sizeof request,
                     "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     argc > 1 ? argv[1] : "", sizeof BODY - 1, BODY);
    ssize_t got;

    a.sin_port = htons((unsigned short)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0));
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
        write(fd, request, (size_t)n) != n)
        return 1;
    while ((got = read(fd, response, sizeof response)) > 0)
        if (write(STDOUT_FILENO, response, (size_t)got) != got)
            return 1;
    return got < 0;
}
