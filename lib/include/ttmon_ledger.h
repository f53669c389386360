/* The ledger: a file in which a process keeps the state of its allocators of
 * device memory, for readers outside. This header is the layout; the page
 * docs/ledger.md explains how to read it. Little-endian, natural alignment.
 *
 * One process writes, under a lock of its own that no reader takes. A reader
 * copies and looks at the epoch before and after. Sections lie at fixed places
 * of a sparse file, and only what is in use takes memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_LEDGER_H
#define TTMON_LEDGER_H

#include <stdint.h>

#ifdef __cplusplus
#define TTMON_ASSERT static_assert
#else
#define TTMON_ASSERT _Static_assert
#endif

#define TTMON_LEDGER_MAGIC "TTMONLDG"
#define TTMON_LEDGER_VERSION 1
#define TTMON_LEDGER_PREFIX "ttmon-ledger-" /* file names: ttmon-ledger-PID-RANDOM */

/* A part of the file: records of one kind, from 0. */
struct ttmon_section {
	uint64_t offset;   /* in the file */
	uint32_t size;     /* bytes of a record */
	uint32_t capacity; /* records that it can ever have */
	uint32_t used;     /* records in use, counted from the first; never falls */
	uint32_t reserved;
};

enum {
	TTMON_CHIPS,   /* struct ttmon_chip */
	TTMON_LISTS,   /* struct ttmon_ledger_list; 0 is none */
	TTMON_SITES,   /* struct ttmon_site; 0 is none */
	TTMON_FRAMES,  /* struct ttmon_frame; 0 is none */
	TTMON_NODES,   /* struct ttmon_node; 0 is the empty stack */
	TTMON_STRINGS, /* bytes: each text is its length (u32), then the bytes; 0 is the empty text */
	TTMON_BLOCKS,  /* struct ttmon_block */
	TTMON_EVENTS,  /* struct ttmon_event: a ring, of which event_count tells; used is 0 where there is none */
	TTMON_SECTIONS
};

/* Requests that failed. Nothing is kept before the first. */
enum {
	TTMON_FAILURES,      /* struct ttmon_failure */
	TTMON_FAILED_BLOCKS, /* struct ttmon_failed_block */
	TTMON_FAILURE_SECTIONS
};

/* Further parts: the programs that ran on the chips, as tt-metal's real-time
 * profiler reports them. Nothing is kept before the first chip has one. */
enum {
	TTMON_WORK,  /* struct ttmon_work: one for each chip */
	TTMON_OPS,   /* struct ttmon_op: TTMON_CHIP_OPS for each record of TTMON_WORK, in the same order */
	TTMON_NAMES, /* struct ttmon_name; 0 is none */
	TTMON_WORK_SECTIONS
};

enum { TTMON_CHIP_OPS = 256, TTMON_CHIP_GAPS = 8 };

/* What a thread of the process waits for. */
enum { TTMON_WAIT_FINISH = 1, TTMON_WAIT_EVENT };

struct ttmon_wait {
	int64_t since;   /* 0: free */
	uint32_t kind;   /* TTMON_WAIT_*; written before since */
	uint32_t thread; /* its number in the kernel, in the process's namespace */
};

/* What the process asked its chips to do. Threads change it without a lock. */
struct ttmon_host {
	uint64_t enqueued; /* programs, each on all chips of its mesh */
	uint64_t replayed; /* traces */
	uint64_t waits;    /* how often a thread has waited for the chips */
	int64_t last_enqueue; /* or replay */
	int64_t last_finish;  /* all that was enqueued before, on all queues, has completed */
	uint32_t last_name;   /* of the operation that was enqueued last; 0: not known */
	uint16_t queues;      /* command queues of a device that were used: 1, or 2 for several; 0: none yet */
	uint16_t sub_devices; /* the most that a device was divided into; 0: it never was */
	struct ttmon_wait wait[8]; /* threads that wait now; those that found no place are not in it */
};

/* Flags of a ledger. */
enum {
	TTMON_LATE = 1,       /* attached when allocators were there already */
	TTMON_FULL = 2,       /* something found no room: "lost" counts what */
	TTMON_NO_SITES = 4,   /* stacks or tags found no room: some blocks have none */
	TTMON_STACKS_ON = 8,  /* Python lines are recorded */
	TTMON_NATIVE_ON = 16, /* native frames are recorded */
	TTMON_ENDED = 32,     /* the process came to its end in good order */
	TTMON_PER_CORE = 64,  /* an allocator had several lists of L1, one for each core: their sum is no figure */
};

