/*
 * WinPcap's extensions, in a private network where d0 and d1 are connected and d2 is down. It writes files into its
 * working directory. With an argument, weir's pool is behind it.
 */
#include "say.h"

#include <weir/win32-extensions.h>

#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char error[PCAP_ERRBUF_SIZE];
static int pool;
static pcap_t *sender;

static pcap_t *opened(const char *source, int flags, int timeout)
{
	pcap_t *p = pcap_open(source, 65535, flags, timeout, NULL, error);

	if (p == NULL) {
		say("pcap_open %s: %s", source, error);
		exit(1);
	}
	return p;
}

static void filtered(pcap_t *p, const char *text)
{
	struct bpf_program program;

	if (pcap_compile(p, &program, text, 1, PCAP_NETMASK_UNKNOWN) != 0 || pcap_setfilter(p, &program) != 0)
		say("filter: %s", pcap_geterr(p));
	pcap_freecode(&program);
}

/* A frame of the protocol 0x88b5 with this number. */
static const u_char *frame(int number)
{
	static u_char room[100] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };

	room[14] = (u_char)number;
	return room;
}

static void send_frames(int first, int number, int length)
{
	for (int i = first; i < first + number; i++)
		if (pcap_sendpacket(sender, frame(i), length) != 0)
			say("pcap_sendpacket: %s", pcap_geterr(sender));
}

/* ---- sources ---- */

static void sources(void)
{
	char source[PCAP_BUF_SIZE] = "", host[PCAP_BUF_SIZE], port[PCAP_BUF_SIZE], name[PCAP_BUF_SIZE];
	char longest[2 * PCAP_BUF_SIZE];
	int type;

	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	say("create = %d %s", pcap_createsrcstr(source, PCAP_SRC_IFREMOTE, "1:2::3", "7", "eth0", error), source);
	say("create = %d %s", pcap_createsrcstr(source, PCAP_SRC_IFLOCAL, NULL, NULL, "d0", error), source);
	say("create = %d %s", pcap_createsrcstr(source, PCAP_SRC_FILE, NULL, NULL, NULL, error), error);
	say("create = %d %s", pcap_createsrcstr(source, PCAP_SRC_IFREMOTE, NULL, NULL, "d0", error), error);
	say("create = %d %s", pcap_createsrcstr(source, 9, NULL, NULL, "d0", error), error);
	say("create = %d %s", pcap_createsrcstr(source, PCAP_SRC_FILE, NULL, NULL, longest, error), error);
	say("create = %d %s", pcap_createsrcstr(NULL, PCAP_SRC_FILE, NULL, NULL, "a", error), error);
	say("parse = %d", pcap_parsesrcstr("rpcap://[1:2::3]:7/eth0", &type, host, port, name, error));
	say("  %d %s %s %s", type, host, port, name);
	say("parse = %d", pcap_parsesrcstr("file:///a/b", &type, host, port, name, error));
	say("  %d %s %s %s", type, text(host), text(port), name);
	say("parse = %d", pcap_parsesrcstr("d0", NULL, NULL, NULL, NULL, error));
	say("parse = %d %s", pcap_parsesrcstr("ftp://a/b", &type, host, port, name, error), error);
	say("parse = %d %s", pcap_parsesrcstr(NULL, &type, host, port, name, error), error);
	say("parse = %d %s", pcap_parsesrcstr(longest, &type, host, port, name, error), error);
	for (int i = 0; i < 6; i++) {
		static const char *const wrong[] = { "rpcap://a.example/d0", "rpcap://nosuch0", "d2", "file://",
						     "file:///nosuch", "ftp://a/b" };

		say("open %s = %d %s", wrong[i], pcap_open(wrong[i], 100, 0, 1, NULL, error) != NULL, error);
	}
}

/* Without a name, it is the first device. */
static void first_device(void)
{
	for (int i = 0; i < 2; i++) {
		pcap_t *p = pcap_open(i ? "rpcap://" : NULL, 100, 0, 1, NULL, error);

		say("first device: %d %d", p != NULL, pcap_snapshot(p));
		pcap_close(p);
	}
}

