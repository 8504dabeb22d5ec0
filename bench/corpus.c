/*
 * corpus SIZE FILE: makes a history of SIZE bytes (K, M, G: powers of 10), the same each time.
 *
 * Each line is appended by a separate write, as in use, because such a file lies differently in
 * the page cache than one that was written at once. Sessions of up to 40
 * messages, three at a time; contents of prose, of code with escapes, and one in ten in another
 * script; one line in fifty as Python's json.dumps writes it. `zanzibarquartz` is in one message of
 * 10,000, `flummoxed` in one of 200; what grep finds of these and of the words in a line it finds
 * in the content.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"

static uint64_t state = 88172645463325252U;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * below >> 32);
}

static const char *const english[] = {
    "the",     "of",      "to",      "and",      "a",       "in",     "is",      "it",
    "you",     "that",    "for",     "on",       "with",    "this",   "not",     "error",
    "file",    "use",     "code",    "function", "value",   "data",   "when",    "line",
    "return",  "test",    "server",  "request",  "message", "query",  "index",   "memory",
    "session", "search",  "history", "pattern",  "buffer",  "thread", "process", "result",
    "because", "between", "example", "question", "quickly", "zero",   "json",    "kernel",
};
static const char *const others[] = {
    "функция", "ошибка", "поиск",     "сервер", "это",  "для",    "关于", "函数",
    "错误",    "Größe",  "Übersicht", "für",    "检索", "メモリ", "😀",
};
static const char *const code[] = {
    "if (x < 0)\n\treturn NULL;\n",
    "printf(\"%s\\n\", name);\n",
    "for (size_t i = 0; i < n; i++)\n",
    "path = 'C:\\\\tmp\\\\' + name\n",
    "</div>\n",
    "\"key\": {\"a\": [1, 2]},\n",
};

#define PICK(array) array[draw(sizeof(array) / sizeof((array)[0]))]

static void add_text(struct buf *out)
{
    uint32_t words = 5 + draw(40) + (draw(4) ? 0 : draw(300)) + (draw(2000) ? 0 : draw(20000));
    uint32_t kind = draw(10);

    for (uint32_t i = 0; i < words; i++) {
        buf_add_c(out, kind == 0 ? PICK(others) : PICK(english));
        buf_add_c(out, draw(12) ? " " : ".\n");
        if (kind == 1 && draw(6) == 0)
            buf_add_c(out, PICK(code));
    }
    if (draw(10000) == 0)
        buf_add_c(out, " Zanzibarquartz ");
    if (draw(200) == 0)
        buf_add_c(out, " flummoxed ");
}

/* Everything beyond ASCII as \uXXXX, and blanks after commas. */
static void add_escaped(struct buf *out, struct str text)
{
    while (text.n > 0) {
        size_t n = 1;

        if ((unsigned char)text.p[0] < 0x80) {
            buf_add(out, text.p, 1);
        } else {
            while (n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
                n++;
            buf_addf(out, "\\u%04x", 0x400 + draw(0x100));
        }
        text.p += n;
        text.n -= n;
    }
}

static void add_line(struct buf *out, uint64_t number)
{
    static uint64_t sessions[3];
    uint64_t ms = 1700000000000 + number * 20000;
    uint64_t *session = &sessions[draw(10) ? 0 : draw(3)];
    struct buf text = BUF_INIT(BUF_LINE), string = BUF_INIT(BUF_LINE);
    bool answer = draw(2), spaced = draw(50) == 0;
    const char *comma = spaced ? ", " : ",", *colon = spaced ? ": " : ":";

    if (!*session || draw(20) == 0)
        *session = ms;
    add_text(&text);
    json_add_string(&string, buf_str(&text));
    buf_addf(out, "{\"id\"%s\"%" PRIu64 "-%08x\"%s\"session_id\"%s\"sess_%" PRIu64 "_%06x\"%s",
             colon, ms, draw(UINT32_MAX), comma, colon, *session, (unsigned)(*session % 0xffffff),
             comma);
    buf_addf(out, "\"timestamp\"%s\"", colon);
    time_add_iso(out, (int64_t)ms * 1000);
    buf_addf(out, "\"%s\"role\"%s\"%s\"%s\"content\"%s", comma, colon,
             answer ? "assistant" : "user", comma, colon);
    if (spaced)
        add_escaped(out, buf_str(&string));
    else
        buf_add_str(out, buf_str(&string));
    if (!answer && draw(12) == 0)
        buf_addf(out, "%s\"files\"%s[\"src/%u.c\"]", comma, colon, draw(1000));
    if (answer)
        buf_addf(out, "%s\"model\"%s\"example-1\"%s\"finish_reason\"%s\"stop\"", comma, colon,
                 comma, colon);
    buf_add_c(out, "}\n");
    buf_release(&text);
    buf_release(&string);
}

int main(int argc, char **argv)
{
    char *unit = NULL;
    uint64_t size = argc == 3 ? strtoull(argv[1], &unit, 10) : 0, written = 0;
    struct buf line = BUF_INIT(BUF_LINE);

    if (size > 0)
        size *= *unit == 'G' ? 1000000000 : *unit == 'M' ? 1000000 : *unit == 'K' ? 1000 : 1;

    int fd =
        size > 0 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600) : -1;

    if (fd < 0) {
        fputs("usage: corpus SIZE[K|M|G] FILE\n", stderr);
        return 2;
    }
    for (uint64_t number = 0; written < size; number++) {
        buf_clear(&line);
        add_line(&line, number);
        if (file_write_all(fd, line.data, line.len) < 0) {
            perror("corpus");
            return 2;
        }
        written += line.len;
    }
    buf_release(&line);
    return close(fd) == 0 ? 0 : 2;
}
