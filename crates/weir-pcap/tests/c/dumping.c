/* Writing files: new ones, ones of the program, and more packets at the end of old ones. */
#include "files.h"

static void say_file(const char *path)
{
	static u_char all[2000];
	FILE *f = fopen(path, "rb");

	if (f == NULL) {
		say("%s: none", path);
		return;
	}
	size_t length = fread(all, 1, sizeof all, f);

	say("%s: %s", path, bytes(all, length));
	fclose(f);
}

static void append(pcap_t *p, const char *path)
{
	struct pcap_pkthdr h = { { 9, 8 }, 1, 7 };
	pcap_dumper_t *d = pcap_dump_open_append(p, path);

	say("append to %s: %d %s", path, d != NULL, d == NULL ? text(pcap_geterr(p)) : "");
	if (d == NULL)
		return;
	say("at %ld", pcap_dump_ftell(d));
	pcap_dump((u_char *)d, &h, (const u_char *)"x");
	say("at %ld", pcap_dump_ftell(d));
	pcap_dump_close(d);
	say_file(path);
}

static void append_by(int link_type, int snap, unsigned precision, const char *path)
{
	pcap_t *p = pcap_open_dead_with_tstamp_precision(link_type, snap, precision);

	say("link type %d, snap %d, precision %u", link_type, snap, precision);
	append(p, path);
	pcap_close(p);
}

/* A file whose header is that of `from` with some bytes changed. */
static const char *changed(const char *from, size_t at, const char *to, size_t length)
{
	u_char header[24];
	FILE *f = fopen(from, "rb");

	if (fread(header, 1, sizeof header, f) != sizeof header)
		exit(1);
	fclose(f);
	memcpy(header + at, to, length);
	f = fopen("changed", "wb");
	fwrite(header, 1, sizeof header, f);
	fclose(f);
	return "changed";
}

static void opened(pcap_t *p, const char *path)
{
	pcap_dumper_t *d = pcap_dump_open(p, path);

	say("open %s: %d %s", text(path), d != NULL, d == NULL ? text(pcap_geterr(p)) : "");
	if (d != NULL)
		pcap_dump_close(d);
}

static void with(unsigned precision)
{
	pcap_t *p = pcap_open_dead_with_tstamp_precision(1, 65535, precision), *other;
	struct pcap_pkthdr h = { { 1, 2 }, 10, 20 };
	u_char data[100];
	pcap_dumper_t *d;
	FILE *f;
	int i;

	for (i = 0; i < 100; i++)
		data[i] = (u_char)i;
	d = pcap_dump_open(p, "a");
	say("at %ld %lld, the file %d", pcap_dump_ftell(d), (long long)pcap_dump_ftell64(d), pcap_dump_file(d) == (FILE *)d);
	pcap_dump((u_char *)d, &h, data);
	say("at %ld", pcap_dump_ftell(d));
	say("flush %d", pcap_dump_flush(d));
	say_file("a");
	h.caplen = 0;
	pcap_dump((u_char *)d, &h, data);
	h.ts.tv_sec = -1;
	h.ts.tv_usec = 5000000000;
	h.caplen = 100;
	pcap_dump((u_char *)d, &h, data);
	say("at %ld", pcap_dump_ftell(d));
	pcap_dump_close(d);
	say_file("a");

	append(p, "a");
	append(p, "new");
	append_by(1, 100, precision, "a");
	append_by(12, 65535, precision, "a");
	append_by(9999, 65535, precision, "a");
	append_by(1, 65535, !precision, "a");
	append(p, changed("a", 0, "\xa1\xb2\xc3\xd4", 4));
	append(p, changed("a", 0, "\xa1\xb2\x3c\x4d", 4));
	append(p, changed("a", 0, "\x34\xcd\xb2\xa1", 4));
	append(p, changed("a", 0, "\xa1\xb2\xcd\x34", 4));
	append(p, changed("a", 0, "\x0a\x0d\x0d\x0a", 4));
	append(p, changed("a", 0, "text", 4));
	append(p, changed("a", 4, "\x01", 1));
	append(p, changed("a", 6, "\x03", 1));
	append(p, changed("a", 8, "\x01", 1));
	append(p, changed("a", 22, "\x01", 1));
	f = fopen("short", "wb");
	fwrite("0123456789", 1, 10, f);
	fclose(f);
	append(p, "short");
	append(p, "/nonexistent/a");
	append(p, "/tmp");

	opened(p, "/nonexistent/a");
	opened(p, "/tmp");
	opened(p, NULL);
	opened(p, "/dev/full");
	other = pcap_open_dead(9999, 100);
	opened(other, "none");
	opened(other, "-");
	say_file("none");
	pcap_close(other);
	f = fopen("mine", "wb");
	fputs("before", f);
	d = pcap_dump_fopen(p, f);
	say("mine: %d at %ld", (FILE *)d == f, pcap_dump_ftell(d));
	h.caplen = 3;
	pcap_dump((u_char *)d, &h, data);
	fputs("after", (FILE *)d);
	pcap_dump_close(d);
	say_file("mine");
	pcap_close(p);
	unlink("a");
	unlink("new");
	unlink("short");
	unlink("mine");
	unlink("changed");
}

/* Copies all packets; the handle of a file says how. */
static void copy(const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	unsigned precision;

	for (precision = 0; precision < 2; precision++) {
		pcap_t *p = pcap_open_offline_with_tstamp_precision(path, precision, error);
		pcap_dumper_t *d;

		if (p == NULL)
			continue;
		d = pcap_dump_open(p, "copy");
		say("%s: %d %s", strrchr(path, '/') + 1, d != NULL, d == NULL ? text(pcap_geterr(p)) : "");
		if (d != NULL) {
			say("%d", pcap_loop(p, 20, pcap_dump, (u_char *)d));
			pcap_dump_close(d);
			say_file("copy");
		}
		pcap_close(p);
	}
	unlink("copy");
}

int main(int count, char **paths)
{
	char *directory = own_directory();
	pcap_t *p = pcap_open_dead(1, 5);
	int i;

	with(0);
	with(1);
	for (i = 1; i < count; i++)
		copy(paths[i]);
	/* Standard output is closed with the file. */
	i = rmdir(directory);
	pcap_dump_close(pcap_dump_open(p, "-"));
	pcap_close(p);
	return i;
}
