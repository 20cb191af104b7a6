/* Running valid programs, most of them nonsense, on packets of chance. */
#include "say.h"

/* Every instruction that there is. */
static const u_short codes[] = {
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0c, 0x14, 0x15, 0x16, 0x1c, 0x1d, 0x20, 0x24, 0x25, 0x28, 0x2c,
	0x2d, 0x30, 0x34, 0x35, 0x3c, 0x3d, 0x40, 0x44, 0x45, 0x48, 0x4c, 0x4d, 0x50, 0x54, 0x5c, 0x60, 0x61, 0x64, 0x6c,
	0x74, 0x7c, 0x80, 0x81, 0x84, 0x87, 0x94, 0x9c, 0xa4, 0xac, 0xb1,
};

static int loads(u_short code)
{
	return (code & 7) <= 1 && ((code & 0xe0) == 0x20 || (code & 0xe0) == 0x40 || (code & 0xe0) == 0xa0);
}

static int has_memory(u_short code)
{
	return code == 0x02 || code == 0x03 || code == 0x60 || code == 0x61;
}

int main(void)
{
	static u_char packet[64];
	struct bpf_insn program[24];
	struct bpf_insn shift[] = { { 0x30, 0, 0, 0 }, { 0x07, 0, 0, 0 }, { 0x30, 0, 0, 1 }, { 0x6c, 0, 0, 0 }, { 0x16, 0, 0, 0 } };
	/* A loop that ends: X counts down from the first byte. */
	struct bpf_insn loop[] = {
		{ 0x30, 0, 0, 0 }, { 0x15, 3, 0, 0 }, { 0x14, 0, 0, 1 }, { 0x02, 0, 0, 3 }, { 0x05, 0, 0, 0xfffffffc }, { 0x60, 0, 0, 3 },
		{ 0x80, 0, 0, 0 }, { 0x16, 0, 0, 0 },
	};
	unsigned round, valid = 0;
	size_t i;

	for (i = 0; i < sizeof packet; i++)
		packet[i] = (u_char)chance();
	for (round = 0; round < 60000; round++) {
		uint32_t length = 3 + below(20), buffer = below(sizeof packet + 1), wire = below(2) ? buffer : chance();

		for (i = 0; i < length; i++) {
			struct bpf_insn *one = &program[i];

			one->code = codes[below(sizeof codes / sizeof *codes)];
			/* Programs that end at once tell little. */
			if (one->code == 0x06 && below(2))
				one->code = 0x07;
			one->jt = (u_char)below(3);
			one->jf = (u_char)below(3);
			one->k = below(4) == 0 ? chance() : below(8) == 0 ? 0xfffff000 + below(0x48) : below(40);
			if (loads(one->code) && below(2))
				one->k = below(8) ? below(30) : 0 - below(30);
			if (has_memory(one->code) && below(16))
				one->k = below(4);
			if (one->code == 0x05)
				one->k = below(3);
		}
		/* So the registers begin with something. */
		program[0] = (struct bpf_insn){ 0x30, 0, 0, below(8) };
		program[1] = (struct bpf_insn){ 0x07, 0, 0, 0 };
		program[length - 1] = (struct bpf_insn){ (u_short)(below(4) ? 0x16 : 0x06), 0, 0, chance() };
		packet[below(sizeof packet)] = (u_char)below(64);
		if (!bpf_validate(program, (int)length)) {
			say("%u: not valid", round);
			continue;
		}
		/* libpcap's memory begins with what was on the stack. */
		{
			struct bpf_insn whole[24 + 4];

			for (i = 0; i < 4; i++)
				whole[i] = (struct bpf_insn){ 0x02, 0, 0, (uint32_t)i };
			memcpy(whole + 4, program, length * sizeof *program);
			for (i = 4; i < length + 4; i++)
				if (has_memory(whole[i].code))
					whole[i].k %= 4;
			valid++;
			say("%u: %u of %u: %u", round, buffer, wire, bpf_filter(whole, packet, wire, buffer));
		}
	}
	say("%u valid", valid);
	for (i = 0; i < 256; i++) {
		packet[0] = (u_char)i;
		say("shift %zu %u loop %u", i, bpf_filter(shift, packet, 64, 64), bpf_filter(loop, packet, 33, 64));
	}
	say("%u", bpf_filter(NULL, packet, 64, 64));
	say("%u", bpf_filter(NULL, NULL, 0, 0));
	say("%u", bpf_filter(shift, packet, 1, 0));
	return 0;
}
