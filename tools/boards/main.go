// Command boards turns bundles of ttmon selftest into rows of docs/boards.md.
//
//	go run ./tools/boards BUNDLE.tar.gz            prints the rows
//	go run ./tools/boards -w docs/boards.md BUNDLE.tar.gz
package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
)

// maxReport bounds the report in a bundle, which other people send: 32 boards make
// half a megabyte.
const maxReport = 16 << 20

// The rows of the table are between these lines.
const (
	begin = "<!-- rows of tools/boards: begin -->"
	end   = "<!-- rows of tools/boards: end -->"
)

func main() {
	page := flag.String("w", "", "put the rows into this `PAGE` instead of printing them")
	flag.Parse()
	if err := run(*page, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "boards:", err)
		os.Exit(1)
	}
}

func run(page string, bundles []string, out io.Writer) error {
	if len(bundles) == 0 {
		return errors.New("name the bundles that ttmon selftest --bundle wrote")
	}
	var rows []string
	for _, name := range bundles {
		r, err := read(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		rows = append(rows, rowsOf(r)...)
	}
	if page == "" {
		_, err := fmt.Fprintln(out, strings.Join(rows, "\n"))
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	merged, err := insert(string(text), rows)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return replace.File(page, []byte(merged), 0o644)
}

// read finds the report in a bundle.
func read(name string) (*report.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(gz); ; {
		head, err := t.Next()
		if err == io.EOF {
			return nil, errors.New("there is no selftest.json in it: ttmon selftest --bundle makes such a bundle, ttmon doctor does not")
		}
		if err != nil {
			return nil, err
		}
		if path.Base(head.Name) != "selftest.json" {
			continue
		}
		var r report.Report
		if err := json.NewDecoder(io.LimitReader(t, maxReport)).Decode(&r); err != nil {
			return nil, err
		}
		if r.Schema != report.Schema {
			return nil, fmt.Errorf("its report is %q, not %q", r.Schema, report.Schema)
		}
		return &r, nil
	}
}

// rowsOf is a row for each kind of board.
func rowsOf(r *report.Report) (rows []string) {
	for _, b := range r.Boards {
		cells := []string{
			fmt.Sprintf("%d× %s", b.Count, b.Name), b.Firmware, r.Driver, metal(r), strings.ReplaceAll(string(r.Stage), "_", " "), r.Version,
			fmt.Sprintf("%d right, %d bounded, %d wrong", r.Count(report.Right), r.Count(report.Bounded), r.Count(report.Wrong)),
			r.Time.UTC().Format("2006-01-02"),
		}
		for i := range cells {
			cells[i] = cell(cells[i])
		}
		rows = append(rows, "| "+strings.Join(cells, " | ")+" |")
	}
	return rows
}

// metal is the release of tt-metal, and what its program ran on where that was
// not one of the boards.
func metal(r *report.Report) string {
	if r.Metal == "" || r.ProgramOn == "" || strings.HasPrefix(r.ProgramOn, "device ") {
		return r.Metal
	}
	return r.Metal + " (" + r.ProgramOn + ")"
}

// cell makes untrusted text fit for a table in Markdown.
func cell(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune("|<>`[]", r) {
			return -1
		}
		return r
	}, s)
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "")
	}
	if s == "" {
		return "–"
	}
	return s
}

// insert puts rows between the marks, sorted, each once.
func insert(text string, rows []string) (string, error) {
	before, rest, ok := strings.Cut(text, begin+"\n")
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("it has no lines %q and %q", begin, end)
	}
	all := append(strings.Split(strings.TrimRight(old, "\n"), "\n"), rows...)
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	slices.Sort(all)
	all = slices.Compact(all)
	return before + begin + "\n" + strings.Join(all, "\n") + "\n" + end + after, nil
}
