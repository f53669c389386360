/* Requests that failed, with the allocator as it was: all lists of it and their
 * blocks, copied into a part of the ledger of their own.
 *
 * A copy costs 30 ns a block. A program that asks again and again pays for it
 * from a credit, so that copies never take more than a fiftieth of its time;
 * what comes in between is counted, and of a new line noted without its blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "change.h"

enum { CREDIT = 20 * 1000 * 1000, SHARE = 50 };

static int64_t exact_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct ttmon_failure *failure_at(struct state *s, uint32_t n) { return record(s, FAILURES_SECTION, n); }

/* Why a list refuses a request, as far as its sums say it. Requests of one line that
 * fail for different reasons are told apart: another fix helps. */
static uint32_t reason(const struct ttmon_ledger_list *l, uint64_t bytes)
{
	enum { TOO_LARGE = 1, FULL, NO_HOLE };
	if (bytes > l->capacity)
		return TOO_LARGE;
	return bytes > l->capacity - (l->live_bytes < l->capacity ? l->live_bytes : l->capacity) ? FULL : NO_HOLE;
}

/* The record for a list, reason and stack: the one that it has, a free one, or the
 * one that was used longest ago. NULL where there is no room. */
static struct ttmon_failure *find_failure(struct state *s, uint32_t kind, uint32_t list, uint32_t why, uint32_t node)
{
	struct ttmon_section *x = section_of(s, FAILURES_SECTION);
	if (x->used == 0) {
		if (!region_reserve(s, FAILURES_SECTION, TTMON_FAILURE_RECORDS))
			return NULL;
		memset(failure_at(s, 0), 0, sizeof(struct ttmon_failure) * TTMON_FAILURE_RECORDS);
		atomic_store_explicit((_Atomic uint32_t *)&x->used, TTMON_FAILURE_RECORDS, memory_order_release);
	}
	struct ttmon_failure *oldest = NULL;
	int64_t made = list_record(s, list)->made;
	for (uint32_t i = 0; i < TTMON_FAILURE_RECORDS; i++) {
		struct ttmon_failure *f = failure_at(s, i);
		if (f->number && f->kind == kind && f->made == made && f->list[0].list == list && f->reason == why && f->node == node)
			return f;
		if (!oldest || f->last < oldest->last)
			oldest = f;
	}
	memset(oldest, 0, sizeof *oldest);
	return oldest;
}

/* Whether there is time for a copy now. */
static bool may_copy(struct state *s, int64_t at)
{
	s->failure_credit += (at - s->failure_time) / SHARE;
	if (s->failure_time == 0 || s->failure_credit > CREDIT)
		s->failure_credit = CREDIT;
	s->failure_time = at;
	return s->failure_credit > 0;
}

static void describe(struct ttmon_failed_list *to, uint32_t list, const struct ttmon_ledger_list *l)
{
	*to = (struct ttmon_failed_list){
		.list = list, .pool = l->pool, .late = l->late, .banks = l->banks, .nth = l->nth, .capacity = l->capacity, .base = l->base,
		.alignment = l->alignment, .smallest = l->smallest, .cut_low = l->cut_low, .cut_high = l->cut_high, .blocks = l->live_blocks,
	};
}

/* The lists of the allocator: the one that was asked, then the others. */
static void describe_lists(struct state *s, struct ttmon_failure *f, uint32_t asked)
{
	const struct ttmon_ledger_list *l = list_record(s, asked);
	f->group = l->group;
	f->sub_device = l->sub_device;
	memcpy(f->chips, l->chips, sizeof f->chips);
	describe(&f->list[0], asked, l);
	f->lists = 1;
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t n = 1; n < used && f->lists < sizeof f->list / sizeof *f->list; n++) {
		const struct ttmon_ledger_list *o = list_record(s, n);
		if (n != asked && o->state == TTMON_LIST_OPEN && o->group == l->group)
			describe(&f->list[f->lists++], n, o);
	}
}

/* Room for n blocks. What older failures have there is theirs no more. */
static bool make_room(struct state *s, struct ttmon_failure *f, uint32_t n)
{
	struct ttmon_section *x = section_of(s, FAILED_BLOCKS_SECTION);
	uint32_t from = x->reserved; /* where the next ones go */
	if (from + n > TTMON_FAILED_BLOCK_RECORDS)
		from = 0;
	if (n > TTMON_FAILED_BLOCK_RECORDS || !region_reserve(s, FAILED_BLOCKS_SECTION, from + n))
		return false;
	for (uint32_t i = 0; i < TTMON_FAILURE_RECORDS; i++) {
		struct ttmon_failure *o = failure_at(s, i);
		if (o != f && o->first_block < from + n && from < o->first_block + o->blocks) {
			o->missed += o->blocks;
			o->blocks = 0;
		}
	}
	x->reserved = from + n;
	f->first_block = from;
	if (x->used < from + n)
		atomic_store_explicit((_Atomic uint32_t *)&x->used, from + n, memory_order_release);
	return true;
}

