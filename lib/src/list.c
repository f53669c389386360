/* Lists: made, cut, cleared and closed. A closed list stays in the ledger for
 * what it held.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "change.h"

void list_cleared(struct state *s, uint64_t object)
{
	if (!ready(s))
		return;
	uint32_t list = begin_list(s, object);
	if (list) {
		drop_all(s, list);
		list_record(s, list)->late = 0;
	}
	end(s);
}

void list_cut(struct state *s, uint64_t object, uint64_t low, uint64_t high)
{
	if (!ready(s))
		return;
	uint32_t list = begin_list(s, object);
	if (list) {
		struct ttmon_ledger_list *l = list_record(s, list);
		l->cut_low = low || high ? l->cut_low + low : 0;
		l->cut_high = low || high ? l->cut_high + high : 0;
		tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CUT, .list = list, .address = l->cut_low, .bytes = l->cut_high});
	}
	end(s);
}

static bool same_shape(const struct ttmon_ledger_list *a, const struct ttmon_ledger_list *b)
{
	return a->pool == b->pool && a->own == b->own && a->nth == b->nth && a->banks == b->banks && a->capacity == b->capacity &&
	       a->base == b->base && a->sub_device == b->sub_device && memcmp(a->chips, b->chips, sizeof a->chips) == 0;
}

static void give_site_back(struct state *s, uint32_t n)
{
	struct ttmon_site *site = record(s, TTMON_SITES, n);
	for (uint32_t turn = 0; turn < 8; turn++)
		if (table_get(&s->sites, site_key(site, turn)) == n) {
			table_drop(&s->sites, site_key(site, turn));
			break;
		}
	memset(site, 0, sizeof *site);
	s->site_next[n] = s->free_site;
	s->free_site = n;
}

static void give_list_back(struct state *s, uint32_t list)
{
	for (uint32_t n = s->lists[list].sites, next; n; n = next) {
		next = s->site_next[n];
		give_site_back(s, n);
	}
	memset(list_record(s, list), 0, sizeof(struct ttmon_ledger_list));
	s->lists[list] = (struct list_info){.sites = s->free_list};
	s->free_list = list;
}

/* Adds what a closed list saw to an older one of the same shape, so that a
 * device that is opened a thousand times needs room once. */
static void fold(struct state *s, uint32_t list, uint32_t into)
{
	struct ttmon_ledger_list *a = list_record(s, list), *b = list_record(s, into);
	bool higher = a->peak_bytes > b->peak_bytes;
	if (higher)
		b->peak_count++; /* what the sites of b held at its peak holds no more, and they are empty now */
	for (uint32_t n = s->lists[list].sites; n; n = s->site_next[n]) {
		struct ttmon_site *from = record(s, TTMON_SITES, n);
		struct ttmon_site *to = record(s, TTMON_SITES, site_of(s, into, from->tag, from->node, from->tensor, from->kept));
		to->total_bytes += from->total_bytes;
		to->total_blocks += from->total_blocks;
		if (from->left_blocks && (to->left_blocks == 0 || from->left_oldest < to->left_oldest))
			to->left_oldest = from->left_oldest;
		if (from->left_largest > to->left_largest)
			to->left_largest = from->left_largest;
		for (int i = 0; i < 4; i++) {
			uint32_t n_left = (uint32_t)to->left_quarters[i] + from->left_quarters[i];
			to->left_quarters[i] = n_left < UINT16_MAX ? (uint16_t)n_left : UINT16_MAX;
		}
		to->left_bytes += from->left_bytes;
		to->left_blocks += from->left_blocks;
		note_peak(from, a);
		note_peak(to, b);
		if (higher) {
			to->peak_bytes += from->peak_bytes;
			to->peak_blocks += from->peak_blocks;
		}
	}
	if (higher) {
		b->peak_bytes = a->peak_bytes;
		b->peak_blocks = a->peak_blocks;
		b->peak_time = a->peak_time;
	}
	b->total_bytes += a->total_bytes;
	b->total_blocks += a->total_blocks;
	b->left_bytes += a->left_bytes;
	b->left_blocks += a->left_blocks;
	b->failed += a->failed;
	if (a->failed)
		b->failed_bytes = a->failed_bytes;
	b->closed = a->closed;
	b->lives += a->lives;
}

