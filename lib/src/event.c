/* What happens to lists and blocks, written down so that a reader can follow:
 * blocks are the truth, sums are kept beside them. A process that is killed
 * between two stores leaves an odd epoch, and a reader sums the blocks anew.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>

#include "state.h"

/* Addresses share a key with the number of their list. */
enum { ADDRESS_BITS = 52 };

static uint64_t block_key(uint32_t list, uint64_t address) { return (uint64_t)list << ADDRESS_BITS | address; }

static struct ttmon_ledger_list *list_record(struct state *s, uint32_t list) { return record(s, TTMON_LISTS, list); }

static bool ready(struct state *s) { return s && atomic_load_explicit(&s->stage, memory_order_acquire) == STAGE_READY; }

/* Before a site changes: what it held at the list's peak, if that is not noted. */
static void note_peak(struct ttmon_site *site, const struct ttmon_ledger_list *l)
{
	if (site->peak_count == l->peak_count)
		return;
	site->peak_bytes = site->live_bytes;
	site->peak_blocks = site->live_blocks;
	site->peak_count = l->peak_count;
}

/* Takes the lock and finds the list that tt-metal knows by its address. */
static uint32_t begin(struct state *s, uint64_t object)
{
	enter(s);
	change(s);
	return table_get(&s->objects, object);
}

static void end(struct state *s)
{
	changed(s);
	leave(s);
}

static void write_block(struct ttmon_block *b, const struct ttmon_block *v)
{
	_Atomic uint32_t *sequence = (_Atomic uint32_t *)&b->sequence;
	uint32_t n = atomic_load_explicit(sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(sequence, n, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	b->address = v->address;
	b->bytes = v->bytes;
	b->asked = v->asked;
	b->time = v->time;
	b->site = v->site;
	atomic_store_explicit(sequence, n + 1, memory_order_release);
}

/* A free slot, + 1; 0 where there is no room. */
static uint32_t take_slot(struct state *s)
{
	uint32_t slot = s->free_block;
	if (slot) {
		s->free_block = (uint32_t)((struct ttmon_block *)record(s, TTMON_BLOCKS, slot - 1))->address;
		return slot;
	}
	struct ttmon_section *x = &s->ledger->section[TTMON_BLOCKS];
	if (x->used >= x->capacity || !region_reserve(s, TTMON_BLOCKS, x->used + 1))
		return 0;
	atomic_store_explicit((_Atomic uint32_t *)&x->used, x->used + 1, memory_order_release);
	return x->used;
}

static void add_block(struct state *s, uint32_t slot, const struct ttmon_block *v)
{
	struct ttmon_site *site = record(s, TTMON_SITES, v->site);
	struct ttmon_ledger_list *l = list_record(s, site->list);
	write_block(record(s, TTMON_BLOCKS, slot - 1), v);
	note_peak(site, l);
	site->live_bytes += v->bytes;
	site->live_blocks++;
	site->total_bytes += v->bytes;
	site->total_blocks++;
	l->live_bytes += v->bytes;
	l->live_blocks++;
	l->total_bytes += v->bytes;
	l->total_blocks++;
	if (l->live_bytes > l->peak_bytes) {
		l->peak_bytes = l->live_bytes;
		l->peak_blocks = l->live_blocks;
		l->peak_time = v->time;
		l->peak_count++;
	}
}

static struct ttmon_block drop_block(struct state *s, uint32_t slot)
{
	struct ttmon_block *b = record(s, TTMON_BLOCKS, slot - 1), old = *b;
	struct ttmon_site *site = record(s, TTMON_SITES, old.site);
	struct ttmon_ledger_list *l = list_record(s, site->list);
	note_peak(site, l);
	write_block(b, &(struct ttmon_block){.address = s->free_block});
	s->free_block = slot;
	site->live_bytes -= old.bytes;
	site->live_blocks--;
	l->live_bytes -= old.bytes;
	l->live_blocks--;
	table_drop(&s->blocks, block_key(site->list, old.address));
	return old;
}

/* Tells a recorder what happened. The number comes last: a reader that finds
 * another one than it expects has a record that is being changed, or a later one. */
static void tell(struct state *s, struct ttmon_event e)
{
	if (!s->events)
		return;
	if (e.time == 0)
		e.time = now();
	uint64_t n = s->ledger->event_count;
	struct ttmon_event *to = record(s, TTMON_EVENTS, (uint32_t)(n % s->ledger->section[TTMON_EVENTS].capacity));
	_Atomic uint64_t *number = (_Atomic uint64_t *)&to->number;
	atomic_store_explicit(number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	e.number = 0;
	*to = e;
	atomic_store_explicit(number, n + 1, memory_order_release);
	atomic_store_explicit((_Atomic uint64_t *)&s->ledger->event_count, n + 1, memory_order_release);
}

static void tell_freed(struct state *s, uint32_t list, uint64_t address)
{
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_FREE, .list = list, .address = address});
}

static uint64_t rounded(const struct ttmon_ledger_list *l, uint64_t bytes)
{
	if (bytes < l->smallest)
		bytes = l->smallest;
	return l->alignment > 1 ? (bytes + l->alignment - 1) / l->alignment * l->alignment : bytes;
}

/* Mass frees that no clear followed were meant. */
static void forget_pending(struct state *s, uint32_t list)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->pending_used; i++)
		if (s->pending[i].list != list)
			s->pending[kept++] = s->pending[i];
	s->pending_used = kept;
}

