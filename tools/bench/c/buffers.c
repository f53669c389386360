// Takes a buffer of a tt-metal (lib/test/metal.c) and gives it back, ROUNDS
// times, and prints the ns of processor time that a round took.
//
//   buffers LIBRARY ROUNDS
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!lib)
		return 1;
	void *(*open)(uint64_t) = (void *(*)(uint64_t))dlsym(lib, "metal_open");
	uint64_t (*take)(void *, uint64_t) = (uint64_t(*)(void *, uint64_t))dlsym(lib, "metal_take");
	void (*give)(void *, uint64_t) = (void (*)(void *, uint64_t))dlsym(lib, "metal_give");
	void *device = open(5);
	long rounds = atol(argv[2]);
	for (int i = 0; i < 1000; i++)
		give(device, take(device, 4096));
	double from = now();
	for (long i = 0; i < rounds; i++)
		give(device, take(device, 4096));
	printf("%.2f\n", (now() - from) / rounds);
	return 0;
}
