// A library with the functions of tt-metal's allocator that are watched, and
// as much behind them as the watching looks at: tests and benchmarks drive it
// at will, without a Python to wait for.
#include <stdint.h>
#include <stdlib.h>

#include "fake.h"

#define TT(name) __asm__("_ZN2tt8tt_metal" name)
#define TTK(name) __asm__("_ZNK2tt8tt_metal" name)
#define EXPORT __attribute__((noinline, visibility("default")))

EXPORT void made_allocator(void *a) TT("13AllocatorImplC2ERKNS0_15AllocatorConfigE");
EXPORT void gone_allocator(void *a) TT("13AllocatorImplD2Ev");
EXPORT void made_dram(void *m, const uint32_t *pool, struct vector *banks) TT("11BankManagerC1ERKNS0_10BufferTypeERKSt6vectorIlSaIlEEm");
EXPORT void made_l1(void *m, const uint32_t *pool, void *banks) TT("11BankManagerC1ERKNS0_10BufferTypeERKSt13unordered_map");
EXPORT void made_list(struct list *l, uint64_t capacity, uint64_t base, uint64_t smallest, uint64_t align) TT("9allocator11FreeListOptC1EmmmmNS2_12SearchPolicyE");
EXPORT void ask(struct manager *m, uint64_t size, uint64_t page, int bottom_up, const void *cores, uint64_t shards) TT("11BankManager15allocate_bufferEmmb");
EXPORT void take_in_block(struct list *l, uint64_t index, uint64_t size, uint64_t offset) TT("9allocator11FreeListOpt17allocate_in_blockEmmm");
EXPORT void give_back(struct list *l, uint64_t address) TT("9allocator11FreeListOpt10deallocateEm");
EXPORT void clear_list(struct list *l) TT("9allocator11FreeListOpt5clearEv");
EXPORT void shrink_list(struct list *l, uint64_t bytes, int bottom) TT("9allocator11FreeListOpt11shrink_sizeEmb");
EXPORT void reset_list(struct list *l) TT("9allocator11FreeListOpt10reset_sizeEv");
EXPORT void made_provider(void *p, uint64_t chip, int device) TT("25SharedMemoryStatsProviderC1Emibb");
EXPORT void gone_provider(void *p) TT("25SharedMemoryStatsProviderD1Ev");
EXPORT void record(void *p, int pid, uint64_t size, int type, unsigned chip) TT("25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj");

// What libttmon follows besides: it comes before this library in the search for
// symbols, and gets the calls between these functions.
EXPORT struct optional list_allocate(struct list *l, uint64_t bytes, int bottom_up, uint64_t limit) TT("9allocator11FreeListOpt8allocateEmbm");
EXPORT struct optional list_allocate_at(struct list *l, uint64_t address, uint64_t bytes) TT("9allocator11FreeListOpt19allocate_at_addressEmm");
EXPORT void banks(uint32_t n, const uint8_t *type, int disable) TT("18validate_num_banksEjRKNS0_10BufferTypeEb");
EXPORT uint64_t allocate_buffer(void *a, struct buffer *b) TT("13AllocatorImpl15allocate_bufferEPNS0_6BufferE");
EXPORT void list_statistics(void *answer, const struct list *l) TTK("9allocator11FreeListOpt14get_statisticsEv");
EXPORT void clash_thrown(void) __asm__("_ZN2tt6assert6detail8tt_throwIJmNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEmmEEEvPKciSA_SA_N3fmt3v117fstringIJEE1tE");
EXPORT void beyond_l1_thrown(void) __asm__("_ZN2tt6assert6detail8tt_throwIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEmjEEEvPKciSA_SA_N3fmt3v117fstringIJEE1tE");
EXPORT void trace_thrown(void) __asm__("_ZN2tt6assert6detail8tt_throwIJjimEEEvPKciS4_S4_N3fmt3v117fstringIJEE1tE");
EXPORT uint64_t buffer_size(const struct buffer *b) TTK("6Buffer4sizeEv");

EXPORT void lay_out(void *program, void *device) TT("6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE");
EXPORT void mark(void *allocator, uint64_t address, uint64_t size, uint64_t base) TT("6detail11ProgramImpl23CircularBufferAllocator12mark_addressEmmm");
EXPORT void track_cb(void *tracker, void *cores, uint64_t address, uint64_t size, int global, void *device) TT("12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmbPKNS0_7IDeviceE");
EXPORT void gone_program(void *program) TT("6detail11ProgramImpl27deallocate_circular_buffersEv");

struct state {
	uint64_t other;
	uint32_t chip;
	char more[0xb0 - 12];
	double ticks;
};
struct program_record {
	uint32_t id, chip;
	uint64_t start, end;
	double ticks;
	void *sources;
	uint64_t count;
};
EXPORT void publish_pages(void *manager, struct state *device, const uint32_t *pages, uint32_t n, struct vector *records)
	TT("11distributed23RealtimeProfilerManager13publish_pagesERNS2_11DeviceStateEPKjjRSt6vectorINS0_12experimental21ProgramRealtimeRecordESaIS9_EE");

