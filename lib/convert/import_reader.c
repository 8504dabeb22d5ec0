#include "convert/import_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/regex.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/convert/import_point.h"
#include "convert/import_yaml.h"

/* A foreign id is cut after this many bytes, so that the format and a hash also fit into the 128
 * bytes of a session id. */
#define FOREIGN_ID_MAX 90

/* A larger number for a time is milliseconds: in seconds, it would be the year 5138. */
#define SECONDS_MAX INT64_C(100000000000)

/* ---- sources ---- */

int source_open(struct source *s, const char *path, struct err *e)
{
    struct stat st;

    *s = (struct source){.name = path, .fd = STDIN_FILENO, .time = time_now()};
    buf_init(&s->block, SOURCE_VALUE_MAX);
    buf_init(&s->packed, SOURCE_VALUE_MAX);
    buf_init(&s->cwd, BUF_SMALL);
    buf_init(&s->branch, BUF_SMALL);
    buf_init(&s->began, BUF_SMALL);
    if (strcmp(path, "-") == 0)
        return 0;
    s->path = path;
    s->fd = file_open_input(path, e);
    if (s->fd < 0)
        return -1;
    if (fstat(s->fd, &st) == 0) {
        s->time = system_mtime(&st) / 1000;
        s->is_file = S_ISREG(st.st_mode);
    }
    return 0;
}

void source_close(struct source *s)
{
    (void)ZSTD_freeDStream(s->unpack);
    buf_release(&s->packed);
    buf_release(&s->cwd);
    buf_release(&s->branch);
    buf_release(&s->began);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    buf_release(&s->block);
}

struct str source_stem(const struct source *s)
{
    struct str name = str_of(path_base(s->name));
    size_t n;

    if (str_ends(name, STR(".zst")))
        name.n -= 4;
    for (n = name.n; n > 0 && name.p[n - 1] != '.'; n--)
        ;
    return n > 0 ? (struct str){name.p, n - 1} : name;
}

void source_add_folder(const struct source *s, int n, struct buf *name)
{
    char *path = s->path ? path_real(s->path, NULL) : NULL;

    for (; path && n > 0; n--) {
        char *above = path_parent(path);

        free(path);
        path = above;
    }
    buf_add_c(name, path ? path_base(path) : "");
    free(path);
}

char *source_find_beside(const struct source *s, const char *name)
{
    char *dir = s->path ? path_parent(s->path) : NULL, *found = NULL;

    for (int up = 0; dir && !found && up < 6; up++) {
        char *above = path_join(dir, "..");
        glob_t files = {0};

        if (path_glob(dir, name, &files))
            found = mem_text(files.gl_pathv[0]);
        globfree(&files);
        free(dir);
        dir = above;
    }
    free(dir);
    return found;
}

/* Adds the next bytes that are unpacked to the block. Returns as file_read_some. */
static int unpack_some(struct source *s)
{
    size_t room = ZSTD_DStreamOutSize();
    ZSTD_inBuffer in = {s->packed.data, s->packed.len, s->packed_from};
    ZSTD_outBuffer out = {buf_room(&s->block, room), room, 0};

    if (!out.dst)
        return errno = EFBIG, -1;
    while (out.pos == 0) {
        if (in.pos == in.size) {
            int got;

            buf_clear(&s->packed);
            got = file_read_some(s->fd, &s->packed);
            s->bytes += s->packed.len;
            s->packed_from = 0;
            if (got == 0 && s->frame_left > 0)
                return errno = EBADMSG, -1;
            if (got <= 0)
                return got;
            in = (ZSTD_inBuffer){s->packed.data, s->packed.len, 0};
        }
        s->frame_left = ZSTD_decompressStream(s->unpack, &out, &in);
        if (ZSTD_isError(s->frame_left))
            return errno = EBADMSG, -1;
    }
    s->packed_from = in.pos;
    buf_grew(&s->block, out.pos);
    return 1;
}

/* Adds bytes of the file, unpacked if it begins as RFC 8878, 3.1.1 says. Returns as file_read_some.
 */