static void close_list(struct state *s, uint32_t list)
{
	drop_all(s, list);
	struct ttmon_ledger_list *l = list_record(s, list);
	keep_no_list(s->lists[list].object);
	table_drop(&s->objects, s->lists[list].object);
	s->last_object = s->last_list = 0;
	s->lists[list].object = s->lists[list].allocator = 0;
	l->state = TTMON_LIST_CLOSED;
	l->closed = now();
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CLOSED, .list = list, .time = l->closed});
	if (l->total_blocks == 0 && l->failed == 0) {
		give_list_back(s, list);
		return;
	}
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t other = 1; other < used; other++) {
		struct ttmon_ledger_list *o = list_record(s, other);
		if (other == list || o->state != TTMON_LIST_CLOSED || !same_shape(o, l))
			continue;
		fold(s, list, other);
		give_list_back(s, list);
		return;
	}
}

void sub_devices_unsure(struct state *s, int64_t since)
{
	if (!ready(s))
		return;
	begin(s);
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t list = 1; list < used; list++)
		if (list_record(s, list)->made >= since)
			list_record(s, list)->sub_device = 0;
	end(s);
}

void list_closed(struct state *s, uint64_t object)
{
	if (!ready(s))
		return;
	uint32_t list = begin_list(s, object);
	if (list)
		close_list(s, list);
	end(s);
}

void allocator_closed(struct state *s, uint64_t allocator)
{
	if (!ready(s)) {
		if (s && inherits()) { /* a child ends what it has of its parent's */
			enter(s);
			keep_no_allocator(allocator);
			leave(s);
		}
		return;
	}
	begin(s);
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t list = 1; list < used; list++)
		if (s->lists[list].allocator == allocator)
			close_list(s, list);
	end(s);
}

/* The record of a new list; 0 where there is no room. */
static uint32_t take_list(struct state *s)
{
	uint32_t list = s->free_list;
	if (list) {
		s->free_list = s->lists[list].sites;
		s->lists[list] = (struct list_info){0};
		return list;
	}
	struct ttmon_section *x = &s->ledger->section[TTMON_LISTS];
	if (x->used >= x->capacity || !region_reserve(s, TTMON_LISTS, x->used + 1))
		return 0;
	atomic_store_explicit((_Atomic uint32_t *)&x->used, x->used + 1, memory_order_release);
	return x->used - 1;
}

/* Fills in the record of a list; false where there is no room for its first site. */
static bool open_list(struct state *s, uint32_t list, const struct shape *shape)
{
	struct ttmon_ledger_list *l = list_record(s, list);
	*l = (struct ttmon_ledger_list){
		.pool = (uint8_t)shape->pool, .own = shape->own, .late = shape->late,
		.group = shape->group ? shape->group : new_group(s), .banks = shape->banks, .nth = shape->nth,
		.id = shape->object, .capacity = shape->capacity, .base = shape->base, .alignment = shape->alignment,
		.smallest = shape->smallest, .made = now(), .lives = 1, .sub_device = shape->sub_device,
	};
	s->lists[list] = (struct list_info){.object = shape->object, .allocator = shape->allocator};
	s->lists[list].plain = site_of(s, list, 0, 0, 0, false);
	if (s->lists[list].plain == 0)
		return false;
	if (l->pool == TTMON_L1 && l->nth) /* here: those that stay empty leave no record */
		s->ledger->flags |= TTMON_PER_CORE;
	l->state = TTMON_LIST_OPEN;
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_MADE, .list = list, .time = l->made, .address = l->base, .bytes = l->capacity,
				     .asked = l->alignment, .more = l->smallest, .tag = l->banks, .node = l->group,
				     .pool = l->pool, .late = l->late});
	return true;
}

bool list_open(struct state *s, const struct shape *shape)
{
	uint32_t list = take_list(s);
	bool made = list && table_put(&s->objects, shape->object, list);
	s->last_object = s->last_list = 0;
	if (made && !open_list(s, list, shape)) {
		table_drop(&s->objects, shape->object);
		made = false;
	}
	if (!made) {
		if (list)
			give_list_back(s, list);
		s->ledger->flags |= TTMON_FULL;
		s->ledger->lost++;
	}
	return made;
}

bool list_made(struct state *s, const struct shape *shape)
{
	if (!s || !region_make(s))
		return false;
	uint32_t old = begin_list(s, shape->object);
	if (old) /* its end was not seen, but here is another one in its place */
		close_list(s, old);
	bool made = list_open(s, shape);
	if (made && !shape->own) {
		struct shape kept = *shape;
		kept.group = list_record(s, table_get(&s->objects, shape->object))->group;
		keep_list(&kept);
	}
	end(s);
	return made;
}
