/*
 * What the programs print: a line per call, the same on every run, so that the lines of two libraries can be compared.
 */
#ifndef SAY_H
#define SAY_H

#include <pcap.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line, in the form of printf. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char *form, ...)
{
	va_list list;

	va_start(list, form);
	vprintf(form, list);
	va_end(list);
	putchar('\n');
}

/* A text in quotes on one line, or NULL. Eight can be in use at a time. */
__attribute__((unused)) static const char *text(const char *s)
{
	static char room[8][2048];
	static unsigned next;
	char *to = room[next++ % 8];
	char *const begin = to;

	if (s == NULL)
		return "NULL";
	*to++ = '"';
	for (; *s != '\0' && to < begin + 2040; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= ' ' && c < 0x7f)
			*to++ = (char)c;
		else
			to += sprintf(to, "\\x%02x", c);
	}
	*to++ = '"';
	*to = '\0';
	return begin;
}

/* Bytes in hexadecimal digits, or NULL. Eight can be in use at a time. */
__attribute__((unused)) static const char *bytes(const void *data, size_t length)
{
	static char room[8][2 * 2048 + 1];
	static unsigned next;
	char *to = room[next++ % 8];
	size_t i;

	if (data == NULL)
		return "NULL";
	to[0] = '\0';
	for (i = 0; i < length && i < 2048; i++)
		sprintf(to + 2 * i, "%02x", ((const unsigned char *)data)[i]);
	return to;
}

/* Numbers that look random and are the same on every run (xorshift32). */
static uint32_t chance_state = 0x9d2c5681;

__attribute__((unused)) static uint32_t chance(void)
{
	chance_state ^= chance_state << 13;
	chance_state ^= chance_state >> 17;
	chance_state ^= chance_state << 5;
	return chance_state;
}

/* A number below `below` that looks random. */
__attribute__((unused)) static uint32_t below(uint32_t limit)
{
	return (uint32_t)(((uint64_t)chance() * limit) >> 32);
}

#endif