struct ttmon_ledger {
	char magic[8];    /* written last: without it there is no ledger yet */
	uint32_t version; /* TTMON_LEDGER_VERSION */
	uint32_t header;  /* bytes of this header */
	uint64_t epoch;   /* odd while the ledger is being changed; moves by two with each event */
	int32_t pid;      /* of the writer, in its own namespace */
	uint32_t flags;
	uint64_t start_ticks;   /* of the writer, as in /proc/PID/stat */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	int64_t real_ns;        /* CLOCK_REALTIME and CLOCK_MONOTONIC at one instant; */
	int64_t monotonic_ns;   /* all times in the ledger are CLOCK_MONOTONIC */
	uint64_t lost;          /* blocks that found no room; figures are too low from then on */
	uint64_t unknown;       /* frees of blocks that were not there, blocks over others */
	uint64_t unmatched;     /* allocations in lists that are not known */
	char run[64];           /* $TTMON_RUN, which `ttmon run` sets */
	char library[256];      /* path of the tt-metal library, or empty */
	char comm[16];
	struct ttmon_section section[TTMON_SECTIONS];
	uint64_t event_count; /* ever told; event n is in record n % capacity */
	struct ttmon_section work[TTMON_WORK_SECTIONS]; /* a header of 624 bytes has neither these nor host */
	struct ttmon_host host;
	struct ttmon_section failure[TTMON_FAILURE_SECTIONS]; /* a header of 872 bytes ends before it */
	struct ttmon_section gaps; /* struct ttmon_gap: TTMON_CHIP_GAPS for each record of TTMON_WORK; a header of 920 bytes ends before it */
};

struct ttmon_chip {
	uint64_t id;     /* UMD's chip_unique_id */
	int32_t logical; /* the number that the process knows it by */
	uint32_t open;   /* 1 while a device object stands for it */
};

/* States of what a chip reports. */
enum {
	TTMON_WORK_OFF,   /* no longer: the device was closed, or its profiler ended */
	TTMON_WORK_ON,    /* tt-metal said that records will come */
	TTMON_WORK_FOUND, /* records came; the beginning was not seen */
};

/* How complete records are. */
enum {
	TTMON_WORK_LOSSLESS,   /* 0.80 and later: the chip waits rather than lose one */
	TTMON_WORK_LOSSY,      /* 0.71 to 0.79: programs faster than the chip's reader are lost */
	TTMON_WORK_UNREADABLE, /* tt-metal's records are not laid out as they are known here: nothing is counted */
};

/* What ran on a chip, in ticks of its clock. One thread writes; a reader looks
 * at the sequence before and after. All counts are since the ledger was made. */
struct ttmon_work {
	uint32_t sequence; /* odd while the record and its operations are being changed */
	int32_t logical;   /* the number that the process knows the chip by */
	uint8_t state;     /* TTMON_WORK_OFF, … */
	uint8_t loss;      /* TTMON_WORK_LOSSLESS, … */
	uint8_t reserved[6];
	double ticks_per_ns; /* of all ticks here: they are scaled where it changes */
	uint64_t programs;
	uint64_t busy;        /* ticks in which a program ran: intervals that overlap count once */
	uint64_t gaps, gap;   /* pauses of at most TTMON_GAP_NS between two programs, and how long they were */
	uint64_t longest_gap; /* of all pauses */
	uint64_t longest;     /* program */
	uint64_t first_start, last_end; /* device time, since the device was opened last */
	uint64_t refused;     /* records that cannot be true: they end before they begin */
	uint64_t unprofiled;  /* programs without an id: of these nothing is known */
	uint64_t stalls, stalled; /* times that the dispatcher was held up by the profiler, and how long */
	int64_t since;        /* records are counted since then */
	int64_t last_record;  /* when the last one came */
	uint32_t last_name;   /* its operation */
	uint32_t longest_name;
	/* Two moments, at least a second apart, and what was so then: for a reader
	 * that looks once. The later one first. */
	struct {
		int64_t time;
		uint64_t busy;
	} mark[2];
	uint64_t mark_end[2]; /* last_end at these moments */
};

/* A pause above this is idle time, below it the host was late. */
#define TTMON_GAP_NS 100000000

/* What the programs of one operation took of one chip. The first record of a
 * chip has all that found no room. */
struct ttmon_op {
	uint64_t calls, ticks, longest;
	uint32_t name; /* 0: not known */
	uint32_t reserved;
};

/* One of a chip's longest pauses between two programs, in no order. It changes
 * with its record of TTMON_WORK. */
struct ttmon_gap {
	uint64_t ticks; /* 0: unused */
	int64_t end;    /* when the next program began, within the time that its record took to arrive */
	uint32_t after; /* the operation that ended before it; 0: not known */
	uint32_t reserved;
};

struct ttmon_name {
	uint32_t length; /* written last */
	char text[92];
};

enum { TTMON_LIST_UNUSED, TTMON_LIST_OPEN, TTMON_LIST_CLOSED };

