// Watches tt-metal's allocator in the processes that use it, and reports what
// happens in it through a ring buffer. Nothing is decided here: the daemon
// keeps the books.
//
// Only entries of functions are probed. A return probe would put an address of
// the kernel's on the stack, through which neither other tools nor a C++
// exception can unwind.
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

// What the cookie of a probe says.
enum site {
	SITE_ALLOCATOR = 1, // AllocatorImpl's constructor
	SITE_ALLOCATOR_GONE,
	SITE_DRAM_MANAGER, // BankManager's constructor with a vector of banks
	SITE_L1_MANAGER, // and the one with a map of banks
	SITE_LIST, // FreeListOpt's constructor
	SITE_ASK, // BankManager::allocate_buffer
	SITE_TAKE, // FreeListOpt::allocate_in_block
	SITE_FREE, // FreeListOpt::deallocate
	SITE_CLEAR,
	SITE_SHRINK,
	SITE_RESET,
	SITE_PROVIDER, // SharedMemoryStatsProvider's constructor
	SITE_PROVIDER_GONE,
	SITE_RECORD, // SharedMemoryStatsProvider::record_allocation
	SITE_PROGRAM, // ProgramImpl::allocate_circular_buffers
	SITE_PROGRAM_GONE, // ProgramImpl::deallocate_circular_buffers
	SITE_CB_MARK, // ProgramImpl::CircularBufferAllocator::mark_address
	SITE_CB_TRACK, // GraphTracker::track_allocate_cb
};

// Events beyond the sites.
enum { EVENT_FOUND = 32, EVENT_BLOCK, EVENT_WHOLE, EVENT_EXEC = 64, EVENT_EXIT, EVENT_FORK };

// An event, in the byte order of the machine. Its kind is that of the site,
// and what the words mean depends on it: see decode.go.
struct event {
	u64 time; // ns after boot
	u32 pid; // in the daemon's namespace
	u8 kind;
	u8 odd; // what was read of the list cannot be true
	u16 lost; // of this process so far, the low bits
	u64 word[6];
};

// A process that has hit a probe. The daemon reads hits and lost, and writes
// ignored.
struct process {
	u64 start; // ns after boot
	u64 image; // the same, or when it became another program
	u64 hits; // but for those that teach which chips an allocator stands for
	u64 taught; // those
	u64 lost;
	u32 pid; // in the daemon's namespace; 0: not in it
	u32 ignored;
};

// What a thread is in the middle of.
struct thread {
	u64 allocator; // being made
	u64 banks; // of the manager being made
	u64 pool; // of it; see POOL_UNKNOWN
	u64 manager; // that is asked for a buffer
	u64 asked; // by that buffer
	u64 list; // that the last buffer was taken from
	u64 recorded; // bytes of that buffer, for record_allocation
	u64 program; // whose circular buffers are being laid out
	u64 laid; // how many of them were seen
};

#define POOL_UNKNOWN 255

// Where FreeListOpt and BankManager keep things, the same in all releases from
// 0.65 to 0.81.
enum {
	LIST_CAPACITY = 0x08,
	LIST_BASE = 0x10,
	LIST_SMALLEST = 0x18,
	LIST_ALIGNMENT = 0x20,
	LIST_ADDRESSES = 0x40, // vector of u64, by number of the block
	LIST_SIZES = 0x58, // vector of u64
	LIST_TAKEN = 0xa0, // vector of u8
	LIST_IN_USE = 0xb8, // vector of u8: 0 if the number stands for no block
	MANAGER_POOL = 0x00, // u32
	MANAGER_BANKS = 0x20,
};

// A list with more blocks than this is not copied when it is found in use: the
// thread that is in it waits meanwhile, some 0.2 us a block.
#define MAX_COPIED 16384

struct {
	MAP_INT(type, MAP_RINGBUF);
	MAP_INT(max_entries, 4 << 20);
} events SEC(".maps");

struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct process);
} processes SEC(".maps");

