/*
 * export_md - a conversation as Markdown (CommonMark 0.31 with fenced code).
 *
 * Each session has a heading of level 1, each message a heading of level 2. Content is not changed,
 * so that its lists, tables and code are rendered, except for text that would break the structure
 * of the document: headings become two levels lower (`#` gets two more, up to six), the line below
 * a heading that is underlined is escaped, a code fence that is left open is closed, and the `<` of
 * an HTML block that nothing ends is escaped. Arguments and results of tools are code, in a fence
 * longer than any inside.
 */
#include <string.h>
#include <strings.h>

#include "chathist/base/json.h"
#include "chathist/convert/export.h"

/* ---- content ---- */

/* The state between two lines of content. */
struct content {
    struct str rest;
    bool has_cr;
    char fence; /* the mark of the open code block; 0: none is open */
    size_t fence_n;
    const char *html_end; /* ends the open HTML block; NULL: no block is open */
    bool paragraph;       /* an underline would make the last line a heading */
};

/* Removes and returns a line with its end: LF, CR or CRLF, or nothing at the end of the text. */
static struct str next_line(struct content *c)
{
    struct str line = {c->rest.p, 0};
    const char *newline = memchr(c->rest.p, '\n', c->rest.n);
    size_t most = newline ? (size_t)(newline - c->rest.p) : c->rest.n;
    const char *cr = c->has_cr ? memchr(c->rest.p, '\r', most) : NULL;

    line.n = cr ? (size_t)(cr - c->rest.p) : most;
    if (line.n < c->rest.n && line.p[line.n++] == '\r' && line.n < c->rest.n &&
        line.p[line.n] == '\n')
        line.n++;
    c->rest = str_skip(c->rest, line.n);
    return line;
}

static size_t run_length(struct str s, char c)
{
    size_t n = 0;

    while (n < s.n && s.p[n] == c)
        n++;
    return n;
}

/* Returns the length of the fence at the start of a line without indentation, or 0. */
static size_t fence_of(struct str line, char *c)
{
    size_t n;

    *c = line.n > 0 ? line.p[0] : '\0';
    if (*c != '`' && *c != '~')
        return 0;
    n = run_length(line, *c);
    if (n < 3 || (*c == '`' && memchr(line.p + n, '`', line.n - n)))
        return 0;
    return n;
}

/* Returns how many `#` begin a heading, or 0 if the line is no heading. */
static size_t heading_of(struct str line)
{
    size_t n = run_length(line, '#');

    if (n > 6 || (n < line.n && !strchr(" \t\r\n", line.p[n])))
        return 0;
    return n;
}

static bool is_underline(struct str line)
{
    struct str text = str_trim(line);

    return text.n > 0 && (text.p[0] == '=' || text.p[0] == '-') &&
           run_length(text, text.p[0]) == text.n;
}

/* If the line begins an HTML block that a blank line does not end, returns the text that ends it,
 * else NULL. CommonMark 0.31, section 4.6. */
static const char *html_end_of(struct str line)
{
    static const char *const ends[][2] = {
        {"<!--", "-->"},        {"<?", "?>"},
        {"<![CDATA[", "]]>"},   {"<!", ">"},
        {"<pre", "</pre>"},     {"<script", "</script>"},
        {"<style", "</style>"}, {"<textarea", "</textarea>"},
    };

    if (line.n == 0 || line.p[0] != '<')
        return NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i][0]);

        if (line.n >= n && strncasecmp(line.p, ends[i][0], n) == 0)
            return ends[i][1];
    }
    return NULL;
}

/* Appends a line outside of code and HTML. `text` is the line without up to three leading blanks.
 * */
static void add_plain(struct content *c, struct str line, struct str text, struct buf *out)
{
    const char *end = html_end_of(text);
    size_t level = heading_of(text);
    bool underline = c->paragraph && is_underline(text);

    buf_add(out, line.p, line.n - text.n);
    if (level > 0)
        for (size_t i = level; i < 6 && i < level + 2; i++)
            buf_add_byte(out, '#');
    else if (underline)
        buf_add_byte(out, '\\');
    else if (end && (str_find(text, str_of(end)) || str_find(c->rest, str_of(end))))
        c->html_end = end;
    else if (end)
        buf_add_byte(out, '\\');
    buf_add_str(out, text);
    if (c->html_end && str_find(text, str_of(c->html_end)))
        c->html_end = NULL;
    c->paragraph = level == 0 && !c->html_end && str_trim(text).n > 0;
}