/* Pools, as tt-metal numbers its buffer types. */
enum { TTMON_DRAM, TTMON_L1, TTMON_SYSTEM, TTMON_L1_SMALL, TTMON_TRACE, TTMON_POOL_UNKNOWN = 255 };

/* One free list: a pool of an allocator. All sizes and addresses are those of
 * one bank, unless said otherwise; the banks hold the same. */
struct ttmon_ledger_list {
	uint8_t state; /* closed ones stay, for what they held */
	uint8_t pool;
	uint8_t own;       /* 1: reported through ttmon_list(), not tt-metal's */
	uint8_t late;      /* 1: found in use; what it held before may be missing. 2: a forked child's copy of its
			    * parent's list: its blocks are those that the child took itself */
	uint32_t group;    /* lists with the same number belong to one allocator */
	uint32_t banks;    /* 0: not known */
	uint32_t nth;      /* of several lists for one pool of one allocator, from 0 */
	uint64_t id;       /* address of the object in the process */
	uint64_t capacity; /* 0 and base 0: not known */
	uint64_t base;
	uint64_t alignment;
	uint64_t smallest;
	uint64_t cut_low;  /* set aside at the low end */
	uint64_t cut_high; /* and at the high end */
	uint64_t chips[4]; /* bit set over the chips; none: not known (yet) */
	int64_t made, closed;
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes, peak_blocks;
	int64_t peak_time;
	uint32_t peak_count; /* how often the peak rose */
	uint32_t lives;      /* lists of the same shape and chips that were added to this one when they closed */
	uint64_t total_bytes, total_blocks; /* ever allocated */
	uint64_t left_bytes, left_blocks;   /* live when the list was closed */
	uint64_t failed;                    /* requests that found no room */
	uint64_t failed_bytes;              /* the last of them */
	uint32_t sub_device;                /* 1 + the number of the sub-device that the allocator is of; 0: of the device, or not known */
	uint32_t unused;
	uint64_t reserved[4];
};

/* What one place in the program holds of one list. */
struct ttmon_site {
	uint32_t list; /* 0: unused */
	uint32_t tag;  /* text, or 0 */
	uint32_t node; /* innermost frame of the stack, or 0 */
	uint32_t peak_count; /* of the list, when peak_bytes was noted */
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes, peak_blocks; /* at the list's peak, if peak_count is the list's; else live_* is that */
	uint64_t total_bytes, total_blocks;
	uint64_t left_bytes, left_blocks;
	uint64_t left_largest;
	int64_t left_oldest; /* when the oldest of them was allocated */
	uint32_t tensor;     /* text: what its buffers are for, "[1,1,32,32] bfloat16 tile interleaved"; 0: not known */
	uint32_t kept;       /* 1: tt-metal's own, for its program cache, which ends with the device: no leak, and not in left_* */
	uint16_t left_quarters[4]; /* how many of them were allocated in each quarter of the process's allocations from the oldest one to the end */
	uint64_t reserved[2];
};

struct ttmon_frame {
	uint32_t file;     /* text; of a native frame: the library */
	uint32_t function; /* text, or 0 */
	uint32_t line;     /* of a native frame: 0 */
	uint32_t offset;   /* of a native frame: in the library; else 0 */
};

/* A stack is a node and its parents, innermost first. */
struct ttmon_node {
	uint32_t parent; /* the caller's node, or 0 */
	uint32_t frame;
};

struct ttmon_block {
	uint64_t address;
	uint64_t bytes; /* of each bank, rounded as the allocator does */
	uint64_t asked; /* by the buffer, over all banks of one chip; 0: not known */
	int64_t time;
	uint32_t site;     /* 0: the slot is free */
	uint32_t sequence; /* odd while the slot is being changed */
};

/* What happened, in order. Kept only where $TTMON_EVENTS asks for it, for a
 * recorder that reads as fast as it is written; who is too slow counts what it
 * missed. A list that is made tells its shape, so that what happened can be
 * followed without its record, which another list may have by then. */
enum {
	TTMON_EVENT_ALLOC = 1, /* address, bytes, asked, tag, node */
	TTMON_EVENT_FREE,      /* address */
	TTMON_EVENT_ASKED,     /* address, asked: became known after the allocation */
	TTMON_EVENT_CLEAR,     /* all blocks of the list are gone */
	TTMON_EVENT_MADE,      /* address: base, bytes: capacity, asked: alignment, more: smallest, tag: banks, node: group, pool, late */
	TTMON_EVENT_CLOSED,    /* after its blocks are gone */
	TTMON_EVENT_CHIP,      /* address: a chip that the list stands for, or, if list is 0, those of the group in node */
	TTMON_EVENT_POOL,      /* pool: became known */
	TTMON_EVENT_CUT,       /* address: set aside at the low end, bytes: at the high end */
	TTMON_EVENT_FAILED,    /* bytes: a request that found no room */
};

