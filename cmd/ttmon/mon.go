package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// mon is dmon or pmon with its flags.
type mon struct {
	*app
	cmd    *cobra.Command
	new    func(string, text.Options) (*text.Stream, byte, bool)
	append func(*text.Stream, []byte, *model.Snapshot) []byte
	groups func() []text.Group

	ids    []string
	every  time.Duration
	count  int
	letter string
	stamp  string
	file   string
	format string
}

func newDmon(a *app) *cobra.Command {
	m := &mon{app: a, new: text.NewDmon, append: (*text.Stream).AppendDmon, groups: text.DmonGroups}
	m.cmd = &cobra.Command{
		Use:   "dmon",
		Short: "Print a line per device every second",
		Long: `Prints a line per device and sample, as nvidia-smi dmon does: lines that start
with # are headings, - is an unknown value.

Columns are chosen by letters with -s:
` + text.DmonHelp,
		Example: `  ttmon dmon                            all devices, every second
  ttmon dmon -d 0 -s pt --interval 5s   power, temperature and PCIe traffic of device 0
  ttmon dmon -c 60 -o DT -f power.log
  ttmon dmon -c 1 --format csv,nounit`,
		RunE: func(*cobra.Command, []string) error { return m.run() },
	}
	m.flags(text.DmonDefault)
	return m.cmd
}

func newPmon(a *app) *cobra.Command {
	m := &mon{app: a, new: text.NewPmon, append: (*text.Stream).AppendPmon, groups: text.PmonGroups}
	m.cmd = &cobra.Command{
		Use:   "pmon",
		Short: "Print a line per process every second",
		Long: `Prints a line per process, device and sample. Lines that start with # are
headings, - is an unknown value; a device without processes has a line of -.

Columns are chosen by letters with -s:
` + text.PmonHelp,
		Example: `  ttmon pmon                    who uses what, every second
  ttmon pmon -s umMj -c 1       all memory pools and the job, once`,
		RunE: func(*cobra.Command, []string) error { return m.run() },
	}
	m.flags(text.PmonDefault)
	return m.cmd
}

func (m *mon) flags(letters string) {
	f := m.cmd.Flags()
	addDevices(f, &m.ids, theseDevices)
	addInterval(f, &m.every, time.Second, "`TIME` between two samples, such as 500ms or 5s")
	addHidden(f, "delay", "", f.Lookup("interval").Value)
	f.IntVarP(&m.count, "count", "c", 0, "stop after `N` samples")
	f.StringVarP(&m.letter, "select", "s", letters, "groups of columns, by `LETTERS` (ttmon help "+m.cmd.Name()+" lists them)")
	f.StringVarP(&m.stamp, "options", "o", "", "prefix each line, by `LETTERS`: D the date, T the time")
	f.StringVarP(&m.file, "filename", "f", "", "write to `FILE` instead of standard output")
	f.StringVar(&m.format, "format", "", "print CSV: `FORMAT` is csv[,noheader][,nounit]")
}

func (m *mon) run() error {
	switch {
	case m.count < 0:
		return exit.Usage("--count=%d: must not be negative", m.count)
	case m.every < 10*time.Millisecond:
		return exit.Usage("--interval=%v: too short, at least 10ms", m.every)
	}
	o, err := m.TextOptions(m.Stdout)
	if err != nil {
		return err
	}
	st, wrong, ok := m.new(m.letter, o)
	if !ok {
		return exit.Usage("-s %s: unknown group %q: one of %s", m.letter, wrong, letters(m.groups()))
	}
	if err := m.configure(st); err != nil {
		return err
	}
	chosen, err := selection.Parse(m.ids)
	if err != nil {
		return err
	}
	out := m.Output(m.file)
	err = repeat.Do(&m.Console, m.where, repeat.Job{
		Out: out, Selection: chosen, Interval: m.every, Count: m.count, Sample: min(m.every, ratesSample),
		Print: func(dst []byte, s *model.Snapshot, _ text.Options) []byte { return m.append(st, dst, s) },
	})
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return noDevice(m.cmd, err)
}

// configure takes the flags over that change how lines look.
func (m *mon) configure(st *text.Stream) error {
	for _, c := range m.stamp {
		switch c {
		case 'D', 'd':
			st.Date = true
		case 'T', 't':
			st.Clock = true
		default:
			return exit.Usage("-o %s: unknown option %q: D or T", m.stamp, c)
		}
	}
	if m.format == "" {
		return nil
	}
	for i, part := range strings.Split(m.format, ",") {
		switch {
		case i == 0 && part == "csv":
			st.CSV = true
		case i > 0 && part == "noheader":
			st.NoHeader = true
		case i > 0 && (part == "nounit" || part == "nounits"):
			st.NoUnits = true
		default:
			return exit.Usage("--format=%s: unknown format %q: it is csv[,noheader][,nounit]", m.format, part)
		}
	}
	return nil
}

func letters(groups []text.Group) string {
	var b strings.Builder
	for _, g := range groups {
		b.WriteByte(g.Letter)
	}
	return b.String()
}
