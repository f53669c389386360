package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

// chipRef is a chip as a tt-metal program knows it.
type chipRef struct {
	name    string // of the device, with R for an n300's second chip
	id      uint64 // UMD's chip_unique_id
	logical int    // UMD's chip id: its place in the order of PCI addresses
}

// endpoint is a device as its files describe it.
type endpoint struct {
	index  int
	bdf    string
	serial uint64
	asic   uint64
	board  board.Board
}

// chipsOf finds the chips of a workload's devices the way UMD does, from what
// the driver's files say.
func chipsOf(s workload.Spec) ([]chipRef, error) {
	var ends []endpoint
	for _, index := range s.Devices {
		e, err := readEndpoint(s.Root, index)
		if err != nil {
			return nil, err
		}
		ends = append(ends, e)
	}
	slices.SortFunc(ends, func(a, b endpoint) int { return strings.Compare(a.bdf, b.bdf) })
	var chips []chipRef
	seen := make(map[uint64]bool) // serials of which one endpoint was met
	for logical, e := range ends {
		chips = append(chips, chipRef{strconv.Itoa(e.index), e.board.ChipID(e.silicon(seen[e.serial])), logical})
		seen[e.serial] = true
	}
	for _, e := range ends { // chips without an endpoint are numbered last
		if e.board.Card == "n300" {
			far := e.silicon(false)
			far.Location = 1
			chips = append(chips, chipRef{strconv.Itoa(e.index) + "R", e.board.ChipID(far), len(chips)})
		}
	}
	return chips, nil
}

// silicon is what the chip's firmware would say; second tells whether the
// other endpoint of its board came before it.
func (e endpoint) silicon(second bool) board.Silicon {
	s := board.Silicon{Serial: e.serial, ASIC: e.asic}
	switch {
	case e.board.Galaxy():
		bus, _ := strconv.ParseUint(e.bdf[5:7], 16, 8)
		s.Linked, s.Location = true, int(bus&0xF)
		s.TraySerial = fmt.Sprintf("519000%c", 'A'+rune(bus>>6))
	case e.board.Endpoints == 2: // p300: the left chip, on the first link, is number 1
		s.Linked = true
		if !second {
			s.Location = 1
		}
	case e.board.Card == "n300":
		s.Linked = true
	}
	return s
}

func readEndpoint(root string, index int) (e endpoint, err error) {
	dir := fmt.Sprintf("%s/sys/class/tenstorrent/tenstorrent!%d/", root, index)
	e.index = index
	device, err := os.Readlink(dir + "device")
	if err != nil {
		return e, err
	}
	e.bdf = filepath.Base(device)
	for name, id := range map[string]*uint64{"tt_serial": &e.serial, "tt_asic_id": &e.asic} {
		text, err := os.ReadFile(dir + name)
		if err != nil {
			return e, fmt.Errorf("a tt-metal program needs the chip's identity: %w", err)
		}
		if *id, err = strconv.ParseUint(strings.TrimSpace(string(text)), 16, 64); err != nil {
			return e, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	card, err := os.ReadFile(dir + "tt_card_type")
	if err != nil {
		return e, err
	}
	e.board, _ = board.ByCard(strings.TrimSpace(string(card)))
	return e, nil
}