bool list_allocated(struct state *s, uint64_t object, uint64_t address, uint64_t bytes, uint64_t asked)
{
	if (!ready(s) || address >> ADDRESS_BITS)
		return false;
	if (atomic_load_explicit(&s->stacks, memory_order_relaxed))
		stacks_prepare();
	uint32_t list = begin(s, object);
	if (list == 0) {
		s->ledger->unmatched++;
		end(s);
		return false;
	}
	struct ttmon_ledger_list *l = list_record(s, list);
	if (s->pending_used)
		forget_pending(s, list);
	uint64_t key = block_key(list, address);
	uint32_t slot = table_get(&s->blocks, key);
	if (slot) { /* its end was missed */
		s->ledger->unknown++;
		drop_block(s, slot);
		tell_freed(s, list, address);
	}
	struct ttmon_block b = {.address = address, .bytes = rounded(l, bytes), .asked = asked, .time = now()};
	b.site = self.silent ? s->lists[list].plain : site_of(s, list, current_tag(s), current_stack(s));
	slot = take_slot(s);
	bool done = slot && table_put(&s->blocks, key, slot);
	if (done) {
		add_block(s, slot, &b);
		const struct ttmon_site *site = record(s, TTMON_SITES, b.site);
		tell(s, (struct ttmon_event){.kind = TTMON_EVENT_ALLOC, .list = list, .time = b.time, .address = address, .bytes = b.bytes,
					     .asked = asked, .tag = site->tag, .node = site->node});
		self.last_list = list;
		self.last_slot = slot;
		self.generation = s->generation;
	} else {
		s->ledger->lost++;
		s->ledger->flags |= TTMON_FULL;
	}
	end(s);
	return done;
}

static void remember(struct state *s, uint32_t list, const struct ttmon_block *b)
{
	if (s->pending_used == s->pending_capacity) {
		uint32_t more = s->pending_capacity ? s->pending_capacity * 2 : 128;
		struct pending *p = memory(more * sizeof *p);
		if (!p)
			return;
		if (s->pending) {
			memcpy(p, s->pending, s->pending_used * sizeof *p);
			munmap(s->pending, s->pending_capacity * sizeof *p);
		}
		s->pending = p;
		s->pending_capacity = more;
	}
	s->pending[s->pending_used++] = (struct pending){.list = list, .site = b->site, .bytes = b->bytes, .time = b->time};
}

