/* A program with an allocator of its own, for the tests: it does what it is
 * told, a line at a time, and answers each with a line. Its blocks can be
 * checked: the bytes of each follow from its address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ttmon.h"

enum { PAGE = 4096, SLOTS = 512 };

/* What a block at an address must have: see blockBytes in the Go tests. */
static uint64_t bytes_of(uint64_t address) { return 64 + address / PAGE * 2654435761u % 63 * 64; }

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

static ttmon_list_t make(uint64_t chip, uint32_t pool)
{
	struct ttmon_pool p = {.chip = chip, .logical = (int32_t)chip, .pool = pool, .banks = 8, .capacity = SLOTS * PAGE, .alignment = 64};
	return ttmon_list(&p);
}

/* Allocates and frees at random, in a list of its own, for so many events. */
struct work {
	uint64_t chip, seed, events;
};

static void *work(void *argument)
{
	struct work w = *(struct work *)argument;
	ttmon_list_t list = make(w.chip, 0);
	static _Thread_local unsigned char taken[SLOTS];
	memset(taken, 0, sizeof taken);
	char tag[] = "layer 0";
	for (uint64_t i = 0; i < w.events; i++) {
		uint64_t slot = next(&w.seed) % SLOTS, address = slot * PAGE;
		if (taken[slot]) {
			ttmon_free(list, address);
		} else {
			tag[6] = (char)('0' + slot % 10);
			ttmon_tag_push(tag);
			ttmon_alloc(list, address, bytes_of(address));
			ttmon_tag_pop();
		}
		taken[slot] ^= 1;
	}
	return NULL;
}

static void storm(int threads, uint64_t seed, uint64_t events)
{
	pthread_t t[16];
	struct work w[16];
	for (int i = 0; i < threads && i < 16; i++) {
		w[i] = (struct work){.chip = (uint64_t)i + 1, .seed = seed * 7919 + (uint64_t)i + 1, .events = events};
		pthread_create(&t[i], NULL, work, &w[i]);
	}
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(t[i], NULL);
}

static double nanoseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* what others do on the machine does not count */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds per event, with that many blocks live. */
static void bench(uint64_t events, uint64_t live)
{
	struct ttmon_pool p = {.chip = 1, .pool = 0, .banks = 8, .capacity = (uint64_t)1 << 40, .alignment = 64};
	ttmon_list_t list = ttmon_list(&p);
	for (uint64_t i = 0; i < live; i++)
		ttmon_alloc(list, i * PAGE, 64);
	double start = nanoseconds();
	for (uint64_t i = 0; i < events / 2; i++) {
		uint64_t address = (live + i % 64) * PAGE;
		ttmon_alloc(list, address, 64);
		ttmon_free(list, address);
	}
	printf("%.2f\n", (nanoseconds() - start) / (double)events);
}

/* Copies of tt-metal (lib/test/metal.c), and a device of each. */
static struct copy {
	void *handle, *device;
	void *(*open)(uint64_t);
	uint64_t (*take)(void *, uint64_t), (*kernels)(void *, uint64_t), (*trace)(void *, uint64_t);
	void (*give)(void *, uint64_t);
	void (*close)(void *);
} copies[8];

