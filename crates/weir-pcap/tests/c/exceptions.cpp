// A callback that throws, and one whose thread ends, in each function that calls it. The argument is a file with at
// least ten packets.
#include <pcap.h>
#include <pthread.h>

#include <cstdio>
#include <initializer_list>

struct Thrown {
	int number;
};

struct Dropped {
	~Dropped() { std::puts("  dropped"); }
};

static int number;

static void throws(u_char *, const pcap_pkthdr *, const u_char *)
{
	if (++number == 3)
		throw Thrown{number};
}

static void ends(u_char *, const pcap_pkthdr *, const u_char *)
{
	if (++number == 3)
		pthread_exit(nullptr);
}

typedef int (*Reads)(pcap_t *, int, pcap_handler, u_char *);

static pcap_t *handle;
static Reads reads;

static void *run(void *)
{
	Dropped dropped;

	reads(handle, -1, ends, nullptr);
	return &number;
}

int main(int, char **arguments)
{
	for (Reads each : {pcap_loop, pcap_dispatch}) {
		char error[PCAP_ERRBUF_SIZE] = "";
		pthread_t thread;
		void *result = &thread;

		handle = pcap_open_offline(arguments[1], error);
		if (handle == nullptr) {
			std::puts(error);
			return 1;
		}
		number = 0;
		try {
			Dropped dropped;

			std::printf("= %d\n", each(handle, -1, throws, nullptr));
		} catch (Thrown thrown) {
			std::printf("caught %d\n", thrown.number);
		}
		reads = each;
		number = 0;
		pthread_create(&thread, nullptr, run, nullptr);
		pthread_join(thread, &result);
		std::printf("ended %d %d\n", number, result == nullptr);
		std::printf("the rest = %d, %d\n", each(handle, 2, throws, nullptr), number);
		pcap_close(handle);
	}
	return 0;
}
