/*
 * Threads that are cancelled (pthread_cancel) while a function reads packets: one that waits, one whose callback is in a
 * cancellation point, and one that is cancelled already. Both types of cancellation. Afterwards the handle still reads, and is
 * closed. The arguments are two devices that are connected; without arguments, packets are those of a file and of a pipe. With
 * one, threads are cancelled at any moment while they read a file, which only our library is made for.
 */
#include "say.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum how { LOOP, DISPATCH, NEXT, NEXT_EX, HOWS };
static const char *const hows[] = { "pcap_loop", "pcap_dispatch", "pcap_next", "pcap_next_ex" };

/* What the callback does, and when the thread is cancelled. */
enum when { WAITING, IN_CALLBACK, BEFORE, BY_ITSELF, HELD, WHENS };
static const char *const whens[] = {
	"while it waits", "in a callback that waits", "before it reads", "by itself in a callback", "in a callback that holds it",
};

static pcap_t *handle;
static enum how how;
static enum when when;
static int type, seen, unwound, result;
static sem_t ready;
static pid_t waiter;

static void cancel_self(void)
{
	pthread_cancel(pthread_self());
}

static void callback(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	int before;

	(void)user, (void)h, (void)data;
	seen++;
	switch (when) {
	case IN_CALLBACK:
		sem_post(&ready);
		for (;;)
			pause();
	case BY_ITSELF:
		if (seen == 1)
			cancel_self();
		break;
	case HELD:
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
		cancel_self();
		pthread_testcancel();
		seen = 100;
		pthread_setcancelstate(before, NULL);
		pthread_testcancel();
		seen = 200;
		break;
	default:
		break;
	}
}

static void left(void *unused)
{
	(void)unused;
	unwound++;
}

static void read_packets(void)
{
	struct pcap_pkthdr header, *place;
	const u_char *data;

	switch (how) {
	case LOOP:
		result = pcap_loop(handle, -1, callback, NULL);
		break;
	case DISPATCH:
		do
			result = pcap_dispatch(handle, -1, callback, NULL);
		while (result > 0 || (result == 0 && pcap_file(handle) == NULL));
		break;
	case NEXT:
		do {
			data = pcap_next(handle, &header);
			if (data != NULL)
				callback(NULL, &header, data);
		} while (data != NULL || pcap_file(handle) == NULL);
		result = 0;
		break;
	default:
		do {
			result = pcap_next_ex(handle, &place, &data);
			if (result == 1)
				callback(NULL, place, data);
		} while (result >= 0);
	}
}

static void *thread(void *unused)
{
	pthread_setcanceltype(type, NULL);
	pthread_cleanup_push(left, NULL);
	waiter = gettid();
	if (when == WAITING)
		sem_post(&ready);
	if (when == BEFORE) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		cancel_self();
		/* An asynchronous one acts here. */
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	}
	read_packets();
	pthread_cleanup_pop(0);
	return unused;
}

/* Waits until the thread sleeps, for a read that has not yet begun is another case. */
static void until_asleep(void)
{
	char path[64], line[512];
	int asleep = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)waiter);
	while (asleep < 20) {
		FILE *file = fopen(path, "r");
		const char *state = file != NULL && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;

		asleep = state != NULL && state[2] == 'S' ? asleep + 1 : 0;
		if (file != NULL)
			fclose(file);
		usleep(1000);
	}
}

static void one(const char *what)
{
	pthread_t one;
	void *end = &one;

	seen = unwound = 0;
	result = -99;
	sem_init(&ready, 0, 0);
	pthread_create(&one, NULL, thread, NULL);
	if (when == WAITING || when == IN_CALLBACK) {
		sem_wait(&ready);
		until_asleep();
		pthread_cancel(one);
	}
	pthread_join(one, &end);
	say("%s, %s, %s, cancelled %s: %s, cleaned up %d, seen %d", what, hows[how],
	    type == PTHREAD_CANCEL_DEFERRED ? "deferred" : "asynchronous", whens[when],
	    end == PTHREAD_CANCELED ? "cancelled" : "not cancelled", unwound, seen > 100 ? -1 : seen == 100 ? 100 : seen > 1);
}

/* The handle is as between two calls. */
static void still_works(void)
{
	struct pcap_stat stat;
	struct bpf_program program;

	say("  pcap_compile = %d", pcap_compile(handle, &program, "len > 1", 1, 0));
	say("  pcap_setfilter = %d", pcap_setfilter(handle, &program));
	pcap_freecode(&program);
	if (pcap_file(handle) == NULL)
		say("  pcap_stats = %d", pcap_stats(handle, &stat));
	pcap_breakloop(handle);
	say("  pcap_loop = %d", pcap_loop(handle, -1, callback, NULL));
}