bool list_freed(struct state *s, uint64_t object, uint64_t address)
{
	if (!ready(s) || address >> ADDRESS_BITS)
		return false;
	uint32_t list = begin(s, object);
	uint32_t slot = list ? table_get(&s->blocks, block_key(list, address)) : 0;
	if (slot) {
		struct ttmon_block old = drop_block(s, slot);
		tell_freed(s, list, address);
		if (self.mass)
			remember(s, list, &old);
	} else if (list && !list_record(s, list)->late) {
		s->ledger->unknown++;
	}
	end(s);
	return slot != 0;
}

void list_failed(struct state *s, uint64_t object, uint64_t bytes)
{
	if (!ready(s))
		return;
	uint32_t list = begin(s, object);
	if (list) {
		struct ttmon_ledger_list *l = list_record(s, list);
		l->failed++;
		l->failed_bytes = bytes;
		tell(s, (struct ttmon_event){.kind = TTMON_EVENT_FAILED, .list = list, .bytes = bytes});
	}
	end(s);
}

static void leave_behind(struct state *s, uint32_t list, uint32_t n, uint64_t bytes, int64_t time)
{
	struct ttmon_site *site = record(s, TTMON_SITES, n);
	struct ttmon_ledger_list *l = list_record(s, list);
	if (site->left_blocks == 0 || time < site->left_oldest)
		site->left_oldest = time;
	if (bytes > site->left_largest)
		site->left_largest = bytes;
	site->left_bytes += bytes;
	site->left_blocks++;
	l->left_bytes += bytes;
	l->left_blocks++;
}

/* The list gave up all of its blocks: what was live, or was freed in one sweep
 * just before, has been left behind. */
static void clear(struct state *s, uint32_t list)
{
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CLEAR, .list = list});
	for (uint32_t i = 0; i < s->pending_used; i++)
		if (s->pending[i].list == list)
			leave_behind(s, list, s->pending[i].site, s->pending[i].bytes, s->pending[i].time);
	if (s->pending_used)
		forget_pending(s, list);
	if (list_record(s, list)->live_blocks == 0)
		return;
	uint32_t used = s->ledger->section[TTMON_BLOCKS].used;
	for (uint32_t slot = 1; slot <= used; slot++) {
		struct ttmon_block *b = record(s, TTMON_BLOCKS, slot - 1);
		if (b->site == 0 || ((struct ttmon_site *)record(s, TTMON_SITES, b->site))->list != list)
			continue;
		struct ttmon_block old = drop_block(s, slot);
		leave_behind(s, list, old.site, old.bytes, old.time);
	}
}

void list_cleared(struct state *s, uint64_t object)
{
	if (!ready(s))
		return;
	uint32_t list = begin(s, object);
	if (list) {
		clear(s, list);
		list_record(s, list)->late = 0;
	}
	end(s);
}

void list_cut(struct state *s, uint64_t object, uint64_t low, uint64_t high)
{
	if (!ready(s))
		return;
	uint32_t list = begin(s, object);
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
	       a->base == b->base && memcmp(a->chips, b->chips, sizeof a->chips) == 0;
}

static void give_site_back(struct state *s, uint32_t n)
{
	struct ttmon_site *site = record(s, TTMON_SITES, n);
	table_drop(&s->sites, (uint64_t)site->list << 40 | (uint64_t)site->node << 22 | site->tag);
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
		struct ttmon_site *to = record(s, TTMON_SITES, site_of(s, into, from->tag, from->node));
		to->total_bytes += from->total_bytes;
		to->total_blocks += from->total_blocks;
		if (from->left_blocks && (to->left_blocks == 0 || from->left_oldest < to->left_oldest))
			to->left_oldest = from->left_oldest;
		if (from->left_largest > to->left_largest)
			to->left_largest = from->left_largest;
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
	clear(s, list);
	struct ttmon_ledger_list *l = list_record(s, list);
	table_drop(&s->objects, s->lists[list].object);
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

void list_closed(struct state *s, uint64_t object)
{
	if (!ready(s))
		return;
	uint32_t list = begin(s, object);
	if (list)
		close_list(s, list);
	end(s);
}

void allocator_closed(struct state *s, uint64_t allocator)
{
	if (!ready(s))
		return;
	enter(s);
	change(s);
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t list = 1; list < used; list++)
		if (s->lists[list].allocator == allocator)
			close_list(s, list);
	changed(s);
	leave(s);
}

