package main

import (
	"os"
	"testing"
)

// What building the command tree costs each start.
func BenchmarkCommandTree(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newRoot(newApp(os.Stdout, os.Stderr, os.Getenv), "")
	}
}