EXPORT void made_queue(void *queue, void *mesh, uint32_t id) TT("11distributed18FDMeshCommandQueueC1EPNS1_10MeshDeviceEj");
EXPORT void gone_queue(void *queue) TT("11distributed18FDMeshCommandQueueD1Ev");
EXPORT void enqueue(void *queue, void *workload, int blocking) TT("11distributed18FDMeshCommandQueue21enqueue_mesh_workloadERNS1_12MeshWorkloadEb");
EXPORT void finish(void *queue, void *ids, uint64_t n) TT("11distributed18FDMeshCommandQueue13finish_nolockE");

// Something to do. A function that calls another begins with a push, as the
// real ones do.
static void nothing(void) {}
static void (*volatile work)(void) = nothing;
#define WORK() work()

void made_allocator(void *a) { WORK(); }
void gone_allocator(void *a) { WORK(); }
void made_dram(void *m, const uint32_t *pool, struct vector *banks) { WORK(); }
void made_l1(void *m, const uint32_t *pool, void *banks) { WORK(); }
void ask(struct manager *m, uint64_t size, uint64_t page, int bottom_up, const void *cores, uint64_t shards) { WORK(); }
void shrink_list(struct list *l, uint64_t bytes, int bottom) { WORK(); }
void reset_list(struct list *l) { WORK(); }
void gone_provider(void *p) { WORK(); }
void lay_out(void *program, void *device) { WORK(); }
void mark(void *allocator, uint64_t address, uint64_t size, uint64_t base) { WORK(); }
void track_cb(void *tracker, void *cores, uint64_t address, uint64_t size, int global, void *device) { WORK(); }
void gone_program(void *program) { WORK(); }

// Makes records of pages, as tt-metal does.
void publish_pages(void *manager, struct state *device, const uint32_t *pages, uint32_t n, struct vector *records)
{
	WORK();
	struct program_record *r = records->begin;
	for (uint32_t i = 0; i < n && i < 1024; i++) {
		const uint32_t *p = pages + 16 * i;
		if (p[3] < 0xfffffffe && p[2])
			*r++ = (struct program_record){p[2], device->chip, (uint64_t)p[0] << 32 | p[1], (uint64_t)p[4] << 32 | p[5], device->ticks, NULL, 0};
	}
	records->end = r;
}
// As the real ones do, these save registers first, and restore them last.
#ifdef __x86_64__
#define SAVES() __asm__ volatile("" ::: "rbx", "r12", "r13", "r14")
#else
#define SAVES()
#endif
void made_queue(void *queue, void *mesh, uint32_t id) { WORK(); }
void gone_queue(void *queue) { WORK(); }
void enqueue(void *queue, void *workload, int blocking)
{
	WORK();
	SAVES();
}
void finish(void *queue, void *ids, uint64_t n)
{
	WORK();
	SAVES();
}
EXPORT void device_queue(uint64_t queue) { made_queue((void *)queue, 0, 0); }
EXPORT void device_enqueue(uint64_t queue) { enqueue((void *)queue, 0, 0); }
EXPORT void device_finish(uint64_t queue) { finish((void *)queue, 0, 0); }
EXPORT void device_unqueue(uint64_t queue) { gone_queue((void *)queue); }

void record(void *p, int pid, uint64_t size, int type, unsigned chip) { WORK(); }

void made_provider(void *p, uint64_t chip, int device)
{
	WORK();
	*(uint64_t *)p = chip;
}

static void add(struct list *l, uint64_t address, uint64_t size, uint8_t taken)
{
	uint64_t n = ((char *)l->addresses.end - (char *)l->addresses.begin) / 8;
	if (n == MAX_BLOCKS)
		abort();
	((uint64_t *)l->addresses.begin)[n] = address;
	((uint64_t *)l->sizes.begin)[n] = size;
	((uint8_t *)l->taken.begin)[n] = taken;
	((uint8_t *)l->in_use.begin)[n] = 1;
	l->addresses.end = (uint64_t *)l->addresses.begin + n + 1;
}

void made_list(struct list *l, uint64_t capacity, uint64_t base, uint64_t smallest, uint64_t align)
{
	WORK();
	l->capacity = capacity;
	l->base = base;
	l->smallest = smallest;
	l->align = align;
	l->addresses.begin = malloc(8 * MAX_BLOCKS);
	l->sizes.begin = malloc(8 * MAX_BLOCKS);
	l->taken.begin = malloc(MAX_BLOCKS);
	l->in_use.begin = malloc(MAX_BLOCKS);
	clear_list(l);
}

// Block 0 is always what is free behind the last block.
void clear_list(struct list *l)
{
	WORK();
	l->addresses.end = l->addresses.begin;
	add(l, 0, l->capacity, 0);
}

