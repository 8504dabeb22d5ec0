#include "chathist/cli/palette.h"

#include <stdlib.h>
#include <string.h>

#define MANY 256
#define FEW 8
/* No colour was set. */
#define UNSET (-2)

enum { RED = 1, GREEN, YELLOW, BLUE, MAGENTA, CYAN, DEFAULT = -1 };

static const struct {
    const char *role;
    const char *attributes; /* SGR, with a semicolon at the end */
    short many[3], few[3];  /* indexed by the background */
} styles[STYLE_COUNT] = {
    [STYLE_BOLD] = {NULL, "1;", {DEFAULT, DEFAULT, DEFAULT}, {DEFAULT, DEFAULT, DEFAULT}},
    [STYLE_ITALIC] = {NULL, "3;", {DEFAULT, DEFAULT, DEFAULT}, {DEFAULT, DEFAULT, DEFAULT}},
    [STYLE_STRUCK] = {NULL, "9;", {DEFAULT, DEFAULT, DEFAULT}, {DEFAULT, DEFAULT, DEFAULT}},
    [STYLE_USER] = {"user", "1;", {63, 81, 25}, {DEFAULT, CYAN, BLUE}},
    [STYLE_ASSISTANT] = {"assistant", "1;", {29, 114, 22}, {DEFAULT, GREEN, MAGENTA}},
    [STYLE_TOOL] = {"tool", "", {131, 179, 94}, {DEFAULT, YELLOW, RED}},
    [STYLE_ID] = {"id", "", {131, 179, 94}, {DEFAULT, YELLOW, RED}},
    [STYLE_CODE] = {"code", "", {98, 183, 90}, {DEFAULT, GREEN, BLUE}},
    [STYLE_LINK] = {"link", "4;", {63, 111, 26}, {DEFAULT, CYAN, BLUE}},
    [STYLE_HIT] = {"hit", "", {221, 221, 221}, {YELLOW, YELLOW, YELLOW}},
    [STYLE_DIM] = {"dim", "", {243, 247, 240}, {DEFAULT, DEFAULT, DEFAULT}},
    [STYLE_COMMENT] = {"comment", "", {243, 247, 240}, {DEFAULT, DEFAULT, DEFAULT}},
    [STYLE_STRING] = {"string", "", {29, 150, 22}, {DEFAULT, GREEN, RED}},
    [STYLE_NUMBER] = {"number", "", {131, 216, 94}, {DEFAULT, YELLOW, RED}},
    [STYLE_KEYWORD] = {"keyword", "", {163, 117, 54}, {DEFAULT, CYAN, MAGENTA}},
    [STYLE_ADDED] = {"added", "", {29, 114, 22}, {DEFAULT, GREEN, BLUE}},
    [STYLE_REMOVED] = {"removed", "", {131, 210, 124}, {DEFAULT, YELLOW, RED}},
    [STYLE_PLOT] = {"plot", "", {29, 114, 22}, {DEFAULT, GREEN, BLUE}},
};

/* The colours that palette_set has set, less UNSET. */
static short chosen[STYLE_COUNT];

enum background palette_background(const char *colorfgbg)
{
    const char *last = colorfgbg ? strrchr(colorfgbg, ';') : NULL;
    char *end;
    long color = last ? strtol(last + 1, &end, 10) : -1;

    if (color < 0 || color > 15 || end == last + 1 || *end)
        return BACKGROUND_UNKNOWN;
    /* Of the 16 colours, 7 and those after 8 are light. */
    return color == 7 || color > 8 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
}

/* Returns the luma (Rec. 601) of a colour `RRRR/GGGG/BBBB`, each part with one to four hex digits,
 * in thousandths; -1 for another text. */
