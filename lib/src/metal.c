/* Interposition: the functions of tt-metal's allocator under their own names.
 * This library comes first in the search for symbols, so that tt-metal calls
 * these; each calls the original and writes down what it did.
 *
 * Calls may throw C++ exceptions through here: everything is built with unwind
 * tables, and an event is written down after the original has returned.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "metal.h"
#include "state.h"

const struct symbol metal_symbols[SYMBOLS] = {
#define X(name, mangled, required) {mangled, required},
#include "symbols.h"
#undef X
};

/* One loaded library that calls us, and the functions that it would have called. */
struct copy {
	_Atomic uint32_t filled;
	uintptr_t start, end;
	bool whole; /* all required functions are there: its allocator can be followed */
	void *original[SYMBOLS];
};

enum { COPIES = 16 };

/* Filled in from the front and never changed. Survives a fork, which is right. */
static struct copy copies[COPIES];
static _Atomic uint32_t copies_taken;
static const char *_Atomic library;

const char *metal_path(void) { return atomic_load(&library); }

struct search {
	uintptr_t address, start, end;
	char path[4096];
	bool main;
};

static int contains(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	struct search *x = data;
	uintptr_t start = UINTPTR_MAX, end = 0;
	bool inside = false;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		uintptr_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
		inside |= x->address >= from && x->address < to;
		start = from < start ? from : start;
		end = to > end ? to : end;
	}
	if (!inside)
		return 0;
	x->start = start;
	x->end = end;
	x->main = !info->dlpi_name || !*info->dlpi_name;
	strncpy(x->path, info->dlpi_name ? info->dlpi_name : "", sizeof x->path - 1);
	return 1;
}

/* The first missing function that cannot be done without. */
static const char *missing(const struct copy *c)
{
	for (int i = 0; i < SYMBOLS; i++)
		if (metal_symbols[i].required && !c->original[i])
			return metal_symbols[i].name;
	return NULL;
}

/* Searches the library that an address is in. */
static bool find_copy(uintptr_t address, struct copy *c)
{
	struct search x = {.address = address};
	if (dl_iterate_phdr(contains, &x) == 0)
		return false;
	/* The handle is kept: what we call must not be unloaded. */
	void *handle = dlopen(x.main ? NULL : x.path, RTLD_NOLOAD | RTLD_LAZY);
	if (!handle)
		return false;
	c->start = x.start;
	c->end = x.end;
	for (int i = 0; i < SYMBOLS; i++)
		c->original[i] = dlsym(handle, metal_symbols[i].name);
	const char *lacking = missing(c);
	c->whole = !lacking;
	Dl_info info;
	if (dladdr(c->original[SYM_list_made], &info) && info.dli_fname && !atomic_load(&library))
		atomic_store(&library, info.dli_fname);
	struct state *s = state();
	if (lacking && s)
		complain(s, lacking, 0);
	return true;
}

static const struct copy *copy_at(uintptr_t address)
{
	for (int i = 0; i < COPIES; i++) {
		const struct copy *c = &copies[i];
		if (atomic_load_explicit(&c->filled, memory_order_acquire) && address >= c->start && address < c->end)
			return c;
	}
	int before = errno;
	struct copy found = {0};
	uint32_t n = COPIES;
	if (find_copy(address, &found))
		n = atomic_fetch_add(&copies_taken, 1);
	errno = before;
	if (n >= COPIES)
		return NULL;
	memcpy((char *)&copies[n] + offsetof(struct copy, start), (char *)&found + offsetof(struct copy, start), sizeof found - offsetof(struct copy, start));
	atomic_store_explicit(&copies[n].filled, 1, memory_order_release);
	return &copies[n];
}

void *metal_function(int symbol, uint64_t caller)
{
	const struct copy *c = copy_at((uintptr_t)caller);
	return c ? c->original[symbol] : NULL;
}

