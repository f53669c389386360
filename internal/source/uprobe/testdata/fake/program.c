// Does with the fake library what it is told, a line at a time, and answers
// each line with one.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fake.h"

#define FUNCTIONS(F) \
	F(made_allocator, "13AllocatorImplC2ERKNS0_15AllocatorConfigE") \
	F(gone_allocator, "13AllocatorImplD2Ev") \
	F(made_dram, "11BankManagerC1ERKNS0_10BufferTypeERKSt6vectorIlSaIlEEm") \
	F(made_list, "9allocator11FreeListOptC1EmmmmNS2_12SearchPolicyE") \
	F(ask, "11BankManager15allocate_bufferEmmb") \
	F(take_in_block, "9allocator11FreeListOpt17allocate_in_blockEmmm") \
	F(give_back, "9allocator11FreeListOpt10deallocateEm") \
	F(clear_list, "9allocator11FreeListOpt5clearEv") \
	F(made_provider, "25SharedMemoryStatsProviderC1Emibb") \
	F(record, "25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj")
#define DECLARE(name, symbol) static void (*name)();
FUNCTIONS(DECLARE)

static struct list list;
static struct manager manager = {.pool = 0, .banks = 8};
static uint64_t allocator[8], provider[8];

static void load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define FIND(name, symbol) name = (void (*)())dlsym(lib, "_ZN2tt8tt_metal" symbol);
	FUNCTIONS(FIND)
}

static void make(uint64_t capacity, uint64_t chip)
{
	int64_t offsets[8] = {0};
	struct vector banks = {offsets, offsets + 8, offsets + 8};
	made_allocator(allocator);
	made_dram(&manager, &manager.pool, &banks);
	made_list(&list, capacity, (uint64_t)4096, (uint64_t)64, (uint64_t)64);
	made_provider(provider, chip, 0);
}

static uint64_t take(uint64_t size)
{
	uint64_t at = ((uint64_t *)list.addresses.begin)[0];
	ask(&manager, size * 8 - 1, (uint64_t)2048);
	take_in_block(&list, (uint64_t)0, size, (uint64_t)0);
	record(provider, (int)getpid(), size * 8 - 1, 0, 0);
	return list.base + at;
}

// loop takes a block and gives it back, n times at a pace of rate a second (0:
// as fast as it can), and tells how many ns of CPU time a round took: the
// machine may be busy.
static double loop(long n, double rate)
{
	struct timespec from, now, cpu_from, cpu;
	list.forgetful = 1;
	clock_gettime(CLOCK_MONOTONIC, &from);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_from);
	double spent = 0;
	for (long i = 0; i < n; i++) {
		ask(&manager, (uint64_t)511, (uint64_t)2048);
		uint64_t at = ((uint64_t *)list.addresses.begin)[0];
		take_in_block(&list, (uint64_t)0, (uint64_t)64, (uint64_t)0);
		give_back(&list, list.base + at);
		if (rate > 0 && i % 64 == 63) {
			do {
				clock_gettime(CLOCK_MONOTONIC, &now);
				spent = (now.tv_sec - from.tv_sec) + (now.tv_nsec - from.tv_nsec) / 1e9;
				if (spent < i / rate)
					usleep(500);
			} while (spent < i / rate);
		}
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	spent = (cpu.tv_sec - cpu_from.tv_sec) + (cpu.tv_nsec - cpu_from.tv_nsec) / 1e9;
	list.forgetful = 0;
	return spent / n * 1e9;
}

int main(int argc, char **argv)
{
	char line[4096], word[4096];
	unsigned long long a, b;
	double rate;
	long n;
	if (argc > 1)
		load(argv[1]);
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "load %4095s", word) == 1) {
			load(word);
			puts("ok");
		} else if (sscanf(line, "make %llu %llu", &a, &b) == 2) {
			make(a, b);
			puts("ok");
		} else if (sscanf(line, "take %llu", &a) == 1) {
			printf("%llu\n", (unsigned long long)take(a));
		} else if (sscanf(line, "free %llu", &a) == 1) {
			give_back(&list, (uint64_t)a);
			puts("ok");
		} else if (!strcmp(line, "clear\n")) {
			clear_list(&list);
			puts("ok");
		} else if (sscanf(line, "loop %ld %lf", &n, &rate) == 2) {
			printf("%f\n", loop(n, rate));
		} else if (sscanf(line, "fork %llu", &a) == 1) {
			// The child takes one block of what it inherited, then makes an
			// allocator of its own with one block, and stays.
			pid_t child = fork();
			if (child == 0) {
				take(64);
				make(1 << 20, 77);
				take(a);
				pause();
				_exit(0);
			}
			printf("%d\n", child);
		} else if (sscanf(line, "writers %ld %llu", &n, &a) == 2) {
			// So many children, each of which takes a block of what it inherited,
			// and stays as long as its parent.
			for (long i = 0; i < n; i++) {
				int done[2];
				char c;
				if (pipe(done))
					return 1;
				if (fork() == 0) {
					prctl(PR_SET_PDEATHSIG, SIGKILL);
					take(a);
					close(done[0]);
					write(done[1], "", 1);
					pause();
					_exit(0);
				}
				close(done[1]);
				read(done[0], &c, 1);
				close(done[0]);
			}
			puts("ok");
		} else if (!strcmp(line, "exec\n")) {
			fflush(stdout);
			execv("/proc/self/exe", argv);
			exit(1);
		} else {
			puts("what?");
		}
		fflush(stdout);
	}
	return 0;
}
