/*
 * browse_escapes - what terminals send for the arrow keys, Home and End, in both of their modes. terminfo
 * has that of one mode alone, and what is typed before a program has set it comes in the other.
 */
#ifndef CHATHIST_TUI_BROWSE_ESCAPES_H
#define CHATHIST_TUI_BROWSE_ESCAPES_H

/* When curses has been started. */
void browse_escapes_define(void);

#endif
