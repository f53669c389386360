/* The file of a ledger: made with the first list, grown as needed, never
 * shrunk. Memory is reserved before it is touched, so that a full /dev/shm is
 * an error code and not a SIGBUS.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

_Thread_local struct thread self;

static _Atomic(struct state *) current;

static const struct {
	uint32_t size, capacity;
} kinds[ALL_SECTIONS] = {
	[TTMON_CHIPS] = {sizeof(struct ttmon_chip), 256},
	[TTMON_LISTS] = {sizeof(struct ttmon_ledger_list), 4096},
	[TTMON_SITES] = {sizeof(struct ttmon_site), 1 << 16},
	[TTMON_FRAMES] = {sizeof(struct ttmon_frame), 1 << 16},
	[TTMON_NODES] = {sizeof(struct ttmon_node), 1 << 18},
	[TTMON_STRINGS] = {1, 4 << 20},
	[TTMON_BLOCKS] = {sizeof(struct ttmon_block), 4 << 20},
	[TTMON_EVENTS] = {sizeof(struct ttmon_event), 1 << 16},
	[WORK_SECTION] = {sizeof(struct ttmon_work), 256},
	[OPS_SECTION] = {sizeof(struct ttmon_op), 256 * TTMON_CHIP_OPS},
	[NAMES_SECTION] = {sizeof(struct ttmon_name), 1024},
	[FAILURES_SECTION] = {sizeof(struct ttmon_failure), TTMON_FAILURE_RECORDS},
	[FAILED_BLOCKS_SECTION] = {sizeof(struct ttmon_failed_block), TTMON_FAILED_BLOCK_RECORDS},
	[GAPS_SECTION] = {sizeof(struct ttmon_gap), 256 * TTMON_CHIP_GAPS},
};

enum { HEADER = 4096 };

void wait_for(_Atomic uint32_t *word)
{
	for (int i = 0; i < 100; i++) {
		uint32_t free = 0;
		if (atomic_compare_exchange_weak_explicit(word, &free, 1, memory_order_acquire, memory_order_relaxed))
			return;
	}
	while (atomic_exchange_explicit(word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int64_t now(void)
{
	struct timespec t;
	const struct state *s = atomic_load_explicit(&current, memory_order_relaxed);
	clock_gettime(s && s->events ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *map_private(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void *memory(size_t bytes)
{
	int before = errno;
	void *p = map_private(bytes);
	if (p)
		madvise(p, bytes, MADV_DONTFORK);
	errno = before;
	return p;
}

struct state *state(void)
{
	struct state *s = atomic_load_explicit(&current, memory_order_acquire);
	if (s)
		return s;
	int before = errno;
	s = map_private(sizeof *s);
	if (s && madvise(s, sizeof *s, MADV_WIPEONFORK) != 0) { /* before Linux 4.14 */
		munmap(s, sizeof *s);
		s = NULL;
	}
	struct state *none = NULL;
	if (s && !atomic_compare_exchange_strong(&current, &none, s)) {
		munmap(s, sizeof *s);
		s = none;
	}
	errno = before;
	return s;
}

/* One line, to the file that `ttmon run` reads, or to standard error on request. */
void complain(struct state *s, const char *doing, int error)
{
	atomic_store(&s->doing, doing);
	atomic_store(&s->error, error);
	const char *log = getenv("TTMON_LOG"), *debug = getenv("TTMON_DEBUG");
	int fd = -1;
	if (log && *log)
		fd = open(log, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0 && !(debug && *debug == '1'))
		return;
	char line[256];
	int n = snprintf(line, sizeof line, "libttmon: process %d: %s: %s\n", (int)getpid(), doing, error ? strerror(error) : "not found");
	if (n > (int)sizeof line - 1)
		n = sizeof line - 1;
	if (write(fd < 0 ? 2 : fd, line, (size_t)n) < 0) {
		/* nobody to tell */
	}
	if (fd >= 0)
		close(fd);
}

const char *ttmon_error(void)
{
	struct state *s = state();
	if (!s)
		return "no memory for the library's state, or a kernel before 4.14";
	const char *doing = atomic_load(&s->doing);
	if (!doing)
		return NULL;
	int error = atomic_load(&s->error);
	enter(s);
	snprintf(s->sentence, sizeof s->sentence, "%s: %s", doing, error ? strerror(error) : "not found");
	leave(s);
	return s->sentence;
}

/* Without the C library's own functions, which older ones do not have by these names. */
static bool file_of(int fd, uint64_t *device, uint64_t *inode)
{
	struct stat st;
	if (syscall(SYS_fstat, fd, &st) != 0)
		return false;
	*device = (uint64_t)st.st_dev;
	*inode = (uint64_t)st.st_ino;
	return true;
}

/* The descriptor may have been closed by a program that closes all of them,
 * and its number may now be somebody else's file. */
static bool ours(const struct state *s)
{
	uint64_t device, inode;
	return file_of(s->fd, &device, &inode) && device == s->device && inode == s->inode;
}

static bool claim(int fd)
{
	/* A POSIX lock belongs to the process and not to its children, ends with
	 * it whatever happens, and names it to readers. */
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fcntl(fd, F_SETLK, &l) == 0;
}

