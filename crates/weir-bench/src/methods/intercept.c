/*
 * Intercepts packets with libpcap, with the work that every method does for a packet (work.rs): checks that it is TCP over
 * IPv4 to one address, copies all of it from its IP header on, sums the copy, and calls a function that does nothing.
 *
 *   intercept IF ADDRESS      until SIGINT
 *
 * The result is a line of JSON on standard output.
 */
#include <arpa/inet.h>
#include <pcap.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT 262144
#define BUFFER (128 << 20)
#define TIMEOUT 100

#define ETHERNET 14
#define MOST 2048

static pcap_t *pcap;
static in_addr_t address;
static u_char copied[MOST];
static struct {
	uint64_t packets;
	uint64_t bytes;
	uint64_t sum;
	uint64_t others;
} seen;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "intercept: %s: %s\n", what, why);
	exit(1);
}

static void stop(int signal_number)
{
	(void)signal_number;
	pcap_breakloop(pcap);
}

/* Not inlined: what a method calls for each packet. */
static __attribute__((noinline)) void call_out(const u_char *packet)
{
	__asm__ volatile("" : : "r"(packet) : "memory");
}

static uint64_t add_word(uint64_t sum, uint64_t word)
{
	sum += word;
	return sum + (sum < word);
}

static uint64_t add(uint64_t sum, const u_char *bytes, uint32_t length)
{
	uint64_t word;

	for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum = add_word(sum, word);
	}
	word = 0;
	memcpy(&word, bytes, length);
	return add_word(sum, word);
}

static int is_wanted(const u_char *frame, uint32_t length)
{
	const u_char *packet = frame + ETHERNET;

	return length >= ETHERNET + 20 && length - ETHERNET < MOST && frame[12] == 8 && frame[13] == 0 &&
	       packet[0] >> 4 == 4 && packet[9] == 6 && memcmp(packet + 16, &address, 4) == 0;
}

static void take(u_char *user, const struct pcap_pkthdr *header, const u_char *frame)
{
	uint32_t length = header->caplen - ETHERNET;

	(void)user;
	if (!is_wanted(frame, header->caplen)) {
		seen.others++;
		return;
	}
	memcpy(copied, frame + ETHERNET, length);
	seen.packets++;
	seen.bytes += length;
	seen.sum = add(seen.sum, copied, length);
	call_out(copied);
}

static void open_device(const char *name)
{
	char error[PCAP_ERRBUF_SIZE];
	int status;

	pcap = pcap_create(name, error);
	if (pcap == NULL)
		fail(name, error);
	pcap_set_snaplen(pcap, SNAPSHOT);
	pcap_set_promisc(pcap, 1);
	pcap_set_timeout(pcap, TIMEOUT);
	pcap_set_buffer_size(pcap, BUFFER);
	status = pcap_activate(pcap);
	if (status < 0)
		fail(name, *pcap_geterr(pcap) ? pcap_geterr(pcap) : pcap_statustostr(status));
	if (pcap_setdirection(pcap, PCAP_D_IN) != 0)
		fail(name, pcap_geterr(pcap));
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = stop};
	struct pcap_stat statistics = {0};

	if (argc != 3 || inet_pton(AF_INET, argv[2], &address) != 1)
		fail("usage", "intercept IF ADDRESS");
	open_device(argv[1]);
	sigaction(SIGINT, &action, NULL);
	fprintf(stderr, "ready\n");
	if (pcap_loop(pcap, -1, take, NULL) == PCAP_ERROR)
		fail(argv[1], pcap_geterr(pcap));
	if (pcap_stats(pcap, &statistics) != 0)
		fail("pcap_stats", pcap_geterr(pcap));
	/* Both directions reach the ring, and the other one is discarded behind it. */
	printf("{\"packets\": %llu, \"bytes\": %llu, \"sum\": %llu, \"others\": %llu, \"lost\": %u, \"lost_both_ways\": true}\n",
	       (unsigned long long)seen.packets, (unsigned long long)seen.bytes, (unsigned long long)seen.sum,
	       (unsigned long long)seen.others, statistics.ps_drop);
	pcap_close(pcap);
	return 0;
}
