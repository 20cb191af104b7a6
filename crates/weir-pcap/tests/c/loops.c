/* Loops, and what a callback may do in them; files that the program shares, and pipes. */
#include "files.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static pcap_t *p;
static jmp_buf out;
static int seen, action;

static pcap_t *open_it(void)
{
	char error[PCAP_ERRBUF_SIZE];

	seen = 0;
	return p = pcap_open_offline("a.pcap", error);
}

static void callback(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct pcap_pkthdr *other;
	const u_char *bytes_;
	struct bpf_insn longer[] = { { 0x80, 0, 0, 0 }, { 0x25, 0, 1, 50 }, { 6, 0, 0, 1 }, { 6, 0, 0, 0 } };
	struct bpf_program program = { 4, longer };

	say_packet((char *)user, h, data);
	seen++;
	switch (action) {
	case 1:
		if (seen == 3)
			pcap_breakloop(p);
		break;
	case 2:
		if (seen == 3)
			longjmp(out, 7);
		break;
	case 3:
		say("  pcap_next_ex = %d", pcap_next_ex(p, &other, &bytes_));
		break;
	case 4:
		if (seen == 2)
			say("  pcap_setfilter = %d", pcap_setfilter(p, &program));
		break;
	case 5:
		if (seen == 2)
			say("  pcap_dispatch = %d", pcap_dispatch(p, 3, callback, (u_char *)"inner"));
		break;
	case 6:
		if (seen == 2)
			raise(SIGUSR1);
		break;
	case 7:
		say("  at %ld", ftell(pcap_file(p)));
		if (seen == 2)
			fseek(pcap_file(p), 24, SEEK_SET);
		if (seen == 8)
			fseek(pcap_file(p), 0, SEEK_END);
		break;
	}
}

static void on_signal(int number)
{
	(void)number;
	pcap_breakloop(p);
}

static void by_loop(int which, int count)
{
	int status;

	action = which;
	open_it();
	say("action %d, pcap_loop(%d)", which, count);
	status = setjmp(out);
	if (status != 0) {
		action = 0;
		say(" out by longjmp: %d", status);
	}
	status = pcap_loop(p, count, callback, (u_char *)"loop");
	say(" = %d, then %d", status, pcap_dispatch(p, 2, callback, (u_char *)"then"));
	pcap_close(p);
}

static void by_dispatch(int which, int count)
{
	int status;

	action = which;
	open_it();
	say("action %d, pcap_dispatch(%d)", which, count);
	do {
		status = pcap_dispatch(p, count, callback, (u_char *)"dispatch");
		say(" = %d", status);
	} while (status > 0);
	say(" then %d", pcap_dispatch(p, 2, callback, (u_char *)"then"));
	pcap_close(p);
}

/* A break that comes before anything is read. */
static void broken_before(void)
{
	struct pcap_pkthdr *h, header;
	const u_char *data;

	action = 0;
	open_it();
	pcap_breakloop(p);
	say("pcap_next_ex = %d", pcap_next_ex(p, &h, &data));
	say("pcap_next_ex = %d", pcap_next_ex(p, &h, &data));
	pcap_breakloop(p);
	say("pcap_next = %d", pcap_next(p, &header) != NULL);
	say("pcap_next = %d", pcap_next(p, &header) != NULL);
	pcap_breakloop(p);
	say("pcap_loop = %d", pcap_loop(p, 1, callback, (u_char *)"loop"));
	say("pcap_loop = %d", pcap_loop(p, 1, callback, (u_char *)"loop"));
	pcap_close(p);
}

/* A packet stays while the file is shared, and the program may move in the file. */
static void shared_file(void)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	long third;
	int i;

	open_it();
	for (i = 0; i < 3; i++)
		pcap_next_ex(p, &h, &data);
	third = ftell(pcap_file(p));
	say_packet("third", h, data);
	say("at %ld, descriptor %d", third, fileno(pcap_file(p)) == pcap_get_selectable_fd(p));
	for (i = 0; i < 3; i++)
		pcap_next_ex(p, &h, &data);
	say_packet("sixth", h, data);
	fseek(pcap_file(p), third, SEEK_SET);
	pcap_next_ex(p, &h, &data);
	say_packet("fourth", h, data);
	pcap_close(p);
}

