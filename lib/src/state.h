/* The private side of libttmon. Everything that belongs to one process lives in
 * struct state, on pages that the kernel wipes in a forked child: there the
 * library finds itself as new, whatever other threads were doing at the fork.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_STATE_H
#define TTMON_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ttmon.h"
#include "ttmon_ledger.h"

/* Not in every C library that we may be loaded with, and not needed there. */
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dladdr
#pragma weak pthread_key_create
#pragma weak pthread_once
#pragma weak pthread_setspecific

#define INTERNAL __attribute__((visibility("hidden")))

/* An open-addressing table from keys (not 0) to numbers. */
struct table {
	uint64_t *keys;
	uint32_t *values;
	uint32_t capacity, used;
};

/* What is known of a list besides its record. */
struct list_info {
	uint64_t object;    /* by which it is named; 0: closed */
	uint64_t allocator; /* the allocator's address; 0: not known */
	uint32_t sites;     /* first of its sites; they are linked by site_next */
	uint32_t plain;     /* its site without tag and stack */
	uint64_t cleared;   /* blocks that a clear took from buffers, which may yet free them */
};

/* A block that a mass free gave back: left behind if the list is cleared next. */
struct pending {
	uint32_t list, site;
	uint64_t bytes;
	int64_t time;
};

/* The sections of a ledger, and those of its work, of failures and of gaps behind them. */
enum { WORK_SECTION = TTMON_SECTIONS, OPS_SECTION, NAMES_SECTION, FAILURES_SECTION, FAILED_BLOCKS_SECTION, GAPS_SECTION, ALL_SECTIONS };

/* How far the program was with its allocations, at a few moments: what it left
 * is judged by when it was allocated among all others, not by the clock, which a
 * slow disk or a compiler moves. */
enum { MOMENTS = 64 };
struct progress {
	uint64_t done;         /* allocations */
	uint64_t every;        /* a moment is noted after so many of them; 0: one */
	int64_t time[MOMENTS]; /* when every, 2 * every, ... were done */
	uint32_t noted;
};

struct state {
	_Atomic uint32_t lock;
	_Atomic uint32_t stage; /* enum stage */
	uint32_t generation;    /* of this process's ledger, for what threads remember */
	_Atomic uint32_t stacks;
	_Atomic int error; /* what a failed system call said, or 0 */
	const char *_Atomic doing;
	char sentence[256];

	struct ttmon_ledger *ledger;
	int fd;
	int pid; /* when the ledger was made: a vfork child has the same pages */
	uint64_t device, inode; /* of the file, to know the descriptor again */
	uint64_t backed[ALL_SECTIONS]; /* bytes of each section that have memory */
	uint32_t refused[ALL_SECTIONS]; /* times that there was no more, since there was some */
	char path[128];

	struct table blocks; /* list and address -> slot + 1 */
	struct table objects; /* address of a list -> list */
	uint64_t last_object; /* that was looked for in it, and */
	uint32_t last_list;   /* what it was; forgotten when a list comes or goes */
	struct table sites, frames, nodes, strings;
	struct list_info *lists;
	uint32_t *site_next;
	struct frame_origin *origins; /* of frames: what they were read from */
	struct pending *pending;
	uint32_t pending_used, pending_capacity;
	uint32_t free_block; /* slot + 1; linked through the free slots' addresses */
	uint32_t free_list;  /* linked through list_info.sites */
	uint32_t free_site;  /* linked through site_next */
	uint32_t groups, handles;
	struct table programs; /* address of a program -> where its circular buffers end */
	struct table cores;    /* address of a program -> cores of the one that ends last */
	struct progress progress;
	int64_t failure_credit, failure_time; /* ns that copies of failed allocators may take, as of then */
	uint64_t failures;                    /* numbers that were given */
	struct table tensors; /* hash of a tensor -> its text */
	bool no_tensors;      /* $TTMON_TENSORS is 0 */
	bool late;
	bool events; /* what happens is told, and times are exact */
	struct work *_Atomic work; /* work.c: NULL until a chip reports programs */
};

enum stage { STAGE_NEW, STAGE_READY, STAGE_OFF };

