package ledger

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// layout is that of entries and tables in the file of buffers. A program does not
// take over one of another layout: raise it with every change of entry, kind or
// the hash of a table.
const layout = 1

// State is a ledger without its buffers, which are in a file. It is encoded as
// JSON; new fields may come, others stay.
type State struct {
	Layout    int                `json:"layout"`
	Arena     arenaState         `json:"arena"`
	Processes []processState     `json:"processes"`
	Events    uint64             `json:"events"`
	LeakSeq   uint64             `json:"leak_seq"`
	Leaks     []Leftovers        `json:"leaks"`
	Devices   []int32            `json:"devices"`
	Peaks     [][NumPools]uint64 `json:"peaks"` // of all processes, by device
}

type processState struct {
	Info     Info       `json:"info"`
	Epoch    time.Time  `json:"epoch"`
	Last     time.Time  `json:"last"`
	Counters Counters   `json:"counters"`
	Devices  []Use      `json:"devices"` // by index
	Table    tableState `json:"table"`
}

type tableState struct {
	Seed    uint64 `json:"seed"`
	Buckets int    `json:"buckets"`
	Current int    `json:"current"`
	// Slabs are place, length, used, free and live of each, and whether it is listed,
	// and Heads place and length. A million buffers have three thousand of them, and
	// clients wait meanwhile: as text they would take as long as all the rest.
	Slabs numbers `json:"slabs"`
	Heads numbers `json:"heads"`
	Roomy []int   `json:"roomy"`
	Holes []int   `json:"holes"`
}

const (
	ofSlab = 6 // numbers
	ofHead = 2
)

// numbers are encoded as bytes.
type numbers []uint32

// MarshalJSON is for package json.
func (n numbers) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 4*len(n))
	for _, x := range n {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return json.Marshal(b)
}

// UnmarshalJSON is for package json.
func (n *numbers) UnmarshalJSON(text []byte) error {
	var b []byte
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	for ; len(b) >= 4; b = b[4:] {
		*n = append(*n, binary.LittleEndian.Uint32(b))
	}
	return nil
}

// Reserve makes the file of buffers now: later there may be no descriptor for it.
func (l *Ledger) Reserve() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.arena.open()
}

// Save returns the state for a successor, and the file of its buffers, which stays
// the ledger's; -1 if there are none. The sources have been stopped: the ledger does
// not change any more, unless the successor gives up.
func (l *Ledger) Save() (State, int) {
	l.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	st := State{Layout: layout, Arena: l.arena.state(), Events: l.events, LeakSeq: l.leakSeq, Leaks: l.leaks}
	for _, p := range l.procs {
		ps := processState{Info: p.info, Epoch: p.epoch, Last: p.last, Counters: p.counters, Table: p.table.state()}
		for i := range p.devices {
			ps.Devices = append(ps.Devices, p.devices[i].view(p.ids[i]))
		}
		st.Processes = append(st.Processes, ps)
	}
	for id, u := range l.devices {
		st.Devices, st.Peaks = append(st.Devices, id), append(st.Peaks, u.peak)
	}
	return st, l.arena.fd
}

func (t *table) state() tableState {
	st := tableState{Seed: t.seed, Buckets: t.buckets, Current: t.current, Roomy: t.roomy, Holes: t.holes}
	for i := range t.slabs {
		s := &t.slabs[i]
		listed := uint32(0)
		if s.listed {
			listed = 1
		}
		st.Slabs = append(st.Slabs, uint32(s.at), uint32(len(s.entries)), uint32(s.used), s.free, uint32(s.live), listed)
	}
	for _, c := range t.heads {
		st.Heads = append(st.Heads, uint32(c.at), uint32(len(c.first)))
	}
	return st
}

// Readable reports whether this program can take over a ledger.
func (st *State) Readable() error {
	if st.Layout != layout {
		return fmt.Errorf("the ledger has layout %d, this program reads %d", st.Layout, layout)
	}
	return nil
}

