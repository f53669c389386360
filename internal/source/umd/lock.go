package umd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// LockDir is where UMD keeps its locks, on the host and in every container.
const LockDir = "/dev/shm"

// Lock reports whether a process has a chip, and its remote chips, in use: UMD
// holds the lock from starting the device to closing it. The files stay when no
// process holds them.
type Lock struct {
	Device    int // N of /dev/tenstorrent/N
	Held      model.Reading[bool]
	OwnerDied bool // no process holds it, and the last holder was killed
	// TID and PID are the holder's, in its own pid namespace; 0 if not held. PID
	// is missing where the file does not say, or is not up to date yet.
	TID int
	PID model.Reading[int]
}

const lockPrefix, lockSuffix = "TT_UMD_LOCK.CHIP_IN_USE_", "_PCIe"

// lockIndex is the device in the name of a lock file. UMD before August 2025
// wrote no suffix; other suffixes are not about PCIe.
func lockIndex(name string) (index int, ok bool) {
	digits, ok := strings.CutPrefix(name, lockPrefix)
	digits = strings.TrimSuffix(digits, lockSuffix)
	if !ok || len(digits) > 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return int(n), err == nil
}

// Locks reads the locks in a directory: LockDir, or that of a container below
// /proc/<pid>/root. They come by device, one each. A directory that is not
// there has none.
func Locks(root hostfs.Root, dir string) ([]Lock, error) {
	d, err := root.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading UMD's locks: %w", err)
	}
	defer d.Close()
	var locks []Lock
	var dirents [4096]byte
	err = d.Each(dirents[:], func(name []byte) bool {
		if index, ok := lockIndex(string(name)); ok {
			locks = append(locks, readLock(d, string(name), index))
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("reading UMD's locks in %s: %w", dir, err)
	}
	return onePerDevice(locks), nil
}

func readLock(d hostfs.Dir, name string, index int) Lock {
	var buf [lockMax]byte
	n, _, err := d.ReadHere(name, buf[:]) // every user may write there
	if err != nil {
		return Lock{Device: index, Held: model.Missing[bool](hostfs.Status(err), err.Error())}
	}
	l := parseLock(buf[:n])
	l.Device = index
	return l
}

// onePerDevice sorts the locks and joins those of old and new UMDs: a device
// is in use if either says so.
func onePerDevice(locks []Lock) []Lock {
	rank := func(l *Lock) int {
		switch {
		case l.Held.V:
			return 0
		case l.Held.Known():
			return 1
		}
		return 2
	}
	sorted.By(locks, func(a, b *Lock) int {
		if a.Device != b.Device {
			return a.Device - b.Device
		}
		return rank(a) - rank(b)
	})
	return slices.CompactFunc(locks, func(a, b Lock) bool { return a.Device == b.Device })
}

// A lock file holds a robust pthread mutex of glibc, then UMD's own fields:
//
//	offset  x86-64  aarch64
//	        0       0        futex word: owner's tid, or 0
//	        40      48       magic
//	        48      56       owner's tid  (since November 2025)
//	        52      60       owner's pid  (since November 2025)
const (
	lockMagic = 0x5454554D444D5458
	lockMax   = 64 // bytes that matter

	futexTID  = 0x3FFFFFFF
	ownerDied = 0x40000000 // set by the kernel in place of the tid of a dead owner
)

// parseLock decodes a lock file. The futex word decides: the kernel keeps it
// right even when a holder is killed. UMD's fields are written after the lock
// was acquired and are not cleared, so they count only if they agree with it.
func parseLock(b []byte) Lock {
	word := func(off int) uint32 {
		if off+4 > len(b) {
			return 0
		}
		return binary.LittleEndian.Uint32(b[off:])
	}
	isMagic := func(off int) bool {
		return off+8 <= len(b) && binary.LittleEndian.Uint64(b[off:]) == lockMagic
	}
	var owner int
	switch {
	case isMagic(40):
		owner = 48
	case isMagic(48):
		owner = 56
	case len(b) == 0 || !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }):
		return Lock{Held: model.Missing[bool](model.Pending, "the lock file is being made")}
	default:
		return Lock{Held: model.Missing[bool](model.Unsupported, "the lock file has a layout that is not known")}
	}
	futex := word(0)
	tid := futex & futexTID
	if tid == 0 {
		return Lock{Held: model.Value(false), OwnerDied: futex&ownerDied != 0}
	}
	l := Lock{Held: model.Value(true), TID: int(tid)}
	switch pid := int32(word(owner + 4)); {
	case owner+8 > len(b):
		l.PID = model.Missing[int](model.Absent, "the holder's UMD is of before November 2025 and does not say")
	case word(owner) != tid || pid <= 0:
		l.PID = model.Missing[int](model.Pending, "the holder has not written it yet")
	default:
		l.PID = model.Value(int(pid))
	}
	return l
}