void take_in_block(struct list *l, uint64_t index, uint64_t size, uint64_t offset)
{
	WORK();
	uint64_t *addresses = l->addresses.begin, *sizes = l->sizes.begin;
	if (!l->forgetful)
		add(l, addresses[0] + offset, size, 1);
	addresses[0] += offset + size;
	sizes[0] -= offset + size;
}

void give_back(struct list *l, uint64_t address)
{
	WORK();
	if (l->forgetful) { // the block that was taken last
		uint64_t *addresses = l->addresses.begin, *sizes = l->sizes.begin;
		sizes[0] += addresses[0] - (address - l->base);
		addresses[0] = address - l->base;
		return;
	}
	uint64_t n = ((char *)l->addresses.end - (char *)l->addresses.begin) / 8;
	for (uint64_t i = 1; i < n; i++)
		if (((uint64_t *)l->addresses.begin)[i] == address - l->base)
			((uint8_t *)l->in_use.begin)[i] = 0;
}

// What tt-metal calls when an allocation fails.
void list_statistics(void *answer, const struct list *l) { WORK(); }
void clash_thrown(void) {}
void beyond_l1_thrown(void) {}
void trace_thrown(void) {}

// Called without a lookup, so that a test can spoil the function's name.
extern __typeof__(take_in_block) take_here __attribute__((visibility("hidden"), alias("_ZN2tt8tt_metal9allocator11FreeListOpt17allocate_in_blockEmmm")));

struct optional list_allocate(struct list *l, uint64_t bytes, int bottom_up, uint64_t limit)
{
	uint64_t at = ((uint64_t *)l->addresses.begin)[0];
	take_here(l, 0, bytes, 0);
	return (struct optional){l->base + at, 1};
}

// Never asked for here.
struct optional list_allocate_at(struct list *l, uint64_t address, uint64_t bytes)
{
	WORK();
	return (struct optional){0, 0};
}

void banks(uint32_t n, const uint8_t *type, int disable) { WORK(); }

// Its code says where the size is: nothing else may be in it.
__attribute__((optimize("omit-frame-pointer"))) uint64_t buffer_size(const struct buffer *b) { return b->impl->size; }

uint64_t allocate_buffer(void *a, struct buffer *b)
{
	ask(b->impl->manager, b->impl->padded, 2048, 1, 0, 0);
	return list_allocate(b->impl->list, b->impl->in_bank, 1, 0).value;
}

// What the program calls, by name.
EXPORT void device_open(struct device *d, uint64_t capacity, uint64_t chip)
{
	int64_t offsets[8] = {0};
	struct vector all = {offsets, offsets + 8, offsets + 8};
	uint8_t dram = 0;
	d->manager.pool = 0;
	d->manager.banks = 8;
	made_allocator(d->allocator);
	made_dram(&d->manager, &d->manager.pool, &all);
	banks(8, &dram, 0);
	made_list(&d->list, capacity, 4096, 64, 64);
	made_provider(d->provider, chip, 0);
}

// The program asks for one byte less than what 8 banks of size give it.
EXPORT uint64_t device_ask(struct device *d, uint64_t size)
{
	struct buffer_impl impl = {.size = size * 8 - 1, .padded = size * 8, .in_bank = size, .manager = &d->manager, .list = &d->list};
	struct buffer b = {.impl = &impl};
	return allocate_buffer(d->allocator, &b);
}

// A request for more than there is: its manager is asked, nothing is taken, and
// the list is asked how full it is, for the message.
EXPORT void device_fail(struct device *d)
{
	ask(&d->manager, (uint64_t)8 << 40, 2048, 1, 0, 0);
	uint64_t answer[8];
	list_statistics(answer, &d->list);
}

EXPORT uint64_t device_take(struct device *d, uint64_t size, int pid)
{
	uint64_t at = device_ask(d, size);
	record(d->provider, pid, size * 8 - 1, 0, 0);
	return at;
}

// What a chip reports: so many programs of 70 ns, 30 ns apart.
EXPORT void device_report(uint32_t chip, uint32_t n)
{
	static struct state state = {.ticks = 1};
	static uint32_t pages[1024][16];
	static struct program_record room[1024];
	struct vector records = {room, room, room + 1024};
	static uint64_t manager[8], clock;
	state.chip = chip;
	for (uint32_t i = 0; i < n && i < 1024; i++) {
		uint64_t start = clock + 30, end = clock = start + 70;
		uint32_t page[16] = {start >> 32, start, 1, 0, end >> 32, end, 1};
		__builtin_memcpy(pages[i], page, sizeof page);
	}
	publish_pages(manager, &state, pages[0], n, &records);
}

EXPORT void device_give(struct device *d, uint64_t address) { give_back(&d->list, address); }
EXPORT void device_clear(struct device *d) { clear_list(&d->list); }
