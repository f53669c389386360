package ledgerfile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/lib/libtest"
)

// The header in C is the layout; the numbers here are the same.
func TestLayoutIsTheHeaders(t *testing.T) {
	cc, err := libtest.Compiler()
	if err != nil {
		t.Skip(err)
	}
	root, err := libtest.Root()
	if err != nil {
		t.Fatal(err)
	}
	fields := []struct {
		c   string
		go_ int
	}{
		{"offsetof(struct ttmon_ledger, work)", offWorkSections},
		{"offsetof(struct ttmon_ledger, host)", offHost},
		{"sizeof(struct ttmon_host)", hostSize},
		{"sizeof(struct ttmon_work)", workSize},
		{"sizeof(struct ttmon_op)", opSize},
		{"sizeof(struct ttmon_name)", nameSize},
		{"sizeof(struct ttmon_wait)", waitSize},
		{"TTMON_WORK_SECTIONS", workSections},
		{"TTMON_CHIP_OPS", chipOps},
		{"TTMON_WORK_FOUND", int(WorkFound)},
		{"TTMON_WORK_UNREADABLE", int(WorkUnreadable)},
		{"TTMON_WAIT_EVENT", int(WaitEvent)},
		{"sizeof(struct ttmon_ledger)", gapsHeader},
		{"offsetof(struct ttmon_ledger, gaps)", offGaps},
		{"sizeof(struct ttmon_gap)", gapSize},
		{"TTMON_CHIP_GAPS", chipGaps},
		{"offsetof(struct ttmon_ledger, failure)", offFailures},
		{"sizeof(struct ttmon_failure)", failureSize},
		{"sizeof(struct ttmon_failed_list)", failedListSize},
		{"sizeof(struct ttmon_failed_block)", failedBlockSize},
		{"sizeof((struct ttmon_failure *)0)->list / sizeof(struct ttmon_failed_list)", maxFailedLists},
		{"TTMON_FAILURE_CLASH", int(Clash)},
		{"TTMON_FAILURE_TRACE", int(TraceRefused)},
		{"sizeof(struct ttmon_event)", eventSize},
		{"offsetof(struct ttmon_ledger, section[TTMON_EVENTS])", offEventSection},
		{"offsetof(struct ttmon_ledger, event_count)", offEventCount},
		{"TTMON_EVENT_ALLOC", int(EventAlloc)},
		{"TTMON_EVENT_FAILED", int(EventFailed)},
		{"TTMON_EVENTS", numSections},
		{"sizeof(struct ttmon_section)", sectionSize},
		{"sizeof(struct ttmon_chip)", int(recordSize[secChips])},
		{"sizeof(struct ttmon_ledger_list)", int(recordSize[secLists])},
		{"sizeof(struct ttmon_site)", int(recordSize[secSites])},
		{"sizeof(struct ttmon_frame)", int(recordSize[secFrames])},
		{"sizeof(struct ttmon_node)", int(recordSize[secNodes])},
		{"sizeof(struct ttmon_block)", int(recordSize[secBlocks])},
		{"TTMON_BLOCKS", secBlocks},
		{"TTMON_STRINGS", secStrings},
		{"TTMON_SECTIONS", numSections + 1},
		{"TTMON_ENDED", int(Ended)},
		{"TTMON_PER_CORE", int(PerCore)},
		{"TTMON_LATE", int(Late)},
		{"TTMON_LEDGER_VERSION", Version},
	}
	for c, n := range map[string]int{
		"version": offVersion, "header": offHeader, "epoch": offEpoch, "pid": offPID, "flags": offFlags, "start_ticks": offStartTicks,
		"pid_namespace": offNamespace, "real_ns": offReal, "monotonic_ns": offMonotonic, "lost": offLost, "unknown": offUnknown,
		"unmatched": offUnmatched, "run": offRun, "library": offLibrary, "comm": offComm, "section": offSections,
	} {
		fields = append(fields, struct {
			c   string
			go_ int
		}{"offsetof(struct ttmon_ledger, " + c + ")", n})
	}
	for kind, list := range map[string]map[string]int{
		"ttmon_ledger_list": {
			"state": listState, "pool": listPool, "own": listOwn, "late": listLate, "group": listGroup, "banks": listBanks, "nth": listNth,
			"id": listID, "capacity": listCapacity, "base": listBase, "alignment": listAlignment, "smallest": listSmallest,
			"cut_low": listCutLow, "cut_high": listCutHigh, "chips": listChips, "made": listMade, "closed": listClosed,
			"live_bytes": listLiveBytes, "live_blocks": listLiveBlocks, "peak_bytes": listPeakBytes, "peak_blocks": listPeakBlocks,
			"peak_time": listPeakTime, "peak_count": listPeakCount, "lives": listLives, "total_bytes": listTotalBytes,
			"total_blocks": listTotalBlocks, "left_bytes": listLeftBytes, "left_blocks": listLeftBlocks, "failed": listFailed,
			"failed_bytes": listFailedBytes, "sub_device": listSubDevice,
		},
		"ttmon_site": {
			"list": siteList, "tag": siteTag, "node": siteNode, "peak_count": sitePeakCount, "live_bytes": siteLiveBytes,
			"live_blocks": siteLiveBlocks, "peak_bytes": sitePeakBytes, "peak_blocks": sitePeakBlocks, "total_bytes": siteTotalBytes,
			"total_blocks": siteTotalBlocks, "left_bytes": siteLeftBytes, "left_blocks": siteLeftBlocks, "left_largest": siteLeftLargest,
			"left_oldest": siteLeftOldest, "tensor": siteTensor, "kept": siteKept, "left_quarters": siteQuarters,
		},
		"ttmon_work": {
			"sequence": workSequence, "logical": workLogical, "state": workState, "loss": workLoss, "ticks_per_ns": workTicks,
			"programs": workPrograms, "busy": workBusy, "gaps": workGaps, "gap": workGap, "longest_gap": workLongestGap, "longest": workLongest,
			"refused": workRefused, "unprofiled": workUnprofiled, "stalls": workStalls, "stalled": workStalled, "since": workSince,
			"last_record": workLastRecord, "last_name": workLastName, "longest_name": workLongestName, "mark": workMark, "mark_end": workMarkEnd, "last_end": workLastEnd,
		},
		"ttmon_host": {
			"enqueued": hostEnqueued, "replayed": hostReplayed, "waits": hostWaits, "last_enqueue": hostLastEnqueue, "last_finish": hostLastFinish,
			"last_name": hostLastName, "queues": hostQueues, "sub_devices": hostSubDevices, "wait": hostWait,
		},
		"ttmon_op":   {"calls": opCalls, "ticks": opTicks, "longest": opLongest, "name": opName},
		"ttmon_gap":  {"ticks": gapTicks, "end": gapEnd, "after": gapAfter},
		"ttmon_name": {"text": nameText},
		"ttmon_event": {
			"number": eventNumber, "time": eventTime, "address": eventAddress, "bytes": eventBytes, "asked": eventAsked, "more": eventMore,
			"list": eventList, "tag": eventTag, "node": eventNode, "kind": eventKind, "pool": eventPool, "late": eventLate,
		},
		"ttmon_failure":      {"number": failNumber, "count": failCount, "first": failFirst, "last": failLast, "time": failTime, "bytes": failBytes, "asked": failAsked, "page": failPage, "limit": failLimit, "shards": failShards, "node": failNode, "tag": failTag, "group": failGroup, "kind": failKind, "bottom_up": failBottomUp, "known": failKnown, "lists": failLists, "first_block": failFirstBlock, "blocks": failBlocks, "missed": failMissed, "chips": failChips, "program": failProgram, "reach": failReach, "lowest": failLowest, "cores": failCores, "tensor": failTensor, "sub_device": failSubDevice, "region": failRegion, "needed": failNeeded, "list": failList},
		"ttmon_failed_list":  {"list": failedListNumber, "pool": failedListPool, "late": failedListLate, "banks": failedListBanks, "nth": failedListNth, "capacity": failedListCapacity, "base": failedListBase, "alignment": failedListAlignment, "smallest": failedListSmallest, "cut_low": failedListCutLow, "cut_high": failedListCutHigh, "blocks": failedListBlocks},
		"ttmon_failed_block": {"tensor": failedBlockTensor, "address": failedBlockAddress, "bytes": failedBlockBytes, "asked": failedBlockAsked, "time": failedBlockTime, "node": failedBlockNode, "tag": failedBlockTag, "list": failedBlockList},
		"ttmon_block": {
			"address": blockAddress, "bytes": blockBytes, "asked": blockAsked, "time": blockTime, "site": blockSite, "sequence": blockSequence,
		},
	} {
		for c, n := range list {
			fields = append(fields, struct {
				c   string
				go_ int
			}{"offsetof(struct " + kind + ", " + c + ")", n})
		}
	}
	var source strings.Builder
	source.WriteString("#include <stddef.h>\n#include \"ttmon_ledger.h\"\n")
	for _, f := range fields {
		fmt.Fprintf(&source, "_Static_assert(%s == %d, \"%s\");\n", f.c, f.go_, f.c)
	}
	file := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(file, []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(cc, "-std=c11", "-fsyntax-only", "-I"+filepath.Join(root, "lib/include"), file).CombinedOutput()
	if err != nil {
		t.Fatalf("the header says otherwise: %v\n%s", err, out)
	}
}
