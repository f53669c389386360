package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// smi is the command ttmon smi with its flags.
type smi struct {
	*app
	cmd *cobra.Command

	watch                bool
	loop                 float64
	every                time.Duration
	loopMS, refresh      int
	sample               int
	ids                  []string
	list, query, json    bool
	display              string
	queryDevice, apps    string
	format               string
	helpDevice, helpApps bool
	file                 string
	estimates            bool
	version              bool

	// The official tool's.
	snapshot, noTTY, ttList, trays bool
	compact, names, local          bool
	strict                         bool
	columns                        string
	reset                          bool
	ignored                        [4]bool
	resetting                      [3]bool
	xml                            bool
}

func newSMI(a *app) *cobra.Command {
	s := &smi{app: a}
	s.cmd = &cobra.Command{
		Use:   "smi",
		Short: "Show boards and who uses them, once or repeatedly",
		Long: `Shows every Tenstorrent board of the host, its health, its memory and the
processes that use it: as a table, a long report, JSON or CSV. The flags are
those of nvidia-smi and of the official tt-smi, with two exceptions: a reset, since
ttmon never changes a board, and nvidia-smi's XML (-x), since --json has all of it.

In the table, a word in place of a number says why it is missing (denied, hung,
reset, lost, stale), – that there is none, or that it is not available; ~ marks an
estimate, a limit from the board's data sheet, or a state judged from one sample, ≥ a
lower bound, and ↓ a PCIe link slower or narrower than both ends support.

The sections of -q have nvidia-smi's names too: -d PERFORMANCE is CLOCK, with what
holds the clocks down; UTILIZATION is ACTIVITY; VOLTAGE, CURRENT and FAN are POWER.

Exit codes: 0 ok, 2 bad argument, 3 not supported, 4 no permission, 6 no device,
9 driver not loaded, 15 a device is hung or lost (the output is complete).`,
		Example: `  ttmon smi                                  the table
  ttmon smi -w                               the table, drawn again every second
  ttmon smi -l 5 -i 0,0000:41:00.0           two devices, every five seconds
  ttmon smi -q -d MEMORY,PIDS                the full report, memory and processes only
  ttmon smi --json | jq '.devices[].power_w'
  ttmon smi --query-device=index,name,temperature.asic,memory.used --format=csv
  ttmon smi --query-apps=pid,user,used_memory --format=csv,noheader,nounits
  ttmon smi -s | jq .device_info             a snapshot as the official tt-smi prints it`,
		RunE: func(*cobra.Command, []string) error { return s.run() },
	}
	s.flags()
	s.cmd.AddCommand(newDmon(a), newPmon(a), newTopo(a))
	return s.cmd
}

