/* The same in C++: blocks and tags end with their scope. Then it asks about memory: its
 * own, and that of all processes on the device whose number is its argument.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <cstdio>
#include <cstdlib>

#include "ttmon.hpp"

using ttmon::Bound;
using Monitor = ttmon::SystemMemoryMonitor;

static const char *mark(const ttmon::Figure &f)
{
	return f.bound == Bound::exact ? "" : f.bound == Bound::at_least ? "at least " : f.bound == Bound::unsure ? "about " : "unknown: ";
}

int main(int argc, char **argv)
{
	ttmon_pool pool{};
	pool.chip = 4476187513037;
	pool.pool = static_cast<uint32_t>(ttmon::Pool::dram);
	pool.banks = 8;
	pool.capacity = 1 << 30;
	pool.alignment = 64;
	ttmon::List dram(pool);

	ttmon::Block weights(dram, 0, 64 << 20);
	{
		ttmon::Tag tag("scratch");
		ttmon::Block scratch(dram, 64 << 20, 1 << 20);
	}
	for (const auto &d : Monitor::statistics().detail)
		std::printf("chip %llu: %llu bytes now, %llu at most\n", (unsigned long long)d.chip, (unsigned long long)d.usage.bytes, (unsigned long long)d.usage.peak_bytes);
	auto own = Monitor::get_process_stats();
	std::printf("this process: %llu bytes in %llu blocks\n", (unsigned long long)own.device_bytes, (unsigned long long)own.blocks);

	if (argc < 2)
		return 0;
	int device = std::atoi(argv[1]);
	auto all = Monitor::get_system_stats(device);
	if (!all.error.empty()) {
		std::fprintf(stderr, "device %d: %s\n", device, all.error.c_str());
		return 1;
	}
	std::printf("device %d, all processes: DRAM %s%llu of %llu bytes\n", device, mark(all.dram), (unsigned long long)all.dram.bytes, (unsigned long long)all.dram_total.value_or(0));
	for (const auto &p : Monitor::get_detailed_stats(device).pools)
		if (p.used && p.used.bytes > 0 && p.chip != "all")
			std::printf("  chip %s, %s: %s%llu bytes\n", p.chip.c_str(), p.pool.c_str(), mark(p.used), (unsigned long long)p.used.bytes);
	return 0;
}
