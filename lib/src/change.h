/* What the files that change the ledger share. Blocks are the truth, and sums
 * are kept beside them: a process that is killed between two stores leaves an
 * odd epoch, and a reader sums the blocks anew.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_CHANGE_H
#define TTMON_CHANGE_H

#include "state.h"

static inline bool ready(struct state *s) { return s && atomic_load_explicit(&s->stage, memory_order_acquire) == STAGE_READY; }

static inline struct ttmon_ledger_list *list_record(struct state *s, uint32_t list) { return record(s, TTMON_LISTS, list); }

/* Every change is made between begin and end, with the lock held. */
static inline void begin(struct state *s)
{
	enter(s);
	change(s);
}

static inline void end(struct state *s)
{
	changed(s);
	leave(s);
}

/* begin, and the number of the list that tt-metal knows by an address; 0: none. */
static inline uint32_t begin_list(struct state *s, uint64_t object)
{
	begin(s);
	if (object != s->last_object) {
		s->last_list = table_get(&s->objects, object);
		s->last_object = object;
	}
	return s->last_list;
}

/* Before a site changes: what it held at the list's peak, if that is not noted. */
static inline void note_peak(struct ttmon_site *site, const struct ttmon_ledger_list *l)
{
	if (site->peak_count == l->peak_count)
		return;
	site->peak_bytes = site->live_bytes;
	site->peak_blocks = site->live_blocks;
	site->peak_count = l->peak_count;
}

/* list.c, chip.c: with the lock held. list_open is false where there is no room. */
INTERNAL bool list_open(struct state *s, const struct shape *shape);
INTERNAL void chip_of_group(struct state *s, uint32_t group, uint64_t id, int32_t logical);

/* block.c */
INTERNAL void write_block(struct ttmon_block *b, const struct ttmon_block *v);
/* The list gave up all of its blocks: what was live, or was freed in one sweep
 * just before, has been left behind. */
INTERNAL void drop_all(struct state *s, uint32_t list);

/* event.c: tells a recorder what happened. The time is now where e has none. */
INTERNAL void tell_recorder(struct state *s, struct ttmon_event e);

static inline void tell(struct state *s, struct ttmon_event e)
{
	if (s->events)
		tell_recorder(s, e);
}

#endif