/* The function to call instead of us. Where even its library cannot be told,
 * the next one in the search order is. */
void *metal_original(int symbol, void *caller, struct state **s)
{
	const struct copy *c = copy_at((uintptr_t)caller);
	*s = c && c->whole ? state() : NULL;
	void *f = c ? c->original[symbol] : NULL;
	return f ? f : dlsym(RTLD_NEXT, metal_symbols[symbol].name);
}

void *metal_any(int symbol, struct state **s)
{
	for (int i = 0; i < COPIES; i++) {
		const struct copy *c = &copies[i];
		if (atomic_load_explicit(&c->filled, memory_order_acquire) && c->whole && c->original[symbol]) {
			*s = state();
			return c->original[symbol];
		}
	}
	return NULL;
}

/* Changes whenever a list, an allocator or a chip comes or goes: what was known
 * of them before may not hold any more. */
static _Atomic uint32_t era;

static void new_era(void) { atomic_fetch_add_explicit(&era, 1, memory_order_relaxed); }

/* ---- Lists ------------------------------------------------------------------ */

struct optional {
	uint64_t value;
	uint64_t present; /* one byte counts */
};
static const struct optional none;

/* FreeListOpt(capacity, base, smallest, alignment, policy) */
HOOK void METAL_list_made(uint64_t list, uint64_t capacity, uint64_t base, uint64_t smallest, uint64_t alignment, uint64_t policy)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t), list_made, );
	call(list, capacity, base, smallest, alignment, policy);
	if (!s)
		return;
	if (base + capacity < base) /* the allocator of a sub-device has DRAM of less than no size */
		capacity = 0;
	if (capacity && self.pool == TTMON_DRAM + 1u) /* it is the device's: an exception ended the call that made sub-devices */
		self.dividing = self.sub_device = 0;
	struct shape shape = {
		.object = list, .allocator = self.allocator, .capacity = capacity, .base = base, .smallest = smallest, .alignment = alignment,
		.group = self.allocator ? self.group : 0, .pool = self.pool ? self.pool - 1 : TTMON_POOL_UNKNOWN, .banks = self.banks, .nth = self.nth++,
		.sub_device = self.sub_device,
	};
	new_era();
	list_made(s, &shape);
}

/* A list has no room: asks the buffer for what the list does not know. */
static __attribute__((noinline)) void failed(struct state *s, uint64_t list, uint64_t bytes, uint64_t bottom_up, uint64_t limit)
{
	struct request r = {.bytes = bytes, .asked = self.asked, .limit = limit, .bottom_up = bottom_up & 0xff ? 1 : 0};
	if (self.buffer) {
		uint64_t (*page)(uint64_t) = (uint64_t(*)(uint64_t))metal_function(SYM_buffer_page, self.buffer_caller);
		uint64_t (*cores)(uint64_t) = (uint64_t(*)(uint64_t))metal_function(SYM_buffer_cores, self.buffer_caller);
		if (page) {
			r.page = page(self.buffer);
			r.known |= TTMON_KNOWS_PAGE;
		}
		if (cores) { /* std::optional<uint32_t> */
			uint64_t n = cores(self.buffer);
			r.shards = n >> 32 & 0xff ? (uint32_t)n : 0;
			r.known |= TTMON_KNOWS_SHARDS;
		}
	}
	list_failed(s, list, &r);
}

HOOK struct optional METAL_list_allocate(uint64_t list, uint64_t bytes, uint64_t bottom_up, uint64_t limit)
{
	CALL(struct optional(*)(uint64_t, uint64_t, uint64_t, uint64_t), list_allocate, none);
	if (s && s->late)
		late_list(s, list, (uintptr_t)__builtin_return_address(0));
	struct optional at = call(list, bytes, bottom_up, limit);
	self.mass = false;
	if (s && (at.present & 0xff))
		list_allocated(s, list, at.value, s->late ? late_size(list, at.value, bytes, (uintptr_t)__builtin_return_address(0)) : bytes, self.asked);
	else if (s)
		failed(s, list, bytes, bottom_up, limit);
	self.told = self.asked != 0;
	self.asked = self.buffer = 0;
	return at;
}

