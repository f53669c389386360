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

// baseVar is an older ttmond that is measured beside ours, if there is one.
const baseVar = "TTMOND_BASE"

const attackTime = 3 * time.Second

// What each attack, alone, does to the loop, to root's workload and to a viewer.
func TestAttackFigures(t *testing.T) {
	if os.Getenv(figuresVar) == "" {
		t.Skip("it only measures: make bench SECTIONS=attacks")
	}
	names := attackNames()
	slices.Sort(names)
	fmt.Printf("FIGURE %-12s %46s %24s %30s %7s\n", "", "loop ms: step, turn p99, max, CPU of it", "report stall ms: p99, max", "question ms: p50, p99, max", "MiB")
	for _, name := range append([]string{"nothing", "takeovers"}, names...) {
		if name == "paths" {
			continue // it needs stops and starts
		}
		if base := os.Getenv(baseVar); base != "" && attacks[name] != nil || base != "" && name == "nothing" {
			t.Run(name+" before", func(t *testing.T) { measureBase(t, base, name) })
		}
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			a.timeout = userTimeout
			a.begin()
			for uid := range 2 {
				switch name {
				case "nothing":
				case "takeovers": // while many libraries are watched
					a.play(60000+uid, "libraries")
				default:
					a.play(60000+uid, name)
				}
			}
			for range map[string]int{"takeovers": 8}[name] {
				a.takeOver()
			}
			time.Sleep(attackTime)
			a.settle()
			f, ms := &a.figures, func(d time.Duration) float64 { return d.Seconds() * 1e3 }
			fmt.Printf("FIGURE %-12s %14.2f %9.2f %9.2f %6.2f %-9s %9.3f %9.2f %10.2f %9.2f %9.2f %7d\n", name, ms(f.step), ms(f.turnP99), ms(f.turn), ms(f.work), f.busiest,
				ms(f.stallP99), ms(f.stall), ms(f.mid), ms(f.answerP99), ms(f.answer), f.mebibytes)
		})
	}
}

// measureBase measures a ttmond that promises nothing: it may freeze or die.
func measureBase(t *testing.T, program, attack string) {
	a := newArena(t)
	a.program = program
	a.configure(fmt.Sprintf("[alloc]\nmax_buffers = %d\n", arenaBuffers)) // it knows no other part of it
	a.extraEnviron = append(a.extraEnviron, "GOMEMLIMIT=300MiB")
	a.begin()
	a.tool(attack) // made before two start it
	for uid := range 2 {
		if attack != "nothing" {
			go func() { _, _ = a.tryPlay(60000+uid, attack) }() // it may wait for ever to get in
		}
	}
	time.Sleep(attackTime + time.Second) // of attack
	outcome, mib := "", int(a.memory()>>20)
	if a.current.ended() {
		outcome = "killed"
	}
	a.stopView()
	a.rootIn.Close()
	said := make(chan string, 1)
	go func() {
		line, _ := a.rootOut.ReadString('\n')
		said <- line
	}()
	var f figures
	select {
	case line := <-said:
		if _, err := fmt.Sscanf(line, "worst %d p99 %d reports %d", &f.stall, &f.stallP99, &f.reports); err != nil {
			outcome += " root's workload died"
		}
	case <-time.After(5 * time.Second):
		outcome += " frozen for 5 s more"
	}
	a.current.kill() // clients that wait for it continue
	a.viewer.Wait()
	if n := len(a.answers); n > 0 {
		slices.Sort(a.answers)
		f.mid, f.answerP99, f.answer = a.answers[n/2], a.answers[n*99/100], a.answers[n-1]
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	fmt.Printf("FIGURE %-12s %14s %9s %9s %6s %-9s %9.3f %9.2f %10.2f %9.2f %9.2f %7d %s\n", "  before", "", "", "", "", "", ms(f.stallP99), ms(f.stall), ms(f.mid), ms(f.answerP99), ms(f.answer), mib, outcome)
}
