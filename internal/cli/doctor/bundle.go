package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/field/wire"
	checks "github.com/ttmon/ttmon/internal/view/doctor"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/text"
)

// bundled is one file of a support bundle.
type bundled struct {
	name string
	text []byte
}

const bundleReadme = `A support bundle of ttmon doctor.

doctor.txt     the report
doctor.json    the same for programs (ttmon.doctor/1)
snapshot.json  what the report was made from (ttmon.snapshot/1)
setup.txt      the kernel, the driver's parameters, IOMMU, huge pages
report.json  of ttmon selftest --bundle: every comparison (ttmon.selftest/1)
report.txt   the same for people
`

const (
	bundlePrivate = "\nIt contains names, command lines and serial numbers (--private).\n"
	bundlePublic  = `
Names of hosts, users, programs, jobs and containers are replaced, command lines
and what the system said about files are left out, and ids of boards and chips
are replaced by chip-1, chip-2, … Numbers of processes and sizes are as they are.
`
)

// Bundle writes a support bundle to a file that must not be there yet. Unless it is
// private, names, command lines and ids are left out of it or replaced.
func Bundle(name string, s *checks.Subject, private bool) error {
	return bundle(name, s, private)
}

// SelftestBundle is a support bundle with the report of a self-test in it, from
// which tools/boards makes a row of docs/boards.md. It is never private.
func SelftestBundle(name string, from host.Options, r *report.Report) error {
	s, err := Subject(from)
	if err != nil {
		return err
	}
	public := withoutPaths(r)
	return bundle(name, s, false,
		bundled{"selftest.json", append(public.JSON(), '\n')},
		bundled{"selftest.txt", text.AppendSelftest(nil, public, true, text.Options{Options: lines.Options{Width: 120}, Zone: time.UTC})},
	)
}

// withoutPaths is a report whose notes name no file but the kernel's: a path
// can name a user or a project.
func withoutPaths(r *report.Report) *report.Report {
	out := *r
	out.Rows = slices.Clone(r.Rows)
	for i := range out.Rows {
		for _, s := range []*string{&out.Rows[i].Note, &out.Rows[i].Witness} {
			fields := strings.Fields(*s)
			for n, word := range fields {
				at := strings.IndexByte(word, '/')
				if at >= 0 && filepath.IsAbs(word[at:]) && !kernelFile(word[at:]) && len(word[at:]) > 1 {
					fields[n] = word[:at] + "PATH"
				}
			}
			*s = strings.Join(fields, " ")
		}
	}
	return &out
}

func kernelFile(path string) bool {
	for _, dir := range []string{"/sys/", "/proc/", "/dev/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

func bundle(name string, s *checks.Subject, private bool, more ...bundled) error {
	about := bundlePrivate
	hide := func(b []byte) []byte { return b }
	if !private {
		about = bundlePublic
		hide = idsHidden(s.Snapshot)
		s = anonymous(s)
	}
	r := checks.Examine(s)
	files := []bundled{
		{"README.txt", []byte(bundleReadme + about)},
		{"doctor.txt", text.AppendDoctor(nil, r, text.Options{Options: lines.Options{Width: 100}, Version: r.Version, Zone: time.UTC})},
		{"doctor.json", append(JSON(r), '\n')},
		{"snapshot.json", append(wire.AppendIndented(nil, s.Snapshot), '\n')},
		{"setup.txt", appendSetup(nil, s.Setup)},
	}
	files = append(files, more...)
	for i := range files {
		files[i].text = hide(files[i].text)
	}
	return writeBundle(name, files, s.Snapshot.Time)
}

// writeBundle creates a new file, readable by its owner only: a link planted at
// its path must not make root overwrite another file.
func writeBundle(name string, files []bundled, at time.Time) error {
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	w := tar.NewWriter(gz)
	for _, f := range files {
		err := w.WriteHeader(&tar.Header{
			Name: "ttmon-bundle/" + f.name, Mode: 0o644, Size: int64(len(f.text)), ModTime: at.Truncate(time.Second), Format: tar.FormatUSTAR,
		})
		if err == nil {
			_, err = w.Write(f.text)
		}
		if err != nil {
			return exit.With(exit.Internal, "packing %s: %w", f.name, err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		return exit.With(exit.Internal, "packing %s: %w", name, err)
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.Usage("--bundle: %s already exists: choose another name", name)
	}
	if err != nil {
		return &exit.Error{Code: exit.Denied, Err: err}
	}
	_, err = out.Write(buf.Bytes())
	if err := errors.Join(err, out.Close()); err != nil {
		return &exit.Error{Code: exit.Denied, Err: err}
	}
	return nil
}