HOOK struct optional METAL_list_allocate_at(uint64_t list, uint64_t address, uint64_t bytes)
{
	CALL(struct optional(*)(uint64_t, uint64_t, uint64_t), list_allocate_at, none);
	if (s && s->late)
		late_list(s, list, (uintptr_t)__builtin_return_address(0));
	struct optional at = call(list, address, bytes);
	if (s && (at.present & 0xff))
		list_allocated(s, list, at.value, s->late ? late_size(list, at.value, bytes, (uintptr_t)__builtin_return_address(0)) : bytes, self.asked);
	else if (s)
		failed(s, list, bytes, 0, 0);
	self.told = self.asked != 0;
	self.asked = self.buffer = 0;
	return at;
}

HOOK void METAL_list_deallocate(uint64_t list, uint64_t address)
{
	CALL(void (*)(uint64_t, uint64_t), list_deallocate, );
	if (s && s->late)
		late_list(s, list, (uintptr_t)__builtin_return_address(0));
	call(list, address);
	if (s)
		list_freed(s, list, address);
}

HOOK void METAL_list_clear(uint64_t list)
{
	CALL(void (*)(uint64_t), list_clear, );
	call(list);
	if (s)
		list_cleared(s, list);
}

HOOK void METAL_list_shrink(uint64_t list, uint64_t bytes, uint64_t bottom_up)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t), list_shrink, );
	call(list, bytes, bottom_up);
	if (s && bytes)
		list_cut(s, list, bottom_up & 0xff ? bytes : 0, bottom_up & 0xff ? 0 : bytes);
}

HOOK void METAL_list_reset(uint64_t list)
{
	CALL(void (*)(uint64_t), list_reset, );
	call(list);
	if (s)
		list_cut(s, list, 0, 0);
}

/* ---- Allocators and their banks --------------------------------------------- */

/* Called in the constructor of a bank manager, before it makes its lists. */
HOOK void METAL_banks(uint32_t banks, const uint8_t *type, uint64_t disable)
{
	CALL(void (*)(uint32_t, const uint8_t *, uint64_t), banks, );
	if (s) {
		self.pool = *type + 1u;
		self.banks = banks;
		self.nth = 0;
	}
	call(banks, type, disable);
}

HOOK void METAL_allocator_made(uint64_t allocator, uint64_t config)
{
	CALL(void (*)(uint64_t, uint64_t), allocator_made, );
	if (s) {
		enter(s);
		self.group = new_group(s);
		leave(s);
		/* The lists that this thread makes next are its own: derived classes
		 * make them when this constructor has returned. */
		self.allocator = allocator;
	}
	self.pool = 0;
	self.banks = 0;
	self.sub_device = self.dividing ? ++self.divided : 0;
	call(allocator, config);
}

static void gone(struct state *s, uint64_t allocator)
{
	if (self.allocator == allocator)
		self.allocator = 0;
	new_era();
	if (s)
		allocator_closed(s, allocator);
}

/* The destructor as part of a derived class's, and by itself (until 0.72). */
HOOK void METAL_allocator_gone(uint64_t allocator)
{
	CALL(void (*)(uint64_t), allocator_gone, );
	call(allocator);
	gone(s, allocator);
}

HOOK void METAL_allocator_gone_whole(uint64_t allocator)
{
	CALL(void (*)(uint64_t), allocator_gone_whole, );
	call(allocator);
	gone(s, allocator);
}

/* How much a buffer asks for; 0 where that cannot be told. Releases before 0.79
 * keep its size to themselves, and tell its pages. */
