/* A library with the functions of tt-metal that libttmon follows, under their
 * own names, and as much behind them as makes blocks: tests drive libttmon's
 * side of them without a Python, under the sanitizers, and in several copies.
 * As in tt-metal, calls between its functions can be interposed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#define TT(name) __asm__("_ZN2tt8tt_metal" name)
#define TTK(name) __asm__("_ZNK2tt8tt_metal" name)

enum { BANKS = 8, SLOTS = 1024, SLOT = 65536, BASE = 4096 };

struct list {
	uint64_t size[SLOTS]; /* of the block in each slot; 0: free */
};

struct optional {
	uint64_t value, present;
};

/* One allocator, its DRAM and the provider of its chip. */
struct device {
	uint64_t allocator[4], provider[4];
	struct list *list;
	uint64_t chip;
	uint64_t trace; /* of a trace that is not released; 0: none */
};

void list_made(struct list *l, uint64_t capacity, uint64_t base, uint64_t smallest, uint64_t align, int policy) TT("9allocator11FreeListOptC1EmmmmNS2_12SearchPolicyE");
struct optional list_allocate(struct list *l, uint64_t bytes, int bottom_up, uint64_t limit) TT("9allocator11FreeListOpt8allocateEmbm");
struct optional list_allocate_at(struct list *l, uint64_t address, uint64_t bytes) TT("9allocator11FreeListOpt19allocate_at_addressEmm");
void list_deallocate(struct list *l, uint64_t address) TT("9allocator11FreeListOpt10deallocateEm");
void list_clear(struct list *l) TT("9allocator11FreeListOpt5clearEv");
void banks(uint32_t n, const uint8_t *type, int disable) TT("18validate_num_banksEjRKNS0_10BufferTypeEb");
void allocator_made(void *a, void *config) TT("13AllocatorImplC2ERKNS0_15AllocatorConfigE");
void allocator_gone(void *a) TT("13AllocatorImplD2Ev");
uint64_t allocate_buffer(void *a, uint64_t *buffer) TT("13AllocatorImpl15allocate_bufferEPNS0_6BufferE");
void provider_made(uint64_t *p, uint64_t chip, int logical, int a, int b) TT("25SharedMemoryStatsProviderC1Emibb");
void provider_gone(uint64_t *p) TT("25SharedMemoryStatsProviderD1Ev");
void record(uint64_t *p, int pid, uint64_t bytes, int type, unsigned logical) TT("25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj");
void load_binaries(struct device *workload, uint64_t *bytes) TT("11distributed16MeshWorkloadImpl13load_binariesERNS1_16MeshCommandQueueE");
#ifdef PAGES /* as before 0.79, on a thread that tt-metal does not account for */
uint32_t buffer_pages(const uint64_t *buffer) TTK("6Buffer9num_pagesEv");
uint64_t buffer_page(const uint64_t *buffer) TTK("6Buffer9page_sizeEv");
#else
uint64_t buffer_size(const uint64_t *buffer) TTK("6Buffer4sizeEv");
#endif

void list_made(struct list *l, uint64_t capacity, uint64_t base, uint64_t smallest, uint64_t align, int policy)
{
	(void)capacity, (void)base, (void)smallest, (void)align, (void)policy;
	list_clear(l);
}

struct optional list_allocate(struct list *l, uint64_t bytes, int bottom_up, uint64_t limit)
{
	(void)bottom_up, (void)limit;
	for (uint64_t i = 0; i < SLOTS && bytes <= SLOT; i++) {
		if (!l->size[i]) {
			l->size[i] = bytes;
			return (struct optional){BASE + i * SLOT, 1};
		}
	}
	return (struct optional){0, 0};
}

struct optional list_allocate_at(struct list *l, uint64_t address, uint64_t bytes)
{
	l->size[(address - BASE) / SLOT] = bytes;
	return (struct optional){address, 1};
}

void list_deallocate(struct list *l, uint64_t address) { l->size[(address - BASE) / SLOT] = 0; }

void list_clear(struct list *l)
{
	for (int i = 0; i < SLOTS; i++)
		l->size[i] = 0;
}

void banks(uint32_t n, const uint8_t *type, int disable) { (void)n, (void)type, (void)disable; }
void allocator_made(void *a, void *config) { (void)a, (void)config; }
void allocator_gone(void *a) { (void)a; }
void provider_gone(uint64_t *p) { (void)p; }
void record(uint64_t *p, int pid, uint64_t bytes, int type, unsigned logical) { (void)p, (void)pid, (void)bytes, (void)type, (void)logical; }
#ifdef PAGES
uint32_t buffer_pages(const uint64_t *buffer) { return (uint32_t)(*buffer / 100); }
uint64_t buffer_page(const uint64_t *buffer) { return (void)buffer, 100; }
#else
uint64_t buffer_size(const uint64_t *buffer) { return *buffer; }
#endif

void provider_made(uint64_t *p, uint64_t chip, int logical, int a, int b)
{
	(void)logical, (void)a, (void)b;
	*p = chip;
}

/* What the allocator knows of the device that is asked for a buffer. */
static _Thread_local struct device *current;

uint64_t allocate_buffer(void *a, uint64_t *buffer)
{
	(void)a;
	struct optional at = list_allocate(current->list, (*buffer + BANKS - 1) / BANKS, 1, 0);
	return at.present ? at.value : 0;
}

/* A device that is opened again has another address: so has a real one, often. */
enum { DEVICES = 1024 };
static struct device devices[DEVICES];
static unsigned opened;

/* The functions that the driver calls, by name. */
struct device *metal_open(uint64_t chip)
{
	struct device *d = &devices[opened++ % DEVICES];
	uint8_t dram = 0;
	*d = (struct device){.chip = chip, .list = malloc(sizeof *d->list)};
	allocator_made(d->allocator, NULL);
	banks(BANKS, &dram, 0);
	list_made(d->list, (uint64_t)SLOTS * SLOT, BASE, 64, 64, 0);
	provider_made(d->provider, chip, 0, 0, 0);
	return d;
}

uint64_t metal_take(struct device *d, uint64_t bytes)
{
	current = d;
	uint64_t at = allocate_buffer(d->allocator, &bytes);
#ifdef PAGES
	return at;
#endif
	if (at)
		record(d->provider, 0, bytes, 0, 0);
	return at;
}

/* The kernels of an operation, which its program cache keeps until the device is closed. */
void load_binaries(struct device *workload, uint64_t *bytes) { *bytes = metal_take(workload, *bytes); }

uint64_t metal_kernels(struct device *d, uint64_t bytes)
{
	load_binaries(d, &bytes);
	return bytes;
}

uint64_t metal_trace(struct device *d, uint64_t bytes) { return d->trace = metal_take(d, bytes); }

void metal_give(struct device *d, uint64_t address) { list_deallocate(d->list, address); }

void metal_close(struct device *d)
{
	list_clear(d->list);
	if (d->trace) /* as tt-metal does, whose list knows it no more */
		list_deallocate(d->list, d->trace);
	allocator_gone(d->allocator);
	provider_gone(d->provider);
	free(d->list);
}
