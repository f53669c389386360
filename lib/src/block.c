/* Blocks: their slots in the ledger, the sums of their sites and lists, and
 * what is left of them when a list is cleared.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>

#include "change.h"

/* Addresses share a key with the number of their list. */
enum { ADDRESS_BITS = 52 };

static uint64_t block_key(uint32_t list, uint64_t address) { return (uint64_t)list << ADDRESS_BITS | address; }

void write_block(struct ttmon_block *b, const struct ttmon_block *v)
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

static void tell_freed(struct state *s, uint32_t list, uint64_t address)
{
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_FREE, .list = list, .address = address});
}

static uint64_t rounded(const struct ttmon_ledger_list *l, uint64_t bytes)
{
	if (bytes < l->smallest)
		bytes = l->smallest;
	uint64_t a = l->alignment;
	if (a <= 1)
		return bytes;
	if ((a & (a - 1)) == 0) /* all that are known; a division takes longer than the rest */
		return (bytes + a - 1) & ~(a - 1);
	return (bytes + a - 1) / a * a;
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

/* Counts an allocation. Where there is no room for another moment, every second one
 * makes some. */
static void note_progress(struct progress *p, int64_t time)
{
	if (p->every == 0)
		p->every = 1;
	if (++p->done % p->every)
		return;
	if (p->noted == MOMENTS) {
		for (uint32_t i = 0; i < MOMENTS / 2; i++)
			p->time[i] = p->time[2 * i + 1];
		p->noted /= 2;
		p->every *= 2;
		if (p->done % p->every)
			return;
	}
	p->time[p->noted++] = time;
}

/* How many allocations were done before a time, as far as that was noted. */
static uint64_t done_before(const struct progress *p, int64_t time)
{
	uint32_t n = 0;
	while (n < p->noted && p->time[n] < time)
		n++;
	return n * p->every;
}

bool list_allocated(struct state *s, uint64_t object, uint64_t address, uint64_t bytes, uint64_t asked)
{
	if (address >> ADDRESS_BITS || (!ready(s) && !(inherits() && region_make(s))))
		return false;
	if (atomic_load_explicit(&s->stacks, memory_order_relaxed))
		stacks_prepare();
	uint32_t list = begin_list(s, object);
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
	b.site = self.silent ? s->lists[list].plain : site_of(s, list, current_tag(s), current_stack(s), current_tensor(s), self.kernels);
	slot = take_slot(s);
	bool done = slot && table_put(&s->blocks, key, slot);
	if (done) {
		add_block(s, slot, &b);
		note_progress(&s->progress, b.time);
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
	uint32_t list = begin_list(s, object);
	uint32_t slot = list ? table_get(&s->blocks, block_key(list, address)) : 0;
	if (slot) {
		struct ttmon_block old = drop_block(s, slot);
		tell_freed(s, list, address);
		if (self.mass)
			remember(s, list, &old);
	} else if (list && s->lists[list].cleared) { /* its buffer outlived the clear: a trace's, when a device is closed */
		s->lists[list].cleared--;
	} else if (list && !list_record(s, list)->late) {
		s->ledger->unknown++;
	}
	end(s);
	return slot != 0;
}

/* Notes when the oldest block of a site was allocated that is left behind, before
 * any is: quarters count from there. */
static void note_oldest(struct state *s, uint32_t n, int64_t time)
{
	struct ttmon_site *site = record(s, TTMON_SITES, n);
	if (site->left_oldest == 0 || time < site->left_oldest)
		site->left_oldest = time;
}

static void leave_behind(struct state *s, uint32_t list, uint32_t n, uint64_t bytes, int64_t time)
{
	struct ttmon_site *site = record(s, TTMON_SITES, n);
	struct ttmon_ledger_list *l = list_record(s, list);
	s->lists[list].cleared++;
	if (site->kept)
		return;
	uint64_t first = done_before(&s->progress, site->left_oldest), span = s->progress.done - first;
	uint64_t quarter = time > site->left_oldest ? (done_before(&s->progress, time) - first) / (span / 4 + 1) : 0;
	uint16_t *count = &site->left_quarters[quarter < 3 ? quarter : 3];
	*count += *count < UINT16_MAX;
	if (bytes > site->left_largest)
		site->left_largest = bytes;
	site->left_bytes += bytes;
	site->left_blocks++;
	l->left_bytes += bytes;
	l->left_blocks++;
}

void drop_all(struct state *s, uint32_t list)
{
	tell(s, (struct ttmon_event){.kind = TTMON_EVENT_CLEAR, .list = list});
	for (uint32_t i = 0; i < s->pending_used; i++)
		if (s->pending[i].list == list)
			note_oldest(s, s->pending[i].site, s->pending[i].time);
	for (uint32_t i = 0; i < s->pending_used; i++)
		if (s->pending[i].list == list)
			leave_behind(s, list, s->pending[i].site, s->pending[i].bytes, s->pending[i].time);
	if (s->pending_used)
		forget_pending(s, list);
	if (list_record(s, list)->live_blocks == 0)
		return;
	uint32_t used = s->ledger->section[TTMON_BLOCKS].used;
	for (uint32_t slot = 1; slot <= used; slot++) {
		const struct ttmon_block *b = record(s, TTMON_BLOCKS, slot - 1);
		if (b->site && ((struct ttmon_site *)record(s, TTMON_SITES, b->site))->list == list)
			note_oldest(s, b->site, b->time);
	}
	for (uint32_t slot = 1; slot <= used; slot++) {
		struct ttmon_block *b = record(s, TTMON_BLOCKS, slot - 1);
		if (b->site == 0 || ((struct ttmon_site *)record(s, TTMON_SITES, b->site))->list != list)
			continue;
		struct ttmon_block old = drop_block(s, slot);
		leave_behind(s, list, old.site, old.bytes, old.time);
	}
}
