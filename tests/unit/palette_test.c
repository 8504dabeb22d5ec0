#include "chathist/cli/palette.h"

#include "test.h"

/* ---- contrast, as WCAG 2.1 defines it ---- */

struct rgb {
    int r, g, b;
};

/* The colours of xterm; of the first 16 those that it ships. */
static struct rgb xterm_color(int n)
{
    static const struct rgb first[] = {
        {0, 0, 0},     {205, 0, 0},     {0, 205, 0},     {205, 205, 0},  {0, 0, 238}, {205, 0, 205},
        {0, 205, 205}, {229, 229, 229}, {127, 127, 127}, {255, 0, 0},    {0, 255, 0}, {255, 255, 0},
        {92, 92, 255}, {255, 0, 255},   {0, 255, 255},   {255, 255, 255}};
    static const int steps[] = {0, 95, 135, 175, 215, 255};
    int grey = 8 + 10 * (n - 232);

    if (n < 16)
        return first[n];
    if (n >= 232)
        return (struct rgb){grey, grey, grey};
    n -= 16;
    return (struct rgb){steps[n / 36], steps[n / 6 % 6], steps[n % 6]};
}

/* Returns x to the power of 0.4: the fifth root of its square, by Newton's method. */
static double power_2_fifths(double x)
{
    double root = 1;

    for (int i = 0; i < 50; i++)
        root = (4 * root + x * x / (root * root * root * root)) / 5;
    return root;
}

static double linear(int part)
{
    double c = part / 255.0, x = (c + 0.055) / 1.055;

    return c <= 0.03928 ? c / 12.92 : x * x * power_2_fifths(x);
}

