/* What work.c, opname.c and workhook.c share: the programs that ran on chips.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_WORK_H
#define TTMON_WORK_H

#include "state.h"

enum { WORK_CHIPS = 256, OP_CACHE = 1024, NAME_SLOTS = 4096, IDS = 1 << 16 };

/* A chip that reports, and what is remembered of its operations. One thread at
 * a time uses it: tt-metal's receiver of the chip's records. */
struct work_chip {
	struct ttmon_work *record;
	struct ttmon_op *ops;
	struct ttmon_gap *gaps;
	uint64_t kept_gap;   /* a pause has to be longer than that to be kept */
	uint32_t ended_name; /* operation of the program that ended last */
	uint32_t ops_used;
	uint64_t timed;     /* end of the program at which the time was read */
	uint64_t moment;    /* ticks of the chip's clock for which that time holds */
	uint64_t short_gap; /* TTMON_GAP_NS in ticks */
	double offset;      /* ns from the chip's clock to ours, as the record that came soonest after its program says */
	bool aligned;       /* offset is known */
	struct {
		uint64_t key; /* what the name was found by; 0: free */
		uint32_t op;
	} cache[OP_CACHE];
};

struct work {
	struct work_chip *_Atomic chips[WORK_CHIPS]; /* by the process's own number */
	_Atomic uint32_t chips_used;
	_Atomic uint32_t names_used;
	_Atomic uint64_t names[NAME_SLOTS]; /* by hash: the upper bits of it, and the name's number in the lower 16 */
	_Atomic uint16_t by_id[IDS];        /* the name of the program that was given an id last; 0: not known */
};

/* A program's record, whatever the release. */
struct program {
	uint64_t start, end;
	uint32_t id;
	const void *sources; /* of its kernels: what names it where nothing better does */
	uint64_t count;
	bool fleeting; /* the sources are this record's own, and go with it */
};

/* The place for what chips did, made when it is first asked for; NULL: there is none. */
INTERNAL struct work *work_of(struct state *s);
INTERNAL struct work_chip *work_chip(struct state *s, uint32_t logical);

/* opname.c: the number of a name; 0 where there is no room. Takes no lock. */
INTERNAL uint32_t name_number(struct state *s, struct work *w, const char *text, size_t n);
/* The operation that a path of a kernel's source belongs to. */
INTERNAL const char *name_in_path(const char *path, size_t n, size_t *length);

/* Reads the name in a record's sources, whose layout depends on the release. */
typedef const char *(*source_text)(const struct program *p, uint64_t i, size_t *length);

/* work.c: takes a batch of records of a chip. */
struct batch {
	double ticks_per_ns;
	uint8_t loss;
	int64_t now;
	uint64_t end; /* of the last program in it; 0: there is none */
};
INTERNAL int64_t exact_now(void); /* whatever the ledger's own clock is: what came first matters here */
/* When a program that ended then was reported: the time that was read last where
 * the chip's clock says that less than a millisecond has passed. Reading it takes
 * longer than all else that is done for a program that comes alone. */
INTERNAL int64_t work_time(struct work_chip *c, uint64_t end);
INTERNAL void work_begin(struct work_chip *c, const struct batch *b);
INTERNAL void work_program(struct state *s, struct work *w, struct work_chip *c, const struct batch *b, const struct program *p, source_text read);
INTERNAL void work_end(struct work_chip *c, const struct batch *b);
INTERNAL void work_state(struct state *s, uint32_t logical, uint8_t state);

#endif
