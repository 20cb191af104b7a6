/* Names of hosts, networks, ports and protocols, Ethernet addresses and the table of protocols. */
#include "say.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pcap/namedb.h>

/* The header does not declare it. */
struct eproto {
	char *s;
	u_short p;
};
extern struct eproto eproto_db[];

static void hosts(void)
{
	static const char *const names[] = {
		"localhost", "127.0.0.1", "10.1", "0x7f.1", "::1", "ip6-localhost", "fe80::1", "255.255.255.255", "1.2.3.4.5",
		"256.1.1.1", "no-such-host.invalid", "a name", "", "4294967295",
		"many", "both", "six",
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++) {
		bpf_u_int32 **list = pcap_nametoaddr(names[i]);
		struct addrinfo *all, *one;

		say("pcap_nametoaddr(%s) %s", text(names[i]), list == NULL ? "NULL" : "");
		for (; list != NULL && *list != NULL; list++)
			say("  %#x", **list);
		all = pcap_nametoaddrinfo(names[i]);
		say("pcap_nametoaddrinfo(%s) %s", text(names[i]), all == NULL ? "NULL" : "");
		for (one = all; one != NULL; one = one->ai_next)
			say("  %d %d %d %d %s", one->ai_flags, one->ai_family, one->ai_socktype, one->ai_protocol,
			    bytes(one->ai_addr, one->ai_addrlen));
		if (all != NULL)
			freeaddrinfo(all);
	}
}

static void numbers(void)
{
	static const char *const names[] = {
		"loopback", "link-local", "default", "http", "HTTP", "domain", "ssh", "syslog", "shell", "login", "exec", "who",
		"biff", "tftp", "sctp", "www", "80", "0", "65535", "65536", "-1", "+80", " 80", "80 ", "0x50", "1-2", "80-90",
		"90-80", "http-https", "ssh-domain", "domain-syslog", "syslog-shell", "shell-syslog", "-80", "80-", "-", "",
		"http-", "-http", "1-2-3", "http-nothing", "nothing-http", "iso-tsap", "iso-tsap-http", "netbios-ns", "70000-80", "80-70000",
		"1-99999999999", "1--2", "80- 90", "80 -90", " 80-90", "80-90x", "70000-who", "who-who", "who-http", "010-20",
		"99999999999", "tcp", "TCP", "udp", "icmp", "icmpv6", "ipv6-icmp", "ip", "ip6", "esp", "hopopt", "6", "nothing",
		"pup", "xns", "arp", "rarp", "sprite", "mopdl", "moprc", "decnet", "lat", "sca", "loopback", "vexp", "vprod",
		"atalk", "aarp", "IP", "8021q", "vlan", "mpls", "pppoed", "iso", "stp", "ipx", "netbeui", "ISO", "snap",
		"netbios", "clnp", "esis", "isis",
		/* Those that a test puts into databases of its own. */
		"inside", "INSIDE", "alias", "mixed", "mixed-mixed", "signals", "signals-1", "udp-only", "odd", "far",
	};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++) {
		const char *name = names[i];
		int result, port = -7, port2 = -7, proto = -7;

		say("pcap_nametonetaddr(%s) = %#x", text(name), pcap_nametonetaddr(name));
		result = pcap_nametoport(name, &port, &proto);
		say("pcap_nametoport(%s) = %d: %d %d", text(name), result, port, proto);
		port = proto = -7;
		result = pcap_nametoportrange(name, &port, &port2, &proto);
		/* Half a range may be stored before the other half is found missing. */
		if (result == 0)
			port = port2 = proto = -7;
		say("pcap_nametoportrange(%s) = %d: %d %d %d", text(name), result, port, port2, proto);
		say("pcap_nametoproto(%s) = %d", text(name), pcap_nametoproto(name));
		say("pcap_nametoeproto(%s) = %d", text(name), pcap_nametoeproto(name));
		say("pcap_nametollc(%s) = %d", text(name), pcap_nametollc(name));
	}
}