static void list(const char *source)
{
	pcap_if_t *all = NULL;
	const int is_file = strncmp(source, "file://", 7) == 0;

	say("list %s = %d", is_file ? "the directory" : source, pcap_findalldevs_ex(source, NULL, &all, error));
	for (pcap_if_t *one = all; one; one = one->next) {
		pcap_t *p = NULL;

		/* Others are those of the system's library, if there is one. */
		if (!is_file && if_nametoindex(one->name + 8) == 0 && strcmp(one->name + 8, "any") != 0)
			continue;
		/* Devices that are down cannot be opened. */
		if (is_file || (one->flags & PCAP_IF_UP))
			p = pcap_open(one->name, 100, 0, 1, NULL, error);
		say("  %.8s %s %d", one->name, is_file ? strrchr(one->name, '/') : one->description, p != NULL);
		if (p)
			pcap_close(p);
	}
	pcap_freealldevs(all);
}

static void lists(void)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, 100);
	char source[PCAP_BUF_SIZE];
	pcap_if_t *all;
	FILE *file;

	pcap_dump_close(pcap_dump_open(dead, "b.pcap"));
	pcap_dump_close(pcap_dump_open(dead, "a.pcap"));
	pcap_close(dead);
	file = fopen("text", "w");
	fputs("no packets\n", file);
	fclose(file);
	say("create = %d", pcap_createsrcstr(source, PCAP_SRC_FILE, NULL, NULL, ".", error));
	list(source);
	list("rpcap://");
	say("list = %d %s", pcap_findalldevs_ex("rpcap://a.example/", NULL, &all, error), error);
	say("list = %d %s", pcap_findalldevs_ex("d0", NULL, &all, error), error);
	say("list = %d %s", pcap_findalldevs_ex("file:///nosuch/", NULL, &all, error), error);
	say("list = %d %s", pcap_findalldevs_ex(NULL, NULL, &all, error), error);
	say("list = %d %s", pcap_findalldevs_ex("rpcap://", NULL, NULL, error), error);
}

/* ---- handles of the wrong kind ---- */

static void wrong_handle(const char *what, pcap_t *p)
{
	pcap_send_queue *queue = pcap_sendqueue_alloc(100);
	int size = 7;

	say("%s", what);
	say("  setmode = %d %s", pcap_setmode(p, MODE_STAT), pcap_geterr(p));
	say("  getevent = %d %s", pcap_getevent(p), pcap_geterr(p));
	say("  stats_ex = %d %s", pcap_stats_ex(p, &size) != NULL, pcap_geterr(p));
	say("  size %d", size);
	say("  transmit = %u %s", pcap_sendqueue_transmit(p, queue, 0), pcap_geterr(p));
	say("  live_dump = %d %s", pcap_live_dump(p, (char *)"/nosuch/file", 0, 0), pcap_geterr(p));
	say("  live_dump_ended = %d %s", pcap_live_dump_ended(p, 1), pcap_geterr(p));
	say("  setsampling = %d", pcap_setsampling(p) != NULL);
	say("  setbuff = %d", pcap_setbuff(p, 8 << 20));
	say("  setmintocopy = %d", pcap_setmintocopy(p, 0));
	say("  setuserbuffer = %d", pcap_setuserbuffer(p, 1000));
	say("  %s", p ? pcap_geterr(p) : "");
	pcap_sendqueue_destroy(queue);
}

static void wrong_handles(void)
{
	pcap_t *p = pcap_create("d0", error);

	wrong_handle("null", NULL);
	wrong_handle("created", p);
	say("activate = %d", pcap_activate(p));
	say("setbuff = %d %s", pcap_setbuff(p, 0), pcap_geterr(p));
	say("setmintocopy = %d %s", pcap_setmintocopy(p, -1), pcap_geterr(p));
	say("setuserbuffer = %d %s", pcap_setuserbuffer(p, -1), pcap_geterr(p));
	say("setuserbuffer = %d", pcap_setuserbuffer(p, 1));
	say("setmode = %d %s", pcap_setmode(p, MODE_MON), pcap_geterr(p));
	say("setmode = %d %s", pcap_setmode(p, 0x10), pcap_geterr(p));
	say("setmode = %d %s", pcap_setmode(p, -5), pcap_geterr(p));
	say("stats_ex = %d %s", pcap_stats_ex(p, NULL) != NULL, pcap_geterr(p));
	say("transmit = %u %s", pcap_sendqueue_transmit(p, NULL, 0), pcap_geterr(p));
	say("live_dump = %d %s", pcap_live_dump(p, NULL, 0, 0), pcap_geterr(p));
	say("live_dump = %d %s", pcap_live_dump(p, (char *)"/nosuch/file", 0, 0), pcap_geterr(p));
	say("live_dump = %d %s", pcap_live_dump(p, (char *)"/nosuch/file", -1, 0), pcap_geterr(p));
	say("live_dump_ended = %d %s", pcap_live_dump_ended(p, 1), pcap_geterr(p));
	pcap_close(p);
	p = pcap_open_dead(DLT_EN10MB, 100);
	wrong_handle("dead", p);
	pcap_close(p);
	p = pcap_open_offline("a.pcap", error);
	wrong_handle("file", p);
	pcap_close(p);
}

