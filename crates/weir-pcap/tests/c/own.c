/*
 * weir's extensions, in a private network where d0 and d1 are connected. The argument says what captures: a word, and
 * the device. The file `hosts` in the working directory is a set of addresses.
 */
#include "say.h"

#include <weir/extensions.h>

static pcap_t *sender;

/* A UDP packet from 10.0.0.HOST, with a number. */
static void send_frame(int host, int number)
{
	u_char frame[60] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0,
			     10, 0, 0, 0, 10, 0, 0, 99, 0, 9, 0, 9, 0, 26 };

	frame[29] = (u_char)host;
	frame[42] = (u_char)number;
	if (pcap_inject(sender, frame, sizeof frame) != (int)sizeof frame)
		say("pcap_inject: %s", pcap_geterr(sender));
}

static void count(pcap_t *p, const char *when)
{
	struct weir_pcap_counts c;

	if (weir_pcap_counts(p, &c, sizeof c) != 0) {
		say("weir_pcap_counts: %s", pcap_geterr(p));
		return;
	}
	say("%s: captured %llu, lost %llu, errors %llu, rejected %llu, delivered %llu", when,
	    (unsigned long long)c.captured, (unsigned long long)c.lost, (unsigned long long)c.errors,
	    (unsigned long long)c.rejected, (unsigned long long)c.delivered);
	say("  the sums are right: %d %d", c.seen == c.filtered + c.lost + c.errors + c.captured,
	    c.captured == c.rejected + c.delivered);
}

/* Reads this many packets, and prints how many came at most at once. */
static void read_packets(pcap_t *p, int number)
{
	struct weir_pcap_packet packets[64];
	int most = 0;

	while (number > 0) {
		int came = weir_pcap_burst(p, packets, number < 64 ? number : 64);

		if (came < 0) {
			say("weir_pcap_burst = %d %s", came, pcap_geterr(p));
			return;
		}
		if (came > most)
			most = came;
		for (int i = 0; i < came; i++)
			say("%u of %u bytes from 10.0.0.%d, number %d", packets[i].header.caplen,
			    packets[i].header.len, packets[i].data[29], packets[i].data[42]);
		number -= came;
	}
	say("  more than one at once: %d", most > 1);
}

static void filter(pcap_t *p, const char *expression)
{
	int status = weir_pcap_setfilter(p, expression);

	say("weir_pcap_setfilter %s = %d", expression != NULL ? expression : "NULL", status);
	if (status != 0)
		say("  %.40s", pcap_geterr(p));
}

static void wrong(void)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *dead = pcap_open_dead(1, 100), *created = pcap_create("d1", error);
	struct weir_pcap_packet packet;
	struct weir_pcap_counts counts;

	say("%d %d %d", weir_pcap_counts(NULL, &counts, sizeof counts), weir_pcap_burst(NULL, &packet, 1),
	    weir_pcap_setfilter(NULL, "udp"));
	for (int i = 0; i < 2; i++) {
		pcap_t *p = i == 0 ? dead : created;

		say("%d", weir_pcap_counts(p, &counts, sizeof counts));
		say("  %s", pcap_geterr(p));
		say("%d", weir_pcap_burst(p, &packet, 1));
		say("  %s", pcap_geterr(p));
		filter(p, "udp");
	}
	pcap_close(dead);
	pcap_close(created);
}

int main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	unsigned char small[8], large[200];
	struct weir_pcap_packet packets[2];
	pcap_t *p;

	if (argc != 2)
		return 2;
	sender = pcap_open_live("d0", 100, 0, 10, error);
	p = pcap_create(argv[1], error);
	/* A small buffer is one that a pool cannot have: it gets more. */
	if (sender == NULL || p == NULL || pcap_set_snaplen(p, 100) || pcap_set_timeout(p, 10) ||
	    pcap_set_promisc(p, 1) || pcap_set_buffer_size(p, 4096) || pcap_activate(p) != 0) {
		say("%s %s", error, p != NULL ? pcap_geterr(p) : "");
		return 1;
	}
	for (int i = 0; i < 5; i++)
		send_frame(i % 2 + 1, i);
	read_packets(p, 5);
	count(p, "without a filter");
	filter(p, "udp and host in @hosts");
	for (int i = 10; i < 20; i++)
		send_frame(i % 5, i);
	read_packets(p, 4);
	count(p, "with a set");
	filter(p, "udp port");
	filter(p, "host in @missing");
	filter(p, NULL);
	/* The filter is still the last good one. */
	send_frame(1, 30);
	send_frame(2, 31);
	read_packets(p, 1);
	filter(p, "ether proto 0x1234");
	filter(p, "");
	send_frame(1, 40);
	read_packets(p, 1);
	count(p, "at the end");
	say("%d %d %d", weir_pcap_counts(p, NULL, 64), weir_pcap_burst(p, NULL, 1), weir_pcap_burst(p, packets, 0));
	memset(large, 0xff, sizeof large);
	say("%d %d", weir_pcap_counts(p, (void *)small, sizeof small), weir_pcap_counts(p, (void *)large, sizeof large));
	say("zeros %d %d", large[sizeof(struct weir_pcap_counts)], large[sizeof large - 1]);
	say("pcap_setnonblock = %d", pcap_setnonblock(p, 1, error));
	say("nothing there %d", weir_pcap_burst(p, packets, 2));
	pcap_breakloop(p);
	say("after a break %d", weir_pcap_burst(p, packets, 2));
	pcap_close(p);
	pcap_close(sender);
	wrong();
	return 0;
}
