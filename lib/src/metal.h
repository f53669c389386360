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

/* attach.c: lists that were there before us. Makes one known with the blocks
 * that it has; tells the size of a block, since its rounding is not known. */
INTERNAL void late_list(struct state *s, uint64_t list, uint64_t caller);
INTERNAL uint64_t late_size(uint64_t list, uint64_t address, uint64_t bytes, uint64_t caller);

#endif
