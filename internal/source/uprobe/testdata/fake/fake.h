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
struct manager {
	uint32_t pool;
	uint64_t other[3];
	uint64_t banks;
};
