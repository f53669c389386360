/* What a process asks its chips to do, and what it waits for: tt-metal's command
 * queues. Threads change what is kept of them without a lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "metal.h"
#include "work.h"

/* Where the process keeps a ledger: of chips that report nothing, too, since then
 * this is all that is known of them. */
static struct work *counted(struct state *s)
{
	return s && atomic_load_explicit(&s->stage, memory_order_acquire) == STAGE_READY ? work_of(s) : NULL;
}

static struct ttmon_host *host_of(struct state *s) { return &s->ledger->host; }

/* ---- Queues ----------------------------------------------------------------- */

enum { QUEUES = 64 };
#define ID_UNKNOWN UINT32_MAX /* in the enum it would make QUEUES unsigned */

/* A command queue of a mesh of chips. Calls are counted when they begin and when
 * they return: between the two it is not known whether tt-metal has the work yet,
 * so a wait covers only calls that had returned. Where enqueued and finished
 * differ there may be work that no thread has waited for. The counts only grow:
 * the next queue in this place begins at first. */
struct queue {
	_Atomic uint64_t object; /* its address; 0: free */
	_Atomic uint32_t id;     /* of its device; ID_UNKNOWN: its making was not seen */
	_Atomic uint64_t first, enqueued, returned, finished;
};

static struct queue queues[QUEUES];
static _Atomic bool crowded; /* some found no place: nothing is ever known to have completed */
static _Atomic uint16_t made, loaded; /* the most sub-devices that a manager was made with, and that was loaded */

static struct queue *find_queue(uint64_t object)
{
	for (int i = 0; i < QUEUES; i++)
		if (atomic_load_explicit(&queues[i].object, memory_order_acquire) == object)
			return &queues[i];
	return NULL;
}

static struct queue *add_queue(uint64_t object, uint32_t id)
{
	for (int i = 0; i < QUEUES; i++) {
		struct queue *q = &queues[i];
		uint64_t none = 0;
		if (!atomic_compare_exchange_strong(&q->object, &none, object))
			continue;
		atomic_store(&q->id, id);
		uint64_t first = atomic_load(&q->enqueued);
		atomic_store(&q->first, first);
		atomic_store(&q->returned, first);
		atomic_store(&q->finished, first);
		return q;
	}
	atomic_store(&crowded, true);
	return NULL;
}

static bool all_finished(void)
{
	for (int i = 0; i < QUEUES; i++)
		if (atomic_load(&queues[i].object) && atomic_load(&queues[i].enqueued) != atomic_load(&queues[i].finished))
			return false;
	return !atomic_load(&crowded);
}

/* tt-metal profiles the programs of a device's first command queue only. Of
 * queues whose making was not seen one may be the first. */
static void note_queue(struct ttmon_host *h, const struct queue *q)
{
	uint16_t now = 1;
	uint32_t id = q ? atomic_load_explicit(&q->id, memory_order_relaxed) : 1;
	if (id == ID_UNKNOWN) {
		for (int i = 0; i < QUEUES; i++)
			if (&queues[i] != q && atomic_load(&queues[i].object))
				now = 2;
	} else if (id > 0) {
		now = 2;
	}
	if (atomic_load_explicit((_Atomic uint16_t *)&h->queues, memory_order_relaxed) < now)
		atomic_store_explicit((_Atomic uint16_t *)&h->queues, now, memory_order_release);
}

/* FDMeshCommandQueue(mesh, id, …) */
HOOK void METAL_queue_made(uint64_t object, uint64_t mesh, uint64_t id, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t), queue_made, );
	call(object, mesh, id, a, b, c, d, e);
	struct queue *old = find_queue(object); /* whose end was not seen */
	if (old)
		atomic_store(&old->object, 0);
	if (s)
		add_queue(object, (uint32_t)id);
}

HOOK void METAL_queue_gone(uint64_t object)
{
	CALL(void (*)(uint64_t), queue_gone, );
	struct queue *q = find_queue(object);
	call(object);
	if (q)
		atomic_store(&q->object, 0);
}

/* A record ends when the next program begins on any sub-device, so what runs on
 * two of them at once is reported as too short. */
HOOK uint64_t METAL_sub_devices_made(uint64_t tracker, uint64_t list, uint64_t n, uint64_t bytes)
{
	CALL(uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t), sub_devices_made, 0);
	int64_t since = now();
	self.dividing = n < 256 ? (uint32_t)n : 0;
	self.divided = 0;
	uint64_t id = call(tracker, list, n, bytes);
	if (s && self.divided && self.divided != self.dividing) /* those without worker cores have no allocator */
		sub_devices_unsure(s, since);
	self.dividing = self.sub_device = 0;
	if (n < 256 && n > atomic_load(&made))
		atomic_store(&made, (uint16_t)n);
	return id;
}

static void note_sub_devices(struct ttmon_host *h)
{
	uint16_t n = atomic_load_explicit(&loaded, memory_order_relaxed);
	if (n > 0)
		atomic_store_explicit((_Atomic uint16_t *)&h->sub_devices, n, memory_order_release);
}

HOOK void METAL_sub_devices_loaded(uint64_t tracker, uint64_t id)
{
	CALL(void (*)(uint64_t, uint64_t), sub_devices_loaded, );
	call(tracker, id);
	atomic_store(&loaded, atomic_load(&made));
	if (counted(s))
		note_sub_devices(host_of(s));
}

/* The call of this thread that enqueues: its queue, and the queue's count before
 * it. It stays here when an exception leaves the call. */
static _Thread_local struct queue *entered __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t entry __attribute__((tls_model("initial-exec")));

/* Whether this thread has begun a call on the queue that is not counted as
 * returned. */
