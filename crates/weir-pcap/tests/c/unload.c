/*
 * A library that is loaded while the program runs: lists devices, opens and closes one often, and looks for what is left.
 * The argument is the number of times.
 */
#include "say.h"

#include <dirent.h>
#include <dlfcn.h>

static int entries(const char *path)
{
	DIR *directory = opendir(path);
	int number = 0;

	while (readdir(directory) != NULL)
		number++;
	closedir(directory);
	return number;
}

/* Lines of the process's mappings with a word. */
static int mappings(const char *word)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[4096];
	int number = 0;

	while (fgets(line, sizeof line, file) != NULL)
		number += strstr(line, word) != NULL;
	fclose(file);
	return number;
}

static void ignore(u_char *user, const struct pcap_pkthdr *header, const u_char *data)
{
	(void)user, (void)header, (void)data;
}

#define FUNCTION(name) __typeof__(name) *name##_ = (__typeof__(name) *)dlsym(library, #name)

int main(int count, char **arguments)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	int executable = mappings("r-xp 00000000 00:00 0"), sockets = mappings("socket:"), taken = 0, i;
	int cycles = count > 1 ? atoi(arguments[1]) : 50;
	pcap_if_t *all;
	void *library = dlopen("libpcap.so.0.8", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		say("%s", dlerror());
		return 1;
	}
	FUNCTION(pcap_findalldevs);
	FUNCTION(pcap_freealldevs);
	FUNCTION(pcap_open_live);
	FUNCTION(pcap_compile);
	FUNCTION(pcap_setfilter);
	FUNCTION(pcap_freecode);
	FUNCTION(pcap_dispatch);
	FUNCTION(pcap_setnonblock);
	FUNCTION(pcap_close);
	say("pcap_findalldevs = %d", pcap_findalldevs_(&all, error));
	pcap_freealldevs_(all);
	for (i = 0; i < cycles; i++) {
		pcap_t *p = pcap_open_live_("rx0", 100, 1, 1, error);
		struct bpf_program program;

		if (p == NULL) {
			say("%d: %s", i, error);
			return 1;
		}
		if (pcap_compile_(p, &program, "ether[14] = 7", 1, PCAP_NETMASK_UNKNOWN) == 0) {
			taken += pcap_setfilter_(p, &program) == 0;
			pcap_freecode_(&program);
		}
		pcap_setnonblock_(p, 1, error);
		pcap_dispatch_(p, -1, ignore, NULL);
		pcap_close_(p);
	}
	say("%d filters set", taken);
	say("dlclose = %d", dlclose(library));
	say("%d descriptors more", entries("/proc/self/fd") - descriptors);
	say("%d threads more", entries("/proc/self/task") - threads);
	say("%d mappings of code more", mappings("r-xp 00000000 00:00 0") - executable);
	say("%d mappings of sockets more", mappings("socket:") - sockets);
	say("%d mappings of a library", mappings("pcap"));
	return 0;
}
