/*
 * import_script: every script of importers/ reads files of changed records. The input is a seed: it
 * chooses one of the fixtures that another program wrote, and how its records are changed, put
 * together and repeated. A file is imported to its end, and what was stored is known when one of
 * four is imported again. A file that has grown is read on as a whole one is read. A database is changed byte by byte, so that its tables still hold.
 *
 * IMPORT_FUZZ_FILES names a directory with more files, such as databases. After each hundred
 * thousand records their number is printed.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <sys/stat.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/history/message.h"
#include "import_history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 1000 /* in a file of lines */
#define FILE_MAX ((size_t)2 << 20)

#define PRINTED 100000

static struct importers *all;
static struct words fixtures;
static uint64_t records, printed;

/* ---- chance ---- */

static uint64_t chance; /* the state of a generator: xorshift64, Marsaglia 2003 */

static size_t below(size_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (size_t)(chance >> 11) % n;
}

/* ---- changed records ---- */

static void add_odd_value(struct buf *out)
{
    static const char *const odd[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1e400",
        "9223372036854775807",
        "0.5",
        "\"\"",
        "\" \"",
        "{}",
        "[]",
        "[null]",
        "[[]]",
        "{\"type\":\"text\",\"text\":\"a text that is long enough\"}",
        "[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":\"text\"}]}]",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ue200cite\\ue202turn0\\ue201\"",
        "\"2026-11-29T21:50:40.123Z\"",
        "\"user\"",
        "\"assistant\"",
        "\"tool\"",
        "\"last\"",
        "\"a/b+c\"",
        "1795989040.5",
    };

    buf_add_c(out, odd[below(sizeof odd / sizeof *odd)]);
}

static void add_changed_string(struct str string, struct buf *out)
{
    struct str body = json_body(string);
    size_t at = body.n > 0 ? below(body.n) : 0;

    /* A cut within an escape makes a record that is no JSON, which is tried, too. */
    buf_add_byte(out, '"');
    buf_add(out, body.p, at);
    buf_add_c(out, below(2) ? "\\n" : "x");
    if (below(2))
        buf_add_str(out, str_skip(body, at));
    buf_add_byte(out, '"');
}

/* Copies a value with about one change for each `rarely` values in it. */
static void add_changed(struct str value, size_t rarely, int depth, struct buf *out)
{
    struct json_iter it = json_iter(value);
    enum json_type type = json_type(value);
    bool change = below(rarely) == 0;
    size_t count = 0;

    if (change && below(3) > 0) {
        if (type == JSON_STRING && below(2))
            add_changed_string(value, out);
        else
            add_odd_value(out);
        return;
    }
    if ((type != JSON_OBJECT && type != JSON_ARRAY) || depth > 100) {
        buf_add_str(out, value);
        return;
    }
    buf_add_byte(out, type == JSON_OBJECT ? '{' : '[');
    while (json_next(&it)) {
        size_t times = below(rarely) == 0 ? below(3) : 1;

        for (; times > 0; times--) {
            if (count++ > 0)
                buf_add_byte(out, ',');
            if (type == JSON_OBJECT)
                buf_addf(out, "\"%.*s\":", (int)it.key.n, it.key.p);
            add_changed(it.value, rarely, depth + 1, out);
        }
    }
    buf_add_byte(out, type == JSON_OBJECT ? '}' : ']');
}

/* Makes a file of lines from those of a fixture, in any order. */
static void make_lines(struct str text, struct buf *out)
{
    struct str lines[2000], rest = text, value;
    size_t count = 0, next = 0, rarely = (size_t)4 << below(8);

    while (rest.n > 0 && count < sizeof lines / sizeof *lines)
        lines[count++] = str_cut(&rest, '\n');
    for (size_t i = 0; count > 0 && i < RECORDS && out->len < FILE_MAX; i++) {
        struct str line = lines[next % count];

        next = below(8) == 0 ? below(count) : next + 1;
        if (json_check(line, &value, NULL))
            add_changed(value, rarely, 0, out);
        else
            buf_add_str(out, line);
        buf_add_byte(out, '\n');
        records++;
    }
}

static void make_document(struct str text, struct str value, struct buf *out)
{
    struct json_iter it = json_iter(value);

    (void)text;
    add_changed(value, (size_t)4 << below(8), 0, out);
    /* An element is a record; so are the members of a document. */
    while (json_next(&it))
        for (struct json_iter in = json_iter(it.value); json_next(&in);)
            records++;
}

/* Changes letters and digits, which leaves pages and lengths as they are. */
static void change_bytes(struct buf *out)
{
    for (size_t n = below(200); n > 0; n--) {
        char *c = &out->data[below(out->len)];

        if (ascii_is_letter(*c) || ascii_is_digit(*c) || below(50) == 0)
            *c = below(50) == 0 ? (char)below(256) : (char)('0' + below(75));
    }
    records += 20;
}

