// Package chip simulates one Tenstorrent chip: the words its firmware
// publishes, the PCIe counters beside them, and the physics that move both.
//
// It knows nothing of files: the driver package reads words from it and
// prints them the way tt-kmd does.
package chip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// Spec is what a kind of board looks like to the simulation. Limits come from
// the catalogue where it has them; the rest is plausible and made up.
type Spec struct {
	Card string
	Arch model.Arch
	Code uint16 // board code: in the serial, and PCI subsystem_device

	Endpoints int // PCIe functions of one board
	PerTray   int // of a Galaxy; 0 elsewhere

	IdleW, BusyW, LimitW float64
	IdleMV, BusyMV       float64
	MaxMV, MinMV         float64
	LimitA               float64
	LimitC               float64
	FMin, FMax           uint32 // MHz
	AXIClk, ARCClk       uint32 // MHz
	Fan                  bool   // firmware publishes a fan speed
	LinkGen, LinkWidth   int
}

// Cards lists the boards that can be simulated, as --boards takes them.
func Cards() []string {
	var names []string
	for _, b := range board.All() {
		if _, ok := specOf(b); ok {
			names = append(names, b.Card)
		}
	}
	slices.Sort(names)
	return names
}

// SpecOf finds a board by its name.
func SpecOf(card string) (Spec, error) {
	if b, ok := board.ByCard(card); ok {
		if s, ok := specOf(b); ok {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("no board %q to simulate; there are %s", card, strings.Join(Cards(), ", "))
}

func specOf(b board.Board) (Spec, bool) {
	s := Spec{
		Card: b.Card, Arch: b.Arch, Code: b.Code,
		Endpoints: b.Endpoints, PerTray: b.PerTray,
		LimitW: b.PowerLimit.Now, LimitA: b.CurrentLimit,
		MaxMV: b.VoltageLimit * 1000, LimitC: b.ThrottleAt,
	}
	switch {
	case b.Unlisted || b.Endpoints == 0:
		return Spec{}, false // no driver would say its name
	case b.Arch == model.Wormhole:
		s.IdleW, s.IdleMV, s.BusyMV, s.MinMV = 14, 730, 850, 700
		s.FMin, s.FMax, s.AXIClk, s.ARCClk = 500, 1000, 900, 540
		s.LimitW, s.LimitA, s.MaxMV, s.LimitC = orElse(s.LimitW, 85), orElse(s.LimitA, 160), orElse(s.MaxMV, 950), orElse(s.LimitC, 75)
		s.LinkGen, s.LinkWidth = 4, 16
	case b.Arch == model.Blackhole:
		s.IdleW, s.IdleMV, s.BusyMV, s.MinMV = 16, 719, 850, 700
		s.FMin, s.FMax, s.AXIClk, s.ARCClk = 800, 1350, 960, 800
		s.LimitW, s.LimitA, s.MaxMV, s.LimitC = orElse(s.LimitW, 150), orElse(s.LimitA, 200), orElse(s.MaxMV, 900), orElse(s.LimitC, 90)
		s.LinkGen, s.LinkWidth = 5, 16
		s.Fan = b.Fan || b.Card == "p300c" // a real p300c reports a speed without running the fan
	default:
		return Spec{}, false
	}
	if s.Endpoints > 1 {
		s.LinkWidth = 8
	}
	s.BusyW = min(0.85*s.LimitW, 160)
	return s, true
}

func orElse(v, other float64) float64 {
	if v == 0 {
		return other
	}
	return v
}

// Galaxy reports whether the board is a Galaxy.
func (s Spec) Galaxy() bool { return s.PerTray > 0 }

// ParseBoards reads a --boards list: "n150,2xn300,galaxy-blackhole" gives one
// Spec per board.
func ParseBoards(list string) ([]Spec, error) {
	var specs []Spec
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		count := 1
		if n, rest, ok := strings.Cut(item, "x"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
			var err error
			if count, err = strconv.Atoi(n); err != nil || count < 1 || count > maxDevices {
				return nil, fmt.Errorf("board list item %q: the count must be 1 to %d", item, maxDevices)
			}
			item = rest
		}
		if item == "" {
			return nil, fmt.Errorf("board list %q has an empty item", list)
		}
		s, err := SpecOf(item)
		if err != nil {
			return nil, err
		}
		specs = append(specs, slices.Repeat([]Spec{s}, count)...)
	}
	endpoints := 0
	for _, s := range specs {
		endpoints += s.Endpoints
	}
	if endpoints > maxDevices {
		return nil, fmt.Errorf("the boards %q have %d PCIe functions; the driver takes %d (its max_devices)", list, endpoints, maxDevices)
	}
	return specs, nil
}

// maxDevices is how many chips the driver binds on one host.
const maxDevices = 32
