package uprobe

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
)

// endless is a ring that is never empty: programs allocate all the time.
type endless struct {
	sample []byte
	reads  int
}

func (e *endless) ReadInto(r *ringbuf.Record) error {
	e.reads++
	if e.reads > 1<<20 {
		return errors.New("it was read for ever")
	}
	r.RawSample, r.Remaining = e.sample, 4096
	return nil
}

// TestSyncUnderLoad: Sync returns when all is applied that was in the rings at its
// call, also while they are never empty.
func TestSyncUnderLoad(t *testing.T) {
	s := opened(t, Options{})
	defer s.kernel.Close()
	want := s.requested.Add(1)
	raw := watchEvent{Pid: 7, Kind: uint8(freed)}
	events := &endless{sample: unsafe.Slice((*byte)(unsafe.Pointer(&raw)), eventBytes)}
	if n, err := s.readAll(events, &ringbuf.Record{}); !errors.Is(err, os.ErrDeadlineExceeded) || n < int(s.kernel.Events.MaxEntries())/eventBytes || s.served.Load() < want {
		t.Errorf("%d events were read, %d of %d calls of Sync were served: %v", n, s.served.Load(), want, err)
	}
	pages := &endless{sample: make([]byte, batchBytes)}
	if err := s.readPages(pages, &ringbuf.Record{}, &batch{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d batches were read: %v", pages.reads, err)
	}
}