static void all_services(void)
{
	struct servent *entry;
	static char names[2000][64];
	int count = 0, i;

	setservent(1);
	while ((entry = getservent()) != NULL && count < 2000)
		snprintf(names[count++], 64, "%s", entry->s_name);
	endservent();
	for (i = 0; i < count; i++) {
		int port, proto, result = pcap_nametoport(names[i], &port, &proto);

		say("pcap_nametoport(%s) = %d: %d %d", names[i], result, result ? port : -7, result ? proto : -7);
	}
}

static void ethernet(void)
{
	static const char *const hosts_of_ethers[] = { "no-such-host.invalid", "", "printer", "PRINTER", "short" };
	static const char *const good[] = {
		"00:11:22:33:44:55", "00-11-22-33-44-55", "00.11.22.33.44.55", "001122334455", "0:1:2:3:4:5", "a:b:c:d:e:f",
		"A:B:C:D:E:F", "aB:Cd:eF:0:1:2", "0011.2233.4455", ":00:11:22:33:44:55", "g0:11:22:33:44:55",
	};
	size_t i;

	for (i = 0; i < sizeof good / sizeof *good; i++) {
		u_char *address = pcap_ether_aton(good[i]);

		say("pcap_ether_aton(%s) = %s", text(good[i]), bytes(address, 6));
		free(address);
	}
	for (i = 0; i < sizeof hosts_of_ethers / sizeof *hosts_of_ethers; i++) {
		u_char *address = pcap_ether_hostton(hosts_of_ethers[i]);

		say("pcap_ether_hostton(%s) = %s", text(hosts_of_ethers[i]), bytes(address, 6));
		free(address);
	}
}

static void ethers(void)
{
	static const char file[] =
		"# a comment\n"
		"00:11:22:33:44:55 one\n"
		"  66:77:88:99:aa:bb\ttwo # comment\n"
		"\n"
		"a:b:c:d:e:f three\n"
		"00:11:22:33:44 short\n"
		"00:11:22:33:44:55:66 long\n"
		"00-11-22-33-44-55 dashes\n"
		"0:1:2:3:4:5six\n"
		"not an address\n"
		"01:02:03:04:05:06\n"
		"01:02:03:04:05:06   \n"
		"01:02:03:04:05:07 \tseven  more words\n"
		"011:022:033:044:055:066 three-digits\n"
		"AA:BB:CC:DD:EE:FF UPPER\r\n"
		"01:02:03:04:05:08 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
		"01:02:03:04:05:09 after\n"
		"01:02:03:04:05:0a #hash\n"
		"01:02:03:04:05:0b last";
	struct pcap_etherent *entry;
	FILE *from = fmemopen((void *)(uintptr_t)file, sizeof file - 1, "r");
	int i;

	while ((entry = pcap_next_etherent(from)) != NULL)
		say("%s %s", bytes(entry->addr, 6), text(entry->name));
	say("end %d", pcap_next_etherent(from) == NULL);
	fclose(from);
	/* Files of chance, of the letters that matter. */
	for (i = 0; i < 3000; i++) {
		static const char letters[] = "0019afAFgz::::::  \t\n\n##-.\r";
		char some[200];
		size_t length = 1 + below(sizeof some - 1), at;

		for (at = 0; at < length; at++)
			some[at] = letters[below(sizeof letters - 1)];
		if (below(2) && length > 20)
			memcpy(some, "0:1:2:3:4:5 x", 13);
		from = fmemopen(some, length, "r");
		while ((entry = pcap_next_etherent(from)) != NULL)
			say("%d: %s %s", i, bytes(entry->addr, 6), text(entry->name));
		fclose(from);
	}
}

int main(void)
{
	struct eproto *entry;

	hosts();
	numbers();
	all_services();
	ethernet();
	ethers();
	for (entry = eproto_db; entry->s != NULL; entry++)
		say("eproto_db: %s %#x", text(entry->s), entry->p);
	say("eproto_db: %td, then %d", entry - eproto_db, entry->p);
	return 0;
}