static uint64_t buffer_bytes(uint64_t buffer, uint64_t caller)
{
	uint64_t (*size)(uint64_t) = (uint64_t(*)(uint64_t))metal_function(SYM_buffer_size, caller);
	if (size)
		return size(buffer);
	uint32_t (*pages)(uint64_t) = (uint32_t(*)(uint64_t))metal_function(SYM_buffer_pages, caller);
	uint64_t (*page)(uint64_t) = (uint64_t(*)(uint64_t))metal_function(SYM_buffer_page, caller);
	return pages && page ? pages(buffer) * page(buffer) : 0;
}

HOOK uint64_t METAL_buffer(uint64_t allocator, uint64_t buffer)
{
	CALL(uint64_t(*)(uint64_t, uint64_t), buffer, 0);
	self.asked = s ? buffer_bytes(buffer, (uintptr_t)__builtin_return_address(0)) : 0;
	self.buffer = buffer;
	self.buffer_caller = (uintptr_t)__builtin_return_address(0);
	return call(allocator, buffer);
}

/* ---- Circular buffers ------------------------------------------------------- */

/* ProgramImpl::allocate_circular_buffers(device): lays them out, or finds that it has. */
HOOK void METAL_program_layout(uint64_t program, uint64_t device)
{
	CALL(void (*)(uint64_t, uint64_t), program_layout, );
	self.program = program;
	self.laid = false;
	call(program, device);
	self.program = 0;
}

static void laid(struct state *s, uint64_t end, uint32_t cores)
{
	if (!s || !self.program)
		return;
	if (!self.laid)
		program_laid(s, self.program, 0, 0);
	self.laid = true;
	program_laid(s, self.program, end, cores);
}

/* CircularBufferAllocator::mark_address(address, bytes, base); 0.81 has it inline. */
HOOK void METAL_cb_mark(uint64_t allocator, uint64_t address, uint64_t bytes, uint64_t base)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t, uint64_t), cb_mark, );
	call(allocator, address, bytes, base);
	laid(s, address + bytes, 0);
}

/* The smallest rectangle around a CoreRangeSet, which begins with a vector of
 * ranges: x and y of the first core, x and y of the last. One byte each, and 0
 * where it cannot be said so. */
static uint32_t rectangle(const uint64_t *set)
{
	const uint64_t *at = (const uint64_t *)(uintptr_t)set[0], *end = (const uint64_t *)(uintptr_t)set[1];
	uint64_t x0 = 255, y0 = 255, x1 = 0, y1 = 0;
	if (!at || at >= end || (end - at) % 4 || end - at > 4096)
		return 0;
	for (; at < end; at += 4) {
		x0 = at[0] < x0 ? at[0] : x0;
		y0 = at[1] < y0 ? at[1] : y0;
		x1 = at[2] > x1 ? at[2] : x1;
		y1 = at[3] > y1 ? at[3] : y1;
	}
	return x1 < 255 && y1 < 255 ? (uint32_t)(x0 | y0 << 8 | x1 << 16 | y1 << 24) : 0;
}

/* GraphTracker::track_allocate_cb(cores, address, bytes, in a buffer, device) */
HOOK void METAL_cb_track(uint64_t tracker, const uint64_t *cores, uint64_t address, uint64_t bytes, uint64_t in_buffer, uint64_t device)
{
	CALL(void (*)(uint64_t, const uint64_t *, uint64_t, uint64_t, uint64_t, uint64_t), cb_track, );
	call(tracker, cores, address, bytes, in_buffer, device);
	if (s && self.program && !(in_buffer & 0xff))
		laid(s, address + bytes, rectangle(cores));
}

HOOK void METAL_program_gone(uint64_t program)
{
	CALL(void (*)(uint64_t), program_gone, );
	call(program);
	if (s)
		program_gone(s, program);
}

#ifdef __x86_64__
/* Calls f(a, b). An exception that passes through is noticed by the unwinder
 * asking for this frame's handler, which has none: no library is needed for it. */
