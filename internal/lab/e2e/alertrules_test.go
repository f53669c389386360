package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/alert"
)

// quicker is by how much the times of the shipped rules are shorter in
// TestEveryRule: a quarter of an hour is 12 seconds.
const quicker = 75

var (
	durations = regexp.MustCompile(`\b\d+[smh]\b`)
	offsets   = regexp.MustCompile(`\[[^]]*\]|offset +\w+`)
)

// quickRules is a file of the shipped rules with all their times so many times shorter.
// What they ask for, and how they say it, is as shipped.
func quickRules(t *testing.T, quicker time.Duration) string {
	t.Helper()
	type rule struct {
		Name        string `toml:"name"`
		Expr        string `toml:"expr"`
		For         string `toml:"for"`
		Every       string `toml:"every"`
		Severity    string `toml:"severity"`
		Summary     string `toml:"summary"`
		Description string `toml:"description"`
	}
	var file struct {
		Rule []rule `toml:"rule"`
	}
	shorter := func(text string) string {
		return durations.ReplaceAllStringFunc(text, func(s string) string {
			d, err := time.ParseDuration(s)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%dms", (d / quicker).Milliseconds())
		})
	}
	for _, r := range alert.Shipped().Rules {
		file.Rule = append(file.Rule, rule{
			Name: r.Name, Expr: offsets.ReplaceAllStringFunc(r.Expr, shorter), For: (r.For.Duration / quicker).String(), Every: (r.Every.Duration / quicker).String(),
			Severity: r.Severity, Summary: r.Summary, Description: r.Description,
		})
	}
	b, err := toml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "alerts.toml")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// simulatedFault is what makes alerts fire, and how it ends.
type simulatedFault struct {
	alerts     []string // as the webhook is told: rule and device
	begin, end []string // for ttmon-sim ctl, in words
}

// simulatedFaults has one for every shipped rule, each on a board of its own.
// limit is where the boards slow down, in °C; bus has their addresses.
func simulatedFaults(limit float64, bus []string) []simulatedFault {
	// It takes 20 MB more twice a second: 1.6 % in 12 s when there are 30 GB.
	leak := "open @10;alloc @10 dram 1G" + strings.Repeat(";sleep 500ms;alloc @10 dram 20M", 1200)
	return []simulatedFault{
		{[]string{"ChipResettingTooLong 0"}, []string{"reset 0 block=1ms window=forever"}, []string{"post-reset 0"}},
		{[]string{"PCIeLinkDegraded 1"}, []string{"link 1 gen=1 width=4"}, []string{"link 1 gen=5 width=16"}},
		{[]string{"ThermalTrip 2"}, []string{"set 2 tt_therm_trip_count 1"}, nil},
		{[]string{"ChipHung 3"}, []string{"dead 3"}, []string{"alive 3"}},
		{[]string{"ChipLost 4"}, []string{"unplug 4"}, []string{"plug " + bus[4] + " index=4"}},
		{[]string{"ChipHung 5"}, []string{"hang 5"}, []string{"unhang 5"}},
		{[]string{"ChipHot 6"}, []string{fmt.Sprintf("set 6 temp1_input %.0f", (limit-3)*1000)}, []string{"clear 6 temp1_input"}},
		{[]string{"ChipThrottling 7"}, []string{"run name=busy,devices=7,kind=metal,script=open @7;sleep 1h", "ambient 7 120", "advance 10m"}, []string{"ambient 7 27", "advance 10m", "kill busy"}},
		{[]string{"MemoryOfDeadProcesses 8"}, []string{"run name=dead,devices=8,kind=metal,script=open @8;alloc @8 dram 1G;die"}, nil},
		{[]string{"MemoryNearlyFull 9"}, []string{"run name=full,devices=9,kind=ledger,dram=31G,blocks=31,hole=16M"}, []string{"kill full"}},
		{[]string{"MemoryGrowing 10"}, []string{"run name=leak,devices=10,kind=metal,script=" + leak}, []string{"kill leak"}},
		{[]string{"JobStuck 12"}, []string{"run name=stuck,devices=12,load=0.9,kind=ledger,dram=1G,work=matmul 20ms x500; hang"}, []string{"kill stuck"}},
		{[]string{"BoardsWithoutDriver ", "ChipLost 11"}, []string{"unbind 11"}, []string{"bind " + bus[11]}},
	}
}

