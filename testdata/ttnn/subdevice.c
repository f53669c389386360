/* A preload with which a test asks the allocator of a sub-device, and captures
 * traces, in mock mode. tt-metal gives each sub-device an allocator of its own,
 * which only C++ programs reach (the last argument of Buffer::create); ttnn's
 * Python has no way to it. Here whatever asks a mesh for its allocator gets that of
 * the sub-device that was chosen. All else is tt-metal's own: the managers, the
 * allocators, their rules and their messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATOR "_ZNK2tt8tt_metal11distributed10MeshDevice14allocator_impl"

static _Atomic int chosen = -1;

/* Called by the job: the allocator that is asked from now on; -1: the device's. */
void ttmon_sub_device(int n);
void ttmon_sub_device(int n) { atomic_store(&chosen, n); }

static int is_metal(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	const char *name = strrchr(info->dlpi_name, '/');
	if (!name || strcmp(name, "/libtt_metal.so") != 0)
		return 0;
	strncpy(data, info->dlpi_name, 4095);
	return 1;
}

static void *of_metal(const char *name)
{
	char path[4096] = "";
	void *handle = dl_iterate_phdr(is_metal, path) ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
	void *f = handle ? dlsym(handle, name) : NULL;
	if (!f)
		abort();
	return f;
}

const void *allocator(const void *mesh) __asm__(ALLOCATOR "Ev");
const void *allocator(const void *mesh)
{
	int n = atomic_load(&chosen);
	if (n < 0)
		return ((const void *(*)(const void *))of_metal(ALLOCATOR "Ev"))(mesh);
	return ((const void *(*)(const void *, uint8_t))of_metal(ALLOCATOR "EN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEE"))(mesh, (uint8_t)n);
}

/* Dividing a device, and capturing a trace, write to its dispatcher, which mock mode does not have. */
void reset_sub_devices(void *tracker, void *manager) __asm__("_ZN2tt8tt_metal23SubDeviceManagerTracker22reset_sub_device_stateERKSt10unique_ptrINS0_16SubDeviceManagerESt14default_deleteIS3_EE");
void reset_sub_devices(void *tracker, void *manager) { (void)tracker, (void)manager; }

/* Traces of a chosen size: what was captured into one is tt-metal's own affair, and
 * how large it is said to be is ours. Slow dispatch, which has no traces, captures
 * empty ones. */
#define QUEUE(which, function) "_ZN2tt8tt_metal11distributed18" which "MeshCommandQueue" function
#define BEGIN "12record_beginERKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEERKSt10shared_ptrINS1_19MeshTraceDescriptorEE"
#define END "10record_endEv"

enum { TRACE_SIZE = 0x68 }; /* of a MeshTraceDescriptor */

static _Atomic uint32_t trace_bytes;
static char *captured;     /* MeshTraceDescriptor of the trace that is being captured */
static uint64_t capturing; /* std::optional<MeshTraceId> of slow dispatch */

/* Called by the job: the size of the next traces; 0: what they have. */
void ttmon_trace_bytes(uint32_t n);
void ttmon_trace_bytes(uint32_t n) { atomic_store(&trace_bytes, n); }

static void resize(void)
{
	uint32_t n = atomic_load(&trace_bytes);
	if (n && captured)
		memcpy(captured + TRACE_SIZE, &n, sizeof n);
	captured = NULL;
}

void fast_begin(void *queue, const uint32_t *id, char **descriptor) __asm__(QUEUE("FD", BEGIN));
void fast_begin(void *queue, const uint32_t *id, char **descriptor)
{
	captured = *descriptor;
	((void (*)(void *, const uint32_t *, char **))of_metal(QUEUE("FD", BEGIN)))(queue, id, descriptor);
}

void fast_end(void *queue) __asm__(QUEUE("FD", END));
void fast_end(void *queue)
{
	((void (*)(void *))of_metal(QUEUE("FD", END)))(queue);
	resize();
}

void slow_begin(void *queue, const uint32_t *id, char **descriptor) __asm__(QUEUE("SD", BEGIN));
void slow_begin(void *queue, const uint32_t *id, char **descriptor)
{
	(void)queue;
	captured = *descriptor;
	capturing = *id | (uint64_t)1 << 32;
}

void slow_end(void *queue) __asm__(QUEUE("SD", END));
void slow_end(void *queue)
{
	(void)queue;
	resize();
}

uint64_t slow_trace(const void *queue) __asm__("_ZNK2tt8tt_metal11distributed18SDMeshCommandQueue8trace_idEv");
uint64_t slow_trace(const void *queue)
{
	(void)queue;
	uint64_t id = capturing;
	capturing = 0; /* asked for once, when the capture ends */
	return id;
}
