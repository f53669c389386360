package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/e2e/killed"
)

// benchKilled measures what kill -9 costs: ttmond at one snapshot a second on
// 32 simulated boards with 64 processes, and others that come and go.
func benchKilled(l *lab) error {
	r, err := killed.Loop(context.Background(), killed.Options{Bin: l.bin, Boards: "32xp150a", Processes: 64, Interval: time.Second, Rounds: 30})
	if err != nil {
		return err
	}
	seconds := func(list []time.Duration) string {
		list = slices.Sorted(slices.Values(list))
		return fmt.Sprintf("median %.2f s, worst %.2f s", list[len(list)/2].Seconds(), list[len(list)-1].Seconds())
	}
	fmt.Printf("killed %d times: the last sample is older than the kill by %s\n", len(r.Lost), seconds(r.Unseen))
	fmt.Printf("of what had been shown is lost: %s\n", seconds(r.Lost))
	fmt.Printf("history answers again after the start: %s\n", seconds(r.Opened))
	fmt.Printf("events answered before a kill: %d, not there afterwards: %d\n", r.Events, len(r.Missing))
	return nil
}
