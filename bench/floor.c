/*
 * floor FILE: the least that a program can do which looks at every byte of a file: reads it in
 * blocks of 256 KiB and adds them up. Prints the sum.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)256 << 10)

static uint64_t sum(const char *p, size_t n)
{
    uint64_t total[4] = {0}, w[4];
    size_t i = 0;

    for (; i + sizeof(w) <= n; i += sizeof(w)) {
        memcpy(w, p + i, sizeof(w));
        for (size_t k = 0; k < 4; k++)
            total[k] += w[k];
    }
    for (; i < n; i++)
        total[0] += (unsigned char)p[i];
    return total[0] + total[1] + total[2] + total[3];
}

int main(int argc, char **argv)
{
    char *block = aligned_alloc(4096, BLOCK);
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    uint64_t total = 0;
    ssize_t n = 0;

    if (fd < 0 || !block) {
        fputs("usage: floor FILE\n", stderr);
        return 2;
    }
    while ((n = read(fd, block, BLOCK)) > 0)
        total += sum(block, (size_t)n);
    if (n < 0) {
        perror("floor");
        return 2;
    }
    printf("%" PRIu64 "\n", total);
    free(block);
    return 0;
}
