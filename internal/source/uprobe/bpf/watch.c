// Watches tt-metal's allocator in the processes that use it, and reports what
// happens in it through a ring buffer. Nothing is decided here: the daemon
// keeps the books.
//
// Only entries of functions are probed. A return probe would put an address of
// the kernel's on the stack, through which neither other tools nor a C++
// exception can unwind.
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

// What an event is about: the site of a probe, which is its cookie, something that
// was found at one, or what became of a process. Go has these numbers, and all
// structures below, from here: see gen.go.
enum event_kind {
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
	SITE_BUFFER, // AllocatorImpl::allocate_buffer
	SITE_NO_ROOM, // FreeListOpt::get_statistics, for the message of a request that failed
	SITE_CLASH, // the exception about circular buffers that reach into a buffer
	SITE_BEYOND_L1, // the one about circular buffers that end behind L1; sent as SITE_CLASH
	SITE_WORK_ON, // NotifyProgramRealtimeProfilerActivated, with a context
	SITE_WORK_ON_OLD, // and without
	SITE_WORK_OFF, // NotifyProgramRealtimeProfilerDeactivated
	SITE_WORK_OFF_OLD,
	SITE_QUEUE, // FDMeshCommandQueue's constructor
	SITE_SUB_DEVICES, // SubDeviceManagerTracker::create_sub_device_manager
	SITE_SUB_DEVICES_LOADED, // SubDeviceManagerTracker::load_sub_device_manager
	SITE_PAGES, // RealtimeProfilerManager::publish_pages; see worked
	SITE_PAGES_CONST, // the same before 0.80
	SITE_PAGE, // InvokeProgramRealtimeProfilerCallbacks, before 0.76
	SITE_TRACE, // the exception about a trace that does not fit its region
	EVENT_FOUND = 48,
	EVENT_BLOCK,
	EVENT_WHOLE,
	EVENT_EXEC = 64,
	EVENT_EXIT,
	EVENT_FORK,
};

// An event, in the byte order of the machine. What its words are depends on its
// kind: one of the structures that follow.
struct event {
	u64 time; // ns after boot
	u32 pid; // in the daemon's namespace
	u8 kind;
	u8 odd; // what was read of the list cannot be true
	u16 lost; // of this process so far, the low bits
	u64 word[6];
};

// SITE_ALLOCATOR, SITE_ALLOCATOR_GONE, SITE_CLEAR, SITE_RESET, SITE_PROVIDER_GONE,
// SITE_PROGRAM_GONE: what it is about.
struct object_event {
	u64 object;
};

// SITE_LIST, and EVENT_FOUND for a list that was found in use.
struct list_event {
	u64 list, capacity, base;
	u32 alignment, smallest;
	u64 allocator; // of one that was found: the manager
	u32 pool, banks; // see POOL_UNKNOWN
};

// SITE_TAKE: a block is cut out of a free one.
struct take_event {
	u64 list, size;
	u64 at; // after base
	u64 from; // bytes of the free block
	u64 base;
	u64 asked; // by the buffer; 0: not known
};

// SITE_FREE: the block at an address; SITE_SHRINK: so many bytes.
struct change_event {
	u64 list, value;
	u64 low; // SITE_SHRINK: at the low end
};

// EVENT_BLOCK: a block of a list that was found.
struct block_event {
	u64 list, at, size;
};

// EVENT_WHOLE: these were all.
struct whole_event {
	u64 list, blocks;
};

// SITE_PROVIDER: a chip is opened.
struct provider_event {
	u64 provider, chip, logical;
	u64 allocator; // that its thread made last: the chip's own
};

// SITE_RECORD: a buffer of the list is on that chip.
struct record_event {
	u64 provider, list, chip;
};

// SITE_CB_MARK, SITE_CB_TRACK: a circular buffer is laid out in each core.
struct layout_event {
	u64 program, address, size;
	u64 before; // how many of the program's
};

// SITE_NO_ROOM: a list has no room.
struct no_room_event {
	u64 list;
	u64 padded; // bytes of the buffer with its pages padded
	u64 page; // of it, padded
	u64 asked; // by the buffer; 0: not known
	u32 shards; // banks that have a part of it; 0: interleaved
	u32 bottom_up;
	u64 stack; // tells the lines that asked from others; 0: not known
};

// SITE_CLASH: circular buffers of a program end above the lowest buffer, or behind L1.
struct clash_event {
	u64 program; // its number; 0: not known
	u64 lowest; // 0: they end behind L1
	u64 reach;
	char cores[16]; // "[0-0 - 11-9]", as far as it goes
	u64 stack; // as in no_room_event, and at the same place
};

// SITE_TRACE: traces need more than their region has, over all banks.
struct trace_event {
	u64 needed; // by all of them, with the one that is refused
	u64 region; // trace_region_size
	u64 unused[3];
	u64 stack; // as in no_room_event, and at the same place
};

// A line of Python that a thread is in.
struct frame {
	u32 line; // 0: not known
	u16 file_bytes, function_bytes;
	u8 file_wide, function_wide; // bytes a character; 0: ASCII
	u8 cut; // the file's name is longer: this is its end
	u8 unused;
	char file[180];
	char function[64];
};

#define MAX_FRAMES 24

// SITE_NO_ROOM, SITE_CLASH and SITE_TRACE with the lines that the thread is in, innermost
// first.
struct failed {
	struct event event;
	u64 frames;
	struct frame frame[MAX_FRAMES];
};

// Where CPython has things in a process, which differs between versions: offsets
// in its structures. The daemon says it.
struct python {
	u64 runtime; // address of _PyRuntime
	u16 interpreter, threads, next; // from there to the first thread's state, and on
	u16 self; // pthread_self of a thread
	u16 c_frame; // 0: there is none
	u16 current_frame, previous, code, instruction, owner;
	u16 file, function, lines, first_line, instructions;
	u8 newer; // 3.11 and later: frames and line tables of another kind
	u8 ascii, wide; // str: where its characters are
	u8 unused;
	u16 unused2;
};

// SITE_WORK_ON, SITE_WORK_OFF: the chip, by the process's own number; SITE_QUEUE:
// the number of the queue; SITE_SUB_DEVICES: how many.
struct work_event {
	u64 one;
	u64 value;
};

// EVENT_EXIT
struct exit_event {
	u64 start; // ns after boot
};

// EVENT_FORK
struct fork_event {
	u64 parent; // its pid in the daemon's namespace
	u64 start; // of the child, ns after boot
};

