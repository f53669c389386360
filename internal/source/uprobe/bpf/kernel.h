// The few types and helpers of the kernel that watch.c uses. Fields of kernel
// structures are found by name when the program is loaded (CO-RE), so only
// those that are read stand here, and their order does not matter.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// Maps are described by the types of the fields of an anonymous structure.
#define MAP_INT(name, value) int (*name)[value]
#define MAP_TYPE(name, type) type *name
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PROG_ARRAY = 3, MAP_LRU_HASH = 9, MAP_RINGBUF = 27, MAP_TASK_STORAGE = 29 };
enum { NO_PREALLOC = 1, STORAGE_CREATE = 1, RING_NO_WAKEUP = 1, RING_FORCE_WAKEUP = 2, RING_AVAIL_DATA = 0, NOEXIST = 1 };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static long (*tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
static u64 (*pid_tgid)(void) = (void *)14;
static u64 (*uid_gid)(void) = (void *)15; // the low half is the uid, in the first user namespace
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*boot_ns)(void) = (void *)125;
static long (*ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ring_submit)(void *record, u64 flags) = (void *)132;
static void (*ring_discard)(void *record, u64 flags) = (void *)133;
static u64 (*ring_query)(void *ring, u64 what) = (void *)134;
static void *(*task_storage)(void *map, void *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*this_task)(void) = (void *)158;
static long (*loop)(u32 times, void *callback, void *ctx, u64 flags) = (void *)181;
static u64 (*attach_cookie)(void *ctx) = (void *)174;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	u32 inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	u32 level;
	struct upid numbers[1];
};
struct atomic {
	int counter;
};
struct signal_struct {
	struct atomic live;
};
// Where a thread has its own variables, which is what pthread_self is.
#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	u64 fsbase;
};
#define SELF(task) ((task)->thread.fsbase)
#else
struct user_words {
	u64 tp_value;
};
struct thread_struct {
	struct user_words uw;
};
#define SELF(task) ((task)->thread.uw.tp_value)
#endif
struct task_struct {
	struct thread_struct thread;
	int tgid;
	int pid;
	u64 start_boottime;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
};
#pragma clang attribute pop

#define READ(to, from) read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(from)))

// Keeps the compiler from making one load out of several: an address in the
// context must be known when the program is loaded.
#define KEEP(x) __asm__ volatile("" : "+r"(x))

// Registers of a stopped thread, and the arguments of a function in them.
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp;
};
#define ARG1(r) ((r)->di)
#define ARG2(r) ((r)->si)
#define ARG3(r) ((r)->dx)
#define ARG4(r) ((r)->cx)
#define ARG5(r) ((r)->r8)
#define ARG6(r) ((r)->r9)
// Arguments that found no register, when a function is entered.
#define ARG7(r) user64((r)->sp + 8)
#define ARG8(r) user64((r)->sp + 16)
#define ARG9(r) user64((r)->sp + 24)
#define ARG10(r) user64((r)->sp + 32)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31], sp;
};
#define ARG1(r) ((r)->regs[0])
#define ARG2(r) ((r)->regs[1])
#define ARG3(r) ((r)->regs[2])
#define ARG4(r) ((r)->regs[3])
#define ARG5(r) ((r)->regs[4])
#define ARG6(r) ((r)->regs[5])
#define ARG7(r) ((r)->regs[6])
#define ARG8(r) ((r)->regs[7])
#define ARG9(r) user64((r)->sp)
#define ARG10(r) user64((r)->sp + 8)
#else
#error "no such architecture"
#endif