INTERNAL void call_watched(void *f, uint64_t a, uint64_t b);
__asm__(".pushsection .text\n"
	".type call_watched, @function\n"
	".hidden call_watched\n"
	"call_watched:\n"
	".cfi_startproc\n"
	".cfi_personality 0x1b, exception_passes\n"
	"subq $8, %rsp\n"
	".cfi_def_cfa_offset 16\n"
	"movq %rdi, %rax\n"
	"movq %rsi, %rdi\n"
	"movq %rdx, %rsi\n"
	"call *%rax\n"
	"addq $8, %rsp\n"
	".cfi_def_cfa_offset 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_watched, .-call_watched\n"
	".popsection\n");

/* What the unwinder asks, first to find a handler, then to clean up. */
INTERNAL __attribute__((used)) int exception_passes(int version, int actions, uint64_t class, void *exception, void *context)
{
	enum { SEARCHING = 1, GO_ON = 8 };
	(void)version, (void)class, (void)exception, (void)context;
	struct state *s = state();
	if (actions & SEARCHING)
		self.kernels = false;
	if (actions & SEARCHING && s && self.program) {
		program_clashed(s, self.program);
		self.program = 0;
	}
	return GO_ON;
}
#else
static void call_watched(void *f, uint64_t a, uint64_t b) { ((void (*)(uint64_t, uint64_t))f)(a, b); }
#endif

/* ProgramImpl::validate_circular_buffer_region(device): throws where circular
 * buffers reach into a buffer of L1. */
HOOK void METAL_program_check(uint64_t program, uint64_t device)
{
	CALL(void (*)(uint64_t, uint64_t), program_check, );
	self.program = program;
	call_watched((void *)call, program, device);
	self.program = 0;
}

/* MeshWorkloadImpl::load_binaries(queue): allocates where an operation is enqueued
 * for the first time. */
HOOK void METAL_kernels(uint64_t workload, uint64_t queue)
{
	CALL(void (*)(uint64_t, uint64_t), kernels, );
	self.kernels = true;
	call_watched((void *)call, workload, queue);
	self.kernels = false;
}

/* ---- Traces ----------------------------------------------------------------- */

/* tt_throw(file, line, kind, condition, message, values…) of an unsigned, an int and
 * a size_t, which never returns. The message says what is thrown. */
HOOK __attribute__((noreturn)) void METAL_trace_thrown(const char *file, int line, const char *kind, const char *condition, const char *message, uint64_t length,
						       const uint32_t *needed, const int *device, const uint64_t *region)
{
	static const char does_not_fit[] = "Creating trace buffers of size {}B on MeshDevice {}, but only {}B is allocated for trace region.";
	struct state *s, *any;
	__typeof__(&METAL_trace_thrown) call = (__typeof__(&METAL_trace_thrown))metal_original(SYM_trace_thrown, __builtin_return_address(0), &s);
	if (!call)
		call = (__typeof__(&METAL_trace_thrown))metal_any(SYM_trace_thrown, &any);
	if (!call)
		abort(); /* what called us would go on as if all were well */
	if (s && length == sizeof does_not_fit - 1 && memcmp(message, does_not_fit, length) == 0)
		trace_refused(s, *needed, *region);
	call(file, line, kind, condition, message, length, needed, device, region);
}

HOOK void METAL_mass_free(uint64_t manager)
{
	CALL(void (*)(uint64_t), mass_free, );
	self.mass = s != NULL;
	call(manager);
	self.mass = false;
}

/* ---- Chips ------------------------------------------------------------------ */

/* The object that accounts for a chip: which one it is, by its address. There
 * is one per chip and process. */
struct provider {
	uint64_t object, id;
};

enum { PROVIDERS = 256 };
static struct provider providers[PROVIDERS];
static _Atomic uint32_t providers_lock;

static void lock_providers(void)
{
	uint32_t open = 0;
	while (!atomic_compare_exchange_weak(&providers_lock, &open, 1))
		open = 0;
}

