/*
 * Prints the packets of a file or device that match a filter: time, lengths and first bytes.
 *
 *   cc print.c -o print -lpcap
 *   ./print trace.pcap tcp port 443         on the system's libpcap
 *   weir run -- ./print trace.pcap          on weir's
 *   sudo weir run -- ./print -i eth0 udp    from a device, until Ctrl-C
 */
#include <pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT 262144
#define FIRST_BYTES 16

static pcap_t *pcap;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "print: %s: %s\n", what, why);
	exit(1);
}

/* pcap_breakloop is the one function that a signal handler may call. */
static void stop(int signal_number)
{
	(void)signal_number;
	pcap_breakloop(pcap);
}

/* A device: settings come between pcap_create and pcap_activate. */
static pcap_t *open_device(const char *name)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *device = pcap_create(name, error);
	int status;

	if (device == NULL)
		fail(name, error);
	pcap_set_snaplen(device, SNAPSHOT);
	pcap_set_promisc(device, 1);
	pcap_set_timeout(device, 100);
	status = pcap_activate(device);
	if (status < 0)
		fail(name, *pcap_geterr(device) ? pcap_geterr(device) : pcap_statustostr(status));
	if (status > 0)
		fprintf(stderr, "print: %s: %s\n", name, pcap_statustostr(status));
	return device;
}

static pcap_t *open_file(const char *name)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline(name, error);

	if (file == NULL)
		fail(name, error);
	return file;
}

/* Words, as a shell gives them, with a space between. */
static void set_filter(char **words)
{
	char expression[4096] = "";
	struct bpf_program program;

	for (; *words != NULL; words++) {
		if (strlen(expression) + strlen(*words) + 2 > sizeof expression)
			fail(*words, "the filter is too long");
		strcat(strcat(expression, *words), " ");
	}
	if (pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) < 0 || pcap_setfilter(pcap, &program) < 0)
		fail("filter", pcap_geterr(pcap));
	pcap_freecode(&program);
}

static void print(u_char *context, const struct pcap_pkthdr *header, const u_char *data)
{
	bpf_u_int32 i;

	(void)context;
	printf("%ld.%06ld  %u of %u bytes ", (long)header->ts.tv_sec, (long)header->ts.tv_usec, header->caplen, header->len);
	for (i = 0; i < header->caplen && i < FIRST_BYTES; i++)
		printf(" %02x", data[i]);
	putchar('\n');
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int is_device = argc > 1 && strcmp(argv[1], "-i") == 0;
	int name = is_device ? 2 : 1;
	struct pcap_stat stats;

	if (argc <= name) {
		fprintf(stderr, "usage: print FILE [FILTER]\n       print -i DEVICE [FILTER]\n");
		return 2;
	}
	pcap = is_device ? open_device(argv[name]) : open_file(argv[name]);
	signal(SIGINT, stop);
	set_filter(argv + name + 1);
	fprintf(stderr, "%s, %s\n", pcap_lib_version(), pcap_datalink_val_to_name(pcap_datalink(pcap)));
	if (pcap_loop(pcap, -1, print, NULL) == PCAP_ERROR)
		fail(argv[name], pcap_geterr(pcap));
	if (is_device && pcap_stats(pcap, &stats) == 0)
		fprintf(stderr, "%u packets received, %u lost\n", stats.ps_recv, stats.ps_drop);
	pcap_close(pcap);
	return 0;
}
