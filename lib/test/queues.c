/* Which work counts as waited for: workhost.c on a tt-metal of our own, whose
 * calls do what a case wants done while they run. Prints what is wrong. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "../src/workhost.c"

enum { QUEUE = 0x1000 };

static struct ttmon_ledger ledger;
static struct state the_state = {.ledger = &ledger};
static int64_t clock_now = 1;
static void (*during)(void); /* what happens while work is being enqueued */
static int failures;

int64_t exact_now(void) { return clock_now++; }

uint32_t name_number(struct state *s, struct work *w, const char *text, size_t n)
{
	(void)s, (void)w, (void)text, (void)n;
	return 0;
}

/* No chip reports: what is enqueued and waited for is counted all the same. */
struct work *work_of(struct state *s)
{
	(void)s;
	static struct work work;
	return &work;
}

static void metal_enqueue(uint64_t queue, uint64_t workload, uint64_t blocking)
{
	(void)queue, (void)workload, (void)blocking;
	if (during)
		during();
}

static void metal_finish(uint64_t queue, uint64_t ids, uint64_t n) { (void)queue, (void)ids, (void)n; }

void *metal_original(int symbol, void *caller, struct state **s)
{
	(void)caller;
	*s = &the_state;
	switch (symbol) {
	case SYM_enqueued: return (void *)metal_enqueue;
	case SYM_finish: return (void *)metal_finish;
	}
	abort();
}

static void expect(const char *when, bool settled)
{
	bool is = ledger.host.last_finish >= ledger.host.last_enqueue;
	if (is != settled) {
		printf("%s: settled is %d\n", when, is);
		failures++;
	}
}

static void finish(void) { METAL_finish(QUEUE, 0, 0); }
static void enqueue(void (*what)(void))
{
	during = what;
	METAL_enqueued(QUEUE, 0, 0);
	during = NULL;
}

static void *finish_thread(void *arg) { finish(); return arg; }
static void *enqueue_thread(void *arg) { enqueue(NULL); return arg; }

static void elsewhere(void *(*what)(void *))
{
	pthread_t t;
	if (pthread_create(&t, NULL, what, NULL) || pthread_join(t, NULL))
		abort();
}

static void finish_elsewhere(void) { elsewhere(finish_thread); }

static jmp_buf out;
static void throw_out(void) { longjmp(out, 1); } /* as an exception does */

int main(void)
{
	atomic_store(&the_state.stage, STAGE_READY);
	enqueue(NULL);
	expect("enqueued", false);
	finish();
	expect("finished", true);

	enqueue(finish_elsewhere);
	expect("another thread finished before tt-metal had the work", false);
	finish();
	expect("finished after the other thread", true);

	enqueue(finish);
	expect("a call that blocks", true);

	if (!setjmp(out))
		enqueue(throw_out);
	expect("an exception", false);
	finish();
	expect("finished after an exception", true);
	enqueue(NULL);
	finish();
	expect("work after an exception", true);

	if (!setjmp(out))
		enqueue(throw_out);
	atomic_store(&find_queue(QUEUE)->object, 0); /* the queue is gone, and another one is in its place */
	elsewhere(enqueue_thread);
	finish();
	expect("work of the next queue", true);
	during = finish_elsewhere;
	METAL_enqueued(QUEUE, 0, 0);
	expect("the exception of an old queue stands for no work of the next", false);
	if (ledger.host.enqueued == 0 || ledger.host.waits == 0) {
		printf("enqueued %d, waits %d\n", (int)ledger.host.enqueued, (int)ledger.host.waits);
		failures++;
	}
	return failures > 0;
}
