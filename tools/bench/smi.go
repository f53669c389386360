package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// benchSMI compares a snapshot with the floor: a C program that only reads
// the files that the snapshot reads.
func benchSMI(l *lab) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "boards\tfiles\tcalls\tfloor wall\tcpu\tstart wall\tcpu\tsmi wall\tcpu\t(smi-start)/floor wall\tcpu\t")
	ttmon := filepath.Join(l.bin, "ttmon")
	for _, boards := range []struct{ n, spec string }{{"1", "p150a"}, {"8", "8xp150a"}, {"32", "galaxy-blackhole"}} {
		root := filepath.Join(l.dir, "host"+boards.n)
		sim := exec.Command(filepath.Join(l.bin, "ttmon-sim"), "--root", root, "--boards", boards.spec)
		if out, err := sim.CombinedOutput(); err != nil {
			return fmt.Errorf("making a host of %s: %w\n%s", boards.spec, err, out)
		}
		snapshot := []string{ttmon, "smi", "--json", "--direct", "--root", root}
		calls, files, err := systemCalls(snapshot...)
		if err != nil {
			return err
		}
		costs, err := measure(60,
			func() *exec.Cmd { return l.readAll(nil) },
			func() *exec.Cmd { return l.readAll(files) },
			func() *exec.Cmd { return exec.Command(ttmon, "version") },
			func() *exec.Cmd { return exec.Command(snapshot[0], snapshot[1:]...) },
		)
		if err != nil {
			return err
		}
		floor, start, smi := costs[1].less(costs[0]), costs[2], costs[3]
		own := smi.less(start)
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t\n", boards.n, len(files), calls,
			ms(floor.wall), ms(floor.cpu), ms(start.wall), ms(start.cpu), ms(smi.wall), ms(smi.cpu),
			float64(own.wall)/float64(floor.wall), float64(own.cpu)/float64(floor.cpu))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("Times in ms. floor: a C program that opens, reads and closes the same files, less its own start; files on a tmpfs.")
	fmt.Println("start: ttmon version. Aim: smi within 1.5 floors and a start as in the section start.")
	return nil
}

// readAll is the floor over a list of files.
func (l *lab) readAll(files []string) *exec.Cmd {
	cmd := exec.Command(l.floor)
	cmd.Stdin = strings.NewReader(strings.Join(files, "\n"))
	return cmd
}
