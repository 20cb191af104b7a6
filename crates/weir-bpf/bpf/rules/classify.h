/* SPDX-License-Identifier: (MIT OR Apache-2.0) */
/* Which of many conditions a packet's fields meet, by the tables of crates/weir-classify: src/tables.rs says what is where,
 * and searches the same way. The loader has the verifier know the size of the tables: no read is masked, each is compared. */
#pragma once
#include "filter/place.h"
#include "packet/packet.h"
#include "shared.h"

#define HAS_PROTOCOL 1
#define HAS_ADDRESS 2 /* the source; twice that: the destination */
#define HAS_PORT 8    /* the same */

#define MOST_STEPS 16 /* to find an address among 2 * 16,384 */
#define NO_CONDITION (~0u)

#define TAG_BITS 16 /* of the number of a tag */

/* An IPv4 address is in `high`. */
struct rule_address {
	__u64 high, low;
};

struct fields {
	struct rule_address addresses[2];
	__u16 ports[2];
	__u8 kind, protocol, there;
};

/* struct AddressTables, ValueTable and Shape of weir-classify. */
struct address_tables {
	__u32 roots[2], starts[2], classes[2];
	__u32 vectors, absent, used;
};

struct value_table {
	__u32 classes, vectors, absent, used;
};

struct shape {
	struct address_tables addresses[2];
	struct value_table ports[2];
	struct value_table kinds;
	__u32 directed;
	struct value_table tags;
	__u32 conditions, rest, words, summaries, last;
};

const volatile struct shape shape = {};

/* One value: all tables. The loader sets its size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 8);
	__uint(max_entries, 1);
} tables SEC(".maps");

/* The key of maps with one value; not on the stack, most of which filters use. */
static const __u32 only = 0;

/* Reads a number in the tables into `to`; goes to `out` if its place is none, which cannot be. */
#define TABLE(block, place, to)                                                                                        \
	({                                                                                                             \
		__u64 from = (__u32)(place);                                                                           \
		asm volatile("" : "+r"(from));                                                                         \
		if (from > shape.last)                                                                                 \
			goto out;                                                                                      \
		*(to) = *(const typeof(*(to)) *)((block) + from);                                                      \
	})

/* Returns whether the address of an end is found, and its class. */
static __always_inline bool class_of_ipv4(const __u8 *block, const volatile struct address_tables *tables,
                                          __u32 address, __u16 *class)
{
	__u32 low, high, start;
	TABLE(block, tables->roots[0] + (address >> 16) * 4, &low);
	TABLE(block, tables->roots[0] + (address >> 16) * 4 + 4, &high);
#pragma clang loop unroll(disable)
	for (int step = 0; step < MOST_STEPS && low < high; step++) {
		__u32 middle = (low + high + 1) / 2;
		TABLE(block, tables->starts[0] + middle * 4, &start);
		if (start <= address)
			low = middle;
		else
			high = middle - 1;
	}
	TABLE(block, tables->classes[0] + low * 2, class);
	return true;
out:
	return false;
}

static __always_inline bool class_of_ipv6(const __u8 *block, const volatile struct address_tables *tables,
                                          const struct rule_address *address, __u16 *class)
{
	__u32 low, high, root = address->high >> 48;
	__u64 start;
	TABLE(block, tables->roots[1] + root * 4, &low);
	TABLE(block, tables->roots[1] + root * 4 + 4, &high);
#pragma clang loop unroll(disable)
	for (int step = 0; step < MOST_STEPS && low < high; step++) {
		__u32 middle = (low + high + 1) / 2;
		__u64 wanted = address->high;
		TABLE(block, tables->starts[1] + middle * 16, &start);
		if (start == wanted) {
			wanted = address->low;
			TABLE(block, tables->starts[1] + middle * 16 + 8, &start);
		}
		if (start <= wanted)
			low = middle;
		else
			high = middle - 1;
	}
	TABLE(block, tables->classes[1] + low * 2, class);
	return true;
out:
	return false;
}

