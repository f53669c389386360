package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/field/wire"
)

// guestProgram is the name that this test binary has in the guest, where it does
// what a shell cannot.
const guestProgram = "guest"

// inGuest runs one of the guest's commands and returns its exit code.
func inGuest(args []string) int {
	if len(args) == 0 {
		return 2
	}
	var err error
	switch args[0] {
	case "wait":
		err = waitFor(args[1])
	case "reset":
		err = resetChip(args[1:])
	case "hold":
		err = hold(args[1:])
	default:
		err = fmt.Errorf("no command %q", args[0])
	}
	if err != nil {
		fmt.Println("guest:", err)
		return 1
	}
	return 0
}

// conditions are what the guest waits for in ttmond's snapshots, and what the
// test then asserts of the one that was printed.
var conditions = map[string]func(*model.Snapshot) bool{
	"served": func(s *model.Snapshot) bool { return s.Source == model.Daemon && len(s.Devices) == 1 },
	"read": func(s *model.Snapshot) bool {
		return len(s.Devices) == 1 && s.Devices[0].State == model.StateOK && s.Devices[0].Telemetry.State == model.TelemetryOK
	},
	"refused": func(s *model.Snapshot) bool {
		return len(s.Devices) == 1 && s.Devices[0].Telemetry.State == model.TelemetryRefused && s.Devices[0].Telemetry.Cause == model.CloseSendsMessage
	},
	"hung": func(s *model.Snapshot) bool { return len(s.Devices) == 1 && s.Devices[0].State == model.StateHung },
	"gone": func(s *model.Snapshot) bool { return len(s.Devices) == 0 || s.Devices[0].State == model.StateLost },
	"ok":   func(s *model.Snapshot) bool { return len(s.Devices) == 1 && s.Devices[0].State == model.StateOK },
}

// guestLimit is how long the guest waits for a condition: its processor is
// emulated.
const guestLimit = 6 * time.Minute

// waitFor prints the first snapshot for which a condition holds, or the last one.
func waitFor(name string) error {
	holds := conditions[name]
	if holds == nil {
		return fmt.Errorf("no condition %q", name)
	}
	var out []byte
	for until := time.Now().Add(guestLimit); time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
		out, _ = exec.Command("ttmon", "smi", "--json").Output() // its exit code says that a device is not well, or gone
		if s, err := wire.Decode(out); err == nil && holds(s) {
			break
		}
	}
	_, err := os.Stdout.Write(out)
	return err
}

const node = "/dev/tenstorrent/0"

// The driver's request for a reset, and its kinds.
const (
	requestReset  = 0xFA06
	requestWindow = 0xFA0B
)

func request(fd int, cmd uintptr, b []byte) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), cmd, uintptr(unsafe.Pointer(&b[0]))); e != 0 {
		return e
	}
	return nil
}

// resetChip requests the given kinds of reset one after the other, with the time
// between them that a chip takes to come back.
func resetChip(kinds []string) error {
	for i, kind := range kinds {
		if i > 0 {
			time.Sleep(4 * time.Second)
		}
		n, err := strconv.ParseUint(kind, 10, 32)
		if err != nil {
			return err
		}
		// A descriptor of before a reset is dead after it.
		fd, err := unix.Open(node, unix.O_RDWR|unix.O_APPEND|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		var b [16]byte
		binary.LittleEndian.PutUint32(b[:], 8) // of the answer
		binary.LittleEndian.PutUint32(b[4:], uint32(n))
		err = request(fd, requestReset, b[:])
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("reset %d: %w", n, err)
		}
		fmt.Printf("reset %d: result %d\n", n, binary.LittleEndian.Uint32(b[12:]))
	}
	return nil
}

// hold keeps the chip as another program might: "exclusive" or all "windows" of
// a size. It says so, and holds until its standard input ends.
func hold(args []string) error {
	flags := unix.O_RDWR | unix.O_APPEND | unix.O_CLOEXEC
	if args[0] == "exclusive" {
		flags |= unix.O_EXCL
	}
	fd, err := unix.Open(node, flags, 0)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if args[0] == "windows" {
		size, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return err
		}
		n := 0
		for ; ; n++ {
			var b [48]byte
			binary.LittleEndian.PutUint64(b[:], size)
			if err = request(fd, requestWindow, b[:]); err != nil {
				break
			}
		}
		if !errors.Is(err, unix.ENOMEM) {
			return fmt.Errorf("allocate window: %w", err)
		}
	}
	if err := os.WriteFile("/tmp/held", nil, 0o644); err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}