static int read_some(struct source *s)
{
    size_t before = s->block.len;
    int got;

    if (s->unpack)
        return unpack_some(s);
    do
        got = file_read_some(s->fd, &s->block);
    while (got > 0 && !s->begun && s->block.len < 4);
    s->bytes += s->block.len - before;
    if (s->begun || got < 0 || s->block.len < 4 ||
        memcmp(s->block.data, "\x28\xb5\x2f\xfd", 4) != 0) {
        s->begun = true;
        return got;
    }
    s->begun = true;
    s->unpack = ZSTD_createDStream();
    if (!s->unpack)
        mem_exhausted();
    buf_add_str(&s->packed, buf_str(&s->block));
    buf_clear(&s->block);
    return unpack_some(s);
}

/* Reads the next bytes into the block. Returns 1; 0 at the end; -1 with *e set. Text that was given
 * before becomes invalid. */
static int source_more(struct source *s, struct err *e)
{
    int got;

    if (s->ended)
        return 0;
    buf_consume(&s->block, s->from);
    s->seen = s->seen > s->from ? s->seen - s->from : 0;
    s->from = 0;
    got = read_some(s);
    if (got < 0 && errno == EBADMSG)
        return err_set(e, ERR_FAILURE, "cannot read '%s': its compressed form is damaged", s->name);
    if (got < 0 && errno == EFBIG)
        return err_set(e, ERR_FAILURE, "cannot read '%s': a value is longer than %zu MiB", s->name,
                       SOURCE_VALUE_MAX >> 20);
    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", s->name);
    s->ended = got == 0;
    import_report(s);
    return got;
}

int source_head(struct source *s, struct str *head, struct err *e)
{
    int got = 1;

    while (got > 0 && s->block.len - s->from < SOURCE_HEAD)
        got = source_more(s, e);
    if (got < 0)
        return -1;
    *head = (struct str){buf_c(&s->block) + s->from, s->block.len - s->from};
    if (s->number == 0) {
        struct str text = utf8_without_bom(*head);

        source_skip(s, head->n - text.n);
        *head = text;
    }
    if (head->n > SOURCE_HEAD)
        head->n = SOURCE_HEAD;
    return 0;
}

void source_skip(struct source *s, size_t n)
{
    s->from += n;
    s->seen = s->from;
}

/* ---- lines ---- */

int source_line(struct source *s, struct str *line, struct err *e)
{
    bool too_long = false;
    int got = 1;

    while (got > 0) {
        const char *data = buf_c(&s->block), *end = NULL;

        if (s->seen < s->block.len)
            end = memchr(data + s->seen, '\n', s->block.len - s->seen);
        if (end || (s->ended && (s->from < s->block.len || too_long))) {
            size_t to = end ? (size_t)(end - data) : s->block.len;

            *line = (struct str){data + s->from, to - s->from};
            if (too_long || line->n > BUF_LINE)
                *line = STR_NONE;
            s->at = s->unpack ? -1 : (int64_t)s->bytes - (int64_t)(s->block.len - s->from);
            s->terminated = end != NULL;
            s->from = s->seen = to + s->terminated;
            s->number++;
            return 1;
        }
        s->seen = s->block.len;
        if (s->block.len - s->from > BUF_LINE) {
            too_long = true;
            s->from = s->block.len;
        }
        got = source_more(s, e);
        if (got == 0 && (s->from < s->block.len || too_long))
            got = 1;
    }
    return got;
}

/* A point is recognised by this many bytes before it. */
#define POINT_BYTES 16384

int64_t source_sum(const struct source *s, int64_t offset)
{
    struct buf bytes = BUF_INIT(POINT_BYTES + 1);
    size_t n = offset < POINT_BYTES ? (size_t)offset : POINT_BYTES;
    char *room = buf_room(&bytes, n);
    int64_t sum = 0;

    if (room && file_pread_full(s->fd, room, n, offset - (int64_t)n) == (ssize_t)n)
        sum = (int64_t)(hash64((struct str){room, n}, 0) >> 1);
    buf_release(&bytes);
    return sum;
}

bool source_seek(struct source *s, const struct import_point *point)
{
    int64_t offset = point ? point->offset : 0;

    if (!s->is_file || s->unpack || (point && source_sum(s, offset) != point->sum) ||
        lseek(s->fd, offset, SEEK_SET) < 0)
        return false;
    buf_clear(&s->block);
    s->from = s->seen = 0;
    s->bytes = (uint64_t)offset;
    s->number = point ? (size_t)point->number : 0;
    s->ended = false;
    buf_clear(&s->cwd);
    buf_clear(&s->branch);
    buf_clear(&s->began);
    return true;
}

/* ---- values ---- */

/* Skips white space and commas, and gives the next byte, without skipping it. Returns 1; 0 at the
 * end; -1 with *e set. */