static void add_text_line(struct content *c, struct str line, struct buf *out)
{
    size_t indent = run_length(line, ' ');
    struct str text = str_skip(line, indent <= 3 ? indent : 0);
    char mark = '\0';
    size_t n = indent <= 3 ? fence_of(text, &mark) : 0;

    if (c->html_end) {
        buf_add_str(out, line);
        if (str_find(line, str_of(c->html_end)))
            c->html_end = NULL;
    } else if (c->fence) {
        buf_add_str(out, line);
        if (n >= c->fence_n && mark == c->fence && str_trim(str_skip(text, n)).n == 0)
            c->fence = '\0';
    } else if (n > 0) {
        buf_add_str(out, line);
        c->fence = mark;
        c->fence_n = n;
        c->paragraph = false;
    } else if (indent <= 3) {
        add_plain(c, line, text, out);
    } else {
        buf_add_str(out, line); /* code, or the next line of a paragraph */
    }
}

/* Appends the next lines that begin with a word, as add_text_line would. Not for HTML, which such
 * a line can end, nor for text with CR. */
static void add_plain_lines(struct content *c, struct buf *out)
{
    const char *p = c->rest.p;
    size_t n = 0;

    while (n < c->rest.n &&
           (ascii_is_letter(p[n]) || ascii_is_digit(p[n]) || (unsigned char)p[n] >= 0x80)) {
        const char *newline = memchr(p + n, '\n', c->rest.n - n);

        n = newline ? (size_t)(newline + 1 - p) : c->rest.n;
        c->paragraph = !c->fence;
    }
    buf_add(out, p, n);
    c->rest = str_skip(c->rest, n);
}

static void add_fence(struct buf *out, char mark, size_t n)
{
    while (n-- > 0)
        buf_add_byte(out, mark);
}

static void add_content(struct buf *out, struct str text)
{
    struct content c = {.rest = text};

    if (text.n == 0)
        return;
    c.has_cr = memchr(text.p, '\r', text.n) != NULL;
    buf_add_byte(out, '\n');
    while (c.rest.n > 0) {
        if (!c.html_end && !c.has_cr)
            add_plain_lines(&c, out);
        if (c.rest.n > 0)
            add_text_line(&c, next_line(&c), out);
    }
    buf_end_line(out);
    if (c.fence) {
        add_fence(out, c.fence, c.fence_n);
        buf_add_byte(out, '\n');
    }
}

/* Appends text as code, in a fence longer than any inside. */
static void add_fenced(struct buf *out, const char *language, struct str text)
{
    size_t longest = 2;

    for (size_t i = 0; i < text.n; i++) {
        size_t n = run_length(str_skip(text, i), '`');

        if (n > longest)
            longest = n;
        i += n;
    }
    buf_add_byte(out, '\n');
    add_fence(out, '`', longest + 1);
    buf_add_c(out, language);
    buf_add_byte(out, '\n');
    buf_add_str(out, text);
    if (text.n > 0)
        buf_end_line(out);
    add_fence(out, '`', longest + 1);
    buf_add_byte(out, '\n');
}

/* ---- headings and notes ---- */

/* Returns how many bytes at the start of a text are no markup. */
static size_t without_markup(struct str text)
{
    static const bool markup[256] = {
        ['\\'] = true, ['`'] = true, ['*'] = true, ['_'] = true, ['['] = true,
        [']'] = true,  ['<'] = true, ['>'] = true, ['#'] = true, ['&'] = true,
        ['|'] = true,  ['~'] = true, ['!'] = true,
    };
    size_t n = 0;

    while (n < text.n && !markup[(unsigned char)text.p[n]])
        n++;
    return n;
}

/* Moves the text from `from` on to its end with all markup escaped. */
static void escape_markup(struct buf *out, size_t from)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest = {out->data + from, out->len - from};

    if (without_markup(rest) == rest.n)
        return;
    buf_add_str(&text, rest);
    buf_truncate(out, from);
    for (rest = buf_str(&text); rest.n > 0;) {
        size_t n = without_markup(rest);

        buf_add(out, rest.p, n);
        if (n < rest.n) {
            buf_add_byte(out, '\\');
            buf_add_byte(out, rest.p[n++]);
        }
        rest = str_skip(rest, n);
    }
    buf_release(&text);
}

/* Appends a label with all markup escaped. */
static void add_label(struct buf *out, struct str text)
{
    size_t from = out->len;

    export_add_label(out, text);
    escape_markup(out, from);
}

/* Appends an id or a name as inline code, or as a label if it contains a backtick. */
static void add_inline_code(struct buf *out, struct str text)
{
    struct str name = str_trim(text);

    if (name.n == 0 || memchr(name.p, '`', name.n)) {
        add_label(out, name);
        return;
    }
    buf_add_byte(out, '`');
    export_add_label(out, name);
    buf_add_byte(out, '`');
}

