/* The functions of ttmon.h for programs with an allocator of their own, and
 * for questions about oneself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

uint32_t ttmon_version(void) { return TTMON_VERSION; }

ttmon_list_t ttmon_list(const struct ttmon_pool *pool)
{
	struct state *s = state();
	if (!s || !region_make(s))
		return 0;
	enter(s);
	uint32_t handle = ++s->handles;
	leave(s);
	struct shape shape = {
		.object = OWN + handle, .capacity = pool->capacity, .base = pool->base, .alignment = pool->alignment,
		.pool = pool->pool, .banks = pool->banks, .own = true,
	};
	if (!list_made(s, &shape))
		return 0;
	list_chip(s, shape.object, pool->chip, pool->logical);
	return handle;
}

void ttmon_list_close(ttmon_list_t list)
{
	if (list)
		list_closed(state(), OWN + list);
}

int ttmon_alloc(ttmon_list_t list, uint64_t address, uint64_t bytes)
{
	return list && list_allocated(state(), OWN + list, address, bytes, 0) ? 0 : -1;
}

int ttmon_free(ttmon_list_t list, uint64_t address)
{
	return list && list_freed(state(), OWN + list, address) ? 0 : -1;
}

static bool stands_for(const struct ttmon_ledger_list *l, uint32_t chip) { return l->chips[chip / 64] >> (chip % 64) & 1; }

static void add(struct ttmon_usage *u, const struct ttmon_ledger_list *l)
{
	uint64_t banks = l->banks ? l->banks : 1;
	u->bytes += l->live_bytes * banks;
	u->blocks += l->live_blocks;
	u->total_bytes += l->total_bytes * banks;
	u->total_blocks += l->total_blocks;
	u->left_bytes += l->left_bytes * banks;
	u->left_blocks += l->left_blocks;
	u->failed += l->failed;
	/* Lists that were never in use at once do not add up: closed ones count
	 * only if they were higher. */
	if (l->state == TTMON_LIST_OPEN) {
		u->peak_bytes += l->peak_bytes * banks;
		if (l->capacity * banks > u->capacity)
			u->capacity = l->capacity * banks;
	}
}

int ttmon_query(uint64_t id, uint32_t pool, struct ttmon_usage *usage)
{
	struct state *s = state();
	*usage = (struct ttmon_usage){0};
	if (!s || atomic_load(&s->stage) != STAGE_READY)
		return -1;
	int known = -1;
	enter(s);
	uint32_t chips = s->ledger->section[TTMON_CHIPS].used, lists = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t c = 0; c < chips; c++) {
		if (id != TTMON_ANY_CHIP && ((struct ttmon_chip *)record(s, TTMON_CHIPS, c))->id != id)
			continue;
		struct ttmon_usage one = {0};
		uint64_t closed_peak = 0;
		for (uint32_t i = 1; i < lists; i++) {
			struct ttmon_ledger_list *l = record(s, TTMON_LISTS, i);
			if (l->state == TTMON_LIST_UNUSED || l->pool != pool || !stands_for(l, c))
				continue;
			known = 0;
			add(&one, l);
			if (l->state == TTMON_LIST_CLOSED && l->peak_bytes * (l->banks ? l->banks : 1) > closed_peak)
				closed_peak = l->peak_bytes * (l->banks ? l->banks : 1);
		}
		usage->bytes += one.bytes;
		usage->blocks += one.blocks;
		usage->peak_bytes += one.peak_bytes > closed_peak ? one.peak_bytes : closed_peak;
		usage->total_bytes += one.total_bytes;
		usage->total_blocks += one.total_blocks;
		usage->capacity += one.capacity;
		usage->left_bytes += one.left_bytes;
		usage->left_blocks += one.left_blocks;
		usage->failed += one.failed;
	}
	leave(s);
	return known;
}

size_t ttmon_chips(uint64_t *ids, int32_t *logical, size_t n)
{
	struct state *s = state();
	if (!s || atomic_load(&s->stage) != STAGE_READY)
		return 0;
	enter(s);
	uint32_t used = s->ledger->section[TTMON_CHIPS].used;
	for (uint32_t i = 0; i < used && i < n; i++) {
		const struct ttmon_chip *chip = record(s, TTMON_CHIPS, i);
		if (ids)
			ids[i] = chip->id;
		if (logical)
			logical[i] = chip->logical;
	}
	leave(s);
	return used;
}

void ttmon_reset_peak(void)
{
	struct state *s = state();
	if (!s || atomic_load(&s->stage) != STAGE_READY)
		return;
	int64_t time = now();
	enter(s);
	change(s);
	uint32_t lists = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t i = 1; i < lists; i++) {
		struct ttmon_ledger_list *l = record(s, TTMON_LISTS, i);
		l->peak_bytes = l->live_bytes;
		l->peak_blocks = l->live_blocks;
		l->peak_time = time;
		l->peak_count++; /* the sites hold now what they hold at the peak */
	}
	changed(s);
	leave(s);
}
