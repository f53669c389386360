package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The test program also plays the processes of other users: with
// attackVar=NAME it runs an attack, with its arguments, until it is killed.

const attackVar = "TTMOND_ATTACK"

func init() {
	name := os.Getenv(attackVar)
	if name == "" {
		return
	}
	attack, ok := attacks[name]
	if !ok {
		fmt.Println("no such attack:", name)
		os.Exit(2)
	}
	if err := attack(place{alloc: os.Getenv("ATTACK_ALLOC"), api: os.Getenv("ATTACK_API")}); err != nil {
		fmt.Println(name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// place is where the daemon that is attacked is.
type place struct{ alloc, api string }

// attacks are what an ordinary user, or a program gone wild, may do. Each runs
// until it is killed, or returns when it has done its worst; "ready" on
// standard output says that it is at work.
var attacks = map[string]func(place) error{
	"reporter":    reporter,
	"paths":       attackPaths,
	"inherited":   attackInherited,
	"forks":       attackForks,
	"dumps":       attackDumps,
	"mappings":    attackMappings,
	"devices":     attackDevices,
	"device-zero": attackDeviceZero,
	"slow-reads":  attackSlowReads,
	"unread":      attackUnread,
	"connections": attackConnections,
	"buffers":     attackBuffers,
	"noise":       attackNoise,
	"connects":    attackConnects,
	"flood":       attackFlood,
	"api":         attackAPI,
	"deaths":      attackDeaths,
	"followers":   attackFollowers,
	"libraries":   attackLibraries,
	"ledgers":     attackLedgers,
	"descriptors": attackDescriptors,
	"blocks":      attackBlocks,
	"jobs":        attackJobs,
	"fifos":       attackFifos,
	"victim":      victim,
	"holder":      holder,
	"writer":      attackWriter,
}

func ready() { fmt.Println("ready") }

// dialRaw connects as old clients do: with a blocking socket.
func (p place) dialRaw() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: p.alloc})
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func sendAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// rootDevice is the number that only root's workload uses, and rootBytes what
// it holds on it in the end.
const (
	rootDevice = 60_000
	rootBytes  = 5000
)

// reporter is the one who must not notice anything: root's workload. It keeps
// 500 buffers of 10 bytes on its device and replaces one every millisecond.
// "stop" on its input makes it say how long its worst report took.
func reporter(p place) error {
	signal := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(signal)
	}()
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	var took []time.Duration
	report := func(f []byte) error {
		start := time.Now()
		err := sendAll(fd, f)
		took = append(took, time.Since(start))
		return err
	}
	ready()
	for k := uint64(0); ; k++ {
		if k >= 500 {
			if err := report(frame(144, 2, rootDevice, 0, 0, os.Getpid(), 1<<32+(k-500)*64)); err != nil {
				return fmt.Errorf("after %d reports: %w", k, err)
			}
		}
		if err := report(frame(144, 1, rootDevice, 10, 0, os.Getpid(), 1<<32+k*64)); err != nil {
			return fmt.Errorf("after %d reports: %w", k, err)
		}
		select {
		case <-signal:
			if k >= 500 {
				slices.Sort(took)
				fmt.Println("worst", took[len(took)-1].Nanoseconds(), "p99", took[len(took)*99/100].Nanoseconds(), "reports", len(took))
				time.Sleep(time.Hour) // alive, and holding what it holds
			}
		case <-time.After(time.Millisecond):
		}
	}
}

// victim holds a connection and nothing else: another user's process.
func victim(p place) error {
	if _, err := p.dialRaw(); err != nil {
		return err
	}
	ready()
	time.Sleep(time.Hour)
	return nil
}

// holder holds a buffer of 10 bytes on device 7 and nothing else.
func holder(p place) error {
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	if err := sendAll(fd, frame(144, 1, 7, 10, 0, os.Getpid(), 64)); err != nil {
		return err
	}
	ready()
	time.Sleep(time.Hour)
	return nil
}

// child starts this program again with another attack, which inherits files.
func child(attack string, files ...*os.File) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), attackVar+"="+attack)
	cmd.ExtraFiles = files
	return cmd.Start()
}

func frames(n int, f func(uint64) []byte) (b []byte) {
	for k := range uint64(n) {
		b = append(b, f(k)...)
	}
	return b
}

// attackNames are those that the random adversary chooses from.
func attackNames() (names []string) {
	for name := range attacks {
		switch name {
		case "reporter", "writer", "victim", "holder":
		default:
			names = append(names, name)
		}
	}
	return names
}

func programName(attack string) string {
	if attack == "mappings" {
		return "python3.9"
	}
	return "attacker-" + strings.ReplaceAll(attack, "-", "")
}