static void session(struct export *x, const struct export_session *s)
{
    struct buf *out = &x->out;
    struct buf times = BUF_INIT(2 * BUF_LINE);

    buf_add_c(out, x->sessions > 0 ? "\n# " : "# ");
    if (s->title.n > 0)
        add_label(out, s->title);
    else
        buf_add_c(out, "Conversation");
    buf_add_c(out, "\n\n- session: ");
    add_inline_code(out, s->id);
    buf_add_c(out, "\n- time: ");
    export_add_times(&times, s);
    add_label(out, buf_str(&times));
    buf_release(&times);
    buf_add_c(out, " UTC\n");
    if (s->model.n > 0) {
        buf_add_c(out, "- model: ");
        add_inline_code(out, s->model);
        buf_add_byte(out, '\n');
    }
}

static void add_head(struct buf *out, const struct message *m)
{
    static const char *const names[] = {
        [ROLE_USER] = "User",     [ROLE_ASSISTANT] = "Assistant",
        [ROLE_SYSTEM] = "System", [ROLE_TOOL] = "Tool",
        [ROLE_OTHER] = NULL,
    };

    size_t from;

    buf_add_c(out, "\n## ");
    if (names[m->role])
        buf_add_c(out, names[m->role]);
    else
        add_label(out, m->role_text);
    buf_add_c(out, " (");
    from = out->len;
    export_add_time(out, m->timestamp);
    escape_markup(out, from);
    buf_add_c(out, ")\n");
}

static void add_note(struct buf *out, const char *what, struct str list)
{
    if (list.n == 0)
        return;
    buf_addf(out, "\n*%s: ", what);
    add_label(out, list);
    buf_add_c(out, "*\n");
}

/* Appends the strings of a field that is an array of strings, on one line. */
static void add_file_names(struct buf *out, const char *what, const struct message *m, enum field f)
{
    struct json_iter it = json_iter(m->field[f]);
    struct buf list = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);

    while (!it.object && json_next(&it)) {
        struct str text = json_text(it.value, &scratch);

        if (text.n > 0 && list.len > 0)
            buf_add_c(&list, ", ");
        export_add_label(&list, text);
    }
    add_note(out, what, buf_str(&list));
    buf_release(&list);
    buf_release(&scratch);
}

static void add_call_fences(struct buf *out, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct message_call call;

    while (message_next_call(&it, &call, &args)) {
        struct str text;

        buf_add_c(out, "\nTool call ");
        add_inline_code(out, json_text(call.name, &scratch));
        buf_add_c(out, ":\n");
        text = json_text(call.args, &scratch);
        add_fenced(out, text.p ? "" : "json", text.p ? text : call.args);
    }
    buf_release(&scratch);
    buf_release(&args);
}

/* Returns whether `<` and `>` make a link of an address (CommonMark 0.31, section 6.5). */
static bool is_link(struct str url)
{
    bool web = str_starts(url, STR("https://")) || str_starts(url, STR("http://"));

    for (size_t i = 0; web && i < url.n; i++)
        web = (unsigned char)url.p[i] > ' ' && url.p[i] != 0x7f && !strchr("<>", url.p[i]);
    return web;
}

/* Appends the pages that the answer cites, as a list of links. */
static void add_source_list(struct buf *out, const struct message *m)
{
    struct hash_map urls = {0};

    message_sources(m->field[FIELD_CITATIONS], &urls);
    buf_add_c(out, urls.count > 0 ? "\nSources:\n\n" : "");
    for (size_t i = 0; i < urls.count; i++) {
        struct str url = urls.entries[i].key;

        buf_add_c(out, "- ");
        if (is_link(url))
            buf_addf(out, "<%s>", urls.entries[i].key.p);
        else
            add_label(out, url);
        buf_add_byte(out, '\n');
    }
    hash_map_release(&urls);
}

static void message(struct export *x, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str content = message_content(m, &scratch);

    add_head(&x->out, m);
    if (m->role == ROLE_TOOL)
        add_fenced(&x->out, "", content);
    else
        add_content(&x->out, content);
    if (m->field[FIELD_TOOL_CALLS].n > 0)
        add_call_fences(&x->out, m);
    if (m->field[FIELD_CITATIONS].n > 0)
        add_source_list(&x->out, m);
    add_note(&x->out, "images", m->field[FIELD_IMAGES]);
    if (m->field[FIELD_FILES].n > 0)
        add_file_names(&x->out, "files", m, FIELD_FILES);
    if (m->field[FIELD_FILES_MODIFIED].n > 0)
        add_file_names(&x->out, "files modified", m, FIELD_FILES_MODIFIED);
    add_note(&x->out, "ended", export_finish(m, &scratch));
    buf_release(&scratch);
}

const struct export_format export_md = {
    .name = "md",
    .suffix = "md",
    .grows = true,
    .session = session,
    .message = message,
};
