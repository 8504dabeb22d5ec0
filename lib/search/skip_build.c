#include "chathist/search/skip_build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/le.h"
#include "chathist/base/mem.h"
#include "chathist/history/index.h"
#include "chathist/history/index_file.h"
#include "chathist/history/own_line.h"
#include "chathist/history/scan.h"
#include "chathist/search/skip.h"

/* So many blocks are marked in one table, which the processor's cache holds. */
#define GROUP 8
#define ROWS_SIZE (SKIP_ROWS * SKIP_ROW_SIZE)

struct build {
    const struct history *h;
    struct scan history;
    uint64_t generation;
    int fd;
    off_t block, chunk_size;
    /* The chunk that is under way: */
    size_t number;
    off_t begin, next; /* where its first line begins, and that of the next one; -1: not known */
    struct skip_chunk chunk;
    char *rows;           /* as they are written */
    unsigned char *marks; /* of the group of blocks that is under way */
    size_t group;
    struct message message;
    struct buf content;
};

/* ---- the lines of a chunk ---- */

/* Goes to the first one that begins behind the first byte of the chunk, or is the first of all. The
 * rest of a line that lies in many chunks is not read for each of them. */
static bool open_lines(const struct build *b, struct scan *s)
{
    bool known = b->begin >= 0;
    struct line l;

    scan_share(s, &b->history, known ? b->begin : b->chunk_size * (off_t)b->number,
               b->history.size);
    return known || scan_line(s, &l, NULL) > 0;
}

/* 1; 0 behind the last one, -1: not all of it is there. */
static int next_line(struct build *b, struct scan *s, struct line *l)
{
    if (scan_offset(s) > b->chunk_size * (off_t)(b->number + 1)) {
        b->next = scan_offset(s);
        return 0;
    }
    return scan_line(s, l, NULL) > 0 && l->terminated ? 1 : -1;
}

static uint64_t add_to_sum(uint64_t sum, const struct line *l)
{
    return le_sum(l->text, sum ^ (uint64_t)l->at);
}

/* ---- rows ---- */

static void end_group(struct build *b)
{
    for (size_t row = 0; row < SKIP_ROWS; row++)
        b->rows[row * SKIP_ROW_SIZE + b->group] = (char)b->marks[row];
    memset(b->marks, 0, SKIP_ROWS);
}

static void end_rows(struct build *b)
{
    uint64_t words[SKIP_WORDS];

    end_group(b);
    for (size_t row = 0; row < SKIP_ROWS; row++) {
        char *bytes = b->rows + row * SKIP_ROW_SIZE;

        le_get_all(words, bytes, SKIP_WORDS);
        le_put(bytes + sizeof(words), skip_row_sum(words, row, &b->chunk));
    }
}

static void add_line(struct build *b, const struct line *l)
{
    size_t block = skip_block_of(l->at, b->block) % SKIP_BLOCKS;
    struct str content;
    bool proven = true;

    b->chunk.sum = add_to_sum(b->chunk.sum, l);
    if (block / GROUP != b->group) {
        end_group(b);
        b->group = block / GROUP;
    }
    switch (scan_judge(l, &b->message)) {
    case SCAN_MESSAGE:
        /* Of a repeated content the last counts, which is then not where ours is. */
        proven = !own_line_content(l->text, &content) ||
                 b->message.field[FIELD_CONTENT].p == content.p - 1;
        skip_mark(b->marks, (unsigned char)(1 << block % GROUP),
                  message_content(&b->message, &b->content));
        break;
    case SCAN_BAD:
        b->chunk.always[block / 64] |= UINT64_C(1) << block % 64;
        proven = false;
        break;
    case SCAN_NOTHING:
        break;
    }
    if (!proven)
        b->chunk.proven[block / 64] &= ~(UINT64_C(1) << block % 64);
}

/* ---- a chunk ---- */

enum result { MADE, UNREADABLE, UNWRITABLE };

static off_t rows_at(const struct build *b)
{
    return (off_t)(b->number * SKIP_CHUNK_SIZE + SKIP_HEADER_SIZE);
}

static bool write_header(struct build *b, struct skip_chunk *c)
{
    c->generation = b->generation;
    return skip_chunk_write(b->fd, b->number, b->block, c);
}

/* The header is written last: it makes it a chunk. */
static bool write_chunk(struct build *b)
{
    end_rows(b);
    return pwrite(b->fd, b->rows, ROWS_SIZE, rows_at(b)) == (ssize_t)ROWS_SIZE &&
           write_header(b, &b->chunk);
}

static enum result make_chunk(struct build *b)
{
    struct scan lines;
    struct line l;
    int more = open_lines(b, &lines) ? 1 : -1;

