package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// bundle writes a bundle with one file in it.
func bundle(t *testing.T, name string, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	if err := w.WriteHeader(&tar.Header{Name: "ttmon-bundle/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRow(t *testing.T) {
	r := &report.Report{
		Schema: report.Schema, Version: "0.2.0", Time: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Stage: report.Silicon, Driver: "2.10.0", Metal: "0.81.1",
		Boards: []report.Board{{Name: "n300", Firmware: "19.9.0.0", Count: 2}, {Name: "p150a|<b>", Count: 1}},
		Rows:   []report.Row{{Verdict: report.Right}, {Verdict: report.Right}, {Verdict: report.Bounded}},
	}
	file := bundle(t, "selftest.json", r.JSON())
	page := filepath.Join(t.TempDir(), "boards.md")
	if err := os.WriteFile(page, []byte("head\n"+begin+"\n| z |\n"+end+"\ntail\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same bundle twice is one row
		if err := run(page, []string{file}, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "head\n" + begin + "\n" +
		"| 1× p150ab | – | 2.10.0 | 0.81.1 | silicon | 0.2.0 | 2 right, 1 bounded, 0 wrong | 2026-12-01 |\n" +
		"| 2× n300 | 19.9.0.0 | 2.10.0 | 0.81.1 | silicon | 0.2.0 | 2 right, 1 bounded, 0 wrong | 2026-12-01 |\n" +
		"| z |\n" + end + "\ntail\n"
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestBadBundles(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"of doctor":      {"doctor.json", "{}", "no selftest.json"},
		"another schema": {"selftest.json", `{"schema":"ttmon.selftest/9"}`, "ttmon.selftest/9"},
		"not JSON":       {"selftest.json", "<html>", "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run("", []string{bundle(t, tt.file, []byte(tt.text))}, new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
