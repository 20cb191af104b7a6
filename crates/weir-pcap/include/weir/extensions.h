/*
 * weir's extensions of libpcap, for programs on weir's libpcap. C and C++; beside the system's <pcap/pcap.h>.
 *
 * They are for the handles of pcap_open_live, pcap_activate and pcap_open_offline. Unless a comment says otherwise, a
 * function returns 0, or a negative status and leaves a text for pcap_geterr.
 */
#ifndef WEIR_EXTENSIONS_H
#define WEIR_EXTENSIONS_H

#include <pcap/pcap.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- counts ---- */

/*
 * What became of the packets of a capture since it began. Each packet is in one place:
 *
 *   seen = filtered + lost + errors + captured
 *   captured = rejected + delivered + those that wait in the buffer
 */
struct weir_pcap_counts {
	uint64_t device_lost; /* lost by the device, or by the kernel before the capture */
	uint64_t seen;        /* seen by the capture; by a packet socket, without those that its filter rejects */
	uint64_t filtered;    /* rejected by the filter in the kernel; with a packet socket 0 */
	uint64_t lost;        /* lost because the buffer was full */
	uint64_t errors;      /* not stored for another reason */
	uint64_t captured;    /* stored in the buffer */
	uint64_t rejected;    /* rejected in this process, by its filter or for their direction */
	uint64_t delivered;   /* taken for the program; sampling and statistics come after this */
};

/* Counts the packets of a capture. size: sizeof *counts. */
int weir_pcap_counts(pcap_t *p, struct weir_pcap_counts *counts, size_t size);

/* ---- many packets at once ---- */

struct weir_pcap_packet {
	struct pcap_pkthdr header;
	const u_char *data;
};

/*
 * Reads up to most packets. Waits for the first one as pcap_next_ex does, and for no other. The bytes stay where they
 * are until the next packet is read. Returns the number of packets; 0 or a negative status, where pcap_next_ex does.
 *
 * With weir's sources (WEIR_SOURCE, xdp:eth0), these are packets of one chunk, read in place. With a packet socket and
 * a file, there is one packet per call.
 */
int weir_pcap_burst(pcap_t *p, struct weir_pcap_packet *packets, int most);

/* ---- filters ---- */

/*
 * Sets the filter by an expression in weir's dialect (weir-filter(7)), which has sets: "tcp and host in @suspects",
 * where suspects is a file. With weir's sources, sets are hash tables in the kernel.
 */
int weir_pcap_setfilter(pcap_t *p, const char *expression);

#ifdef __cplusplus
}
#endif

#endif
