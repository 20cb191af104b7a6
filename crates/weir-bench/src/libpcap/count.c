/*
 * Counts the packets of a device or file with one of libpcap's functions, or compiles one filter.
 *
 *   count version                                prints the library's version
 *   count loop|dispatch|next_ex device IF [FILTER]   until SIGINT
 *   count loop|dispatch|next_ex file FILE
 *   count compile HOSTS
 *
 * The result is a line of JSON on standard output.
 */
#include <pcap.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SNAPSHOT 262144
#define BUFFER (128 << 20)
#define TIMEOUT 100
/* Longest term of the filter: " or host 10.255.255.255". */
#define TERM 32

static pcap_t *pcap;
static volatile sig_atomic_t stopped;

/* Frames carry their number in the signature behind Ethernet, IPv4 and UDP headers; its low half grows. */
#define NUMBER_AT (42 + 6)
static struct {
	uint64_t packets;
	uint64_t bytes;
	uint64_t unordered;
	int64_t number;
} seen = {.number = -1};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "count: %s: %s\n", what, why);
	exit(1);
}

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
	pcap_breakloop(pcap);
}

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* What something took, nanoseconds: on the clock, and processor time of all threads. */
static uint64_t wall, processor;

static void begin(void)
{
	wall = now(CLOCK_MONOTONIC);
	processor = now(CLOCK_PROCESS_CPUTIME_ID);
}

static void end(void)
{
	wall = now(CLOCK_MONOTONIC) - wall;
	processor = now(CLOCK_PROCESS_CPUTIME_ID) - processor;
}

static void print_time(void)
{
	printf("\"nanoseconds\": %llu, \"cpu_nanoseconds\": %llu}\n", (unsigned long long)wall,
	       (unsigned long long)processor);
}

static void count(u_char *user, const struct pcap_pkthdr *header, const u_char *packet)
{
	const u_char *at;
	int64_t number;

	(void)user;
	seen.packets++;
	seen.bytes += header->caplen;
	if (header->caplen < NUMBER_AT + 4)
		return;
	at = packet + NUMBER_AT;
	number = (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
	seen.unordered += number <= seen.number;
	seen.number = number;
}

/* Until a signal or the end of the file. */
static void read_with(const char *function, int is_file)
{
	struct pcap_pkthdr *header;
	const u_char *packet;
	int status = 0;

	if (strcmp(function, "loop") == 0) {
		status = pcap_loop(pcap, -1, count, NULL);
	} else if (strcmp(function, "dispatch") == 0) {
		do
			status = pcap_dispatch(pcap, -1, count, NULL);
		while (!stopped && (status > 0 || (status == 0 && !is_file)));
	} else if (strcmp(function, "next_ex") == 0) {
		while (!stopped && (status = pcap_next_ex(pcap, &header, &packet)) >= 0)
			if (status > 0)
				count(NULL, header, packet);
	} else {
		fail(function, "no such function");
	}
	if (status == PCAP_ERROR)
		fail(function, pcap_geterr(pcap));
}

static void set_filter(const char *text)
{
	struct bpf_program program;

	if (pcap_compile(pcap, &program, text, 1, PCAP_NETMASK_UNKNOWN) != 0 || pcap_setfilter(pcap, &program) != 0)
		fail(text, pcap_geterr(pcap));
	pcap_freecode(&program);
}

static void open_device(const char *name, const char *filter)
{
	char error[PCAP_ERRBUF_SIZE];
	struct sigaction action = {.sa_handler = stop};
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
	if (filter != NULL)
		set_filter(filter);
	sigaction(SIGINT, &action, NULL);
	fprintf(stderr, "ready\n");
}

static void count_packets(const char *function, const char *kind, const char *name, const char *filter)
{
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_stat statistics = {0};
	int is_file = strcmp(kind, "file") == 0;

	begin();
	if (!is_file)
		open_device(name, filter);
	else if ((pcap = pcap_open_offline(name, error)) == NULL)
		fail(name, error);
	read_with(function, is_file);
	end();
	if (!is_file && pcap_stats(pcap, &statistics) != 0)
		fail("pcap_stats", pcap_geterr(pcap));
	printf("{\"packets\": %llu, \"bytes\": %llu, \"unordered\": %llu, \"dropped\": %u, ",
	       (unsigned long long)seen.packets, (unsigned long long)seen.bytes, (unsigned long long)seen.unordered,
	       statistics.ps_drop);
	print_time();
	pcap_close(pcap);
}

/* Whether the program accepts a packet from this address. */
static int matches(const struct bpf_program *program, uint32_t address)
{
	u_char packet[60] = {[12] = 8, [14] = 0x45, [30] = 192, [32] = 2, [33] = 1};
	struct pcap_pkthdr header = {.caplen = sizeof(packet), .len = sizeof(packet)};

	packet[26] = 10;
	packet[27] = address >> 16;
	packet[28] = address >> 8;
	packet[29] = address;
	return pcap_offline_filter(program, &header, packet) != 0;
}

/* Every second address of 10.0.0.0/8: no prefix joins two of them. */
static void compile(uint32_t hosts)
{
	char *text = calloc(hosts + 1, TERM), *at = text;
	struct bpf_program program;
	uint32_t number, wrong = 0;

	if (text == NULL)
		fail("compile", "out of memory");
	for (number = 0; number < 2 * hosts; number += 2)
		at += sprintf(at, "%shost 10.%u.%u.%u", number ? " or " : "", number >> 16 & 255, number >> 8 & 255,
		              number & 255);
	pcap = pcap_open_dead(DLT_EN10MB, SNAPSHOT);
	begin();
	if (pcap_compile(pcap, &program, text, 1, PCAP_NETMASK_UNKNOWN) != 0)
		fail("pcap_compile", pcap_geterr(pcap));
	end();
	for (number = 0; number < 2 * hosts; number++)
		wrong += matches(&program, number) != (number % 2 == 0);
	printf("{\"instructions\": %u, \"wrong\": %u, ", program.bf_len, wrong);
	print_time();
	pcap_freecode(&program);
	pcap_close(pcap);
	free(text);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "version") == 0)
		puts(pcap_lib_version());
	else if (argc == 3 && strcmp(argv[1], "compile") == 0)
		compile((uint32_t)atoi(argv[2]));
	else if (argc == 4 || (argc == 5 && strcmp(argv[2], "device") == 0))
		count_packets(argv[1], argv[2], argv[3], argv[4]);
	else
		fail("usage", "count version | count FUNCTION device IF [FILTER] | count FUNCTION file FILE | count "
		              "compile HOSTS");
	return 0;
}
