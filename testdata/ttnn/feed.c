/* A preload that feeds tt-metal's real-time profiler with pages of a test, in
 * mock mode, where it has no chip to get them from. It takes the place of the
 * exported functions that talk to the chip; everything else is tt-metal's own:
 * the manager, its receiver thread, its ring, its consumers, its shutdown.
 *
 * $TTMON_FEED is a folder with a file for each chip ("0", "1", …): struct feed,
 * then its pages. The test writes pages and counts them in "written"; the
 * receiver thread takes them and counts them in "taken".
 *
 * From 0.71 to 0.75 tt-metal has no function that could be replaced so. There a
 * thread of ours calls the function that its receiver calls for each record.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MANAGER "_ZN2tt8tt_metal11distributed23RealtimeProfilerManager"
#define SOCKET "_ZN2tt8tt_metal11distributed9D2HSocket"

enum { PAGES = 1 << 16, WORDS = 16, CHIPS = 32, CHIP = 8 };

struct feed {
	_Atomic uint64_t written, taken;
	double ticks_per_ns;
	_Atomic uint32_t hold; /* the host waits in finish until this is 0 */
	_Atomic uint32_t held; /* how often it has come there */
	uint64_t reserved[4];
	uint32_t page[PAGES][WORDS];
};

/* Stands for a D2HSocket. tt-metal deletes it. */
struct socket {
	struct feed *feed;
	char rest[4096];
};

