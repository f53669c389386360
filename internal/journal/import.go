package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/eventlog"
)

// Import takes in what releases before there was a journal kept below dir: events
// as lines of JSON, and a snapshot every ten seconds. It removes what it has taken
// in, and does nothing where the journal has something.
func (j *Journal) Import(dir string) error {
	events, snapshots := filepath.Join(dir, "events"), filepath.Join(dir, "snapshots")
	if len(j.list()) > 0 || j.Last() > 0 || j.failed != nil {
		return nil
	}
	err := j.importEvents(events)
	if err == nil {
		err = j.importSnapshots(snapshots)
	}
	if err != nil {
		return fmt.Errorf("importing the history of an earlier release: %w", err)
	}
	return nil
}

func (j *Journal) importEvents(dir string) error {
	if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
		return nil
	}
	log, err := eventlog.Open(dir)
	if err != nil {
		return err
	}
	list := log.Range(0, 1<<20)
	log.Close()
	if len(list) > 0 {
		j.writing.Lock()
		err = j.storeEvents(list)
		j.writing.Unlock()
		if err != nil {
			return err
		}
	}
	j.mu.Lock()
	j.recall()
	j.mu.Unlock()
	return os.RemoveAll(dir)
}

func (j *Journal) importSnapshots(dir string) error {
	names, _ := filepath.Glob(filepath.Join(dir, "*.snapshots"))
	if len(names) == 0 {
		return nil
	}
	slices.SortFunc(names, func(a, b string) int { // they are named by a time
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		if a < b {
			return -1
		}
		return 1
	})
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return err
	}
	defer dec.Close()
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		err = oldSnapshots(f, dec, j.Snapshot)
		f.Close()
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// A file of snapshots is a sequence of records: magic, length, time in Unix
// milliseconds, CRC-32 of the rest, and the compressed snapshot.
const (
	oldMagic  = 0x31736e54 // "Tns1"
	oldHeader = 4 + 4 + 8 + 4
	oldMost   = 16 << 20
)

// oldSnapshots calls f with the snapshots of a file, up to the first that is not
// whole. One that is damaged is left out.
func oldSnapshots(in io.Reader, dec *zstd.Decoder, f func(time.Time, []byte) error) error {
	var h [oldHeader]byte
	for {
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return nil
		}
		n := binary.LittleEndian.Uint32(h[4:])
		if binary.LittleEndian.Uint32(h[:]) != oldMagic || n > oldMost {
			return nil
		}
		packed, err := io.ReadAll(io.LimitReader(in, int64(n)))
		if err != nil || len(packed) < int(n) {
			return nil
		}
		if crc32.ChecksumIEEE(packed) != binary.LittleEndian.Uint32(h[16:]) {
			continue
		}
		body, err := dec.DecodeAll(packed, nil)
		if err != nil {
			continue
		}
		if err := f(time.UnixMilli(int64(binary.LittleEndian.Uint64(h[8:]))), body); err != nil && !errors.Is(err, errClosed) {
			return err
		}
	}
}
