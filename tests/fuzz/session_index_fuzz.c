/*
 * Any bytes as the index of a history. The first byte of the input chooses what they are: the whole
 * file, or words that replace words of a good index, with checksums that are right. Whatever the
 * index holds, lists can be made, and a session that is read has only its own lines.
 */
#include <stdint.h>
#include <sys/stat.h>

#include "chathist/base/checksum.h"
#include "chathist/history/session_list.h"
#include "chathist/history/thread.h"
#include "history/session_index.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SESSIONS 50
#define PAYLOAD (INDEX_BLOCK - sizeof(uint64_t))
#define SALT_AT ((size_t)7 * sizeof(uint64_t))

static struct history history = {.dir_fd = FILE_CWD,
                                 .pointer_fd = FILE_CWD,
                                 .trusted = true,
                                 .dir_exists = true,
                                 .cancel_fd = -1};
static struct buf good = BUF_INIT(SIZE_MAX);

static void list(const char *name)
{
    struct session_list l;

    demand(session_list_named(&l, &history, str_of(name), 7, NULL) == 0 && l.count <= 7);
    session_list_release(&l);
    demand(session_list_named(&l, &history, str_of(name), SIZE_MAX, NULL) == 0);
    session_list_release(&l);
}

static void show(const char *id)
{
    struct thread t;

    demand(thread_find(&t, &history, str_of(id), true, NULL) == 0);
    for (size_t i = 0; i < t.count; i++)
        demand(str_eq_c(t.at[i].session_id, id));
    thread_release(&t);
}

static void make_history(void)
{
    struct buf lines = BUF_INIT(SIZE_MAX);

    for (int i = 0; (off_t)lines.len < SESSION_INDEX_LEAST + 10000; i++) {
        buf_addf(&lines,
                 "{\"id\":\"%d\",\"session_id\":\"s%d-%d\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"%0200d\"}\n",
                 i, i % SESSIONS, i % SESSIONS % 7, i);
        if (i % 100 == 0)
            buf_add_c(&lines, "bad\n");
    }
    history.path = scratch_path("h");
    history.index = scratch_path("h.idx");
    scratch_write(history.path, buf_str(&lines));
    buf_release(&lines);
    list("");
    good = scratch_read(history.index);
    demand(good.len > 2 * INDEX_BLOCK);
}

/* Replaces a word of the good index, and sets the checksum of its block. */
static void replace_word(struct buf *index, const uint8_t *change)
{
    uint64_t words = (index->len / INDEX_BLOCK - 1) * (PAYLOAD / sizeof(uint64_t));
    uint64_t word = (change[0] | (uint64_t)change[1] << 8) % words * sizeof(uint64_t);
    uint64_t number = word / PAYLOAD;
    char *block = index->data + (number + 1) * INDEX_BLOCK;

    memcpy(block + word % PAYLOAD, change + 2, sizeof(uint64_t));
    le_put(block + PAYLOAD,
           checksum((struct str){block, PAYLOAD}, le_get(index->data + SALT_AT) ^ number));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf index = BUF_INIT(SIZE_MAX);

    if (!good.len)
        make_history();
    if (size > 0 && data[0] % 4 == 0) {
        buf_add(&index, (const char *)data + 1, size - 1);
    } else {
        buf_add_str(&index, buf_str(&good));
        for (size_t i = 1; i + 10 <= size; i += 10)
            replace_word(&index, data + i);
    }
    for (int i = 0; i < 5; i++) {
        scratch_write(history.index, buf_str(&index));
        switch (i) {
        case 0:
            list("");
            break;
        case 1:
            list("s1");
            break;
        case 2:
            list("7-3x");
            break;
        case 3:
            show("s17-3");
            break;
        default:
            (void)session_index_is_wrong(&history);
        }
    }
    buf_release(&index);
    return 0;
}
