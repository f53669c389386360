package sim_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// BenchmarkStart is a host from nothing to files in place and back.
func BenchmarkStart(b *testing.B) {
	for _, boards := range []string{"n150", "galaxy-blackhole"} {
		b.Run(boards, func(b *testing.B) {
			for b.Loop() {
				h, err := sim.Start(sim.Options{Boards: boards})
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkJoin is a command in a host that is there, next to one outside.
func BenchmarkJoin(b *testing.B) {
	h, err := sim.Start(sim.Options{Boards: "n150"})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for b.Loop() {
		if err := h.Command(b.Context(), "/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead compares a simulated file with the floor, a real file of
// sysfs: on a kept descriptor, and with open and close.
func BenchmarkRead(b *testing.B) {
	h, err := sim.Start(sim.Options{Boards: "galaxy-blackhole", Load: 0.5})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for name, path := range map[string]string{
		"simulated": h.Root() + class("7", "tt_aiclk"),
		"real":      "/sys/devices/system/cpu/online",
	} {
		b.Run("kept/"+name, func(b *testing.B) {
			fd, err := unix.Open(path, unix.O_RDONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(fd)
			buf := make([]byte, 4096)
			for b.Loop() {
				if _, err := unix.Pread(fd, buf, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("opened/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := os.ReadFile(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