// What chips have reported: some pages of one chip follow, as tt-metal got them,
// then so many pointers to the sources of programs, of ids from that of the first
// page on.
enum batch_kind {
	BATCH_LOSSLESS = 1, // 0.80 and later: the chip waits rather than lose one
	BATCH_LOSSY,
	BATCH_RECORD, // one ProgramRealtimeRecord, before 0.76
	BATCH_NAME, // no page, but a text that was asked for
};
struct batch {
	u64 time; // ns after boot
	u64 ticks; // f64: of the chip's clock, a ns; BATCH_NAME: the pointer
	u64 lost; // pages of this process so far
	u32 pid; // in the daemon's namespace
	u32 tgid; // in the kernel's
	u32 chip; // by the process's own number
	u16 pages; // BATCH_NAME: bytes
	u16 room; // for so many: where the pointers are
	u8 kind;
	u8 unused[7];
};

// Where a process enqueues work and waits for it: the cookies of hosted. Those
// that leave a function have the number of its entry and HOST_LEAVE.
enum host_site {
	HOST_ENQUEUE = 128, // FDMeshCommandQueue::enqueue_mesh_workload
	HOST_REPLAY, // FDMeshCommandQueue::enqueue_trace
	HOST_REPLAY_LIST, // FDMeshCommandQueue::enqueue_command_list
	HOST_FINISH, // FDMeshCommandQueue::finish_nolock
	HOST_EVENT, // EventSynchronize
	HOST_QUEUE, // FDMeshCommandQueue's constructor
	HOST_QUEUE_GONE,
	HOST_LEAVE = 16, // the function returns
	HOST_THROW = 32, // an exception leaves it
};

// Every cookie says, too, which library the probe is in, and whether it is one of
// a single process.
enum cookie {
	COOKIE_LIBRARY = 48,
	COOKIE_SINGLE = 56,
};

// Which probes of a library count: those of all processes, or, by kind, those of
// single ones. While the daemon replaces the ones by the others both are set, so
// that no hit is missed, and none counts twice.
enum single {
	SINGLE_HIT = 1,
	SINGLE_WORKED = 2,
	SINGLE_HOSTED = 4,
};

// Types that nothing else refers to are not described.
const struct described {
	enum event_kind kind;
	enum host_site host_site;
	enum batch_kind batch_kind;
	struct event event;
	struct object_event object;
	struct list_event list;
	struct take_event take;
	struct change_event change;
	struct block_event block;
	struct whole_event whole;
	struct provider_event provider;
	struct record_event record;
	struct layout_event layout;
	struct no_room_event no_room;
	struct clash_event clash;
	struct trace_event trace;
	struct frame frame;
	struct failed failed;
	struct python python;
	struct work_event work;
	struct batch batch;
	struct exit_event exit;
	struct fork_event fork;
	enum cookie cookie;
	enum single single;
} *const described __attribute__((unused)) = 0;

// A process that has hit a probe. The daemon reads hits and lost, and writes
// ignored.
struct process {
	u64 start; // ns after boot
	u64 image; // the same, or when it became another program
	u64 hits; // but for those that teach which chips an allocator stands for
	u64 taught; // those
	u64 lost;
	u64 worked; // hits of worked
	u64 pages_lost;
	u32 pid; // in the daemon's namespace; 0: not in it
	u32 ignored;
	u32 uid; // when it was first seen
	u32 unused;
	u64 walked; // since when walks of its stacks are counted
	u64 walks;
	u64 stack; // that was sent last
};

// What a user has of what all share. Root has no such record.
struct user {
	u32 processes;
	u32 turn; // of the daemon, in which sent counts
	u32 sent;
	u32 work_turn; // the same for pages
	u32 pages;
};

// What a thread is in the middle of.
struct thread {
	u64 allocator; // being made
	u64 banks; // of the manager being made
	u64 pool; // of it; see POOL_UNKNOWN
	u64 manager; // that is asked for a buffer
	u64 size; // of the buffer that is about to be asked for
	u64 asked; // by the buffer; 0: not known
	u64 padded; // bytes of it with its pages padded
	u64 page; // one of them
	u64 shards; // the number, and above it whether there are any
	u64 bottom_up;
	u64 list; // that the last buffer was taken from
	u64 recorded; // padded bytes of that buffer, for record_allocation
	u64 program; // whose circular buffers are being laid out
	u64 laid; // how many of them were seen
	u64 entered; // host_site of the last call that it has enqueued with, if that may still run
	u64 stack; // where that call began
	u64 entered_queue; // the number of its queue, and 1
	u64 entry; // the queue's count of calls with it
	u64 wait; // the number of the place in which it waits, and 1
	u64 wait_queue; // the same of the queue that it waits for
	u64 wait_began;
	u64 covered; // calls on that queue which the wait is for
};

// What a process asks of its chips, and what its threads wait for. Its threads
// change it at the same time, without a lock.
#define HOST_QUEUES 8 // a power of two, as is
#define HOST_WAITS 16
struct host_queue {
	u64 object; // its address; 0: free
	// Calls that began, that have returned, and that a thread has waited for. They
	// only grow: the next queue in this place begins at first.
	u64 first, enqueued, returned, finished;
};
struct host_wait {
	u64 since; // ns after boot; 0: no thread waits here
	u32 thread;
	u32 kind; // HOST_FINISH, HOST_EVENT
};
struct host {
	u64 image; // of the process
	u32 pid; // in the daemon's namespace
	u32 unplaced; // queues whose making was not seen, or that found no place
	u64 hits;
	u64 enqueued, replayed;
	u64 last_enqueue; // ns after boot
	u64 last_finish; // all that was enqueued before has completed
	struct host_queue queue[HOST_QUEUES];
	struct host_wait wait[HOST_WAITS];
};

#define POOL_UNKNOWN 255

// Where a Buffer has its size differs between releases, so the cookie of
// SITE_BUFFER says it: the offset of a pointer to what has it (0: the Buffer
// itself), and the offset there.
enum {
	COOKIE_POINTER = 16,
	COOKIE_SIZE = 32,
};

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

// Users, and under EVERYBODY all of them but root.
#define EVERYBODY 0xffffffff
struct {
	MAP_INT(type, MAP_LRU_HASH);
	MAP_INT(max_entries, 4096);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct user);
} users SEC(".maps");

// The Pythons in processes, by pid in the daemon's namespace.
struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct python);
} pythons SEC(".maps");

// By tgid. None is there for a process that is not in the table of processes.
struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct host);
} hosts SEC(".maps");

// An empty one, which is too large for the stack.
struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct host);
} new_host SEC(".maps");

