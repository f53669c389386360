// Package doctor says what is wrong with the setup of a host, and what to do
// about it: the checks of ttmon doctor.
//
// It is a view: it reads a snapshot, how the host is set up and how ttmond is
// doing, and makes sentences of them. It reads no file and calls no daemon.
package doctor

import (
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// Level is how a check came out.
type Level string

// The levels.
const (
	OK       Level = "ok"
	Hint     Level = "hint"     // it works, and could do better
	Unknown  Level = "unknown"  // there is nothing to check
	Warning  Level = "warning"  // something works worse than it should, or will
	Critical Level = "critical" // something does not work
)

// Area is what a check is about.
type Area string

// The areas, in the order in which they are reported.
const (
	Driver      Area = "driver"
	Devices     Area = "devices"
	Firmware    Area = "firmware"
	Links       Area = "links"
	Permissions Area = "permissions"
	IOMMU       Area = "iommu"
	HugePages   Area = "hugepages"
	Accounting  Area = "/dev/shm"
	Daemon      Area = "ttmond"
	Uprobes     Area = "uprobes"
	Memory      Area = "memory"
	Visibility  Area = "visibility"
)

// Finding is the outcome of one check.
type Finding struct {
	Area    Area   `json:"area"`
	Level   Level  `json:"level"`
	Code    string `json:"code"` // stable word for what was found
	Devices []int  `json:"devices,omitempty"`
	Text    string `json:"text"`         // what is so; safe for a terminal
	Do      string `json:"do,omitempty"` // what to do about it
}

// Subject is what doctor examines.
type Subject struct {
	Snapshot *model.Snapshot
	Setup    *model.Setup
	Daemon   DaemonState
	Root     bool // root asks
	Version  string
}

// DaemonState is what ttmond said of itself.
type DaemonState struct {
	Answers  bool
	Why      string // it does not
	Path     string
	Version  string
	Problems []string
	Warnings []string
	// Watch says whether ttmond watches allocators, and Reason why not;
	// empty if no ttmond answers.
	Watch     apitype.WatchState
	Reason    string
	Watched   int      // processes
	Waits     bool     // what they enqueue and wait for, too
	Unwatched []string // libraries that cannot be watched, each with its reason
}

// Report is the outcome of all checks.
type Report struct {
	Schema    string    `json:"schema"`
	Time      time.Time `json:"time"`
	Simulated bool      `json:"simulated"`
	Host      string    `json:"host"`
	Version   string    `json:"version"`
	Status    Level     `json:"status"` // the worst of the findings
	Findings  []Finding `json:"findings"`
}

// Schema names the contract of ttmon doctor --json. It follows the rules of
// the snapshot's: fields are only added.
const Schema = "ttmon.doctor/1"

// Examine makes all checks.
func Examine(s *Subject) *Report {
	e := &examiner{Subject: s, notes: words.Notes(s.Snapshot), troubles: words.Troubles(s.Snapshot)}
	for _, check := range []func(){
		e.driver, e.devices, e.firmware, e.onChip, e.links, e.permissions, e.iommu, e.hugePages,
		e.accounting, e.daemon, e.uprobes, e.memory, e.sight,
	} {
		check()
	}
	r := &Report{
		Schema: Schema, Time: s.Snapshot.Time, Simulated: s.Snapshot.Simulated, Host: s.Snapshot.Host.Name,
		Version: s.Version, Status: OK, Findings: e.found,
	}
	for i := range r.Findings {
		if rank(r.Findings[i].Level) > rank(r.Status) {
			r.Status = r.Findings[i].Level
		}
	}
	return r
}

// rank orders levels by how bad they are.
func rank(l Level) int {
	switch l {
	case Hint:
		return 1
	case Warning:
		return 2
	case Unknown: // without a board nothing else matters
		return 3
	case Critical:
		return 4
	default:
		return 0
	}
}

// ExitCode is that of every check: 0 healthy, 1 warning, 2 critical, 3 unknown.
func (r *Report) ExitCode() int {
	switch r.Status {
	case Warning:
		return 1
	case Critical:
		return 2
	case Unknown:
		return 3
	default:
		return 0
	}
}

// Count is how many findings have a level.
func (r *Report) Count(l Level) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Level == l {
			n++
		}
	}
	return n
}

// examiner collects the findings.
type examiner struct {
	*Subject
	notes    []words.Notice
	troubles []words.Trouble
	found    []Finding
}

func (e *examiner) add(f Finding) { e.found = append(e.found, f) }

// addHost adds a finding about the host.
func (e *examiner) addHost(a Area, l Level, code, text, do string) {
	e.add(Finding{Area: a, Level: l, Code: code, Text: text, Do: do})
}

// levelOf is the level of a condition as that of a finding.
func levelOf(l model.Level) (level Level) {
	switch l {
	case model.Critical:
		return Critical
	case model.Warning:
		return Warning
	case model.Info:
		return Hint
	}
	return level
}

// repeat turns notes of some kinds into findings, with what to do about them,
// and reports whether there were any.
func (e *examiner) repeat(a Area, cures map[string]string) (any bool) {
	for _, n := range e.notes {
		if do, ours := cures[n.Code]; ours {
			any = true
			e.add(Finding{Area: a, Level: levelOf(n.Level), Code: n.Code, Devices: n.Devices, Text: n.String(), Do: do})
		}
	}
	return any
}

// trouble turns the trouble of devices that is of an area into findings, and
// reports whether there was any.
func (e *examiner) trouble(a Area) (any bool) {
	for i := range e.troubles {
		t := &e.troubles[i]
		if areaOf(t) != a {
			continue
		}
		any = true
		name := "device " + t.Name
		if len(t.Devices) > 1 {
			name = "devices " + t.Name
		}
		do := t.Remedy
		t.Remedy = "" // it stands by itself
		e.add(Finding{Area: a, Level: levelOf(t.Level), Code: string(t.Kind), Devices: t.Devices, Text: name + ": " + t.Sentence(), Do: do})
	}
	return any
}

// areaOf is what trouble is about.
func areaOf(t *words.Trouble) Area {
	switch t.Kind.Row().Subject {
	case model.OfHost:
		return Driver
	case model.OfLink:
		return Links
	}
	return Devices
}
