/* Compiling expressions and filtering files with them: which packets are left, whichever way the program runs. */
#include "files.h"

#include <errno.h>

static const char *const expressions[] = {
	"", "ip", "ip6", "arp", "rarp", "tcp", "udp", "icmp", "icmp6", "vlan", "vlan 5", "vlan and ip", "mpls", "pppoes", "tcp port 80",
	"port 53", "src port 53", "portrange 50-90", "portrange 90-50", "udp portrange 1000-2000", "host 10.0.0.1", "src host 10.0.0.2",
	"net 10.0.0.0/24", "net 10", "src net 10.0.0.0 mask 255.255.255.0", "host 10.0.0.1 and not port 80", "ip6 host fe80::1",
	"net fe80::/10", "ether host 02:00:00:00:00:01", "ether src 02:00:00:00:00:02", "ether broadcast", "ether multicast",
	"ip broadcast", "ip multicast", "ip6 multicast", "broadcast", "multicast", "less 60", "greater 60", "len = 60", "len > 5 and len < 64",
	"ip proto 6", "ip proto \\udp", "ip protochain 6", "ip6 protochain 17", "ether proto 0x800", "ether proto \\arp", "ip[0] & 0xf != 5",
	"ip[6:2] & 0x1fff = 0", "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "tcp[13] = 2", "icmp[icmptype] = icmp-echo", "ether[0] & 1 = 1",
	"ether[100] = 0", "ip[2:2] > 100", "ether[12:4] / 7 = 3", "ether[0] * 3 + 1 > 200", "ether[13] % 3 = 1", "ether[14] << 2 = 276",
	"ip[1000] = 1 or ip", "not ip", "not (tcp or udp)", "ip and tcp or udp", "tcp or arp and ip", "src or dst port 80", "src and dst port 53",
	"ip host 10.0.0.1 or 10.0.0.2 or 10.0.0.3", "tcp src port 80 and dst net 10.0.0", "iso", "stp", "llc", "geneve", "link[0] = 2",
	"ip and ether[12:2] = 0x0800", "port http", "port domain", "ip proto icmp", "host localhost", "gateway nosuch", "dst host ::1",
	"igmp", "sctp", "esp", "ah", "vrrp", "carp", "atalk", "aarp", "decnet host 1.2", "ipx", "netbeui", "(tcp) and (ip)", "1 = 1", "2 > 1 and ip",
	/* Out of range, which libpcap does not notice; contradictions, which its optimiser does. */
	"ip proto 256", "ether proto 70000", "link proto 1500", "byte 1 = 256", "ip[0] = 256 or arp", "len < 0", "not (len >= 0)",
	"ip and ip6", "tcp and udp", "1 = 2", "not (1 = 1)", "ip proto 256 and ip proto 257",
};

/* What is wrong, and how libpcap says it. */
static const char *const wrong[] = {
	"tcp and (", "foo bar", "host", "port 80 port 90", "ip[0", "and", "not", ")", "ether[0]", "&", "tcp port", "host 1.2.3.4.5 and",
};
static const char *const unknown[] = {
	"host nosuchhost.invalid", "port nosuchport", "src host nosuchhost.invalid", "tcp port nosuchport",
};

static void put16(u_char *at, unsigned number)
{
	at[0] = (u_char)(number >> 8);
	at[1] = (u_char)number;
}