static void make_file(struct str text, struct buf *out)
{
    struct str value, first = text;

    first = str_cut(&first, '\n');
    if (str_starts(text, STR("SQLite format 3")) || str_starts(text, STR("\x28\xb5\x2f\xfd"))) {
        buf_add_str(out, text);
        change_bytes(out);
    } else if (json_check(text, &value, NULL) && !json_check(first, &value, NULL)) {
        (void)json_check(text, &value, NULL);
        make_document(text, value, out);
    } else if (json_check(text, &value, NULL)) {
        make_document(text, value, out);
    } else {
        make_lines(text, out);
    }
    if (below(20) == 0 && out->len > 0)
        change_bytes(out);
}

/* ---- importing ---- */

static void check_line(void *arg, struct str line)
{
    struct message m = MESSAGE_INIT;
    size_t *lines = arg;

    demand(message_parse(&m, line));
    ++*lines;
    message_release(&m);
}

/* Returns the number of new lines. */
static size_t import_one(char *history, const char *path, struct import_point *point)
{
    size_t lines = 0;

    import_history(history, path, all, NULL, point, check_line, &lines);
    return lines;
}

/* Imports the file when it has grown to a part of its text, and then the whole of it: from the point
 * that the first import set, and from the beginning. The history is the same. */
static void grow(char *history, const char *path, struct str text)
{
    struct import_point point = {0};
    struct str part = {text.p, below(text.n + 1)};
    struct buf before, once, again;

    while (below(8) > 0 && part.n < text.n && part.n > 0 && part.p[part.n - 1] != '\n')
        part.n++;
    scratch_write(path, part);
    scratch_write(history, STR(""));
    (void)import_one(history, path, &point);
    if (point.offset > 0) {
        before = scratch_read(history);
        scratch_write(path, text);
        (void)import_one(history, path, &point);
        once = scratch_read(history);
        scratch_write(history, buf_str(&before));
        (void)import_one(history, path, NULL);
        again = scratch_read(history);
        demand(str_eq(buf_str(&once), buf_str(&again)));
        buf_release(&before);
        buf_release(&once);
        buf_release(&again);
    }
    buf_release(&point.state);
}

/* ---- the scripts and the fixtures ---- */

static void find_files(const char *folder, struct words *found)
{
    DIR *d = opendir(folder);
    struct dirent *at;

    while (d && (at = readdir(d))) {
        char *path = path_join(folder, at->d_name);
        struct stat st;

        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0 && stat(path, &st) == 0) {
            if (S_ISDIR(st.st_mode) && strcmp(at->d_name, "wanted") != 0)
                find_files(path, found);
            else if (S_ISREG(st.st_mode) && st.st_size > 0 && !strstr(at->d_name, ".sql"))
                words_add(found, str_of(path));
        }
        free(path);
    }
    if (d)
        closedir(d);
}

/* The targets run in the source tree. */
static void load(void)
{
    struct words scripts = {0};
    const char *more = getenv("IMPORT_FUZZ_FILES");

    all = importers_new();
    find_files("importers", &scripts);
    for (size_t i = 0; i < scripts.count; i++) {
        struct buf text = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
        struct str base = str_of(path_base(scripts.at[i]));
        struct err e = ERR_INIT;

        buf_add(&name, base.p, base.n - 4);
        demand(file_read(scripts.at[i], &text, &e) == 0);
        demand(importers_add(all, buf_c(&name), scripts.at[i], buf_str(&text), &e) == 0);
        buf_release(&text);
        buf_release(&name);
    }
    words_release(&scripts);
    find_files("tests/fixtures/import", &fixtures);
    if (more)
        find_files(more, &fixtures);
    demand(fixtures.count > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *history = scratch_path("h"), *path = scratch_path("state");
    struct buf text = BUF_INIT(SIZE_MAX), changed = BUF_INIT(SIZE_MAX);
    struct err e = ERR_INIT;

    if (!all)
        load();
    chance = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < size; i++)
        chance = (chance ^ data[i]) * UINT64_C(0x100000001b3);
    chance = chance == 0 ? 1 : chance;
    demand(file_read(fixtures.at[below(fixtures.count)], &text, &e) == 0);
    make_file(buf_str(&text), &changed);
    scratch_write(path, buf_str(&changed));
    scratch_write(history, STR(""));
    (void)import_one(history, path, NULL);
    if (below(4) == 0)
        demand(import_one(history, path, NULL) == 0);
    if (below(2) == 0)
        grow(history, path, buf_str(&changed));
    if (records / PRINTED > printed / PRINTED)
        fprintf(stderr, "import_script: %" PRIu64 " records\n", records);
    printed = records;
    buf_release(&text);
    buf_release(&changed);
    free(history);
    free(path);
    return 0;
}