static bool regain(struct state *s)
{
	if (ours(s))
		return true;
	int fd = open(s->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	s->fd = fd;
	if (ours(s) && claim(fd))
		return true;
	close(fd);
	s->fd = -1;
	return false;
}

/* Backs a range of the file with memory, without ever raising a signal. */
static int back(int fd, uint64_t from, uint64_t to)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && to > limit.rlim_cur)
		return EFBIG;
	if (fallocate(fd, 0, (off_t)from, (off_t)(to - from)) == 0)
		return 0;
	if (errno != EOPNOTSUPP)
		return errno;
	static const char zeros[4096];
	while (from < to) {
		ssize_t n = pwrite(fd, zeros, to - from < sizeof zeros ? to - from : sizeof zeros, (off_t)from);
		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
		from += (uint64_t)n;
	}
	return 0;
}

void *record(struct state *s, int section, uint32_t n)
{
	return (char *)s->ledger + section_of(s, section)->offset + (uint64_t)n * kinds[section].size;
}

bool region_reserve(struct state *s, int section, uint32_t records)
{
	uint64_t need = (uint64_t)records * kinds[section].size;
	if (need <= s->backed[section])
		return true;
	uint64_t most = (uint64_t)kinds[section].capacity * kinds[section].size;
	if (need > most)
		return false;
	/* Where there was no room, asking for it at each event would cost the
	 * program a system call each time. */
	if (s->refused[section] && s->refused[section]++ % 1024)
		return false;
	int before = errno;
	uint64_t step = section == TTMON_BLOCKS ? 64 << 10 : 8 << 10;
	uint64_t to = s->backed[section] + s->backed[section] / 2;
	if (to < need)
		to = need;
	to = (to + step - 1) / step * step;
	if (to > most)
		to = most;
	uint64_t start = section_of(s, section)->offset;
	int error = regain(s) ? back(s->fd, start + s->backed[section], start + to) : EBADF;
	if (error) {
		if (!atomic_load(&s->doing))
			complain(s, "growing the ledger", error);
		s->refused[section] += !s->refused[section];
		errno = before;
		return false;
	}
	s->backed[section] = to;
	s->refused[section] = 0;
	errno = before;
	return true;
}

static uint64_t start_ticks(void)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return 0;
	/* Not strtoull: newer C libraries make another symbol of it, which others lack. */
	uint64_t ticks = 0;
	while (*++p >= '0' && *p <= '9')
		ticks = 10 * ticks + (uint64_t)(*p - '0');
	return ticks;
}

static void fill_header(struct state *s, uint64_t ticks)
{
	struct ttmon_ledger *l = s->ledger;
	struct timespec real, mono;
	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	uint64_t device, inode = 0;
	int ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (ns >= 0) {
		file_of(ns, &device, &inode);
		close(ns);
	}
	l->version = TTMON_LEDGER_VERSION;
	l->header = sizeof *l;
	l->pid = s->pid;
	l->start_ticks = ticks;
	l->pid_namespace = inode;
	l->real_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
	l->monotonic_ns = (int64_t)mono.tv_sec * 1000000000 + mono.tv_nsec;
	const char *run = getenv("TTMON_RUN");
	if (run)
		strncpy(l->run, run, sizeof l->run - 1);
	const char *library = metal_path();
	if (library)
		strncpy(l->library, library, sizeof l->library - 1);
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, l->comm, sizeof l->comm - 1);
		if (n > 0 && l->comm[n - 1] == '\n')
			l->comm[n - 1] = 0;
		close(fd);
	}
}

static int create(struct state *s)
{
	const char *dir = getenv("TTMON_DIR");
	if (!dir || *dir != '/')
		dir = "/dev/shm";
	for (uint32_t try = 0; try < 16; try++) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		uint64_t random = ((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)(uintptr_t)s ^ try) * 0x9e3779b97f4a7c15u;
		int n = snprintf(s->path, sizeof s->path, "%s/" TTMON_LEDGER_PREFIX "%d-%016llx", dir, s->pid, (unsigned long long)random);
		if (n >= (int)sizeof s->path)
			return errno = ENAMETOOLONG, -1;
		int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd >= 0 && fd < 3) { /* a program without standard streams: leave their numbers alone */
			int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			close(fd);
			fd = high;
		}
		return fd;
	}
	return -1;
}

/* Undoes a ledger that could not be made whole. */
static void unmake(struct state *s, size_t bytes)
{
	unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	if (s->ledger)
		munmap(s->ledger, bytes);
	s->ledger = NULL;
	s->fd = -1;
	s->path[0] = 0;
}

static bool private_tables(struct state *s)
{
	s->lists = memory(kinds[TTMON_LISTS].capacity * sizeof *s->lists);
	s->site_next = memory(kinds[TTMON_SITES].capacity * sizeof *s->site_next);
	return s->lists && s->site_next;
}

