package blocks

import (
	"encoding/json"
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
)

// The JSON of a process is what the API answers and what a daemon passes to its
// successor. Derived numbers are written for readers of the API, and computed again
// from the blocks when it is read back.

type listJSON struct {
	Pool string `json:"pool"`
	Geometry
	Origin         Origin  `json:"origin"`
	Exact          bool    `json:"exact"`
	Cut            uint64  `json:"bank_cut_bytes,omitzero"`
	Contradictions uint64  `json:"contradictions,omitzero"`
	FreedUnseen    uint64  `json:"freed_unseen,omitzero"`
	Inherited      bool    `json:"inherited,omitzero"`
	Used           *uint64 `json:"used_bytes"`
	UsedBound      string  `json:"used_bound,omitzero"`
	AskedUnknown   uint64  `json:"blocks_of_unknown_request,omitzero"`
	BankBytes      uint64  `json:"bank_used_bytes"`
	Occupied       *uint64 `json:"occupied_bytes"`
	Space          *Space  `json:"space"`
	Peak           Peak    `json:"peak"`
	Blocks         []Block `json:"blocks"`
}

// MarshalJSON implements json.Marshaler.
func (l *List) MarshalJSON() ([]byte, error) {
	j := listJSON{
		Pool: l.Pool.String(), Geometry: l.Geometry, Origin: l.Origin, Exact: l.Exact(), Cut: l.Cut,
		Contradictions: l.Contradictions, FreedUnseen: l.FreedUnseen, Inherited: l.Inherited,
		AskedUnknown: l.sum.AskedUnknown, BankBytes: l.sum.BankBytes,
		Peak: l.Peak, Blocks: make([]Block, 0, l.sum.Blocks),
	}
	if used, bound, known := l.Used().Best(); known {
		j.Used, j.UsedBound = &used, bound.String()
	}
	if occupied, known := l.Occupied(); known {
		j.Occupied = &occupied
	}
	if space, known := l.Space(); known {
		j.Space = &space
	}
	for b := range l.All() {
		j.Blocks = append(j.Blocks, b)
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *List) UnmarshalJSON(data []byte) error {
	var j listJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	pool, ok := model.PoolNamed(j.Pool)
	if !ok {
		return fmt.Errorf("a list of blocks of the unknown pool %q", j.Pool)
	}
	*l = *NewList(j.Geometry, j.Origin)
	l.Pool, l.Cut, l.FreedUnseen, l.Inherited = pool, j.Cut, j.FreedUnseen, j.Inherited
	for _, b := range j.Blocks {
		l.Alloc(b)
	}
	if l.Contradictions > 0 {
		return fmt.Errorf("%d blocks of %s overlap others", l.Contradictions, j.Pool)
	}
	l.Contradictions, l.Peak = j.Contradictions, j.Peak
	return nil
}

type allocatorJSON struct {
	ID        uint64   `json:"id"`
	Chips     []uint64 `json:"chips"`
	Lists     []*List  `json:"pools"`
	SubDevice *int     `json:"sub_device,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (a *Allocator) MarshalJSON() ([]byte, error) { return json.Marshal(allocatorJSON(*a)) }

// UnmarshalJSON implements json.Unmarshaler.
func (a *Allocator) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, (*allocatorJSON)(a))
}

type processJSON struct {
	PID        int          `json:"pid"`
	Start      uint64       `json:"start_ticks"`
	Release    string       `json:"release,omitzero"`
	Late       bool         `json:"late"`
	Seen       []uint64     `json:"seen_chips,omitzero"`
	Lost       uint64       `json:"lost_events"`
	Allocators []*Allocator `json:"allocators"`
	Programs   []*Program   `json:"programs,omitzero"` // circular buffers
}

// MarshalJSON implements json.Marshaler.
func (p *Process) MarshalJSON() ([]byte, error) { return json.Marshal(processJSON(*p)) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Process) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, (*processJSON)(p))
}
