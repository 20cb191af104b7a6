/*
 * Sends the frame in a file repeatedly for a given time, one frame per call.
 *
 *   inject version                                  prints the library's version
 *   inject pcap|sendto IF FILE MILLISECONDS
 *
 * The result is a line of JSON on standard output: frames sent, and calls that failed.
 */
#include <net/if.h>
#include <linux/if_packet.h>
#include <pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SNAPSHOT 96
/* Frames sent before the clock is read again. */
#define LOOK 64

static unsigned char frame[65536];
static size_t size;
static pcap_t *pcap;
static int packet_socket;
static struct sockaddr_ll address = {.sll_family = AF_PACKET};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "inject: %s: %s\n", what, why);
	exit(1);
}

static uint64_t milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static int by_pcap(void)
{
	return pcap_inject(pcap, frame, size);
}

static int by_sendto(void)
{
	return (int)sendto(packet_socket, frame, size, 0, (struct sockaddr *)&address, sizeof(address));
}

static void read_frame(const char *path)
{
	FILE *file = fopen(path, "rb");

	if (file == NULL || (size = fread(frame, 1, sizeof(frame), file)) == 0)
		fail(path, "cannot read a frame");
	fclose(file);
}

int main(int argc, char **argv)
{
	char error[PCAP_ERRBUF_SIZE];
	uint64_t end, sent = 0, failed = 0;
	int (*inject)(void);

	if (argc == 2 && strcmp(argv[1], "version") == 0) {
		puts(pcap_lib_version());
		return 0;
	}
	if (argc != 5)
		fail("usage", "inject version | inject pcap|sendto IF FILE MILLISECONDS");
	read_frame(argv[3]);
	if (strcmp(argv[1], "pcap") == 0) {
		pcap = pcap_open_live(argv[2], SNAPSHOT, 0, 1000, error);
		if (pcap == NULL)
			fail(argv[2], error);
		inject = by_pcap;
	} else {
		/* Protocol 0, so that it receives nothing. */
		packet_socket = socket(AF_PACKET, SOCK_RAW, 0);
		if (packet_socket < 0)
			fail("socket", "not permitted");
		address.sll_ifindex = (int)if_nametoindex(argv[2]);
		inject = by_sendto;
	}
	end = milliseconds() + strtoull(argv[4], NULL, 10);
	do {
		for (int turn = 0; turn < LOOK; turn++)
			if (inject() == (int)size)
				sent++;
			else
				failed++;
	} while (milliseconds() < end);
	printf("{\"sent\": %llu, \"failed\": %llu}\n", (unsigned long long)sent, (unsigned long long)failed);
	return 0;
}
