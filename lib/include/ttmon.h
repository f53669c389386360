/* libttmon: reports a process's allocations of device memory to ttmon.
 *
 * For programs on tt-metal nothing needs to be called: the library, preloaded
 * (`ttmon run -- CMD`) or linked before tt-metal, sees its allocator. These
 * functions are for tags, for questions about oneself, and for programs that
 * have an allocator of their own. The page docs/libttmon.md shows them in use.
 *
 * All functions may be called from any thread. None blocks on a reader, none
 * fails loudly: where there is no room or no permission for a ledger they do
 * nothing, and ttmon_error() says why.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_H
#define TTMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTMON_API __attribute__((visibility("default")))

/* What ttmon_version() returns for this header. A library with the same major
 * number (the upper 16 bits) has all that is declared here. */
#define TTMON_VERSION 0x00010000u

TTMON_API uint32_t ttmon_version(void);

/* Why there is no ledger, as a sentence; NULL while nothing went wrong. */
TTMON_API const char *ttmon_error(void);

/* Path of this process's ledger; NULL while there is none. Do not open it from
 * within the process: closing it again would drop the lock by which readers
 * know that the process lives. ttmon_region() is for that. */
TTMON_API const char *ttmon_path(void);

/* The ledger in memory (struct ttmon_ledger) and the bytes that it spans; NULL
 * while there is none. It may change while it is looked at: see its epoch. */
TTMON_API const void *ttmon_region(size_t *bytes);

/* ---- Tags ------------------------------------------------------------------
 * What this thread allocates until the matching pop belongs to the tag. Tags
 * nest; the innermost counts. Names longer than 63 bytes are cut. */
TTMON_API void ttmon_tag_push(const char *name);
TTMON_API void ttmon_tag_pop(void);

/* ---- Call sites ------------------------------------------------------------
 * Python lines or native return addresses are kept with each block, from now
 * on. The environment variable TTMON_STACKS ("python", "native" or "all") turns
 * them on from the start. Returns the mode that was on before. */
enum { TTMON_STACKS_NONE, TTMON_STACKS_PYTHON, TTMON_STACKS_NATIVE, TTMON_STACKS_ALL };
TTMON_API int ttmon_stacks(int mode);

/* ---- An allocator of one's own --------------------------------------------- */
typedef uint32_t ttmon_list_t; /* 0 is none */

/* A pool of memory. Sizes are those of one bank: a block takes the same range
 * of addresses in every bank. An allocator without banks says banks = 1. */
struct ttmon_pool {
	uint64_t chip;      /* UMD's chip_unique_id */
	int32_t logical;    /* the number by which the program knows the chip */
	uint32_t pool;      /* 0 DRAM, 1 L1, 3 L1_SMALL, 4 TRACE */
	uint32_t banks;
	uint64_t capacity;  /* bytes; 0: not known */
	uint64_t base;      /* the lowest address that it hands out */
	uint64_t alignment; /* sizes are rounded up to it; 0 and 1: not rounded */
};

/* Makes a list, and the ledger with the first one; 0 where that is not
 * possible, which all other functions accept. */
TTMON_API ttmon_list_t ttmon_list(const struct ttmon_pool *pool);
/* The list's end. Blocks that it still holds count as left behind. */
TTMON_API void ttmon_list_close(ttmon_list_t list);

/* A block was given out (address, bytes of each bank), or given back. They
 * return 0, or -1 if it was not recorded. */
TTMON_API int ttmon_alloc(ttmon_list_t list, uint64_t address, uint64_t bytes);
TTMON_API int ttmon_free(ttmon_list_t list, uint64_t address);

/* ---- Questions about oneself ----------------------------------------------- */
struct ttmon_usage {
	uint64_t bytes, blocks;           /* live; bytes over all banks */
	uint64_t peak_bytes;              /* the most since the start or ttmon_reset_peak() */
	uint64_t total_bytes, total_blocks; /* ever allocated */
	uint64_t capacity;                /* 0: not known */
	uint64_t left_bytes, left_blocks; /* held when their device was closed */
	uint64_t failed;                  /* requests that found no room */
};

#define TTMON_ANY_CHIP UINT64_MAX

/* Sums a pool of a chip over the lists of this process. Chip is a unique id or
 * TTMON_ANY_CHIP: then a mesh counts once for each of its chips. Where several lists
 * of one pool were in use at once, peak_bytes is the sum of their peaks, which
 * is an upper bound. Returns 0, or -1 where nothing is known. */
TTMON_API int ttmon_query(uint64_t chip, uint32_t pool, struct ttmon_usage *usage);

/* Chips that this process has had, up to n of them; returns how many there are. */
TTMON_API size_t ttmon_chips(uint64_t *ids, int32_t *logical, size_t n);

/* Peaks count from now on. */
TTMON_API void ttmon_reset_peak(void);

/* Takes hold of a tt-metal that was loaded before this library. Allocators made
 * from now on are seen whole; of those in use, what they allocate from now on.
 * Returns how many copies of tt-metal were found, or -1 (ttmon_error()). */
TTMON_API int ttmon_attach(void);

#ifdef __cplusplus
}
#endif
#endif