/* ---- buffers ---- */

/* Reads packets, and says their numbers. */
static void read_numbers(const char *what, pcap_t *p, int number)
{
	printf("%s:", what);
	while (number-- > 0) {
		struct pcap_pkthdr *header;
		const u_char *data;
		int status = pcap_next_ex(p, &header, &data);

		if (status == 0) {
			number++;
			continue;
		}
		if (status != 1) {
			printf(" %d %s", status, status == PCAP_ERROR ? pcap_geterr(p) : "");
			break;
		}
		printf(" %d", data[14]);
	}
	printf("\n");
}

static pcap_t *interrupted;

static void interrupt(int signal)
{
	(void)signal;
	pcap_breakloop(interrupted);
}

/* Has pcap_breakloop called from a signal handler, soon. */
static void interrupt_soon(pcap_t *p)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 50000 } };

	interrupted = p;
	signal(SIGALRM, interrupt);
	setitimer(ITIMER_REAL, &soon, NULL);
}

static void count_callback(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	(void)header;
	(void)data;
	++*(int *)user;
}

static void buffers(void)
{
	pcap_t *p = opened("rpcap://d0", PCAP_OPENFLAG_PROMISCUOUS, 10);
	struct weir_pcap_stat_ex *counts;
	struct pollfd fd;
	int size = 0, number = 0;

	filtered(p, "ether proto 0x88b5 and ether[14] & 1 = 1");
	if (pool)
		say("setbuff = %d %s", pcap_setbuff(p, 4 << 20), pcap_geterr(p));
	else
		say("setbuff = %d", pcap_setbuff(p, 4 << 20));
	say("setmintocopy = %d", pcap_setmintocopy(p, 0));
	say("setmintocopy again = %d", pcap_setmintocopy(p, 0));
	fd = (struct pollfd){ pcap_getevent(p), POLLIN, 0 };
	send_frames(1, 4, 60);
	say("poll = %d", poll(&fd, 1, -1));
	read_numbers("odd ones", p, 2);
	counts = (struct weir_pcap_stat_ex *)pcap_stats_ex(p, &size);
	say("stats_ex: size %d of %zu, received %u, dropped %u, captured %u, sent %u, lost %u", size, sizeof *counts,
	    counts->ps_recv, counts->ps_drop, counts->ps_capt, counts->ps_sent, counts->ps_netdrop);
	interrupt_soon(p);
	say("loop = %d", pcap_loop(p, -1, count_callback, (u_char *)&number));
	say("in the loop: %d", number);
	pcap_close(p);
}