static double luminance(struct rgb c)
{
    return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

static double contrast(struct rgb c, struct rgb d)
{
    double a = luminance(c), b = luminance(d);

    return a > b ? (a + 0.05) / (b + 0.05) : (b + 0.05) / (a + 0.05);
}

static const struct rgb black = {0, 0, 0}, white = {255, 255, 255};
/* Of xterm, VS Code, Dracula and Solarized. */
static const struct rgb dark[] = {{0, 0, 0}, {30, 30, 30}, {40, 42, 54}, {0, 43, 54}};
static const struct rgb light[] = {{255, 255, 255}, {253, 246, 227}};

static void check_pair(enum style s, int colors, int color, struct rgb ground)
{
    double c = contrast(xterm_color(color), ground);

    if (!CHECK(c >= 4.5))
        fprintf(stderr, "    style %d: colour %d of %d has %.2f on %d,%d,%d\n", (int)s, color,
                colors, c, ground.r, ground.g, ground.b);
}

/* Every colour on every background of its kind. A hit has its own background. */
TEST(each_role_can_be_read_on_its_background)
{
    for (enum style s = STYLE_FIRST_ROLE; s < STYLE_COUNT; s++)
        for (int colors = 8; colors <= 256; colors += 248)
            for (enum background b = BACKGROUND_UNKNOWN; b <= BACKGROUND_LIGHT; b++) {
                int color = palette_color(s, b, colors);

                if (color < 0) {
                    CHECK(colors == 8);
                } else if (s == STYLE_HIT) {
                    check_pair(s, colors, color, black);
                } else if (b == BACKGROUND_UNKNOWN) {
                    check_pair(s, colors, color, black);
                    check_pair(s, colors, color, white);
                } else if (b == BACKGROUND_DARK) {
                    for (size_t i = 0; i < (colors == 8 ? 1 : sizeof dark / sizeof *dark); i++)
                        check_pair(s, colors, color, dark[i]);
                } else {
                    for (size_t i = 0; i < (colors == 8 ? 1 : sizeof light / sizeof *light); i++)
                        check_pair(s, colors, color, light[i]);
                }
            }
}

TEST(sequences_of_styles)
{
    static const struct {
        enum style style;
        enum background background;
        int colors;
        const char *want;
    } rows[] = {
        {STYLE_NONE, BACKGROUND_DARK, 256, "\033[0m"},
        {STYLE_BOLD, BACKGROUND_DARK, 256, "\033[1m"},
        {STYLE_USER, BACKGROUND_DARK, 256, "\033[1;38;5;81m"},
        {STYLE_USER, BACKGROUND_LIGHT, 8, "\033[1;34m"},
        {STYLE_USER, BACKGROUND_UNKNOWN, 8, "\033[1m"},
        {STYLE_DIM, BACKGROUND_UNKNOWN, 8, "\033[2m"},
        {STYLE_LINK, BACKGROUND_DARK, 0, "\033[4m"},
        {STYLE_CODE, BACKGROUND_UNKNOWN, 8, ""},
        {STYLE_HIT, BACKGROUND_LIGHT, 256, "\033[38;5;16;48;5;221m"},
        {STYLE_HIT, BACKGROUND_LIGHT, 8, "\033[30;43m"},
        {STYLE_HIT, BACKGROUND_DARK, 0, "\033[7m"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf out = BUF_INIT(BUF_SMALL);

        palette_add(&out, rows[i].style, rows[i].background, rows[i].colors);
        CHECK_STR(buf_c(&out), rows[i].want);
        buf_release(&out);
    }
}

TEST(backgrounds_that_terminals_name)
{
    CHECK_INT(palette_background(NULL), BACKGROUND_UNKNOWN);
    CHECK_INT(palette_background("15;0"), BACKGROUND_DARK);
    CHECK_INT(palette_background("0;default;15"), BACKGROUND_LIGHT);
    CHECK_INT(palette_background("0;7"), BACKGROUND_LIGHT);
    CHECK_INT(palette_background("15;8"), BACKGROUND_DARK);
    CHECK_INT(palette_background("15;x"), BACKGROUND_UNKNOWN);
    CHECK_INT(palette_background("15;16"), BACKGROUND_UNKNOWN);
    CHECK_INT(palette_reported(STR("11;rgb:ffff/ffff/dddd")), BACKGROUND_LIGHT);
    CHECK_INT(palette_reported(STR("11;rgb:00/10/20")), BACKGROUND_DARK);
    CHECK_INT(palette_reported(STR("11;rgb:00/10")), BACKGROUND_UNKNOWN);
    CHECK_INT(palette_reported(STR("10;rgb:00/10/20")), BACKGROUND_UNKNOWN);
}

TEST(colours_of_terminals)
{
    CHECK_INT(palette_colors("xterm-256color", NULL), 256);
    CHECK_INT(palette_colors("xterm-kitty", NULL), 256);
    CHECK_INT(palette_colors("xterm", "truecolor"), 256);
    CHECK_INT(palette_colors("linux", NULL), 8);
    CHECK_INT(palette_colors("vt100", NULL), 0);
    CHECK_INT(palette_colors(NULL, NULL), 8);
}

TEST(a_colour_of_the_user)
{
    CHECK_INT(palette_set(STR("plots"), STR("1")), -1);
    CHECK_INT(palette_set(STR("plot"), STR("256")), -2);
    CHECK_INT(palette_set(STR("plot"), STR("")), -2);
    CHECK_INT(palette_set(STR("plot"), STR("pink")), -2);
    CHECK_INT(palette_set(STR("plot"), STR("200")), 0);
    CHECK_INT(palette_color(STYLE_PLOT, BACKGROUND_DARK, 256), 200);
    CHECK_INT(palette_color(STYLE_PLOT, BACKGROUND_DARK, 8), 2);
    CHECK_INT(palette_set(STR("plot"), STR("magenta")), 0);
    CHECK_INT(palette_color(STYLE_PLOT, BACKGROUND_DARK, 8), 5);
    CHECK_INT(palette_set(STR("plot"), STR("default")), 0);
    CHECK_INT(palette_color(STYLE_PLOT, BACKGROUND_DARK, 256), -1);
}
