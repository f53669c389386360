// Package workload makes the processes that use simulated boards: real ones,
// with a name, a command line and a user of their own, that hold device nodes
// open.
//
// A Manager, in the host's process, starts and ends them; Run is what they
// do. What a workload does beyond holding nodes is its kind, a row of kinds.
package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Spec describes one workload. The zero values are as Parse leaves them.
type Spec struct {
	Name    string  `json:"name" set:"name=NAME" help:"process name (comm)"` // at most 15 bytes; also what kill takes
	Command words   `json:"command" set:"cmd=COMMAND" help:"command line as ps shows it; blanks separate arguments, \\, is a comma"`
	Devices indices `json:"devices" set:"devices=0+1" help:"device indices; without it, all"`
	FDs     int     `json:"fds" set:"fds=2" in:"1 1000" help:"open descriptions per device (1)"`
	Load    float64 `json:"load" set:"load=0.7" in:"0 1" help:"load on each device, 0 to 1 (0.6)"`
	CPU     float64 `json:"cpu" set:"cpu=0.5" in:"0 1024" help:"cores to keep busy (0)"`
	RSS     size    `json:"rss" set:"rss=64M" help:"memory to hold (little)"`
	User    int     `json:"user" set:"user=1000" in:"0 2147483646" help:"uid to run as"` // 0 is the user who runs the simulation
	Forks   int     `json:"forks" set:"forks=2" in:"0 100" help:"children that inherit the descriptors"`
	Orphan  bool    `json:"orphan" set:"orphan" help:"the opener exits, a child keeps the descriptors"`
	PIDNS   bool    `json:"pidns" set:"pidns" help:"in a pid namespace of its own, as in a container"`
	OwnShm  bool    `json:"own_shm" set:"own-shm" help:"with a /dev/shm of its own, as in a container"`
	Append  bool    `json:"append" set:"append" help:"open with O_APPEND"` // without a power vote
	Kind    string  `json:"kind,omitempty" set:"kind=KIND" help:"what it does besides holding nodes; other settings are for the kind"`
	Params  Params  `json:"params,omitempty"` // for the kind

	Root string `json:"root,omitempty"` // of the simulated host; empty: /
}

// order is a workload as it is asked for.
type order struct {
	Spec
	Count int `set:"count=3" in:"1 1000" help:"that many of them"`
}

// Params are the settings that only a Kind understands.
type Params map[string]string

// Usage is what Parse understands, for help texts: the settings of all
// workloads, and those of each kind.
func Usage() string {
	text := usageOf("", new(order))
	for _, k := range kinds {
		text += usageLine("", "kind="+k.name, k.help) + usageOf("  ", k.make())
	}
	return strings.TrimPrefix(text, "\n")
}

// Parse reads "name=llama,devices=0+1,fds=2". It returns as many specs as
// count says. Settings that it does not know go to the kind; without a kind
// they are errors.
func Parse(s string) ([]Spec, error) {
	spec := order{Spec{FDs: 1, Load: 0.6}, 1}
	for _, item := range split(s) {
		key, value, _ := strings.Cut(item, "=")
		known, err := apply(&spec, key, value)
		if err != nil {
			return nil, fmt.Errorf("workload %q: %w", s, err)
		}
		if !known {
			if spec.Params == nil {
				spec.Params = make(Params)
			}
			spec.Params[key] = value
		}
	}
	if err := spec.complete(); err != nil {
		return nil, fmt.Errorf("workload %q: %w", s, err)
	}
	return slices.Repeat([]Spec{spec.Spec}, spec.Count), nil
}

// complete fills in what follows from other settings.
func (spec *Spec) complete() error {
	if len(spec.Params) > 0 && spec.Kind == "" {
		key := slices.Sorted(maps.Keys(spec.Params))[0]
		return fmt.Errorf("no setting %q; there are:\n%s", key, Usage())
	}
	if spec.Name == "" && len(spec.Command) > 0 {
		name := spec.Command[0][strings.LastIndexByte(spec.Command[0], '/')+1:]
		spec.Name = name[:min(len(name), 15)] // as the kernel cuts it
	}
	spec.Name = cmp.Or(spec.Name, "workload")
	if len(spec.Name) > 15 {
		return fmt.Errorf("a process name has at most 15 bytes; use cmd= for the rest")
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{spec.Name}
	}
	return nil
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
