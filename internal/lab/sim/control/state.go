package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
)

// deviceState is a device as state prints it.
type deviceState struct {
	deviceIdentity
	Plugged bool     `json:"plugged"`
	State   string   `json:"state"`
	Load    float64  `json:"load"`
	Blocked []string `json:"blocked"`
	Waiting int      `json:"waiting"` // reads held up at this moment
	Reads   int      `json:"reads"`   // of the driver's files that reached the chip
	PIDs    []int    `json:"pids"`
}

type deviceIdentity struct {
	Index  int    `json:"index"`
	BDF    string `json:"bus_id"`
	Board  string `json:"board"`
	Serial string `json:"serial"`
	ASIC   string `json:"asic_id"`
}

func deviceStates(h *Host) []deviceState {
	list := []deviceState{}
	for _, d := range h.Driver.Devices() {
		s := deviceState{PIDs: []int{}, Blocked: d.Blocked(), State: d.State(), Waiting: d.Waiting(), Reads: d.Reads(), Load: d.Chip().Load()}
		s.Index = -1
		if i, ok := d.Index(); ok {
			s.Index = i
		}
		s.Plugged = d.Plugged()
		id := d.Chip().Identity()
		s.BDF, s.Board = d.BDF(), d.Chip().Spec().Card
		s.Serial, s.ASIC = fmt.Sprintf("%016X", id.Serial), fmt.Sprintf("%016X", id.ASIC)
		for _, o := range d.Openers() {
			s.PIDs = append(s.PIDs, o.PID)
		}
		list = append(list, s)
	}
	return list
}

var lookVerbs = []Verb{{
	Name: "list", Short: "list the simulated devices",
	host: func(*arguments) onHost { return list },
}, {
	Name: "state", Short: "print everything about the simulated host as JSON",
	host: func(*arguments) onHost { return state },
}, {
	Name: "audit", Usage: "[clear]", Short: "list who opened device nodes or wrote to driver files, as JSON lines",
	Long: "A monitor must not be in it. Workloads are.",
	host: func(a *arguments) onHost {
		empty := a.flag("clear")
		return func(h *Host) (string, error) {
			var b strings.Builder
			for _, access := range h.Driver.Audit(empty) {
				if err := json.NewEncoder(&b).Encode(access); err != nil {
					return "", err
				}
			}
			return b.String(), nil
		}
	},
}, {
	Name: "chips", Short: "list the chips with the ids under which tt-metal accounts for their memory",
	Long: "NUMBER is UMD's and tt-metal's own, which a program knows a chip by.",
	host: func(*arguments) onHost { return chips },
}}

func list(h *Host) (string, error) {
	lines := []string{"INDEX\tBUS ID\tBOARD\tSERIAL\tASIC ID\tSTATE\tLOAD\tOPEN\t(simulated)"}
	for _, s := range deviceStates(h) {
		index := "-"
		if s.Index >= 0 {
			index = fmt.Sprint(s.Index)
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%d", index, s.BDF, s.Board, s.Serial, s.ASIC, s.State, s.Load, len(s.PIDs)))
	}
	return table(lines), nil
}

func state(h *Host) (string, error) {
	version := "none"
	if v := h.Driver.Version(); h.Driver.Loaded() {
		version = v.String()
	}
	procs := []map[string]any{}
	for _, p := range h.Workloads.List() {
		procs = append(procs, map[string]any{"pid": p.PID, "name": p.Spec.Name, "devices": p.Spec.Devices, "load": p.Spec.Load})
	}
	out, err := json.MarshalIndent(map[string]any{
		"simulated": true, "driver": version, "devices": deviceStates(h), "workloads": procs,
	}, "", "  ")
	return string(out) + "\n", err
}

func chips(h *Host) (string, error) {
	c, err := cluster.Of(h.Driver, h.Cluster)
	if err != nil {
		return "", err
	}
	lines := []string{"DEVICE\tBUS ID\tCHIP\tNUMBER\tID\t(simulated)"}
	for _, ch := range c.Chips() {
		lines = append(lines, fmt.Sprintf("%d\t%s\t%s\t%d\t%d", ch.Device, ch.BusID, cmp.Or(ch.Name, "-"), ch.Number, ch.ID))
	}
	return table(lines), nil
}
