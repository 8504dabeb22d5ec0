#include "chathist/terminal/markdown.h"

#include <string.h>

#define FENCE_MIN 3
#define HEADING_MAX 6
/* After more blanks than these, a # is part of an indented block. */
#define INDENT_MAX 3

static bool is_ascii_word(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '_';
}

static bool is_beyond_ascii(char c)
{
    return (unsigned char)c >= 0x80;
}

/* Returns the present styles. */
static unsigned present(const struct markdown *m)
{
    if (m->info)
        return MARKDOWN_MARK | MARKDOWN_BLOCK;
    if (m->fence > 0)
        return MARKDOWN_CODE | MARKDOWN_BLOCK;
    return (m->code > 0 ? MARKDOWN_CODE : 0U) | (m->heading || m->bold ? MARKDOWN_BOLD : 0U) |
           (m->italic ? MARKDOWN_ITALIC : 0U) | (m->struck ? MARKDOWN_STRUCK : 0U);
}

static void emit_code(void *arg, enum highlight_kind kind, struct str text)
{
    const struct markdown *m = arg;

    /* Code with colours needs no colour of its own. */
    m->fn(m->arg,
          (m->highlight.language ? 0U : MARKDOWN_CODE) | MARKDOWN_BLOCK |
              (unsigned)kind * MARKDOWN_KIND,
          text);
}

static void emit_piece(struct markdown *m, unsigned styles, struct str text)
{
    if (text.n == 0 || !m->fn)
        return;
    if (styles == (MARKDOWN_CODE | MARKDOWN_BLOCK)) {
        highlight_feed(&m->highlight, text, emit_code, m);
        return;
    }
    if (m->highlight.language)
        highlight_end_line(&m->highlight, emit_code, m);
    m->fn(m->arg, styles, text);
}

/* ---- a run of marks and the next character ---- */

/* Returns whether emphasis may begin after this byte. It may after a letter of a script without
 * blanks between words. */
static bool may_precede(char c, char mark)
{
    return ascii_is_space(c) || (mark == '*' && is_beyond_ascii(c)) ||
           (c != '\0' && strchr("([{<>\"'*_~:|-/", c) != NULL);
}

static bool may_close(const struct markdown *m, char next)
{
    if (ascii_is_space(m->before))
        return false;
    if (m->run_mark == '_')
        return !is_ascii_word(next) && !is_beyond_ascii(next);
    return m->run > 1 || !is_ascii_word(next);
}

/* Switches bold, italic or both on or off. Returns the styles of the marks. */
static unsigned emphasise(struct markdown *m, char next)
{
    bool italic = m->run != 2, bold = m->run != 1;
    bool ends = (!italic || (m->italic && m->emphasis == m->run_mark)) && (!bold || m->bold);
    bool free = (!italic || !m->italic) && (!bold || !m->bold);

    if (m->run > (m->run_mark == '_' ? 1 : 3))
        return present(m);
    if (ends && may_close(m, next)) {
        m->italic = m->italic && !italic;
        m->bold = m->bold && !bold;
    } else if (free && !ascii_is_space(next) && may_precede(m->before, m->run_mark)) {
        m->italic = m->italic || italic;
        m->bold = m->bold || bold;
        if (italic)
            m->emphasis = m->run_mark;
    } else {
        return present(m);
    }
    return MARKDOWN_MARK;
}

static unsigned strike(struct markdown *m, char next)
{
    if (m->run == 2 && m->struck && !ascii_is_space(m->before))
        m->struck = false;
    else if (m->run == 2 && !m->struck && !ascii_is_space(next) && may_precede(m->before, '~'))
        m->struck = true;
    else
        return present(m);
    return MARKDOWN_MARK;
}

static unsigned backticks(struct markdown *m)
{
    /* The line began like a block, but is a line with code in it. */
    if (m->info) {
        m->code = m->fence;
        m->fence = 0;
        m->info = false;
    }
    if (m->code == m->run) {
        m->code = 0;
        return MARKDOWN_MARK;
    }
    if (m->code == 0) {
        m->code = m->run;
        return MARKDOWN_MARK;
    }
    return present(m);
}

static unsigned classify_marks(struct markdown *m, char next)
{
    if (m->fence > 0 && !m->info) {
        m->closing = m->run >= m->fence && ascii_is_space(next);
        return (m->closing ? MARKDOWN_MARK : MARKDOWN_CODE) | MARKDOWN_BLOCK;
    }
    if ((m->run_mark == '`' || m->run_mark == '~') && !m->begun && m->run >= FENCE_MIN) {
        m->fence = m->run;
        m->fence_mark = m->run_mark;
        m->info = true;
        m->name_len = 0;
        return MARKDOWN_MARK | MARKDOWN_BLOCK;
    }
    if (m->run_mark == '`')
        return backticks(m);
    if (m->run_mark == '#') {
        m->heading = m->run <= HEADING_MAX && ascii_is_space(next);
        return m->heading ? MARKDOWN_MARK : present(m);
    }
    return m->run_mark == '~' ? strike(m, next) : emphasise(m, next);
}

