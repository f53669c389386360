package control

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
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
	run: func(h *Host, a *arguments) (string, error) {
		if !a.done() {
			return "", nil
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "INDEX\tBUS ID\tBOARD\tSERIAL\tASIC ID\tSTATE\tLOAD\tOPEN\t(simulated)")
		for _, s := range deviceStates(h) {
			index := "-"
			if s.Index >= 0 {
				index = fmt.Sprint(s.Index)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%d\n", index, s.BDF, s.Board, s.Serial, s.ASIC, s.State, s.Load, len(s.PIDs))
		}
		w.Flush()
		return b.String(), nil
	},
}, {
	Name: "state", Short: "print everything about the simulated host as JSON",
	run: func(h *Host, a *arguments) (string, error) {
		if !a.done() {
			return "", nil
		}
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
	},
}, {
	Name: "audit", Usage: "[clear]", Short: "list who opened device nodes or wrote to driver files, as JSON lines",
	Long: "A monitor must not be in it. Workloads are.",
	run: func(h *Host, a *arguments) (string, error) {
		empty := a.flag("clear")
		if !a.done() {
			return "", nil
		}
		var b strings.Builder
		for _, access := range h.Driver.Audit(empty) {
			line, err := json.Marshal(access)
			if err != nil {
				return "", err
			}
			b.Write(append(line, '\n'))
		}
		return b.String(), nil
	},
}}
