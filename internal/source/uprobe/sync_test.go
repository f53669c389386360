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
	want := s.eventReading.requested.Add(1)
	raw := watchEvent{Pid: 7, Kind: uint8(freed)}
	events := &endless{sample: unsafe.Slice((*byte)(unsafe.Pointer(&raw)), eventBytes)}
	n, err := s.serveSync(&s.eventReading, func() (int, error) { return s.readAll(events, &ringbuf.Record{}) })
	if !errors.Is(err, os.ErrDeadlineExceeded) || n < int(s.kernel.Events.MaxEntries())/eventBytes || s.eventReading.served.Load() < want {
		t.Errorf("%d events were read, %d of %d calls of Sync were served: %v", n, s.eventReading.served.Load(), want, err)
	}
	want = s.pageReading.requested.Add(1)
	pages := &endless{sample: make([]byte, batchBytes)}
	n, err = s.serveSync(&s.pageReading, func() (int, error) { return s.readPages(pages, &ringbuf.Record{}, &batch{}) })
	if !errors.Is(err, os.ErrDeadlineExceeded) || n < int(s.kernel.Work.MaxEntries())/batchBytes || s.pageReading.served.Load() < want {
		t.Errorf("%d batches were read, %d of %d calls of Sync were served: %v", n, s.pageReading.served.Load(), want, err)
	}
}
