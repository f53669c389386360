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
	F(give_back, "_ZN2tt8tt_metal9allocator11FreeListOpt10deallocateEm") \
	F(device_open, "device_open") \
	F(device_give, "device_give") \
	F(device_fail, "device_fail") \
	F(device_report, "device_report") \
	F(device_queue, "device_queue") \
	F(device_enqueue, "device_enqueue") \
	F(device_finish, "device_finish") \
	F(device_unqueue, "device_unqueue") \
	F(device_clear, "device_clear")
#define DECLARE(name, symbol) static void (*name)();
FUNCTIONS(DECLARE)
static uint64_t (*device_take)(struct device *, uint64_t, int);
static uint64_t (*device_ask)(struct device *, uint64_t);

static struct device device;

static void load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define FIND(name, symbol) name = (void (*)())dlsym(lib, symbol);
	FUNCTIONS(FIND)
	device_take = (uint64_t(*)(struct device *, uint64_t, int))dlsym(lib, "device_take");
	device_ask = (uint64_t(*)(struct device *, uint64_t))dlsym(lib, "device_ask");
}

static void make(uint64_t capacity, uint64_t chip) { device_open(&device, capacity, chip); }
static uint64_t take(uint64_t size) { return device_take(&device, size, getpid()); }

static void *take_in_thread(void *size) { return (void *)take((uint64_t)size); }

// What a thread of its own takes.
static uint64_t elsewhere(uint64_t size)
{
	pthread_t thread;
	void *at = NULL;
	if (pthread_create(&thread, NULL, take_in_thread, (void *)size) || pthread_join(thread, &at))
		exit(1);
	return (uint64_t)at;
}

// loop takes a block and gives it back, or asks for what does not fit, n times at a pace of rate a second (0:
// as fast as it can), and tells how many ns of CPU time a round took: the
// machine may be busy.
static void round_trip(void) { give_back(&device.list, device_ask(&device, 64)); }
static void fail_once(void) { device_fail(&device); }

static double loop(long n, double rate, void (*what)(void))
{
	struct timespec from, now, cpu_from, cpu;
	device.list.forgetful = 1;
	clock_gettime(CLOCK_MONOTONIC, &from);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_from);
	double spent = 0;
	for (long i = 0; i < n; i++) {
		what();
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
	device.list.forgetful = 0;
	return spent / n * 1e9;
}

// CPU time of this thread, in ns.
static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

// stream reports programs at a pace, as tt-metal's receiver does: it sleeps for a
// while, and takes what has come by then. It tells the CPU time of a program.
static double stream(double rate, long seconds)
{
	struct timespec begun, now;
	double from = cpu(), passed = 0;
	uint64_t done = 0;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	while (passed < seconds) {
		usleep(100);
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = (now.tv_sec - begun.tv_sec) + (now.tv_nsec - begun.tv_nsec) / 1e9;
		while (done < (uint64_t)(passed * rate)) {
			uint64_t n = (uint64_t)(passed * rate) - done;
			n = n < 1024 ? n : 1024;
			device_report(0, (uint32_t)n);
			done += n;
		}
	}
	return done ? (cpu() - from) / done : 0;
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
		} else if (sscanf(line, "fill %ld %llu", &n, &a) == 2) {
			for (long i = 0; i < n; i++)
				device_ask(&device, a);
			puts("ok");
		} else if (sscanf(line, "report %ld %llu %llu", &n, &a, &b) == 3) { // so often, of a chip, so many programs
			double from = cpu();
			for (long i = 0; i < n; i++)
				device_report((uint32_t)a, (uint32_t)b);
			printf("%f\n", (cpu() - from) / (n * b));
		} else if (sscanf(line, "stream %lf %ld", &rate, &n) == 2) { // so many a second, for so many seconds
			printf("%f\n", stream(rate, n));
		} else if (sscanf(line, "queue %llu", &a) == 1) {
			device_queue((uint64_t)a);
			puts("ok");
		} else if (sscanf(line, "unqueue %llu", &a) == 1) {
			device_unqueue((uint64_t)a);
			puts("ok");
		} else if (sscanf(line, "enqueue %ld %llu", &n, &a) == 2) { // so often, on a queue
			double from = cpu();
			for (long i = 0; i < n; i++)
				device_enqueue((uint64_t)a);
			printf("%f\n", (cpu() - from) / n);
		} else if (sscanf(line, "finish %ld %llu", &n, &a) == 2) {
			double from = cpu();
			for (long i = 0; i < n; i++)
				device_finish((uint64_t)a);
			printf("%f\n", (cpu() - from) / n);
		} else if (sscanf(line, "elsewhere %llu", &a) == 1) {
			printf("%llu\n", (unsigned long long)elsewhere(a));
		} else if (sscanf(line, "free %llu", &a) == 1) {
			device_give(&device, (uint64_t)a);
			puts("ok");
		} else if (!strcmp(line, "clear\n")) {
			device_clear(&device);
			puts("ok");
		} else if (sscanf(line, "loop %ld %lf", &n, &rate) == 2) {
			printf("%f\n", loop(n, rate, round_trip));
		} else if (sscanf(line, "fail %ld %lf", &n, &rate) == 2) {
			printf("%f\n", loop(n, rate, fail_once));
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
		} else if (sscanf(line, "spawn %4095s", word) == 1) {
			// A child that becomes another program at once, has what descriptors
			// it inherited, and stays as long as its parent.
			pid_t child = fork();
			if (child == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				execlp(word, word, "infinity", (char *)NULL);
				_exit(127);
			}
			printf("%d\n", child);
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