// What chips have reported.
struct {
	MAP_INT(type, MAP_RINGBUF);
	MAP_INT(max_entries, 4 << 20);
} work SEC(".maps");

// Names that the daemon asks for, by tgid: pointers to sources of programs.
#define MAX_WANTED 8
struct names {
	u64 pointer[MAX_WANTED];
};
struct {
	MAP_INT(type, MAP_LRU_HASH);
	MAP_INT(max_entries, 1024);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct names);
} wanted SEC(".maps");

// How often the daemon has emptied the rings: that of events, and that of pages.
struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(max_entries, 2);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} turn SEC(".maps");

// Events of processes that did not fit into the table.
struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} nameless SEC(".maps");

// By number of the library.
struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(max_entries, 256);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} singles SEC(".maps");

INLINE int counts(u64 cookie, u32 kind)
{
	u32 library = cookie >> COOKIE_LIBRARY & 0xff;
	u32 *kinds = map_lookup(&singles, &library);
	return kinds && !(*kinds & kind) == !(cookie >> COOKIE_SINGLE & 1);
}

// Set by the daemon before loading.
const volatile u32 namespace; // inode of its pid namespace
const volatile u32 wake_bytes; // wake it when so much is waiting
const volatile u32 user_processes; // that one user may have in the table, and
const volatile u32 all_processes; // all users but root
const volatile u32 user_events; // of one user from one emptying of the ring to the next
const volatile u32 all_bytes; // of the ring, for all users but root
const volatile u32 user_pages; // of one user from one emptying of the ring of pages to the next
const volatile u32 wake_work_bytes; // wake the daemon when so much of that ring is waiting
const volatile u32 all_work_bytes; // of that ring, for all users but root

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

INLINE struct user *user_of(u32 uid)
{
	struct user *u = map_lookup(&users, &uid);
	if (u)
		return u;
	struct user new = {};
	map_update(&users, &uid, &new, NOEXIST);
	return map_lookup(&users, &uid);
}

// admit takes a place in the table of processes for a user.
INLINE int admit(u32 uid)
{
	struct user *u, *all;
	if (!uid)
		return 1;
	u = user_of(uid);
	all = user_of(EVERYBODY);
	if (!u || !all || u->processes >= user_processes || all->processes >= all_processes)
		return 0;
	__sync_fetch_and_add(&u->processes, 1);
	__sync_fetch_and_add(&all->processes, 1);
	return 1;
}

INLINE void leave(u32 uid)
{
	u32 everybody = EVERYBODY;
	struct user *u = map_lookup(&users, &uid), *all = map_lookup(&users, &everybody);
	if (!uid)
		return;
	// A record may have been dropped, and begun again, meanwhile.
	if (u && u->processes)
		__sync_fetch_and_add(&u->processes, -1);
	if (all && all->processes)
		__sync_fetch_and_add(&all->processes, -1);
}

