/* The programs that ran on chips, counted as tt-metal's real-time profiler
 * reports them. Its receiver thread must never wait: from 0.80 on the chip does
 * when that thread is late. So nothing here takes a lock or allocates, but for
 * the first record of a chip.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "work.h"

enum { MARK_NS = 1000000000, MOMENT_NS = 1000000 };

int64_t exact_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct work *work_of(struct state *s)
{
	struct work *w = atomic_load_explicit(&s->work, memory_order_acquire);
	if (w || !region_make(s))
		return w;
	enter(s);
	w = atomic_load(&s->work);
	if (!w) {
		uint32_t names = section_of(s, NAMES_SECTION)->capacity;
		w = region_reserve(s, NAMES_SECTION, names) ? memory(sizeof *w) : NULL;
		if (w) {
			atomic_store(&w->names_used, 1); /* 0 is none */
			section_of(s, NAMES_SECTION)->used = names;
			atomic_store_explicit(&s->work, w, memory_order_release);
		}
	}
	leave(s);
	return w;
}

static struct work_chip *make_chip(struct state *s, struct work *w, uint32_t logical)
{
	uint32_t n = atomic_load(&w->chips_used);
	if (n >= WORK_CHIPS || !region_reserve(s, WORK_SECTION, n + 1) || !region_reserve(s, OPS_SECTION, (n + 1) * TTMON_CHIP_OPS) ||
	    !region_reserve(s, GAPS_SECTION, (n + 1) * TTMON_CHIP_GAPS))
		return NULL;
	struct work_chip *c = memory(sizeof *c);
	if (!c)
		return NULL;
	c->record = record(s, WORK_SECTION, n);
	c->ops = record(s, OPS_SECTION, n * TTMON_CHIP_OPS);
	c->gaps = record(s, GAPS_SECTION, n * TTMON_CHIP_GAPS);
	c->ops_used = 1;
	c->record->logical = (int32_t)logical;
	c->record->since = c->record->mark[0].time = c->record->mark[1].time = exact_now();
	section_of(s, OPS_SECTION)->used = (n + 1) * TTMON_CHIP_OPS;
	section_of(s, GAPS_SECTION)->used = (n + 1) * TTMON_CHIP_GAPS;
	atomic_store_explicit((_Atomic uint32_t *)&section_of(s, WORK_SECTION)->used, n + 1, memory_order_release);
	atomic_store(&w->chips_used, n + 1);
	atomic_store_explicit(&w->chips[logical], c, memory_order_release);
	return c;
}

struct work_chip *work_chip(struct state *s, uint32_t logical)
{
	struct work *w = work_of(s);
	if (!w || logical >= WORK_CHIPS)
		return NULL;
	struct work_chip *c = atomic_load_explicit(&w->chips[logical], memory_order_acquire);
	if (c)
		return c;
	enter(s);
	c = atomic_load(&w->chips[logical]);
	if (!c)
		c = make_chip(s, w, logical);
	leave(s);
	return c;
}