static void send_to(const char *to)
{
	static const u_char frame[100] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x12, 0x34 };
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *sender = pcap_open_live(to, 100, 0, 10, error);
	int i;

	for (i = 0; i < 5; i++)
		if (pcap_inject(sender, frame, sizeof frame) != sizeof frame)
			say("%s", pcap_geterr(sender));
	pcap_close(sender);
}

static void live(enum when wanted, const char *device, const char *peer)
{
	/* The last is enough for the rest; and without a timeout, the system's library does not give a few packets. */
	static const struct { int timeout, immediate; } cases[] = { { 0, 0 }, { 1000, 0 }, { 100, 0 }, { 100, 1 } };
	char error[PCAP_ERRBUF_SIZE], what[100];
	unsigned i;

	for (i = wanted == WAITING ? 0 : 3; i < 4; i++) {
		handle = pcap_create(device, error);
		pcap_set_timeout(handle, cases[i].timeout);
		pcap_set_immediate_mode(handle, cases[i].immediate);
		if (pcap_activate(handle) != 0) {
			say("%s", pcap_geterr(handle));
			exit(1);
		}
		snprintf(what, sizeof what, "timeout %d%s", cases[i].timeout, cases[i].immediate ? ", immediate" : "");
		when = wanted;
		if (when == IN_CALLBACK || when == BY_ITSELF || when == HELD)
			send_to(peer);
		one(what);
		when = WAITING;
		still_works();
		pcap_close(handle);
	}
}

/* The bytes of a file of ten packets. */
static char file_bytes[4096];
static size_t file_length;

static void make_file(void)
{
	static const u_char data[100];
	struct pcap_pkthdr header = { { 0, 0 }, sizeof data, sizeof data };
	FILE *file = fmemopen(file_bytes, sizeof file_bytes, "wb");
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, 100);
	pcap_dumper_t *dumper = pcap_dump_fopen(dead, file);
	int i;

	for (i = 0; i < 10; i++)
		pcap_dump((u_char *)dumper, &header, data);
	pcap_dump_flush(dumper);
	file_length = (size_t)pcap_dump_ftell(dumper);
	pcap_dump_close(dumper);
	pcap_close(dead);
}

static void open_stream(FILE *stream)
{
	char error[PCAP_ERRBUF_SIZE];

	handle = pcap_fopen_offline(stream, error);
	if (handle == NULL) {
		say("%s", error);
		exit(1);
	}
}

/* The writer of a pipe that has more to say, but does not. */
static void piped(void)
{
	int ends[2];

	if (pipe(ends) != 0 || write(ends[1], file_bytes, file_length) != (ssize_t)file_length)
		exit(1);
	open_stream(fdopen(ends[0], "rb"));
	one("a pipe");
	pcap_close(handle);
	close(ends[1]);
}

static void file(enum when wanted)
{
	FILE *stream = tmpfile();

	when = wanted;
	if (fwrite(file_bytes, 1, file_length, stream) != file_length)
		exit(1);
	rewind(stream);
	open_stream(stream);
	one("a file");
	when = WAITING;
	still_works();
	pcap_close(handle);
}

static void count_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	(void)user, (void)h, (void)data;
	seen++;
}

static void *busy(void *unused)
{
	struct pcap_pkthdr *header;
	const u_char *data;

	pthread_setcanceltype(type, NULL);
	sem_post(&ready);
	for (;;)
		result = how == LOOP ? pcap_loop(handle, -1, count_packet, NULL) : pcap_next_ex(handle, &header, &data);
	return unused;
}

static int at_any_moment(void)
{
	char error[PCAP_ERRBUF_SIZE], name[64];
	FILE *stream = tmpfile();
	int i, cancelled = 0;
	pthread_t one;
	void *end;

	fwrite(file_bytes, 1, 24, stream);
	for (i = 0; i < 5000; i++)
		fwrite(file_bytes + 24, 1, file_length - 24, stream);
	fflush(stream);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fileno(stream));
	sem_init(&ready, 0, 0);
	for (i = 0; i < 1000; i++) {
		type = i & 1;
		how = i & 2 ? LOOP : NEXT_EX;
		handle = pcap_open_offline(name, error);
		pthread_create(&one, NULL, busy, NULL);
		sem_wait(&ready);
		usleep(below(1000));
		pthread_cancel(one);
		pthread_join(one, &end);
		cancelled += end == PTHREAD_CANCELED;
		pcap_close(handle);
	}
	say("cancelled %d", cancelled);
	fclose(stream);
	return 0;
}

int main(int count, char **arguments)
{
	int wanted;

	make_file();
	if (count == 2)
		return at_any_moment();
	for (type = 0; type < 2; type++)
		for (how = 0; how < HOWS; how++)
			for (wanted = 0; wanted < WHENS; wanted++) {
				when = (enum when)wanted;
				/* The others wait in the same way. */
				if (count > 2 && (how == DISPATCH || how == NEXT))
					continue;
				if (count > 2)
					live(when, arguments[1], arguments[2]);
				else if (when == WAITING)
					piped();
				else
					file(when);
			}
	return 0;
}
