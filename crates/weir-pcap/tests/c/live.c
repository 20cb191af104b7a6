/* Captures on devices of a private network: d0 and d1 are connected, d2 is down. It begins without traffic. */
#include "say.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* The second sender is on the device where most captures are. */
static pcap_t *capture, *sender, *other;

/* The program runs with weir's pool behind it, perhaps from a source that has received packets only. */
static int pool, received_only;

/* ---- frames ---- */

static u_char frame_room[2048];

/* A UDP packet to this port, of this length with its Ethernet header, and perhaps behind tags. */
static const u_char *frame(const char *tags, int port, size_t length)
{
	static const u_char addresses[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
	static const u_char ip[] = { 8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 0x30, 0x39 };
	size_t at = 0, i;

	for (i = 0; i < sizeof frame_room; i++)
		frame_room[i] = (u_char)i;
	memcpy(frame_room, addresses, sizeof addresses);
	at = sizeof addresses;
	for (; *tags; tags++) {
		frame_room[at++] = *tags == 'S' ? 0x88 : 0x81;
		frame_room[at++] = *tags == 'S' ? 0xa8 : 0;
		frame_room[at++] = 0;
		frame_room[at++] = *tags == 'S' ? 9 : 5;
	}
	memcpy(frame_room + at, ip, sizeof ip);
	frame_room[at + sizeof ip] = (u_char)(port >> 8);
	frame_room[at + sizeof ip + 1] = (u_char)port;
	frame_room[length - 1] = 0xee;
	return frame_room;
}

static void send_frame(const char *tags, int port, size_t length)
{
	int sent = pcap_inject(sender, frame(tags, port, length), length);

	if (sent != (int)length)
		say("pcap_inject(%zu) = %d %s", length, sent, pcap_geterr(sender));
}

static void send_all(void)
{
	send_frame("", 53, 60);
	send_frame("C", 80, 64);
	send_frame("SC", 80, 80);
	send_frame("CC", 53, 80);
	send_frame("", 443, 1514);
	send_frame("C", 443, 1518);
	send_frame("", 53, 43);
}

/* ---- handles ---- */

struct wish {
	const char *device;
	int snapshot, promiscuous, timeout, immediate, precision, monitor, link_type, buffer, protocol, nonblocking;
};

static pcap_t *open_as(struct wish w)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	pcap_t *p = pcap_create(w.device, error);
	int status;

	if (w.snapshot)
		pcap_set_snaplen(p, w.snapshot);
	pcap_set_promisc(p, w.promiscuous);
	pcap_set_timeout(p, w.timeout);
	pcap_set_immediate_mode(p, w.immediate);
	pcap_set_tstamp_precision(p, w.precision);
	pcap_set_rfmon(p, w.monitor);
	pcap_set_buffer_size(p, w.buffer);
	pcap_set_protocol_linux(p, w.protocol);
	pcap_setnonblock(p, w.nonblocking, error);
	status = pcap_activate(p);
	say("activate %s = %d %s", w.device, status, text(pcap_geterr(p)));
	if (status < 0) {
		pcap_close(p);
		return NULL;
	}
	if (w.link_type)
		say("pcap_set_datalink = %d", pcap_set_datalink(p, w.link_type));
	return p;
}

/* The sender's device stays free for captures of any kind. */
static pcap_t *open_sender(const char *device)
{
	const char *source = getenv("WEIR_SOURCE");
	char *kept = source ? strdup(source) : NULL;
	pcap_t *p;

	unsetenv("WEIR_SOURCE");
	p = open_as((struct wish){ .device = device });
	if (kept)
		setenv("WEIR_SOURCE", kept, 1);
	free(kept);
	return p;
}

static pcap_t *usual(void)
{
	return open_as((struct wish){ .device = "d0", .timeout = 10, .promiscuous = 1 });
}

/* Waits for the descriptor, up to a time; returns whether it is readable. */
static int readable(pcap_t *p, int milliseconds)
{
	struct pollfd fd = { pcap_get_selectable_fd(p), POLLIN, 0 };

	return poll(&fd, 1, milliseconds) > 0;
}

