/*
 * WinPcap's extensions of libpcap, for programs on weir's libpcap. C and C++; beside the system's <pcap/pcap.h>.
 *
 * weir's library also has pcap_open, pcap_createsrcstr, pcap_parsesrcstr, pcap_findalldevs_ex and pcap_setsampling,
 * which <pcap/pcap.h> declares. The system's library has none of these functions.
 *
 * Unless a comment says otherwise, a function returns 0, or -1 and leaves a text for pcap_geterr, also for handles
 * that it is not for: files, pcap_open_dead, and, where a capture is needed, handles that are not activated.
 */
#ifndef WEIR_WIN32_EXTENSIONS_H
#define WEIR_WIN32_EXTENSIONS_H

#include <pcap/pcap.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- buffers and waiting ---- */

/*
 * Size in bytes of the buffer that the kernel fills. After pcap_activate, the capture begins again: what was not read
 * is lost, counts begin anew, and pcap_getevent and pcap_get_selectable_fd return another descriptor. That needs the
 * privilege to capture, and the packet socket (not xdp:eth0 and the like).
 */
int pcap_setbuff(pcap_t *p, int size);

/* WinPcap's second buffer. weir has none: a positive size is accepted and changes nothing. */
int pcap_setuserbuffer(pcap_t *p, int size);

/*
 * How many bytes must have arrived before a read ends ahead of its timeout. 0: packets are read one by one, as soon as
 * they arrive. All other sizes do the same here: packets wait until the timeout, or until a block of the buffer is
 * full. Changing from one to the other after pcap_activate is like pcap_setbuff.
 */
int pcap_setmintocopy(pcap_t *p, int size);

/* The descriptor for select and poll: readable once there are packets. -1 in statistics mode. */
int pcap_getevent(pcap_t *p);

/* ---- modes ---- */

#ifndef MODE_CAPT
#define MODE_CAPT 0 /* reads give packets */
#define MODE_STAT 1 /* reads give statistics */
#define MODE_MON 2  /* not supported */
#endif

/* What a read gives in statistics mode; caplen and len are its size, ts is the end of the interval. */
struct weir_pcap_statistics {
	unsigned long long packets; /* that the filter has accepted since the last read */
	unsigned long long bytes;   /* of these packets on the wire, without preamble and checksum */
};

/*
 * In statistics mode, each read waits for the end of an interval and gives a struct weir_pcap_statistics in place of a
 * packet. The interval is the read timeout; without one, a second. Packets count when their block of the buffer is
 * complete, which also takes up to a read timeout: open with PCAP_OPENFLAG_MAX_RESPONSIVENESS if that is too late.
 */
int pcap_setmode(pcap_t *p, int mode);

/* ---- counts ---- */

/* WinPcap's struct pcap_stat, which is longer than that of <pcap/pcap.h> and begins with it. */
struct weir_pcap_stat_ex {
	u_int ps_recv;    /* as in struct pcap_stat */
	u_int ps_drop;
	u_int ps_ifdrop;
	u_int ps_capt;    /* accepted by the filter, with room in the buffer */
	u_int ps_sent;    /* of remote captures: always 0 */
	u_int ps_netdrop; /* of remote captures: always 0 */
};

/*
 * Returns the counts and stores their size, or returns NULL. They belong to the handle and change with the next call;
 * cast them to struct weir_pcap_stat_ex for the fields that struct pcap_stat does not have.
 */
struct pcap_stat *pcap_stats_ex(pcap_t *p, int *size);

/* ---- send queues ---- */

typedef struct pcap_send_queue {
	u_int maxlen; /* size of the buffer */
	u_int len;    /* bytes in use */
	char *buffer; /* of each packet its struct pcap_pkthdr, and then its bytes, without gaps */
} pcap_send_queue;

/* size: bytes of all packets and of a struct pcap_pkthdr for each. NULL without memory. */
pcap_send_queue *pcap_sendqueue_alloc(u_int size);
void pcap_sendqueue_destroy(pcap_send_queue *queue);

/* Adds a packet; -1 if there is no room, without a text. */
int pcap_sendqueue_queue(pcap_send_queue *queue, const struct pcap_pkthdr *header, const u_char *data);

/*
 * Sends all packets; sync other than 0: as far apart as their times are (fractions of seconds are in the precision of
 * the handle). Returns how many bytes of the queue were sent, headers included. If that is less than queue->len,
 * pcap_geterr says why.
 */
u_int pcap_sendqueue_transmit(pcap_t *p, pcap_send_queue *queue, int sync);

/* ---- dumps ---- */

/*
 * A thread of the library writes all packets that the filter accepts to a file, until the next one would make it larger
 * than max_size bytes (it is lost) or there are max_packets; 0: no limit. Meanwhile the handle has no packets, counts or settings.
 * pcap_breakloop ends the dump, also from a signal handler, and so does pcap_close. A process that is to go on in a
 * child must begin the dump there: threads stay with the parent.
 */
int pcap_live_dump(pcap_t *p, char *filename, int max_size, int max_packets);

/*
 * 1: the dump has ended, and the file is complete; 0: it has not; -1: it has failed, or there was none. sync other than
 * 0: waits for the end. Afterwards the handle captures as before.
 */
int pcap_live_dump_ended(pcap_t *p, int sync);

#ifdef __cplusplus
}
#endif

#endif
