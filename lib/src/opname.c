/* Names of operations. Threads that enqueue programs and threads that receive
 * their records look them up at the same time, without a lock: a name is
 * written once and never changed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "work.h"

static uint64_t hash(const char *text, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15u | (uint64_t)1 << 63;
}

static bool is_name(struct state *s, uint32_t number, const char *text, size_t n)
{
	const struct ttmon_name *x = record(s, NAMES_SECTION, number);
	return atomic_load_explicit((const _Atomic uint32_t *)&x->length, memory_order_acquire) == n && memcmp(x->text, text, n) == 0;
}

/* Two threads that meet a name at once may both write it: readers add up what
 * has the same name. */
uint32_t name_number(struct state *s, struct work *w, const char *text, size_t n)
{
	if (!text || n == 0)
		return 0;
	n = n < sizeof((struct ttmon_name *)0)->text ? n : sizeof((struct ttmon_name *)0)->text;
	uint64_t h = hash(text, n);
	uint32_t at = (uint32_t)(h >> 20) % NAME_SLOTS;
	for (uint32_t tries = 0; tries < NAME_SLOTS; tries++, at = (at + 1) % NAME_SLOTS) {
		uint64_t have = atomic_load_explicit(&w->names[at], memory_order_acquire);
		if (have >> 16 == h >> 16 && is_name(s, have & 0xffff, text, n))
			return have & 0xffff;
		if (have)
			continue;
		struct ttmon_section *section = section_of(s, NAMES_SECTION);
		uint32_t number = atomic_fetch_add(&w->names_used, 1);
		if (number >= section->capacity) {
			atomic_store(&w->names_used, section->capacity);
			return 0;
		}
		struct ttmon_name *x = record(s, NAMES_SECTION, number);
		memcpy(x->text, text, n);
		atomic_store_explicit((_Atomic uint32_t *)&x->length, (uint32_t)n, memory_order_release);
		uint64_t none = 0;
		if (atomic_compare_exchange_strong(&w->names[at], &none, (h & ~(uint64_t)0xffff) | number))
			return number;
	}
	return 0;
}

static const char *find(const char *text, size_t n, const char *what, size_t m)
{
	for (size_t i = 0; i + m <= n; i++)
		if (memcmp(text + i, what, m) == 0)
			return text + i;
	return NULL;
}

/* ".../operations/eltwise/binary_ng/device/kernels/x.cpp" is eltwise/binary_ng.
 * Others are named by their file. */
const char *name_in_path(const char *path, size_t n, size_t *length)
{
	static const char mark[] = "/operations/", device[] = "/device/", kernels[] = "/kernels/";
	const char *from = find(path, n, mark, sizeof mark - 1);
	if (from) {
		from += sizeof mark - 1;
		size_t rest = n - (size_t)(from - path);
		const char *to = find(from, rest, device, sizeof device - 1);
		if (!to)
			to = find(from, rest, kernels, sizeof kernels - 1);
		if (to && to > from) {
			*length = (size_t)(to - from);
			return from;
		}
	}
	from = path + n;
	while (from > path && from[-1] != '/')
		from--;
	*length = (size_t)(path + n - from);
	return from;
}