// Restore returns the ledger of a predecessor. fd is the file of its buffers, or
// -1; it is the ledger's from then on. Limits do not apply: what the predecessor
// kept is kept.
func Restore(o Options, st State, fd int) (*Ledger, error) {
	l := New(o)
	if err := l.restore(&st, fd); err != nil {
		l.arena.close()
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return l, nil
}

func (l *Ledger) restore(st *State, fd int) error {
	if err := st.Readable(); err != nil {
		return err
	}
	if fd >= 0 {
		if err := l.arena.restore(st.Arena, fd); err != nil {
			return err
		}
	}
	l.events, l.leakSeq, l.leaks = st.Events, st.LeakSeq, st.Leaks
	for i := range st.Processes {
		if err := l.restoreProcess(&st.Processes[i]); err != nil {
			return fmt.Errorf("process %d: %w", st.Processes[i].Info.PID, err)
		}
	}
	if len(st.Peaks) != len(st.Devices) {
		return errors.New("devices without peaks")
	}
	for i, id := range st.Devices {
		if u := l.devices[id]; u != nil {
			u.peak = st.Peaks[i]
		}
	}
	return nil
}

func (l *Ledger) restoreProcess(st *processState) error {
	p := &Process{info: st.Info, epoch: st.Epoch, last: st.Last, counters: st.Counters}
	var err error
	if p.table, err = l.arena.restoreTable(&st.Table); err != nil {
		return err
	}
	if l.procs[p.info.ProcessID] != nil || len(st.Devices) > maxDevices {
		return errors.New("it comes twice, or has too many devices")
	}
	l.procs[p.info.ProcessID] = p
	l.addToOwner(p)
	l.live += p.table.live
	p.owner.live += p.table.live
	p.owner.slots += p.table.slots
	for _, u := range st.Devices {
		if u.Device < 0 || u.Device > MaxDevice {
			return fmt.Errorf("impossible device %d", u.Device)
		}
		total := l.addDeviceUser(p, u.Device)
		for pool := range NumPools {
			total.bytes[pool] += u.Bytes[pool]
			total.count[pool] += u.Buffers[pool]
		}
		p.ids = append(p.ids, u.Device)
		p.devices = append(p.devices, deviceUse{use: use{bytes: u.Bytes, peak: u.Peak, count: u.Buffers}, total: total})
	}
	return nil
}

// restoreTable checks what would lead out of the file: it was written by another
// release, perhaps.
func (a *arena) restoreTable(st *tableState) (table, error) {
	t := newTable(a)
	t.seed, t.current, t.roomy, t.holes = st.Seed, st.Current, st.Roomy, st.Holes
	for s := range slices.Chunk(st.Slabs, ofSlab) {
		if len(s) < ofSlab {
			return t, errPlace
		}
		added := slab{at: place(s[0]), used: int(s[2]), free: s[3], live: int(s[4]), listed: s[5] != 0}
		if n := int(s[1]); n > 0 {
			if !pieceFits(a, added.at, n, firstLen, slabLen, entryBytes) || added.used > n || added.live > added.used {
				return t, errPlace
			}
			added.entries = a.entries(added.at, n)
			t.slots += n
			t.live += added.live
		}
		t.slabs = append(t.slabs, added)
	}
	buckets := 0
	for h := range slices.Chunk(st.Heads, ofHead) {
		if len(h) < ofHead || !pieceFits(a, place(h[0]), int(h[1]), firstLen, headLen, headBytes) {
			return t, errPlace
		}
		t.heads = append(t.heads, headChunk{a.heads(place(h[0]), int(h[1])), place(h[0])})
		buckets += int(h[1])
	}
	if st.Buckets < 0 || st.Buckets > buckets || (st.Buckets == 0) != (len(t.slabs) == 0) || st.Current < 0 || st.Current > max(len(t.slabs)-1, 0) {
		return t, errors.New("its table is not whole")
	}
	for _, i := range append(append([]int{}, st.Roomy...), st.Holes...) {
		if i < 0 || i >= len(t.slabs) {
			return t, errPlace
		}
	}
	if st.Buckets > 0 {
		t.setBuckets(st.Buckets)
	}
	return t, nil
}

// pieceFits reports whether n elements, a power of two of them, lie within the file.
func pieceFits(a *arena, at place, n, least, most, size int) bool {
	return n >= least && n <= most && n&(n-1) == 0 && a.holds(at, n*size/unit)
}