static bool has_list(const struct ttmon_failure *f, uint32_t list)
{
	for (int i = 0; i < f->lists; i++)
		if (f->list[i].list == list)
			return true;
	return false;
}

static void copy_blocks(struct state *s, struct ttmon_failure *f, bool copy)
{
	uint64_t n = 0;
	for (int i = 0; i < f->lists; i++)
		n += f->list[i].blocks;
	f->blocks = f->missed = 0;
	if (n == 0)
		return;
	if (!copy || n > UINT32_MAX || !make_room(s, f, (uint32_t)n)) {
		f->missed = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
		return;
	}
	uint32_t used = s->ledger->section[TTMON_BLOCKS].used;
	const struct ttmon_block *b = record(s, TTMON_BLOCKS, 0);
	struct ttmon_failed_block *to = record(s, FAILED_BLOCKS_SECTION, f->first_block);
	for (uint32_t i = 0; i < used && f->blocks < n; i++, b++) {
		if (b->site == 0)
			continue;
		const struct ttmon_site *site = record(s, TTMON_SITES, b->site);
		if (!has_list(f, site->list))
			continue;
		*to++ = (struct ttmon_failed_block){
			.address = b->address, .bytes = b->bytes, .asked = b->asked, .time = b->time, .node = site->node, .tag = site->tag, .list = site->list, .tensor = site->tensor,
		};
		f->blocks++;
	}
}

/* Of a clash, or of a trace: as in struct ttmon_failure. */
struct clash {
	uint64_t program, reach, lowest;
	uint32_t cores;
	uint64_t region, needed;
};

/* Notes a failure; the lock is held. */
static void keep_failure(struct state *s, uint32_t kind, uint32_t list, const struct request *r, const struct clash *c)
{
	uint32_t node = stack_of(s, atomic_load_explicit(&s->stacks, memory_order_relaxed) | TTMON_STACKS_PYTHON);
	int64_t at = exact_now();
	bool copy = may_copy(s, at);
	uint32_t why = kind == TTMON_FAILURE_NO_ROOM ? reason(list_record(s, list), r->bytes) : 0;
	struct ttmon_failure *f = find_failure(s, kind, list, why, node);
	if (!f)
		return;
	f->count++;
	f->last = at;
	if (f->number && !copy)
		return;
	if (f->number == 0) {
		f->number = ++s->failures;
		f->first = at;
		f->node = node;
		f->reason = why;
		f->made = list_record(s, list)->made;
	}
	f->kind = (uint8_t)kind;
	f->time = at;
	f->tag = current_tag(s);
	f->tensor = kind == TTMON_FAILURE_NO_ROOM ? current_tensor(s) : 0;
	f->bytes = r->bytes;
	f->asked = r->asked;
	f->page = r->page;
	f->limit = r->limit;
	f->shards = r->shards;
	f->bottom_up = r->bottom_up;
	f->known = r->known;
	f->program = c->program;
	f->reach = c->reach;
	f->lowest = c->lowest;
	f->cores = c->cores;
	f->region = c->region;
	f->needed = c->needed;
	describe_lists(s, f, list);
	copy_blocks(s, f, copy);
	s->failure_credit -= exact_now() - at;
}

void list_failed(struct state *s, uint64_t object, const struct request *r)
{
	if (!ready(s))
		return;
	stacks_prepare();
	uint32_t list = begin_list(s, object);
	if (list) {
		struct ttmon_ledger_list *l = list_record(s, list);
		l->failed++;
		l->failed_bytes = r->bytes;
		tell(s, (struct ttmon_event){.kind = TTMON_EVENT_FAILED, .list = list, .bytes = r->bytes, .asked = r->asked});
		keep_failure(s, TTMON_FAILURE_NO_ROOM, list, r, &(struct clash){0});
	}
	end(s);
}

bool failed_lately(const struct state *s)
{
	return s->failure_time && exact_now() - s->failure_time < 10 * (int64_t)1000000000;
}

/* ---- Circular buffers ------------------------------------------------------- */

static void set(struct table *t, uint64_t key, uint32_t value)
{
	if (table_get(t, key))
		table_drop(t, key);
	if (value)
		table_put(t, key, value);
}

void program_laid(struct state *s, uint64_t program, uint64_t end_address, uint32_t cores)
{
	if (!ready(s) || end_address >> 32)
		return;
	enter(s);
	uint32_t old = table_get(&s->programs, program);
	if (end_address == 0 || end_address > old) {
		set(&s->programs, program, (uint32_t)end_address);
		set(&s->cores, program, cores);
	} else if (end_address == old && cores) {
		set(&s->cores, program, cores);
	}
	leave(s);
}

