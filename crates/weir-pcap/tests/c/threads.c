/* Threads with a handle each, under load; the loops of some are broken by others, and all are closed under load. */
#include "say.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 10
#define PACKETS 50

static atomic_int over;

struct reader {
	pcap_t *capture;
	atomic_int packets;
	int status;
};

static void *load(void *unused)
{
	static const u_char frame[200] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x12, 0x34 };
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *sender = pcap_open_live("rx0", 100, 0, 10, error);

	while (!atomic_load(&over))
		pcap_inject(sender, frame, sizeof frame);
	pcap_close(sender);
	return unused;
}

static void count(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	struct reader *reader = (struct reader *)user;

	if (header->caplen != 100 || header->len != 200 || data[12] != 0x12)
		say("a wrong packet");
	atomic_fetch_add(&reader->packets, 1);
}

static void *read_all(void *argument)
{
	struct reader *reader = argument;

	reader->status = pcap_loop(reader->capture, -1, count, argument);
	return NULL;
}

int main(void)
{
	pthread_t loader, threads[THREADS];
	struct reader readers[THREADS];
	char error[PCAP_ERRBUF_SIZE];
	int round, i;

	pthread_create(&loader, NULL, load, NULL);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < THREADS; i++) {
			readers[i].capture = pcap_open_live("rx0", 100, 1, 10, error);
			if (readers[i].capture == NULL) {
				say("%s", error);
				return 1;
			}
			atomic_init(&readers[i].packets, 0);
			pthread_create(&threads[i], NULL, read_all, &readers[i]);
		}
		for (i = 0; i < THREADS; i++) {
			while (atomic_load(&readers[i].packets) < PACKETS)
				usleep(1000);
			pcap_breakloop(readers[i].capture);
		}
		for (i = 0; i < THREADS; i++) {
			pthread_join(threads[i], NULL);
			say("round %d, thread %d: pcap_loop = %d", round, i, readers[i].status);
			pcap_close(readers[i].capture);
		}
	}
	atomic_store(&over, 1);
	pthread_join(loader, NULL);
	return 0;
}
