/* Where tt-metal's real-time profiler is listened to. What is
 * read of tt-metal's own objects are the records that its functions have just
 * made, and only where they say the same as the pages that they were made from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "metal.h"
#include "work.h"

/* A page as the chip sends it. */
struct page {
	uint32_t start_high, start_low, id, marker, end_high, end_low, id_again, unused[9];
};

enum { PAGE_SYNC = 0xffffffffu, PAGE_STALL = 0xfffffffeu };

/* ProgramRealtimeRecord since 0.73. */
struct record_now {
	uint32_t id, chip;
	uint64_t start, end;
	double ticks_per_ns;
	const struct view *sources;
	uint64_t count;
};

/* A std::string_view. */
struct view {
	size_t length;
	const char *text;
};

/* ProgramRealtimeRecord of 0.71 and 0.72. */
struct record_old {
	uint32_t id;
	uint64_t start, end;
	double ticks_per_ns;
	uint32_t chip;
	const struct string *begin, *end_of_sources;
};

/* A std::string. */
struct string {
	const char *text;
	size_t length;
	char small[16];
};

struct vector {
	const struct record_now *begin, *end, *capacity;
};

static const char *view_text(const struct program *p, uint64_t i, size_t *length)
{
	const struct view *v = (const struct view *)p->sources + i;
	*length = v->length;
	return v->text;
}

static const char *string_text(const struct program *p, uint64_t i, size_t *length)
{
	const struct string *v = (const struct string *)p->sources + i;
	*length = v->length;
	return v->text;
}

static bool is_program(const struct page *p) { return p->marker != PAGE_SYNC && p->marker != PAGE_STALL && p->id != 0; }

static bool plausible(double ticks_per_ns) { return ticks_per_ns > 0.01 && ticks_per_ns < 100; }

/* Whether a record says what its page says. */
static bool agrees(const struct record_now *r, const struct page *p)
{
	return r->id == p->id && r->start == ((uint64_t)p->start_high << 32 | p->start_low) &&
	       r->end == ((uint64_t)p->end_high << 32 | p->end_low) && r->chip < WORK_CHIPS && plausible(r->ticks_per_ns);
}

/* Whether the first and the last record say what the pages say: then they are
 * laid out as we know them. */
static bool agree(const struct vector *v, const struct page *pages, uint32_t n, size_t programs)
{
	if (((uintptr_t)v->end - (uintptr_t)v->begin) != programs * sizeof *v->begin)
		return false;
	if (programs == 0)
		return true;
	uint32_t first = 0, last = n - 1;
	while (!is_program(&pages[first]))
		first++;
	while (!is_program(&pages[last]))
		last--;
	const struct record_now *end = v->end - 1;
	return agrees(v->begin, &pages[first]) && (programs == 1 || (agrees(end, &pages[last]) && end->chip == v->begin->chip));
}

/* Pages that are no programs. */
static size_t count_others(struct ttmon_work *r, const struct page *pages, uint32_t n)
{
	size_t others = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (is_program(&pages[i]))
			continue;
		others++;
		if (!r)
			continue;
		if (pages[i].marker == PAGE_STALL) {
			r->stalls++;
			r->stalled += pages[i].id;
		} else if (pages[i].marker != PAGE_SYNC) {
			r->unprofiled++;
		}
	}
	return others;
}

static void take(struct state *s, const uint32_t *device, const struct page *pages, uint32_t n, const struct vector *v, uint8_t loss)
{
	if (n == 0)
		return;
	size_t programs = n - count_others(NULL, pages, n);
	bool known = agree(v, pages, n, programs);
	/* Without a program the chip is where every release has had it. */
	struct work_chip *c = work_chip(s, known && programs ? v->begin->chip : device[2]);
	struct work *w = atomic_load_explicit(&s->work, memory_order_acquire);
	if (!c || !w)
		return;
	struct batch b = {.ticks_per_ns = known && programs ? v->begin->ticks_per_ns : c->record->ticks_per_ns, .loss = known ? loss : TTMON_WORK_UNREADABLE};
	b.end = known && programs ? v->end[-1].end : 0;
	if (programs == 0)
		b.now = c->record->last_record;
	else
		b.now = known ? work_time(c, v->end[-1].end) : exact_now();
	work_begin(c, &b);
	if (programs < n)
		count_others(c->record, pages, n);
	for (const struct record_now *r = v->begin; known && r < v->end; r++)
		work_program(s, w, c, &b, &(struct program){r->start, r->end, r->id, r->sources, r->sources ? r->count : 0, false}, view_text);
	work_end(c, &b);
}

