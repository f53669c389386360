package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// startCommit is the last ttmon of 7 MB.
const startCommit = "cdc9bbe"

// benchStart measures what it takes to start ttmon, next to the smallest program
// there is, the smallest in Go, and ttmon when it had half its size. All are run in
// turn, and as they are installed: see copied.
func benchStart(l *lab) error {
	older, err := buildAt(startCommit, "ttmon")
	if err != nil {
		return err
	}
	hello, err := l.emptyGo()
	if err != nil {
		return err
	}
	ttmon := filepath.Join(l.bin, "ttmon")
	dir, err := os.MkdirTemp(l.bin, "start-") // where the programs are is a disk
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, p := range []*string{&older, &hello, &ttmon} {
		if *p, err = copied(*p, dir, i); err != nil {
			return err
		}
	}
	programs := []struct {
		name string
		args []string
	}{
		{"true", []string{"true"}},
		{"an empty program in Go", []string{hello}},
		{"ttmon version of " + startCommit, []string{older, "version"}},
		{"ttmon version", []string{ttmon, "version"}},
	}
	var commands []func() *exec.Cmd
	for _, p := range programs {
		commands = append(commands, func() *exec.Cmd { return exec.Command(p.args[0], p.args[1:]...) })
	}
	costs, err := measure(200, commands...)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "program\tsize MB\twall ms\tcpu ms\tcpu of the older\t")
	for i, p := range programs {
		path, err := exec.LookPath(p.args[0])
		if err != nil {
			return err
		}
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%s\t%.2f\t\n", p.name, float64(st.Size())/1e6, ms(costs[i].wall), ms(costs[i].cpu), float64(costs[i].cpu)/float64(costs[2].cpu))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	inits, err := initTrace(ttmon)
	if err != nil {
		return err
	}
	fmt.Println("What initialises longest (GODEBUG=inittrace=1):", inits)
	fmt.Println("Aim: not above the older one, then 2 ms.")
	return nil
}

// copied is a copy of a program in a directory, as installing it makes one. Go's
// linker writes files through a mapping, which leaves them in the kernel's cache in
// single pages, as a tmpfs does; what is copied to a disk is there in larger pieces,
// and starts with a fifth less CPU.
func copied(program, dir string, n int) (string, error) {
	in, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer in.Close()
	path := filepath.Join(dir, fmt.Sprint(n))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	return path, errors.Join(err, out.Close())
}

// emptyGo builds a program in Go that does nothing.
func (l *lab) emptyGo() (string, error) {
	source, bin := filepath.Join(l.dir, "empty.go"), filepath.Join(l.dir, "empty")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building an empty program: %w\n%s", err, out)
	}
	return bin, nil
}

// initTrace names the packages whose initialisation takes 50 µs and more, with
// their times.
func initTrace(ttmon string) (string, error) {
	cmd := exec.Command(ttmon, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", err
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		var name string
		var at, took float64
		if n, _ := fmt.Sscanf(line, "init %s @%g ms, %g ms clock", &name, &at, &took); n == 3 && took >= 0.05 {
			list = append(list, fmt.Sprintf("%s %.2f ms", name, took))
		}
	}
	return strings.Join(list, ", "), nil
}
