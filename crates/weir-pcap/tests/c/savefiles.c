/* Files of both formats, from a corpus, cut, and damaged by chance: every way to read them. */
#include "files.h"

/* Whether to read on after an error. libpcap keeps an interface whose description was wrong, without a clock. */
static int read_on = 1;

static pcap_t *open_it(const char *path, unsigned precision)
{
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, precision, error);

	say("open %u: %s", precision, p != NULL ? "yes" : text(error));
	return p;
}

/* Packets one by one, with what the handle says and where the file is; then some calls after the end. */
static void one_by_one(pcap_t *p, int share)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	int status, rounds = 0;

	say(" %d ext %#x snap %d swapped %d version %d.%d buffer %d precision %d", pcap_datalink(p), (unsigned)pcap_datalink_ext(p),
	    pcap_snapshot(p), pcap_is_swapped(p), pcap_major_version(p), pcap_minor_version(p), pcap_bufsize(p), pcap_get_tstamp_precision(p));
	while ((status = pcap_next_ex(p, &h, &data)) == 1 && rounds++ < 50) {
		say_packet("next", h, data);
		if (share || rounds == 3)
			say("  at %ld", ftell(pcap_file(p)));
	}
	say(" end %d %s at %ld, end %d, error %d", status, text(pcap_geterr(p)), ftell(pcap_file(p)), feof(pcap_file(p)) != 0,
	    ferror(pcap_file(p)) != 0);
	if (status == -1 && !read_on) {
		pcap_close(p);
		return;
	}
	status = pcap_next_ex(p, &h, &data);
	say(" again %d %s", status, text(pcap_geterr(p)));
	status = pcap_dispatch(p, -1, say_callback, (u_char *)"end");
	say(" again %d %s", status, text(pcap_geterr(p)));
	pcap_close(p);
}

static void read_all(const char *path)
{
	static const int counts[] = { 2, 1, 0, -1 };
	char error[PCAP_ERRBUF_SIZE];
	unsigned precision, i;
	pcap_t *p;
	FILE *f;

	for (precision = 0; precision < 3; precision++) {
		p = open_it(path, precision);
		if (p == NULL)
			continue;
		one_by_one(p, precision == 0);
		p = open_it(path, precision);
		for (i = 0; i < 4; i++) {
			int status = pcap_dispatch(p, counts[i], say_callback, (u_char *)"dispatch");

			say(" pcap_dispatch(%d) = %d %s", counts[i], status, text(pcap_geterr(p)));
			if (status == -1 && !read_on)
				break;
		}
		pcap_close(p);
		p = open_it(path, precision);
		for (i = 0; i < 4; i++) {
			int status = pcap_loop(p, counts[i], say_callback, (u_char *)"loop");

			say(" pcap_loop(%d) = %d %s", counts[i], status, text(pcap_geterr(p)));
			if (status == -1 && !read_on)
				break;
		}
		pcap_close(p);
	}
	f = fopen(path, "rb");
	p = pcap_fopen_offline(f, error);
	if (p != NULL)
		one_by_one(p, 1);
	else {
		say("pcap_fopen_offline: %s at %ld", text(error), ftell(f));
		fclose(f);
	}
}

/* Numbers that matter somewhere in a file. */
static const uint32_t numbers[] = {
	0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 14, 16, 19, 20, 21, 24, 28, 32, 63, 64, 96, 113, 117, 0x80, 0x8a, 189, 220, 239, 0xff, 0xffff,
	0x10000, 65535, 262144, 262145, 0x7fffffff, 0x80000000, 0xffffffff, 0x0a0d0d0a, 0x1a2b3c4d, 0x4d3c2b1a, 0xa1b2cd34,
};

static size_t damage(unsigned char *bytes, size_t length)
{
	uint32_t number = numbers[below(sizeof numbers / sizeof *numbers)];
	size_t at = below((uint32_t)length), width = below(2) ? 4 : 2;

	if (below(2))
		number = __builtin_bswap32(number);
	switch (below(5)) {
	case 0:
		bytes[at] = (unsigned char)number;
		return length;
	case 1:
		bytes[at] = (unsigned char)chance();
		return length;
	case 2:
		return at + 1;
	default:
		at -= at % width;
		if (at + width <= length)
			memcpy(bytes + at, &number, width);
		return length;
	}
}

static void damaged(const char *path)
{
	static unsigned char whole[4096], bytes[4096];
	FILE *f = fopen(path, "rb");
	size_t length = fread(whole, 1, sizeof whole, f);
	unsigned round, times;

	fclose(f);
	read_on = strstr(path, ".pcapng") == NULL;
	for (round = 0; round < 40; round++) {
		size_t left = length;

		memcpy(bytes, whole, length);
		for (times = 1 + below(3); times > 0; times--)
			left = damage(bytes, left);
		f = fopen("damaged", "wb");
		fwrite(bytes, 1, left, f);
		fclose(f);
		say("%s damaged, %u", strrchr(path, '/') + 1, round);
		read_all("damaged");
	}
	read_on = 1;
	unlink("damaged");
}

/* Files with headers in the byte order of the other machine inside their packets. */
static void pseudo_headers(void)
{
	static const uint32_t link_types[] = { 113, 117, 189, 220, 239, 1 };
	unsigned kind, round, i;

	for (kind = 0; kind < sizeof link_types / sizeof *link_types; kind++) {
		FILE *f = fopen("pseudo", "wb");

		put_header(f, __builtin_bswap32(MICROSECONDS), 0x200, 0x400, __builtin_bswap32(65535), __builtin_bswap32(link_types[kind]));
		for (round = 0; round < 400; round++) {
			u_char packet[140];
			uint32_t length = below(sizeof packet + 1), wire = length + below(12), record[4];

			wire = wire > 6 ? wire - 6 : wire;
			for (i = 0; i < sizeof packet; i++)
				packet[i] = (u_char)(below(3) ? chance() : 0);
			packet[9] = (u_char)below(3);
			packet[1] = below(4) == 0;
			if (below(2))
				packet[0] = (u_char)(40 + below(40));
			if (below(2))
				memcpy(packet + 14, "\0\x0c", 2);
			memcpy(packet + 60, "\0\0\0", 3);
			record[0] = __builtin_bswap32(round);
			record[1] = 0;
			record[2] = __builtin_bswap32(length);
			record[3] = __builtin_bswap32(wire);
			fwrite(record, 1, sizeof record, f);
			fwrite(packet, 1, length, f);
		}
		fclose(f);
		say("link type %u, swapped", link_types[kind]);
		read_all("pseudo");
	}
	unlink("pseudo");
}

static void cannot_open(const char *path)
{
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	pcap_t *p = pcap_open_offline(path, error);

	say("%s: %d %s", text(path), p != NULL, text(error));
}

int main(int count, char **paths)
{
	static char long_name[3000];
	char *directory = own_directory();
	int i;

	for (i = 1; i < count; i++) {
		say("%s", strrchr(paths[i], '/') + 1);
		read_all(paths[i]);
		damaged(paths[i]);
	}
	pseudo_headers();
	memset(long_name, 'x', sizeof long_name - 1);
	cannot_open(NULL);
	cannot_open("");
	cannot_open("/nonexistent");
	cannot_open("/tmp");
	cannot_open("/dev/null");
	cannot_open(long_name);
	cannot_open("/proc/self/mem");
	return rmdir(directory);
}
