package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onlyUnixVar makes this program one that runs another, which the kernel kills at
// the first socket that is not a Unix socket.
const onlyUnixVar = "TTMOND_TEST_ONLY_UNIX"

func init() {
	switch os.Getenv(onlyUnixVar) {
	case "run":
		os.Setenv(onlyUnixVar, "")
		if err := onlyUnix(); err != nil {
			fmt.Fprintln(os.Stderr, "seccomp:", err)
			os.Exit(3)
		}
		fmt.Fprintln(os.Stderr, syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
		os.Exit(4)
	case "listen": // what must not be possible then
		os.Setenv(onlyUnixVar, "")
		if err := onlyUnix(); err != nil {
			os.Exit(3)
		}
		_, _ = net.Listen("tcp", "127.0.0.1:0")
		os.Exit(0)
	}
}

// onlyUnix has the kernel kill this thread's process when it asks for a socket that
// is not a Unix socket; what it starts, too.
func onlyUnix() error {
	runtime.LockOSThread()
	const nr, firstArgument = 0, 16 // in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nr},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 3, K: unix.SYS_SOCKET},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: firstArgument},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, Jf: 0, K: unix.AF_UNIX},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x80000000}, // SECCOMP_RET_KILL_PROCESS
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}, // SECCOMP_RET_ALLOW
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// ttmond asks the kernel for no socket but Unix sockets, whatever it is asked to do:
// at the first other one it would be killed.
func TestOnlyUnixSockets(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	control := exec.Command(self)
	control.Env = append(os.Environ(), onlyUnixVar+"=listen")
	if _ = control.Run(); control.ProcessState.ExitCode() == 3 {
		t.Skip("no seccomp filters here")
	}
	if st := control.ProcessState.Sys().(syscall.WaitStatus); !st.Signaled() || st.Signal() != syscall.SIGSYS {
		t.Fatalf("a program that listens on TCP is not killed: %v", control.ProcessState)
	}

	h := newHost(t)
	h.simulate("n300,p150a")
	h.wrapper, h.extraEnviron = []string{self}, []string{onlyUnixVar + "=run"}
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	for _, path := range []string{
		"/v1/snapshot", "/v1/processes", "/v1/leaks", "/v1/stale", "/v1/topology", "/v1/dump", "/v1/dumps", "/v1/health", "/v1/version", "/v1/said", "/v1/me",
		"/v1/events", "/prometheus/api/v1/query?query=1", fmt.Sprintf("/v1/processes/%d/buffers", c.pid()), fmt.Sprintf("/v1/processes/%d/blocks", c.pid()),
	} {
		h.get(path)
	}
	h.takeOver()
	h.awaitSums(0, sums{dram: 1000})
	onlyUnixDescriptors(t, h.current.cmd.Process.Pid)
	h.stop()
	if got := c.do("alloc 0 4194368 1 0"); got != "ok" { // a keeper has the connection
		t.Errorf("report after the stop: %q", got)
	}
}

// onlyUnixDescriptors holds the sockets of a process against the kernel's list of
// Unix sockets.
func onlyUnixDescriptors(t *testing.T, pid int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 6 {
			known["socket:["+f[6]+"]"] = true
		}
	}
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	sockets := 0
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		sockets++
		if !known[to] {
			t.Errorf("descriptor %s is %s, which is no Unix socket", filepath.Base(fd), to)
		}
	}
	if sockets < 3 {
		t.Errorf("only %d sockets were seen", sockets)
	}
}