static struct feed *open_feed(int chip)
{
	const char *dir = getenv("TTMON_FEED");
	char path[512];
	if (!dir || snprintf(path, sizeof path, "%s/%d", dir, chip) >= (int)sizeof path)
		return NULL;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	void *p = mmap(NULL, sizeof(struct feed), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

struct search {
	const void *address;
	char path[4096];
};

static int contains(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	struct search *x = data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, at = (uintptr_t)x->address;
		if (info->dlpi_phdr[i].p_type == PT_LOAD && at >= from && at < from + info->dlpi_phdr[i].p_memsz) {
			strncpy(x->path, info->dlpi_name, sizeof x->path - 1);
			return 1;
		}
	}
	return 0;
}

static int is_metal(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	const char *name = strrchr(info->dlpi_name, '/');
	if (!name || strcmp(name, "/libtt_metal.so") != 0)
		return 0;
	strncpy(data, info->dlpi_name, 4095);
	return 1;
}

/* A function of the library that called us: Python loads it where RTLD_NEXT
 * does not look. */
static void *of_caller(const char *name, const void *caller)
{
	struct search x = {.address = caller};
	void *handle = dl_iterate_phdr(contains, &x) ? dlopen(x.path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
	return handle ? dlsym(handle, name) : NULL;
}

static void *of_metal(const char *name)
{
	static char path[4096];
	void *handle = dl_iterate_phdr(is_metal, path) ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
	return handle ? dlsym(handle, name) : NULL;
}

/* The layouts of DeviceState: how large it is, and where it has its socket and
 * its clock. Releases since 0.80 are told by a function that only they have. */
struct layout {
	size_t size, socket, ticks;
};

static struct layout layout(const void *caller)
{
	if (of_caller(MANAGER "21report_dispatch_stallERNS2_11DeviceStateEmj", caller))
		return (struct layout){0xf0, 0x80, 0xb0};
	return (struct layout){0xc0, 0x50, 0x80};
}

struct vector {
	char *begin, *end, *capacity;
};

enum { DEVICES = 0x18 }; /* of the manager: a vector of DeviceState */

void initialize_devices(char *manager, const void *mesh) __asm__(MANAGER "18initialize_devicesERKSt10shared_ptrINS1_10MeshDeviceEE");
void initialize_devices(char *manager, const void *mesh)
{
	(void)mesh;
	const void *caller = __builtin_return_address(0);
	void (*make)(void *) = (void (*)(void *))of_caller(MANAGER "11DeviceStateC1Ev", caller);
	struct layout at = layout(caller);
	struct vector *devices = (struct vector *)(manager + DEVICES);
	char *states = calloc(CHIPS, at.size);
	if (!make || !states)
		abort();
	devices->begin = devices->end = states;
	devices->capacity = states + CHIPS * at.size;
	for (uint32_t chip = 0; chip < CHIPS; chip++) {
		struct feed *feed = open_feed((int)chip);
		if (!feed)
			continue;
		char *state = devices->end;
		make(state);
		struct socket *socket = calloc(1, sizeof *socket);
		if (!socket)
			abort();
		socket->feed = feed;
		memcpy(state + CHIP, &chip, sizeof chip);
		memcpy(state + at.socket, &socket, sizeof socket);
		memcpy(state + at.ticks, &feed->ticks_per_ns, sizeof feed->ticks_per_ns);
		devices->end += at.size;
	}
}

void run_init_sync(void *manager) __asm__(MANAGER "13run_init_syncEv");
void run_init_sync(void *manager) { (void)manager; }

void trigger_sync_check(void *manager) __asm__(MANAGER "18trigger_sync_checkEv");
void trigger_sync_check(void *manager) { (void)manager; }

void socket_gone(struct socket *s) __asm__(SOCKET "D1Ev");
void socket_gone(struct socket *s) { munmap(s->feed, sizeof *s->feed); }

uint32_t pages_available(struct socket *s) __asm__(SOCKET "15pages_availableEv");
uint32_t pages_available(struct socket *s)
{
	return (uint32_t)(atomic_load(&s->feed->written) - atomic_load(&s->feed->taken));
}

void socket_read(struct socket *s, uint32_t (*to)[WORDS], uint32_t pages, int notify) __asm__(SOCKET "4readEPvjb");
void socket_read(struct socket *s, uint32_t (*to)[WORDS], uint32_t pages, int notify)
{
	(void)notify;
	uint64_t taken = atomic_load(&s->feed->taken);
	for (uint32_t i = 0; i < pages; i++)
		memcpy(to[i], s->feed->page[(taken + i) % PAGES], sizeof *to);
	atomic_store(&s->feed->taken, taken + pages);
}

/* A host that waits for its work, for as long as the test wants: in mock mode
 * tt-metal's own wait returns at once, after it has asked for its cluster. */
void *get_cluster(void *context) __asm__("_ZN2tt8tt_metal12MetalContext11get_clusterEv");
void *get_cluster(void *context)
{
	static void *(*_Atomic original)(void *);
	static struct feed *_Atomic feed;
	void *(*call)(void *) = atomic_load(&original);
	const void *caller = __builtin_return_address(0);
	if (!call) {
		call = (void *(*)(void *))of_caller("_ZN2tt8tt_metal12MetalContext11get_clusterEv", caller);
		if (!call)
			call = (void *(*)(void *))of_metal("_ZN2tt8tt_metal12MetalContext11get_clusterEv");
		if (!call)
			abort();
		atomic_store(&feed, open_feed(0));
		atomic_store(&original, call);
	}
	struct feed *f = atomic_load(&feed);
	Dl_info at;
	if (f && atomic_load(&f->hold) && dladdr(caller, &at) && at.dli_sname && strstr(at.dli_sname, "FDMeshCommandQueue13finish_nolock")) {
		atomic_fetch_add(&f->held, 1);
		while (atomic_load(&f->hold)) /* it polls, as tt-metal does: a process that hardly runs is not judged */
			usleep(100);
	}
	return call(context);
}

/* Dividing a device writes to its dispatcher, which mock mode does not have. */
void reset_sub_devices(void *tracker, void *manager) __asm__("_ZN2tt8tt_metal23SubDeviceManagerTracker22reset_sub_device_stateERKSt10unique_ptrINS0_16SubDeviceManagerESt14default_deleteIS3_EE");
void reset_sub_devices(void *tracker, void *manager) { (void)tracker, (void)manager; }

/* ---- 0.71 to 0.75 ----------------------------------------------------------- */

/* ProgramRealtimeRecord of 0.71 and 0.72. */
struct old_record {
	uint32_t id, unused;
	uint64_t start, end;
	double ticks_per_ns;
	uint32_t chip, unused2;
	void *sources[3]; /* a vector of strings */
};

struct feeder {
	struct feed *feed;
	uint32_t chip;
};

static void *feed_records(void *data)
{
	struct feeder *f = data;
	void (*invoke)(const void *) = (void (*)(const void *))dlsym(RTLD_DEFAULT, "_ZN2tt38InvokeProgramRealtimeProfilerCallbacksERKNS_8tt_metal12experimental21ProgramRealtimeRecordE");
	if (!invoke)
		invoke = (void (*)(const void *))of_metal("_ZN2tt38InvokeProgramRealtimeProfilerCallbacksERKNS_8tt_metal12experimental21ProgramRealtimeRecordE");
	if (!invoke)
		abort();
	for (;; usleep(200)) {
		uint64_t taken = atomic_load(&f->feed->taken);
		for (; taken < atomic_load(&f->feed->written); taken++) {
			const uint32_t *p = f->feed->page[taken % PAGES];
			struct old_record r = {
				.id = p[2], .start = (uint64_t)p[0] << 32 | p[1], .end = (uint64_t)p[4] << 32 | p[5],
				.ticks_per_ns = f->feed->ticks_per_ns, .chip = f->chip,
			};
			if (p[3] < 0xfffffffe && p[2]) /* as the receiver does */
				invoke(&r);
			atomic_store(&f->feed->taken, taken + 1);
		}
	}
	return NULL;
}

/* Called by the job when its device is open (0.71 to 0.75). */
int ttmon_feed_start(void);
int ttmon_feed_start(void)
{
	int chips = 0;
	for (int chip = 0; chip < CHIPS; chip++) {
		struct feeder *f = calloc(1, sizeof *f);
		pthread_t t;
		if (!f || !(f->feed = open_feed(chip))) {
			free(f);
			continue;
		}
		f->chip = (uint32_t)chip;
		chips += pthread_create(&t, NULL, feed_records, f) == 0;
	}
	return chips;
}