/* A frame with headers that the expressions ask for. */
static uint32_t frame(u_char *to)
{
	static const unsigned types[] = { 0x800, 0x800, 0x800, 0x800, 0x86dd, 0x86dd, 0x806, 0x8035, 0x8847, 0x8864, 0x600, 0x26 };
	static const u_char protocols[] = { 6, 6, 17, 17, 1, 2, 58, 132, 50, 51, 0, 44 };
	static const unsigned ports[] = { 80, 53, 443, 1500, 60, 95, 6081 };
	unsigned type = types[below(sizeof types / sizeof *types)], at = 12, i;

	for (i = 0; i < 200; i++)
		to[i] = (u_char)(below(3) ? chance() : below(4));
	memcpy(to, below(4) ? "\2\0\0\0\0\1" : below(2) ? "\xff\xff\xff\xff\xff\xff" : "\1\0\x5e\0\0\1", 6);
	memcpy(to + 6, "\2\0\0\0\0", 5);
	to[11] = (u_char)below(4);
	for (i = below(8) == 0 ? 1 + below(2) : 0; i > 0; i--) {
		put16(to + at, below(4) ? 0x8100 : 0x88a8);
		put16(to + at + 2, 4 + below(3));
		at += 4;
	}
	put16(to + at, type);
	at += 2;
	if (type == 0x800) {
		u_char *ip = to + at;

		ip[0] = (u_char)(below(8) ? 0x45 : 0x46);
		put16(ip + 6, below(8) ? 0 : 0x2005);
		ip[9] = protocols[below(sizeof protocols)];
		memcpy(ip + 12, "\x0a\0\0", 3);
		ip[15] = (u_char)below(5);
		memcpy(ip + 16, below(4) ? "\x0a\0\0" : "\xe0\0\0", 3);
		ip[19] = (u_char)(below(8) ? below(5) : 255);
		at += 4 * (ip[0] & 15);
	} else if (type == 0x86dd) {
		u_char *ip = to + at;

		ip[0] = 0x60;
		ip[6] = protocols[below(sizeof protocols)];
		memcpy(ip + 8, "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
		ip[23] = (u_char)below(3);
		memcpy(ip + 24, below(2) ? "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0" : "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
		ip[39] = (u_char)below(3);
		at += 40;
	}
	put16(to + at, ports[below(7)]);
	put16(to + at + 2, ports[below(7)]);
	return 14 + below(160);
}

static void make(const char *path, unsigned count)
{
	FILE *f = fopen(path, "wb");

	put_header(f, MICROSECONDS, 2, 4, 65535, 1);
	while (count-- > 0) {
		u_char bytes_[200];
		uint32_t length = frame(bytes_);

		put32(f, count);
		put32(f, 0);
		put32(f, length);
		put32(f, length + (below(8) ? 0 : below(1000)));
		fwrite(bytes_, 1, length, f);
	}
	fclose(f);
}

static unsigned left, digest;

static void count_it(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	(void)user;
	left++;
	digest = digest * 31 + sum(data, h->caplen) + (unsigned)h->ts.tv_sec;
}

/* Packets that the program leaves; the other two ways to run it must agree. */
static void filter(const char *path, struct bpf_program *program, int show)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, error);
	struct pcap_pkthdr *h;
	const u_char *data;
	unsigned offline = 0, bare = 0;
	int status = pcap_setfilter(p, program);

	left = digest = 0;
	if (status == 0)
		status = pcap_loop(p, -1, count_it, NULL);
	pcap_close(p);
	p = pcap_open_offline(path, error);
	while (pcap_next_ex(p, &h, &data) == 1) {
		offline += pcap_offline_filter(program, h, data) != 0;
		bare += bpf_filter(program->bf_insns, data, h->len, h->caplen) != 0;
	}
	pcap_close(p);
	say("  %d: %u %08x, %d %d", status, show ? left : 0, show ? digest : 0, offline == left, bare == left);
}

static void compile(const char *path, const char *expression, int optimise, bpf_u_int32 netmask)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, error);
	struct bpf_program program;
	int status = pcap_compile(p, &program, expression, optimise, netmask);

	say("%s, optimise %d: %d", text(expression), optimise, status);
	if (status == 0) {
		say("  valid %d, snap %u", bpf_validate(program.bf_insns, (int)program.bf_len),
		    expression[0] == '\0' ? program.bf_insns[0].k : 0);
		/* libpcap's optimiser drops loads that would reject packets that are cut off. */
		filter(path, &program, !optimise);
		pcap_freecode(&program);
		say("  %u %d", program.bf_len, program.bf_insns == NULL);
	}
	pcap_close(p);
}

/* Which system's number means IPv6 depends on where packets come from. */
static void families(void)
{
	static const int link_types[] = { DLT_NULL, DLT_LOOP, DLT_ENC };
	struct bpf_program program;
	size_t i;
	u_int j;

	for (i = 0; i < 2 * sizeof link_types / sizeof *link_types; i++) {
		int status = pcap_compile_nopcap(99, link_types[i / 2], &program, i % 2 ? "ip" : "ip6", 1, 0);

		say("family %d: %d", link_types[i / 2], status);
		if (status != 0)
			continue;
		for (j = 0; j < program.bf_len; j++)
			say("  %#x %u %u %#x", program.bf_insns[j].code, program.bf_insns[j].jt, program.bf_insns[j].jf,
			    program.bf_insns[j].k);
		pcap_freecode(&program);
	}
}

