/*
 * A daemon: opens a device, and its child goes on without root and in a directory without devices; only then it
 * filters. The frames are sent by a second handle.
 */
#include "say.h"

#include <grp.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

static pcap_t *capture, *sender;
static u_char frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x12, 0x34 };

static void send_numbers(int first, int number)
{
	for (int i = 0; i < number; i++) {
		frame[14] = (u_char)(first + i);
		if (pcap_inject(sender, frame, sizeof frame) != (int)sizeof frame)
			say("pcap_inject: %s", pcap_geterr(sender));
	}
}

/* Waits as daemons do, then reads what is there. */
static void read_some(int number)
{
	while (number > 0) {
		struct pcap_pkthdr *header;
		const u_char *data;
		fd_set set;
		int descriptor = pcap_get_selectable_fd(capture), status;

		FD_ZERO(&set);
		FD_SET(descriptor, &set);
		if (select(descriptor + 1, &set, NULL, NULL, NULL) != 1)
			say("select fails");
		while (number > 0 && (status = pcap_next_ex(capture, &header, &data)) != 0) {
			if (status != 1) {
				say("pcap_next_ex = %d %s", status, pcap_geterr(capture));
				return;
			}
			say("%u of %u bytes, number %u", header->caplen, header->len, data[14]);
			number--;
		}
	}
}

static void child(void)
{
	char error[PCAP_ERRBUF_SIZE];
	struct bpf_program program;
	struct pcap_stat stat;

	say("chroot = %d", chroot("/proc/self/fdinfo"));
	say("setgroups = %d, setgid = %d, setuid = %d", setgroups(0, NULL), setgid(65534), setuid(65534));
	say("pcap_open_live: %d", pcap_open_live("rx0", 100, 1, 10, error) != NULL);
	say("pcap_setnonblock = %d", pcap_setnonblock(capture, 1, error));
	read_some(2);
	/* Of what comes now, only every second is wanted. */
	say("pcap_compile = %d", pcap_compile(capture, &program, "ether[14] & 1 = 1", 1, PCAP_NETMASK_UNKNOWN));
	say("pcap_setfilter = %d", pcap_setfilter(capture, &program));
	pcap_freecode(&program);
	send_numbers(100, 20);
	read_some(10);
	say("pcap_stats = %d, lost %u", pcap_stats(capture, &stat), stat.ps_drop);
	pcap_close(capture);
	pcap_close(sender);
}

static volatile sig_atomic_t ended;

static void count(int signal)
{
	(void)signal;
	ended++;
}

int main(void)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	int status;
	pid_t pid;

	setvbuf(stdout, NULL, _IONBF, 0);
	signal(SIGCHLD, count);
	capture = pcap_open_live("rx0", 100, 1, 10, error);
	sender = pcap_open_live("rx0", 100, 0, 10, error);
	if (capture == NULL || sender == NULL) {
		say("%s", error);
		return 1;
	}
	say("children: %d", waitpid(-1, &status, WNOHANG));
	send_numbers(1, 2);
	pid = fork();
	if (pid == 0) {
		setsid();
		child();
		/* The leak checker needs /proc, which is out of reach. */
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	say("the child: %d", status);
	pcap_close(capture);
	pcap_close(sender);
	say("children: %d, ended: %d", waitpid(-1, &status, WNOHANG), (int)ended);
	return 0;
}