struct ttmon_event {
	uint64_t number; /* of the event, + 1; 0 while the record is being changed */
	int64_t time;
	uint64_t address;
	uint64_t bytes; /* of each bank, rounded as the allocator does */
	uint64_t asked;
	uint64_t more;
	uint32_t list;
	uint32_t tag;
	uint32_t node;
	uint8_t kind;
	uint8_t pool;
	uint8_t late;
	uint8_t reserved;
};

/* A request that failed, and the allocator as it was then. Requests of one list,
 * one reason and one stack share a record: count says how many there were, and the
 * rest is the one of "time", which is the last one unless they come faster than
 * their state can be copied. */
enum {
	TTMON_FAILURE_NO_ROOM = 1, /* the list has no hole that is large enough */
	TTMON_FAILURE_CLASH,       /* circular buffers of a program reach into a buffer of L1 */
	TTMON_FAILURE_TRACE,       /* a trace does not fit the trace region */
};

enum { TTMON_KNOWS_PAGE = 1, TTMON_KNOWS_SHARDS = 2, TTMON_SEVERAL_DEVICES = 4 /* it is of one of them, and which is not known */ };

/* A list of the allocator, as in ttmon_ledger_list. The first one is the list
 * that was asked. */
struct ttmon_failed_list {
	uint32_t list;
	uint8_t pool, late;
	uint8_t reserved[2];
	uint32_t banks, nth;
	uint64_t capacity, base, alignment, smallest, cut_low, cut_high;
	uint64_t blocks; /* live */
};

struct ttmon_failure {
	uint64_t number; /* from 1, by the first request; 0: unused */
	uint64_t count;
	int64_t first, last, time;
	uint64_t bytes; /* of each bank, as the allocator asked its list for */
	uint64_t asked; /* by the buffer, over all banks; 0: not known */
	uint64_t page;  /* bytes that stay together; 0: not known */
	uint64_t limit; /* no address below it was allowed */
	uint32_t shards; /* banks that have a part; 0: interleaved */
	uint32_t node;   /* innermost frame of the stack, or 0 */
	uint32_t tag;
	uint32_t group;
	uint8_t kind, bottom_up, known, lists;
	uint32_t first_block, blocks; /* in TTMON_FAILED_BLOCKS */
	uint32_t missed;              /* blocks that found no room there */
	uint64_t chips[4];
	uint64_t program; /* of a clash: the program's address in the process, */
	uint64_t reach;   /* where its circular buffers end, */
	uint64_t lowest;  /* and the lowest address of a buffer */
	int64_t made;     /* when the list that was asked was */
	uint32_t cores;   /* of a clash: x and y of the first core of a rectangle, x and y of the last, a byte each; 0: not known */
	uint32_t tensor;  /* text: what the buffer was for, as in a site; 0: not known */
	uint32_t sub_device; /* as in ttmon_ledger_list */
	uint32_t reason; /* tells those of one line apart that fail for different reasons; a number of the library's own */
	uint64_t region; /* of a trace: trace_region_size, */
	uint64_t needed; /* and what all traces need, with the one that was refused */
	struct ttmon_failed_list list[6];
};

struct ttmon_failed_block {
	uint64_t address, bytes, asked;
	int64_t time;
	uint32_t node, tag;
	uint32_t list;
	uint32_t tensor; /* text, as in a site */
};

TTMON_ASSERT(sizeof(struct ttmon_section) == 24, "layout");
TTMON_ASSERT(sizeof(struct ttmon_chip) == 16, "layout");
TTMON_ASSERT(sizeof(struct ttmon_ledger_list) == 256, "layout");
TTMON_ASSERT(sizeof(struct ttmon_site) == 128, "layout");
TTMON_ASSERT(sizeof(struct ttmon_frame) == 16, "layout");
TTMON_ASSERT(sizeof(struct ttmon_block) == 40, "layout");
TTMON_ASSERT(sizeof(struct ttmon_event) == 64, "layout");
TTMON_ASSERT(sizeof(struct ttmon_host) == 176, "layout");
TTMON_ASSERT(sizeof(struct ttmon_work) == 192, "layout");
TTMON_ASSERT(sizeof(struct ttmon_op) == 32, "layout");
TTMON_ASSERT(sizeof(struct ttmon_gap) == 24, "layout");
TTMON_ASSERT(sizeof(struct ttmon_name) == 96, "layout");
TTMON_ASSERT(sizeof(struct ttmon_failed_list) == 72, "layout");
TTMON_ASSERT(sizeof(struct ttmon_failure) == 632, "layout");
TTMON_ASSERT(sizeof(struct ttmon_failed_block) == 48, "layout");
TTMON_ASSERT(sizeof(struct ttmon_ledger) == 944, "layout");

#endif