/* A tensor that is being made. */
struct tensor {
	bool known;
	uint8_t rank, type, page, memory; /* 0xff: not known */
	uint32_t shape[8];
};

/* What a thread is in the middle of. */
struct thread {
	uint64_t allocator;  /* made last */
	uint64_t asked;      /* bytes of the buffer that is being allocated */
	uint32_t group;      /* of its lists */
	uint32_t pool, banks; /* of the next lists */
	uint32_t nth;
	uint32_t dividing, divided; /* sub-devices that are being made, and allocators that were made for them */
	uint32_t sub_device;        /* of the allocator, + 1 */
	uint32_t last_list, last_slot; /* of the last allocation, + 1; for the chips that follow */
	uint32_t generation; /* that last_* belong to */
	uint64_t buffer;     /* that is being allocated; 0: none */
	uint64_t buffer_caller;
	uint64_t program;    /* whose circular buffers are being laid out, or checked */
	bool laid;           /* one of its circular buffers has been */
	bool mass;           /* in a mass free */
	bool kernels;        /* tt-metal allocates for its program cache */
	bool told;           /* how much the last allocation was asked for */
	bool silent;         /* blocks found in a late list have no place in the program */
	struct tensor tensor; /* that is being made */
	struct tags *tags;
};

extern INTERNAL _Thread_local struct thread self __attribute__((tls_model("initial-exec")));

/* The state of this process, or NULL where memory for it cannot be had. */
INTERNAL struct state *state(void);

/* region.c: the file. */
INTERNAL bool region_make(struct state *s);
INTERNAL bool region_reserve(struct state *s, int section, uint32_t records);
INTERNAL void *memory(size_t bytes);  /* private, not for children; NULL if there is none */
INTERNAL void *record(struct state *s, int section, uint32_t n);
INTERNAL void complain(struct state *s, const char *doing, int error);
INTERNAL int64_t now(void);

/* table.c */
INTERNAL bool table_put(struct table *t, uint64_t key, uint32_t value);
INTERNAL uint32_t table_get(const struct table *t, uint64_t key); /* 0: not there */
INTERNAL void table_drop(struct table *t, uint64_t key);

/* list.c, block.c, chip.c: what happens to lists, blocks and chips. All take the
 * lock themselves. */
struct shape {
	uint64_t object, allocator, capacity, base, alignment, smallest;
	uint32_t group, pool, banks, nth;
	uint32_t sub_device; /* as in the ledger */
	bool own;
	uint8_t late; /* as in the ledger */
};
/* Lists are named by the address of tt-metal's object, or by OWN + a number. */
#define OWN ((uint64_t)1 << 63)
INTERNAL bool list_made(struct state *s, const struct shape *shape);
INTERNAL bool list_allocated(struct state *s, uint64_t object, uint64_t address, uint64_t bytes, uint64_t asked);
INTERNAL bool list_freed(struct state *s, uint64_t object, uint64_t address);
/* inherit.c: what a forked child has to know of its parent's lists. */
INTERNAL void keep_list(const struct shape *shape);
INTERNAL void keep_chip(uint32_t group, uint64_t id, int32_t logical);
INTERNAL void keep_no_list(uint64_t object);
INTERNAL void keep_no_allocator(uint64_t allocator);
INTERNAL uint32_t new_group(struct state *s); /* that neither this process nor its parent has; with the lock held */
INTERNAL bool inherits(void); /* lists of a parent, where this process has none of its own yet */
INTERNAL void inherit(struct state *s);
/* failure.c: a request that a list had no room for. */
struct request {
	uint64_t bytes, asked, page, limit;
	uint32_t shards;
	uint8_t bottom_up, known; /* as in struct ttmon_failure */
};
INTERNAL void list_failed(struct state *s, uint64_t object, const struct request *r);
/* A circular buffer on these cores (a rectangle, or 0) ends there; 0: the program is laid out again. */
INTERNAL void program_laid(struct state *s, uint64_t program, uint64_t end, uint32_t cores);
INTERNAL void program_gone(struct state *s, uint64_t program);
INTERNAL void program_clashed(struct state *s, uint64_t program);
/* Traces need more than the trace region has, over all banks. */
INTERNAL void trace_refused(struct state *s, uint64_t needed, uint64_t region);
INTERNAL bool failed_lately(const struct state *s);
enum { TTMON_FAILURE_RECORDS = 64, TTMON_FAILED_BLOCK_RECORDS = 1 << 17 };
INTERNAL void list_cleared(struct state *s, uint64_t object);
INTERNAL void list_cut(struct state *s, uint64_t object, uint64_t low, uint64_t high); /* both 0: undone */
/* The allocators that were made since then are of sub-devices, but which are whose is not known. */
INTERNAL void sub_devices_unsure(struct state *s, int64_t since);
INTERNAL void list_closed(struct state *s, uint64_t object);
INTERNAL void list_chip(struct state *s, uint64_t object, uint64_t id, int32_t logical);
INTERNAL void allocator_closed(struct state *s, uint64_t allocator);
INTERNAL void chip_opened(struct state *s, uint64_t id, int32_t logical, uint32_t group);
INTERNAL void chip_closed(struct state *s, uint64_t id);
/* Tells whether all is known of the list and the chip now. */
INTERNAL bool chip_seen(struct state *s, uint64_t id, uint32_t pool, uint64_t asked);

