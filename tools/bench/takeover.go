package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// benchTakeover is how long clients wait while a successor takes over.
func benchTakeover(l *lab) error {
	if err := l.compile("writer", writerSource); err != nil {
		return err
	}
	for _, buffers := range []int{1000, million, 4 * million} {
		n, err := l.ttmond()
		if err != nil {
			return err
		}
		client, err := l.hold(n, buffers)
		if err != nil {
			n.end()
			return err
		}
		busy := exec.Command(filepath.Join(l.dir, "writer"), n.alloc, "100000000", "1", "100000", "0") // reports meanwhile
		err = busy.Start()
		var pauses []float64
		for range 5 {
			if err == nil {
				err = n.takeOver()
			}
			var pause float64
			if err == nil {
				pause, err = n.pause()
			}
			pauses = append(pauses, pause*1e3)
		}
		for _, c := range []*exec.Cmd{busy, client} {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		n.end()
		if err != nil {
			return err
		}
		slices.Sort(pauses)
		fmt.Printf("takeover with %d buffers and 100000 messages/s: clients wait %.1f ms (median of 5), at most %.1f ms. Aim: 100 at a million\n",
			buffers, pauses[len(pauses)/2], pauses[len(pauses)-1])
	}
	return nil
}