/* Whatever was set before a buffer is changed is so afterwards. */
static void renewed(void)
{
	static const struct {
		const char *device, *filter;
		int protocol, link_type;
		pcap_direction_t direction;
	} all[] = { { "d0", "ether[14] & 1 = 1", 0, DLT_EN10MB, PCAP_D_OUT },
		{ "d0", "ether[14] & 1 = 1", 0x88b5, DLT_EN10MB, PCAP_D_INOUT },
		{ "any", "", 0x88b5, DLT_LINUX_SLL2, PCAP_D_IN } };
	pcap_t *other = opened("d0", 0, 1);
	struct pcap_pkthdr *header;
	const u_char *data;
	u_char alien[60];
	int status, large = 0;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		pcap_t *p = pcap_create(all[i].device, error);

		pcap_set_snaplen(p, 30);
		pcap_set_promisc(p, i < 2);
		pcap_set_timeout(p, 1);
		pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO);
		pcap_set_protocol_linux(p, all[i].protocol);
		pcap_activate(p);
		pcap_set_datalink(p, all[i].link_type);
		filtered(p, all[i].filter);
		pcap_setdirection(p, all[i].direction);
		pcap_setnonblock(p, 1, error);
		say("renewed: %d %d", pcap_setbuff(p, 1 << 20), pcap_setmintocopy(p, 0));
		say("  snap length %d, precision %d, link type %d, non-blocking %d", pcap_snapshot(p), pcap_get_tstamp_precision(p),
		    pcap_datalink(p), pcap_getnonblock(p, error));
		say("  promiscuous %d", system("ip -d link show d0 | grep -q 'promiscuity 1'") == 0);
		memcpy(alien, frame(1), sizeof alien);
		alien[13]++;
		pcap_sendpacket(sender, alien, sizeof alien);
		send_frames(2, 2, 60);
		pcap_sendpacket(other, frame(4), 60);
		pcap_sendpacket(other, frame(5), 60);
		pcap_setnonblock(p, 0, error);
		status = pcap_next_ex(p, &header, &data);
		large |= header->ts.tv_usec >= 1000000;
		say("  a packet: %d, %u of %u", status, header->caplen, header->len);
		say("  number %d", data[header->len == 60 ? 14 : 20]);
		pcap_close(p);
	}
	say("nanoseconds: %d", large);
	pcap_close(other);
}

/* ---- sampling ---- */

static void sampling(void)
{
	pcap_t *p = opened("d0", 0, 1), *dead = pcap_open_dead(DLT_EN10MB, 100);
	pcap_dumper_t *dumper = pcap_dump_open(dead, "times.pcap");
	struct pcap_samp *sample = pcap_setsampling(p);

	filtered(p, "ether proto 0x88b5");
	sample->method = PCAP_SAMP_1_EVERY_N;
	sample->value = 3;
	send_frames(1, 7, 60);
	read_numbers("one of three", p, 3);
	sample->method = PCAP_SAMP_NOSAMP;
	send_frames(8, 2, 60);
	read_numbers("all", p, 2);
	pcap_close(p);

	for (int i = 0; i < 10; i++) {
		struct pcap_pkthdr header = { { 1, i * 4000 }, 60, 60 };

		pcap_dump((u_char *)dumper, &header, frame(i));
	}
	pcap_dump_close(dumper);
	pcap_close(dead);
	p = pcap_open_offline("times.pcap", error);
	sample = pcap_setsampling(p);
	sample->method = PCAP_SAMP_FIRST_AFTER_N_MS;
	sample->value = 10;
	read_numbers("every 10 ms", p, 10);
	pcap_close(p);
}

/* ---- statistics ---- */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double stamp(const struct pcap_pkthdr *header)
{
	return (double)header->ts.tv_sec + 1e-6 * (double)header->ts.tv_usec;
}

static void take_report(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	struct weir_pcap_statistics *all = (struct weir_pcap_statistics *)user, one;

	if (header->caplen != sizeof one || header->len != sizeof one)
		say("a report of %u bytes", header->caplen);
	memcpy(&one, data, sizeof one);
	all->packets += one.packets;
	all->bytes += one.bytes;
}

static void statistics(void)
{
	pcap_t *p = opened("d0", PCAP_OPENFLAG_MAX_RESPONSIVENESS, 40);
	struct weir_pcap_statistics all = { 0, 0 };
	struct pcap_pkthdr *header;
	const u_char *data;
	double begin, last = 0;
	int reports = 0, early = 0, status;

	filtered(p, "ether proto 0x88b5 and ether[14] < 50");
	begin = now();
	say("setmode = %d", pcap_setmode(p, MODE_STAT));
	say("getevent = %d %s", pcap_getevent(p), pcap_geterr(p));
	say("live_dump = %d %s", pcap_live_dump(p, (char *)"/nosuch/file", 0, 0), pcap_geterr(p));
	send_frames(0, 20, 60);
	send_frames(30, 10, 100);
	send_frames(100, 20, 60); /* not for the filter */
	while (all.packets < 30 && (status = pcap_next_ex(p, &header, &data)) == 1) {
		take_report((u_char *)&all, header, data);
		reports++;
		early += stamp(header) < begin + 0.04 * reports - 0.001 || stamp(header) < last;
		last = stamp(header);
	}
	say("%llu packets, %llu bytes, %d too early", all.packets, all.bytes, early);
	say("dispatch = %d", pcap_dispatch(p, -1, take_report, (u_char *)&all));
	say("loop = %d", pcap_loop(p, 2, take_report, (u_char *)&all));
	say("%llu packets, %llu bytes", all.packets, all.bytes);
	interrupt_soon(p);
	say("loop = %d", pcap_loop(p, -1, take_report, (u_char *)&all));
	pcap_setnonblock(p, 1, error);
	say("next_ex, non-blocking = %d", pcap_setmode(p, MODE_STAT) || pcap_next_ex(p, &header, &data));
	pcap_setnonblock(p, 0, error);
	say("setmode = %d", pcap_setmode(p, MODE_CAPT));
	send_frames(1, 3, 60);
	read_numbers("packets again", p, 3);
	pcap_close(p);
}

