#include "tui/browse_cell.h"

#include <stdint.h>

#include "base/utf8.h"

/* What a terminal without UTF-8 shows of a character. */
static wchar_t plain(int32_t cp)
{
    switch (cp) {
    case 0x2026:
        return L'~';
    case 0x25b8:
        return L'>';
    case 0x25be:
        return L'v';
    case 0x2500:
        return L'-';
    case 0x2502:
        return L'|';
    default:
        return L'?';
    }
}

size_t browse_cell_next(struct str *text, bool utf8, wchar_t cell[BROWSE_CELL])
{
    size_t width = 0, count = 0;

    while (text->n > 0) {
        int32_t cp;
        size_t n = utf8_decode(*text, &cp);
        size_t columns = cp < 0 ? 1 : (size_t)utf8_width(cp);

        if (count > 0 && columns > 0)
            break;
        n = n > 0 ? n : text->n;
        *text = (struct str){text->p + n, text->n - n};
        if (count == 0) {
            width = columns;
            cell[count++] = cp < 0 ? L'\xfffd' : (wchar_t)cp;
        } else if (count + 1 < BROWSE_CELL && utf8 && wcwidth((wchar_t)cp) == 0) {
            cell[count++] = (wchar_t)cp;
        }
    }
    if (!utf8 && cell[0] > L'~')
        cell[0] = plain((int32_t)cell[0]);
    /* One that the C library takes for wider or for none would move what stands behind it. */
    else if (wcwidth(cell[0]) != (int)width)
        cell[0] = wcwidth(cell[0]) == 1 && width == 2 ? cell[0] : utf8 ? L'\xfffd' : L'?';
    cell[count] = L'\0';
    return width;
}