static int skip_space(struct source *s, char *c, struct err *e)
{
    for (;;) {
        int got;

        for (; s->from < s->block.len; s->from++) {
            *c = s->block.data[s->from];
            if (!ascii_is_space(*c) && *c != ',')
                return 1;
        }
        s->seen = s->from;
        got = source_more(s, e);
        if (got <= 0)
            return got;
    }
}

/* The position in a value. */
struct follow {
    size_t depth; /* in brackets */
    bool begun, string, escape;
};

/* Advances by one byte. Returns 0 if the value goes on, 1 if it ends after the byte, -1 if it ended
 * before it. */
static int follow_byte(struct follow *f, char c)
{
    bool opens = c == '{' || c == '[';

    if (f->string) {
        f->string = f->escape || c != '"';
        f->escape = !f->escape && c == '\\';
        return 0;
    }
    if (f->depth == 0 && f->begun && (opens || c == ']' || c == ','))
        return -1;
    f->begun = true;
    f->string = c == '"';
    f->depth += opens;
    if (f->depth > 0 && (c == '}' || c == ']'))
        return --f->depth == 0;
    return 0;
}

/* Gives the value that begins with the next byte. Returns 1, or -1 with *e set. */
static int take_value(struct source *s, struct str *value, struct err *e)
{
    struct follow f = {0};
    int got = 1, ends = 0;

    s->seen = s->from;
    while (got > 0 && ends == 0) {
        while (s->seen < s->block.len && ends == 0) {
            ends = follow_byte(&f, s->block.data[s->seen]);
            s->seen += ends >= 0;
        }
        if (ends == 0)
            got = source_more(s, e);
    }
    if (got < 0)
        return -1;
    *value = (struct str){buf_c(&s->block) + s->from, s->seen - s->from};
    s->from = s->seen;
    s->number++;
    s->terminated = true;
    return 1;
}

int source_value(struct source *s, struct str *value, struct err *e)
{
    char c;
    int got = s->form == SOURCE_DONE ? 0 : skip_space(s, &c, e);

    if (got > 0 && s->form == SOURCE_NEW) {
        s->form = c == '[' ? SOURCE_ARRAY : SOURCE_ROW;
        s->from += c == '[';
        got = skip_space(s, &c, e);
    }
    if (got > 0 && s->form == SOURCE_ARRAY && c == ']') {
        s->form = SOURCE_DONE;
        return 0;
    }
    return got > 0 ? take_value(s, value, e) : got;
}

int source_rest(struct source *s, struct str *text, struct err *e)
{
    int got;

    do
        got = source_more(s, e);
    while (got > 0);
    if (got < 0)
        return -1;
    *text = (struct str){buf_c(&s->block) + s->from, s->block.len - s->from};
    s->from = s->seen = s->block.len;
    return 0;
}

void source_from_yaml(struct source *s)
{
    struct buf json = BUF_INIT(SOURCE_VALUE_MAX);
    struct err e = ERR_INIT;
    struct str text;
    size_t line;

    if (source_rest(s, &text, &e) < 0 || utf8_valid(text) < text.n ||
        import_yaml_to_json(text, &json, &line))
        buf_clear(&json);
    buf_release(&s->block);
    s->block = json;
    s->from = s->seen = 0;
    s->ended = true;
    err_release(&e);
}

/* ---- messages ---- */

#define MESSAGE_TEXTS(m)                                                                           \
    {                                                                                              \
        &(m)->text, &(m)->calls, &(m)->replaces, &(m)->session, &(m)->origin, &(m)->call_id,       \
            &(m)->model, &(m)->provider, &(m)->finish, &(m)->response, &(m)->citations,            \
            &(m)->copy_of                                                                          \
    }

void import_message_init(struct import_message *m)
{
    struct buf *const large[] = {&m->text, &m->calls, &m->citations, &m->replaces};
    struct buf *const texts[] = MESSAGE_TEXTS(m);

    *m = (struct import_message){.source = NULL};
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_init(texts[i], BUF_SMALL);
    for (size_t i = 0; i < sizeof large / sizeof(struct buf *); i++)
        large[i]->max = BUF_LINE;
    import_message_clear(m, ROLE_USER);
}

void import_message_release(struct import_message *m)
{
    struct buf *const texts[] = MESSAGE_TEXTS(m);

    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_release(texts[i]);
}