/* Whether there is no packet. The descriptor of a pool may be readable for a moment without one. */
static int is_idle(pcap_t *p)
{
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	int status;

	if (!readable(p, 50))
		return 1;
	if (!pool)
		return 0;
	pcap_setnonblock(p, 1, error);
	status = pcap_next_ex(p, &h, &data);
	pcap_setnonblock(p, 0, error);
	return status == 0;
}

static void say_packet(const struct pcap_pkthdr *h, const u_char *data)
{
	struct timeval now;
	long long age;

	gettimeofday(&now, NULL);
	age = now.tv_sec - h->ts.tv_sec;
	say("  %u of %u bytes, %s: %s", h->caplen, h->len, age >= 0 && age < 60 ? "now" : "not now", bytes(data, h->caplen));
}

/* Reads what arrives within a moment. */
static void read_all(pcap_t *p)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	char error[PCAP_ERRBUF_SIZE];
	int status = 0;

	pcap_setnonblock(p, 1, error);
	do {
		while ((status = pcap_next_ex(p, &h, &data)) == 1)
			say_packet(h, data);
	} while (status == 0 && readable(p, 200));
	say("  then %d", status);
	pcap_setnonblock(p, 0, error);
}

static void filter(pcap_t *p, const char *text_)
{
	struct bpf_program program;
	int made = pcap_compile(p, &program, text_, 1, PCAP_NETMASK_UNKNOWN);
	int set = made == 0 ? pcap_setfilter(p, &program) : 0;

	say("filter %s: %d %d", text(text_), made, set);
	if (made == 0)
		pcap_freecode(&program);
}

/* ---- subjects ---- */

static void refusals(void)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	static const char *const names[] = { "nope", "d2", "a-name-that-is-too-long-for-linux", "", "lo" };
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++) {
		open_as((struct wish){ .device = names[i] });
		say("pcap_open_live = %p %s", (void *)pcap_open_live(names[i], 100, 1, 10, error), text(error));
	}
	open_as((struct wish){ .device = "d0", .monitor = 1 });
}

/* The threads of this process: a library must not add any. */
static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count - 2;
}

static void numbers(pcap_t *p)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	int *list, count, i;

	/* An event loop is not woken without a packet. */
	say("readable at first %d", readable(p, 50));
	say("datalink %d ext %d snapshot %d precision %d", pcap_datalink(p), pcap_datalink_ext(p), pcap_snapshot(p),
	    pcap_get_tstamp_precision(p));
	say("swapped %d version %d.%d", pcap_is_swapped(p), pcap_major_version(p), pcap_minor_version(p));
	say("descriptors %d timeout %p file %p", pcap_get_selectable_fd(p) == pcap_fileno(p) && pcap_fileno(p) > 2,
	    (const void *)pcap_get_required_select_timeout(p), (void *)pcap_file(p));
	say("nonblock %d, %d threads", pcap_getnonblock(p, error), threads());
	say("setnonblock %d %d", pcap_setnonblock(p, 1, error), pcap_getnonblock(p, error));
	say("setnonblock %d %d", pcap_setnonblock(p, 0, error), pcap_getnonblock(p, error));
	count = pcap_list_datalinks(p, &list);
	for (i = 0; i < count; i++)
		say("  link type %d: set %d", list[i], pcap_set_datalink(p, list[i]));
	say("set the first: %d", pcap_set_datalink(p, list[0]));
	pcap_free_datalinks(list);
	say("set another: %d %s", pcap_set_datalink(p, 105), text(pcap_geterr(p)));
	say("rfmon %d", pcap_can_set_rfmon(p));
	say("setters %d %d %d %d %d %s", pcap_set_snaplen(p, 9), pcap_set_promisc(p, 1), pcap_set_timeout(p, 1),
	    pcap_set_buffer_size(p, 99999), pcap_activate(p), text(pcap_geterr(p)));
	say("direction %d %d %d %d", pcap_setdirection(p, PCAP_D_IN), pcap_setdirection(p, PCAP_D_OUT),
	    pcap_setdirection(p, PCAP_D_INOUT), pcap_setdirection(p, 9));
}

