/* client.c in C++: a buffer is reported while it lives. This is what the constructor and
 * the destructor of a fork's Buffer do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <cstdio>
#include <fcntl.h>
#include <iostream>
#include <string>

#include "alloc_client.h"

class Buffer {
public:
	Buffer(int device, int pool, uint64_t address, uint64_t size) : device_(device), address_(address)
	{
		alloc_allocated(server(), device, pool, address, size);
	}
	~Buffer() { alloc_freed(server(), device_, address_); }
	Buffer(const Buffer &) = delete;
	Buffer &operator=(const Buffer &) = delete;

private:
	static int server() /* connects once */
	{
		static const int fd = alloc_connect();
		return fd;
	}
	int device_;
	uint64_t address_;
};

int main(int argc, char **argv)
{
	const std::string node = "/dev/tenstorrent/" + std::string(argc > 1 ? argv[1] : "0");
	int chip = open(node.c_str(), O_RDWR | O_CLOEXEC);
	if (chip < 0) {
		std::perror(node.c_str());
		return 1;
	}
	Buffer weights(0, ALLOC_DRAM, 0x100000, 512 << 20);
	Buffer activations(0, ALLOC_L1, 0x2000, 4 << 20);
	{
		Buffer scratch(0, ALLOC_L1, 0x800000, 4 << 20);
	}
	std::cout << "512 MiB of DRAM and 4 MiB of L1" << std::endl;
	for (std::string line; std::getline(std::cin, line);)
		;
	return 0;
}