/* Where the vectors of a packet are, for each field that a condition is about: the ends' addresses and ports, the kind, and each tag:
 * in place of one that is not there, the outermost. `has_tags` is a constant. */
struct vectors {
	__u32 addresses[2], ports[2], kinds;
	__u32 *tags;
	bool has_tags; /* a condition is about them */
};

/* `tags`: of each the number as in struct Shape, the outermost in the lowest TAG_BITS. */
static __always_inline bool find_vectors_of_tags(const __u8 *block, __u64 tags, struct vectors *vectors)
{
	__u32 stride = (shape.summaries + shape.words) * sizeof(__u64);
	__u16 class;
#pragma clang loop unroll(full)
	for (int tag = 0; tag < MOST_RULE_TAGS; tag++) {
		__u32 number = tags >> tag * TAG_BITS & ((1 << TAG_BITS) - 1);
		if (!number)
			number = tags & ((1 << TAG_BITS) - 1);
		TABLE(block, shape.tags.classes + number * 2, &class);
		vectors->tags[tag] = shape.tags.vectors + class * stride;
	}
	return true;
out:
	return false;
}

static __always_inline bool find_vectors(const __u8 *block, const struct fields *fields, enum direction direction,
                                         __u64 tags, struct vectors *vectors)
{
	__u32 stride = (shape.summaries + shape.words) * sizeof(__u64);
	__u16 class;
#pragma clang loop unroll(full)
	for (int end = 0; end < 2; end++) {
		const volatile struct address_tables *tables = &shape.addresses[end];
		if (!tables->used)
			continue;
		if (!(fields->there & HAS_ADDRESS << end))
			class = tables->absent;
		else if (fields->kind == KIND_IPV6) {
			if (!class_of_ipv6(block, tables, &fields->addresses[end], &class))
				return false;
		} else if (!class_of_ipv4(block, tables, fields->addresses[end].high, &class))
			return false;
		vectors->addresses[end] = tables->vectors + class * stride;
	}
#pragma clang loop unroll(full)
	for (int end = 0; end < 2; end++) {
		const volatile struct value_table *table = &shape.ports[end];
		if (!table->used)
			continue;
		class = table->absent;
		if (fields->there & HAS_PORT << end)
			TABLE(block, table->classes + fields->ports[end] * 2, &class);
		vectors->ports[end] = table->vectors + class * stride;
	}
	if (shape.kinds.used) {
		__u32 kind = fields->kind * KIND_PROTOCOLS + (fields->there & HAS_PROTOCOL ? fields->protocol + 1 : 0);
		if (shape.directed)
			kind += direction * RULE_KINDS * KIND_PROTOCOLS;
		TABLE(block, shape.kinds.classes + kind * 2, &class);
		vectors->kinds = shape.kinds.vectors + class * stride;
	}
	if (vectors->has_tags)
		return find_vectors_of_tags(block, tags, vectors);
	return true;
out:
	return false;
}

/* Returns the number of the lowest bit of a word that is not 0. clang 14 cannot compile `__builtin_ctzll` for this: a product
 * with a de Bruijn sequence has a number of its own in its upper six bits for each power of 2. */
static __always_inline __u32 lowest_bit(__u64 word)
{
	/* clang-format off */
	static const __u8 numbers[64] = {
		0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4, 62, 55, 59, 36, 53, 51,
		43, 22, 45, 39, 33, 30, 24, 18, 12, 5, 63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
		44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
	};
	/* clang-format on */
	return numbers[(word & -word) * 0x03f79d71b4cb0a89ull >> 58];
}

