/* Handles without packets, of files and of devices: what they say of themselves, and what they refuse. */
#include "files.h"

#include <errno.h>

#define E(call) do { errno = 0; int r_ = (int)(call); say("%s = %d %s", #call, r_, text(pcap_geterr(p))); } while (0)

static void ignore(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	(void)user;
	(void)h;
	(void)data;
}

static void properties(pcap_t *p)
{
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	struct pcap_stat stats;

	E(pcap_datalink(p));
	E(pcap_datalink_ext(p));
	E(pcap_snapshot(p));
	E(pcap_is_swapped(p));
	E(pcap_major_version(p));
	E(pcap_minor_version(p));
	E(pcap_file(p) != NULL);
	E(pcap_fileno(p));
	E(pcap_get_selectable_fd(p) > 0);
	E(pcap_get_required_select_timeout(p) != NULL);
	E(pcap_get_tstamp_precision(p));
	E(pcap_bufsize(p));
	E(pcap_stats(p, &stats));
	E(pcap_getnonblock(p, error));
	say("%s", text(error));
	E(pcap_setnonblock(p, 1, error));
	say("%s", text(error));
	E(pcap_getnonblock(p, error));
	E(pcap_setnonblock(p, 0, error));
	E(pcap_setdirection(p, PCAP_D_IN));
	E(pcap_setdirection(p, PCAP_D_INOUT));
	E(pcap_setdirection(p, (pcap_direction_t)7));
	E(pcap_inject(p, "abc", 3));
	E(pcap_sendpacket(p, (const u_char *)"abc", 3));
	E(pcap_inject(p, "abc", 0));
	E(pcap_sendpacket(p, (const u_char *)"abc", -1));
	E(pcap_sendpacket(p, (const u_char *)"abc", 0));
}

static void lists(pcap_t *p)
{
	int *list = NULL;

	E(pcap_list_datalinks(p, &list));
	if (list != NULL)
		say("%d", list[0]);
	pcap_free_datalinks(list);
	E(pcap_set_datalink(p, 1));
	E(pcap_set_datalink(p, 12));
	E(pcap_set_datalink(p, 101));
	E(pcap_set_datalink(p, 113));
	E(pcap_set_datalink(p, -5));
	E(pcap_set_datalink(p, 99999));
	list = NULL;
	E(pcap_list_tstamp_types(p, &list));
	if (list != NULL)
		say("%d", list[0]);
	pcap_free_tstamp_types(list);
}

static void setters(pcap_t *p)
{
	E(pcap_set_snaplen(p, 10));
	E(pcap_set_snaplen(p, -1));
	E(pcap_set_promisc(p, 1));
	E(pcap_set_rfmon(p, 1));
	E(pcap_can_set_rfmon(p));
	E(pcap_set_timeout(p, 1));
	E(pcap_set_tstamp_type(p, 0));
	E(pcap_set_tstamp_type(p, 77));
	E(pcap_set_immediate_mode(p, 1));
	E(pcap_set_buffer_size(p, 1));
	E(pcap_set_buffer_size(p, -1));
	E(pcap_set_tstamp_precision(p, 1));
	E(pcap_set_tstamp_precision(p, 7));
	E(pcap_set_protocol_linux(p, 3));
	E(pcap_get_tstamp_precision(p));
}

static void reading(pcap_t *p)
{
	struct pcap_pkthdr *h = NULL, header;
	const u_char *data = NULL;
	struct bpf_insn accept[] = { { 6, 0, 0, 100 } }, wrong[] = { { 0xffff, 0, 0, 0 } };
	struct bpf_program program = { 1, accept }, invalid = { 1, wrong }, empty = { 0, accept }, none = { 0, NULL };

	E(pcap_dispatch(p, 1, ignore, NULL));
	E(pcap_loop(p, 1, ignore, NULL));
	E(pcap_next(p, &header) != NULL);
	E(pcap_next_ex(p, &h, &data));
	say("header %d", h != NULL);
	pcap_breakloop(p);
	E(pcap_next_ex(p, &h, &data));
	E(pcap_next_ex(p, &h, &data));
	pcap_breakloop(p);
	E(pcap_dispatch(p, -1, ignore, NULL));
	E(pcap_dispatch(p, -1, ignore, NULL));
	pcap_breakloop(p);
	E(pcap_loop(p, -1, ignore, NULL));
	E(pcap_loop(p, -1, ignore, NULL));
	E(pcap_setfilter(p, &program));
	E(pcap_setfilter(p, &invalid));
	E(pcap_setfilter(p, &empty));
	E(pcap_setfilter(p, &none));
}

static void all(pcap_t *p)
{
	properties(p);
	lists(p);
	setters(p);
	reading(p);
	pcap_perror(p, "prefix");
	pcap_close(p);
}

int main(void)
{
	static const int link_types[] = { 1, 0, 12, 101, 113, 9999, -1, 0x10005 };
	static const int snaps[] = { 65535, 0, -1, 262144, 2147483647 };
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	pcap_t *p;
	size_t i;
	unsigned options;
	char *directory = own_directory();

	for (i = 0; i < sizeof link_types / sizeof *link_types; i++) {
		say("pcap_open_dead(%d)", link_types[i]);
		all(pcap_open_dead(link_types[i], 65535));
	}
	for (i = 0; i < sizeof snaps / sizeof *snaps; i++) {
		p = pcap_open_dead(1, snaps[i]);
		E(pcap_snapshot(p));
		pcap_close(p);
	}
	for (i = 0; i < 4; i++) {
		p = pcap_open_dead_with_tstamp_precision(1, 100, (u_int)i);
		E(pcap_get_tstamp_precision(p));
		pcap_close(p);
	}
	say("file");
	all(pcap_open_offline(packets("a.pcap", 9), error));
	say("file, nanoseconds");
	all(pcap_open_offline_with_tstamp_precision("a.pcap", 1, error));
	unlink("a.pcap");
	say("device");
	all(pcap_create("lo", error));
	say("%s", text(error));
	say("version %s", pcap_lib_version());
	for (options = 0; options < 4; options++) {
		int status = pcap_init(options, error);

		say("pcap_init(%u) = %d %s", options, status, text(error));
	}
	say("pcap_init(0) = %d", pcap_init(0, error));
	strcpy(error, "untouched");
	say("pcap_lookupdev after pcap_init: %d", pcap_lookupdev(error) != NULL);
	say("%s", text(error));
	return rmdir(directory);
}
