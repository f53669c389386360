package uprobe

import (
	"debug/elf"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf16"
	"unsafe"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// The lines of Python that a thread is in are read by the kernel's part at the
// moment at which a request fails: a moment later the thread is elsewhere. For
// that it has to know where CPython keeps them. This is read of each process when
// it is found; nothing is read, and nothing costs anything, until a request fails.

// pythonPaths are in the paths of the files that CPython is in.
var pythonPaths = []string{"/libpython3.", "/bin/python3."}

var pythonFile = regexp.MustCompile(`/(?:libpython|bin/python)3\.(\d+)[^/]*$`)

// pythonLayouts are where CPython keeps things, by its minor version. ttnn has
// wheels for 3.10 and 3.12. TestPythonLayouts compares them with the headers of
// the Pythons that are installed; lib/src/python.c has the same.
var pythonLayouts = map[string]watchPython{
	"10": {
		Interpreter: 40, Threads: 8, Next: 8, Self: 176, CurrentFrame: 24, Previous: 24, Code: 32, Instruction: 96,
		File: 104, Function: 112, Lines: 120, FirstLine: 40, Ascii: 48, Wide: 72,
	},
	"11": {
		Interpreter: 48, Threads: 16, Next: 8, Self: 152, C_frame: 56, CurrentFrame: 8, Previous: 48, Code: 32, Instruction: 56, Owner: 69,
		File: 112, Function: 128, Lines: 136, FirstLine: 72, Instructions: 184, Newer: 1, Ascii: 48, Wide: 72,
	},
	"12": {
		Interpreter: 48, Threads: 72, Next: 8, Self: 136, C_frame: 56, CurrentFrame: 0, Previous: 8, Code: 0, Instruction: 56, Owner: 70,
		File: 112, Function: 128, Lines: 136, FirstLine: 68, Instructions: 192, Newer: 1, Ascii: 40, Wide: 56,
	},
}

// pythons are files of CPython, and where in them its state is.
type pythons map[fileID]pythonBinary

// pythonBinary is a file of CPython.
type pythonBinary struct {
	runtime uint64 // address of _PyRuntime, before it is loaded
	code    []segment
}

// maxPythons is how many of them are remembered.
const maxPythons = 64

// findPython tells the kernel where the Python of a process is, if it has one
// that is known. Only discover calls it.
func (s *Source) findPython(p *proc.Process) {
	list, err := s.processes.Maps(p)
	if err != nil {
		return
	}
	for i := range list {
		m := &list[i]
		name := pythonFile.FindStringSubmatch(m.Path)
		if name == nil || m.Code == (proc.Range{}) {
			continue
		}
		layout, known := pythonLayouts[name[1]]
		if !known {
			continue
		}
		runtime, err := s.pythonAt(p, mapping{pid: p.PID, start: m.Code.Start, end: m.Code.End, offset: m.Code.Offset, inode: m.Inode, path: m.Path})
		if err != nil {
			s.log.Debug("cannot read Python source lines of process", "pid", p.PID, "python", m.Path, "err", err)
			continue
		}
		layout.Runtime = runtime
		_ = s.kernel.Pythons.Put(uint32(p.PID), layout)
		if !sameProcess(p.PID, p.StartTicks) {
			_ = s.kernel.Pythons.Delete(uint32(p.PID)) // it may have ended before
		}
		return
	}
}

var errNoRuntime = errors.New("it has no _PyRuntime")

// pythonAt finds the state of CPython in the memory of a process.
func (s *Source) pythonAt(p *proc.Process, m mapping) (uint64, error) {
	f, err := s.openMapped(p, m)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := stat(f)
	if err != nil {
		return 0, err
	}
	id := fileID{uint64(st.Dev), st.Ino}
	b, known := s.pythons[id]
	if !known {
		if err := s.reads.allow(p.UID, time.Now()); err != nil {
			return 0, err
		}
		began := time.Now()
		r, err := newGuardedReader(f, began.Add(s.o.libraryTimeout))
		if err != nil {
			return 0, err
		}
		b, err = readPython(r)
		if blocked := r.close(); blocked != nil {
			s.reads.blocked = append(s.reads.blocked, blocked)
		}
		s.reads.note(p.UID, time.Since(began), time.Now())
		if err != nil {
			return 0, err
		}
		if s.pythons == nil || len(s.pythons) >= maxPythons {
			s.pythons = pythons{}
		}
		s.pythons[id] = b
	}
	return b.loaded(m)
}

// readPython finds the state of CPython in a file.
func readPython(r *guardedReader) (b pythonBinary, err error) {
	f, err := openELF(r, elf.ET_EXEC)
	if err != nil {
		return b, err
	}
	all, err := f.wanted([]string{"_PyRuntime"}, elf.STT_OBJECT)
	if err != nil {
		return b, err
	}
	for _, x := range all {
		if x.name == "_PyRuntime" {
			b.runtime = x.address
		}
	}
	if b.runtime == 0 {
		return b, errNoRuntime // a program that has it in a library
	}
	for _, x := range f.segments {
		if x.code {
			b.code = append(b.code, x)
		}
	}
	return b, nil
}

// loaded is where the state is in a process that has mapped the code somewhere.
func (b *pythonBinary) loaded(m mapping) (uint64, error) {
	for _, x := range b.code {
		if m.offset+m.end-m.start > x.offset && m.offset < x.offset+x.bytes {
			return m.start - (x.address + m.offset - x.offset) + b.runtime, nil
		}
	}
	return 0, fmt.Errorf("its code is not at %#x of the file", m.offset)
}

// failedBytes is the size of a failure with its lines.
const failedBytes = int(unsafe.Sizeof(watchFailed{}))

// decodeStack reads the lines of a failure. They are as the process has them,
// which may have written anything there.
func decodeStack(b []byte) (stack []ledgerfile.Frame) {
	var raw watchFailed
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), failedBytes), b)
	for i := range raw.Frame[:min(raw.Frames, uint64(len(raw.Frame)))] {
		x := &raw.Frame[i]
		if x.FileBytes == 0 { // one of the interpreter's own: the rest of it was never written
			continue
		}
		f := ledgerfile.Frame{
			Line: int(x.Line), File: pythonText(x.File[:], x.FileBytes, x.FileWide), Function: pythonText(x.Function[:], x.FunctionBytes, x.FunctionWide),
		}
		if x.Cut != 0 {
			f.File = "…" + f.File
		}
		if f.File == "" || f.Line < 0 || f.Line > maxLine || strings.HasPrefix(f.Function, "<interpreter trampoline") {
			continue
		}
		stack = append(stack, f)
	}
	return stack
}

// maxLine is the highest line number that is accepted.
const maxLine = 1 << 24

// pythonText reads a str of Python, of so many bytes a character; 0: ASCII.
func pythonText(text []int8, n uint16, wide uint8) string {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&text[0])), min(int(n), len(text)))
	switch wide {
	case 0:
		return strings.ToValidUTF8(string(b), "?")
	case 1:
		runes := make([]rune, len(b))
		for i, c := range b {
			runes[i] = rune(c)
		}
		return string(runes)
	case 2:
		var units []uint16
		for ; len(b) >= 2; b = b[2:] {
			units = append(units, uint16(b[0])|uint16(b[1])<<8)
		}
		return string(utf16.Decode(units))
	case 4:
		var runes []rune
		for ; len(b) >= 4; b = b[4:] {
			runes = append(runes, rune(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
		}
		return string(runes)
	}
	return ""
}