void import_message_clear(struct import_message *m, enum role role)
{
    struct buf *const texts[] = MESSAGE_TEXTS(m);

    m->role = role;
    m->time = IMPORT_NO_TIME;
    usage_init(&m->usage);
    import_message_rewind(m);
    for (size_t i = 0; i < sizeof texts / sizeof(struct buf *); i++)
        buf_clear(texts[i]);
}

void import_message_rewind(struct import_message *m)
{
    buf_clear(&m->text);
    buf_clear(&m->calls);
    buf_clear(&m->call_id);
    buf_clear(&m->citations);
    buf_clear(&m->replaces);
    m->images = 0;
    m->failed = false;
}

/* ---- sessions and origins ---- */

static bool is_id_byte(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '.' || c == '_' || c == ':' || c == '-';
}

void import_add_session(struct buf *out, const char *format, struct str id)
{
    bool changed = id.n == 0 || id.n > FOREIGN_ID_MAX;

    buf_addf(out, "%s:", format);
    for (size_t i = 0; i < id.n && i < FOREIGN_ID_MAX; i++) {
        bool good = is_id_byte(id.p[i]);

        buf_add_byte(out, good ? id.p[i] : '_');
        changed = changed || !good;
    }
    if (changed)
        buf_addf(out, "-%016" PRIx64, hash_fnv(id));
}

bool import_foreign_id(struct str session, struct str *format, struct str *id)
{
    static const char digits[] = "0123456789abcdef";
    size_t tail = 0;

    *id = session;
    *format = str_cut(id, ':');
    while (tail < id->n && id->p[id->n - 1 - tail] != '\0' &&
           strchr(digits, id->p[id->n - 1 - tail]))
        tail++;
    /* A hash follows a text that was altered, which has a `_`, is long, or has nothing. */
    if (tail == 2 * sizeof(uint64_t) && id->n > tail && id->p[id->n - 1 - tail] == '-' &&
        (id->n == tail + 1 || id->n == tail + 1 + FOREIGN_ID_MAX || memchr(id->p, '_', id->n)))
        return false;
    /* A program would take an id with a hyphen before it for an option. */
    return id->n > 0 && id->p[0] != '-' && !memchr(id->p, ':', id->n);
}

void import_set_session(struct import_message *m, const char *format, struct str id)
{
    buf_clear(&m->session);
    import_add_session(&m->session, format, id);
}

static void add_part(struct import_message *m, char before, struct str part)
{
    buf_add_byte(&m->origin, before);
    for (size_t i = 0; i < part.n; i++)
        buf_add_byte(&m->origin, part.p[i] == '+' ? '_' : part.p[i]);
}

void import_set_part(struct import_message *m, struct str part)
{
    buf_set(&m->origin, buf_str(&m->session));
    add_part(m, '/', part);
}

void import_add_part(struct import_message *m, struct str part)
{
    add_part(m, '+', part);
}

/* ---- fields ---- */

/* Reads seconds since 1970, or milliseconds, to the microsecond. Returns false for a number with a sign or an
 * exponent, which no program writes for a time. */
static bool parse_seconds(struct str number, int64_t *us)
{
    int64_t value = 0, unit = TIME_SECOND;
    bool fraction = false;

    for (size_t i = 0; i < number.n; i++) {
        char c = number.p[i];

        if (c == '.' && !fraction && i > 0) {
            fraction = true;
        } else if (c < '0' || c > '9' || (!fraction && value > INT64_MAX / 11)) {
            return false;
        } else if (!fraction) {
            value = value * 10 + (c - '0') * TIME_SECOND;
        } else {
            unit /= 10;
            value += (c - '0') * unit;
        }
    }
    *us = value > SECONDS_MAX * TIME_SECOND ? value / 1000 : value;
    return number.n > 0;
}

void import_set_time(struct import_message *m, struct str text)
{
    struct buf iso = BUF_INIT(BUF_SMALL);
    int64_t us, again;

    if (parse_seconds(text, &us) || time_parse_iso(text, &us)) {
        /* Accept only a time that can be written, too. */
        time_add_iso(&iso, us);
        if (time_parse_iso(buf_str(&iso), &again))
            m->time = us;
    }
    buf_release(&iso);
}

/* Returns whether the program wrote this text in the user's name. */
static bool is_harness(const struct import_message *m, struct str text)
{
    size_t at, n;

    return m->role == ROLE_USER && m->source && m->source->harness &&
           regex_find(m->source->harness, text, 0, false, &at, &n, NULL) > 0;
}

