/* Texts of instructions and programs, and which programs are valid. */
#include "say.h"

static const uint32_t numbers[] = { 0, 1, 15, 16, 0x7fffffff, 0x80000000, 0xfffff004, 0xfffff029, 0xffffffff };

int main(void)
{
	static const int places[] = { INT32_MIN, -1000, -1, 0, 7, 999, 1000, 123456, INT32_MAX - 600 };
	struct bpf_insn program[40];
	struct bpf_program whole = { 40, program };
	unsigned code, round;
	int length;
	size_t i;

	for (code = 0; code <= 0xffff; code++)
		for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
			struct bpf_insn two[2] = { { (u_short)code, 0, 0, numbers[i] }, { BPF_RET, 0, 0, 1 } };

			/* All codes with one number, and one byte of them with all. */
			if (code > 0xff && i != code % 9)
				continue;
			say("%#x %#x: %s %d %d", code, numbers[i], text(bpf_image(two, places[code % 9])), bpf_validate(two, 1),
			    bpf_validate(two, 2));
		}
	for (i = 0; i < 0x60; i++) {
		struct bpf_insn one = { BPF_LD | BPF_B | BPF_ABS, 1, 2, 0xfffff000 + (uint32_t)i };

		say("%s", text(bpf_image(&one, 0)));
	}
	for (round = 0; round < 20000; round++) {
		length = 1 + (int)below(40);
		for (i = 0; i < (size_t)length; i++) {
			program[i].code = (u_short)below(below(8) == 0 ? 0x10000 : 0x100);
			program[i].jt = (u_char)below(below(8) == 0 ? 256 : 8);
			program[i].jf = (u_char)below(below(8) == 0 ? 256 : 8);
			program[i].k = below(2) ? below(20) : below(2) ? chance() : 0 - below(20);
		}
		if (below(2))
			program[length - 1].code = (u_short)(BPF_RET | (below(4) << 3));
		/* Most programs that begin alike have one flaw, if any. */
		say("%u: %d %d", round, bpf_validate(program, length), bpf_validate(program, (int)below((uint32_t)length)));
	}
	for (round = 0; round < 4; round++) {
		say("bpf_dump(%u)", round);
		bpf_dump(&whole, (int)round);
	}
	bpf_dump(&whole, -1);
	bpf_dump(&whole, 99);
	whole.bf_len = 0;
	for (round = 0; round < 4; round++)
		bpf_dump(&whole, (int)round);
	say("%d %d", bpf_validate(program, 0), bpf_validate(program, -1));
	return 0;
}
