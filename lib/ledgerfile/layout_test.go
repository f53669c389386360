package ledgerfile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
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
	type fact struct {
		c  string
		is int
	}
	facts := []fact{
		{"TTMON_SECTIONS", numSections + 1},
		{"TTMON_BLOCKS", secBlocks},
		{"TTMON_STRINGS", secStrings},
		{"TTMON_EVENTS", secEvents},
		{"TTMON_WORK_SECTIONS", workSections},
		{"TTMON_NAMES", secNames},
		{"TTMON_FAILURE_SECTIONS", failureSections},
		{"TTMON_FAILED_BLOCKS", secFailedBlocks},
		{"TTMON_CHIP_OPS", chipOps},
		{"TTMON_CHIP_GAPS", chipGaps},
		{"TTMON_WORK_FOUND", int(WorkFound)},
		{"TTMON_WORK_UNREADABLE", int(WorkUnreadable)},
		{"TTMON_WAIT_EVENT", int(WaitEvent)},
		{"TTMON_FAILURE_CLASH", int(Clash)},
		{"TTMON_FAILURE_TRACE", int(TraceRefused)},
		{"TTMON_KNOWS_SHARDS", int(knowsShards)},
		{"TTMON_SEVERAL_DEVICES", int(severalDevices)},
		{"TTMON_EVENT_ALLOC", int(EventAlloc)},
		{"TTMON_EVENT_FAILED", int(EventFailed)},
		{"TTMON_ENDED", int(Ended)},
		{"TTMON_PER_CORE", int(PerCore)},
		{"TTMON_LATE", int(Late)},
		{"TTMON_LEDGER_VERSION", Version},
		{"sizeof((struct ttmon_failure *)0)->list / sizeof(struct ttmon_failed_list)", maxFailedLists},
	}
	for name, x := range map[string]any{
		"section": section{}, "ledger": header{}, "chip": chipRecord{}, "ledger_list": listRecord{}, "site": siteRecord{}, "frame": frameRecord{},
		"node": nodeRecord{}, "block": blockRecord{}, "event": eventRecord{}, "wait": waitRecord{}, "host": hostRecord{}, "work": workRecord{},
		"op": opRecord{}, "gap": gapRecord{}, "name": nameRecord{}, "failure": failureRecord{}, "failed_list": failedListRecord{}, "failed_block": failedBlockRecord{},
	} {
		of := reflect.TypeOf(x)
		facts = append(facts, fact{"sizeof(struct ttmon_" + name + ")", int(of.Size())})
		for i := range of.NumField() {
			if f := of.Field(i); f.Name != "_" {
				facts = append(facts, fact{"offsetof(struct ttmon_" + name + ", " + inC(f) + ")", int(f.Offset)})
			}
		}
	}
	var source strings.Builder
	source.WriteString("#include <stddef.h>\n#include \"ttmon_ledger.h\"\n")
	for _, f := range facts {
		fmt.Fprintf(&source, "_Static_assert(%s == %d, \"%s\");\n", f.c, f.is, f.c)
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

// inC is what the header calls a field: of a Sum its first part.
func inC(f reflect.StructField) string {
	switch {
	case f.Type == reflect.TypeFor[clock]():
		return "real_ns"
	case f.Name == "TicksPerNS":
		return "ticks_per_ns"
	}
	name := regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(f.Name, "${1}_$2")
	name = strings.ReplaceAll(strings.ToLower(name), "pidnamespace", "pid_namespace")
	if f.Type == reflect.TypeFor[Sum]() {
		name += "_bytes"
	}
	return name
}
