package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"golang.org/x/sys/unix"
)

// Two processes with many descriptors do not make a sweep compare every one with
// every other.
func TestComparisonsAreBounded(t *testing.T) {
	duplicates := func(name string) (fds []int) {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		for range 200 {
			fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Close(fd) })
			fds = append(fds, fd)
		}
		return fds
	}
	res := resolution{r: New(hostfs.At("/")), described: map[int]*model.Process{}}
	defer res.r.Close()
	pid := os.Getpid()
	opener := Holder{PID: pid, FDs: duplicates("opener")}
	other := Holder{PID: pid, FDs: duplicates("other")}
	own := res.notShared(other, map[int]bool{pid: true}, []Holder{opener})
	if res.compared != maxComparisons {
		t.Errorf("%d pairs were compared, want %d of %d", res.compared, maxComparisons, len(opener.FDs)*len(other.FDs))
	}
	if len(own) != len(other.FDs) {
		t.Errorf("%d descriptors are its own, want all %d", len(own), len(other.FDs))
	}
	if _, ok := (&resolution{r: res.r}).sameDescription(pid, opener.FDs[0], pid, opener.FDs[1]); !ok {
		return // this kernel does not tell
	}
	res.compared = 0
	if own := res.notShared(Holder{PID: pid, FDs: opener.FDs}, map[int]bool{pid: true}, []Holder{opener}); len(own) > 0 {
		t.Errorf("%d descriptors of the opener are not shared with it", len(own))
	}
}
