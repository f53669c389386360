package main

import (
	"os"
	"testing"
)

// What building the command tree costs each start.
func BenchmarkCommandTree(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newRoot(&app{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv})
	}
}
