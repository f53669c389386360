// Package workload makes the processes that use simulated boards: real ones,
// with a name, a command line and a user of their own, that hold device nodes
// open.
//
// A Manager, in the host's process, starts and ends them; Run is what they
// do. What a workload does beyond holding nodes is a Kind: other packages add
// theirs to the map that the program passes to sim.Reexec.
package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Spec describes one workload. The zero values are as Parse leaves them.
type Spec struct {
	Name    string   `json:"name"`             // comm, at most 15 bytes; also what kill takes
	Command []string `json:"command"`          // argv as /proc shows it; empty: the name
	Devices []int    `json:"devices"`          // indices; nil: all that are plugged in
	FDs     int      `json:"fds"`              // open descriptions per device
	Load    float64  `json:"load"`             // on each of its devices, 0…1
	CPU     float64  `json:"cpu"`              // cores kept busy
	RSS     uint64   `json:"rss"`              // bytes touched
	User    int      `json:"user"`             // uid; 0 is the user who runs the simulation
	Forks   int      `json:"forks"`            // children that inherit the descriptors
	Orphan  bool     `json:"orphan"`           // the opener ends and a child keeps the descriptors
	PIDNS   bool     `json:"pidns"`            // in a pid namespace of its own, as in a container
	OwnShm  bool     `json:"own_shm"`          // in a mount namespace with its own /dev/shm, as in a container
	Append  bool     `json:"append"`           // opens with O_APPEND: without a power vote
	Kind    string   `json:"kind,omitempty"`   // what it does besides; empty: nothing
	Params  Params   `json:"params,omitempty"` // for the kind

	Root string `json:"root,omitempty"` // of the simulated host; empty: /
}

// Params are the settings that only a Kind understands.
type Params map[string]string

// Usage is what Parse understands, for help texts.
const Usage = `name=NAME          process name (comm)
cmd=COMMAND        command line as ps shows it; blanks separate arguments, \, is a comma
devices=0+1        device indices; without it, all
fds=2              open descriptions per device (1)
load=0.7           load on each device, 0 to 1 (0.6)
cpu=0.5            cores to keep busy (0)
rss=64M            memory to hold (little)
user=1000          uid to run as
forks=2            children that inherit the descriptors
orphan             the opener exits, a child keeps the descriptors
pidns              in a pid namespace of its own, as in a container
own-shm            with a /dev/shm of its own, as in a container
append             open with O_APPEND
count=3            that many of them
kind=KIND          what it does besides holding nodes; other settings are for the kind`

// Parse reads "name=llama,devices=0+1,fds=2". It returns as many specs as
// count says. Settings that it does not know go to the kind; without a kind
// they are errors.
func Parse(s string) ([]Spec, error) {
	spec := Spec{FDs: 1, Load: 0.6}
	count := 1
	for _, item := range split(s) {
		key, value, _ := strings.Cut(item, "=")
		var err error
		switch key {
		case "name":
			spec.Name = value
		case "cmd":
			spec.Command = strings.Fields(value)
		case "devices":
			spec.Devices, err = indices(value)
		case "fds":
			spec.FDs, err = number(value, 1, 1000)
		case "load":
			spec.Load, err = fraction(value, 1)
		case "cpu":
			spec.CPU, err = fraction(value, 1024)
		case "rss":
			spec.RSS, err = ParseBytes(value)
		case "user":
			spec.User, err = number(value, 0, 1<<31-2)
		case "forks":
			spec.Forks, err = number(value, 0, 100)
		case "count":
			count, err = number(value, 1, 1000)
		case "orphan":
			spec.Orphan = true
		case "pidns":
			spec.PIDNS = true
		case "own-shm":
			spec.OwnShm = true
		case "append":
			spec.Append = true
		case "kind":
			spec.Kind = value
		default:
			if spec.Params == nil {
				spec.Params = make(Params)
			}
			spec.Params[key] = value
		}
		if err != nil {
			return nil, fmt.Errorf("workload %q: %s: %w", s, key, err)
		}
	}
	return spec.finish(s, count)
}

func (spec Spec) finish(s string, count int) ([]Spec, error) {
	if len(spec.Params) > 0 && spec.Kind == "" {
		key := slices.Sorted(maps.Keys(spec.Params))[0]
		return nil, fmt.Errorf("workload %q: no setting %q; there are:\n%s", s, key, Usage)
	}
	if spec.Name == "" && len(spec.Command) > 0 {
		name := spec.Command[0][strings.LastIndexByte(spec.Command[0], '/')+1:]
		spec.Name = name[:min(len(name), 15)] // as the kernel cuts it
	}
	if spec.Name == "" {
		spec.Name = "workload"
	}
	if len(spec.Name) > 15 {
		return nil, fmt.Errorf("workload %q: a process name has at most 15 bytes; use cmd= for the rest", s)
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{spec.Name}
	}
	return slices.Repeat([]Spec{spec}, count), nil
}

// split cuts at commas that no backslash precedes.
func split(s string) []string {
	var items []string
	var item strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ',':
			item.WriteByte(',')
			i++
		case s[i] == ',':
			items = append(items, item.String())
			item.Reset()
		default:
			item.WriteByte(s[i])
		}
	}
	items = append(items, item.String())
	return slices.DeleteFunc(items, func(s string) bool { return s == "" })
}

func indices(s string) (list []int, err error) {
	for part := range strings.SplitSeq(s, "+") {
		n, err := number(part, 0, 1<<16)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func number(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q is not a number from %d to %d", s, low, high)
	}
	return n, nil
}

func fraction(s string, high float64) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= high) {
		return 0, fmt.Errorf("%q is not a number from 0 to %v", s, high)
	}
	return f, nil
}

// ParseBytes reads a size: 4096, 64K, 64M, 2G.
func ParseBytes(s string) (uint64, error) {
	shift := 0
	for i, unit := range []string{"K", "M", "G"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			s, shift = rest, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size such as 4096, 64K, 64M or 2G", s)
	}
	return n << shift, nil
}