/* Returns the word that is `at` bytes behind the beginning of all vectors, and-ed; 0 if there is none. */
static __always_inline __u64 word_of_all(const __u8 *block, const struct vectors *vectors, __u32 at)
{
	__u64 all = ~0ull, word;
#define AND(field, vector)                                                                                             \
	if (shape.field.used) {                                                                                        \
		TABLE(block, vectors->vector + at, &word);                                                             \
		all &= word;                                                                                           \
	}
	AND(addresses[0], addresses[0])
	AND(addresses[1], addresses[1])
	AND(ports[0], ports[0])
	AND(ports[1], ports[1])
	AND(kinds, kinds)
#undef AND
	if (vectors->has_tags) { /* what one of them meets */
		__u64 any;
		TABLE(block, vectors->tags[0] + at, &any);
#pragma clang loop unroll(full)
		for (int tag = 1; tag < MOST_RULE_TAGS; tag++) {
			TABLE(block, vectors->tags[tag] + at, &word);
			any |= word;
		}
		all &= any;
	}
	return all;
out:
	return 0;
}

#define MOST_WORDS (MOST_SUMMARIES * SUMMARY)

/* The conditions that hold for a packet and are not enough: all 0 between packets. A CPU has one, which it alone uses: bottom
 * halves are disabled while a program runs. */
struct candidates {
	__u64 words[MOST_WORDS];
	__u64 noted[MOST_SUMMARIES]; /* which words are not 0 */
	__u64 found;                 /* as `search` answers */
	__u32 answer;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct candidates);
	__uint(max_entries, 1);
} candidates SEC(".maps");

/* Stands for the filters that candidates ask (weir-filter/src/emit/ebpf/first.rs), which return the first condition whose
 * filter accepts the packet, or NO_CONDITION. `tag` is a stripped VLAN tag: presence << 32 | EtherType << 16 | contents, in
 * host byte order. */
static __noinline __u32 place_first(void *ctx, __u64 *words, __u64 length, __u64 tag)
{
	__u32 answer = PLACE;
	asm volatile("" : "+r"(answer) : "r"(ctx), "r"(words), "r"(length), "r"(tag) : "memory");
	return answer;
}

/* Finds the first condition that is enough, and notes those before it that are not. Sets `has_notes` if there are such. */
static __always_inline __u32 find_condition(const __u8 *block, const struct vectors *vectors, struct candidates *notes,
                                            bool *has_notes)
{
#pragma clang loop unroll(disable)
	for (__u32 summary = 0; summary < MOST_SUMMARIES && summary < shape.summaries; summary++) {
		__u64 words = word_of_all(block, vectors, summary * sizeof(__u64));
#pragma clang loop unroll(disable)
		for (int tried = 0; tried < SUMMARY && words; tried++) {
			__u32 bit = lowest_bit(words), word = summary * SUMMARY + bit;
			words &= words - 1;
			__u64 found = word_of_all(block, vectors, (shape.summaries + word) * sizeof(__u64));
			if (shape.rest) {
				__u64 rest = 0;
				TABLE(block, shape.rest + word * sizeof(__u64), &rest);
				__u64 enough = found & ~rest;
				rest &= found;
				if (enough)
					rest &= (enough & -enough) - 1;
				if (rest && word < MOST_WORDS) {
					notes->words[word] = rest;
					notes->noted[summary & (MOST_SUMMARIES - 1)] |= 1ull << bit;
					*has_notes = true;
				}
				found = enough;
			}
			if (found)
				return word * SUMMARY + lowest_bit(found);
		}
	}
out:
	return NO_CONDITION;
}

/* Forgets what was noted. */
static __always_inline void forget_notes(struct candidates *notes)
{
#pragma clang loop unroll(disable)
	for (__u32 summary = 0; summary < MOST_SUMMARIES && summary < shape.summaries; summary++) {
		__u64 words = notes->noted[summary];
		notes->noted[summary] = 0;
#pragma clang loop unroll(disable)
		for (int tried = 0; tried < SUMMARY && words; tried++) {
			__u32 word = summary * SUMMARY + lowest_bit(words);
			words &= words - 1;
			if (word < MOST_WORDS)
				notes->words[word] = 0;
		}
	}
}