static bool has_entered(struct queue *q) { return q && q == entered && entry >= atomic_load(&q->first); }

static void leave_queue(void)
{
	if (has_entered(entered))
		atomic_fetch_add(&entered->returned, 1);
	entered = NULL;
}

static void enter_queue(struct queue *q)
{
	leave_queue(); /* an exception left the last call */
	if (!q)
		return;
	entry = atomic_fetch_add(&q->enqueued, 1);
	entered = q;
}

/* What this thread's wait for a queue covers. A call that blocks waits before it
 * returns, for its own work too. What other threads enqueue meanwhile is not
 * waited for. */
static uint64_t waited_for(struct queue *q) { return q ? atomic_load(&q->returned) + has_entered(q) : 0; }

/* ---- What is waited for ----------------------------------------------------- */

/* The place of this thread among those that wait; 0: none. */
static _Thread_local uint32_t place __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t named __attribute__((tls_model("initial-exec")));

static void stop_waiting(struct state *s)
{
	if (place == 0)
		return;
	struct ttmon_wait *w = &host_of(s)->wait[place - 1];
	if (w->thread == (uint32_t)syscall(SYS_gettid))
		atomic_store_explicit((_Atomic int64_t *)&w->since, 0, memory_order_release);
	place = 0;
}

static void start_waiting(struct state *s, uint32_t kind)
{
	struct ttmon_host *h = host_of(s);
	stop_waiting(s); /* an exception left the last wait */
	atomic_fetch_add_explicit((_Atomic uint64_t *)&h->waits, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < sizeof h->wait / sizeof *h->wait; i++) {
		int64_t none = 0;
		/* Negative: being taken. */
		if (!atomic_compare_exchange_strong((_Atomic int64_t *)&h->wait[i].since, &none, -1))
			continue;
		h->wait[i].kind = kind;
		h->wait[i].thread = (uint32_t)syscall(SYS_gettid);
		atomic_store_explicit((_Atomic int64_t *)&h->wait[i].since, exact_now(), memory_order_release);
		place = i + 1;
		return;
	}
}

HOOK void METAL_finish(uint64_t queue, uint64_t ids, uint64_t n)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t), finish, );
	if (!counted(s)) {
		call(queue, ids, n);
		return;
	}
	struct ttmon_host *h = host_of(s);
	struct queue *q = find_queue(queue);
	uint64_t covered = waited_for(q);
	int64_t began = exact_now();
	start_waiting(s, TTMON_WAIT_FINISH);
	call(queue, ids, n);
	stop_waiting(s);
	bool all = n == 0 || atomic_load_explicit((_Atomic uint16_t *)&h->sub_devices, memory_order_relaxed) < 2;
	if (q && all)
		atomic_store(&q->finished, covered);
	if (all && all_finished())
		atomic_store_explicit((_Atomic int64_t *)&h->last_finish, began, memory_order_release);
}

HOOK void METAL_event_wait(uint64_t event)
{
	CALL(void (*)(uint64_t), event_wait, );
	if (!counted(s)) {
		call(event);
		return;
	}
	start_waiting(s, TTMON_WAIT_EVENT);
	call(event);
	stop_waiting(s);
}

/* ---- What is enqueued ------------------------------------------------------- */

/* Before the call: leave_queue follows it. */
static void count_enqueue(struct state *s, uint64_t *counter, uint64_t queue)
{
	struct ttmon_host *h = host_of(s);
	struct queue *q = find_queue(queue);
	if (!q)
		q = add_queue(queue, ID_UNKNOWN);
	note_queue(h, q);
	note_sub_devices(h);
	if (place)
		stop_waiting(s);
	enter_queue(q);
	atomic_fetch_add_explicit((_Atomic uint64_t *)counter, 1, memory_order_relaxed);
	atomic_store_explicit((_Atomic uint32_t *)&h->last_name, named, memory_order_relaxed);
	atomic_store_explicit((_Atomic int64_t *)&h->last_enqueue, exact_now(), memory_order_release);
	named = 0;
}

HOOK void METAL_enqueued(uint64_t queue, uint64_t workload, uint64_t blocking)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t), enqueued, );
	if (counted(s))
		count_enqueue(s, &host_of(s)->enqueued, queue);
	call(queue, workload, blocking);
	leave_queue();
}

HOOK void METAL_replayed(uint64_t queue, uint64_t trace, uint64_t blocking)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t), replayed, );
	if (counted(s))
		count_enqueue(s, &host_of(s)->replayed, queue);
	call(queue, trace, blocking);
	leave_queue();
}

/* Since 0.80: commands that were recorded before, as a trace is. */
HOOK void METAL_replayed_list(uint64_t queue, uint64_t workers, uint64_t ids, uint64_t buffer, uint64_t manager, uint64_t blocking)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t), replayed_list, );
	if (counted(s))
		count_enqueue(s, &host_of(s)->replayed, queue);
	call(queue, workers, ids, buffer, manager, blocking);
	leave_queue();
}

/* tt-metal's Inspector is told the name of each operation, and the id that its
 * program's records will have. */
HOOK void METAL_op_named(uint64_t workload, uint64_t id, uint64_t length, const char *text, uint64_t specs, uint64_t trace)
{
	CALL(void (*)(uint64_t, uint64_t, uint64_t, const char *, uint64_t, uint64_t), op_named, );
	struct work *w = counted(s);
	if (w) {
		named = name_number(s, w, text, length);
		atomic_store_explicit(&w->by_id[id & (IDS - 1)], (uint16_t)named, memory_order_relaxed);
	}
	call(workload, id, length, text, specs, trace);
}