// unplayedRules have no fault here. The first four are about what only the chips' firmware knows, which is not read
// here: TestFirmwareTable makes links go down; the conditions have tests in
// internal/collect/assess, the rules in packaging/prometheus.
// No simulated program runs out of its memory: TestFailureAlert lets a real one.
var unplayedRules = []string{"EthernetLinkDown", "EthernetLinkWeak", "GDDRFailed", "GDDRErrors", "AllocationFailed"}

// Every shipped rule notifies once when its fault begins and once when it is
// over, and nothing else is told.
func TestEveryRule(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "13xp150a", Frozen: true})
	before := smi(t, h, 0)
	var bus []string
	for i := range before.Devices {
		bus = append(bus, before.Devices[i].BusID)
	}
	faults := simulatedFaults(before.Devices[0].TemperatureLimit.V, bus)
	var r receiver
	d := alerting(t, h, &r, quickRules(t, quicker))
	d.until("first figures", func(args ...string) result { return runIn(t, h, args...) }, func(s *model.Snapshot) bool {
		return s.Device(5).HeartbeatAge.Known() // what moves is seen from the second sample on
	})
	// What counts upwards has to be stored before it rises: a first sample of 1
	// is no increase.
	d.awaitSeries("tenstorrent_thermal_trips_total", len(before.Devices))
	var want []string
	do := func(lines []string) {
		for _, line := range lines {
			verb, rest, _ := strings.Cut(line, " ")
			if verb == "run" { // a script has blanks
				ctl(t, h, verb, rest)
			} else {
				ctl(t, h, strings.Fields(line)...)
			}
		}
	}
	await := func(f simulatedFault, status string) {
		for _, a := range f.alerts {
			want = append(want, status+" "+a)
			r.awaitLine(t, status+" "+a)
		}
	}
	for _, f := range faults {
		do(f.begin)
	}
	for _, f := range faults {
		await(f, "firing")
	}
	if text := r.description("MemoryNearlyFull"); text != "The largest hole has 416MiB: a larger buffer cannot be allocated. ttmon mem shows who holds it." {
		t.Errorf("memory nearly full: %q", text)
	}
	if got := runIn(t, h, "stale", "--remove", "--yes"); got.code != 0 {
		t.Errorf("ttmon mem --stale: %+v", got)
	}
	for _, f := range faults {
		do(f.end)
	}
	for _, f := range faults {
		await(f, "resolved")
	}
	time.Sleep(2 * time.Second) // four more evaluations, which must send nothing
	// The last fault is one of all boards.
	gone := simulatedFault{[]string{"SourceFailing ", "BoardsWithoutDriver "}, []string{"driver none"}, []string{"driver 2.9.0"}}
	for i := range bus {
		gone.alerts = append(gone.alerts, fmt.Sprint("ChipLost ", i))
	}
	first := r.heard()
	r.forget()
	compareHeard(t, want, first)
	want = nil
	do(gone.begin)
	await(gone, "firing")
	do(gone.end)
	await(gone, "resolved")
	time.Sleep(2 * time.Second) // nothing more must be sent, so there is nothing to wait for
	compareHeard(t, want, r.heard())
	for _, rule := range alert.Shipped().Rules {
		if slices.Contains(unplayedRules, rule.Name) {
			continue
		}
		if !slices.ContainsFunc(append(first, r.heard()...), func(line string) bool { return strings.HasPrefix(line, "firing "+rule.Name+" ") }) {
			t.Errorf("no fault is simulated for the rule %s", rule.Name)
		}
	}
}

// compareHeard compares what was told, in any order.
func compareHeard(t *testing.T, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
