/*
 * A program that opens what its user names, as libpcap's examples do: devices, and source strings after "--".
 */
#include "say.h"

#include <weir/extensions.h>

int main(int number, char **names)
{
	int sources = 0;

	for (int i = 1; i < number; i++) {
		char error[PCAP_ERRBUF_SIZE] = "";
		pcap_if_t *list = NULL;
		pcap_t *p;

		if (strcmp(names[i], "--") == 0) {
			sources = 1;
			continue;
		}
		p = sources ? pcap_open(names[i], 100, 0, 100, NULL, error)
			    : pcap_open_live(names[i], 100, 0, 100, error);
		say("%s: %s", names[i], p != NULL ? "opened" : error);
		if (p != NULL) {
			if (weir_pcap_setfilter(p, "host in @secret/root.pcap") != 0)
				say("  set: %s", pcap_geterr(p));
			pcap_close(p);
		}
		if (!sources)
			continue;
		say("  listed: %s", pcap_findalldevs_ex(names[i], NULL, &list, error) == 0 ? "yes" : error);
		pcap_freealldevs(list);
	}
	return 0;
}
