/*
 * Devices that only the system's library serves. The namespace logs UDP packets to port 9 in group 5.
 * With an argument, it only looks for such devices.
 */
#include "say.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void send_udp(unsigned char number)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	sendto(fd, &number, 1, 0, (struct sockaddr *)&to, sizeof to);
	close(fd);
}

static pcap_t *handle;
static jmp_buf out;

/* The last byte, which is the number that was sent, but for what aligns it. */
static void show(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	uint32_t i = header->caplen;

	while (i > 0 && data[i - 1] == 0)
		i--;
	say("  %s %u of %u bytes, the last %#x, time %d", (const char *)user, header->caplen, header->len,
	    i == 0 ? 0 : data[i - 1], header->ts.tv_sec > 1000000000);
}

static void show_and_break(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	show(user, header, data);
	pcap_breakloop(handle);
}

static void show_and_leave(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	show(user, header, data);
	longjmp(out, 1);
}

static void numbers(const char *what, int length, int *list)
{
	int i;

	say("%s = %d", what, length);
	for (i = 0; i < length; i++)
		say("  %d", list[i]);
}

/* What can be asked of a handle, active or not. */
static void ask(pcap_t *p)
{
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	struct pcap_stat stats = { 7, 7, 7 };
	const struct timeval *timeout;
	int *list = NULL, result;

	say("pcap_datalink = %d", pcap_datalink(p));
	say("pcap_datalink_ext = %d", pcap_datalink_ext(p));
	say("pcap_snapshot = %d", pcap_snapshot(p));
	say("pcap_is_swapped = %d", pcap_is_swapped(p));
	say("pcap_major_version = %d", pcap_major_version(p));
	say("pcap_minor_version = %d", pcap_minor_version(p));
	say("pcap_bufsize = %d", pcap_bufsize(p));
	say("pcap_get_tstamp_precision = %d", pcap_get_tstamp_precision(p));
	say("pcap_file is null: %d", pcap_file(p) == NULL);
	say("pcap_fileno is one: %d", pcap_fileno(p) >= 0);
	say("pcap_get_selectable_fd is one: %d", pcap_get_selectable_fd(p) >= 0);
	timeout = pcap_get_required_select_timeout(p);
	say("pcap_get_required_select_timeout is null: %d", timeout == NULL);
	result = pcap_stats(p, &stats);
	say("pcap_stats = %d %u %u %u %s", result, stats.ps_recv, stats.ps_drop, stats.ps_ifdrop, text(pcap_geterr(p)));
	result = pcap_getnonblock(p, error);
	say("pcap_getnonblock = %d %s", result, text(error));
	say("pcap_can_set_rfmon = %d", pcap_can_set_rfmon(p));
	result = pcap_list_datalinks(p, &list);
	numbers("pcap_list_datalinks", result, list);
	pcap_free_datalinks(list);
	list = NULL;
	result = pcap_list_tstamp_types(p, &list);
	numbers("pcap_list_tstamp_types", result, list);
	pcap_free_tstamp_types(list);
}

