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

	"github.com/ttmon/ttmon/internal/book/runs"
)

// index says which runs a compressed file has, so that one run is found without
// unpacking the others: their numbers, and a hash of every other name by which they
// are asked for. It is a skippable frame before the compressed one, which zstd and
// older releases of ttmon pass over.
type index struct {
	numbers []uint64 // in order
	names   []uint32 // hashes, in order
}

const (
	skippable = 0x184D2A50 // the first of the magic numbers of such frames
	indexMark = "ttmon runs 2\n"
	maxIndex  = 1 << 20
)

var errNoIndex = errors.New("the file has no index of its runs")

// newIndex is that of the runs of a file.
func newIndex(list []runs.Run) index {
	numbers, names := map[uint64]bool{}, map[uint32]bool{}
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

func hashName(name string) uint32 { return crc32.ChecksumIEEE([]byte(name)) }

// frame is the index as it is written: both lists behind their lengths.
func (x index) frame() []byte {
	body := []byte(indexMark)
	for _, part := range []any{uint32(len(x.numbers)), uint32(len(x.names)), x.numbers, x.names} {
		body, _ = binary.Append(body, binary.LittleEndian, part) // they have fixed sizes
	}
	head := binary.LittleEndian.AppendUint32(nil, skippable)
	return append(binary.LittleEndian.AppendUint32(head, uint32(len(body))), body...)
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
	if !ok || len(b) < 8 {
		return x, errNoIndex
	}
	numbers, names := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	if b = b[8:]; uint64(len(b)) != 8*numbers+4*names {
		return x, errNoIndex
	}
	x = index{make([]uint64, numbers), make([]uint32, names)}
	_, err = binary.Decode(b, binary.LittleEndian, x.numbers)
	_, err2 := binary.Decode(b[8*numbers:], binary.LittleEndian, x.names)
	return x, errors.Join(err, err2)
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