    memset(b->rows, 0, ROWS_SIZE);
    b->chunk = (struct skip_chunk){0};
    memset(b->chunk.proven, 0xff, sizeof(b->chunk.proven));
    b->group = 0;
    while (more > 0 && (more = next_line(b, &lines, &l)) > 0)
        add_line(b, &l);
    scan_close(&lines);
    if (more < 0)
        return UNREADABLE;
    return write_chunk(b) ? MADE : UNWRITABLE;
}

/* Is all of the chunk there? Its rows need not reach the disk when its header does: a power cut can
 * leave it without them, and no search would ever use it. */
static bool read_chunk(struct build *b, struct skip_chunk *c)
{
    uint64_t words[SKIP_WORDS + 1];
    bool whole = skip_chunk_read(b->fd, b->number, b->block, c) &&
                 io_pread_full(b->fd, b->rows, ROWS_SIZE, rows_at(b)) == (ssize_t)ROWS_SIZE;

    for (size_t row = 0; row < SKIP_ROWS && whole; row++) {
        le_get_all(words, b->rows + row * SKIP_ROW_SIZE, SKIP_WORDS + 1);
        whole = words[SKIP_WORDS] == skip_row_sum(words, row, c);
    }
    return whole;
}

/* Is the chunk of an older generation still that of its lines? Then it is of this one, too. */
static bool renew_chunk(struct build *b, struct skip_chunk *old)
{
    struct scan lines;
    struct line l;
    uint64_t sum = 0;
    int more = open_lines(b, &lines) ? 1 : -1;

    while (more > 0 && (more = next_line(b, &lines, &l)) > 0)
        sum = add_to_sum(sum, &l);
    scan_close(&lines);
    return more == 0 && sum == old->sum && write_header(b, old);
}

/* ---- all of them ---- */

static enum result make_missing(struct build *b)
{
    off_t chunks = b->history.size / b->chunk_size;
    enum result result = MADE;

    b->next = 0;
    for (b->number = 0; (off_t)b->number < chunks && result == MADE; b->number++) {
        struct skip_chunk old;

        b->begin = b->next;
        b->next = -1;
        if (read_chunk(b, &old) && (old.generation == b->generation || renew_chunk(b, &old)))
            continue;
        result = make_chunk(b);
        if (b->h->work)
            b->h->work((int)((off_t)(b->number + 1) * 100 / chunks));
    }
    if (b->h->work)
        b->h->work(-1);
    return result;
}

static void make_file(struct build *b, const struct stat *st)
{
    enum result result;

    b->rows = mem_zalloc(ROWS_SIZE);
    b->marks = mem_zalloc(SKIP_ROWS);
    b->message = (struct message)MESSAGE_INIT;
    buf_init(&b->content, SIZE_MAX);
    result = make_missing(b);
    /* A cache is not to take the last of a disk, nor to keep what was erased meanwhile. */
    if (result == UNWRITABLE || !index_file_named(b->h->dir_fd, b->h->path, st))
        io_unlink(b->h->dir_fd, b->h->skip);
    buf_release(&b->content);
    message_release(&b->message);
    free(b->marks);
    free(b->rows);
}

/* Has an index that another program's lines made old compared with the history. */
static void compare_index(const struct history *h, int history_fd)
{
    const char *path = history_index(h);
    struct index index;
    struct stat st;
    int reason, fd = path ? index_file_open(h->dir_fd, path, &reason) : -1;

    if (fd >= 0 && index_file_state(fd, history_fd, &st) == INDEX_GROWN && index_open(&index, h))
        index_close(&index);
    if (fd >= 0)
        close(fd);
}

void skip_build(const struct history *h, off_t block)
{
    struct build b = {.h = h, .fd = -1, .block = block, .chunk_size = block * (off_t)SKIP_BLOCKS};
    struct stat st;

    if (!h->skip || scan_open(&b.history, h->dir_fd, h->path, SCAN_FORWARD, NULL) < 0)
        return;
    if (b.history.fd >= 0 && !b.history.sparse && fstat(b.history.fd, &st) == 0 &&
        st.st_uid == geteuid() && b.history.size >= b.chunk_size) {
        compare_index(h, b.history.fd);
        b.generation = index_file_ready(h, b.history.fd);
    }
    /* A power cut must not leave what was read of a line that somebody else has changed, with the
     * time of that, and take the change back. */
    if (b.generation && fdatasync(b.history.fd) == 0)
        b.fd = index_file_lock(h->dir_fd, h->skip);
    if (b.fd >= 0) {
        make_file(&b, &st);
        close(b.fd);
    }
    scan_close(&b.history);
}
