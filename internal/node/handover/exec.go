package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// variable names the descriptor of a list: of the descriptors that the program
// before us, in the same process, has left open for us.
const variable = "TTMOND_DESCRIPTORS"

// Exec executes a program in our place, in the same process. The files stay
// open for it, under their names; all other descriptors must be close-on-exec.
// It returns only with an error, and then everything is as before, but for the
// signals.
//
// Those that mean something to the daemon are ignored until the new program asks
// for them: their default action would end it. To block them is not enough. No
// child may start meanwhile: it would inherit the descriptors.
func Exec(program string, argv []string, files []File, ignore ...os.Signal) error {
	list, err := memoryList(files)
	if err != nil {
		return err
	}
	defer unix.Close(list)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if len(ignore) > 0 { // none would mean all, and children could not be waited for
		signal.Ignore(ignore...)
	}
	kept := append(descriptorsOf(files), list)
	for _, fd := range kept {
		if _, ferr := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); ferr != nil {
			err = fmt.Errorf("keeping descriptor %d: %w", fd, ferr)
		}
	}
	if err == nil {
		err = syscall.Exec(program, argv, append(environment(), variable+"="+strconv.Itoa(list)))
	}
	for _, fd := range kept {
		unix.CloseOnExec(fd)
	}
	return fmt.Errorf("executing %s: %w", program, err)
}

func descriptorsOf(files []File) (fds []int) {
	for _, f := range files {
		fds = append(fds, f.FD)
	}
	return fds
}

// environment is ours without what was said of descriptors: the process keeps its
// number, so the new program would take them for its own.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "LISTEN_") || strings.HasPrefix(s, variable+"=")
	})
}

// Lend lets a child that is about to be started have copies of files, as if it were
// executed in our place. close closes them; it is called when the child has started.
func Lend(cmd *exec.Cmd, files []File) (close func(), err error) {
	const first = 3 // of a child's descriptors that are not the standard ones
	var lent []File
	for i, f := range files {
		lent = append(lent, File{f.Name, first + 1 + i})
	}
	list, err := memoryList(lent)
	if err != nil {
		return nil, err
	}
	close = func() {
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
	}
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(list), "descriptors")}
	for _, f := range files {
		fd, err := unix.FcntlInt(uintptr(f.FD), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			close()
			return nil, fmt.Errorf("lending %s: %w", f.Name, err)
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), f.Name))
	}
	cmd.Env = append(slices.DeleteFunc(environment(), func(s string) bool {
		return strings.HasPrefix(s, "NOTIFY_SOCKET=") || strings.HasPrefix(s, "WATCHDOG_") || strings.HasPrefix(s, "FDSTORE=")
	}), variable+"="+strconv.Itoa(first))
	return close, nil
}

// memoryList is a file in memory with a list of descriptors.
func memoryList(files []File) (fd int, err error) {
	b, err := json.Marshal(files)
	if err != nil {
		return -1, err
	}
	return MemoryFile("ttmond-descriptors", b)
}

// MemoryFile returns a file in memory.
func MemoryFile(name string, b []byte) (fd int, err error) {
	if fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC); err != nil {
		return -1, fmt.Errorf("making a file for a successor: %w", err)
	}
	for at := 0; at < len(b) && err == nil; {
		var n int
		n, err = unix.Pwrite(fd, b[at:], int64(at))
		at += n
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("writing a file for a successor: %w", err)
	}
	return fd, nil
}

// ReadMemory reads a file in memory, however far it has been read before.
func ReadMemory(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("reading a file of a predecessor: %w", err)
	}
	b := make([]byte, st.Size)
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("reading a file of a predecessor: %w", err)
		}
		at += n
	}
	return b, nil
}

// errList means that there is no list, or no good one.
var errList = errors.New("no list of descriptors")

// leftOpen are the files that the program before us has left open.
func leftOpen() ([]File, error) {
	list, err := strconv.Atoi(os.Getenv(variable))
	os.Unsetenv(variable)
	if err != nil {
		return nil, errList
	}
	defer unix.Close(list)
	b, err := ReadMemory(list)
	if err != nil {
		return nil, err
	}
	var files []File
	if err := json.Unmarshal(b, &files); err != nil {
		return nil, fmt.Errorf("reading the list of descriptors: %w", err)
	}
	for _, f := range files {
		unix.CloseOnExec(f.FD)
	}
	return files, nil
}