struct {
	MAP_INT(type, MAP_TASK_STORAGE);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct thread);
} threads SEC(".maps");

// The lists whose making was seen, or that were copied when they were found.
struct list_key {
	u64 image;
	u64 list;
};
struct {
	MAP_INT(type, MAP_LRU_HASH);
	MAP_INT(max_entries, 65536);
	MAP_TYPE(key, struct list_key);
	MAP_TYPE(value, u8);
} lists SEC(".maps");

// Events of processes that did not fit into the table.
struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} nameless SEC(".maps");

// Set by the daemon before loading.
const volatile u32 namespace; // inode of its pid namespace
const volatile u32 wake_bytes; // wake it when so much is waiting

// pid_in finds the pid that a task's process has in the daemon's namespace.
INLINE u32 pid_in(struct task_struct *task)
{
	struct task_struct *leader = 0;
	struct pid *pid = 0;
	u32 level = 0;
	READ(leader, task->group_leader);
	READ(pid, leader->thread_pid);
	READ(level, pid->level);
	for (u32 i = 0; i < 32; i++) { // MAX_PID_NS_LEVEL
		struct pid_namespace *ns = 0;
		u32 inum = 0;
		if (i > level)
			break;
		// The array is longer than its type says: step by hand.
		u64 in_level = (u64)__builtin_preserve_access_index(&pid->numbers) + i * sizeof(struct upid);
		struct upid at = {};
		read_kernel(&at, sizeof(at), (void *)in_level);
		ns = at.ns;
		READ(inum, ns->ns.inum);
		if (inum == namespace)
			return at.nr;
	}
	return 0;
}

INLINE struct process *known(u32 tgid)
{
	return map_lookup(&processes, &tgid);
}

