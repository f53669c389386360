/* What happens, one by one, for a recorder that asks for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "change.h"

/* The number of an event is written last: a reader that finds another one than
 * it expects has a record that is being changed, or a later one. */
void tell_recorder(struct state *s, struct ttmon_event e)
{
	if (e.time == 0)
		e.time = now();
	uint64_t n = s->ledger->event_count;
	struct ttmon_event *to = record(s, TTMON_EVENTS, (uint32_t)(n % s->ledger->section[TTMON_EVENTS].capacity));
	_Atomic uint64_t *number = (_Atomic uint64_t *)&to->number;
	atomic_store_explicit(number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	e.number = 0;
	*to = e;
	atomic_store_explicit(number, n + 1, memory_order_release);
	atomic_store_explicit((_Atomic uint64_t *)&s->ledger->event_count, n + 1, memory_order_release);
}