/* ---- send queues ---- */

static void queues(void)
{
	static const u_char large[3000]; /* more than the device takes */
	static const int times[] = { 0, 20000, 20000, 50000, 10000 };
	const u_int each = sizeof(struct pcap_pkthdr) + 60;
	pcap_send_queue *queue = pcap_sendqueue_alloc(5 * each + 20);
	pcap_t *p = opened("d0", PCAP_OPENFLAG_MAX_RESPONSIVENESS, 1);
	struct pcap_pkthdr header = { { 1000, 0 }, 60, 60 }, *got;
	const u_char *data;
	double begin;
	int early = 0;

	filtered(p, "ether proto 0x88b5");
	for (int i = 0; i < 5; i++) {
		header.ts.tv_usec = times[i];
		if (pcap_sendqueue_queue(queue, &header, frame(i)) != 0)
			say("no room");
	}
	say("full = %d", pcap_sendqueue_queue(queue, &header, frame(5)));
	say("null = %d %d %d", pcap_sendqueue_queue(NULL, &header, frame(5)), pcap_sendqueue_queue(queue, NULL, frame(5)),
	    pcap_sendqueue_queue(queue, &header, NULL));
	say("%u packets of %u bytes", queue->len / each, queue->maxlen);
	begin = now();
	say("transmit = %d", pcap_sendqueue_transmit(sender, queue, 1) == queue->len);
	for (int i = 0; i < 5 && pcap_next_ex(p, &got, &data) == 1; i++) {
		if (data[14] != i)
			say("number %d at %d", data[14], i);
		early += stamp(got) < begin + 1e-6 * times[i] - 0.001;
	}
	say("%d too early", early);
	say("transmit = %d", pcap_sendqueue_transmit(sender, queue, 0) == queue->len);
	read_numbers("at once", p, 5);
	queue->len -= 10;
	say("cut = %d %s", pcap_sendqueue_transmit(sender, queue, 0) == 4 * each, pcap_geterr(sender));
	queue->len = queue->maxlen + 1;
	say("too long = %u %s", pcap_sendqueue_transmit(sender, queue, 0), pcap_geterr(sender));
	pcap_sendqueue_destroy(queue);
	pcap_sendqueue_destroy(NULL);
	read_numbers("cut", p, 4);
	queue = pcap_sendqueue_alloc(4000);
	header.caplen = header.len = sizeof large;
	say("large = %d", pcap_sendqueue_queue(queue, &header, large));
	say("transmit = %u %s", pcap_sendqueue_transmit(sender, queue, 0), pcap_geterr(sender));
	pcap_sendqueue_destroy(queue);
	pcap_close(p);
}

/* ---- dumps ---- */

/* Waits until the file has this size. */
static void grows(const char *name, long size)
{
	FILE *file = fopen(name, "r");

	while (fseek(file, 0, SEEK_END) == 0 && ftell(file) < size)
		usleep(1000);
	say("%s has %ld bytes", name, ftell(file));
	fclose(file);
}

