// Package metalabi says which functions of tt-metal's allocator are followed, by
// whom, and which releases have them. It is the one place where their names
// stand: internal/source/uprobe sets its probes by this table, and libttmon is
// compiled with what it writes to lib/src.
//
// A new release of tt-metal is a row in Releases; TestReleases says whether it
// has what it takes.
package metalabi

// Function is a function of tt-metal. Its mangled name is Prefix and Rest: the
// prefix is the same in all releases, and the types of later parameters are not.
type Function struct {
	Name         string // ours
	Prefix, Rest string
	Library      Use // by libttmon, which takes its place
	Probe        Use // by uprobe, which finds it by its prefix
}

// Symbol is the mangled name.
func (f *Function) Symbol() string { return f.Prefix + f.Rest }

// Use says what a function is for.
type Use int

// The uses.
const (
	Unused   Use = iota
	Required     // without it nothing can be told
	Optional     // without it less is known
	Called       // it is called, or its code read, and not followed
	Learning     // hit once for each chip and buffer: followed only until it is known which chips an allocator stands for
	OnDemand     // on the program's own path: followed only on request
	AtCall       // as Optional, but other libraries may have a copy of it that is called instead: followed where tt-metal calls it
)

const (
	allocator = "_ZN2tt8tt_metal13AllocatorImpl"
	manager   = "_ZN2tt8tt_metal11BankManager"
	list      = "_ZN2tt8tt_metal9allocator11FreeListOpt"
	constList = "_ZNK2tt8tt_metal9allocator11FreeListOpt"
	provider  = "_ZN2tt8tt_metal25SharedMemoryStatsProvider"
	program   = "_ZN2tt8tt_metal6detail11ProgramImpl"
	buffer    = "_ZNK2tt8tt_metal6Buffer"

	tensorLayout = "_ZNK2tt8tt_metal12TensorLayout"
)

// Functions are those that are followed or called.
var Functions = []Function{
	{"list_made", list + "C1EmmmmNS2_12SearchPolicyE", "", Required, Required},
	{"list_allocate", list + "8allocateEmbm", "", Required, Unused},
	{"list_allocate_at", list + "19allocate_at_addressEmm", "", Required, Unused},
	{"list_take", list + "17allocate_in_blockEmmm", "", Unused, Required},
	{"list_deallocate", list + "10deallocateEm", "", Required, Required},
	{"list_clear", list + "5clearEv", "", Required, Required},
	{"list_shrink", list + "11shrink_sizeEmb", "", Optional, Required},
	{"list_reset", list + "10reset_sizeEv", "", Optional, Required},
	{"banks", "_ZN2tt8tt_metal18validate_num_banksEjRKNS0_10BufferTypeEb", "", Optional, Unused},
	{"manager_dram", manager + "C1ERKNS0_10BufferTypeERKSt6vectorIlSaIlEEm", "", Unused, Required},
	{"manager_l1", manager + "C1ERKNS0_10BufferTypeERKSt13unordered_map", "", Unused, Required},
	{"manager_ask", manager + "15allocate_bufferEmmb", "", Unused, Required},
	{"allocator_made", allocator + "C2E", "RKNS0_15AllocatorConfigE", Optional, Optional},
	{"allocator_gone", allocator + "D2Ev", "", Optional, Optional},
	{"allocator_gone_whole", allocator + "D1Ev", "", Optional, Unused},
	{"buffer", allocator + "15allocate_bufferEPNS0_6BufferE", "", Optional, Optional},
	{"mass_free", manager + "14deallocate_allEv", "", Optional, Unused},
	{"provider_old", provider + "C1Emi", "", Optional, Optional},
	{"provider", provider + "C1Emi", "bb", Optional, Unused}, // probed as provider_old
	{"provider_gone", provider + "D1Ev", "", Optional, Optional},
	{"record", provider + "17record_allocationEimNS0_13ShmBufferTypeEj", "", Optional, Learning},
	{"program_layout", program + "25allocate_circular_buffersEPKNS0_7IDeviceE", "", Optional, Optional},
	{"program_gone", program + "27deallocate_circular_buffersEv", "", Optional, Optional},
	{"program_check", program + "31validate_circular_buffer_regionEPKNS0_7IDeviceE", "", Optional, Unused},
	{"cb_mark", program + "23CircularBufferAllocator12mark_addressEmmm", "", Optional, Optional},
	{"cb_track", "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmb", "PKNS0_7IDeviceE", Optional, Optional},
	{"buffer_size", buffer + "4sizeEv", "", Called, Called}, // since 0.79
	{"buffer_pages", buffer + "9num_pagesEv", "", Called, Unused},
	{"buffer_page", buffer + "9page_sizeEv", "", Called, Called},
	{"buffer_cores", buffer + "9num_coresEv", "", Called, Unused},
	{"list_blocks", constList + "19allocated_addressesEv", "", Called, Unused},
	{"list_size", constList + "19get_allocation_sizeEm", "", Called, Unused},
	// A tensor: the function that allocates its buffer, and what describes it.
	{"tensor_made", "_ZN2tt8tt_metal11tensor_impl22allocate_device_bufferEPNS0_11distributed10MeshDeviceERKNS0_10TensorSpecE", "", Optional, Unused},
	{"tensor_type", tensorLayout + "13get_data_typeEv", "", Called, Unused}, // since 0.76
	{"tensor_page", tensorLayout + "10get_layoutEv", "", Called, Unused},
	{"tensor_memory", tensorLayout + "17get_memory_configEv", "", Called, Unused},
	{"memory_layout", "_ZNK2tt8tt_metal12MemoryConfig13memory_layoutEv", "", Called, Unused},
	// Allocates what holds the kernels of an operation: tt-metal keeps it in its
	// program cache until the device is closed.
	{"kernels", "_ZN2tt8tt_metal11distributed16MeshWorkloadImpl13load_binariesERNS1_16MeshCommandQueueE", "", Optional, Unused},
	// Throws, with a program, its cores, the lowest buffer and where its circular
	// buffers end.
	{"clash_thrown", "_ZN2tt6assert6detail8tt_throwIJmNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEmmEEEvPKciSA_SA_N3fmt3v117fstring", "", Unused, AtCall},
	// Throws, among others, with cores, where circular buffers there end and how large
	// L1 is: its message says which.
	{"beyond_l1_thrown", "_ZN2tt6assert6detail8tt_throwIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEmjEEEvPKciSA_SA_N3fmt3v117fstring", "", Unused, AtCall},
	// Throws, among others, with what all traces of a device need and what its trace
	// region has: its message says which.
	{"trace_thrown", "_ZN2tt6assert6detail8tt_throwIJjimEEEvPKciS4_S4_N3fmt3v117fstring", "IJDpRKT_EE1tESB_", Optional, AtCall},
	// Called for the message of a failed allocation, and by those who ask.
	{"list_statistics", constList + "14get_statisticsEv", "", Unused, Optional},
}

// Release is a release of tt-metal that tests run.
type Release struct {
	Version string
	// Lacks are the functions that it does not have, by our names.
	Lacks []string
}

// Releases are in order; the last one is the newest.
var Releases = []Release{
	{Version: "0.71.2", Lacks: []string{
		"provider", "buffer_size", "tensor_type", "tensor_page", "tensor_memory", "memory_layout",
		"work_pages", "work_pages_const", "work_on", "work_off", "replayed_list", "collector_made",
	}},
	{Version: "0.81.1", Lacks: []string{"work_pages_const", "work_record", "work_on_old", "work_off_old"}},
}
