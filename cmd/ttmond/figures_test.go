package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// figuresVar has TestAttackFigures print its table: make bench SECTIONS=attacks.
const figuresVar = "TTMOND_FIGURES"

// What each attack, alone, does to the loop, to root's workload and to a viewer.
func TestAttackFigures(t *testing.T) {
	if os.Getenv(figuresVar) == "" {
		t.Skip("it only measures: make bench SECTIONS=attacks")
	}
	names := attackNames()
	slices.Sort(names)
	fmt.Printf("FIGURE %-12s %46s %24s %30s %7s\n", "", "loop ms: step, turn p99, max, CPU of it", "report stall ms: p99, max", "question ms: p50, p99, max", "MiB")
	for _, name := range append([]string{"nothing"}, names...) {
		if name == "paths" {
			continue // it needs stops and starts
		}
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			a.patience = patienceOfUsers
			a.begin()
			for uid := range 2 {
				if name != "nothing" {
					a.play(60000+uid, name)
				}
			}
			time.Sleep(5 * time.Second)
			a.settle()
			f, ms := &a.figures, func(d time.Duration) float64 { return d.Seconds() * 1e3 }
			fmt.Printf("FIGURE %-12s %14.2f %9.2f %9.2f %6.2f %-9s %9.3f %9.2f %10.2f %9.2f %9.2f %7d\n", name, ms(f.step), ms(f.turnP99), ms(f.turn), ms(f.work), f.busiest,
				ms(f.stallP99), ms(f.stall), ms(f.mid), ms(f.answerP99), ms(f.answer), f.mebibytes)
		})
	}
}
