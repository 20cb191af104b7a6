/* Names and descriptions of link types. */
#include "say.h"

int main(void)
{
	static const char *const odd[] = {
		"", "en10mb", "EN10MB", "En10Mb", "DLT_EN10MB", "dlt_en10mb", "LINKTYPE_ETHERNET", "ETHERNET", "1", " EN10MB",
		"EN10MB ", "EN10M", "EN10MBX", "DLT_", "DLT_DLT_RAW", "RAW", "raw", "docsis31_xra31", "User0", "PPP_WITHDIRECTION",
	};
	int value;
	size_t i;

	for (value = -70; value <= 65535; value++) {
		const char *name = pcap_datalink_val_to_name(value);
		const char *description = pcap_datalink_val_to_description(value);

		say("%d: %s %s %s", value, text(name), text(description),
		    text(pcap_datalink_val_to_description_or_dlt(value)));
		if (name != NULL)
			say("pcap_datalink_name_to_val(%s) = %d", text(name), pcap_datalink_name_to_val(name));
	}
	for (value = 1; value != 0; value = (int)((unsigned)value << 1))
		say("%d: %s %s", value, text(pcap_datalink_val_to_name(value)),
		    text(pcap_datalink_val_to_description_or_dlt(value)));
	say("%d: %s", INT32_MAX, text(pcap_datalink_val_to_description_or_dlt(INT32_MAX)));
	for (i = 0; i < sizeof odd / sizeof *odd; i++)
		say("pcap_datalink_name_to_val(%s) = %d", text(odd[i]), pcap_datalink_name_to_val(odd[i]));
	return 0;
}