// meet finds the process of a task, or adds it. A user that has too many, or who
// finds the table full, has those beyond counted only.
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
	new.uid = uid_gid();
	if (admit(new.uid) && map_update(&processes, &tgid, &new, NOEXIST))
		leave(new.uid); // another thread was first, or the table is full
	p = known(tgid);
	if (!p) {
		u32 zero = 0;
		u64 *count = map_lookup(&nameless, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
	return p;
}

// crowded says that something that takes the place of so many events has to be
// dropped, so that others find room.
INLINE int crowded(struct process *p, u64 waiting, u32 size)
{
	u32 zero = 0, *now;
	struct user *u;
	if (!p->uid)
		return 0;
	u = map_lookup(&users, &p->uid);
	now = map_lookup(&turn, &zero);
	if (!u || !now)
		return waiting > all_bytes;
	if (u->turn != *now) {
		u->turn = *now;
		u->sent = 0;
	}
	u->sent += size;
	return waiting > all_bytes || u->sent > user_events;
}

INLINE void send(struct process *p, struct event *e, u8 kind)
{
	u64 waiting;
	if (!p->pid || p->ignored)
		return;
	e->time = boot_ns();
	e->pid = p->pid;
	e->kind = kind;
	e->lost = p->lost;
	// The daemon looks from time to time; it is woken only when much waits.
	waiting = ring_query(&events, RING_AVAIL_DATA);
	u64 flags = waiting >= wake_bytes ? RING_FORCE_WAKEUP : RING_NO_WAKEUP;
	if (crowded(p, waiting, 1) || ring_output(&events, e, sizeof(*e), flags))
		__sync_fetch_and_add(&p->lost, 1);
}

INLINE u64 user64(u64 address)
{
	u64 value = 0;
	read_user(&value, sizeof(value), (void *)address);
	return value;
}

// The search for a line in a table of CPython's.
struct lines {
	u64 table, bytes; // what is left of it
	s64 at; // offset of the instruction
	s64 end; // of those that were passed
	s64 line;
	u32 newer;
	u32 found;
};

// pass_lines passes an entry of a line table: the bytecode that it is about, and
// the distance in lines. From 3.11 on the first byte of an entry has its highest
// bit set, and no other has.
static long pass_lines(u64 i, struct lines *x)
{
	u8 b[32] = {};
	u32 n = sizeof(b), next = 2;
	s64 known = 1, delta = 0;
	if (x->bytes < n)
		n = x->bytes;
	if (n < 2 || read_user(b, n, (void *)x->table))
		return 1;
	if (!x->newer) {
		delta = (signed char)b[1];
		known = delta != -128;
		x->end += b[0];
	} else {
		u32 kind = b[0] >> 3 & 15, more = 1;
		u64 v = 0;
		known = kind != 15;
		x->end += ((b[0] & 7) + 1) * 2;
		// Without branches, of which the kernel would follow each: the first
		// number, as far as it goes, and where the next entry begins.
		for (u32 k = 0; k < 5; k++) {
			v |= (u64)((b[k + 1] & 63) * more) << 6 * k;
			more &= b[k + 1] >> 6;
		}
		if (kind == 13 || kind == 14)
			delta = (s64)(v >> 1) * (1 - 2 * (s64)(v & 1));
		else if (kind >= 10 && kind <= 12)
			delta = kind - 10;
		more = 1;
		next = 1;
		for (u32 k = 1; k < sizeof(b); k++) {
			more &= ~(b[k] >> 7) & 1;
			next += more;
		}
	}
	if (known)
		x->line += delta;
	if (x->end > x->at) {
		x->found = known;
		return 1;
	}
	if (next >= x->bytes)
		return 1;
	x->table += next;
	x->bytes -= next;
	return 0;
}

// An entry is about eight instructions at most; a function that has more entries
// is no function that somebody wrote.
#define MAX_ENTRIES 8192

// copy_text copies a str of Python: its end, where it does not fit.
INLINE u32 copy_text(struct python *at, u64 str, char *to, u32 room, u8 *wide, u8 *cut)
{
	u32 state = 0, bytes;
	u64 size = user64(str + 16), from = str + at->ascii;
	read_user(&state, sizeof(state), (void *)(str + 32));
	*wide = 0;
	if ((state >> 5 & 3) != 3) { // not both compact and ASCII
		*wide = state >> 2 & 7;
		size *= *wide;
		from = str + at->wide;
	}
	*cut = size > room;
	bytes = size > room ? room : size;
	if (bytes > room || read_user(to, bytes, (void *)(from + size - bytes)))
		return 0;
	return bytes;
}

// A walk through the frames of a thread.
struct walk {
	struct python *at;
	struct failed *to;
	u64 self; // pthread_self
	u64 state; // what Python has of the thread
	u64 frame; // the next one
	u64 number; // tells what was walked from other stacks
	u64 n; // frames that were copied; those of the interpreter's own are empty
};

static long pass_thread(u64 i, struct walk *w)
{
	if (!w->state || user64(w->state + w->at->self) == w->self)
		return 1;
	w->state = user64(w->state + w->at->next);
	return 0;
}

// find_frame finds the innermost frame of this thread; 0: there is none.
INLINE u64 find_frame(struct walk *w, struct task_struct *task)
{
	struct python *at = w->at;
	READ(w->self, SELF(task));
	w->state = user64(user64(at->runtime + at->interpreter) + at->threads);
	loop(256, pass_thread, w, 0);
	if (!w->state || user64(w->state + at->self) != w->self)
		return 0;
	if (at->c_frame)
		w->state = user64(w->state + at->c_frame);
	return user64(w->state + at->current_frame);
}

// copy_frame copies a frame of Python.
INLINE void copy_frame(struct python *at, struct frame *to, u64 frame, u64 code)
{
	struct lines x = {.newer = at->newer};
	int first = 0;
	u8 ignored;
	u64 table = user64(code + at->lines);
	read_user(&first, sizeof(first), (void *)(code + at->first_line));
	x.line = first;
	x.table = table + 32; // the characters of a bytes
	x.bytes = user64(table + 16);
	if (at->newer) {
		x.at = user64(frame + at->instruction) - (code + at->instructions);
	} else {
		int units = 0;
		read_user(&units, sizeof(units), (void *)(frame + at->instruction));
		x.at = (s64)units * 2;
	}
	loop(MAX_ENTRIES, pass_lines, &x, 0);
	to->line = x.found ? x.line : 0;
	to->file_bytes = copy_text(at, user64(code + at->file), to->file, sizeof(to->file), &to->file_wide, &to->cut);
	to->function_bytes = copy_text(at, user64(code + at->function), to->function, sizeof(to->function), &to->function_wide, &ignored);
}

// Frames of the interpreter's own, between Python and a C function that called
// Python again.
#define OWNED_BY_C 3

static long number_frame(u64 i, struct walk *w)
{
	if (!w->frame)
		return 1;
	w->number = (w->number ^ user64(w->frame + w->at->code)) * 1099511628211ULL;
	w->number = (w->number ^ user64(w->frame + w->at->instruction)) * 1099511628211ULL;
	w->frame = user64(w->frame + w->at->previous);
	return 0;
}

// The place of a frame is the number of the turn: of a count of ours the kernel
// would follow every value.
static long walk_frame(u64 i, struct walk *w)
{
	struct python *at = w->at;
	u64 frame = w->frame;
	u8 owner = 0;
	if (!frame || i >= MAX_FRAMES)
		return 1;
	struct frame *to = &w->to->frame[i];
	u64 code = user64(frame + at->code);
	if (at->newer)
		read_user(&owner, 1, (void *)(frame + at->owner));
	to->line = 0; // the ring's memory has what was sent before
	to->file_bytes = to->function_bytes = 0;
	to->file_wide = to->function_wide = to->cut = to->unused = 0;
	if (code && owner < OWNED_BY_C)
		copy_frame(at, to, frame, code);
	w->frame = user64(frame + at->previous);
	w->n = i + 1;
	return 0;
}

// A walk takes some 20 us, and its record the place of 80 events: lines that were
// sent last are not sent again, and of others so many in a while.
#define WALK_NS 100000000
#define WALKS 16

INLINE int may_walk(struct process *p, u64 now, u64 stack)
{
	if (now - p->walked > WALK_NS) {
		p->walked = now;
		p->walks = 0;
	} else if (p->stack == stack) {
		return 0;
	}
	return p->walks++ < WALKS;
}

// send_failure sends what failed with the lines of this thread, or with their
// number, where they were just sent. Where no Python is known it is 0.
INLINE void send_failure(struct process *p, struct task_struct *task, struct event *e, u8 kind)
{
	u64 now = boot_ns(), waiting, frame;
	u32 pid = p->pid;
	struct walk w = {.at = map_lookup(&pythons, &pid), .number = 14695981039346656037ULL};
	struct failed *record;
	if (!w.at || !p->pid || p->ignored || !(frame = find_frame(&w, task))) {
		send(p, e, kind);
		return;
	}
	w.frame = frame;
	loop(MAX_FRAMES, number_frame, &w, 0);
	((struct no_room_event *)e->word)->stack = w.number;
	waiting = ring_query(&events, RING_AVAIL_DATA);
	if (!may_walk(p, now, w.number) || crowded(p, waiting + sizeof(*record), sizeof(*record) / sizeof(*e)) ||
	    !(record = ring_reserve(&events, sizeof(*record), 0))) {
		send(p, e, kind);
		return;
	}
	p->stack = w.number;
	e->time = now;
	e->pid = p->pid;
	e->kind = kind;
	e->lost = p->lost;
	record->event = *e;
	w.to = record;
	w.frame = frame;
	loop(MAX_FRAMES, walk_frame, &w, 0);
	record->frames = w.n;
	ring_submit(record, RING_FORCE_WAKEUP);
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
	struct block_event *x = (void *)e.word;
	x->list = c->list;
	x->at = user64(c->addresses + 8 * i);
	x->size = user64(c->sizes + 8 * i);
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
	struct list_event *x = (void *)e.word;
	x->list = list;
	x->capacity = user64(list + LIST_CAPACITY);
	x->base = user64(list + LIST_BASE);
	x->smallest = user64(list + LIST_SMALLEST);
	x->alignment = user64(list + LIST_ALIGNMENT);
	x->allocator = t->manager;
	x->banks = user64(t->manager + MANAGER_BANKS);
	x->pool = pool;
	send(p, &e, EVENT_FOUND);
	if (n > MAX_COPIED)
		return;
	loop(n, copy_block, &c, 0);
	struct whole_event *all = (void *)e.word;
	all->blocks = c.found;
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
	struct take_event *x = (void *)e->word;
	x->list = list;
	x->size = size;
	x->at = user64(addresses + 8 * index) + offset;
	x->from = whole;
	x->base = user64(list + LIST_BASE);
	x->asked = t->asked;
	e->odd = offset + size > whole;
	t->recorded = t->padded;
	t->asked = 0;
	t->padded = 0;
	t->manager = 0;
	t->list = list;
}

// no_room reports a request that found no room: a manager was asked for a
// buffer, nothing was taken, and its list is asked how full it is. The daemon
// checks that there was none. It is false for those who only ask.
INLINE int no_room(struct pt_regs *ctx, struct event *e, struct thread *t)
{
	struct no_room_event *x = (void *)e->word;
	if (!t->manager || !t->padded)
		return 0;
	x->list = ARG2(ctx); // the first argument is where the answer goes
	x->padded = t->padded;
	x->page = t->page;
	x->asked = t->asked;
	x->shards = t->shards >> 32 & 0xff ? t->shards : 0;
	x->bottom_up = t->bottom_up;
	t->asked = 0;
	t->padded = 0;
	return 1;
}

INLINE void read_cores(struct clash_event *x, u64 text)
{
	u64 size = user64(text + 8);
	if (size < sizeof(x->cores))
		read_user(x->cores, size & 15, (void *)user64(text));
}

// clash reports circular buffers that reach into a buffer. The function that
// throws has references to what it prints behind its other arguments.
INLINE void clash(struct pt_regs *ctx, struct event *e)
{
	struct clash_event *x = (void *)e->word;
	x->program = user64(ARG7(ctx));
	x->lowest = user64(ARG9(ctx));
	x->reach = user64(ARG10(ctx));
	read_cores(x, ARG8(ctx));
}

// throws reports whether the function that throws was called with this message:
// others with values of the same types are thrown by the same function.
INLINE int throws(struct pt_regs *ctx, const char *message, const u32 length)
{
	u64 format = ARG5(ctx), bytes = ARG6(ctx);
	if (bytes != length)
		return 0;
#pragma unroll
	for (u32 i = 0; i < length / 8; i++) {
		u64 want;
		__builtin_memcpy(&want, &message[8 * i], 8);
		if (user64(format + 8 * i) != want)
			return 0;
	}
	return 1;
}

#define BEYOND_FORMAT "Statically allocated circular buffers on core range {} grow to {} B which is beyond max L1 size of {} B"

// beyond_l1 reports circular buffers that end behind L1.
INLINE int beyond_l1(struct pt_regs *ctx, struct event *e)
{
	struct clash_event *x = (void *)e->word;
	if (!throws(ctx, BEYOND_FORMAT, sizeof(BEYOND_FORMAT) - 1))
		return 0;
	x->program = 0;
	x->reach = user64(ARG8(ctx));
	read_cores(x, ARG7(ctx));
	return 1;
}

#define TRACE_FORMAT "Creating trace buffers of size {}B on MeshDevice {}, but only {}B is allocated for trace region."

// trace reports a trace that does not fit its region.
INLINE int trace(struct pt_regs *ctx, struct event *e)
{
	struct trace_event *x = (void *)e->word;
	u32 needed = 0;
	if (!throws(ctx, TRACE_FORMAT, sizeof(TRACE_FORMAT) - 1))
		return 0;
	if (read_user(&needed, sizeof(needed), (void *)ARG7(ctx)))
		return 0;
	x->needed = needed;
	x->region = user64(ARG9(ctx));
	return 1;
}

// lay_out reports a circular buffer of the program that is being laid out.
INLINE void lay_out(struct event *e, struct thread *t, u64 address, u64 size)
{
	struct layout_event *x = (void *)e->word;
	x->program = t->program;
	x->address = address;
	x->size = size;
	x->before = t->laid++;
}

INLINE void about_work(struct event *e, u64 value)
{
	struct work_event *x = (void *)e->word;
	x->one = 1;
	x->value = value & 0xffffffff;
}

// ---- What the host enqueues and waits for ----
//
// These probes are on the program's own path, and off unless asked for. They send
// nothing: what they count cannot be lost. The end of a wait is seen by a probe at
// the instructions with which the function ends. One that ended unseen would be
// taken for one that lasts, so everything else that its thread does ends it, too.
// The end of a call that enqueues is not watched, since that would cost several
// times as much as its beginning: it has returned when its thread does something
// else, and only its own thread's waits are known to be for it before.

INLINE u32 thread_id(void)
{
	return (u32)pid_tgid();
}

INLINE struct host *host_of(u32 tgid, struct process *p)
{
	struct host *h = map_lookup(&hosts, &tgid);
	if (h && h->image == p->image)
		return h;
	if (!p->pid || p->ignored)
		return 0;
	u32 zero = 0;
	struct host *new = map_lookup(&new_host, &zero);
	if (!new || map_update(&hosts, &tgid, new, 0))
		return 0;
	h = map_lookup(&hosts, &tgid);
	if (h) {
		h->image = p->image;
		h->pid = p->pid;
	}
	return h;
}

INLINE struct host_queue *queue_at(struct host *h, u64 number)
{
	u64 i = (number - 1) & (HOST_QUEUES - 1);
	KEEP(i);
	return number ? &h->queue[i & (HOST_QUEUES - 1)] : 0;
}

// find_queue is the number of a queue, and 1; 0: it has none.
INLINE u64 find_queue(struct host *h, u64 object)
{
	for (u32 i = 0; i < HOST_QUEUES; i++)
		if (h->queue[i].object == object)
			return i + 1;
	return 0;
}

INLINE void make_queue(struct host *h, u64 object)
{
	u64 number = find_queue(h, object); // whose end was not seen
	struct host_queue *q;
	if (!number)
		number = find_queue(h, 0);
	q = queue_at(h, number);
	if (!q) {
		h->unplaced++;
		return;
	}
	q->first = q->returned = q->finished = q->enqueued;
	q->object = object;
}

INLINE void drop_queue(struct host *h, u64 object)
{
	struct host_queue *q = queue_at(h, find_queue(h, object));
	if (!q)
		return;
	q->first = q->returned = q->finished = q->enqueued;
	q->object = 0;
}

// stop_waiting ends the wait of a thread. It clears no place that another thread
// has taken meanwhile.
INLINE void stop_waiting(struct host *h, struct thread *t)
{
	u64 number = t->wait, i = (number - 1) & (HOST_WAITS - 1);
	KEEP(i);
	struct host_wait *w = &h->wait[i & (HOST_WAITS - 1)];
	t->wait = 0;
	if (number && w->thread == thread_id())
		w->since = 0;
}

INLINE void start_waiting(struct host *h, struct thread *t, u32 kind, u64 now)
{
	stop_waiting(h, t);
	for (u32 i = 0; i < HOST_WAITS; i++) {
		struct host_wait *w = &h->wait[i];
		if (w->since)
			continue;
		w->since = now; // before thread: two that take the same place leave one wait
		w->kind = kind;
		w->thread = thread_id();
		t->wait = i + 1;
		return;
	}
}

// leave_queue notes that the last call with which a thread has enqueued has
// returned: it does something else.
INLINE void leave_queue(struct host *h, struct thread *t)
{
	struct host_queue *q = queue_at(h, t->entered_queue);
	if (t->entered && q && t->entry > q->first)
		__sync_fetch_and_add(&q->returned, 1);
	t->entered = 0;
	t->entered_queue = 0;
}

INLINE void enqueue(struct host *h, struct thread *t, u64 site, u64 object, u64 stack)
{
	// A trace is replayed by a list of commands since 0.80: one call inside of the other.
	u64 inside = t->entered == HOST_REPLAY && site == HOST_REPLAY_LIST && t->stack - stack < 4096;
	struct host_queue *q;
	leave_queue(h, t);
	t->entered = site;
	t->stack = stack;
	t->entered_queue = find_queue(h, object);
	q = queue_at(h, t->entered_queue);
	if (q) {
		__sync_fetch_and_add(&q->enqueued, 1);
		t->entry = q->enqueued;
	} else {
		h->unplaced++;
	}
	if (!inside)
		__sync_fetch_and_add(site == HOST_ENQUEUE ? &h->enqueued : &h->replayed, 1);
	h->last_enqueue = boot_ns();
}

// finish begins a wait for all calls on a queue that have returned, and for the
// last one of this thread, which has, or is what waits. Without sub-devices named
// it is for all of them.
INLINE void finish(struct host *h, struct thread *t, u64 object, u64 sub_devices)
{
	u64 now = boot_ns();
	struct host_queue *q;
	start_waiting(h, t, HOST_FINISH, now);
	t->wait_began = now;
	t->wait_queue = sub_devices ? 0 : find_queue(h, object);
	q = queue_at(h, t->wait_queue);
	t->covered = q ? q->returned + (t->entered && t->entered_queue == t->wait_queue && t->entry > q->first) : 0;
}

INLINE void finished(struct host *h, struct thread *t)
{
	struct host_queue *q = queue_at(h, t->wait_queue);
	if (!q || !t->wait_began)
		return;
	if (q->finished < t->covered)
		q->finished = t->covered;
	for (u32 i = 0; i < HOST_QUEUES; i++)
		if (h->queue[i].object && h->queue[i].enqueued != h->queue[i].finished)
			return;
	if (!h->unplaced && h->last_finish < t->wait_began)
		h->last_finish = t->wait_began;
}

// other_call notes that a thread does something else than to wait.
INLINE void other_call(u32 tgid, struct thread *t)
{
	struct host *h;
	if (!t->wait)
		return;
	h = map_lookup(&hosts, &tgid);
	if (h)
		stop_waiting(h, t);
	t->wait = 0;
}

SEC("uprobe.multi")
int on_hosted(struct pt_regs *ctx)
{
	if (!counts(attach_cookie(ctx), SINGLE_HOSTED))
		return 0;
	u32 tgid = pid_tgid() >> 32;
	struct task_struct *task = this_task();
	struct process *p = meet(tgid, task);
	struct thread *t = task_storage(&threads, task, 0, STORAGE_CREATE);
	u64 site = attach_cookie(ctx) & 0xff, object = ARG1(ctx), value = ARG3(ctx), stack = ctx->sp;
	KEEP(value);
	if (!p || !t)
		return 0;
	struct host *h = host_of(tgid, p);
	if (!h)
		return 0;
	__sync_fetch_and_add(&h->hits, 1);
	switch (site) {
	case HOST_ENQUEUE:
	case HOST_REPLAY:
	case HOST_REPLAY_LIST:
		stop_waiting(h, t);
		enqueue(h, t, site, object, stack);
		break;
	case HOST_FINISH:
		finish(h, t, object, value);
		break;
	case HOST_FINISH | HOST_LEAVE:
		finished(h, t);
		t->wait_began = 0;
		stop_waiting(h, t);
		break;
	case HOST_EVENT:
		start_waiting(h, t, HOST_EVENT, boot_ns());
		break;
	case HOST_FINISH | HOST_THROW:
	case HOST_EVENT | HOST_LEAVE:
	case HOST_EVENT | HOST_THROW:
		t->wait_began = 0;
		stop_waiting(h, t);
		break;
	case HOST_QUEUE:
		make_queue(h, object);
		break;
	case HOST_QUEUE_GONE:
		drop_queue(h, object);
		break;
	}
	return 0;
}

SEC("uprobe.multi")
int on_hit(struct pt_regs *ctx)
{
	if (!counts(attach_cookie(ctx), SINGLE_HIT))
		return 0;
	struct task_struct *task = this_task();
	struct process *p = meet(pid_tgid() >> 32, task);
	struct thread *t = task_storage(&threads, task, 0, STORAGE_CREATE);
	struct event e = {};
	u64 cookie = attach_cookie(ctx), site = cookie & 0xff, failure = 0;

	if (!p || !t)
		return 0;
	other_call(pid_tgid() >> 32, t);
	__sync_fetch_and_add(site == SITE_RECORD ? &p->taught : &p->hits, 1);
	((struct object_event *)e.word)->object = ARG1(ctx); // all of them begin with what they are about
	switch (site) {
	case SITE_BUFFER: {
		u64 object = ARG2(ctx), pointer = cookie >> COOKIE_POINTER & 0xffff;
		if (pointer)
			object = user64(object + pointer);
		t->size = user64(object + (cookie >> COOKIE_SIZE & 0xffff));
		return 0;
	}
	case SITE_ASK:
		// With its pages padded a buffer is no smaller: a release that keeps
		// its size elsewhere is noticed.
		t->manager = ARG1(ctx);
		t->padded = ARG2(ctx);
		t->page = ARG3(ctx);
		t->bottom_up = ARG4(ctx) & 0xff;
		t->shards = ARG6(ctx); // std::optional<uint32_t>
		t->asked = t->size <= t->padded ? t->size : 0;
		t->size = 0;
		t->list = 0;
		return 0;
	case SITE_TAKE:
		if (p->pid && !p->ignored)
			meet_list(p, t, ARG1(ctx));
		take(ctx, &e, t);
		break;
	case SITE_NO_ROOM:
		if (!no_room(ctx, &e, t))
			return 0;
		if (p->pid && !p->ignored)
			meet_list(p, t, e.word[0]);
		t->manager = 0;
		failure = 1;
		break;
	case SITE_CLASH:
		clash(ctx, &e);
		failure = 1;
		break;
	case SITE_BEYOND_L1:
		if (!beyond_l1(ctx, &e))
			return 0;
		site = SITE_CLASH;
		failure = 1;
		break;
	case SITE_TRACE:
		if (!trace(ctx, &e))
			return 0;
		failure = 1;
		break;
	case SITE_FREE:
	case SITE_SHRINK: {
		struct change_event *x = (void *)e.word;
		x->value = ARG2(ctx);
		x->low = ARG3(ctx) & 0xff;
		t->list = 0;
		break;
	}
	case SITE_PROVIDER: {
		struct provider_event *x = (void *)e.word;
		x->chip = ARG2(ctx);
		x->logical = ARG3(ctx) & 0xffffffff;
		x->allocator = t->allocator;
		t->list = 0;
		break;
	}
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
	case SITE_LIST: {
		struct list_event *x = (void *)e.word;
		know_list(p, ARG1(ctx));
		x->capacity = ARG2(ctx);
		x->base = ARG3(ctx);
		x->smallest = ARG4(ctx);
		x->alignment = ARG5(ctx);
		x->allocator = t->allocator;
		x->banks = t->banks;
		x->pool = t->pool;
		break;
	}
	case SITE_WORK_ON:
	case SITE_WORK_OFF: {
		u64 chip = ARG2(ctx);
		KEEP(chip);
		about_work(&e, chip);
		break;
	}
	case SITE_WORK_ON_OLD:
	case SITE_WORK_OFF_OLD: {
		u64 chip = ARG1(ctx);
		KEEP(chip);
		about_work(&e, chip);
		break;
	}
	case SITE_QUEUE:
	case SITE_SUB_DEVICES: { // a span: where, and how many
		u64 n = ARG3(ctx);
		KEEP(n);
		about_work(&e, n);
		break;
	}
	case SITE_SUB_DEVICES_LOADED:
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
	case SITE_RECORD: {
		struct record_event *x = (void *)e.word;
		// What it records is what the buffer asked for; what was seen has its
		// pages padded.
		if (!t->list || ARG3(ctx) > t->recorded)
			return 0; // not of an allocation that was seen
		x->list = t->list;
		x->chip = user64(ARG1(ctx));
		break;
	}
	default:
		return 0;
	}
	if (failure)
		send_failure(p, task, &e, site);
	else if (e.word[0])
		send(p, &e, site);
	return 0;
}

// ---- What chips report ----
//
// tt-metal's receiver thread hands the pages that a chip has sent to
// publish_pages. From 0.80 on the chip waits for that thread, so it shall not
// wait for us: pages are copied in bulk, the daemon is woken only when many wait,
// and what finds no room is counted.

#define PAGE_BYTES 64
#define MAX_PIECES 8 // of a hit: 4,096 pages; tt-metal takes 1,024 at most

// The cookie of worked has where a DeviceState has its clock, and where a
// DataCollector has its table of sources.
enum {
	COOKIE_TICKS = 16,
	COOKIE_TABLE = 32,
};

enum {
	MANAGER_COLLECTOR = 0x10,
	DEVICE_CHIP = 0x08,
};

struct pieces {
	struct process *p;
	u64 from; // pages that are left
	u32 left;
	u64 table; // of pointers to sources; 0: not known
	u64 wake; // flags with which pages are sent
	struct batch head;
};

// full says that pages have to be dropped, so that others find room.
INLINE int full(struct process *p, u32 pages)
{
	u32 one = 1, *now;
	struct user *u;
	if (!p->uid)
		return 0;
	u = map_lookup(&users, &p->uid);
	now = map_lookup(&turn, &one);
	if (!u || !now)
		return ring_query(&work, RING_AVAIL_DATA) > all_work_bytes;
	if (u->work_turn != *now) {
		u->work_turn = *now;
		u->pages = 0;
	}
	u->pages += pages;
	return u->pages > user_pages || ring_query(&work, RING_AVAIL_DATA) > all_work_bytes;
}

// put sends up to room pages. It is false where there is no room.
INLINE int put(struct pieces *c, const u32 room)
{
	u32 n = c->left < room ? c->left : room, first = 0;
	u64 bytes = (u64)n * PAGE_BYTES;
	struct batch *b;
	if (full(c->p, n))
		return 0;
	b = ring_reserve(&work, sizeof(*b) + room * (PAGE_BYTES + 8), 0);
	if (!b)
		return 0;
	*b = c->head;
	b->pages = n;
	b->room = room;
	u8 *pages = (u8 *)(b + 1);
	if (bytes > room * PAGE_BYTES)
		bytes = room * PAGE_BYTES;
	if (read_user(pages, bytes, (void *)c->from)) {
		ring_discard(b, RING_NO_WAKEUP);
		return 0;
	}
	first = *(u32 *)(pages + 8) & 0xffff;
	// Ids follow each other: the pointers of all of them are one piece of the table.
	if (!c->table || read_user(pages + room * PAGE_BYTES, room * 8, (void *)(c->table + 8 * (u64)first)))
		b->room = 0; // no pointers
	ring_submit(b, c->wake);
	c->left -= n;
	c->from += bytes;
	return 1;
}

static long put_piece(u64 i, struct pieces *c)
{
	int ok;
	if (c->left > 128)
		ok = put(c, 512);
	else if (c->left > 16)
		ok = put(c, 128);
	else if (c->left > 2)
		ok = put(c, 16);
	else if (c->left > 0)
		ok = put(c, 2);
	else
		ok = 0;
	return !ok;
}

// put_name sends the name that a pointer leads to: to a vector of strings or of
// string views, or to a string view.
INLINE void put_name(struct pieces *c, u64 pointer)
{
	u64 a = user64(pointer), n = user64(pointer + 8), text = n;
	struct batch *b;
	if (a >= 4096) { // a vector
		text = user64(a);
		n = user64(a + 8);
		if (text < 4096) { // of views: a length, then the text
			u64 length = text;
			text = n;
			n = length;
		}
	} else {
		n = a;
	}
	if (n == 0 || n >= 512 || full(c->p, 8))
		return;
	b = ring_reserve(&work, sizeof(*b) + 512, 0);
	if (!b)
		return;
	*b = c->head;
	b->kind = BATCH_NAME;
	b->ticks = pointer;
	b->pages = n;
	if (read_user(b + 1, n & 511, (void *)text))
		ring_discard(b, RING_NO_WAKEUP);
	else
		ring_submit(b, RING_NO_WAKEUP);
}

INLINE void put_names(struct pieces *c, u32 tgid)
{
	struct names *w = map_lookup(&wanted, &tgid);
	if (!w)
		return;
	for (u32 i = 0; i < MAX_WANTED; i++)
		if (w->pointer[i])
			put_name(c, w->pointer[i]);
	map_delete(&wanted, &tgid);
}

SEC("uprobe.multi")
int on_worked(struct pt_regs *ctx)
{
	if (!counts(attach_cookie(ctx), SINGLE_WORKED))
		return 0;
	u32 tgid = pid_tgid() >> 32;
	struct process *p = meet(tgid, this_task());
	u64 cookie = attach_cookie(ctx);
	if (!p)
		return 0;
	__sync_fetch_and_add(&p->worked, 1);
	if (!p->pid || p->ignored)
		return 0;
	struct pieces c = {
		.p = p,
		.head = {.time = boot_ns(), .lost = p->pages_lost, .pid = p->pid, .tgid = tgid},
	};
	if ((cookie & 0xff) == SITE_PAGE) {
		c.head.kind = BATCH_RECORD;
		c.from = ARG1(ctx);
		c.left = 1;
	} else {
		u64 device = ARG2(ctx), collector = user64(ARG1(ctx) + MANAGER_COLLECTOR), table = cookie >> COOKIE_TABLE & 0xffff;
		c.head.kind = (cookie & 0xff) == SITE_PAGES ? BATCH_LOSSLESS : BATCH_LOSSY;
		c.head.ticks = user64(device + (cookie >> COOKIE_TICKS & 0xffff));
		read_user(&c.head.chip, sizeof(c.head.chip), (void *)(device + DEVICE_CHIP));
		c.from = ARG3(ctx);
		c.left = ARG4(ctx);
		c.table = collector && table ? collector + table : 0;
	}
	put_names(&c, tgid);
	c.wake = ring_query(&work, RING_AVAIL_DATA) >= wake_work_bytes ? RING_FORCE_WAKEUP : RING_NO_WAKEUP;
	loop(MAX_PIECES, put_piece, &c, 0);
	if (c.left)
		__sync_fetch_and_add(&p->pages_lost, c.left);
	return 0;
}

struct raw_args {
	u64 arg[3];
};

// A process has become another program: none of its allocators is left.
SEC("raw_tp/sched_process_exec")
int on_exec(struct raw_args *ctx)
{
	u32 tgid = pid_tgid() >> 32;
	struct process *p = known(tgid);
	struct event e = {};
	if (!p)
		return 0;
	p->image = boot_ns();
	u32 pid = p->pid;
	map_delete(&pythons, &pid);
	map_delete(&hosts, &tgid);
	send(p, &e, EVENT_EXEC);
	return 0;
}

// The last thread of a process ends.
SEC("raw_tp/sched_process_exit")
int on_gone(struct raw_args *ctx)
{
	u32 tgid = pid_tgid() >> 32;
	struct process *p = known(tgid);
	struct task_struct *task = (void *)ctx->arg[0];
	struct signal_struct *signal = 0;
	struct event e = {};
	int live = 0;
	if (!p)
		return 0;
	struct thread *t = task_storage(&threads, this_task(), 0, 0);
	struct host *h = map_lookup(&hosts, &tgid);
	if (t && h) {
		stop_waiting(h, t);
		leave_queue(h, t);
	}
	READ(signal, task->signal);
	READ(live, signal->live.counter);
	if (live)
		return 0;
	map_delete(&hosts, &tgid);
	struct exit_event *x = (void *)e.word;
	x->start = p->start;
	send(p, &e, EVENT_EXIT);
	u32 uid = p->uid, pid = p->pid;
	map_delete(&pythons, &pid);
	if (!map_delete(&processes, &tgid))
		leave(uid);
	return 0;
}

// A process that was seen has made a child: it has the same library, and
// nothing of it was missed.
SEC("raw_tp/sched_process_fork")
int on_forked(struct raw_args *ctx)
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
	// It has the same Python, at the same place.
	u32 old = parent->pid, new = p->pid;
	struct python *python = map_lookup(&pythons, &old);
	if (python && new)
		map_update(&pythons, &new, python, 0);
	struct fork_event *x = (void *)e.word;
	x->parent = parent->pid;
	x->start = p->start;
	send(p, &e, EVENT_FORK);
	return 0;
}

