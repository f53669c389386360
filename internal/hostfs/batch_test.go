package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/fusetest"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// TestMain lets the test binary play the program that gives up on a blocked
// read: see TestExitDoesNotWait.
func TestMain(m *testing.M) {
	if path := os.Getenv("HOSTFS_TEST_GIVE_UP_ON"); path != "" {
		abandonRead(path)
		os.Exit(0)
	}
	hermetic.Main(m)
}

func abandonRead(path string) {
	b, err := NewBatch(2, 128)
	if err != nil {
		panic(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	i := b.Add(fd, 64)
	if err := b.Start(); err != nil {
		panic(err)
	}
	Wait([]*Batch{b}, time.Now().Add(100*time.Millisecond))
	_, err = b.Result(i)
	fmt.Println("gave up:", err)
}

func TestBatchReads(t *testing.T) {
	dir := t.TempDir()
	want := map[int]string{}
	b, err := NewBatch(20, 20*64)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for round := range 3 {
		for i := range 20 {
			path := filepath.Join(dir, fmt.Sprint(i))
			text := fmt.Sprintf("%d of round %d\n", i, round)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			want[b.Add(fd, 64)] = text
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		Wait([]*Batch{b}, time.Now().Add(20*time.Second))
		for i, text := range want {
			got, err := b.Result(i)
			if err != nil || string(got) != text {
				t.Errorf("round %d, read %d: got %q, %v, want %q", round, i, got, err, text)
			}
		}
		b.Reset()
	}
}

func TestBatchTellsErrors(t *testing.T) {
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			dir, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(dir)
			b := newBatch(t, 3)
			defer b.Close()
			b.Add(dir, 64)
			b.Add(1<<20, 64)
			b.Add(openFile(t, "fine\n"), 64)
			if err := start(b); err != nil {
				t.Fatal(err)
			}
			Wait([]*Batch{b}, time.Now().Add(20*time.Second))
			if _, err := b.Result(0); !errors.Is(err, unix.EISDIR) {
				t.Errorf("reading a directory: got %v, want EISDIR", err)
			}
			if _, err := b.Result(1); !errors.Is(err, unix.EBADF) {
				t.Errorf("reading a descriptor that is not there: got %v, want EBADF", err)
			}
			if got, err := b.Result(2); err != nil || string(got) != "fine\n" {
				t.Errorf("the read behind them: %q, %v", got, err)
			}
		})
	}
}

// ways are how reads are run: in a process of their own, or, where none can be
// made, in a thread.
var ways = map[string]func(*Batch) error{
	"in a process": (*Batch).Start,
	"in a thread": func(b *Batch) (err error) {
		b.doneFD, err = readInThread(b.entries[:b.n])
		return err
	},
}

// TestBatchFallsBack runs the reads in a thread, as where no process can be made.
func TestBatchFallsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("42\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBatch(1, 64)
	if err != nil {
		t.Fatal(err)
	}
	b.Add(fd, 64)
	if b.doneFD, err = readInThread(b.entries[:b.n]); err != nil {
		t.Fatal(err)
	}
	unix.Close(fd) // allowed as soon as the reads have started
	Wait([]*Batch{b}, time.Now().Add(20*time.Second))
	if got, err := b.Result(0); err != nil || string(got) != "42\n" {
		t.Errorf("got %q, %v", got, err)
	}
	b.Close()
}

// TestBlockedReadDelaysNothingElse has one batch stuck on a file whose server
// does not answer, and another that must finish meanwhile.
func TestBlockedReadDelaysNothingElse(t *testing.T) {
	stuck, reached, release := blockingFile(t)
	good := filepath.Join(t.TempDir(), "good")
	if err := os.WriteFile(good, []byte("fine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	batches := make([]*Batch, 2)
	for i, paths := range [][]string{{good, stuck}, {good}} {
		var err error
		if batches[i], err = NewBatch(2, 128); err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			batches[i].Add(fd, 64)
		}
		if err := batches[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	Wait(batches[1:], time.Now().Add(20*time.Second))
	if got, err := batches[1].Result(0); err != nil || string(got) != "fine\n" {
		t.Errorf("the other read: got %q, %v", got, err)
	}
	if got, err := batches[0].Result(0); err != nil || string(got) != "fine\n" {
		t.Errorf("the read before the blocked one: got %q, %v", got, err)
	}
	if _, err := batches[0].Result(1); !errors.Is(err, ErrTimeout) {
		t.Errorf("the blocked read: got %v, want ErrTimeout", err)
	}
	close(release)
	Wait(batches, time.Now().Add(20*time.Second))
	if got, err := batches[0].Result(1); err != nil || string(got) != "late\n" {
		t.Errorf("the blocked read, released: got %q, %v", got, err)
	}
}

// TestExitDoesNotWait is why reads are detached: a program that gave up on
// a blocked read exits, and its output and all else that it had open ends,
// while the read is still blocked.
func TestExitDoesNotWait(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("reads are detached on amd64 and arm64 only")
	}
	stuck, _, release := blockingFile(t)
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOSTFS_TEST_GIVE_UP_ON="+stuck)
	cmd.Stdout = &out // a pipe: Wait returns when its last writer is gone
	cmd.Stderr = &out
	// Another one stands for sockets and locks.
	held, holder, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cmd.ExtraFiles = []*os.File{holder}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	holder.Close()
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		held.Read(make([]byte, 1))
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the program: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the program, or a holder of its output, is still there")
		close(release)
		<-done
		return
	}
	close(release)
	if want := "gave up: " + ErrTimeout.Error(); strings.TrimSpace(out.String()) != want {
		t.Errorf("the program said %q, want %q", out.String(), want)
	}
}

// blockingFile serves a file through FUSE whose read is answered only after
// release is closed; reached gets a value when a read has arrived. From the
// reader's side that wait is uninterruptible.
func blockingFile(t *testing.T) (path string, reached <-chan struct{}, release chan struct{}) {
	t.Helper()
	dir := t.TempDir()
	release = make(chan struct{})
	arrived := make(chan struct{}, 1)
	fusetest.Mount(t, dir, map[string]fs.InodeEmbedder{
		"blocked": &fusetest.File{Text: "late\n", Release: release, Reached: arrived},
	})
	return filepath.Join(dir, "blocked"), arrived, release
}

// BenchmarkBatch shows what detaching costs over reading in place.
func BenchmarkBatch(b *testing.B) {
	for _, reads := range []int{1, 32} {
		path := filepath.Join(b.TempDir(), "f")
		if err := os.WriteFile(path, []byte("42\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("detached/%d", reads), func(b *testing.B) {
			batch, err := NewBatch(reads, reads*64)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for range reads {
					batch.Add(fd, 64)
				}
				if err := batch.Start(); err != nil {
					b.Fatal(err)
				}
				Wait([]*Batch{batch}, time.Now().Add(time.Minute))
				batch.Reset()
			}
		})
		b.Run(fmt.Sprintf("floor/%d", reads), func(b *testing.B) {
			var buf [64]byte
			for b.Loop() {
				for range reads {
					unix.Pread(fd, buf[:], 0)
				}
			}
		})
		unix.Close(fd)
	}
}
