/*
 * Every fixture of every wire, whole, byte by byte, and cut in two at every byte, must give the
 * same response or error. A stream that ends early at any byte is incomplete. The bytes come from
 * `tests/tools/fake-llm --frames`, so they are those that it serves. tests/feature/wire.bats covers
 * the fixtures that only differ in their size. With SPLIT_STREAMS=FOLDER the same is done to
 * FOLDER/WIRE/NAME.http, for tests/tools/check-sdks, and each is cut at every byte.
 */
#include "test.h"

#include <stdlib.h>

#include "chathist/llm/provider_anthropic.h"
#include "llm/provider_wire.h"
#include "chathist/llm/provider_openai.h"
#include "chathist/llm/exchange.h"

/* A larger fixture is cut at every byte near its ends, and at this many places between them. */
#define EACH ((size_t)1 << 10)
#define PLACES 128
static size_t each_near = EACH;

struct frame {
    char name[300], type[120], end[20]; /* type: the header line */
    int status;
    struct str body;
};

/* A larger fixture does not come byte by byte. */
#define BY_BYTES ((size_t)16 << 10)

/* How the transport plays a frame. It is global, because a provider has no context pointer. */
static struct {
    const struct frame *frame;
    size_t first; /* the bytes of the first piece; 0: all in one */
    size_t each;  /* the bytes of each other piece; 0: the rest in one */
    size_t end;   /* the stream ends here, as if it were complete; 0: at its end */
} playing;

/* The media type in the header line, as llm/http gives it. */
static const char *media_type(const char *line, char *out)
{
    struct str value = str_of(line);

    (void)str_cut(&value, ':');
    value = str_trim(str_cut(&value, ';'));
    for (size_t i = 0; i < value.n; i++)
        out[i] = value.p[i] >= 'A' && value.p[i] <= 'Z' ? (char)(value.p[i] + 32) : value.p[i];
    out[value.n] = '\0';
    return out;
}

static int play(const struct ask *ask, const struct http_request *r, const struct http_sink *sink,
                struct err *e)
{
    const struct frame *f = playing.frame;
    struct str rest = f->body;
    char type[sizeof f->type];
    size_t n = playing.first;

    (void)ask;
    (void)r;

    sink->head->status = f->status;
    buf_add_c(&sink->head->field[HTTP_MEDIA_TYPE], media_type(f->type, type));
    if (playing.end > 0)
        rest.n = playing.end;
    while (rest.n > 0) {
        n = n > 0 && n < rest.n ? n : rest.n;
        if (sink->body(sink->arg, (struct str){rest.p, n}, e) != 0)
            return -1;
        rest = str_skip(rest, n);
        n = playing.each;
    }
    if (playing.end > 0 || strcmp(f->end, "clean") == 0)
        return 0;
    return err_set(e, ERR_INCOMPLETE, "it broke off");
}

static int take_text(void *arg, struct str delta)
{
    buf_add_str(arg, delta);
    return 0;
}

static int take_citation(void *arg, struct str json)
{
    buf_add_c(arg, "\n<citation>");
    buf_add_str(arg, json);
    return 0;
}

/* Returns true for an id that was generated here, `call_` with digits and a dash. It differs each
 * time. */
static bool is_made(const struct buf *id)
{
    return str_starts(buf_str(id), STR("call_")) && str_find(buf_str(id), STR("-"));
}

/* Adds the result of an exchange as text. */
static void add_outcome(struct buf *out, struct response *a, int rc, const struct err *e)
{
    buf_addf(out, "\n<end> %d %d %s\n%s %s %lld %lld %d %d\n", rc, (int)e->kind, err_text(e),
             a->finish_reason ? a->finish_reason : "-", a->model ? a->model : "-",
             (long long)a->usage.at[USAGE_INPUT], (long long)a->usage.at[USAGE_OUTPUT], a->finished,
             a->refused);
    buf_add_str(out, buf_str(&a->opaque.thinking));
    buf_add_c(out, "\n<blocks>");
    buf_add_str(out, buf_str(&a->opaque.turn));
    buf_addf(out, "\n<refusal> %s", a->refusal ? a->refusal : "-");
    for (size_t i = 0; i < a->calls_count; i++) {
        buf_addf(out, "\n<call> %s %s ", is_made(&a->calls[i].id) ? "?" : buf_c(&a->calls[i].id),
                 buf_c(&a->calls[i].name));
        buf_add_str(out, buf_str(&a->calls[i].args));
    }
    buf_add_c(out, "\n<text>");
    buf_add_str(out, buf_str(&a->text));
}

static const struct provider *provider_of(const struct frame *f)
{
    static const struct {
        const char *folder;
        const struct provider *provider;
    } rows[] = {{"/anthropic/", &provider_anthropic},
                {"/ollama/", &provider_ollama},
                {"/openai-responses/", &provider_responses}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(f->name, rows[i].folder))
            return rows[i].provider;
    return &provider_openai;
}

/* Exchanges what is playing. The caller releases *answer. */
static int exchange(const struct response_sink *sink, struct response *answer, struct err *e)
{
    struct provider p = *provider_of(playing.frame);
    struct context context;
    struct ask ask = {.context = &context, .model = "m", .stream = true, .limits.cancel_fd = -1};
    int rc;

    p.exchange = play;
    context_init(&context);
    context_add_text(&context, ROLE_USER, STR("q"));
    response_init(answer, sink);
    rc = exchange_run(&p, &ask, answer, 0, &(unsigned){0}, e);
    context_release(&context);
    return rc;
}