/* The optimiser makes programs shorter. */
static void optimised(const char *expression)
{
	struct bpf_program plain, optimised;
	int status = pcap_compile_nopcap(99, 1, &plain, expression, 0, 0);

	status |= pcap_compile_nopcap(99, 1, &optimised, expression, 1, 0);
	say("%s: %d, %s", text(expression), status, status == 0 && optimised.bf_len < plain.bf_len ? "shorter" : "not shorter");
	if (status == 0) {
		pcap_freecode(&plain);
		pcap_freecode(&optimised);
	}
}

static void without_handle(void)
{
	static const int link_types[] = { -1, 0, 1, 2, 5, 6, 12, 13, 50, 99, 101, 104, 113, 276, 289, 290, 9999 };
	struct bpf_program program;
	size_t i;

	for (i = 0; i < sizeof link_types / sizeof *link_types; i++) {
		pcap_t *p = pcap_open_dead(link_types[i], 99);
		int status = pcap_compile(p, &program, "", 1, 0);

		say("link type %d: %d %s", link_types[i], status, text(pcap_geterr(p)));
		if (status == 0)
			pcap_freecode(&program);
		pcap_close(p);
		status = pcap_compile_nopcap(99, link_types[i], &program, "", 1, 0);
		say("pcap_compile_nopcap = %d, snap %u", status, status == 0 ? program.bf_insns[0].k : 0);
		if (status == 0)
			pcap_freecode(&program);
	}
}

static void refused(const char *expression, int whole)
{
	pcap_t *p = pcap_open_dead(1, 100);
	struct bpf_program program;
	char begin[44];
	int status = pcap_compile(p, &program, expression, 1, PCAP_NETMASK_UNKNOWN);

	say("%s: %d", text(expression), status);
	/* What is behind libpcap's own words differs. */
	snprintf(begin, sizeof begin, "%s", pcap_geterr(p));
	say("  %s", text(whole ? pcap_geterr(p) : begin));
	pcap_close(p);
}

/* Valid programs of chance. */
static void programs(const char *path)
{
	static const u_short codes[] = {
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0c, 0x14, 0x15, 0x16, 0x1c, 0x1d, 0x20, 0x24, 0x25, 0x28, 0x2c, 0x2d, 0x30, 0x34,
		0x35, 0x3c, 0x3d, 0x40, 0x44, 0x45, 0x48, 0x4c, 0x4d, 0x50, 0x54, 0x5c, 0x60, 0x61, 0x64, 0x74, 0x80, 0x81, 0x84, 0x87, 0x94, 0x9c,
		0xa4, 0xac, 0xb1,
	};
	struct bpf_insn all[24];
	struct bpf_program program = { 0, all };
	unsigned round, i, used = 0;

	for (round = 0; round < 4000; round++) {
		program.bf_len = 7 + below(17);
		/* libpcap's memory holds anything at first. */
		for (i = 0; i < 4; i++)
			all[i] = (struct bpf_insn){ 0x02, 0, 0, i };
		for (; i < program.bf_len; i++) {
			int last = i + 1 == program.bf_len;

			all[i].code = last ? 0x16 : codes[below(sizeof codes / sizeof *codes)];
			if (all[i].code == 0x06 && below(3))
				all[i].code = 0x30;
			all[i].jt = (u_char)below(3);
			all[i].jf = (u_char)below(3);
			all[i].k = all[i].code == 0x02 || all[i].code == 0x03 || all[i].code == 0x60 || all[i].code == 0x61 ? below(4)
				: all[i].code == 0x05 ? below(4) : below(20) == 0 ? 0xfffff000 + below(0x48) : below(30);
		}
		if (!bpf_validate(all, (int)program.bf_len))
			continue;
		if (used++ == 300)
			break;
		filter(path, &program, 1);
	}
	say("%u programs", used);
}

int main(void)
{
	char *directory = own_directory();
	size_t i;

	make("frames", 600);
	make("few", 60);
	for (i = 0; i < sizeof expressions / sizeof *expressions; i++) {
		compile("frames", expressions[i], 1, 0xffffff00);
		compile("frames", expressions[i], 0, 0xffffff00);
	}
	optimised("tcp port 80 and host 10.0.0.1");
	optimised("tcp or udp port 53");
	optimised("len > 5 and len > 5");
	families();
	programs("few");
	without_handle();
	for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
		refused(wrong[i], 0);
	for (i = 0; i < sizeof unknown / sizeof *unknown; i++)
		refused(unknown[i], 1);
	unlink("frames");
	unlink("few");
	return rmdir(directory);
}