static void end_run(struct markdown *m, char next)
{
    unsigned styles = classify_marks(m, next);
    char marks[64];

    memset(marks, m->run_mark, sizeof marks);
    while (m->run > 0) {
        size_t n = m->run < sizeof marks ? m->run : sizeof marks;

        emit_piece(m, styles, (struct str){marks, n});
        m->run -= n;
    }
    m->before = m->run_mark;
    m->begun = true;
}

/* ---- the bytes ---- */

/* Returns whether a run of marks begins with this byte. */
static bool is_mark(const struct markdown *m, char c)
{
    if (m->info)
        return c == '`' && m->fence_mark == '`';
    if (m->fence > 0)
        return c == m->fence_mark && !m->begun;
    if (m->code > 0)
        return c == '`';
    if (m->escaped)
        return false;
    if (c == '#')
        return !m->begun && m->indent <= INDENT_MAX;
    return c == '`' || c == '*' || c == '_' || c == '~';
}

static void end_source_line(struct markdown *m)
{
    struct str info = {m->name, m->name_len};

    /* The first word after the fence names the language. */
    if (m->info)
        m->highlight = (struct highlight){.language = language_find(str_word(&info))};
    if (m->closing)
        m->fence = 0;
    m->code = m->indent = 0;
    m->begun = m->info = m->closing = m->escaped = m->heading = m->bold = m->italic = m->struck =
        false;
    m->before = '\n';
}

/* Updates the state after a byte that is no mark. */
static void pass_byte(struct markdown *m, char c)
{
    bool inside = m->fence > 0 || m->code > 0;

    if (m->info && m->name_len < sizeof m->name)
        m->name[m->name_len++] = c;
    if (!ascii_is_space(c)) {
        m->begun = true;
        m->closing = false;
    } else if (!m->begun) {
        m->indent++;
    }
    m->escaped = c == '\\' && !m->escaped && !inside;
    m->before = c;
}

static void feed_bytes(struct markdown *m, struct str piece)
{
    size_t from = 0;
    unsigned styles = 0;

    for (size_t i = 0; i < piece.n; i++) {
        char c = piece.p[i];

        if (m->run > 0 && c == m->run_mark) {
            m->run++;
            from = i + 1;
            continue;
        }
        if (m->run > 0)
            end_run(m, c);
        if (c == '\n')
            end_source_line(m);
        if (from == i || (c == '\n' ? 0 : present(m)) != styles || is_mark(m, c)) {
            emit_piece(m, styles, (struct str){piece.p + from, i - from});
            from = i;
            styles = c == '\n' ? 0 : present(m);
        }
        if (is_mark(m, c)) {
            m->run_mark = c;
            m->run = 1;
            from = i + 1;
        } else if (c != '\n') {
            pass_byte(m, c);
        }
    }
    emit_piece(m, styles, str_skip(piece, from));
}

/* Returns whether the line may open or close a code block. */
static bool may_be_fence(struct str line)
{
    while (line.n > 1 && ascii_is_space(line.p[0]))
        line = str_skip(line, 1);
    return line.p[0] == '`' || line.p[0] == '~';
}

void markdown_feed(struct markdown *m, struct str piece)
{
    /* The text begins at the start of a line. */
    if (!m->started)
        m->before = '\n';
    m->started = true;
    if (m->fn)
        feed_bytes(m, piece);
    while (!m->fn && piece.n > 0) {
        const char *end = memchr(piece.p, '\n', piece.n);
        struct str line = {piece.p, end ? (size_t)(end + 1 - piece.p) : piece.n};

        /* A whole line that is no fence leaves no trace in the state. */
        if (!end || m->before != '\n' || m->run > 0 || may_be_fence(line))
            feed_bytes(m, line);
        piece = str_skip(piece, line.n);
    }
}

void markdown_end(struct markdown *m)
{
    struct markdown fresh = {.fn = m->fn, .arg = m->arg};

    if (m->run > 0)
        end_run(m, '\n');
    if (m->fn && m->highlight.language)
        highlight_end_line(&m->highlight, emit_code, m);
    *m = fresh;
}

/* ---- code blocks ---- */

static void add_code_line(struct buf *out, struct str line, size_t indent)
{
    while (indent-- > 0 && line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t')) {
        line.p++;
        line.n--;
    }
    buf_add_str(out, line);
    buf_add_byte(out, '\n');
}

bool code_block_first(struct str text, struct buf *out)
{
    struct markdown m = {0};
    size_t indent = 0;

    while (text.p) {
        struct str line = str_cut(&text, '\n');
        bool inside = m.fence > 0;

        markdown_feed(&m, line);
        markdown_feed(&m, STR("\n"));
        if (inside && m.fence == 0)
            return true;
        if (!inside)
            indent = (size_t)(str_trim(line).p - line.p);
        else if (line.n > 0 || text.p) /* the text after the last newline is empty */
            add_code_line(out, line, indent);
    }
    return m.fence > 0;
}
