/*
 * Savefiles that the programs make, and what they print of packets.
 */
#ifndef FILES_H
#define FILES_H

#include "say.h"

#include <unistd.h>

#define MICROSECONDS 0xa1b2c3d4u
#define NANOSECONDS 0xa1b23c4du

/* A checksum of bytes. */
__attribute__((unused)) static unsigned sum(const u_char *data, unsigned length)
{
	unsigned s = 2166136261u;

	while (length-- > 0)
		s = (s ^ *data++) * 16777619u;
	return s;
}

/* A packet on a line. */
__attribute__((unused)) static void say_packet(const char *what, const struct pcap_pkthdr *h, const u_char *data)
{
	say("  %s %ld.%06ld %u/%u %08x", what, (long)h->ts.tv_sec, (long)h->ts.tv_usec, h->caplen, h->len, sum(data, h->caplen));
}

__attribute__((unused)) static void say_callback(u_char *what, const struct pcap_pkthdr *h, const u_char *data)
{
	say_packet((char *)what, h, data);
}

__attribute__((unused)) static void put32(FILE *f, uint32_t number)
{
	fwrite(&number, sizeof number, 1, f);
}

/* The header of a classic file. */
__attribute__((unused)) static void put_header(FILE *f, uint32_t magic, uint16_t major, uint16_t minor, uint32_t snap, uint32_t link_type)
{
	put32(f, magic);
	fwrite(&major, sizeof major, 1, f);
	fwrite(&minor, sizeof minor, 1, f);
	put32(f, 0);
	put32(f, 0);
	put32(f, snap);
	put32(f, link_type);
}

/* A record of `length` bytes, the numbers from `first` on. */
__attribute__((unused)) static void put_packet(FILE *f, uint32_t seconds, uint32_t fraction, uint32_t length, unsigned first)
{
	put32(f, seconds);
	put32(f, fraction);
	put32(f, length);
	put32(f, length + 4);
	for (uint32_t i = 0; i < length; i++)
		putc((int)((first + i) & 0xff), f);
}

/* The path of a new file in the directory of the program's own, with `count` packets. */
__attribute__((unused)) static const char *packets(const char *name, unsigned count)
{
	FILE *f = fopen(name, "wb");

	put_header(f, MICROSECONDS, 2, 4, 65535, 1);
	for (unsigned i = 0; i < count; i++)
		put_packet(f, 1000 + i, i, 20 + i % 50, i);
	fclose(f);
	return name;
}

/* Works in a directory of its own; the caller removes its files. */
__attribute__((unused)) static char *own_directory(void)
{
	static char path[] = "/tmp/weir-pcap-XXXXXX";

	if (mkdtemp(path) == NULL || chdir(path) != 0)
		exit(1);
	return path;
}

#endif