static void sending(pcap_t *p)
{
	static u_char long_[70000];

	say("inject %d %s", pcap_inject(p, long_, 3), text(pcap_geterr(p)));
	say("inject %d %s", pcap_inject(p, long_, sizeof long_), text(pcap_geterr(p)));
	say("inject %d", pcap_inject(p, frame("", 9, 60), 60));
	say("sendpacket %d", pcap_sendpacket(p, frame("", 9, 60), 60));
	say("sendpacket %d %s", pcap_sendpacket(p, long_, 3), text(pcap_geterr(p)));
}

static void filters(void)
{
	static const char *const texts[] = { "udp", "ip", "port 53", "vlan", "vlan 5", "vlan 9", "not vlan", "vlan and port 443",
		"vlan 5 and vlan 5 and port 53", "greater 100", "len < 50", "ether[12:2] = 0x800", "udp[8] = 9", "not udp" };
	size_t i;

	for (i = 0; i < sizeof texts / sizeof *texts; i++) {
		capture = open_as((struct wish){ .device = "d0", .timeout = 10, .snapshot = 50 });
		filter(capture, texts[i]);
		send_all();
		read_all(capture);
		pcap_close(capture);
	}
	/* A filter applies to packets that are there already, too. */
	capture = usual();
	send_all();
	filter(capture, "port 80");
	/* The pool keeps packets that only the previous filter rejects. */
	if (!pool)
		send_all();
	filter(capture, pool ? "port 80 and port 443" : "port 443");
	send_frame("", 80, 60);
	send_frame("", 443, 60);
	read_all(capture);
	filter(capture, "");
	send_frame("", 80, 60);
	read_all(capture);
	pcap_close(capture);
}

static void count_packet(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	(void)data;
	say("  %s: %u", (char *)user, h->len);
}

/* One call ends with the kernel's block, and its timer may have split the packets between two. */
static void dispatch(int limit, int packets)
{
	int taken = 0;

	while (taken < packets) {
		int status = pcap_dispatch(capture, limit, count_packet, (u_char *)"dispatch");

		if (status < 0 || (limit > 0 && status > limit)) {
			say("pcap_dispatch(%d) = %d", limit, status);
			return;
		}
		taken += status;
		if (limit > 0)
			limit -= status;
	}
	say("pcap_dispatch took %d", taken);
}

static void loops(void)
{
	struct pcap_pkthdr h;
	int i;

	capture = usual();
	for (i = 0; i < 5; i++)
		send_frame("", 53, 60 + (size_t)i);
	say("pcap_loop(2) = %d", pcap_loop(capture, 2, count_packet, (u_char *)"loop"));
	dispatch(2, 2);
	dispatch(-1, 1);
	send_frame("", 53, 60);
	say("pcap_next = %d", pcap_next(capture, &h) != NULL);
	pcap_breakloop(capture);
	send_frame("", 53, 60);
	say("pcap_loop = %d", pcap_loop(capture, 1, count_packet, (u_char *)"loop"));
	say("pcap_loop = %d", pcap_loop(capture, 1, count_packet, (u_char *)"loop"));
	pcap_close(capture);
}

static void interrupt(int number)
{
	(void)number;
	errno = 77;
	pcap_breakloop(capture);
	if (errno != 77)
		say("pcap_breakloop changes errno");
}

static void *interrupt_later(void *capture_)
{
	usleep(50000);
	pcap_breakloop(capture_);
	return NULL;
}

static void breaks(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 50000 } };
	struct sigaction action = { .sa_handler = interrupt };
	pthread_t thread;

	capture = usual();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	say("broken by a signal: %d", pcap_loop(capture, -1, count_packet, NULL));
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	say("broken by a signal: %d", pcap_loop(capture, -1, count_packet, NULL));
	pthread_create(&thread, NULL, interrupt_later, capture);
	say("broken by a thread: %d", pcap_loop(capture, -1, count_packet, NULL));
	pthread_join(thread, NULL);
	pcap_close(capture);
}