/* site.c: tags, stacks, and what they hold. The lock is held. */
INTERNAL uint32_t site_of(struct state *s, uint32_t list, uint32_t tag, uint32_t node, uint32_t tensor, bool kept);
INTERNAL uint64_t site_key(const struct ttmon_site *site, uint32_t turn);
INTERNAL uint32_t text(struct state *s, const char *bytes, size_t n);
INTERNAL uint32_t node_of(struct state *s, uint32_t parent, uint32_t frame);
INTERNAL uint32_t current_tag(struct state *s);
INTERNAL uint32_t current_tensor(struct state *s); /* tensor.c: its text; 0: not known */
INTERNAL uint32_t current_stack(struct state *s);
INTERNAL uint32_t stack_of(struct state *s, uint32_t mode);
INTERNAL uint32_t frame_new(struct state *s, const struct ttmon_frame *f);

/* python.c: the lines that this thread is in. The lock is held. */
INTERNAL uint32_t python_stack(struct state *s, uint32_t parent);
INTERNAL void python_find(void);
INTERNAL void stacks_prepare(void); /* finds what stacks need, before the lock is taken */

/* metal.c */
INTERNAL const char *metal_path(void);

/* The description of a section in the ledger. */
static inline struct ttmon_section *section_of(const struct state *s, int section)
{
	if (section == GAPS_SECTION)
		return &s->ledger->gaps;
	if (section >= FAILURES_SECTION)
		return &s->ledger->failure[section - FAILURES_SECTION];
	return section < TTMON_SECTIONS ? &s->ledger->section[section] : &s->ledger->work[section - TTMON_SECTIONS];
}

INTERNAL void wait_for(_Atomic uint32_t *word);
INTERNAL void wake(_Atomic uint32_t *word);

static inline void enter(struct state *s)
{
	uint32_t free = 0;
	if (!atomic_compare_exchange_strong_explicit(&s->lock, &free, 1, memory_order_acquire, memory_order_relaxed))
		wait_for(&s->lock);
}

static inline void leave(struct state *s)
{
	if (atomic_exchange_explicit(&s->lock, 0, memory_order_release) == 2)
		wake(&s->lock);
}

/* Between change and changed the ledger is not whole. */
static inline void change(struct state *s)
{
	_Atomic uint64_t *epoch = (_Atomic uint64_t *)&s->ledger->epoch;
	atomic_store_explicit(epoch, atomic_load_explicit(epoch, memory_order_relaxed) | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static inline void changed(struct state *s)
{
	_Atomic uint64_t *epoch = (_Atomic uint64_t *)&s->ledger->epoch;
	atomic_store_explicit(epoch, (atomic_load_explicit(epoch, memory_order_relaxed) | 1) + 1, memory_order_release);
}

#endif
