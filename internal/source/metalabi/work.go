package metalabi

const (
	profiler = "_ZN2tt8tt_metal11distributed23RealtimeProfilerManager"
	queue    = "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue"
	tracker  = "_ZN2tt8tt_metal23SubDeviceManagerTracker"
)

// Work are the functions that say which programs ran on the chips: those of
// tt-metal's real-time profiler, which 0.71 was the first release to have, and
// those by which a program enqueues work and waits for it.
var Work = []Function{
	// A batch of pages of one chip. Since 0.80 the chip waits rather than lose one.
	{"work_pages", profiler + "13publish_pagesERNS2_11DeviceStateE", "PKjjRSt6vectorINS0_12experimental21ProgramRealtimeRecordESaIS9_EE", Optional, Optional},
	{"work_pages_const", profiler + "13publish_pagesERKNS2_11DeviceStateE", "PKjjRSt6vectorINS0_12experimental21ProgramRealtimeRecordESaISA_EE", Optional, Optional},
	// Since 0.77 the collector that has the sources of programs' kernels knows its
	// environment, and has its table behind that.
	{"collector_made", "_ZN2tt8tt_metal13DataCollectorC1ERNS0_12MetalEnvImplE", "", Unused, Called},
	// One record, from 0.71 to 0.75.
	{"work_record", "_ZN2tt38InvokeProgramRealtimeProfilerCallbacksERKNS_8tt_metal12experimental21ProgramRealtimeRecordE", "", Optional, Optional},
	// A chip's profiler goes live, or ends. Since 0.79 with the context it belongs to.
	{"work_on", "_ZN2tt38NotifyProgramRealtimeProfilerActivatedEN4ttsl", "10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj", Optional, Optional},
	{"work_on_old", "_ZN2tt38NotifyProgramRealtimeProfilerActivatedEj", "", Optional, Optional},
	{"work_off", "_ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEN4ttsl", "10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj", Optional, Optional},
	{"work_off_old", "_ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEj", "", Optional, Optional},
	{"op_named", "_ZN2tt8tt_metal12experimental9inspector26EmitMeshWorkloadDebugEntryERNS0_11distributed12MeshWorkloadEm", "St17basic_string_viewIcSt11char_traitsIcEESt6vectorINS0_10TensorSpecESaISB_EESt8optionalIN4ttsl10StrongTypeIjNS3_14MeshTraceIdTagEEEE", Optional, Unused},
	{"enqueued", queue + "21enqueue_mesh_workloadERNS1_12MeshWorkloadEb", "", Optional, OnDemand},
	{"replayed", queue + "13enqueue_traceERKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEEb", "", Optional, OnDemand},
	// Commands that were recorded before, since 0.80.
	{"replayed_list", queue + "20enqueue_command_listERKSt13unordered_mapIN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEENS0_21TraceWorkerDescriptorE", "St4hashIS7_ESt8equal_toIS7_ESaISt4pairIKS7_S8_EEERKSt6vectorIS7_SaIS7_EERKNS1_10MeshBufferENS5_ImNS0_21SubDeviceManagerIdTagEEEb", Optional, OnDemand},
	// A command queue, with its number, and its end.
	{"queue_made", queue + "C1EPNS1_10MeshDeviceEj", "RSt10shared_ptrINS0_10ThreadPoolEES8_RS5_INS0_13CQSharedStateEESt8functionIFSt10lock_guardISt5mutexEvEES5_INS1_9multihost18DistributedContextEE", Optional, Optional},
	{"queue_gone", queue + "D1Ev", "", Optional, OnDemand},
	// A manager of sub-devices is made, with their number, and loaded.
	{"sub_devices_made", tracker + "25create_sub_device_managerESt4spanIKNS0_9SubDeviceELm18446744073709551615EEm", "", Optional, Optional},
	{"sub_devices_loaded", tracker + "23load_sub_device_managerEN4ttsl10StrongTypeImNS0_21SubDeviceManagerIdTagEEE", "", Optional, Optional},
	{"finish", queue + "13finish_nolockE", "St4spanIKN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE", Optional, OnDemand},
	{"event_wait", "_ZN2tt8tt_metal11distributed16EventSynchronizeERKNS1_9MeshEventE", "", Optional, OnDemand},
}

// Followed are all functions that libttmon follows or calls.
func Followed() []Function { return append(append([]Function(nil), Functions...), Work...) }
