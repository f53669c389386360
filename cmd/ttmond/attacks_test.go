package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What attackers do, each function one attack of the table in attacker_test.go.

// attackPaths occupies and locks whatever it can reach.
func attackPaths(p place) error {
	ready()
	for {
		for _, base := range []string{p.alloc, p.api} {
			for _, suffix := range []string{"", ".handover", ".lock"} {
				_ = os.Mkdir(base+suffix, 0o777)
				_ = os.WriteFile(base+suffix+"/x", nil, 0o666)
				_ = unix.Mkfifo(base+suffix, 0o666)
				_ = os.Symlink("/etc/passwd", base+suffix)
				if fd, err := unix.Open(base+suffix, unix.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
					_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // kept
				}
				_ = os.RemoveAll(base + suffix)
			}
		}
	}
}

// attackWriter writes on an inherited connection for ever.
func attackWriter(place) error {
	b := frames(1000, func(k uint64) []byte { return frame(72, 1, 1, 1, 0, os.Getpid(), k*64) })
	for {
		if err := sendAll(3, b); err != nil {
			return err
		}
	}
}

// attackInherited: a parent that exits while its children write on the connection
// that they inherited.
func attackInherited(p place) error {
	if os.Getenv("ATTACK_DEPTH") == "" {
		ready()
		for range 6 {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "ATTACK_DEPTH=1")
			if err := cmd.Run(); err != nil {
				return err
			}
		}
		time.Sleep(time.Hour)
	}
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "conn")
	if err := sendAll(fd, frame(72, 1, 1, 1, 0, os.Getpid(), 64)); err != nil {
		return err
	}
	for range 4 {
		if err := child("writer", f); err != nil {
			return err
		}
	}
	return nil // and exits
}

// attackForks: a new process for each message on one connection.
func attackForks(p place) error {
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "conn")
	ready()
	for {
		cmd := exec.Command("/bin/sh", "-c", "printf '\\001\\000\\000\\000\\001\\000\\000\\000\\012\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000\\100%048d' 0 | tr 0 '\\000' >&3")
		cmd.ExtraFiles = []*os.File{f}
		_ = cmd.Run()
	}
}

// attackDumps: many devices and kernels, and then one dump after the other.
func attackDumps(p place) error {
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	if err := sendAll(fd, frames(4000, func(k uint64) []byte { return frame(72, 10, int32(k%250), 10, 0, os.Getpid(), k) })); err != nil {
		return err
	}
	ready()
	b := frames(20, func(uint64) []byte { return frame(72, 12, 0, 0, 0, os.Getpid(), 0) })
	for {
		if err := sendAll(fd, b); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// attackMappings: a process that calls itself Python and has as many mappings
// as the kernel allows. The caller names the program python3.9.
func attackMappings(p place) error {
	page := os.Getpagesize()
	all, err := unix.Mmap(-1, 0, 60_000*page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	for k := 0; k < 60_000; k += 2 {
		if unix.Mprotect(all[k*page:(k+1)*page], unix.PROT_NONE) != nil {
			break // that is all
		}
	}
	ready()
	for {
		fd, err := p.dialRaw()
		if err != nil {
			return err
		}
		if err := sendAll(fd, frame(72, 1, 0, 10, 3, os.Getpid(), 64)); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		unix.Close(fd)
	}
}

// attackDevices: short processes that name as many devices as they may, and
// viewers that ask for all of them and do not read.
func attackDevices(p place) error {
	if depth := os.Getenv("ATTACK_DEPTH"); depth != "" {
		from, _ := strconv.Atoi(depth)
		fd, err := p.dialRaw()
		if err != nil {
			return err
		}
		b := frames(256, func(k uint64) []byte { return frame(72, 1, int32(from*256+int(k)), 10, 0, os.Getpid(), 64) })
		return sendAll(fd, b)
	}
	ready()
	for n := range 64 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), fmt.Sprintf("ATTACK_DEPTH=%d", n))
		_ = cmd.Run()
	}
	stats := append([]byte{2}, make([]byte, 23)...)
	for {
		fd, err := p.dialRaw()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_ = sendAll(fd, stats) // and the descriptor stays open, unread
	}
}

// attackDeviceZero: frees on device 0 of what was allocated on another, which
// has to be looked for.
func attackDeviceZero(p place) error {
	for range 8 {
		fd, err := p.dialRaw()
		if err != nil {
			return err
		}
		if err := sendAll(fd, frames(64, func(k uint64) []byte { return frame(72, 1, int32(k), 10, 0, os.Getpid(), 1<<40) })); err != nil {
			return err
		}
		b := frames(1000, func(k uint64) []byte { return frame(72, 2, 0, 0, 0, os.Getpid(), 1<<20+k*64) })
		go func() {
			for sendAll(fd, b) == nil {
			}
		}()
	}
	ready()
	time.Sleep(time.Hour)
	return nil
}

// attackSlowReads: many large answers of the API that are not read.
func attackSlowReads(p place) error {
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	if err := sendAll(fd, frames(100_000/fewer, func(k uint64) []byte { return frame(72, 1, 0, 10, 0, os.Getpid(), k*64) })); err != nil {
		return err
	}
	ready()
	for {
		c, err := net.Dial("unix", p.api)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		fmt.Fprintf(c, "GET /v1/processes/%d/buffers?limit=100000 HTTP/1.1\r\nHost: x\r\n\r\n", os.Getpid())
		// kept open, unread
	}
}

