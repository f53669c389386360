package shm

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// waitFor polls: the condition belongs to another process, and has no event.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s", what)
		}
	}
}

func waitForZombie(t *testing.T, pid int) {
	t.Helper()
	waitFor(t, "a zombie", func() bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		threads, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		return err == nil && strings.Contains(string(b), ") Z ") && len(threads) == 1
	})
}

func waitForName(t *testing.T, pid int, name string) {
	t.Helper()
	waitFor(t, "process "+name, func() bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		return err == nil && string(b) == name+"\n"
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
