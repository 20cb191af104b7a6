/*
 * Prints every second how many packets that match a filter have arrived on a device, and their bytes, until Ctrl-C.
 * It uses the statistics mode of WinPcap's extensions.
 *
 *   sudo weir libpcap /opt/weir/lib
 *   cc rate.c -o rate $(PKG_CONFIG_PATH=/opt/weir/lib pkg-config --cflags --libs libpcap)
 *   sudo ./rate eth0 tcp port 443
 */
#include <stdio.h>
#include <string.h>
#include <weir/win32-extensions.h>

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "rate: %s: %s\n", what, why);
	return 1;
}

int main(int count, char **arguments)
{
	char error[PCAP_ERRBUF_SIZE], filter[4096] = "";
	struct weir_pcap_statistics since;
	struct bpf_program program;
	struct pcap_pkthdr *header;
	const u_char *data;
	pcap_t *pcap;

	if (count < 2)
		return fail("usage", "rate DEVICE [FILTER...]");
	for (int i = 2; i < count; i++) {
		strncat(filter, arguments[i], sizeof filter - strlen(filter) - 1);
		strncat(filter, " ", sizeof filter - strlen(filter) - 1);
	}
	pcap = pcap_open(arguments[1], 65535, PCAP_OPENFLAG_PROMISCUOUS, 1000, NULL, error);
	if (pcap == NULL)
		return fail("pcap_open", error);
	if (pcap_compile(pcap, &program, filter, 1, PCAP_NETMASK_UNKNOWN) != 0 ||
	    pcap_setfilter(pcap, &program) != 0 || pcap_setmode(pcap, MODE_STAT) != 0)
		return fail(filter, pcap_geterr(pcap));
	pcap_freecode(&program);
	while (pcap_next_ex(pcap, &header, &data) == 1) {
		memcpy(&since, data, sizeof since);
		printf("%ld  %llu packets, %llu bytes\n", (long)header->ts.tv_sec, since.packets, since.bytes);
		fflush(stdout);
	}
	return fail("pcap_next_ex", pcap_geterr(pcap));
}