/* Loads a library as copy number n; 0 if that cannot be. */
static int load(unsigned n, const char *path)
{
	struct copy *c = &copies[n % 8];
	*c = (struct copy){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
	if (!c->handle)
		return 0;
	*(void **)&c->open = dlsym(c->handle, "metal_open");
	*(void **)&c->take = dlsym(c->handle, "metal_take");
	*(void **)&c->kernels = dlsym(c->handle, "metal_kernels");
	*(void **)&c->trace = dlsym(c->handle, "metal_trace");
	*(void **)&c->give = dlsym(c->handle, "metal_give");
	*(void **)&c->close = dlsym(c->handle, "metal_close");
	return c->open && c->take && c->kernels && c->trace && c->give && c->close;
}

/* Allocates and frees buffers of a copy from a thread. */
static void *metal_work(void *argument)
{
	struct copy *c = argument;
	uint64_t held[32] = {0}, seed = (uint64_t)(uintptr_t)&held | 1;
	for (int i = 0; i < 3000; i++) {
		uint64_t *slot = &held[next(&seed) % 32];
		if (*slot)
			c->give(c->device, *slot);
		*slot = *slot ? 0 : c->take(c->device, 512 + next(&seed) % 4096);
	}
	for (int i = 0; i < 32; i++)
		if (held[i])
			c->give(c->device, held[i]);
	return NULL;
}

/* Each copy is used by one thread at a time, as its allocator's lock makes sure. */
static void metal_storm(unsigned n)
{
	pthread_t t[8];
	for (unsigned i = 0; i < n && i < 8; i++)
		pthread_create(&t[i], NULL, metal_work, &copies[i]);
	for (unsigned i = 0; i < n && i < 8; i++)
		pthread_join(t[i], NULL);
}

static void limit(int what, rlim_t n)
{
	struct rlimit r = {n, n};
	setrlimit(what, &r);
}

int main(int argc, char **argv)
{
	char line[512], verb[32], word[256];
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0); /* a child, or what is executed, reads what is left */
	if (argc == 4 && strcmp(argv[1], "storm") == 0) {
		storm(atoi(argv[2]), strtoull(argv[3], NULL, 10), UINT64_MAX);
		return 0;
	}
	while (fgets(line, sizeof line, stdin)) {
		unsigned long long a = 0, b = 0, c = 0;
		if (sscanf(line, "%31s %llu %llu %llu", verb, &a, &b, &c) < 1)
			continue;
		word[0] = 0;
		sscanf(line, "%*s %255s", word);
		if (strcmp(verb, "list") == 0) {
			printf("%u\n", make(a, (uint32_t)b));
			continue;
		} else if (strcmp(verb, "close") == 0) {
			ttmon_list_close((ttmon_list_t)a);
		} else if (strcmp(verb, "alloc") == 0) {
			printf("%d\n", ttmon_alloc((ttmon_list_t)a, b, c ? c : bytes_of(b)));
			continue;
		} else if (strcmp(verb, "free") == 0) {
			printf("%d\n", ttmon_free((ttmon_list_t)a, b));
			continue;
		} else if (strcmp(verb, "push") == 0) {
			ttmon_tag_push(word);
		} else if (strcmp(verb, "pop") == 0) {
			ttmon_tag_pop();
		} else if (strcmp(verb, "storm") == 0) {
			storm((int)a, b, c);
		} else if (strcmp(verb, "stacks") == 0) {
			printf("%d\n", ttmon_stacks((int)a));
			continue;
		} else if (strcmp(verb, "reset") == 0) {
			ttmon_reset_peak();
		} else if (strcmp(verb, "query") == 0) {
			struct ttmon_usage u;
			int known = ttmon_query(a, (uint32_t)b, &u);
			printf("%d %llu %llu %llu %llu %llu\n", known, (unsigned long long)u.bytes, (unsigned long long)u.blocks, (unsigned long long)u.peak_bytes,
			       (unsigned long long)u.left_bytes, (unsigned long long)u.capacity);
			continue;
		} else if (strcmp(verb, "path") == 0) {
			printf("%s\n", ttmon_path() ? ttmon_path() : "-");
			continue;
		} else if (strcmp(verb, "error") == 0) {
			printf("%s\n", ttmon_error() ? ttmon_error() : "-");
			continue;
		} else if (strcmp(verb, "closefds") == 0) { /* as some daemons do */
			for (int fd = 3; fd < 256; fd++)
				close(fd);
		} else if (strcmp(verb, "steal") == 0) { /* the number of the closed descriptor becomes another file */
			for (int fd = 3; fd < 16; fd++)
				dup2(open("/dev/null", O_RDWR), fd);
		} else if (strcmp(verb, "fsize") == 0) {
			limit(RLIMIT_FSIZE, a);
		} else if (strcmp(verb, "fork") == 0) { /* the child has its turn, then the parent */
			fflush(NULL);
			pid_t child = fork();
			if (child > 0) {
				int status;
				waitpid(child, &status, 0);
			} else {
				printf("child ");
				continue;
			}
		} else if (strcmp(verb, "setuid") == 0) {
			printf("%d\n", setgid((gid_t)a) + setuid((uid_t)a));
			continue;
		} else if (strcmp(verb, "exec") == 0) {
			execv(argv[0], argv);
			return 1;
		} else if (sscanf(line, "metal %llu %255s", &a, word) == 2 && strcmp(verb, "metal") == 0) {
			printf("%d\n", load((unsigned)a, word));
			continue;
		} else if (strcmp(verb, "mopen") == 0) {
			copies[a % 8].device = copies[a % 8].open(b);
		} else if (strcmp(verb, "mtake") == 0) {
			printf("%llu\n", (unsigned long long)copies[a % 8].take(copies[a % 8].device, b));
			continue;
		} else if (strcmp(verb, "mkernels") == 0) {
			printf("%llu\n", (unsigned long long)copies[a % 8].kernels(copies[a % 8].device, b));
			continue;
		} else if (strcmp(verb, "mtrace") == 0) {
			printf("%llu\n", (unsigned long long)copies[a % 8].trace(copies[a % 8].device, b));
			continue;
		} else if (strcmp(verb, "mgive") == 0) {
			copies[a % 8].give(copies[a % 8].device, b);
		} else if (strcmp(verb, "mclose") == 0) {
			copies[a % 8].close(copies[a % 8].device);
		} else if (strcmp(verb, "mstorm") == 0) {
			metal_storm((unsigned)a);
		} else if (strcmp(verb, "munload") == 0) {
			printf("%d\n", dlclose(copies[a % 8].handle));
			continue;
		} else if (strcmp(verb, "attach") == 0) {
			printf("%d\n", ttmon_attach());
			continue;
		} else if (strcmp(verb, "abandon") == 0) {
			_exit(0);
		} else if (strcmp(verb, "bench") == 0) {
			bench(a, b);
			continue;
		} else {
			printf("what is %s?\n", verb);
			continue;
		}
		printf("ok\n");
	}
	return 0;
}