/* Keeps the paragraph that begins at `from`. If it is empty or the program's own, the text is again
 * as long as before. */
static void end_shown_text(struct import_message *m, size_t before, size_t from)
{
    struct str text = str_skip(buf_str(&m->text), from);
    bool harness = is_harness(m, text);

    if (text.n == 0 || harness)
        buf_truncate(&m->text, before);
    if (harness)
        m->source->yielded = true;
}

/* Returns where the next paragraph of the text begins. */
static size_t begin_shown_text(struct import_message *m)
{
    if (m->text.len > 0)
        buf_add_c(&m->text, "\n\n");
    return m->text.len;
}

void import_add_text(struct import_message *m, struct str text)
{
    size_t before = m->text.len, from = begin_shown_text(m);

    buf_add_str(&m->text, text);
    end_shown_text(m, before, from);
}

void import_add_call(struct import_message *m, struct str id, struct str name, struct str args)
{
    if (m->calls.len > 0)
        buf_add_byte(&m->calls, ',');
    buf_add_c(&m->calls, "{\"id\":");
    json_add_string(&m->calls, id.n > 0 ? id : name);
    buf_add_c(&m->calls, ",\"name\":");
    json_add_string(&m->calls, name);
    buf_add_c(&m->calls, ",\"args\":");
    if (json_is_null(args))
        buf_add_c(&m->calls, "{}");
    else if (!json_add_object(&m->calls, args))
        json_add_string(&m->calls, args);
    buf_add_byte(&m->calls, '}');
}

void import_add_id(struct buf *list, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    json_add_string(&text, id);
    if (id.n > 0 && !str_ends(buf_str(list), buf_str(&text))) {
        if (list->len > 0)
            buf_add_byte(list, ',');
        buf_add_str(list, buf_str(&text));
    }
    buf_release(&text);
}

void import_count_once(struct usage *usage, struct usage *used)
{
    for (int i = 0; i < USAGE_KINDS; i++) {
        int64_t *tokens = &usage->at[i], more = *tokens - used->at[i];

        if (more > 0)
            used->at[i] = *tokens;
        if (*tokens >= 0)
            *tokens = more > 0 ? more : *tokens == 0 && used->at[i] == 0 ? 0 : -1;
    }
    /* A line that adds output adds no input, which is not the same as an unknown one. */
    for (int i = 0; usage_known(usage) && i <= USAGE_OUTPUT; i++)
        if (used->at[i] > 0 && usage->at[i] < 0)
            usage->at[i] = 0;
}

/* Appends elements to a list of JSON values. */
static void add_elements(struct buf *list, const struct buf *more)
{
    if (list->len > 0 && more->len > 0)
        buf_add_byte(list, ',');
    buf_add_str(list, buf_str(more));
    list->overflow = list->overflow || more->overflow;
}

void import_join(struct import_message *m, const struct import_message *more)
{
    add_elements(&m->calls, &more->calls);
    add_elements(&m->citations, &more->citations);
    m->images += more->images;
}

void import_add_citations(struct import_message *m, struct str array)
{
    for (struct json_iter it = json_iter(array); !it.object && json_next(&it);) {
        if (json_type(it.value) != JSON_OBJECT)
            continue;
        if (m->citations.len > 0)
            buf_add_byte(&m->citations, ',');
        json_add_compact(&m->citations, it.value);
    }
}

void import_set_finish(struct import_message *m, struct str name)
{
    struct str known;

    buf_set(&m->finish, name);
    (void)message_ending(buf_str(&m->finish), &known);
    if (known.p != m->finish.data)
        buf_set(&m->finish, known);
}

/* ---- content ---- */

/* A text for people has at least this many bytes. */
#define TEXT_MIN 20

/* Returns whether a JSON string is one of these texts; NULL ends the array. */
static bool is_listed_text(struct str value, const char *const *texts)
{
    for (; *texts; texts++)
        if (json_is_text(value, *texts))
            return true;
    return false;
}

bool import_is_ignored(const struct source *s, struct str value)
{
    return s->ignores && is_listed_text(json_get(value, "type"), s->ignores);
}

