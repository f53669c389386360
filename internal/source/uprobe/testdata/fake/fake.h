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

// A buffer that is asked for, as far as this fake's allocator needs to know it.
struct buffer {
	uint64_t size, in_bank;
	struct manager *manager;
	struct list *list;
};
// Everything a program has of one device.
struct device {
	struct list list;
	struct manager manager;
	uint64_t allocator[8], provider[8];
};