static bool make(struct state *s)
{
	uint64_t offset[ALL_SECTIONS], end = HEADER;
	for (int i = 0; i < ALL_SECTIONS; i++) {
		offset[i] = end;
		end += ((uint64_t)kinds[i].size * kinds[i].capacity + HEADER - 1) / HEADER * HEADER;
	}
	if (!private_tables(s))
		return complain(s, "reserving memory for tables", ENOMEM), false;
	s->pid = getpid();
	s->fd = create(s);
	if (s->fd < 0)
		return complain(s, "creating a ledger", errno), false;
	int error = file_of(s->fd, &s->device, &s->inode) && claim(s->fd) ? back(s->fd, 0, HEADER) : errno;
	if (error)
		return unmake(s, 0), complain(s, "reserving memory for the ledger", error), false;
	s->ledger = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
	if (s->ledger == MAP_FAILED) {
		s->ledger = NULL;
		return error = errno, unmake(s, 0), complain(s, "mapping the ledger", error), false;
	}
	madvise(s->ledger, end, MADV_DONTFORK);
	madvise(s->ledger, end, MADV_DONTDUMP);
	fill_header(s, start_ticks());
	memset(s->backed, 0, sizeof s->backed);
	for (int i = 0; i < ALL_SECTIONS; i++)
		*section_of(s, i) = (struct ttmon_section){.offset = offset[i], .size = kinds[i].size, .capacity = kinds[i].capacity};
	/* Record 0 of most kinds is none. */
	static const uint32_t first[TTMON_SECTIONS] = {[TTMON_LISTS] = 1, [TTMON_SITES] = 1, [TTMON_FRAMES] = 1, [TTMON_NODES] = 1, [TTMON_STRINGS] = 4};
	for (int i = 0; i < TTMON_SECTIONS; i++) {
		if (i == TTMON_EVENTS)
			continue;
		if (!region_reserve(s, i, first[i] ? first[i] : 1))
			return unmake(s, end), false;
		s->ledger->section[i].used = first[i];
	}
	const char *events = getenv("TTMON_EVENTS");
	s->events = events && *events == '1' && region_reserve(s, TTMON_EVENTS, kinds[TTMON_EVENTS].capacity);
	s->ledger->section[TTMON_EVENTS].used = s->events ? kinds[TTMON_EVENTS].capacity : 0;
	return true;
}

bool region_make(struct state *s)
{
	uint32_t stage = atomic_load_explicit(&s->stage, memory_order_acquire);
	if (stage != STAGE_NEW)
		return stage == STAGE_READY;
	int before = errno;
	enter(s);
	stage = atomic_load(&s->stage);
	if (stage == STAGE_NEW) {
		stage = make(s) ? STAGE_READY : STAGE_OFF;
		if (stage == STAGE_READY) {
			s->generation = (uint32_t)s->inode ^ (uint32_t)now() ^ (uint32_t)s->pid << 8;
			s->generation += s->generation == 0;
			const char *tensors = getenv("TTMON_TENSORS");
			s->no_tensors = tensors && *tensors == '0';
			const char *mode = getenv("TTMON_STACKS");
			if (mode && *mode)
				atomic_store(&s->stacks, *mode == 'n' ? TTMON_STACKS_NATIVE : *mode == 'a' ? TTMON_STACKS_ALL : *mode == '0' ? TTMON_STACKS_NONE : TTMON_STACKS_PYTHON);
			s->ledger->flags = (atomic_load(&s->stacks) & TTMON_STACKS_PYTHON ? TTMON_STACKS_ON : 0) |
					   (atomic_load(&s->stacks) & TTMON_STACKS_NATIVE ? TTMON_NATIVE_ON : 0) | (s->late ? TTMON_LATE : 0);
			if (inherits())
				inherit(s);
			uint64_t magic;
			memcpy(&magic, TTMON_LEDGER_MAGIC, sizeof magic);
			atomic_store_explicit((_Atomic uint64_t *)s->ledger->magic, magic, memory_order_release);
		}
		atomic_store_explicit(&s->stage, stage, memory_order_release);
	}
	leave(s);
	errno = before;
	return stage == STAGE_READY;
}

const char *ttmon_path(void)
{
	struct state *s = state();
	return s && atomic_load(&s->stage) == STAGE_READY ? s->path : NULL;
}

const void *ttmon_region(size_t *bytes)
{
	struct state *s = state();
	if (!s || atomic_load(&s->stage) != STAGE_READY)
		return NULL;
	const struct ttmon_section *last = &s->ledger->section[TTMON_BLOCKS];
	if (bytes)
		*bytes = last->offset + (size_t)last->used * last->size;
	return s->ledger;
}

/* The end in good order. `ttmon run` reads the ledger afterwards; otherwise
 * nobody will. */
__attribute__((destructor)) static void end(void)
{
	struct state *s = atomic_load(&current);
	if (!s || atomic_load(&s->stage) != STAGE_READY || s->pid != getpid())
		return;
	enter(s);
	change(s);
	s->ledger->flags |= TTMON_ENDED;
	changed(s);
	leave(s);
	/* A failure just before the end is for ttmond, which removes the file. */
	if (!s->ledger->run[0] && !failed_lately(s))
		unlink(s->path);
}
