/* Private tables: open addressing, linear probing, no tombstones. They live in
 * memory of their own, so that a hook never enters the program's malloc.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "state.h"

static uint64_t mix(uint64_t k)
{
	k ^= k >> 32;
	k *= 0x9e3779b97f4a7c15u;
	return k ^ k >> 29;
}

static size_t table_bytes(uint32_t capacity)
{
	return (size_t)capacity * (sizeof(uint64_t) + sizeof(uint32_t));
}

static uint32_t find(const struct table *t, uint64_t key)
{
	uint32_t mask = t->capacity - 1;
	uint32_t i = (uint32_t)mix(key) & mask;
	while (t->keys[i] != 0 && t->keys[i] != key)
		i = (i + 1) & mask;
	return i;
}

static bool grow(struct table *t)
{
	struct table bigger = {.capacity = t->capacity ? t->capacity * 2 : 256, .used = t->used};
	if (bigger.capacity == 0)
		return false;
	bigger.keys = memory(table_bytes(bigger.capacity));
	if (!bigger.keys)
		return false;
	bigger.values = (uint32_t *)(bigger.keys + bigger.capacity);
	for (uint32_t i = 0; i < t->capacity; i++) {
		if (t->keys[i] == 0)
			continue;
		uint32_t at = find(&bigger, t->keys[i]);
		bigger.keys[at] = t->keys[i];
		bigger.values[at] = t->values[i];
	}
	if (t->keys)
		munmap(t->keys, table_bytes(t->capacity));
	*t = bigger;
	return true;
}

bool table_put(struct table *t, uint64_t key, uint32_t value)
{
	if ((t->capacity == 0 || t->used + t->used / 2 >= t->capacity) && !grow(t) && t->used + 1 >= t->capacity)
		return false;
	uint32_t i = find(t, key);
	if (t->keys[i] == 0)
		t->used++;
	t->keys[i] = key;
	t->values[i] = value;
	return true;
}

uint32_t table_get(const struct table *t, uint64_t key)
{
	if (t->capacity == 0)
		return 0;
	uint32_t i = find(t, key);
	return t->keys[i] == key ? t->values[i] : 0;
}

void table_drop(struct table *t, uint64_t key)
{
	if (t->capacity == 0)
		return;
	uint32_t mask = t->capacity - 1;
	uint32_t hole = find(t, key);
	if (t->keys[hole] == 0)
		return;
	t->used--;
	for (uint32_t i = hole;;) {
		i = (i + 1) & mask;
		if (t->keys[i] == 0)
			break;
		/* What lies at its own place, or between that and the hole, stays. */
		uint32_t home = (uint32_t)mix(t->keys[i]) & mask;
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->keys[hole] = t->keys[i];
		t->values[hole] = t->values[i];
		hole = i;
	}
	t->keys[hole] = 0;
}