func (s *smi) flags() {
	f := s.cmd.Flags()
	f.BoolVarP(&s.watch, "watch", "w", false, "print again every second, in place on a terminal")
	f.Float64VarP(&s.loop, "loop", "l", 0, "print again every `SECONDS` (also -lms MS)")
	addInterval(f, &s.every, 0, "print again every `TIME`, such as 500ms or 2s")
	f.IntVar(&s.loopMS, "loop-ms", 0, "print again every `MS` milliseconds (also -lms MS)")
	_ = f.MarkHidden("loop-ms")
	f.IntVarP(&s.refresh, "refresh", "r", 0, "as --watch, every `MS` milliseconds")
	f.IntVar(&s.sample, "sample", 0, "sample twice, `MS` apart, so that rates and CPU are known")
	f.StringArrayVarP(&s.ids, "id", "i", nil, "only `DEVICES`: index, bus id, serial or ASIC id, as 0,2 (also -d)")
	f.BoolVarP(&s.list, "list-devices", "L", false, "one line per device: index, name and ids")
	addHidden(f, "list-gpus", "", f.Lookup("list-devices").Value)
	f.Lookup("list-gpus").NoOptDefVal = "true"
	f.BoolVarP(&s.query, "query", "q", false, "a long report, with the reason for everything that is missing")
	f.StringVarP(&s.display, "display", "d", "", "with -q: only these `SECTIONS` of the report: "+sectionNames())
	f.BoolVar(&s.json, "json", false, "print JSON (ttmon.snapshot/1), one object per line if repeated")
	f.StringVar(&s.queryDevice, "query-device", "", "CSV of these `FIELDS` of each device (also --query-gpu)")
	f.StringVar(&s.queryDevice, "query-gpu", "", "the same as --query-device")
	f.StringVar(&s.apps, "query-apps", "", "CSV of these `FIELDS` of each process (also --query-compute-apps)")
	f.StringVar(&s.apps, "query-compute-apps", "", "the same as --query-apps")
	f.StringVar(&s.format, "format", "csv", "the `FORMAT` of a query: csv[,noheader][,nounits]")
	f.BoolVar(&s.helpDevice, "help-query-device", false, "list the fields of --query-device (also --help-query-gpu)")
	f.BoolVar(&s.helpDevice, "help-query-gpu", false, "the same as --help-query-device")
	f.BoolVar(&s.helpApps, "help-query-apps", false, "list the fields of --query-apps (also --help-query-compute-apps)")
	f.BoolVar(&s.helpApps, "help-query-compute-apps", false, "the same as --help-query-apps")
	f.BoolVar(&s.estimates, "allow-estimates", false, "answer utilization.gpu with the estimate instead of [N/A]")
	f.StringVarP(&s.file, "filename", "f", "", "write to `FILE` instead of standard output (-)")
	f.BoolVarP(&s.snapshot, "snapshot", "s", false, "JSON as the official tt-smi prints it (-f: to ~/tt_smi_logs)")
	f.BoolVar(&s.noTTY, "snapshot_no_tty", false, "the same (the official tool then leaves colours out)")
	f.BoolVar(&s.ttList, "list", false, "the boards as the official tt-smi lists them (also -ls)")
	f.BoolVar(&s.trays, "glx_list_tray_to_device", false, "which device is in which tray of a Galaxy")
	f.BoolVarP(&s.compact, "compact", "c", false, "a smaller table, without bars")
	f.BoolVar(&s.names, "names", false, "what tt-metal calls the chips, beside their boards")
	_ = f.MarkHidden("names")
	f.BoolVar(&s.local, "local", false, "leave out chips reached through other chips")
	f.BoolVar(&s.strict, "error-on-warning", false, "also exit with 15 on a warning (also -eow)")
	f.StringVar(&s.columns, "columns", "", "not offered: the table takes the width of the terminal")
	f.Lookup("columns").NoOptDefVal = "1"
	_ = f.MarkHidden("columns")
	f.BoolVar(&s.reset, "reset", false, "not offered: ttmon never changes a board")
	f.BoolVarP(&s.version, "version", "v", false, "print the version")
	for _, name := range []string{"query-gpu", "query-compute-apps", "help-query-gpu", "help-query-compute-apps", "snapshot_no_tty", "reset"} {
		_ = f.MarkHidden(name)
	}
	// Flags of the official tool that change nothing here, and parts of a reset.
	for i, name := range []string{"offline", "use_luwen", "use_umd", "no-color"} {
		f.BoolVar(&s.ignored[i], name, false, "accepted and ignored")
		_ = f.MarkHidden(name)
	}
	for i, name := range []string{"glx_reset", "glx_reset_auto", "no_reinit"} {
		f.BoolVar(&s.resetting[i], name, false, "part of a reset: not offered")
		_ = f.MarkHidden(name)
	}
	for _, name := range []string{"eth_train_skip", "gpu-reset", "glx_reset_tray"} {
		f.BoolVar(&s.reset, name, false, "part of a reset: not offered")
		_ = f.MarkHidden(name)
	}
	f.BoolVarP(&s.xml, "xml-format", "x", false, "not offered: see --json")
	_ = f.MarkHidden("xml-format")
}