// attackUnread: many connections with questions whose answers are not read.
func attackUnread(p place) error {
	questions := frames(1000, func(uint64) []byte { return frame(144, 3, 0, 0, 0, 0, 0) })
	ready()
	var fds []int
	for n := 0; ; n++ {
		if fd, err := p.dialRaw(); err == nil {
			_ = unix.SetNonblock(fd, true)
			fds = append(fds, fd)
		}
		for range 5 { // also on those that were full before
			_, _ = unix.SendmsgN(fds[rand.IntN(len(fds))], questions, nil, nil, unix.MSG_NOSIGNAL)
		}
	}
}

// attackConnections: all the connections one can get.
func attackConnections(p place) error {
	said := false
	for n := 0; ; n++ {
		fd, err := p.dialRaw()
		if err != nil {
			time.Sleep(time.Millisecond)
		} else {
			_ = sendAll(fd, frame(72, 1, 1, 1, 0, os.Getpid(), uint64(n)*64))
		}
		if n > arenaDescriptors/2 && !said { // more than a user may have
			said = true
			ready()
		}
	}
}

// attackConnects: connections that come and go.
func attackConnects(p place) error {
	ready()
	for {
		if fd, err := p.dialRaw(); err == nil {
			unix.Close(fd)
		}
	}
}

// attackBuffers: more buffers than anybody has.
func attackBuffers(p place) error {
	fd, err := p.dialRaw()
	if err != nil {
		return err
	}
	ready()
	for from := uint64(0); ; from += 1000 {
		if err := sendAll(fd, frames(1000, func(k uint64) []byte { return frame(72, 1, 1, 1, 0, os.Getpid(), (from+k)*64) })); err != nil {
			return err
		}
	}
}

// attackFlood: as many messages as go through, on many connections.
func attackFlood(p place) error {
	b := append(frames(500, func(k uint64) []byte { return frame(72, 1, 1, 10, 0, os.Getpid(), k*64) }),
		frames(500, func(k uint64) []byte { return frame(72, 2, 1, 0, 0, os.Getpid(), k*64) })...)
	for range 16 {
		fd, err := p.dialRaw()
		if err != nil {
			return err
		}
		go func() {
			for sendAll(fd, b) == nil {
			}
		}()
	}
	ready()
	time.Sleep(time.Hour)
	return nil
}

// attackNoise: bytes that mean nothing.
func attackNoise(p place) error {
	rnd := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	ready()
	for {
		fd, err := p.dialRaw()
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		for range rnd.IntN(50) {
			_ = sendAll(fd, noise(rnd))
		}
		unix.Close(fd)
	}
}

// attackAPI: halves of requests, requests whose answer is never read,
// watchers that do not watch.
func attackAPI(p place) error {
	ready()
	targets := []string{"/v1/watch", "/v1/dump", "/v1/processes", "/v1/leaks", "/v1/snapshot", "/v1/dumps", "/v1/health"}
	for n := 0; ; n++ {
		c, err := net.Dial("unix", p.api)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		request := "GET " + targets[n%len(targets)] + " HTTP/1.1\r\nHost: x\r\n"
		switch n % 3 {
		case 0:
			request += "\r\n"
		case 1:
			request += "Content-Length: 1000\r\n\r\nhalf a body"
		}
		_, _ = io.WriteString(c, request)
		if n%5 == 0 {
			c.Close()
		}
	}
}

// attackFollowers: a program that allocates as fast as it can without being detached
// (uprobe.limit), one whose chips report as many programs as they can, and many who want each block and each program: some read nothing, some next to nothing, some
// leave at once.
func attackFollowers(p place) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Dir(self)
	for _, commands := range []string{"make 1048576 5\nloop 1000000000 5000\n", "make 1048576 6\nreport 1000000000 0 1024\n"} {
		cmd := exec.Command(filepath.Join(dir, "program"), filepath.Join(dir, "libtt_metal.so"))
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := io.WriteString(in, commands); err != nil {
			return err
		}
	}
	ready()
	var kept []net.Conn // or they would be closed
	for n := 0; ; n++ {
		c, err := net.Dial("unix", p.api)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		call := []string{"allocations", "programs"}[n/3%2]
		_, _ = io.WriteString(c, "GET /v1/"+call+" HTTP/1.1\r\nHost: x\r\n\r\n")
		switch n % 3 {
		case 0:
			c.Close()
		case 1:
			kept = append(kept, c)
			runtime.KeepAlive(kept)
		default:
			go func() {
				defer c.Close()
				for b := make([]byte, 16); ; time.Sleep(100 * time.Millisecond) {
					if _, err := c.Read(b); err != nil {
						return
					}
				}
			}()
		}
	}
}

// attackDeaths: processes that allocate and die, as fast as they can.
func attackDeaths(p place) error {
	if os.Getenv("ATTACK_DEPTH") != "" {
		fd, err := p.dialRaw()
		if err != nil {
			return err
		}
		return sendAll(fd, frames(5000, func(k uint64) []byte { return frame(72, 1, 1, 10, 0, os.Getpid(), k*64) }))
	}
	ready()
	for {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "ATTACK_DEPTH=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		_ = cmd.Run()
	}
}
