/*
 * recv PORT: the least that a client can do. Requests a stream from 127.0.0.1 and copies each piece
 * to standard output when it arrives. bench/stream.sh compares chat with it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char request[] = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                              "Content-Length: 2\r\n\r\n{}";

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    static char bytes[65536];
    ssize_t n;

    at.sin_port = htons((unsigned short)(argc > 1 ? strtol(argv[1], NULL, 10) : 0));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        write(fd, request, sizeof request - 1) < 0) {
        perror("recv");
        return 2;
    }
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        if (write(STDOUT_FILENO, bytes, (size_t)n) != n)
            return 2;
    return n < 0 ? 2 : 0;
}
