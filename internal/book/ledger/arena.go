package ledger

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is the memory of all tables: a file without a name, mapped as a whole
// and used as far as it is needed. It has no pointers, so that the program
// that takes our place maps the file and resumes, however many buffers live.
//
// Pieces are 32 bytes times a power of two, up to a full slab. A slab that is
// cut up stays cut up: what tables need of each size grows and shrinks with
// their number.
type arena struct {
	limit int // bytes at most
	fd    int // -1 until there is a first piece
	mem   []byte
	used  int                 // units ever used
	free  [pieceSizes][]place // by size, in units of a power of two
}

// place is where a piece begins, in units.
type place uint32

const (
	unit       = 32           // bytes
	slabUnits  = slabLen      // an entry is a unit
	pieceSizes = slabBits + 1 // 1, 2, 4 … slabUnits
	// keptSlabs are kept for the next process that grows, when they are free; the
	// kernel gets the memory of others back.
	keptSlabs = 256
)

const (
	entryBytes = int(unsafe.Sizeof(entry{}))
	headBytes  = int(unsafe.Sizeof(uint32(0)))
)

// maxArena is what places can name.
const maxArena = unit << 32

// newArena returns memory for the tables of so many buffers. Slabs may be half
// empty, and heads are a quarter of the entries, or half after a table has shrunk.
func newArena(buffers int) *arena {
	perBuffer := 2 * (entryBytes + 4*headBytes)
	limit := min(buffers, maxArena/perBuffer)*perBuffer + minArena
	return &arena{fd: -1, limit: min(limit, maxArena)}
}

// minArena is for the tables of processes with few buffers.
const minArena = 256 << 20

// open makes the file, when the first piece is wanted: many ledgers stay empty.
func (a *arena) open() error {
	if a.fd >= 0 {
		return nil
	}
	fd, err := unix.MemfdCreate("ttmond-buffers", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("making a file for buffers: %w", err)
	}
	if err = a.mapFile(fd); err != nil {
		unix.Close(fd)
	}
	return err
}

// mapFile maps a file, as long as the limit or longer.
func (a *arena) mapFile(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("mapping the file of buffers: %w", err)
	}
	a.limit = int(min(max(int64(a.limit), st.Size), maxArena))
	if err := unix.Ftruncate(fd, int64(a.limit)); err != nil {
		return fmt.Errorf("sizing the file of buffers: %w", err)
	}
	mem, err := unix.Mmap(fd, 0, a.limit, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("mapping the file of buffers: %w", err)
	}
	a.fd, a.mem = fd, mem
	return nil
}

// close unmaps everything. Nothing may use a table any more.
func (a *arena) close() {
	if a.fd >= 0 {
		_ = unix.Munmap(a.mem)
		unix.Close(a.fd)
		a.fd, a.mem = -1, nil
	}
}

// take returns an empty piece of so many units, a power of two; false if there is
// no memory left.
func (a *arena) take(units int) (place, bool) {
	size := bits.TrailingZeros(uint(units))
	if n := len(a.free[size]); n > 0 {
		at := a.free[size][n-1]
		a.free[size] = a.free[size][:n-1]
		clear(a.bytes(at, units))
		return at, true
	}
	if units < slabUnits {
		slab, ok := a.take(slabUnits)
		if !ok {
			return 0, false
		}
		for rest := slabUnits - units; rest > 0; rest -= units {
			a.free[size] = append(a.free[size], slab+place(rest))
		}
		return slab, true
	}
	if a.open() != nil || (a.used+slabUnits)*unit > len(a.mem) {
		return 0, false
	}
	at := place(a.used)
	a.used += slabUnits
	return at, true
}

// give takes a piece back.
func (a *arena) give(at place, units int) {
	size := bits.TrailingZeros(uint(units))
	if units == slabUnits && len(a.free[size]) >= keptSlabs {
		_ = unix.Fallocate(a.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at)*unit, int64(slabUnits)*unit)
	}
	a.free[size] = append(a.free[size], at)
}

func (a *arena) bytes(at place, units int) []byte {
	return a.mem[int(at)*unit:][: units*unit : units*unit]
}

// entries and heads are pieces as tables use them.

func (a *arena) entries(at place, n int) []entry {
	return unsafe.Slice((*entry)(unsafe.Pointer(&a.bytes(at, n*entryBytes/unit)[0])), n)
}

func (a *arena) heads(at place, n int) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(&a.bytes(at, n*headBytes/unit)[0])), n)
}

// arenaState is what a successor needs beside the file.
type arenaState struct {
	Used int       `json:"used"`
	Free [][]place `json:"free"`
}

func (a *arena) state() arenaState { return arenaState{a.used, a.free[:]} }

// restore maps the file of a predecessor, which is ours from then on.
func (a *arena) restore(st arenaState, fd int) error {
	if err := a.mapFile(fd); err != nil {
		return err
	}
	if len(st.Free) != pieceSizes || st.Used < 0 || st.Used > len(a.mem)/unit || st.Used%slabUnits != 0 {
		return errors.New("the file of buffers has another layout")
	}
	a.used = st.Used
	for size, list := range st.Free {
		for _, at := range list {
			if !a.holds(at, 1<<size) {
				return errPlace
			}
		}
		a.free[size] = list
	}
	return nil
}

var errPlace = errors.New("a piece lies outside of the file of buffers")

// holds reports whether a piece lies within what is used.
func (a *arena) holds(at place, units int) bool { return int(at)+units <= a.used && int(at)%units == 0 }
