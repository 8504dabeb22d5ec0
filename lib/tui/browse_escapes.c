#include "tui/browse_escapes.h"

#include <curses.h>
#include <stddef.h>

void browse_escapes_define(void)
{
    static const struct {
        const char *text;
        int key;
    } escapes[] = {
        {"\033[A", KEY_UP},    {"\033OA", KEY_UP},    {"\033[B", KEY_DOWN}, {"\033OB", KEY_DOWN},
        {"\033[C", KEY_RIGHT}, {"\033OC", KEY_RIGHT}, {"\033[D", KEY_LEFT}, {"\033OD", KEY_LEFT},
        {"\033[H", KEY_HOME},  {"\033OH", KEY_HOME},  {"\033[F", KEY_END},  {"\033OF", KEY_END},
        {"\033[1~", KEY_HOME}, {"\033[4~", KEY_END},
    };

    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
        (void)define_key(escapes[i].text, escapes[i].key);
}
