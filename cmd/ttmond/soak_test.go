package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soakVar is how long TestSoak runs: make soak T=10m.
const soakVar = "TTMOND_SOAK"

// A random adversary: many users, random attacks at once that begin and end,
// while ttmond is stopped, started and taken over, and processes are killed.
// Root's workload must live through all of it, and its totals must be exact.
func TestSoak(t *testing.T) {
	length := soakFor(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, for %v", seed, length)
	s := &soak{arena: newArena(t), rnd: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}}
	s.timeout = userTimeout
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; the last steps:\n%s\nrunning then: %v", seed, strings.Join(s.steps[max(len(s.steps)-30, 0):], "\n"), s.counts)
		}
	})
	s.begin()
	s.names = attackNames()
	slices.Sort(s.names)
	for end := time.Now().Add(length); time.Now().Before(end); {
		s.step()
		if t.Failed() {
			break
		}
	}
	for len(s.running) > 0 {
		s.endOne()
	}
	s.freeSocket()
	t.Logf("done: %v; health was late %d times; takeover pauses at most %v", s.counts, s.late, s.pause)
	s.await("the socket", func() bool { _, err := ask(s.alloc, rootDevice); return err == nil })
	s.settle()
	s.await("the attackers to be forgotten", func() bool {
		_, tree, err := s.health()
		return err == nil && tree["ledger"].(map[string]any)["processes"].(float64) <= 2
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what is open:\n%s", openFiles(s.current.cmd.Process.Pid))
		}
	})
	s.await("their connections to be closed", func() bool {
		_, tree, err := s.health()
		return err == nil && tree["alloc_socket"].(map[string]any)["connections"].(float64) <= 2
	})
	s.await("nothing else to be left open", func() bool {
		_, tree, err := s.health()
		return err == nil && tree["descriptors"].(map[string]any)["open"].(float64) < 100
	})
	_, tree, _ := s.health()
	t.Logf("in the end: %v descriptors, %v goroutines, heap %v", tree["descriptors"], tree["goroutines"], tree["heap_bytes"])
	if n := tree["goroutines"].(float64); n > 100 {
		t.Errorf("%v goroutines are left", n)
	}
}

// openFiles lists what a process has open, by kind.
func openFiles(pid int) string {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := os.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	count := map[string]int{}
	for _, n := range names {
		to, _ := os.Readlink(filepath.Join(dir, n.Name()))
		if i := strings.LastIndexAny(to, "/["); i > 0 { // below one directory, or with its number
			to = to[:i]
		}
		count[to]++
	}
	var b strings.Builder
	for _, to := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "%5d %s\n", count[to], to)
	}
	return b.String()
}

type soak struct {
	*arena
	rnd     *rand.Rand
	names   []string
	running []*exec.Cmd
	counts  map[string]int
	late    int
	pause   time.Duration
	steps   []string // what was done, and when
}

// note notes a step: where a promise is broken, the last of them are told.
func (s *soak) note(what string) {
	s.counts[what]++
	s.steps = append(s.steps, fmt.Sprintf("%s %-18s beside %d attacks", time.Now().Format("15:04:05.000"), what, len(s.running)))
}

// step does one random thing.
func (s *soak) step() {
	switch what := s.rnd.IntN(20); {
	case what < 9 && len(s.running) < 4:
		name := s.names[s.rnd.IntN(len(s.names))]
		cmd, err := s.tryPlay(60000+s.rnd.IntN(10), name)
		if err != nil {
			s.note("refused")
			break
		}
		s.note(name)
		s.running = append(s.running, cmd)
	case what < 12 && len(s.running) > 0:
		s.endOne()
	case what == 12:
		s.note("takeover")
		s.takeOver()
	case what == 13:
		s.note("stop")
		s.absences.Add(1)
		s.stop()
		time.Sleep(time.Duration(s.rnd.IntN(300)) * time.Millisecond) // clients have no server
		s.start()
		s.absences.Add(1)
	case what == 14:
		s.note("reload")
		_ = s.current.cmd.Process.Signal(syscall.SIGHUP)
	case what == 15:
		s.note("killed processes")
		if cmd, err := s.tryPlay(60000+s.rnd.IntN(10), "victim"); err == nil {
			s.end(cmd)
		}
	default:
		time.Sleep(time.Duration(s.rnd.IntN(1500)) * time.Millisecond) // the attackers work
	}
	s.freeSocket()
	status, tree, err := s.health()
	switch {
	case err != nil:
		s.t.Errorf("health: %v", err)
	case status != http.StatusOK:
		s.late++
		s.t.Logf("health: %v", tree["problems"])
	default:
		if p, ok := tree["takeover_pause_s"].(float64); ok {
			s.pause = max(s.pause, time.Duration(p*float64(time.Second)))
		}
	}
	if s.current.ended() {
		s.t.Fatalf("ttmond has ended: %v", s.current.err)
	}
}

func (s *soak) endOne() {
	i := s.rnd.IntN(len(s.running))
	s.end(s.running[i])
	s.running = slices.Delete(s.running, i, i+1)
}

// freeSocket does what an administrator does who finds the path taken.
func (s *soak) freeSocket() {
	if st, err := os.Lstat(s.alloc); err == nil && (st.Mode()&os.ModeSocket == 0 || st.Sys().(*syscall.Stat_t).Uid != 0) {
		_ = os.RemoveAll(s.alloc)
	}
}