static void unlock_providers(void) { atomic_store(&providers_lock, 0); }

/* The entry of a provider, or NULL; the provider 0 has the free entries. */
static struct provider *find_provider(uint64_t object)
{
	for (int i = 0; i < PROVIDERS; i++)
		if (providers[i].object == object)
			return &providers[i];
	return NULL;
}

/* Notes which chip a provider accounts for, as long as there is room. */
static void note_provider(uint64_t object, uint64_t id)
{
	lock_providers();
	struct provider *p = find_provider(object);
	if (!p)
		p = find_provider(0);
	if (p)
		*p = (struct provider){object, id};
	unlock_providers();
}

/* The chip of a provider; false where it is not known. With forget, it is not
 * known from here on: another provider may get its address. */
static bool provider_chip(uint64_t object, bool forget, uint64_t *id)
{
	lock_providers();
	struct provider *p = find_provider(object);
	if (p) {
		*id = p->id;
		if (forget)
			*p = (struct provider){0};
	}
	unlock_providers();
	return p != NULL;
}

/* Pairs of a list and a chip of which all is known, so that the next record of
 * them has nothing to tell: there is one for each chip and buffer. */
static _Atomic uint64_t told[256];

static uint64_t pair(uint64_t provider)
{
	uint64_t x = provider * 0x9e3779b97f4a7c15u;
	x ^= ((uint64_t)self.last_list << 32 | atomic_load_explicit(&era, memory_order_relaxed)) * 0xbf58476d1ce4e5b9u;
	x ^= x >> 29;
	x = (x + self.generation) * 0x94d049bb133111ebu;
	return x | 1;
}

static void provider_made(struct state *s, uint64_t provider, uint64_t id, int32_t logical)
{
	new_era();
	note_provider(provider, id);
	if (s)
		chip_opened(s, id, logical, self.allocator ? self.group : 0); /* its allocator was made just before, by this thread */
	self.allocator = 0;
}

HOOK void METAL_provider_old(uint64_t provider, uint64_t id, int32_t logical)
{
	CALL(void (*)(uint64_t, uint64_t, int32_t), provider_old, );
	call(provider, id, logical);
	provider_made(s, provider, id, logical);
}

HOOK void METAL_provider(uint64_t provider, uint64_t id, int32_t logical, uint64_t a, uint64_t b)
{
	CALL(void (*)(uint64_t, uint64_t, int32_t, uint64_t, uint64_t), provider, );
	call(provider, id, logical, a, b);
	provider_made(s, provider, id, logical);
}

HOOK void METAL_provider_gone(uint64_t provider)
{
	CALL(void (*)(uint64_t), provider_gone, );
	uint64_t id;
	bool known = provider_chip(provider, true, &id);
	call(provider);
	new_era();
	if (s && known)
		chip_closed(s, id);
}

HOOK void METAL_record(uint64_t provider, int32_t pid, uint64_t bytes, uint64_t type, uint32_t logical)
{
	CALL(void (*)(uint64_t, int32_t, uint64_t, uint64_t, uint32_t), record, );
	call(provider, pid, bytes, type, logical);
	if (!s || self.last_list == 0)
		return;
	uint64_t now = pair(provider);
	_Atomic uint64_t *place = &told[now >> 56];
	if (self.told && atomic_load_explicit(place, memory_order_relaxed) == now)
		return;
	uint64_t id;
	bool known = provider_chip(provider, false, &id);
	if (!known && s->late) { /* made before we came: it begins with the chip's unique id */
		id = *(const uint64_t *)(uintptr_t)provider;
		note_provider(provider, id);
		chip_opened(s, id, (int32_t)logical, 0);
		known = true;
	}
	if (known && chip_seen(s, id, type & 0xff, bytes))
		atomic_store_explicit(place, now, memory_order_relaxed);
}
