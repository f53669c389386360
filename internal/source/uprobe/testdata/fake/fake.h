// Where tt-metal's FreeListOpt and BankManager keep what is looked at.
#include <stdint.h>

#define MAX_BLOCKS 40000

struct vector {
	void *begin, *end, *room;
};
struct list {
	void *vtable;
	uint64_t capacity, base, smallest, align;
	uint64_t other[3];
	struct vector addresses, sizes, previous, next, taken, in_use;
	int forgetful; // of this fake: takes and frees in turn, and keeps no table
};
struct optional {
	uint64_t value, present;
};
struct manager {
	uint32_t pool;
	uint64_t other[3];
	uint64_t banks;
};

// A buffer that is asked for: what has its size is behind a pointer, as in
// tt-metal since 0.79. The rest is what this fake's allocator needs to know.
struct buffer_impl {
	void *device;
	uint64_t size, padded, in_bank;
	struct manager *manager;
	struct list *list;
};
struct buffer {
	void *weak[2];
	struct buffer_impl *impl;
};
// Everything a program has of one device.
struct device {
	struct list list;
	struct manager manager;
	uint64_t allocator[8], provider[8];
};