/* A file of the program is read no further than the packets, and what follows is the program's. */
static void own_file(void)
{
	char error[PCAP_ERRBUF_SIZE], rest[40];
	struct pcap_pkthdr *h;
	const u_char *data;
	FILE *f = fopen("own", "w+b");
	int status;

	fputs("before", f);
	put_header(f, MICROSECONDS, 2, 4, 100, 1);
	put_packet(f, 1, 2, 10, 3);
	fputs("after", f);
	fseek(f, 6, SEEK_SET);
	p = pcap_fopen_offline(f, error);
	say("at %ld, same file %d", ftell(f), pcap_file(p) == f);
	status = pcap_next_ex(p, &h, &data);
	say("pcap_next_ex = %d at %ld", status, ftell(f));
	rest[fread(rest, 1, 39, f)] = '\0';
	say("%s", text(rest));
	pcap_close(p);
	unlink("own");
}

/* The writer waits until each packet is read, so a reader that wants more than the packet would wait forever. */
static void fed(FILE *to, int proceed)
{
	unsigned i;
	char c;

	put_header(to, MICROSECONDS, 2, 4, 100000, 1);
	fflush(to);
	for (i = 0; i < 4; i++) {
		if (read(proceed, &c, 1) != 1)
			_exit(1);
		put_packet(to, i, i, i == 2 ? 70000 : 30 + i, i);
		fflush(to);
	}
	if (read(proceed, &c, 1) != 1)
		_exit(1);
	put32(to, 5);
	fclose(to);
	_exit(0);
}

/* Reads from a pipe: of the program, or with a name. */
static void from_pipe(int named)
{
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	int ends[2], proceed[2], status, i;
	pid_t child;

	fflush(stdout);
	if (pipe(proceed) != 0 || (named ? mkfifo("fifo", 0600) : pipe(ends)) != 0)
		exit(1);
	child = fork();
	if (child == 0)
		fed(named ? fopen("fifo", "wb") : fdopen(ends[1], "wb"), proceed[0]);
	if (!named)
		close(ends[1]);
	p = named ? pcap_open_offline("fifo", error) : pcap_fopen_offline(fdopen(ends[0], "rb"), error);
	say("pipe: %s", p != NULL ? "open" : text(error));
	for (i = 0; i < 6; i++) {
		if (i < 5 && write(proceed[1], "x", 1) != 1)
			exit(1);
		status = pcap_next_ex(p, &h, &data);
		say("pcap_next_ex = %d %s", status, text(pcap_geterr(p)));
		if (status == 1)
			say_packet("pipe", h, data);
	}
	pcap_close(p);
	close(proceed[0]);
	close(proceed[1]);
	waitpid(child, &status, 0);
	say("writer %d", status);
	unlink("fifo");
}

/* Threads with a handle each, all with a filter. */
static void *in_thread(void *total)
{
	char error[PCAP_ERRBUF_SIZE];
	int round;

	for (round = 0; round < 20; round++) {
		pcap_t *own = pcap_open_offline("a.pcap", error);
		struct bpf_program program;
		struct pcap_pkthdr *h;
		const u_char *data;

		if (pcap_compile(own, &program, "len > 30", 1, 0) != 0 || pcap_setfilter(own, &program) != 0)
			exit(1);
		while (pcap_next_ex(own, &h, &data) == 1)
			*(unsigned *)total += sum(data, h->caplen);
		pcap_freecode(&program);
		pcap_close(own);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[4];
	unsigned totals[4] = { 0 };
	int i;

	for (i = 0; i < 4; i++)
		if (pthread_create(&all[i], NULL, in_thread, &totals[i]) != 0)
			exit(1);
	for (i = 0; i < 4; i++) {
		pthread_join(all[i], NULL);
		say("thread %d: %08x", i, totals[i]);
	}
}

int main(void)
{
	char *directory = own_directory();
	int which;

	packets("a.pcap", 12);
	signal(SIGUSR1, on_signal);
	for (which = 0; which <= 7; which++) {
		by_loop(which, -1);
		by_loop(which, 5);
		if (which != 2) {
			by_dispatch(which, -1);
			by_dispatch(which, 3);
			by_dispatch(which, 1);
		}
	}
	broken_before();
	shared_file();
	own_file();
	from_pipe(0);
	from_pipe(1);
	threads();
	unlink("a.pcap");
	return rmdir(directory);
}
