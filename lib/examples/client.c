/* A program that reports what it allocates over ttmond's allocation socket. Its argument
 * is the number of a device, which it has open, as a program on tt-metal has. It holds
 * its memory until its standard input ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "alloc_client.h"

int main(int argc, char **argv)
{
	int device = argc > 1 ? atoi(argv[1]) : 0;
	char node[64];
	snprintf(node, sizeof node, "/dev/tenstorrent/%d", device);
	int chip = open(node, O_RDWR | O_CLOEXEC);
	if (chip < 0) {
		perror(node);
		return 1;
	}
	int fd = alloc_connect();
	if (alloc_allocated(fd, 0, ALLOC_DRAM, 0x100000, 512 << 20) != 0)
		fprintf(stderr, "no ttmond listens: this memory is not seen\n");
	alloc_allocated(fd, 0, ALLOC_L1, 0x2000, 4 << 20);
	alloc_allocated(fd, 0, ALLOC_L1, 0x800000, 4 << 20);
	alloc_freed(fd, 0, 0x800000);
	printf("512 MiB of DRAM and 4 MiB of L1\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