/* Each function on a device, from the first to the last. */
static void use(const char *name)
{
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	pcap_t *p = handle = pcap_create(name, error);
	struct bpf_program program = { 0, NULL };
	struct bpf_insn all = { 6, 0, 0, 65535 }, none = { 6, 0, 0, 0 };
	struct pcap_pkthdr header, *its;
	pcap_dumper_t *dumper;
	const u_char *data;
	int result;

	say("pcap_create(%s): %s", name, text(error));
	if (p == NULL)
		return;
	ask(p);
	result = pcap_setfilter(p, &program);
	say("pcap_setfilter = %d %s", result, text(pcap_geterr(p)));
	result = pcap_compile(p, &program, "ip", 1, 0);
	say("pcap_compile = %d %s", result, text(pcap_geterr(p)));
	dumper = pcap_dump_open(p, "/dev/null");
	say("pcap_dump_open: %d %s", dumper != NULL, text(pcap_geterr(p)));
	result = pcap_next_ex(p, &its, &data);
	say("pcap_next_ex = %d %s", result, text(pcap_geterr(p)));
	say("pcap_set_snaplen = %d", pcap_set_snaplen(p, 1000));
	say("pcap_set_promisc = %d", pcap_set_promisc(p, 0));
	say("pcap_set_rfmon = %d", pcap_set_rfmon(p, 0));
	say("pcap_set_timeout = %d", pcap_set_timeout(p, 10));
	say("pcap_set_buffer_size = %d", pcap_set_buffer_size(p, 1 << 20));
	say("pcap_set_immediate_mode = %d", pcap_set_immediate_mode(p, 1));
	say("pcap_set_protocol_linux = %d", pcap_set_protocol_linux(p, 0));
	say("pcap_set_tstamp_type = %d", pcap_set_tstamp_type(p, PCAP_TSTAMP_ADAPTER));
	say("pcap_set_tstamp_precision(nano) = %d", pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO));
	say("pcap_set_tstamp_precision(micro) = %d", pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_MICRO));
	result = pcap_activate(p);
	say("pcap_activate = %d %s", result, text(pcap_geterr(p)));
	if (result < 0) {
		pcap_close(p);
		return;
	}
	result = pcap_activate(p);
	say("pcap_activate = %d %s", result, text(pcap_geterr(p)));
	result = pcap_set_snaplen(p, 100);
	say("pcap_set_snaplen = %d %s", result, text(pcap_geterr(p)));
	ask(p);
	result = pcap_set_datalink(p, 1);
	say("pcap_set_datalink(1) = %d %s", result, text(pcap_geterr(p)));
	say("pcap_set_datalink(228) = %d", pcap_set_datalink(p, DLT_IPV4));
	say("pcap_datalink = %d", pcap_datalink(p));
	result = pcap_compile(p, &program, "udp", 1, 0);
	say("pcap_compile(udp) = %d", result);
	if (result == 0) {
		say("pcap_setfilter = %d", pcap_setfilter(p, &program));
		pcap_freecode(&program);
	}
	say("pcap_set_datalink(239) = %d", pcap_set_datalink(p, DLT_NFLOG));
	say("pcap_datalink = %d", pcap_datalink(p));
	result = pcap_setdirection(p, PCAP_D_IN);
	say("pcap_setdirection = %d %s", result, text(pcap_geterr(p)));
	result = pcap_inject(p, "a packet", 8);
	say("pcap_inject = %d %s", result, text(pcap_geterr(p)));
	result = pcap_sendpacket(p, (const u_char *)"a packet", 8);
	say("pcap_sendpacket = %d %s", result, text(pcap_geterr(p)));
	dumper = pcap_dump_open(p, "/dev/null");
	say("pcap_dump_open: %d", dumper != NULL);
	if (dumper != NULL)
		pcap_dump_close(dumper);
	program.bf_len = 1;
	program.bf_insns = &all;
	say("pcap_setfilter(all) = %d", pcap_setfilter(p, &program));

	send_udp(0x11);
	data = pcap_next(p, &header);
	say("pcap_next: %d", data != NULL);
	show((u_char *)"next", &header, data);
	send_udp(0x12);
	say("pcap_next_ex = %d", pcap_next_ex(p, &its, &data));
	show((u_char *)"next_ex", its, data);
	send_udp(0x13);
	say("pcap_dispatch = %d", pcap_dispatch(p, -1, show, (u_char *)"dispatch"));
	send_udp(0x14);
	send_udp(0x15);
	say("pcap_loop = %d", pcap_loop(p, 2, show, (u_char *)"loop"));
	send_udp(0x16);
	say("pcap_loop = %d", pcap_loop(p, -1, show_and_break, (u_char *)"loop"));
	send_udp(0x17);
	if (setjmp(out) == 0)
		say("pcap_loop = %d", pcap_loop(p, -1, show_and_leave, (u_char *)"loop"));
	pcap_breakloop(p);
	say("pcap_dispatch = %d", pcap_dispatch(p, -1, show, (u_char *)"dispatch"));
	result = pcap_setnonblock(p, 1, error);
	say("pcap_setnonblock = %d %s", result, text(error));
	result = pcap_getnonblock(p, error);
	say("pcap_getnonblock = %d %s", result, text(error));
	say("pcap_dispatch = %d", pcap_dispatch(p, -1, show, (u_char *)"dispatch"));
	program.bf_insns = &none;
	say("pcap_setfilter(none) = %d", pcap_setfilter(p, &program));
	send_udp(0x18);
	poll(&(struct pollfd){ pcap_get_selectable_fd(p), POLLIN, 0 }, 1, -1);
	say("pcap_dispatch = %d", pcap_dispatch(p, -1, show, (u_char *)"dispatch"));
	pcap_close(p);
}

static void ring(int signal)
{
	(void)signal;
	pcap_breakloop(handle);
}

int main(int count, char **unused)
{
	static const char *const devices[] = {
		"nflog:5", "nflog:x", "nflog:5,", "nfqueue:9", "nfqueue:70000", "bluetooth0", "bluetooth-monitor", "usbmon0",
		"dbus-system", "dbus-nonsense", "no-such-device",
	};
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	pcap_if_t *all = NULL, *one;
	size_t i;

	(void)unused;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pcap_findalldevs(&all, error) == 0)
		for (one = all; one != NULL; one = one->next)
			say("%s %s %#x, addresses %d", one->name, text(one->description), one->flags, one->addresses != NULL);
	pcap_freealldevs(all);
	for (i = 0; i < sizeof devices / sizeof *devices; i++) {
		handle = pcap_open_live(devices[i], 1000, 0, 10, error);
		say("pcap_open_live(%s): %d %s", devices[i], handle != NULL, text(handle == NULL ? error : ""));
		if (handle != NULL)
			pcap_close(handle);
	}
	if (count > 1)
		return 0;
	use("nflog:5");
	use("usbmon9");

	handle = pcap_open_live("nflog:5", 1000, 0, 0, error);
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = ring }, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 50000 }, { 0, 50000 } }, NULL);
	say("pcap_loop with a signal = %d", pcap_loop(handle, -1, show, (u_char *)"none"));
	pcap_close(handle);
	return 0;
}
