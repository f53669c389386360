package keep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/runs"
)

// index says which runs a compressed file has, so that one run is found without
// unpacking the others: their numbers, and a hash of every other name by which they
// are asked for. It is a skippable frame before the compressed one, which zstd and
// older releases of ttmon pass over.
type index struct {
	numbers []uint64 // in order
	names   []uint64 // hashes, in order
}

const (
	skippable = 0x184D2A50 // the first of the magic numbers of such frames
	indexMark = "ttmon runs 1\n"
	maxIndex  = 1 << 20
)

var errNoIndex = errors.New("the file has no index of its runs")

// newIndex is that of the runs of a file.
func newIndex(list []runs.Run) index {
	numbers, names := map[uint64]bool{}, map[uint64]bool{}
	for i := range list {
		r := &list[i]
		numbers[r.ID] = true
		for _, p := range r.Processes {
			names[hashName(strconv.Itoa(p.PID))] = true
		}
		if r.Job != nil {
			names[hashName(r.Job.ID)], names[hashName(r.Job.Name)] = true, true
		}
	}
	return index{slices.Sorted(maps.Keys(numbers)), slices.Sorted(maps.Keys(names))}
}

// hashName has 24 bits: of some hundreds of names in a file few others look like one.
func hashName(name string) uint64 {
	return uint64(crc32.ChecksumIEEE([]byte(name)) >> 8)
}

// frame is the index as it is written.
func (x index) frame() []byte {
	b := []byte(indexMark)
	for _, list := range [][]uint64{x.numbers, x.names} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		before := uint64(0)
		for _, n := range list {
			b = binary.AppendUvarint(b, n-before)
			before = n
		}
	}
	head := binary.LittleEndian.AppendUint32(nil, skippable)
	return append(binary.LittleEndian.AppendUint32(head, uint32(len(b))), b...)
}

// readIndex reads the index of a file.
func readIndex(path string) (x index, err error) {
	f, err := os.Open(path)
	if err != nil {
		return x, err
	}
	defer f.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(f, head); err != nil {
		return x, err
	}
	size := binary.LittleEndian.Uint32(head[4:])
	if binary.LittleEndian.Uint32(head) != skippable || size > maxIndex {
		return x, errNoIndex
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(f, body); err != nil {
		return x, err
	}
	return parseIndex(body)
}

// parseIndex reads what a frame has behind its head.
func parseIndex(b []byte) (x index, err error) {
	b, ok := bytes.CutPrefix(b, []byte(indexMark))
	if !ok {
		return x, errNoIndex
	}
	for _, list := range []*[]uint64{&x.numbers, &x.names} {
		if *list, b, ok = parseNumbers(b); !ok {
			return index{}, errNoIndex
		}
	}
	return x, nil
}

// parseNumbers reads one list. Each of its numbers takes a byte at least, so that a
// damaged count takes no more memory than the file has bytes.
func parseNumbers(b []byte) (list []uint64, rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)-n) {
		return nil, nil, false
	}
	b = b[n:]
	list = make([]uint64, 0, count)
	last := uint64(0)
	for range count {
		step, n := binary.Uvarint(b)
		if n <= 0 || last+step < last {
			return nil, nil, false
		}
		last += step
		list, b = append(list, last), b[n:]
	}
	return list, b, true
}

// hasNumber reports whether the file has a run with one of the names as its number.
func (x index) hasNumber(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		id, ok := runs.ParseID(name)
		if !ok {
			return false
		}
		_, found := slices.BinarySearch(x.numbers, id)
		return found
	})
}

// mayHave reports whether the file may have a run with one of the names: its number,
// or that of a process, or its job.
func (x index) mayHave(names []string) bool {
	return x.hasNumber(names) || slices.ContainsFunc(names, func(name string) bool {
		_, found := slices.BinarySearch(x.names, hashName(name))
		return found
	})
}
