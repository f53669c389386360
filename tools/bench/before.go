package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// benchBefore compares the throughput and the processor time of a message with
// those of an older ttmond. Both run in turn, and what counts is the median of
// the ratios of neighbours: whatever else the machine does changes both. Ours is
// without what the other has not (history, alerts, the watch over allocators);
// what that takes, whatever clients do, is said apart.
func benchBefore(l *lab) error {
	base, err := buildBase()
	if err != nil {
		return err
	}
	if err := l.compile("writer", writerSource); err != nil {
		return err
	}
	plain := filepath.Join(l.dir, "plain.toml")
	if err := os.WriteFile(plain, []byte("[history]\nenabled = false\n"), 0o600); err != nil {
		return err
	}
	ours := filepath.Join(l.bin, "ttmond")
	starts := [2]func() (*node, error){
		func() (*node, error) { return l.ttmondOf(base) },
		func() (*node, error) { return l.ttmondOf(ours, "--no-uprobe", "--config", plain) },
	}
	if err := benchBackground(append(starts[:], l.ttmond)); err != nil {
		return err
	}
	fmt.Printf("%46s %44s\n%-8s%15s", "1000 messages a second", "ns of CPU a message", "writers", "messages/write")
	for range 2 {
		fmt.Printf("%9s%9s%9s%8s%8s", "before", "now", "ratio", "of", "to")
	}
	fmt.Println()
	const rounds = 7
	for _, c := range []struct{ writers, messages, batch int }{{1, 400_000, 1}, {4, 150_000, 1}, {1, 4_000_000, 32}, {4, 1_200_000, 32}} {
		var speeds, costs [2][]float64
		var faster, dearer []float64
		for round := range rounds {
			var speed, cost [2]float64
			for k := range 2 {
				i := (k + round) % 2 // none is always the first
				if speed[i], cost[i], err = l.fill(starts[i], c.writers, c.messages, c.batch); err != nil {
					return err
				}
				speeds[i], costs[i] = append(speeds[i], speed[i]/1e3), append(costs[i], cost[i])
			}
			faster, dearer = append(faster, speed[1]/speed[0]), append(dearer, cost[1]/cost[0])
		}
		f, d := middle(faster), middle(dearer) // which sorts
		fmt.Printf("%-8d%15d%9.0f%9.0f%9.2f%8.2f%8.2f%9.0f%9.0f%9.2f%8.2f%8.2f\n", c.writers, c.batch,
			middle(speeds[0]), middle(speeds[1]), f, faster[0], faster[rounds-1], middle(costs[0]), middle(costs[1]), d, dearer[0], dearer[rounds-1])
	}
	fmt.Printf("before: ttmond of %s. %d runs of each in turn; ratios are medians of the ratios of neighbours, with the least and the most.\n", baseCommit, rounds)
	fmt.Println("Aim: a throughput that is not lower.")
	return nil
}

// benchBackground is the processor time of ttmonds without clients.
func benchBackground(starts []func() (*node, error)) error {
	const seconds = 5
	used := make([]float64, len(starts)) // ms a second
	for i, start := range starts {
		n, err := start()
		if err != nil {
			return err
		}
		before, err := n.quiet()
		time.Sleep(seconds * time.Second)
		after, cpuErr := cpuTime(n.cmd.Process.Pid)
		n.end()
		if err := errors.Join(err, cpuErr); err != nil {
			return err
		}
		used[i] = (after - before).Seconds() * 1e3 / seconds
	}
	fmt.Printf("CPU without clients, ms a second: before %.1f, now %.1f, with history, alerts and the watch over allocators %.1f\n\n", used[0], used[1], used[2])
	return nil
}

// fill runs one load against one ttmond; cost is ns of its processor time a
// message.
func (l *lab) fill(start func() (*node, error), writers, messages, batch int) (perSecond, cost float64, err error) {
	n, err := start()
	if err != nil {
		return 0, 0, err
	}
	defer n.end()
	before, err := n.quiet()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if _, err = l.write(n.alloc, writers, messages, batch, 0, 0); err == nil {
		err = n.awaitEvents(uint64(writers * messages))
	}
	took := time.Since(begin)
	after, cpuErr := cpuTime(n.cmd.Process.Pid)
	total := float64(writers * messages)
	return total / took.Seconds(), float64((after - before).Nanoseconds()) / total, errors.Join(err, cpuErr)
}

// quiet waits until a ttmond has done what it does at its start, and returns
// what it has used: history and the watch over allocators begin behind it.
func (n *node) quiet() (used time.Duration, err error) {
	for range 50 {
		before := used
		if used, err = cpuTime(n.cmd.Process.Pid); err != nil || used-before < 5*time.Millisecond {
			return used, err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return used, nil
}
