/* The functions of tt-metal that are followed: our name for them, theirs, and
 * whether an allocator without it could not be followed. Seen in 0.70.1 to
 * 0.81.1; see docs/libttmon.md. */
X(list_made, "_ZN2tt8tt_metal9allocator11FreeListOptC1EmmmmNS2_12SearchPolicyE", true)
X(list_allocate, "_ZN2tt8tt_metal9allocator11FreeListOpt8allocateEmbm", true)
X(list_allocate_at, "_ZN2tt8tt_metal9allocator11FreeListOpt19allocate_at_addressEmm", true)
X(list_deallocate, "_ZN2tt8tt_metal9allocator11FreeListOpt10deallocateEm", true)
X(list_clear, "_ZN2tt8tt_metal9allocator11FreeListOpt5clearEv", true)
X(list_shrink, "_ZN2tt8tt_metal9allocator11FreeListOpt11shrink_sizeEmb", false)
X(list_reset, "_ZN2tt8tt_metal9allocator11FreeListOpt10reset_sizeEv", false)
X(banks, "_ZN2tt8tt_metal18validate_num_banksEjRKNS0_10BufferTypeEb", false)
X(allocator_made, "_ZN2tt8tt_metal13AllocatorImplC2ERKNS0_15AllocatorConfigE", false)
X(allocator_gone, "_ZN2tt8tt_metal13AllocatorImplD2Ev", false)
X(allocator_gone_whole, "_ZN2tt8tt_metal13AllocatorImplD1Ev", false)
X(buffer, "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE", false)
X(mass_free, "_ZN2tt8tt_metal11BankManager14deallocate_allEv", false)
X(provider_old, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emi", false)
X(provider, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb", false)
X(provider_gone, "_ZN2tt8tt_metal25SharedMemoryStatsProviderD1Ev", false)
X(record, "_ZN2tt8tt_metal25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj", false)
/* Called, not followed. */
X(buffer_size, "_ZNK2tt8tt_metal6Buffer4sizeEv", false) /* since 0.79 */
X(buffer_pages, "_ZNK2tt8tt_metal6Buffer9num_pagesEv", false)
X(buffer_page, "_ZNK2tt8tt_metal6Buffer9page_sizeEv", false)
X(list_blocks, "_ZNK2tt8tt_metal9allocator11FreeListOpt19allocated_addressesEv", false)
X(list_size, "_ZNK2tt8tt_metal9allocator11FreeListOpt19get_allocation_sizeEm", false)