static long luma(const char *color)
{
    static const long weights[] = {299, 587, 114};
    long sum = 0;

    for (size_t i = 0; i < 3; i++) {
        char *end;
        long part = strtol(color, &end, 16);

        if (end == color || end - color > 4 || part < 0 || *end != (i < 2 ? '/' : '\0'))
            return -1;
        sum += weights[i] * part / ((1L << (4 * (end - color))) - 1);
        color = end + 1;
    }
    return sum;
}

enum background palette_reported(struct str answer)
{
    struct buf color = BUF_INIT(BUF_SMALL);
    long light = -1;

    if (str_starts(answer, STR("11;rgb:"))) {
        buf_add_str(&color, str_skip(answer, 7));
        light = luma(buf_c(&color));
    }
    buf_release(&color);
    return light < 0 ? BACKGROUND_UNKNOWN : light > 500 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
}

int palette_colors(const char *term, const char *colorterm)
{
    static const char *const many[] = {"256color", "direct",  "kitty",  "alacritty",
                                       "foot",     "ghostty", "wezterm"};

    /* The terminals of DEC up to the VT420 have no colours. */
    if (term && strncmp(term, "vt", 2) == 0)
        return 0;
    for (size_t i = 0; term && i < sizeof many / sizeof *many; i++)
        if (strstr(term, many[i]))
            return MANY;
    return colorterm && *colorterm ? MANY : FEW;
}

int palette_color(enum style s, enum background b, int colors)
{
    int own = chosen[s] + UNSET;

    if (s < STYLE_FIRST_ROLE || colors < FEW)
        return DEFAULT;
    if (own > UNSET && own < colors)
        return own;
    return colors < MANY ? styles[s].few[b] : styles[s].many[b];
}

static void add_color(struct buf *out, int layer, int color, int colors)
{
    if (colors < MANY)
        buf_addf(out, "%d;", 10 * layer + color);
    else
        buf_addf(out, "%d8;5;%d;", layer, color);
}

void palette_add(struct buf *out, enum style s, enum background b, int colors)
{
    int color = palette_color(s, b, colors);
    struct buf codes = BUF_INIT(BUF_SMALL);

    buf_add_c(&codes, s == STYLE_NONE ? "" : styles[s].attributes);
    if (s == STYLE_HIT && color != DEFAULT) {
        add_color(&codes, 3, colors < MANY ? PALETTE_BLACK : PALETTE_BLACK_256, colors);
        add_color(&codes, 4, color, colors);
    } else if (s == STYLE_HIT) {
        buf_add_c(&codes, "7;");
    } else if (color != DEFAULT) {
        add_color(&codes, 3, color, colors);
    } else if (s == STYLE_DIM || s == STYLE_COMMENT) {
        buf_add_c(&codes, "2;");
    }
    if (codes.len > 0)
        buf_truncate(&codes, codes.len - 1);
    if (codes.len > 0 || s == STYLE_NONE)
        buf_addf(out, "\033[%sm", codes.len > 0 ? buf_c(&codes) : "0");
    buf_release(&codes);
}

/* Returns the number of a colour, or UNSET. */
static int read_color(struct str text)
{
    static const char *const names[] = {"black", "red",     "green", "yellow",
                                        "blue",  "magenta", "cyan",  "white"};
    int n = 0;

    for (int i = 0; i < FEW; i++)
        if (str_eq_c(text, names[i]))
            return i;
    if (str_eq_c(text, "default"))
        return DEFAULT;
    for (size_t i = 0; i < text.n; i++) {
        if (!ascii_is_digit(text.p[i]) || n >= MANY)
            return UNSET;
        n = 10 * n + text.p[i] - '0';
    }
    return text.n > 0 && n < MANY ? n : UNSET;
}

int palette_set(struct str role, struct str color)
{
    int n = read_color(color);

    for (size_t i = STYLE_FIRST_ROLE; i < STYLE_COUNT; i++) {
        if (!str_eq_c(role, styles[i].role))
            continue;
        if (n == UNSET)
            return -2;
        chosen[i] = (short)(n - UNSET);
        return 0;
    }
    return -1;
}
