// Package faults lists what the simulator can do to a host, how it ends, and
// what every view calls it. Only tests import it: those of the screens and of
// the page play the same list.
package faults

import "strings"

// Boards are those of the host that the faults are for, in the order of their
// devices.
const Boards = "2xn300,16xp150a"

// Fault is one fault. Each has a device of its own, so that all of them can be
// played at once.
type Fault struct {
	Name       string
	Device     int
	Begin, End []string // lines for ttmon-sim ctl
	What       string   // the state of the device meanwhile, in every view
	// Begun and Over are the two moments in ttmon events.
	Begun, Over string
	Host        bool // it is all of the host's devices: it is played alone
}

// All are the faults of a host with Boards, whose devices have these bus ids.
func All(bus []string) []Fault {
	return []Fault{
		{Name: "cable", Device: 0, Begin: []string{"cut 0 8 9"}, End: []string{"join 0 8 9"}, What: "link down", Begun: "down", Over: "all channels are up again"},
		{Name: "channel", Device: 1, Begin: []string{"cut 1 8"}, End: []string{"join 1 8"}, What: "weak link", Begun: "down", Over: "all channels are up again"},
		{Name: "hang", Device: 2, Begin: []string{"hang 2"}, End: []string{"unhang 2"}, What: "hung", Begun: "device 2 is hung", Over: "device 2 is ok again"},
		{Name: "dead", Device: 3, Begin: []string{"dead 3"}, End: []string{"alive 3"}, What: "hung", Begun: "device 3 is hung", Over: "device 3 is ok again"},
		{Name: "block", Device: 4, Begin: []string{"block 4"}, End: []string{"release 4"}, What: "hung", Begun: "device 4 is hung", Over: "device 4 is ok again"},
		{
			Name: "reset", Device: 5, Begin: []string{"reset 5 block=1ms window=forever"}, End: []string{"post-reset 5"},
			What: "resetting", Begun: "device 5 is being reset", Over: "device 5 is ok again",
		},
		{
			Name: "failed reset", Device: 6, Begin: []string{"reset 6 block=1ms window=1ms fail"}, End: []string{"alive 6"},
			What: "hung", Begun: "device 6 is hung", Over: "device 6 is ok again",
		},
		{Name: "unplug", Device: 7, Begin: []string{"unplug 7"}, End: []string{"plug " + bus[7] + " index=7"}, What: "lost", Begun: "device 7 is lost", Over: "device 7 is ok again"},
		{Name: "unbind", Device: 8, Begin: []string{"unbind 8"}, End: []string{"bind " + bus[8]}, What: "lost", Begun: "device 8 is lost", Over: "device 8 is ok again"},
		{
			Name: "PCIe link", Device: 9, Begin: []string{"link 9 gen=1 width=4"}, End: []string{"link 9 gen=5 width=16"},
			What: "slow link", Begun: "device 9 has a slow PCIe link", Over: "device 9 has its full PCIe link again",
		},
		{
			Name: "hot", Device: 10, Begin: []string{"set 10 temp1_input 88000"}, End: []string{"clear 10 temp1_input"},
			What: "hot", Begun: "device 10 is hot", Over: "device 10 is no longer hot",
		},
		{
			Name: "throttled", Device: 11, Begin: []string{"run name=busy,devices=11,load=1", "ambient 11 75", "advance 2m"},
			End: []string{"ambient 11 20", "advance 5m", "kill busy"}, What: "throttled", Begun: "device 11 is throttled", Over: "device 11 is no longer throttled",
		},
		{
			Name: "no telemetry", Device: 12, Begin: []string{"firmware 12 no-telemetry", "rebind 12"}, End: []string{"firmware 12 19.9.0", "rebind 12"},
			What: "unknown", Begun: "device 12 is unknown", Over: "device 12 is ok again",
		},
		{
			Name: "GDDR training", Device: 13, Begin: []string{"word 13 22 0"}, End: []string{"word 13 22 clear"},
			What: "mem fault", Begun: "device 13 has failed GDDR", Over: "device 13 has working GDDR again",
		},
		{
			Name: "GDDR errors", Device: 14, Begin: []string{"word 14 50 1"}, End: []string{"word 14 50 clear"},
			What: "mem error", Begun: "device 14 has GDDR errors", Over: "device 14 has no GDDR errors any more",
		},
		{
			Name: "stalled read", Device: 15, Begin: []string{"block 15 window"}, End: []string{"release 15 window", "reset 15 block=1ms window=1ms"},
			What: "stalled", Begun: "device 15 does not answer reads", Over: "device 15 answers reads",
		},
		{
			Name: "stuck job", Device: 16, Begin: []string{"run name=stuck,devices=16,load=0.9,kind=ledger,dram=1G,work=matmul 20ms x500; hang"}, End: []string{"kill stuck"},
			What: "stuck?", Begun: "device 16 has a process that may be stuck", Over: "device 16 no longer has a process that seems stuck",
		},
		{
			Name: "driver", Device: 17, Begin: []string{"driver none"}, End: []string{"driver 2.10.0"},
			What: "lost", Begun: "device 17 is lost", Over: "device 17 is ok again", Host: true,
		},
	}
}

// NotFaults are the simulator's other verbs, with why no view has to show them as
// trouble.
func NotFaults() map[string]string {
	const value, look = "a value, shown where it is", "it changes nothing"
	return map[string]string{
		"load": value, "traffic": value, "counters": value, "freeze": value, "dispatch": value,
		"fail": "a value that is missing, with the reason in its place", "drop": "as fail", "omit": "as fail",
		"retrain": "counts of a link that works: ttmon topo --links has them",
		"log":     "a line of the kernel's log: ttmon events has it", "opener": "a process that cannot be seen: a note, and a doubt on figures",
		"work": "what a workload does; that it hangs is played when it starts",
		"list": look, "state": look, "audit": look, "ps": look, "chips": look,
	}
}

// Verbs are those of ttmon-sim ctl that a fault uses.
func (f *Fault) Verbs() (list []string) {
	for _, lines := range [][]string{f.Begin, f.End} {
		for _, line := range lines {
			verb, _, _ := strings.Cut(line, " ")
			list = append(list, verb)
		}
	}
	return list
}

// Arguments are those of a line for ttmon-sim ctl. Those of run are one, with
// blanks in it.
func Arguments(line string) []string {
	verb, rest, _ := strings.Cut(line, " ")
	if verb == "run" {
		return []string{verb, rest}
	}
	return strings.Fields(line)
}
