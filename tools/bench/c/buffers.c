// Takes a buffer of a tt-metal (lib/test/metal.c) and gives it back, ROUNDS
// times, and prints the ns of processor time that a round took.
//
//   buffers LIBRARY ROUNDS
//   buffers LIBRARY ROUNDS fail   asks for what does not fit, 10,000 times a
//                                 second, and holds a thousand buffers
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double wall(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// fail asks for too much at a pace, and tells what that took of the processor.
static double fail(uint64_t (*take)(void *, uint64_t), void *device, long rounds) {
	for (int i = 0; i < 1000; i++)
		take(device, 4096);
	double spent = 0, begin = wall();
	for (long i = 0; i < rounds; i++) {
		while (i % 50 == 0 && (wall() - begin) * 10000 < i)
			usleep(500);
		double from = now();
		if (take(device, (uint64_t)1 << 40))
			exit(1);
		spent += now() - from;
	}
	return spent / rounds;
}

int main(int argc, char **argv) {
	void *lib = argc >= 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!lib)
		return 1;
	void *(*open)(uint64_t) = (void *(*)(uint64_t))dlsym(lib, "metal_open");
	uint64_t (*take)(void *, uint64_t) = (uint64_t(*)(void *, uint64_t))dlsym(lib, "metal_take");
	void (*give)(void *, uint64_t) = (void (*)(void *, uint64_t))dlsym(lib, "metal_give");
	void *device = open(5);
	long rounds = atol(argv[2]);
	if (argc > 3) {
		printf("%.2f\n", fail(take, device, rounds));
		return 0;
	}
	for (int i = 0; i < 1000; i++)
		give(device, take(device, 4096));
	double from = now();
	for (long i = 0; i < rounds; i++)
		give(device, take(device, 4096));
	printf("%.2f\n", (now() - from) / rounds);
	return 0;
}
