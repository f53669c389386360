/* Tags, stacks and texts: each is stored once and has a number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/* ---- Sites ------------------------------------------------------------------ */

/* The key of a site. A tag is below 2^22, a node below 2^18, a list below 2^12;
 * sites that differ in the tensor take turns with the bits that are left, and what
 * tt-metal keeps has the last value of them. */
uint64_t site_key(const struct ttmon_site *site, uint32_t turn)
{
	uint64_t bits = site->kept ? 4095 : site->tensor ? (site->tensor + turn) % 4094 + 1 : 0;
	return bits << 52 | (uint64_t)site->list << 40 | (uint64_t)site->node << 22 | site->tag;
}

enum { TURNS = 8 };

uint32_t site_of(struct state *s, uint32_t list, uint32_t tag, uint32_t node, uint32_t tensor, bool kept)
{
	struct ttmon_section *x = &s->ledger->section[TTMON_SITES];
	/* A program with ever new shapes must not take the room of new lines. */
	if (kept || (tensor && x->used > x->capacity / 2 && !s->free_site))
		tensor = 0;
	struct ttmon_site wanted = {.list = list, .tag = tag, .node = node, .tensor = tensor, .kept = kept};
	uint64_t key = 0;
	uint32_t n = 0;
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		key = site_key(&wanted, turn);
		n = table_get(&s->sites, key);
		if (!n)
			break;
		if (((struct ttmon_site *)record(s, TTMON_SITES, n))->tensor == tensor)
			return n;
	}
	if (n)
		return site_of(s, list, tag, node, 0, false);
	if (s->free_site) {
		n = s->free_site;
		s->free_site = s->site_next[n];
	} else if (x->used < x->capacity && region_reserve(s, TTMON_SITES, x->used + 1)) {
		n = x->used;
	}
	if (n == 0 || !table_put(&s->sites, key, n)) {
		s->ledger->flags |= TTMON_NO_SITES;
		return s->lists[list].plain;
	}
	struct ttmon_ledger_list *l = record(s, TTMON_LISTS, list);
	*(struct ttmon_site *)record(s, TTMON_SITES, n) =
		(struct ttmon_site){.list = list, .tag = tag, .node = node, .tensor = tensor, .kept = kept, .peak_count = l->peak_count};
	if (n == x->used)
		atomic_store_explicit((_Atomic uint32_t *)&x->used, n + 1, memory_order_release);
	s->site_next[n] = s->lists[list].sites;
	s->lists[list].sites = n;
	return n;
}

/* ---- Texts ------------------------------------------------------------------ */

uint32_t text(struct state *s, const char *bytes, size_t n)
{
	if (n == 0)
		return 0;
	uint64_t hash = 14695981039346656037u;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
	for (hash += hash == 0;; hash += 1 + (hash == UINT64_MAX)) {
		uint32_t at = table_get(&s->strings, hash), length;
		if (at == 0)
			break;
		const char *old = record(s, TTMON_STRINGS, at);
		memcpy(&length, old, sizeof length);
		if (length == n && memcmp(old + sizeof length, bytes, n) == 0)
			return at;
	}
	struct ttmon_section *x = &s->ledger->section[TTMON_STRINGS];
	uint32_t at = x->used, length = (uint32_t)n;
	if (n > 4096 || at + sizeof length + n > x->capacity || !region_reserve(s, TTMON_STRINGS, at + sizeof length + (uint32_t)n) ||
	    !table_put(&s->strings, hash, at)) {
		s->ledger->flags |= TTMON_NO_SITES;
		return 0;
	}
	char *to = record(s, TTMON_STRINGS, at);
	memcpy(to, &length, sizeof length);
	memcpy(to + sizeof length, bytes, n);
	atomic_store_explicit((_Atomic uint32_t *)&x->used, at + (uint32_t)sizeof length + length, memory_order_release);
	return at;
}

/* ---- Stacks ----------------------------------------------------------------- */

uint32_t frame_new(struct state *s, const struct ttmon_frame *f)
{
	struct ttmon_section *x = &s->ledger->section[TTMON_FRAMES];
	if (x->used >= x->capacity || !region_reserve(s, TTMON_FRAMES, x->used + 1)) {
		s->ledger->flags |= TTMON_NO_SITES;
		return 0;
	}
	*(struct ttmon_frame *)record(s, TTMON_FRAMES, x->used) = *f;
	atomic_store_explicit((_Atomic uint32_t *)&x->used, x->used + 1, memory_order_release);
	return x->used - 1;
}

uint32_t node_of(struct state *s, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t n = table_get(&s->nodes, key);
	if (n || frame == 0)
		return n;
	struct ttmon_section *x = &s->ledger->section[TTMON_NODES];
	if (x->used >= x->capacity || !region_reserve(s, TTMON_NODES, x->used + 1) || !table_put(&s->nodes, key, x->used)) {
		s->ledger->flags |= TTMON_NO_SITES;
		return 0;
	}
	*(struct ttmon_node *)record(s, TTMON_NODES, x->used) = (struct ttmon_node){.parent = parent, .frame = frame};
	atomic_store_explicit((_Atomic uint32_t *)&x->used, x->used + 1, memory_order_release);
	return x->used - 1;
}

