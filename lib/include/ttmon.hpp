/* libttmon in C++17: lists and tags that end with their scope, and the memory
 * of the system, of this process and of its chips in one call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_HPP
#define TTMON_HPP

#include <cstdint>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ttmon.h"
#include "ttmon_ledger.h"

namespace ttmon {

enum class Pool : uint32_t { dram = TTMON_DRAM, l1 = TTMON_L1, l1_small = TTMON_L1_SMALL, trace = TTMON_TRACE };

/* What this thread allocates while a Tag lives belongs to it. */
class Tag {
public:
	explicit Tag(const std::string &name) { ttmon_tag_push(name.c_str()); }
	~Tag() { ttmon_tag_pop(); }
	Tag(const Tag &) = delete;
	Tag &operator=(const Tag &) = delete;
};

/* A pool of an allocator of one's own. What it still holds when it ends counts
 * as left behind. One that could not be made (no room, no permission) does
 * nothing: reporting must never stop a program. */
class List {
public:
	explicit List(const ttmon_pool &pool) : list_(ttmon_list(&pool)) {}
	~List() { ttmon_list_close(list_); }
	List(List &&other) noexcept : list_(std::exchange(other.list_, 0)) {}
	List &operator=(List &&other) noexcept
	{
		std::swap(list_, other.list_);
		return *this;
	}
	List(const List &) = delete;
	List &operator=(const List &) = delete;

	explicit operator bool() const { return list_ != 0; }
	bool allocated(uint64_t address, uint64_t bytes) { return ttmon_alloc(list_, address, bytes) == 0; }
	bool freed(uint64_t address) { return ttmon_free(list_, address) == 0; }

private:
	ttmon_list_t list_;
};

/* A block that is given back when it goes out of scope. */
class Block {
public:
	Block(List &list, uint64_t address, uint64_t bytes) : list_(&list), address_(address) { list.allocated(address, bytes); }
	~Block()
	{
		if (list_)
			list_->freed(address_);
	}
	Block(Block &&other) noexcept : list_(std::exchange(other.list_, nullptr)), address_(other.address_) {}
	Block(const Block &) = delete;
	Block &operator=(const Block &) = delete;

private:
	List *list_;
	uint64_t address_;
};

/* Asks libttmon, and the kernel, about memory: of the whole system, of this
 * process, and of each pool of each of its chips. Nothing is kept; each call
 * looks anew and takes microseconds. */
class SystemMemoryMonitor {
public:
	/* Host memory, in bytes, from /proc/meminfo. */
	struct System {
		uint64_t total = 0, available = 0;
	};
	/* This process: host memory, and device memory over all chips. */
	struct Process {
		uint64_t resident = 0, device_bytes = 0, device_peak_bytes = 0, blocks = 0;
	};
	struct Detail {
		uint64_t chip = 0; /* unique id */
		int32_t logical = 0;
		Pool pool = Pool::dram;
		ttmon_usage usage{};
	};
	struct Statistics {
		System system;
		Process process;
		std::vector<Detail> detail; /* pools in which something was allocated */
	};

	static Statistics statistics()
	{
		Statistics s;
		s.system = system();
		s.process.resident = resident();
		for (const auto &[id, logical] : chips()) {
			for (Pool pool : {Pool::dram, Pool::l1, Pool::l1_small, Pool::trace}) {
				Detail d{id, logical, pool, {}};
				if (ttmon_query(id, static_cast<uint32_t>(pool), &d.usage) != 0 || d.usage.total_blocks == 0)
					continue;
				s.process.device_bytes += d.usage.bytes;
				s.process.device_peak_bytes += d.usage.peak_bytes;
				s.process.blocks += d.usage.blocks;
				s.detail.push_back(d);
			}
		}
		return s;
	}

	static std::vector<std::pair<uint64_t, int32_t>> chips()
	{
		std::vector<uint64_t> ids(ttmon_chips(nullptr, nullptr, 0));
		std::vector<int32_t> logical(ids.size());
		size_t n = ttmon_chips(ids.data(), logical.data(), ids.size());
		std::vector<std::pair<uint64_t, int32_t>> out;
		for (size_t i = 0; i < n && i < ids.size(); i++)
			out.emplace_back(ids[i], logical[i]);
		return out;
	}

	static void reset_peak() { ttmon_reset_peak(); }

	/* Why there is no ledger; nothing while all is well. */
	static std::optional<std::string> error()
	{
		const char *e = ttmon_error();
		return e ? std::optional<std::string>(e) : std::nullopt;
	}

private:
	static System system()
	{
		System s;
		std::ifstream f("/proc/meminfo");
		std::string name, unit;
		for (uint64_t n; f >> name >> n; std::getline(f, unit)) {
			if (name == "MemTotal:")
				s.total = n * 1024;
			else if (name == "MemAvailable:")
				s.available = n * 1024;
		}
		return s;
	}

	static uint64_t resident()
	{
		std::ifstream f("/proc/self/status");
		for (std::string line; std::getline(f, line);)
			if (line.rfind("VmRSS:", 0) == 0)
				return std::stoull(line.substr(6)) * 1024;
		return 0;
	}
};

} // namespace ttmon
#endif
