package main

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Attacks with files that ttmond finds by itself: libraries that a process maps,
// and ledgers in /dev/shm.

// attackLibraries maps files under the name of tt-metal's library: more copies
// than there are places, and files that are none, of which little takes much.
// One process stays, so that there are too many however slow the machine is; the
// others end, and come again.
func attackLibraries(place) error {
	dir, err := os.MkdirTemp("", "libraries")
	if err != nil {
		return err
	}
	if depth := os.Getenv("ATTACK_DEPTH"); depth != "" {
		defer os.RemoveAll(dir)
		if err := mapLibraries(dir); err != nil {
			return err
		}
		if depth == "stay" {
			time.Sleep(time.Hour)
		}
		time.Sleep(500 * time.Millisecond) // it ends by itself: the attack is many short lives
		return nil
	}
	again := func(depth string) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "ATTACK_DEPTH="+depth)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	if err := again("stay").Start(); err != nil {
		return err
	}
	ready()
	for {
		if out, err := again("end").Output(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
}

func mapLibraries(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	good, err := os.ReadFile(filepath.Join(filepath.Dir(self), "libtt_metal.so"))
	if err != nil {
		return err
	}
	files := [][]byte{compressedLibrary(), sparseLibrary(good), good[:len(good)/2]}
	for len(files) < 140 {
		files = append(files, good)
	}
	for i, data := range files {
		path := filepath.Join(dir, fmt.Sprint(i), "libtt_metal.so")
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// compressedLibrary is a library whose symbol table is 300 MB of zeros, in
// 300 KB.
func compressedLibrary() []byte {
	var packed bytes.Buffer
	w, _ := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	const size = 300 << 20
	zeros := make([]byte, 1<<20)
	for range size / len(zeros) {
		_, _ = w.Write(zeros)
	}
	w.Close()
	le := binary.LittleEndian
	b := make([]byte, 64)
	copy(b, elf.ELFMAG)
	b[4], b[5], b[6] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le.PutUint16(b[16:], uint16(elf.ET_DYN))
	le.PutUint16(b[18:], uint16(hostMachine))
	le.PutUint16(b[58:], 64) // of a section header
	le.PutUint16(b[60:], 2)
	at := uint64(len(b))
	b = le.AppendUint32(le.AppendUint32(b, uint32(elf.COMPRESS_ZLIB)), 0)
	b = le.AppendUint64(le.AppendUint64(b, size), 1)
	b = append(b, packed.Bytes()...)
	end := uint64(len(b))
	le.PutUint64(b[40:], end)
	b = append(b, make([]byte, 128)...)
	section := b[end+64:]
	le.PutUint32(section[4:], uint32(elf.SHT_DYNSYM))
	le.PutUint64(section[8:], uint64(elf.SHF_ALLOC|elf.SHF_COMPRESSED))
	le.PutUint64(section[24:], at)
	le.PutUint64(section[32:], end-at)
	le.PutUint64(section[56:], 24)
	return b
}

var hostMachine = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]

// sparseLibrary is a library whose tables are said to be as long as they can.
func sparseLibrary(good []byte) []byte {
	b := bytes.Clone(good)
	f, err := elf.NewFile(bytes.NewReader(good))
	if err != nil {
		return b
	}
	le := binary.LittleEndian
	for _, s := range f.Sections {
		if s.Type == elf.SHT_DYNAMIC {
			for at := s.Offset; at+16 <= s.Offset+s.FileSize; at += 16 {
				if elf.DynTag(le.Uint64(b[at:])) == elf.DT_STRSZ {
					le.PutUint64(b[at+8:], 1<<40)
				}
			}
		}
	}
	return b
}

// attackLedgers puts ledgers into /dev/shm that are as large as they can be, and
// change all the time, and some that speak for root's processes.
func attackLedgers(place) error {
	ns := unix.Stat_t{}
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return err
	}
	for _, pid := range []int{1, os.Getppid()} {
		name := fmt.Sprintf("/dev/shm/%s%d-%016x", ledgerfile.Prefix, pid, os.Getpid())
		if err := os.WriteFile(name, forgedLedger(pid, ns.Ino, 2, 0), 0o600); err != nil {
			return err
		}
	}
	var files []*os.File
	image := forgedLedger(os.Getpid(), ns.Ino, 1<<16, 4<<20)
	for i := range 12 {
		f, err := os.OpenFile(fmt.Sprintf("/dev/shm/%s%d-%016x", ledgerfile.Prefix, os.Getpid(), i), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if _, err := f.Write(image); err != nil {
			return err
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			return err
		}
		files = append(files, f)
	}
	ready()
	for epoch := uint64(2); ; epoch += 2 {
		for _, f := range files {
			if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, epoch), 16); err != nil {
				return err
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// forgedLedger is a ledger that speaks for a process: one list with 8 GiB in one
// block, and many sites whose tags lie over each other.
func forgedLedger(pid int, namespace uint64, sites, texts uint32) []byte {
	st, _ := proc.ReadStat(hostfs.Root{}, pid)
	le := binary.LittleEndian
	h := make([]byte, 592)
	copy(h, "TTMONLDG")
	le.PutUint32(h[8:], ledgerfile.Version)
	le.PutUint32(h[12:], uint32(len(h)))
	le.PutUint32(h[24:], uint32(pid))
	le.PutUint64(h[32:], st.Start)
	le.PutUint64(h[40:], namespace)
	body := make([][]byte, 7)
	body[0] = make([]byte, 16) // a chip
	body[1] = make([]byte, 2*256)
	list := body[1][256:]
	list[0] = byte(ledgerfile.Open)
	le.PutUint32(list[8:], 8)
	le.PutUint64(list[24:], 1<<40)
	list[72] = 1
	body[2] = make([]byte, int(sites)*128)
	for i := 1; i < int(sites); i++ {
		le.PutUint32(body[2][i*128:], 1)
		le.PutUint32(body[2][i*128+4:], uint32(i*4))
	}
	body[5] = make([]byte, texts)
	for i := 0; i+4 <= len(body[5]); i += 4 {
		le.PutUint32(body[5][i:], 4096)
	}
	body[6] = make([]byte, 40)
	le.PutUint64(body[6][8:], 1<<30)
	le.PutUint32(body[6][32:], 1)
	out := h
	for i, size := range []uint32{16, 256, 128, 16, 8, 1, 40} {
		s := h[424+24*i:]
		le.PutUint64(s, uint64(len(out)))
		le.PutUint32(s[8:], size)
		le.PutUint32(s[12:], uint32(len(body[i]))/size)
		le.PutUint32(s[16:], uint32(len(body[i]))/size)
		out = append(out, body[i]...)
	}
	copy(out, h)
	return out
}

// attackDescriptors opens as many descriptors as it may, and another one, again
// and again: their number is never the same.
func attackDescriptors(place) error {
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for range min(limit.Max, 1_000_000/fewer) - 64 {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			break
		}
	}
	ready()
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil && !errors.Is(err, unix.EMFILE) {
			return err
		}
		time.Sleep(70 * time.Millisecond)
		unix.Close(fd)
	}
}