/* The record of a new list; 0 where there is no room. */
static uint32_t take_list(struct state *s)
{
	uint32_t list = s->free_list;
	if (list) {
		s->free_list = s->lists[list].sites;
		return list;
	}
	struct ttmon_section *x = &s->ledger->section[TTMON_LISTS];
	if (x->used >= x->capacity || !region_reserve(s, TTMON_LISTS, x->used + 1))
		return 0;
	atomic_store_explicit((_Atomic uint32_t *)&x->used, x->used + 1, memory_order_release);
	return x->used - 1;
}

bool list_made(struct state *s, const struct shape *shape)
{
	if (!s || !region_make(s))
		return false;
	uint32_t old = begin(s, shape->object);
	if (old) /* its end was not seen, but here is another one in its place */
		close_list(s, old);
	uint32_t list = take_list(s);
	if (list && !table_put(&s->objects, shape->object, list))
		list = 0;
	if (list) {
		*list_record(s, list) = (struct ttmon_ledger_list){
			.pool = (uint8_t)shape->pool, .own = shape->own, .late = shape->late,
			.group = shape->group ? shape->group : ++s->groups, .banks = shape->banks, .nth = shape->nth,
			.id = shape->object, .capacity = shape->capacity, .base = shape->base, .alignment = shape->alignment,
			.smallest = shape->smallest, .made = now(), .lives = 1,
		};
		s->lists[list] = (struct list_info){.object = shape->object, .allocator = shape->allocator};
		s->lists[list].plain = site_of(s, list, 0, 0);
		if (s->lists[list].plain == 0) {
			table_drop(&s->objects, shape->object);
			give_list_back(s, list);
			list = 0;
		} else {
			struct ttmon_ledger_list *l = list_record(s, list);
			l->state = TTMON_LIST_OPEN;
			tell(s, (struct ttmon_event){.kind = TTMON_EVENT_MADE, .list = list, .time = l->made, .address = l->base, .bytes = l->capacity,
						     .asked = l->alignment, .more = l->smallest, .tag = l->banks, .node = l->group,
						     .pool = l->pool, .late = l->late});
		}
	}
	if (list == 0) {
		s->ledger->flags |= TTMON_FULL;
		s->ledger->lost++;
	}
	end(s);
	return list != 0;
}

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
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CHIP, .node = group,
				     .address = ((struct ttmon_chip *)record(s, TTMON_CHIPS, (uint32_t)chip))->id});
}

void chip_opened(struct state *s, uint64_t id, int32_t logical, uint32_t group)
{
	if (!ready(s))
		return;
	enter(s);
	change(s);
	int n = chip_number(s, id, logical);
	if (n >= 0) {
		struct ttmon_chip *chip = record(s, TTMON_CHIPS, (uint32_t)n);
		chip->logical = logical;
		chip->open = 1;
		if (group)
			mark_group(s, group, n);
	}
	changed(s);
	leave(s);
}

void chip_closed(struct state *s, uint64_t id)
{
	if (!ready(s))
		return;
	enter(s);
	change(s);
	int n = chip_number(s, id, -1);
	if (n >= 0)
		((struct ttmon_chip *)record(s, TTMON_CHIPS, (uint32_t)n))->open = 0;
	changed(s);
	leave(s);
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
	uint32_t list = begin(s, object);
	int n = list ? chip_number(s, id, logical) : -1;
	if (n >= 0) {
		((struct ttmon_chip *)record(s, TTMON_CHIPS, (uint32_t)n))->open = 1;
		list_record(s, list)->chips[n / 64] |= (uint64_t)1 << (n % 64);
		tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CHIP, .list = list, .address = id});
	}
	end(s);
}
