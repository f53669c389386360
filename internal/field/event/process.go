package event

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// fresh is the age up to which a process that appears counts as started
// rather than as having opened a device late.
const fresh = 10 * time.Second

type identity struct {
	pid   int
	start uint64
}

func (c *comparison) processes() {
	old := map[identity]*model.Process{}
	for i := range c.old.Processes {
		p := &c.old.Processes[i]
		if p.State == model.Running {
			old[identity{p.PID, p.StartTicks}] = p
		}
	}
	seen := map[identity]bool{}
	for i := range c.now.Processes {
		p := &c.now.Processes[i]
		id := identity{p.PID, p.StartTicks}
		if p.State != model.Running || seen[id] {
			continue
		}
		seen[id] = true
		// Which device a chip is behind may be known a little later than the process.
		if before := old[id]; before == nil || list(before) == "" && list(p) != "" {
			c.came(p)
		}
	}
	for i := range c.old.Processes {
		p := &c.old.Processes[i]
		if id := (identity{p.PID, p.StartTicks}); old[id] != nil && !seen[id] {
			text := "is gone from " + list(p)
			if list(p) == "" {
				text = "is gone; " + elsewhere
			}
			c.process(model.EventGone, p, "gone", text)
			seen[id] = true
		}
	}
}

func (c *comparison) came(p *model.Process) {
	verb := "opened"
	if !p.StartTime.IsZero() && c.now.Time.Sub(p.StartTime) < fresh {
		verb = "started"
	}
	text := verb + " on " + list(p)
	switch {
	case list(p) == "" && verb == "started":
		text = "started; device unknown"
	case list(p) == "":
		text = "opened a device; which one is unknown"
	case verb == "opened":
		text = verb + " " + list(p)
	}
	c.process(model.EventStarted, p, verb, text)
}

func (c *comparison) process(k model.EventKind, p *model.Process, short, text string) {
	var buses []string
	for i := range p.Devices {
		for _, s := range []*model.Snapshot{c.now, c.old} {
			if d := s.Device(p.Devices[i].Device); d != nil {
				buses = append(buses, d.BusID)
				break
			}
		}
	}
	c.add(k, model.Info, buses, fmt.Sprintf("%d %s", p.PID, short), fmt.Sprintf("%s (%d) %s", Name(p), p.PID, text))
	c.events[len(c.events)-1].PID = p.PID
}

// Name is a short name for a process: its program, safe for a terminal.
func Name(p *model.Process) string {
	if cmd, ok := p.Cmdline.Get(); ok {
		if words := strings.Fields(cmd); len(words) > 0 {
			return escape(filepath.Base(words[0]))
		}
	}
	if p.Name.Known() && p.Name.V != "" {
		return escape(p.Name.V)
	}
	return "process"
}

func escape(s string) string { return words.Truncate(words.Escape(s), 24) }

// elsewhere is said of a process that has none of the devices.
const elsewhere = "its chips are not on this host"

// list names the devices a process uses: "device 3", "devices 0-7"; "" if it
// uses none of this host.
func list(p *model.Process) string {
	var idx []int
	for i := range p.Devices {
		if p.Devices[i].Device != model.NoDevice {
			idx = append(idx, p.Devices[i].Device)
		}
	}
	switch len(idx) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("device %d", idx[0])
	default:
		return "devices " + words.Ranges(idx)
	}
}

// staleSlots says which processes left memory behind when they died.
func (c *comparison) staleSlots() {
	type key struct {
		region string
		pid    int
	}
	old := map[key]bool{}
	for i := range c.old.StaleSlots {
		old[key{c.old.StaleSlots[i].Region, c.old.StaleSlots[i].PID}] = true
	}
	for i := range c.now.StaleSlots {
		g := &c.now.StaleSlots[i]
		if old[key{g.Region, g.PID}] {
			continue
		}
		var buses []string
		if d := c.now.Device(g.Device); d != nil {
			buses = []string{d.BusID}
		}
		c.add(model.EventDied, model.Warning, buses, fmt.Sprintf("%d died", g.PID),
			fmt.Sprintf("%s (%d) died and left %s accounted", escape(g.Name), g.PID, words.FigureInText(g.Bytes.Total())))
		c.events[len(c.events)-1].PID = g.PID
	}
}
