/* libttmon in C++17: lists and tags that end with their scope, and the memory
 * of a device, of this process and of its chips in one call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_HPP
#define TTMON_HPP

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

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

/* How far a figure can be trusted. Missing: there is none. */
enum class Bound { exact, at_least, unsure, missing };

/* Bytes, and how sure that is. */
struct Figure {
	uint64_t bytes = 0;
	Bound bound = Bound::missing;
	explicit operator bool() const { return bound != Bound::missing; }
};

/* Asks about memory: of a device, for all processes (ttmond answers); of this
 * process, and of each pool of its chips (libttmon answers); of the host.
 * Nothing is kept: each call looks again. Those to ttmond take a millisecond or
 * two, and a second at most; the others microseconds. */
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

	/* A pool of a device, or of one of its chips, for all processes. */
	struct PoolStats {
		std::string pool; /* dram, l1, l1_small, trace, cb, kernel */
		std::string chip; /* all: the whole device; L, R of an n300 */
		uint64_t chip_id = 0;
		Figure used;
		std::optional<uint64_t> total, free, largest_free;
		std::optional<uint32_t> banks;
		ttmon_usage own{}; /* what this process has of it, where libttmon sees that */
	};
	struct SystemStats {
		std::string error; /* why nothing is known; empty: something is */
		int device = -1;   /* as in /dev/tenstorrent/N */
		Figure dram, l1, l1_small, trace, cb, kernel;
		std::optional<uint64_t> dram_total, l1_total;
	};
	struct DetailedStats {
		std::string error;
		int device = -1;
		std::vector<PoolStats> pools; /* of the device, then of each of its chips */
	};

	/* What all processes have allocated on a device. */
	static SystemStats get_system_stats(int device)
	{
		SystemStats s;
		s.device = device;
		std::vector<PoolStats> rows = ask(device, s.error);
		for (const PoolStats &p : rows) {
			if (p.chip != "all")
				continue;
			Figure *figure = p.pool == "dram" ? &s.dram : p.pool == "l1" ? &s.l1 : p.pool == "l1_small" ? &s.l1_small :
				p.pool == "trace" ? &s.trace : p.pool == "cb" ? &s.cb : p.pool == "kernel" ? &s.kernel : nullptr;
			if (figure)
				*figure = p.used;
			if (p.pool == "dram")
				s.dram_total = p.total;
			if (p.pool == "l1")
				s.l1_total = p.total;
		}
		return s;
	}

	/* The same pool by pool and chip by chip: with capacity, banks, what is free
	 * and the largest free block where they are known, and this process's part. */
	static DetailedStats get_detailed_stats(int device)
	{
		DetailedStats s;
		s.device = device;
		s.pools = ask(device, s.error);
		for (PoolStats &p : s.pools)
			for (Pool pool : {Pool::dram, Pool::l1, Pool::l1_small, Pool::trace})
				if (p.chip_id && p.pool == name(pool))
					ttmon_query(p.chip_id, static_cast<uint32_t>(pool), &p.own);
		return s;
	}

	/* This process on a chip, by the number that it has for it; on all of them. */
	static Process get_process_stats(int32_t logical) { return process(&logical); }
	static Process get_process_stats() { return process(nullptr); }
	/* The same for tt-metal's Device, or whatever else has an id(). */
	template <class Device, class = decltype(std::declval<const Device &>().id())> static Process get_process_stats(const Device *device)
	{
		return get_process_stats(static_cast<int32_t>(device->id()));
	}

	static Statistics statistics()
	{
		Statistics s;
		s.system = system();
		s.process = process(nullptr, &s.detail);
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
	static const char *name(Pool pool)
	{
		switch (pool) {
		case Pool::dram: return "dram";
		case Pool::l1: return "l1";
		case Pool::l1_small: return "l1_small";
		default: return "trace";
		}
	}

	/* Sums this process's pools, of one chip or of all; detail gets them one by one. */
	static Process process(const int32_t *only, std::vector<Detail> *detail = nullptr)
	{
		Process sum;
		sum.resident = resident();
		for (const auto &[id, logical] : chips()) {
			if (only && logical != *only)
				continue;
			for (Pool pool : {Pool::dram, Pool::l1, Pool::l1_small, Pool::trace}) {
				Detail d{id, logical, pool, {}};
				if (ttmon_query(id, static_cast<uint32_t>(pool), &d.usage) != 0 || d.usage.total_blocks == 0)
					continue;
				sum.device_bytes += d.usage.bytes;
				sum.device_peak_bytes += d.usage.peak_bytes;
				sum.blocks += d.usage.blocks;
				if (detail)
					detail->push_back(d);
			}
		}
		return sum;
	}

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

	/* Where a ttmond may listen, the best first. */
	static std::vector<std::string> sockets()
	{
		auto env = [](const char *key) { const char *value = std::getenv(key); return std::string(value ? value : ""); };
		if (std::string named = env("TTMON_SOCKET"); !named.empty())
			return {named};
		std::vector<std::string> list{"/run/ttmon/ttmond.sock"};
		if (std::string dir = env("XDG_RUNTIME_DIR"); !dir.empty())
			list.push_back(dir + "/ttmon/ttmond.sock");
		list.push_back("/run/user/" + std::to_string(geteuid()) + "/ttmon/ttmond.sock");
		if (std::string dir = env("XDG_STATE_HOME"); !dir.empty())
			list.push_back(dir + "/ttmon/ttmond.sock");
		else if (std::string home = env("HOME"); !home.empty())
			list.push_back(home + "/.local/state/ttmon/ttmond.sock");
		return list;
	}

	/* Sends a GET to the ttmond at a socket; false where it does not answer. */
	static bool get(const std::string &path, const std::string &target, std::string &answer)
	{
		sockaddr_un to{};
		to.sun_family = AF_UNIX;
		if (path.size() >= sizeof to.sun_path)
			return false;
		path.copy(to.sun_path, path.size());
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return false;
		timeval second{1, 0};
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
		std::string request = "GET " + target + " HTTP/1.0\r\nHost: ttmond\r\n\r\n";
		bool ok = connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0 &&
			send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
		answer.clear();
		char piece[4096];
		for (ssize_t n; ok && (n = recv(fd, piece, sizeof piece, 0)) != 0;) {
			if (n < 0 || answer.size() > (16u << 20)) {
				ok = false;
				break;
			}
			answer.append(piece, static_cast<size_t>(n));
		}
		close(fd);
		return ok && answer.rfind("HTTP/1.", 0) == 0;
	}

	/* Asks ttmond for the table of a device. */
	static std::vector<PoolStats> ask(int device, std::string &error)
	{
		std::string answer;
		for (const std::string &path : sockets()) {
			if (!get(path, "/v1/memory?device=" + std::to_string(device), answer))
				continue;
			size_t body = answer.find("\r\n\r\n");
			if (body == std::string::npos || answer.compare(9, 3, "200") != 0) {
				error = "ttmond: " + (body == std::string::npos ? std::string("no answer") : answer.substr(body + 4));
				return {};
			}
			return parse(answer.substr(body + 4));
		}
		error = "no ttmond responds: start it, as root for all users";
		return {};
	}

	static std::vector<std::string> split(const std::string &line)
	{
		std::vector<std::string> fields;
		std::stringstream in(line);
		for (std::string field; std::getline(in, field, ' ');)
			fields.push_back(field);
		return fields;
	}

	/* Reads the table by the names of its columns: a later ttmond may have more. */
	static std::vector<PoolStats> parse(const std::string &table)
	{
		std::vector<PoolStats> rows;
		std::stringstream in(table);
		std::string line;
		std::getline(in, line);
		const std::vector<std::string> head = split(line);
		while (std::getline(in, line)) {
			const std::vector<std::string> fields = split(line);
			auto text = [&](const char *column) -> std::string {
				for (size_t i = 0; i < head.size() && i < fields.size(); i++)
					if (head[i] == column)
						return fields[i];
				return "-";
			};
			auto number = [&](const char *column) -> std::optional<uint64_t> {
				const std::string value = text(column);
				if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos)
					return std::nullopt;
				return std::strtoull(value.c_str(), nullptr, 10);
			};
			PoolStats p;
			p.pool = text("pool");
			p.chip = text("chip");
			p.chip_id = number("chip_id").value_or(0);
			p.total = number("total_bytes");
			p.free = number("free_bytes");
			p.largest_free = number("largest_free_bytes");
			if (auto banks = number("banks"))
				p.banks = static_cast<uint32_t>(*banks);
			if (auto used = number("used_bytes")) {
				const std::string bound = text("bound");
				p.used = {*used, bound == "exact" ? Bound::exact : bound == "at_least" ? Bound::at_least : Bound::unsure};
			}
			rows.push_back(p);
		}
		return rows;
	}
};

} // namespace ttmon
#endif