/* The last of these wishes is for our library alone: the system's may keep the packet for good. */
static void lone(size_t wishes_)
{
	static const struct wish wishes[] = { { .device = "d0", .timeout = 20 },
		{ .device = "d0", .timeout = 10000, .immediate = 1 }, { .device = "d0", .timeout = 0 } };
	struct pcap_pkthdr *h;
	const u_char *data;
	size_t i;

	for (i = 0; i < wishes_; i++) {
		capture = open_as(wishes[i]);
		say("idle %d", is_idle(capture));
		send_frame("", 53, 60);
		say("readable %d", readable(capture, 3000));
		say("pcap_next_ex = %d", pcap_next_ex(capture, &h, &data));
		send_frame("", 53, 60);
		say("pcap_next_ex = %d", pcap_next_ex(capture, &h, &data));
		say("idle %d", is_idle(capture));
		pcap_close(capture);
	}
}

static void stats(void)
{
	struct pcap_stat s;
	int i;

	capture = usual();
	filter(capture, "port 53");
	for (i = 0; i < 10; i++)
		send_frame("", i % 2 ? 53 : 80, 60);
	read_all(capture);
	say("stats %d", pcap_stats(capture, &s));
	say("  %u received, %u dropped, %u before", s.ps_recv, s.ps_drop, s.ps_ifdrop);
	say("stats %d", pcap_stats(capture, &s));
	say("  %u received, %u dropped, %u before", s.ps_recv, s.ps_drop, s.ps_ifdrop);
	pcap_close(capture);
}

/* Sends a frame to the device of most captures, and one from it, unless the source does not see that. */
static void send_both(const char *tags, int type, size_t length)
{
	u_char *place = frame_room + 12 + 4 * strlen(tags);

	frame(tags, 53, length);
	place[0] = (u_char)(type >> 8);
	place[1] = (u_char)type;
	frame_room[11] = (u_char)length;
	say("in %d", pcap_inject(sender, frame_room, length));
	if (received_only)
		return;
	frame_room[11]++;
	say("out %d", pcap_inject(other, frame_room, length + 1));
}

static void directions(void)
{
	static const pcap_direction_t all[] = { PCAP_D_INOUT, PCAP_D_IN, PCAP_D_OUT };
	size_t i;

	for (i = 0; i < 3; i++) {
		capture = open_as((struct wish){ .device = "d0", .timeout = 10 });
		say("direction %d", pcap_setdirection(capture, all[i]));
		send_both("", 0x800, 60);
		if (!received_only)
			say("its own %d", pcap_inject(capture, frame("", 54, 70), 70));
		filter(capture, "greater 1");
		send_both("", 0x800, 62);
		read_all(capture);
		pcap_close(capture);
	}
}

static void protocols(void)
{
	static const int all[] = { 0x806, 0x8100 };
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	size_t i;

	for (i = 0; i < sizeof all / sizeof *all; i++) {
		capture = open_as((struct wish){ .device = "d0", .timeout = 10, .protocol = all[i] });
		pcap_setnonblock(capture, 1, error);
		send_both("", 0x800, 60);
		send_both("", 0x806, 62);
		send_both("C", 0x806, 64);
		send_both("CC", 0x806, 66);
		filter(capture, "greater 1");
		send_both("", 0x800, 68);
		send_both("", 0x806, 70);
		/* Lengths differ: libpcap loses tags here. */
		do
			while (pcap_next_ex(capture, &h, &data) == 1)
				say("  number %d", data[11]);
		while (readable(capture, 200));
		pcap_close(capture);
	}
}

static void nonblocking(void)
{
	char error[PCAP_ERRBUF_SIZE];

	capture = open_as((struct wish){ .device = "d0", .timeout = 10, .nonblocking = 1 });
	say("nonblock %d", pcap_getnonblock(capture, error));
	pcap_close(capture);
}

static void promiscuous(void)
{
	int on;

	for (on = 0; on < 2; on++) {
		capture = open_as((struct wish){ .device = "d0", .promiscuous = on });
		say("promiscuous %d", system("ip -d link show d0 | grep -q 'promiscuity 1'"));
		pcap_close(capture);
		say("and then %d", system("ip -d link show d0 | grep -q 'promiscuity 0'"));
	}
}