/* Says whether the thread that dumps blocks the signals of programs. */
static void signals_of_the_thread(void)
{
	const unsigned long ours = 1ul << (SIGINT - 1) | 1ul << (SIGALRM - 1) | 1ul << (SIGCHLD - 1) |
				   1ul << (SIGTERM - 1) | 1ul << (SIGUSR1 - 1);
	int found = 0;

	/* It has its name soon after it has begun. */
	while (!found) {
		FILE *all = popen("exec cat /proc/$PPID/task/*/status", "r");
		char line[200], name[200] = "";
		unsigned long blocked;

		while (fgets(line, sizeof line, all)) {
			sscanf(line, "Name: %199s", name);
			if (strcmp(name, "weir-dump") != 0 || sscanf(line, "SigBlk: %lx", &blocked) != 1)
				continue;
			say("the thread blocks all = %d", (blocked & ours) == ours);
			found = 1;
		}
		pclose(all);
	}
}

static void dump(pcap_t *p, const char *name, int max_size, int max_packets)
{
	if (pcap_live_dump(p, (char *)name, max_size, max_packets) != 0)
		say("live_dump %s: %s", name, pcap_geterr(p));
}

static void dumps(void)
{
	pcap_t *p = opened("d0", PCAP_OPENFLAG_MAX_RESPONSIVENESS, 1);
	struct bpf_program program;
	struct pcap_stat stat;
	struct pcap_pkthdr *header;
	const u_char *data;
	int status;
	pid_t child;

	filtered(p, "ether proto 0x88b5");
	dump(p, "count.pcap", 0, 3);
	say("ended = %d", pcap_live_dump_ended(p, 0));
	signals_of_the_thread();
	say("next_ex = %d %s", pcap_next_ex(p, &header, &data), pcap_geterr(p));
	say("stats = %d %s", pcap_stats(p, &stat), pcap_geterr(p));
	say("sendpacket = %d %s", pcap_sendpacket(p, frame(0), 60), pcap_geterr(p));
	say("setnonblock = %d %s", pcap_setnonblock(p, 1, error), pcap_geterr(p));
	say("compile = %d", pcap_compile(p, &program, "ip", 1, 0));
	say("setfilter = %d %s", pcap_setfilter(p, &program), pcap_geterr(p));
	pcap_freecode(&program);
	say("getevent = %d %s", pcap_getevent(p), pcap_geterr(p));
	say("setbuff = %d %s", pcap_setbuff(p, 1 << 20), pcap_geterr(p));
	say("live_dump = %d %s", pcap_live_dump(p, (char *)"/nosuch/file", 0, 0), pcap_geterr(p));
	send_frames(1, 5, 60);
	say("ended = %d", pcap_live_dump_ended(p, 1));
	say("ended = %d", pcap_live_dump_ended(p, 0));
	read_numbers("afterwards", p, 2);
	say("stats = %d", pcap_stats(p, &stat));

	/* Room for one record of 60 bytes. */
	dump(p, "size.pcap", 24 + 16 + 60, 0);
	send_frames(6, 2, 60);
	say("ended = %d", pcap_live_dump_ended(p, 1));

	dump(p, "endless.pcap", 0, 0);
	send_frames(8, 4, 100);
	grows("endless.pcap", 24 + 4 * (16 + 100));
	interrupt_soon(p);
	say("ended = %d", pcap_live_dump_ended(p, 1));
	send_frames(12, 1, 60);
	read_numbers("afterwards", p, 1);

	/* Already its header finds no room. */
	dump(p, "/dev/full", 0, 0);
	say("ended = %d %s", pcap_live_dump_ended(p, 1), pcap_geterr(p));

	dump(p, "parent.pcap", 0, 1);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		say("in the child: ended = %d %s", pcap_live_dump_ended(p, 1), pcap_geterr(p));
		pcap_close(p);
		fflush(stdout);
		_exit(0);
	}
	say("the child ended = %d", waitpid(child, &status, 0) == child);
	say("status %d", status);
	say("ended = %d", pcap_live_dump_ended(p, 0));
	send_frames(14, 1, 60);
	say("ended = %d", pcap_live_dump_ended(p, 1));

	dump(p, "closed.pcap", 0, 0);
	send_frames(15, 2, 60);
	grows("closed.pcap", 24 + 2 * (16 + 60));
	pcap_close(p);
}

int main(int count, char **arguments)
{
	(void)arguments;
	pool = count > 1;
	sender = opened("rpcap://d1", 0, 1);
	sources();
	first_device();
	lists();
	wrong_handles();
	buffers();
	if (!pool)
		renewed();
	sampling();
	statistics();
	queues();
	dumps();
	pcap_close(sender);
	return 0;
}