static void odd(struct ttmon_work *r)
{
	_Atomic uint32_t *sequence = (_Atomic uint32_t *)&r->sequence;
	atomic_store_explicit(sequence, atomic_load_explicit(sequence, memory_order_relaxed) | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void even(struct ttmon_work *r)
{
	_Atomic uint32_t *sequence = (_Atomic uint32_t *)&r->sequence;
	atomic_store_explicit(sequence, (atomic_load_explicit(sequence, memory_order_relaxed) | 1) + 1, memory_order_release);
}

/* A device that is opened again may have another clock. */
static void scale(struct work_chip *c, double to)
{
	struct ttmon_work *r = c->record;
	if (r->ticks_per_ns > 0) {
		double by = to / r->ticks_per_ns;
		uint64_t *all[] = {&r->busy, &r->gap, &r->longest_gap, &r->longest, &r->stalled, &r->mark[0].busy, &r->mark[1].busy, &c->kept_gap};
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			*all[i] = (uint64_t)((double)*all[i] * by + 0.5);
		for (uint32_t i = 0; i < c->ops_used; i++) {
			c->ops[i].ticks = (uint64_t)((double)c->ops[i].ticks * by + 0.5);
			c->ops[i].longest = (uint64_t)((double)c->ops[i].longest * by + 0.5);
		}
		for (int i = 0; i < TTMON_CHIP_GAPS; i++)
			c->gaps[i].ticks = (uint64_t)((double)c->gaps[i].ticks * by + 0.5);
	}
	r->ticks_per_ns = to;
	c->moment = (uint64_t)(to * MOMENT_NS);
	c->short_gap = (uint64_t)(to * TTMON_GAP_NS);
	c->aligned = false;
}

int64_t work_time(struct work_chip *c, uint64_t end)
{
	if (end - c->timed < c->moment)
		return c->record->last_record;
	c->timed = end;
	return exact_now();
}

/* A record comes after its program has ended, how long after is not known: the
 * least that was seen is nearest to the truth. That may grow by 61 ns in a
 * millisecond, since two clocks never go at the same rate. */
static void align(struct work_chip *c, const struct batch *b)
{
	double offset = (double)b->now - (double)b->end / b->ticks_per_ns;
	double most = c->offset + (double)(b->now - c->record->last_record) / (1 << 14);
	c->offset = c->aligned && most < offset ? most : offset;
	c->aligned = true;
}

/* When a program began that is in this batch. */
static int64_t begun_at(const struct work_chip *c, const struct batch *b, uint64_t start)
{
	double at = c->aligned ? (double)start / b->ticks_per_ns + c->offset : (double)b->now;
	if (at > (double)b->now)
		return b->now;
	return at > (double)c->record->since ? (int64_t)at : c->record->since;
}

/* Keeps a pause in place of the shortest one that is kept. Few are: the longer a
 * chip reports, the seldomer a pause is among its longest. */
static void keep_gap(struct work_chip *c, const struct batch *b, uint64_t ticks, uint64_t start)
{
	struct ttmon_gap *shortest = c->gaps;
	for (int i = 1; i < TTMON_CHIP_GAPS; i++)
		if (c->gaps[i].ticks < shortest->ticks)
			shortest = &c->gaps[i];
	*shortest = (struct ttmon_gap){.ticks = ticks, .end = begun_at(c, b, start), .after = c->ended_name};
	c->kept_gap = ticks;
	for (int i = 0; i < TTMON_CHIP_GAPS; i++)
		if (c->gaps[i].ticks < c->kept_gap)
			c->kept_gap = c->gaps[i].ticks;
}

void work_begin(struct work_chip *c, const struct batch *b)
{
	odd(c->record);
	if (c->record->ticks_per_ns != b->ticks_per_ns || c->moment == 0)
		scale(c, b->ticks_per_ns);
	if (b->end && b->now != c->record->last_record)
		align(c, b);
}

/* Programs of one name share a record, whatever named them. */
static uint32_t op_of_name(struct work_chip *c, uint32_t name)
{
	for (uint32_t i = 1; i < c->ops_used; i++)
		if (c->ops[i].name == name)
			return i;
	if (name == 0 || c->ops_used >= TTMON_CHIP_OPS)
		return 0;
	c->ops[c->ops_used].name = name;
	return c->ops_used++;
}

static uint32_t name_of(struct state *s, struct work *w, uint32_t given, const struct program *p, source_text read)
{
	if (given)
		return given;
	size_t n = 0;
	for (uint64_t i = 0; i < p->count; i++) {
		const char *path = read(p, i, &n);
		size_t length = 0;
		const char *name = path && n < 4096 ? name_in_path(path, n, &length) : NULL;
		if (name && length)
			return name_number(s, w, name, length);
	}
	return 0;
}

static uint32_t op_of(struct state *s, struct work *w, struct work_chip *c, const struct program *p, source_text read)
{
	uint32_t given = atomic_load_explicit(&w->by_id[p->id & (IDS - 1)], memory_order_relaxed);
	uint64_t key = given ? given : (uint64_t)(uintptr_t)p->sources;
	if (key == 0)
		return 0;
	if (p->fleeting && !given)
		return op_of_name(c, name_of(s, w, 0, p, read));
	uint32_t at = (uint32_t)((key ^ key >> 32) * 0x9e3779b97f4a7c15u >> 54) % OP_CACHE;
	if (c->cache[at].key != key) {
		c->cache[at].op = op_of_name(c, name_of(s, w, given, p, read));
		c->cache[at].key = key;
	}
	return c->cache[at].op;
}

void work_program(struct state *s, struct work *w, struct work_chip *c, const struct batch *b, const struct program *p, source_text read)
{
	struct ttmon_work *r = c->record;
	if (p->end < p->start) {
		r->refused++;
		return;
	}
	uint64_t ticks = p->end - p->start;
	uint32_t number = op_of(s, w, c, p, read);
	struct ttmon_op *op = &c->ops[number];
	op->calls++;
	op->ticks += ticks;
	if (ticks > op->longest)
		op->longest = ticks;
	r->programs++;
	r->last_name = op->name;
	if (ticks > r->longest) {
		r->longest = ticks;
		r->longest_name = op->name;
	}
	if (r->last_end == 0) {
		r->first_start = p->start;
	} else if (p->start > r->last_end) {
		uint64_t gap = p->start - r->last_end;
		if (gap > r->longest_gap)
			r->longest_gap = gap;
		if (gap > c->kept_gap)
			keep_gap(c, b, gap, p->start);
		if (gap <= c->short_gap) {
			r->gaps++;
			r->gap += gap;
		}
	}
	uint64_t from = p->start > r->last_end ? p->start : r->last_end;
	if (p->end > from) {
		r->busy += p->end - from;
		r->last_end = p->end;
		c->ended_name = op->name;
	}
}

void work_end(struct work_chip *c, const struct batch *b)
{
	struct ttmon_work *r = c->record;
	if (r->state == TTMON_WORK_OFF)
		r->state = TTMON_WORK_FOUND;
	r->loss = b->loss;
	r->last_record = b->now;
	if (b->now - r->mark[0].time > MARK_NS) {
		r->mark[1] = r->mark[0];
		r->mark_end[1] = r->mark_end[0];
		r->mark[0].time = b->now;
		r->mark[0].busy = r->busy;
		r->mark_end[0] = r->last_end;
	}
	even(r);
}

void work_state(struct state *s, uint32_t logical, uint8_t to)
{
	struct work_chip *c = work_chip(s, logical);
	if (!c)
		return;
	odd(c->record);
	c->record->state = to;
	if (to == TTMON_WORK_ON) { /* the clock of a chip that was reset begins again */
		c->record->first_start = c->record->last_end = c->record->mark_end[0] = c->record->mark_end[1] = 0;
		c->moment = c->timed = 0;
		memset(c->cache, 0, sizeof c->cache); /* of pointers that may stand for others now */
	}
	even(c->record);
}