void program_gone(struct state *s, uint64_t program)
{
	if (ready(s))
		program_laid(s, program, 0, 0);
}

/* The list of L1 with the lowest block below an address, and that block's
 * address; 0: none. The check is of one device, and other devices' lists have
 * blocks too: of several that would clash it cannot be told which one did. */
static uint32_t clashing_list(struct state *s, uint64_t reach, uint64_t *lowest)
{
	uint32_t found = 0;
	uint32_t used = s->ledger->section[TTMON_BLOCKS].used;
	for (uint32_t i = 0; i < used; i++) {
		const struct ttmon_block *b = record(s, TTMON_BLOCKS, i);
		if (b->site == 0 || b->address >= reach)
			continue;
		uint32_t list = ((struct ttmon_site *)record(s, TTMON_SITES, b->site))->list;
		const struct ttmon_ledger_list *l = list_record(s, list);
		if (l->pool != TTMON_L1 || l->state != TTMON_LIST_OPEN || (found && b->address >= *lowest))
			continue;
		found = list;
		*lowest = b->address;
	}
	return found;
}

/* ---- Traces ----------------------------------------------------------------- */

/* Whether a list can be that of a trace region of so many bytes: each bank has all
 * of it (before 0.74), or its part, rounded up. */
static bool is_region(const struct ttmon_ledger_list *l, uint64_t region)
{
	enum { ROUND = 8192 };
	if (l->pool != TTMON_TRACE || l->state != TTMON_LIST_OPEN || l->banks == 0)
		return false;
	uint64_t part = (region + l->banks - 1) / l->banks;
	return l->capacity == region || l->capacity == (part + ROUND - 1) / ROUND * ROUND;
}

/* Whether an allocator has ever given anything out. Those of the chips of a mesh
 * never do. */
static bool group_used(struct state *s, uint32_t group)
{
	uint32_t used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t n = 1; n < used; n++)
		if (list_record(s, n)->group == group && list_record(s, n)->total_blocks)
			return true;
	return false;
}

static uint32_t open_chips(struct state *s)
{
	uint32_t open = 0, used = s->ledger->section[TTMON_CHIPS].used;
	for (uint32_t n = 0; n < used; n++)
		open += ((struct ttmon_chip *)record(s, TTMON_CHIPS, n))->open == 1;
	return open;
}

/* The list that a size fits; 0: none. Of several it is the one that was made last of
 * those whose allocators are in use, or of all. */
static uint32_t list_fitting(struct state *s, bool (*fits)(const struct ttmon_ledger_list *, uint64_t), uint64_t size, bool *several)
{
	uint32_t found = 0, in_use = 0, used = s->ledger->section[TTMON_LISTS].used;
	for (uint32_t n = 1; n < used; n++) {
		const struct ttmon_ledger_list *l = list_record(s, n);
		if (!fits(l, size))
			continue;
		bool uses = group_used(s, l->group);
		if (in_use && !uses)
			continue;
		if (!found || (uses && !in_use) || l->made >= list_record(s, found)->made)
			found = n;
		in_use += uses;
	}
	*several = in_use > 1 || (in_use == 0 && open_chips(s) > 1);
	return found;
}

void trace_refused(struct state *s, uint64_t needed, uint64_t region)
{
	if (!ready(s))
		return;
	stacks_prepare();
	begin(s);
	bool several;
	uint32_t list = list_fitting(s, is_region, region, &several);
	if (list) {
		struct request r = {.known = several ? TTMON_SEVERAL_DEVICES : 0};
		keep_failure(s, TTMON_FAILURE_TRACE, list, &r, &(struct clash){.region = region, .needed = needed});
	}
	end(s);
}

/* ---- Circular buffers that do not fit --------------------------------------- */

static bool ends_before(const struct ttmon_ledger_list *l, uint64_t reach)
{
	return l->pool == TTMON_L1 && l->state == TTMON_LIST_OPEN && l->capacity && l->base + l->capacity < reach;
}

/* The check of a program's circular buffers threw: they reach into a buffer, or end
 * behind L1. */
void program_clashed(struct state *s, uint64_t program)
{
	if (!ready(s))
		return;
	stacks_prepare();
	begin(s);
	struct clash c = {.program = program, .reach = table_get(&s->programs, program), .cores = table_get(&s->cores, program)};
	struct request r = {.bytes = c.reach};
	uint32_t list = c.reach ? clashing_list(s, c.reach, &c.lowest) : 0;
	if (c.reach && !list) {
		bool several;
		list = list_fitting(s, ends_before, c.reach, &several);
		r.known = several ? TTMON_SEVERAL_DEVICES : 0;
	}
	if (list)
		keep_failure(s, TTMON_FAILURE_CLASH, list, &r, &c);
	end(s);
}
