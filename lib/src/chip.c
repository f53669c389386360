/* Chips: which of them a process has open, and which a list stands for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "change.h"

/* The number of a chip, which is new if it has to be; -1 where there is no room. */
static int chip_number(struct state *s, uint64_t id, int32_t logical)
{
	struct ttmon_section *x = &s->ledger->section[TTMON_CHIPS];
	for (uint32_t i = 0; i < x->used; i++)
		if (((struct ttmon_chip *)record(s, TTMON_CHIPS, i))->id == id)
			return (int)i;
	if (x->used >= x->capacity || !region_reserve(s, TTMON_CHIPS, x->used + 1))
		return -1;
	*(struct ttmon_chip *)record(s, TTMON_CHIPS, x->used) = (struct ttmon_chip){.id = id, .logical = logical};
	atomic_store_explicit((_Atomic uint32_t *)&x->used, x->used + 1, memory_order_release);
	return (int)x->used - 1;
}

/* All lists of an allocator stand for the same chips. */
static void mark_group(struct state *s, uint32_t group, int chip)
{
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t list = 1; list < used; list++) {
		struct ttmon_ledger_list *l = list_record(s, list);
		if (l->state == TTMON_LIST_OPEN && l->group == group)
			l->chips[chip / 64] |= (uint64_t)1 << (chip % 64);
	}
	const struct ttmon_chip *c = record(s, TTMON_CHIPS, (uint32_t)chip);
	keep_chip(group, c->id, c->logical);
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CHIP, .node = group, .address = c->id});
}

void chip_of_group(struct state *s, uint32_t group, uint64_t id, int32_t logical)
{
	int n = chip_number(s, id, logical);
	if (n < 0)
		return;
	((struct ttmon_chip *)record(s, TTMON_CHIPS, (uint32_t)n))->open = 1;
	mark_group(s, group, n);
}

void chip_opened(struct state *s, uint64_t id, int32_t logical, uint32_t group)
{
	if (!ready(s))
		return;
	begin(s);
	int n = chip_number(s, id, logical);
	if (n >= 0) {
		struct ttmon_chip *chip = record(s, TTMON_CHIPS, (uint32_t)n);
		chip->logical = logical;
		chip->open = 1;
		if (group)
			mark_group(s, group, n);
	}
	end(s);
}

void chip_closed(struct state *s, uint64_t id)
{
	if (!ready(s))
		return;
	begin(s);
	int n = chip_number(s, id, -1);
	if (n >= 0)
		((struct ttmon_chip *)record(s, TTMON_CHIPS, (uint32_t)n))->open = 0;
	end(s);
}

/* tt-metal accounts for what this thread has just allocated, chip by chip. */
bool chip_seen(struct state *s, uint64_t id, uint32_t pool, uint64_t asked)
{
	if (!ready(s) || self.last_list == 0 || self.generation != s->generation)
		return false;
	bool all = false;
	enter(s);
	struct ttmon_ledger_list *l = list_record(s, self.last_list);
	struct ttmon_block *b = record(s, TTMON_BLOCKS, self.last_slot - 1);
	if (l->state == TTMON_LIST_OPEN && b->site && ((struct ttmon_site *)record(s, TTMON_SITES, b->site))->list == self.last_list) {
		int n = chip_number(s, id, -1);
		bool known = n < 0 || l->chips[n / 64] >> (n % 64) & 1;
		if (!known || b->asked == 0 || l->pool == TTMON_POOL_UNKNOWN) {
			change(s);
			if (!known)
				mark_group(s, l->group, n);
			if (l->pool == TTMON_POOL_UNKNOWN) {
				l->pool = (uint8_t)pool;
				tell(s, (struct ttmon_event){.kind = TTMON_EVENT_POOL, .list = self.last_list, .pool = l->pool});
			}
			if (b->asked == 0 && pool == l->pool) {
				struct ttmon_block v = *b;
				v.asked = asked;
				write_block(b, &v);
				tell(s, (struct ttmon_event){.kind = TTMON_EVENT_ASKED, .list = self.last_list, .address = v.address, .asked = asked});
			}
			changed(s);
		}
		all = l->pool != TTMON_POOL_UNKNOWN;
	}
	leave(s);
	return all;
}

void list_chip(struct state *s, uint64_t object, uint64_t id, int32_t logical)
{
	if (!ready(s))
		return;
	uint32_t list = begin_list(s, object);
	int n = list ? chip_number(s, id, logical) : -1;
	if (n >= 0) {
		((struct ttmon_chip *)record(s, TTMON_CHIPS, (uint32_t)n))->open = 1;
		list_record(s, list)->chips[n / 64] |= (uint64_t)1 << (n % 64);
		tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CHIP, .list = list, .address = id});
	}
	end(s);
}
