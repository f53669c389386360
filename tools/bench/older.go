package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// buildAt builds a program of an older commit as it is released, once, into the
// cache.
func buildAt(commit, program string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ttmon", "base-"+commit)
	bin := filepath.Join(dir, program)
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	source, err := os.MkdirTemp("", "ttmon-base-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(source)
	build := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2" && mkdir -p "$3" && cd "$2" && go build -buildvcs=false -trimpath -ldflags "-s -w" -o "$3/" ./cmd/"$4"`,
		"sh", commit, source, dir, program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the %s of %s: %w\n%s", program, commit, err, out)
	}
	return bin, nil
}
