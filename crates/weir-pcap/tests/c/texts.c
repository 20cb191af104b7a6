/* Names of timestamp types, texts of status codes and errno. */
#include "say.h"

int main(void)
{
	static const char *const names[] = {
		"host", "HOST", "Host", "host_lowprec", "host_hiprec", "adapter", "adapter_unsynced", "host_hiprec_unsynced",
		"", "hos", "hosts", " host", "0",
	};
	int value;
	size_t i;

	for (value = -40; value <= 40; value++)
		say("%d: %s %s %s", value, text(pcap_tstamp_type_val_to_name(value)),
		    text(pcap_tstamp_type_val_to_description(value)), text(pcap_statustostr(value)));
	for (i = 0; i < sizeof names / sizeof *names; i++)
		say("pcap_tstamp_type_name_to_val(%s) = %d", text(names[i]), pcap_tstamp_type_name_to_val(names[i]));
	for (value = -3; value <= 150; value++)
		say("pcap_strerror(%d) = %s", value, text(pcap_strerror(value)));
	say("pcap_strerror(INT_MAX) = %s", text(pcap_strerror(INT32_MAX)));
	say("pcap_statustostr(INT_MIN) = %s", text(pcap_statustostr(INT32_MIN)));
	say("pcap_statustostr(INT_MAX) = %s", text(pcap_statustostr(INT32_MAX)));
	pcap_free_tstamp_types(NULL);
	pcap_free_tstamp_types(malloc(8));
	return 0;
}