/* Nobody reads: a small buffer is soon full, a large one has room for 9 MB. */
static void buffers(void)
{
	static const struct {
		int size, most;
	} all[] = { { 6 << 20, 20000 }, { 48 << 20, 6000 } };
	struct pcap_stat s;
	int i, sent;

	for (i = 0; i < 2; i++) {
		capture = open_as((struct wish){ .device = "d0", .timeout = 10, .buffer = all[i].size });
		for (s.ps_drop = sent = 0; sent < all[i].most && s.ps_drop == 0; sent++) {
			send_frame("", 53, 1514);
			if (sent % 500 == 499 && pcap_stats(capture, &s) != 0)
				say("stats: %s", pcap_geterr(capture));
		}
		say("lost: %d", s.ps_drop > 0);
		pcap_close(capture);
	}
}

static void cooked(void)
{
	int types[] = { DLT_LINUX_SLL, DLT_LINUX_SLL2 };
	static const char *const texts[] = { "", "udp port 53", "inbound" };
	size_t i, j;

	for (i = 0; i < 2; i++)
		for (j = 0; j < 3; j++) {
			capture = open_as((struct wish){ .device = "any", .timeout = 10, .link_type = types[i] });
			filter(capture, texts[j]);
			send_frame("", 53, 60);
			send_frame("", 80, 60);
			read_all(capture);
			pcap_close(capture);
		}
}

static void child(void)
{
	pid_t process;

	capture = usual();
	send_frame("", 53, 60);
	fflush(stdout);
	process = fork();
	if (process == 0) {
		send_frame("", 53, 61);
		read_all(capture);
		fflush(stdout);
		_exit(0);
	}
	waitpid(process, NULL, 0);
	pcap_close(capture);
}

static void precise(void)
{
	static const int all[] = { PCAP_TSTAMP_PRECISION_NANO, PCAP_TSTAMP_PRECISION_MICRO };
	struct pcap_pkthdr *h;
	const u_char *data;
	int i, j, large;

	for (j = 0; j < 2; j++) {
		capture = open_as((struct wish){ .device = "d0", .timeout = 10, .precision = all[j] });
		say("precision %d", pcap_get_tstamp_precision(capture));
		for (i = large = 0; i < 20; i++) {
			send_frame("", 53, 60);
			if (pcap_next_ex(capture, &h, &data) == 1)
				large |= h->ts.tv_usec >= 1000000;
			usleep(1000);
		}
		say("nanoseconds: %d", large);
		pcap_close(capture);
	}
}

static void gone(void)
{
	capture = usual();
	send_frame("", 53, 60);
	say("down %d", system("ip link set d0 down"));
	say("up %d", system("ip link set d0 up"));
	read_all(capture);
	send_frame("", 54, 60);
	read_all(capture);
	say("gone %d", system("ip link del d0"));
	say("pcap_loop = %d %s", pcap_loop(capture, -1, count_packet, NULL), text(pcap_geterr(capture)));
	pcap_close(capture);
}

/* Without the race in which the system's library runs these filters where they match nothing. */
static void inbound(void)
{
	capture = open_as((struct wish){ .device = "d0", .timeout = 10 });
	filter(capture, "inbound");
	send_frame("", 53, 60);
	read_all(capture);
	filter(capture, "outbound");
	send_frame("", 53, 60);
	read_all(capture);
	pcap_close(capture);
}

int main(int count, char **words)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count > 1 && strcmp(words[1], "ours") == 0) {
		sender = open_sender("d1");
		lone(3);
		inbound();
		pcap_close(sender);
		return 0;
	}
	pool = count > 1;
	received_only = pool && strcmp(words[1], "received") == 0;
	refusals();
	sender = open_sender("d1");
	capture = usual();
	numbers(capture);
	sending(capture);
	pcap_close(capture);
	capture = open_as((struct wish){ .device = "any", .promiscuous = 1 });
	numbers(capture);
	sending(capture);
	pcap_close(capture);
	capture = open_as((struct wish){ .device = "d0", .snapshot = 65, .timeout = 10 });
	send_all();
	read_all(capture);
	pcap_close(capture);
	capture = usual();
	send_all();
	read_all(capture);
	pcap_close(capture);
	filters();
	loops();
	breaks();
	lone(2);
	stats();
	other = open_sender("d0");
	directions();
	protocols();
	pcap_close(other);
	nonblocking();
	promiscuous();
	buffers();
	cooked();
	child();
	precise();
	pcap_close(sender);
	sender = open_sender("d1");
	gone();
	pcap_close(sender);
	return 0;
}