// meet finds the process of a task, or adds it.
INLINE struct process *meet(u32 tgid, struct task_struct *task)
{
	struct process *p = known(tgid);
	if (p)
		return p;
	struct process new = {};
	struct task_struct *leader = 0;
	READ(leader, task->group_leader);
	READ(new.start, leader->start_boottime);
	new.image = new.start;
	new.pid = pid_in(task);
	map_update(&processes, &tgid, &new, NOEXIST);
	p = known(tgid);
	if (!p) {
		u32 zero = 0;
		u64 *count = map_lookup(&nameless, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
	return p;
}

INLINE void send(struct process *p, struct event *e, u8 kind)
{
	if (!p->pid || p->ignored)
		return;
	e->time = boot_ns();
	e->pid = p->pid;
	e->kind = kind;
	e->lost = p->lost;
	// The daemon looks from time to time; it is woken only when much waits.
	u64 flags = ring_query(&events, RING_AVAIL_DATA) >= wake_bytes ? RING_FORCE_WAKEUP : RING_NO_WAKEUP;
	if (ring_output(&events, e, sizeof(*e), flags))
		__sync_fetch_and_add(&p->lost, 1);
}

INLINE u64 user64(u64 address)
{
	u64 value = 0;
	read_user(&value, sizeof(value), (void *)address);
	return value;
}

struct copy {
	struct process *p;
	u64 list, addresses, sizes, taken, in_use;
	u64 found;
};

static long copy_block(u64 i, struct copy *c)
{
	struct event e = {};
	u8 taken = 0, in_use = 0;
	read_user(&taken, 1, (void *)(c->taken + i));
	read_user(&in_use, 1, (void *)(c->in_use + i));
	if (!taken || !in_use)
		return 0;
	e.word[0] = c->list;
	e.word[1] = user64(c->addresses + 8 * i);
	e.word[2] = user64(c->sizes + 8 * i);
	send(c->p, &e, EVENT_BLOCK);
	c->found++;
	return 0;
}

// find reports a list that was there before it was watched, with its blocks.
// The thread holds the allocator's lock, so that the list does not change.
INLINE void find(struct process *p, struct thread *t, u64 list)
{
	struct event e = {};
	u32 pool = POOL_UNKNOWN;
	struct copy c = {
		.p = p,
		.list = list,
		.addresses = user64(list + LIST_ADDRESSES),
		.sizes = user64(list + LIST_SIZES),
		.taken = user64(list + LIST_TAKEN),
		.in_use = user64(list + LIST_IN_USE),
	};
	u64 end = user64(list + LIST_ADDRESSES + 8), n = (end - c.addresses) / 8;
	if (t->manager)
		read_user(&pool, sizeof(pool), (void *)(t->manager + MANAGER_POOL));
	e.word[0] = list;
	e.word[1] = user64(list + LIST_CAPACITY);
	e.word[2] = user64(list + LIST_BASE);
	e.word[3] = user64(list + LIST_SMALLEST) << 32 | (user64(list + LIST_ALIGNMENT) & 0xffffffff);
	e.word[4] = t->manager;
	e.word[5] = user64(t->manager + MANAGER_BANKS) << 8 | (pool & 0xff);
	send(p, &e, EVENT_FOUND);
	if (n > MAX_COPIED)
		return;
	loop(n, copy_block, &c, 0);
	e.word[1] = c.found;
	send(p, &e, EVENT_WHOLE);
}

INLINE void meet_list(struct process *p, struct thread *t, u64 list)
{
	struct list_key key = {.image = p->image, .list = list};
	u8 one = 1;
	if (map_lookup(&lists, &key))
		return;
	map_update(&lists, &key, &one, 0);
	find(p, t, list);
}

INLINE void know_list(struct process *p, u64 list)
{
	struct list_key key = {.image = p->image, .list = list};
	u8 one = 1;
	map_update(&lists, &key, &one, 0);
}

// take reports a block at the moment it is cut out of a free one: the list's
// table of blocks says where that is. The daemon checks that the answer can be
// true, so that a release with another layout is noticed.
INLINE void take(struct pt_regs *ctx, struct event *e, struct thread *t)
{
	u64 list = ARG1(ctx), index = ARG2(ctx), size = ARG3(ctx), offset = ARG4(ctx);
	u64 addresses = user64(list + LIST_ADDRESSES), sizes = user64(list + LIST_SIZES);
	u64 whole = user64(sizes + 8 * index); // of the free block
	e->word[0] = list;
	e->word[1] = size;
	e->word[2] = user64(addresses + 8 * index) + offset;
	e->word[3] = whole;
	e->word[4] = user64(list + LIST_BASE);
	e->word[5] = t->asked;
	e->odd = offset + size > whole;
	t->recorded = t->asked;
	t->asked = 0;
	t->manager = 0;
	t->list = list;
}

// lay_out reports a circular buffer of the program that is being laid out.
INLINE void lay_out(struct event *e, struct thread *t, u64 address, u64 size)
{
	e->word[0] = t->program;
	e->word[1] = address;
	e->word[2] = size;
	e->word[3] = t->laid++;
}

SEC("uprobe.multi")
int hit(struct pt_regs *ctx)
{
	struct task_struct *task = this_task();
	struct process *p = meet(pid_tgid() >> 32, task);
	struct thread *t = task_storage(&threads, task, 0, STORAGE_CREATE);
	struct event e = {};
	u64 site = attach_cookie(ctx);

	if (!p || !t)
		return 0;
	__sync_fetch_and_add(site == SITE_RECORD ? &p->taught : &p->hits, 1);
	e.word[0] = ARG1(ctx);
	switch (site) {
	case SITE_ASK:
		t->manager = ARG1(ctx);
		t->asked = ARG2(ctx);
		t->list = 0;
		return 0;
	case SITE_TAKE:
		if (p->pid && !p->ignored)
			meet_list(p, t, ARG1(ctx));
		take(ctx, &e, t);
		break;
	case SITE_FREE:
	case SITE_SHRINK:
	case SITE_PROVIDER:
		e.word[1] = ARG2(ctx);
		e.word[2] = ARG3(ctx) & 0xffffffff;
		t->list = 0;
		break;
	case SITE_CLEAR:
	case SITE_RESET:
	case SITE_PROVIDER_GONE:
	case SITE_ALLOCATOR_GONE:
		break;
	case SITE_ALLOCATOR:
		t->allocator = ARG1(ctx);
		break;
	case SITE_DRAM_MANAGER:
	case SITE_L1_MANAGER: {
		u8 pool = POOL_UNKNOWN;
		read_user(&pool, sizeof(pool), (void *)ARG2(ctx));
		t->pool = pool;
		if (site == SITE_DRAM_MANAGER) // a vector of 8-byte offsets
			t->banks = (user64(ARG3(ctx) + 8) - user64(ARG3(ctx))) / 8;
		else // a hash map: the number of its elements
			t->banks = user64(ARG3(ctx) + 24);
		return 0;
	}
	case SITE_LIST:
		know_list(p, ARG1(ctx));
		e.word[1] = ARG2(ctx); // capacity
		e.word[2] = ARG3(ctx); // base
		e.word[3] = ARG4(ctx) << 32 | (ARG5(ctx) & 0xffffffff); // smallest, alignment
		e.word[4] = t->allocator;
		e.word[5] = t->banks << 8 | (t->pool & 0xff);
		break;
	case SITE_PROGRAM:
		t->program = ARG1(ctx);
		t->laid = 0;
		return 0;
	case SITE_PROGRAM_GONE:
		break;
	case SITE_CB_MARK: {
		u64 address = ARG2(ctx), size = ARG3(ctx); // in a core
		lay_out(&e, t, address, size);
		break;
	}
	case SITE_CB_TRACK: {
		u64 address = ARG3(ctx), size = ARG4(ctx), in_buffer = ARG5(ctx) & 0xff;
		if (in_buffer)
			return 0; // one that is known
		lay_out(&e, t, address, size);
		break;
	}
	case SITE_RECORD:
		// What it records is what the buffer asked for; what was seen has its
		// pages padded.
		if (!t->list || ARG3(ctx) > t->recorded)
			return 0; // not of an allocation that was seen
		e.word[1] = t->list;
		e.word[2] = user64(ARG1(ctx)); // the provider's chip
		break;
	default:
		return 0;
	}
	if (e.word[0])
		send(p, &e, site);
	return 0;
}

struct raw_args {
	u64 arg[3];
};

// A process has become another program: none of its allocators is left.
SEC("raw_tp/sched_process_exec")
int exec(struct raw_args *ctx)
{
	u32 tgid = pid_tgid() >> 32;
	struct process *p = known(tgid);
	struct event e = {};
	if (!p)
		return 0;
	p->image = boot_ns();
	send(p, &e, EVENT_EXEC);
	return 0;
}

// The last thread of a process ends.
SEC("raw_tp/sched_process_exit")
int gone(struct raw_args *ctx)
{
	u32 tgid = pid_tgid() >> 32;
	struct process *p = known(tgid);
	struct task_struct *task = (void *)ctx->arg[0];
	struct signal_struct *signal = 0;
	struct event e = {};
	int live = 0;
	if (!p)
		return 0;
	READ(signal, task->signal);
	READ(live, signal->live.counter);
	if (live)
		return 0;
	e.word[0] = p->start;
	send(p, &e, EVENT_EXIT);
	map_delete(&processes, &tgid);
	return 0;
}

// A process that was seen has made a child: it has the same library, and
// nothing of it was missed.
SEC("raw_tp/sched_process_fork")
int forked(struct raw_args *ctx)
{
	struct task_struct *child = (void *)ctx->arg[1];
	struct process *parent = known(pid_tgid() >> 32), *p;
	struct event e = {};
	u32 tgid = 0, pid = 0;
	if (!parent)
		return 0;
	READ(tgid, child->tgid);
	READ(pid, child->pid);
	if (tgid != pid)
		return 0; // a thread
	p = meet(tgid, child);
	if (!p)
		return 0;
	e.word[0] = parent->pid;
	e.word[1] = p->start;
	send(p, &e, EVENT_FORK);
	return 0;
}