bool import_has_text(const struct source *s, struct str value, bool named)
{
    static const char *const keys[] = {"content", "text",  "prompt", "parts",    "message",
                                       "summary", "query", "answer", "response", "value"};
    struct json_iter it = json_iter(value);

    if (json_type(value) == JSON_STRING)
        return named && value.n >= TEXT_MIN + 2 &&
               (memchr(value.p, ' ', value.n) || utf8_valid(value) < value.n || value.p[1] < 0);
    if (it.object && import_is_ignored(s, value))
        return false;
    while (json_next(&it)) {
        bool is = named && !it.object;

        for (size_t k = 0; it.object && k < sizeof keys / sizeof(char *) && !is; k++)
            is = json_key_is(it.key, keys[k]);
        if (import_has_text(s, it.value, is))
            return true;
    }
    return false;
}

/* Notes that nothing comes of a value of the content. */
static void check_lost(const struct import_message *m, struct str value, bool named)
{
    if (m->source && !m->source->lost)
        m->source->lost = import_has_text(m->source, value, named);
}

/* Appends a JSON string to the text. */
static void add_string(struct import_message *m, struct str string)
{
    size_t before = m->text.len, from = begin_shown_text(m);

    (void)json_decode(string, &m->text);
    end_shown_text(m, before, from);
}

static void add_refusal(struct import_message *m, struct str refusal)
{
    if (json_type(refusal) != JSON_STRING || refusal.n <= 2)
        return;
    add_string(m, refusal);
    buf_set(&m->finish, STR("content_filter"));
}

void import_add_block(struct import_message *m, struct str block)
{
    static const char *const keys[] = {"type",  "text",    "id",        "name",
                                       "input", "refusal", "citations", "annotations"};
    static const char *const texts[] = {"text", "input_text", "output_text", NULL};
    static const char *const attached[] = {"image",    "image_url",  "input_image",
                                           "document", "input_file", NULL};
    /* The second one is of a tool that the server ran. */
    static const char *const calls[] = {"tool_use", "server_tool_use", NULL};
    enum { TYPE, TEXT, ID, NAME, INPUT, REFUSAL, CITATIONS, ANNOTATIONS, COUNT };
    struct buf id = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    struct str value[COUNT];

    if (json_type(block) == JSON_STRING) {
        add_string(m, block);
        return;
    }
    json_pick(block, keys, value, COUNT);
    import_add_citations(m, value[CITATIONS]);
    import_add_citations(m, value[ANNOTATIONS]);
    if (is_listed_text(value[TYPE], texts) && json_type(value[TEXT]) == JSON_STRING)
        add_string(m, value[TEXT]);
    else if (json_is_text(value[TYPE], "refusal"))
        add_refusal(m, value[REFUSAL]);
    else if (is_listed_text(value[TYPE], attached))
        m->images++;
    else if (is_listed_text(value[TYPE], calls))
        import_add_call(m, json_text(value[ID], &id), json_text(value[NAME], &name), value[INPUT]);
    else
        check_lost(m, block, false);
    buf_release(&id);
    buf_release(&name);
}

void import_add_content(struct import_message *m, struct str content)
{
    struct json_iter it = json_iter(content);

    if (json_type(content) != JSON_ARRAY)
        import_add_block(m, content);
    else
        while (json_next(&it))
            import_add_block(m, it.value);
}

/* ---- giving messages ---- */

bool import_is_empty(const struct import_message *m)
{
    /* A message that is too long is given, too, so that it is reported. */
    return m->text.len == 0 && !m->text.overflow && m->calls.len == 0 && !m->calls.overflow &&
           m->images == 0 && m->role != ROLE_TOOL;
}

int import_each_object(struct source *s, source_next *next, import_take *take, void *arg,
                       struct err *e)
{
    struct buf repaired = BUF_INIT(4 * SOURCE_VALUE_MAX);
    struct str text, object;
    int got;

    while ((got = next(s, &text, e)) > 0) {
        if (!text.p) {
            import_bad(s, "longer than 64 MiB");
            continue;
        }
        if (str_trim(text).n == 0)
            continue;
        if (utf8_valid(text) < text.n) {
            buf_clear(&repaired);
            utf8_add_repaired(&repaired, text);
            text = buf_str(&repaired);
        }
        if (json_check(text, &object, NULL) && json_type(object) == JSON_OBJECT) {
            if (take(arg, object, e) < 0) {
                got = -1;
                break;
            }
        } else if (s->terminated) {
            /* An unterminated line may still be written. */
            import_bad(s, "not a JSON object");
        }
    }
    buf_release(&repaired);
    return got;
}
