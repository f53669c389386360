/* tt-metal's functions by the names that this library has for them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMON_METAL_H
#define TTMON_METAL_H

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

#define METAL_list_made _ZN2tt8tt_metal9allocator11FreeListOptC1EmmmmNS2_12SearchPolicyE
#define METAL_list_allocate _ZN2tt8tt_metal9allocator11FreeListOpt8allocateEmbm
#define METAL_list_allocate_at _ZN2tt8tt_metal9allocator11FreeListOpt19allocate_at_addressEmm
#define METAL_list_deallocate _ZN2tt8tt_metal9allocator11FreeListOpt10deallocateEm
#define METAL_list_clear _ZN2tt8tt_metal9allocator11FreeListOpt5clearEv
#define METAL_list_shrink _ZN2tt8tt_metal9allocator11FreeListOpt11shrink_sizeEmb
#define METAL_list_reset _ZN2tt8tt_metal9allocator11FreeListOpt10reset_sizeEv
#define METAL_banks _ZN2tt8tt_metal18validate_num_banksEjRKNS0_10BufferTypeEb
#define METAL_allocator_made _ZN2tt8tt_metal13AllocatorImplC2ERKNS0_15AllocatorConfigE
#define METAL_allocator_gone _ZN2tt8tt_metal13AllocatorImplD2Ev
#define METAL_allocator_gone_whole _ZN2tt8tt_metal13AllocatorImplD1Ev
#define METAL_buffer _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE
#define METAL_mass_free _ZN2tt8tt_metal11BankManager14deallocate_allEv
#define METAL_provider_old _ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emi
#define METAL_provider _ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb
#define METAL_provider_gone _ZN2tt8tt_metal25SharedMemoryStatsProviderD1Ev
#define METAL_record _ZN2tt8tt_metal25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj

#endif
