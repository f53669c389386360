/* Forked children: a child has a copy of its parent's allocators and goes on
 * with them, but neither the parent's ledger nor its private tables. So that the
 * ledger of a child can say of which pool and chips the blocks are that it takes,
 * the shapes of open lists are kept here as well, where a fork copies them.
 *
 * Entries are changed with the lock of the state held. A child that is forked in
 * the middle finds an entry without an object, which counts for nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "change.h"

enum { KEPT = 1024, KEPT_CHIPS = 256 };

static struct kept {
	_Atomic uint64_t object; /* 0: free */
	struct shape shape;
} kept[KEPT];

/* The chips of allocators, by the number of their group. */
static struct kept_chip {
	_Atomic uint32_t group; /* 0: free */
	int32_t logical;
	uint64_t id;
} chips[KEPT_CHIPS];

static _Atomic uint32_t kept_used, chips_used; /* entries from here on were never used */
static _Atomic uint32_t kept_groups;	      /* the highest number of a group, ever */

uint32_t new_group(struct state *s)
{
	uint32_t before = atomic_load(&kept_groups);
	if (s->groups < before)
		s->groups = before;
	return ++s->groups;
}

void keep_list(const struct shape *shape)
{
	uint32_t n = 0;
	while (n < KEPT && atomic_load(&kept[n].object))
		n++;
	if (n == KEPT)
		return;
	kept[n].shape = *shape;
	if (shape->group > atomic_load(&kept_groups))
		atomic_store(&kept_groups, shape->group);
	atomic_store_explicit(&kept[n].object, shape->object, memory_order_release);
	if (n >= atomic_load(&kept_used))
		atomic_store(&kept_used, n + 1);
}

void keep_chip(uint32_t group, uint64_t id, int32_t logical)
{
	uint32_t free = KEPT_CHIPS;
	for (uint32_t n = 0; n < KEPT_CHIPS; n++) {
		if (atomic_load(&chips[n].group) == group && chips[n].id == id)
			return;
		if (free == KEPT_CHIPS && !atomic_load(&chips[n].group))
			free = n;
	}
	if (free == KEPT_CHIPS)
		return;
	chips[free].id = id;
	chips[free].logical = logical;
	atomic_store_explicit(&chips[free].group, group, memory_order_release);
	if (free >= atomic_load(&chips_used))
		atomic_store(&chips_used, free + 1);
}

static void drop_chips(uint32_t group)
{
	for (uint32_t n = 0, used = atomic_load(&kept_used); n < used; n++)
		if (atomic_load(&kept[n].object) && kept[n].shape.group == group)
			return;
	for (uint32_t n = 0, used = atomic_load(&chips_used); n < used; n++)
		if (atomic_load(&chips[n].group) == group)
			atomic_store(&chips[n].group, 0);
}

void keep_no_list(uint64_t object)
{
	for (uint32_t n = 0, used = atomic_load(&kept_used); n < used; n++) {
		if (atomic_load(&kept[n].object) == object) {
			atomic_store(&kept[n].object, 0);
			drop_chips(kept[n].shape.group);
		}
	}
}

void keep_no_allocator(uint64_t allocator)
{
	for (uint32_t n = 0, used = atomic_load(&kept_used); n < used; n++)
		if (atomic_load(&kept[n].object) && kept[n].shape.allocator == allocator)
			keep_no_list(kept[n].shape.object);
}

bool inherits(void) { return atomic_load_explicit(&kept_used, memory_order_relaxed) != 0; }

/* Opens what was kept in a new ledger. The lock is held. */
void inherit(struct state *s)
{
	for (uint32_t n = 0, used = atomic_load(&kept_used); n < used; n++) {
		if (!atomic_load_explicit(&kept[n].object, memory_order_acquire))
			continue;
		struct shape shape = kept[n].shape;
		shape.late = 2;
		list_open(s, &shape);
	}
	for (uint32_t n = 0, used = atomic_load(&chips_used); n < used; n++) {
		uint32_t group = atomic_load_explicit(&chips[n].group, memory_order_acquire);
		if (group)
			chip_of_group(s, group, chips[n].id, chips[n].logical);
	}
}