HOOK void METAL_work_pages(uint64_t manager, const uint32_t *device, const struct page *pages, uint32_t n, const struct vector *records)
{
	CALL(void (*)(uint64_t, const uint32_t *, const struct page *, uint32_t, const struct vector *), work_pages, );
	call(manager, device, pages, n, records);
	if (s)
		take(s, device, pages, n, records, TTMON_WORK_LOSSLESS);
}

HOOK void METAL_work_pages_const(uint64_t manager, const uint32_t *device, const struct page *pages, uint32_t n, const struct vector *records)
{
	CALL(void (*)(uint64_t, const uint32_t *, const struct page *, uint32_t, const struct vector *), work_pages_const, );
	call(manager, device, pages, n, records);
	if (s)
		take(s, device, pages, n, records, TTMON_WORK_LOSSY);
}

/* 0.71 to 0.75: one call for each record, in one of two layouts. They differ
 * behind the clock: a chip and a vector, or a pointer and a small count. */
static bool is_old(const void *record)
{
	static _Atomic int said; /* 1: now, 2: old; the last that was certain */
	const struct record_now *r = record;
	if ((uintptr_t)r->sources >= 4096 && r->count > 0 && r->count < 4096)
		atomic_store_explicit(&said, 1, memory_order_relaxed);
	else if ((uintptr_t)r->sources < WORK_CHIPS && r->count >= 4096)
		atomic_store_explicit(&said, 2, memory_order_relaxed);
	else if ((uint32_t)(uintptr_t)r->sources != 0 && (uint32_t)(uintptr_t)r->sources < WORK_CHIPS)
		return true;
	return atomic_load_explicit(&said, memory_order_relaxed) == 2;
}

HOOK void METAL_work_record(const void *record)
{
	struct state *s;
	void (*call)(const void *) = (void (*)(const void *))metal_original(SYM_work_record, __builtin_return_address(0), &s);
	if (!call)
		call = (void (*)(const void *))metal_any(SYM_work_record, &s);
	if (!call)
		return;
	call(record);
	if (!s)
		return;
	const struct record_now *r = record;
	const struct record_old *old = record;
	bool is = is_old(record);
	struct program p = {r->start, r->end, r->id, r->sources, r->sources ? r->count : 0, is};
	if (is) {
		p.sources = old->begin;
		p.count = old->begin ? (uint64_t)(old->end_of_sources - old->begin) : 0;
	}
	struct work_chip *c = plausible(r->ticks_per_ns) ? work_chip(s, is ? old->chip : r->chip) : NULL;
	struct work *w = atomic_load_explicit(&s->work, memory_order_acquire);
	if (!c || !w)
		return;
	struct batch b = {.ticks_per_ns = r->ticks_per_ns, .loss = TTMON_WORK_LOSSY, .now = work_time(c, p.end), .end = p.end};
	work_begin(c, &b);
	work_program(s, w, c, &b, &p, is ? string_text : view_text);
	work_end(c, &b);
}

/* A chip's records will come, or no more. */
HOOK void METAL_work_on(uint64_t context, uint32_t chip)
{
	CALL(void (*)(uint64_t, uint32_t), work_on, );
	if (s)
		work_state(s, chip, TTMON_WORK_ON);
	call(context, chip);
}

HOOK void METAL_work_on_old(uint32_t chip)
{
	CALL(void (*)(uint32_t), work_on_old, );
	if (s)
		work_state(s, chip, TTMON_WORK_ON);
	call(chip);
}

HOOK void METAL_work_off(uint64_t context, uint32_t chip)
{
	CALL(void (*)(uint64_t, uint32_t), work_off, );
	call(context, chip);
	if (s)
		work_state(s, chip, TTMON_WORK_OFF);
}

HOOK void METAL_work_off_old(uint32_t chip)
{
	CALL(void (*)(uint32_t), work_off_old, );
	call(chip);
	if (s)
		work_state(s, chip, TTMON_WORK_OFF);
}