/* Sets `out` to the result of the frame that comes in a first piece and other pieces of that size.
 */
static void outcome(const struct frame *f, size_t first, size_t each, struct buf *out)
{
    struct response_sink sink = {.text = take_text, .citation = take_citation, .arg = out};
    struct response answer;
    struct err e = ERR_INIT;
    int rc;

    playing.frame = f;
    playing.first = first;
    playing.each = each;
    playing.end = 0;
    buf_clear(out);
    rc = exchange(&sink, &answer, &e);
    add_outcome(out, &answer, rc, &e);
    response_release(&answer);
    err_release(&e);
}

/* Returns the next place to cut. */
static size_t next_cut(size_t at, size_t n)
{
    if (n / 2 <= each_near || at + 1 < each_near || at + each_near >= n)
        return at + 1;

    size_t next = at + (n - 2 * each_near) / PLACES + 1;

    return next < n - each_near ? next : n - each_near;
}

static void same_everywhere(const struct frame *f)
{
    struct buf whole = BUF_INIT(BUF_LINE), parted = BUF_INIT(BUF_LINE);
    size_t at = 1;

    outcome(f, 0, 0, &whole);
    if (f->body.n <= BY_BYTES) {
        outcome(f, 1, 1, &parted);
        if (!CHECK_MEM(parted.data, parted.len, whole.data, whole.len))
            fprintf(stderr, "%s, byte by byte\n", f->name);
    }
    for (; at < f->body.n; at = next_cut(at, f->body.n)) {
        outcome(f, at, 0, &parted);
        if (!str_eq(buf_str(&whole), buf_str(&parted)))
            break;
    }
    if (at < f->body.n) {
        fprintf(stderr, "%s, cut at %zu:\n", f->name, at);
        CHECK_MEM(parted.data, parted.len, whole.data, whole.len);
    }
    buf_release(&whole);
    buf_release(&parted);
}

/* Reads one frame from the stream. Returns false at its end. */
static bool read_frame(FILE *in, struct frame *f, struct buf *body)
{
    char line[600], type[100];
    size_t n = 0;

    if (!fgets(line, sizeof line, in) || sscanf(line, "%299[^\t]\t%d\t%99[^\t]\t%19[^\t]\t%zu",
                                                f->name, &f->status, type, f->end, &n) != 5)
        return false;
    snprintf(f->type, sizeof f->type, "Content-Type: %s", type);
    buf_clear(body);
    if (n > 0)
        buf_grew(body, fread(buf_room(body, n), 1, n, in));
    f->body = buf_str(body);
    return body->len == n;
}

/* A stream that ends after any byte is incomplete, and has given the beginning of its text; from
 * the byte on that completes it, the text is whole. */
static void incomplete_until_its_end(const struct frame *f)
{
    struct response answer;
    struct err e = ERR_INIT;
    size_t incomplete = 0;

    playing.frame = f;
    playing.first = playing.each = 0;
    for (size_t at = 1; at <= f->body.n; at++) {
        playing.end = at;
        int rc = exchange(NULL, &answer, &e);

        CHECK(str_starts(STR("Hello, world."), buf_str(&answer.text)));
        if (rc == 0) {
            CHECK_STR(buf_c(&answer.text), "Hello, world.");
        } else {
            /* Before its first event nobody knows that it is a stream. */
            CHECK(e.kind == ERR_INCOMPLETE || (e.kind == ERR_BUSY && answer.text.len == 0));
            incomplete++;
            CHECK_INT(incomplete, at);
        }
        response_release(&answer);
        err_release(&e);
    }
    CHECK(incomplete > f->body.n / 2 && incomplete < f->body.n);
    playing.end = 0;
}

/* Tests the fixtures whose paths the shell makes of `paths`, and the ends of those that are called
 * normal.http. Returns how many there are, and sets *normal to the number of the latter. */
static int all_same(const char *paths, int *normal)
{
    char command[100];
    struct buf body = BUF_INIT(SIZE_MAX);
    struct frame f;
    FILE *in;
    int count = 0;

    *normal = 0;
    snprintf(command, sizeof command, "tests/tools/fake-llm --frames %s", paths);
    in = popen(command, "r");
    if (!CHECK(in != NULL))
        return 0;
    while (read_frame(in, &f, &body)) {
        count++;
        same_everywhere(&f);
        if (strstr(f.name, "/normal.http")) {
            incomplete_until_its_end(&f);
            ++*normal;
        }
    }
    CHECK(feof(in));
    CHECK_INT(pclose(in), 0);
    buf_release(&body);
    return count;
}

TEST(every_fixture_is_the_same_at_every_split_point)
{
    int normal;

    CHECK(all_same("tests/fixtures/*/*.http", &normal) > 170);
    CHECK_INT(normal, 4);
}

TEST(every_stream_of_others_is_the_same_at_every_byte)
{
    int normal;

    if (!getenv("SPLIT_STREAMS"))
        return;
    each_near = SIZE_MAX / 2;
    CHECK(all_same("\"$SPLIT_STREAMS\"/*/*.http", &normal) > 0);
}