func sectionNames() string {
	var names []string
	for _, s := range text.Sections() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (s *smi) run() error {
	if s.reset || slices.Contains(s.resetting[:], true) {
		return exit.With(exit.Unsupported, "ttmon never resets a board: %s", howToReset())
	}
	if s.columns != "" {
		return exit.With(exit.Unsupported, "--columns is not supported: the table fits the terminal; -c prints a narrower one, -L one line per device")
	}
	if s.xml {
		return exit.With(exit.Unsupported, "XML is not supported: --json has everything, and --query-device and --query-apps are as in nvidia-smi")
	}
	switch {
	case s.version:
		return s.Output("").Write([]byte(versionLine()))
	case s.helpDevice:
		return s.fields(func(dst []byte, o text.Options) []byte { return text.AppendFields(dst, metric.Devices(), o) })
	case s.helpApps:
		return s.fields(func(dst []byte, o text.Options) []byte { return text.AppendFields(dst, metric.Apps(), o) })
	}
	s.splitDisplay()
	j, err := s.job()
	if err != nil {
		return err
	}
	if j.Interval, err = s.interval(); err != nil {
		return err
	}
	if s.sample < 0 {
		return exit.Usage("--sample=%d: must not be negative", s.sample)
	}
	if s.sample > 0 {
		j.Sample = time.Duration(s.sample) * time.Millisecond
	}
	if j.Selection, err = selection.Parse(s.ids); err != nil {
		return err
	}
	j.Prepare, j.Strict = s.prepare, s.strict
	if s.bare {
		table := j.Print
		j.Print = func(dst []byte, snap *model.Snapshot, o text.Options) []byte {
			return append(table(dst, snap, o), words.MoreCommands...)
		}
	}
	if len(s.ids) > 0 && j.Print != nil { // one asks about a device to find whom to ask
		table := j.Print
		j.Print = func(dst []byte, snap *model.Snapshot, o text.Options) []byte {
			o.Who = true
			return table(dst, snap, o)
		}
	}
	j.Out = s.Output(s.file)
	err = noDevice(s.cmd, repeat.Do(&s.Console, s.where, j))
	if cerr := j.Out.Close(); err == nil {
		err = cerr
	}
	if err == nil && s.snapshot && j.Out.Name != "" {
		return s.Output("").Write([]byte("Saved tt-smi log to: " + words.Escape(j.Out.Name) + "\n")) // as the official tool says it
	}
	return err
}

// splitDisplay takes the devices out of the values of -d, which names sections of the
// report for nvidia-smi, and devices in all commands of ttmon: no section has a digit in
// its name, and every device has.
func (s *smi) splitDisplay() {
	var sections []string
	for name := range strings.SplitSeq(s.display, ",") {
		if strings.ContainsAny(name, "0123456789") {
			s.ids = append(s.ids, name)
		} else if name != "" {
			sections = append(sections, name)
		}
	}
	s.display = strings.Join(sections, ",")
}

// fields prints the help of a query.
func (s *smi) fields(list func([]byte, text.Options) []byte) error {
	o, err := s.TextOptions(s.Stdout)
	if err != nil {
		return err
	}
	return s.Output("").Write(list(nil, o))
}

// interval is how often to print; 0 is once. The shortest is 10 ms: drivers
// publish new values ten times a second.
func (s *smi) interval() (time.Duration, error) {
	f := s.cmd.Flags()
	var given []string
	d := time.Duration(0)
	take := func(flag string, v time.Duration) {
		if f.Changed(flag) {
			given, d = append(given, "--"+flag), v
		}
	}
	take("loop", time.Duration(s.loop*float64(time.Second)))
	take("loop-ms", time.Duration(s.loopMS)*time.Millisecond)
	take("refresh", time.Duration(s.refresh)*time.Millisecond)
	take("interval", s.every)
	switch {
	case len(given) > 1:
		return 0, exit.Usage("%s and %s cannot be used together", given[0], given[1])
	case len(given) == 1 && d < 10*time.Millisecond && given[0] == "--refresh": // or was it meant as tt-smi's -r 0?
		return 0, exit.Usage("-r %d: milliseconds between updates, at least 10 (ttmon does not reset boards: %s)", s.refresh, howToReset())
	case len(given) == 1 && d < 10*time.Millisecond:
		return 0, exit.Usage("%s: %v is too short, at least 10 ms", given[0], d)
	case len(given) == 0 && s.watch:
		return time.Second, nil
	}
	return d, nil
}

// prepare makes of a snapshot what the flags ask for.
func (s *smi) prepare(snap *model.Snapshot) *model.Snapshot {
	if !s.local {
		return snap
	}
	part := *snap
	part.Devices = slices.Clone(snap.Devices)
	for i := range part.Devices {
		d := &part.Devices[i]
		d.Chips = slices.DeleteFunc(slices.Clone(d.Chips), func(c model.Chip) bool { return c.Remote })
	}
	return &part
}

// appendJSON prints a snapshot in the contract: for people where people look,
// on one line otherwise.
func (s *smi) appendJSON(dst []byte, snap *model.Snapshot, o text.Options) []byte {
	_, _, terminal := console.Size(s.Stdout)
	if terminal && s.file == "" && !s.repeated() {
		return append(wire.AppendIndented(dst, snap), '\n')
	}
	return append(wire.Append(dst, snap), '\n')
}

func (s *smi) repeated() bool {
	d, err := s.interval()
	return err == nil && d > 0
}
