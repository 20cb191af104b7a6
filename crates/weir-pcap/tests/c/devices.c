/* The devices of the namespace it runs in. */
#include "say.h"

#include <netinet/in.h>
#include <netpacket/packet.h>

static size_t size(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_PACKET:
		return sizeof(struct sockaddr_ll);
	default:
		return sizeof(struct sockaddr);
	}
}

static const char *shown(const struct sockaddr *address)
{
	return address == NULL ? "NULL" : bytes(address, size(address));
}

/* What only the system's library has, which the sanitizers do not let ours load: see foreign.c. */
static int is_foreign(const char *name)
{
	static const char *const begins[] = { "bluetooth", "nflog", "nfqueue", "dbus-", "usbmon" };
	size_t i;

	for (i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return 1;
	return 0;
}

static void look_up(const char *name)
{
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	bpf_u_int32 net = 7, mask = 7;
	int result = pcap_lookupnet(name, &net, &mask, error);

	say("pcap_lookupnet(%s) = %d %#x %#x %s", text(name), result, net, mask, text(error));
}

int main(void)
{
	static const char *const names[] = {
		"any", "Any", "any0", "no-such-device", "", "a-name-that-is-much-too-long", "lo:1", "veth0-is-its-begin",
		"bluetooth-monitor", "my-bluetooth0", "usbmon0", "nflog", "nfqueue:3", "dbus-system", "netmap:eth0",
	};
	char error[PCAP_ERRBUF_SIZE] = "untouched";
	pcap_if_t *all = NULL, *one;
	pcap_addr_t *address;
	int result;
	size_t i;

	result = pcap_findalldevs(&all, error);
	say("pcap_findalldevs = %d %s", result, text(error));
	for (one = all; one != NULL; one = one->next) {
		if (is_foreign(one->name))
			continue;
		say("%s %s %#x", one->name, text(one->description), one->flags);
		for (address = one->addresses; address != NULL; address = address->next)
			say("  %s mask %s broadcast %s peer %s", shown(address->addr), shown(address->netmask),
			    shown(address->broadaddr), shown(address->dstaddr));
		look_up(one->name);
	}
	pcap_freealldevs(all);
	pcap_freealldevs(NULL);
	say("pcap_lookupdev = %s %s", text(pcap_lookupdev(error)), text(error));
	say("again it is the same: %d", pcap_lookupdev(error) == pcap_lookupdev(error));
	for (i = 0; i < sizeof names / sizeof *names; i++)
		look_up(names[i]);
	look_up(NULL);
	return 0;
}