// What is attached only jumps: a link cannot be given another program, but what it
// jumps to can be replaced, at any moment, by that of another release. So an upgrade of
// the daemon misses nothing. Each of the two kinds of programs has its own table.
enum jump { JUMP_HIT, JUMP_WORKED, JUMP_HOSTED, JUMPS };
enum turn_of_life { LIFE_EXEC, LIFE_GONE, LIFE_FORKED, LIVES };

struct {
	MAP_INT(type, MAP_PROG_ARRAY);
	MAP_INT(max_entries, JUMPS);
	MAP_TYPE(key, enum jump);
	MAP_TYPE(value, u32);
} jumps SEC(".maps");

struct {
	MAP_INT(type, MAP_PROG_ARRAY);
	MAP_INT(max_entries, LIVES);
	MAP_TYPE(key, enum turn_of_life);
	MAP_TYPE(value, u32);
} lives SEC(".maps");

#define JUMP(section, name, table, index) \
	SEC(section) \
	int name(void *ctx) \
	{ \
		tail_call(ctx, &table, index); \
		return 0; \
	}

JUMP("uprobe.multi", hit, jumps, JUMP_HIT)
JUMP("uprobe.multi", worked, jumps, JUMP_WORKED)
JUMP("uprobe.multi", hosted, jumps, JUMP_HOSTED)
JUMP("raw_tp/sched_process_exec", exec, lives, LIFE_EXEC)
JUMP("raw_tp/sched_process_exit", gone, lives, LIFE_GONE)
JUMP("raw_tp/sched_process_fork", forked, lives, LIFE_FORKED)
