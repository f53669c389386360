/* The same in C++: blocks and tags end with their scope.
 *
 *   c++ -std=c++17 -I../include monitor.cpp -L. -lttmon -o monitor
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <cstdio>

#include "ttmon.hpp"

int main()
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
	auto s = ttmon::SystemMemoryMonitor::statistics();
	for (const auto &d : s.detail)
		std::printf("chip %llu: %llu bytes now, %llu at most\n", (unsigned long long)d.chip, (unsigned long long)d.usage.bytes, (unsigned long long)d.usage.peak_bytes);
	std::printf("host: %s\n", s.system.total > s.process.resident && s.process.resident > 0 ? "known" : "not known");
	return 0;
}