static uint32_t native_frame(struct state *s, void *address)
{
	uint64_t key = (uint64_t)(uintptr_t)address | (uint64_t)1 << 63; /* never the key of a Python frame */
	uint32_t frame = table_get(&s->frames, key);
	if (frame)
		return frame;
	Dl_info info;
	struct ttmon_frame f = {0};
	if (dladdr(address, &info) && info.dli_fname) {
		const char *name = strrchr(info.dli_fname, '/');
		name = name ? name + 1 : info.dli_fname;
		f.file = text(s, name, strlen(name));
		f.offset = (uint32_t)((uintptr_t)address - (uintptr_t)info.dli_fbase);
		if (info.dli_sname)
			f.function = text(s, info.dli_sname, strnlen(info.dli_sname, 1024));
	}
	frame = frame_new(s, &f);
	if (frame)
		table_put(&s->frames, key, frame);
	return frame;
}

enum { NATIVE_DEPTH = 48 };

static int (*_Atomic backtrace)(void **, int);

/* The C library's backtrace loads the unwinder when it is first called. */
void stacks_prepare(void)
{
	python_find();
	struct state *s = state();
	if (atomic_load_explicit(&backtrace, memory_order_relaxed) || !(atomic_load_explicit(&s->stacks, memory_order_relaxed) & TTMON_STACKS_NATIVE))
		return;
	int (*walk)(void **, int) = (int (*)(void **, int))dlsym(RTLD_DEFAULT, "backtrace");
	void *frame[1];
	if (walk && walk(frame, 1) >= 0)
		atomic_store(&backtrace, walk);
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static uint32_t native_stack(struct state *s, uint32_t node)
{
	int (*walk)(void **, int) = atomic_load_explicit(&backtrace, memory_order_relaxed);
	if (!walk)
		return node;
	void *frames[NATIVE_DEPTH];
	for (int i = walk(frames, NATIVE_DEPTH) - 1; i >= 0; i--) {
		const char *at = frames[i];
		if (at >= __ehdr_start && at < _end)
			break; /* our own functions come last */
		uint32_t next = node_of(s, node, native_frame(s, frames[i]));
		if (next)
			node = next;
	}
	return node;
}

uint32_t current_stack(struct state *s) { return stack_of(s, atomic_load_explicit(&s->stacks, memory_order_relaxed)); }

uint32_t stack_of(struct state *s, uint32_t mode)
{
	uint32_t node = 0;
	if (mode & TTMON_STACKS_PYTHON)
		node = python_stack(s, node);
	if (mode & TTMON_STACKS_NATIVE)
		node = native_stack(s, node);
	return node;
}

int ttmon_stacks(int mode)
{
	struct state *s = state();
	if (!s)
		return 0;
	int before = (int)atomic_exchange(&s->stacks, (uint32_t)mode & TTMON_STACKS_ALL);
	enter(s);
	if (atomic_load(&s->stage) == STAGE_READY) {
		change(s);
		s->ledger->flags |= (mode & TTMON_STACKS_PYTHON ? TTMON_STACKS_ON : 0) | (mode & TTMON_STACKS_NATIVE ? TTMON_NATIVE_ON : 0);
		changed(s);
	}
	leave(s);
	return before;
}

/* ---- Tags ------------------------------------------------------------------- */

enum { TAG_DEPTH = 16, TAG_BYTES = 64 };

struct tags {
	uint32_t depth; /* pushes beyond TAG_DEPTH are counted, and their tags not used */
	struct {
		uint32_t generation, number; /* of the text in the ledger of that generation */
		char name[TAG_BYTES];
	} level[TAG_DEPTH];
};

static pthread_key_t tags_key;
static pthread_once_t tags_once = PTHREAD_ONCE_INIT;

static void free_tags(void *tags)
{
	self.tags = NULL;
	free(tags);
}

static void make_key(void) { pthread_key_create(&tags_key, free_tags); }

void ttmon_tag_push(const char *name)
{
	struct tags *t = self.tags;
	if (!t) {
		if (!pthread_once || !pthread_key_create || !pthread_setspecific)
			return;
		pthread_once(&tags_once, make_key);
		t = calloc(1, sizeof *t);
		if (!t || pthread_setspecific(tags_key, t) != 0) {
			free(t);
			return;
		}
		self.tags = t;
	}
	uint32_t at = t->depth++;
	if (at >= TAG_DEPTH)
		return;
	t->level[at].generation = 0;
	strncpy(t->level[at].name, name ? name : "", TAG_BYTES - 1);
}

void ttmon_tag_pop(void)
{
	if (self.tags && self.tags->depth)
		self.tags->depth--;
}

uint32_t current_tag(struct state *s)
{
	struct tags *t = self.tags;
	if (!t || t->depth == 0)
		return 0;
	uint32_t at = t->depth <= TAG_DEPTH ? t->depth - 1 : TAG_DEPTH - 1;
	if (t->level[at].generation != s->generation) {
		t->level[at].number = text(s, t->level[at].name, strnlen(t->level[at].name, TAG_BYTES - 1));
		t->level[at].generation = s->generation;
	}
	return t->level[at].number;
}
