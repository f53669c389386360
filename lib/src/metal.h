/* tt-metal's functions by the names that this library has for them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_METAL_H
#define TTMON_METAL_H

#include "names.h"
#include "state.h"

enum {
#define X(name, mangled, required) SYM_##name,
#include "symbols.h"
#undef X
	SYMBOLS
};

struct symbol {
	const char *name;
	bool required;
};

extern INTERNAL const struct symbol metal_symbols[SYMBOLS];

/* The original of a function, for the library that an address is in. */
INTERNAL void *metal_function(int symbol, uint64_t caller);

/* The function to call instead of ours, for a caller, and the state, or NULL where
 * the caller's copy of tt-metal cannot be followed. */
INTERNAL void *metal_original(int symbol, void *caller, struct state **s);

/* The same of any copy that has the function, for callers that are not tt-metal. */
INTERNAL void *metal_any(int symbol, struct state **s);

#define HOOK __attribute__((visibility("default")))

/* Declares call, the original, and s, the state, or NULL where this copy of
 * tt-metal cannot be followed. */
#define CALL(type, symbol, otherwise)                                                                             \
	struct state *s;                                                                                          \
	__typeof__(type) call = (__typeof__(type))metal_original(SYM_##symbol, __builtin_return_address(0), &s); \
	if (!call)                                                                                                \
	return otherwise

/* attach.c: lists that were there before us. Makes one known with the blocks
 * that it has; tells the size of a block, since its rounding is not known. */
INTERNAL void late_list(struct state *s, uint64_t list, uint64_t caller);
INTERNAL uint64_t late_size(uint64_t list, uint64_t address, uint64_t bytes, uint64_t caller);

#endif
