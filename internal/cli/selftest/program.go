package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/cli/preload"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/cli/ttnnjob"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// What tells tt-metal to run without a board.
const (
	mockVar      = "TT_METAL_MOCK_CLUSTER_DESC_PATH"
	simulatorVar = "TT_METAL_SIMULATOR"
	visibleVar   = "TT_VISIBLE_DEVICES"
)

// folderPrefix begins the name of the folder that a ttnn program has for all
// that it writes.
const folderPrefix = "ttmon-selftest-"

// ttnn runs a program that knows what it holds: first as it is, then with
// libttmon in it; then, where there are two chips, on both.
func (t *test) ttnn(ctx context.Context, r *report.Report) {
	if t.Python == "" {
		r.Add(report.Row{Part: report.Program, What: "a ttnn program", Verdict: report.Unknown, Note: "name a Python that has ttnn with --python to run one"})
		return
	}
	p, err := t.newPlay(ctx, r)
	if err != nil {
		r.Add(report.Row{Part: report.Program, What: "a ttnn program", Verdict: report.Failed, Note: err.Error()})
		return
	}
	defer os.RemoveAll(p.dir)
	if !p.run(ctx, "as it is", nil, t.plainWatchers(), p.steps) {
		return // the others would fail as well, each after its time
	}
	if t.chips(ctx, p.env) > 1 && !p.run(ctx, "on two chips", nil, t.plainWatchers(), p.mesh) {
		return
	}
	p.withLibrary(ctx)
}

// newPlay decides where the program runs, and makes a folder for it.
func (t *test) newPlay(ctx context.Context, r *report.Report) (*play, error) {
	where, err := t.stage(ctx)
	if err != nil {
		return nil, err
	}
	r.ProgramOn, r.Metal = where.String(), t.release(ctx)
	if where.mode == onSimulator && r.Stage == report.NoBoard {
		r.Stage = report.ChipSimulator
	}
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the program: %w", err)
	}
	t.folder = filepath.Base(dir)
	p := &play{test: t, report: r, where: r.ProgramOn, env: append(where.env, writesBelow(dir)...), dir: dir}
	if where.mode == onMock && slowOnly(r.Metal) {
		p.env = append(p.env, "TT_METAL_SLOW_DISPATCH_MODE=1")
	}
	return p, nil
}

// writesBelow is an environment in which tt-metal, and the Open MPI in it, write
// to one folder only.
func writesBelow(dir string) []string {
	return []string{
		"TT_METAL_CACHE=" + filepath.Join(dir, "cache"), "TT_LOGGER_LEVEL=error", "TMPDIR=" + dir, "PYTHONDONTWRITEBYTECODE=1",
		"OMPI_MCA_btl_sm_backing_directory=" + dir, "OMPI_MCA_btl_vader_backing_directory=" + dir,
	}
}

// withLibrary runs the program with libttmon in it. Its ledger is removed
// however it ends.
func (p *play) withLibrary(ctx context.Context) {
	p.how = "libttmon"
	library, err := preload.Temporary()
	if err != nil {
		p.failed("start", err)
		return
	}
	defer library.Close()
	name, err := track.OwnRun()
	if err != nil {
		p.failed("start", err)
		return
	}
	defer p.removeLedgers(name)
	p.run(ctx, p.how, []string{"LD_PRELOAD=" + library.Path, "TTMON_RUN=" + name}, []watcher{p.directly(model.FromTrack)}, p.steps)
}

// removeLedgers removes what libttmon wrote in processes that have ended.
func (p *play) removeLedgers(run string) {
	r := track.NewReader(track.Options{Run: run, Remove: true})
	defer r.Close()
	r.Read(nil)
	for _, pid := range p.jobs { // of one that was killed before it had written anything
		left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/%s%d-*", ledgerfile.Prefix, pid))
		for _, path := range left {
			_ = os.Remove(path)
		}
	}
}

// slowOnly reports whether a release can run in mock mode with slow dispatch only:
// fast dispatch works there from 0.72 on.
func slowOnly(release string) bool {
	parts := strings.Split(release, ".")
	if len(parts) < 2 || parts[0] != "0" {
		return false
	}
	minor, err := strconv.Atoi(parts[1])
	return err == nil && minor < 72
}

// chips counts the chips that the program may open.
func (t *test) chips(ctx context.Context, env []string) (n int) {
	s := t.snapshot(ctx)
	for i := range s.Devices {
		d := &s.Devices[i]
		if visible(env, d.Index) {
			n += len(d.Chips)
		}
	}
	return n
}

// visible reports whether an environment shows a device to tt-metal.
func visible(env []string, device int) bool {
	for _, v := range env {
		if list, ok := strings.CutPrefix(v, visibleVar+"="); ok {
			return slices.Contains(strings.Split(list, ","), strconv.Itoa(device))
		}
	}
	return true
}

// The ways to run a ttnn program.
type mode uint8

const (
	onDevice mode = iota
	onMock
	onSimulator
)

// stage is where a ttnn program runs.
type stage struct {
	mode mode
	name string   // of the devices, or of the simulator
	env  []string // what tells tt-metal
}

func (s stage) String() string {
	switch s.mode {
	case onMock:
		return "mock mode"
	case onSimulator:
		return "chip simulator " + s.name
	default:
		return "device " + s.name
	}
}

// stage decides where the program runs: on a board that is not in use, or without
// one where the environment says so. As in tt-metal, a simulator of the chip
// comes before mock mode.
func (t *test) stage(ctx context.Context) (stage, error) {
	if path := os.Getenv(simulatorVar); path != "" {
		return stage{mode: onSimulator, name: filepath.Base(path)}, nil
	}
	if os.Getenv(mockVar) != "" {
		return stage{mode: onMock}, nil
	}
	s := t.snapshot(ctx)
	if len(t.Only) > 0 {
		s, err := t.Only.From(s)
		if err != nil {
			return stage{}, err
		}
		return onDevices(s.Devices), nil
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.State == model.StateOK && !t.hung[d.Index] && len(ours(s, d.Index)) == 0 && d.HiddenFDs == 0 {
			return onDevices(s.Devices[i : i+1]), nil
		}
	}
	if len(s.Devices) == 0 {
		return stage{}, errors.New("there is no device")
	}
	return stage{}, errors.New("every device is in use: name one with -i to run on it all the same")
}

// onDevices shows devices, and no others, to tt-metal.
func onDevices(list []model.Device) stage {
	var names []string
	for i := range list {
		names = append(names, strconv.Itoa(list[i].Index))
	}
	return stage{name: strings.Join(names, ", "), env: []string{visibleVar + "=" + strings.Join(names, ",")}}
}

// release is the release of ttnn; empty: not known.
func (t *test) release(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, t.Limit/8)
	defer cancel()
	out, err := output(ctx, t.Python, "-c", `from importlib.metadata import version; print(version("ttnn"))`)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// play is a program that runs, and those who watch it.
type play struct {
	*test
	report *report.Report
	where  string
	env    []string
	dir    string // for all that it writes

	how      string
	watchers []watcher
	job      *ttnnjob.Job
	// chipsOpen is how many chips the program has opened; each holds the same.
	chipsOpen int
}

// run starts the program and compares after each step. It reports whether the
// program did all that it was told to.
func (p *play) run(ctx context.Context, how string, env []string, watchers []watcher, steps func(context.Context) error) bool {
	p.how, p.watchers, p.chipsOpen = how, watchers, 0
	limit := p.Limit * 3 / 8
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	if p.job, err = p.start(ctx, env); err == nil {
		p.jobs = append(p.jobs, p.job.PID)
		if err = steps(ctx); err == nil {
			err = p.job.End()
		} else {
			_ = p.job.Kill()
		}
	}
	switch {
	case ctx.Err() != nil:
		p.failed("end", fmt.Errorf("it did not end within %s, and was killed", words.Duration(limit)))
	case err != nil:
		p.failed("run", err)
	default:
		p.gone(ctx)
		return true
	}
	return false
}

func (p *play) start(ctx context.Context, env []string) (*ttnnjob.Job, error) {
	dir, err := os.MkdirTemp(p.dir, "run-")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "job.py")
	if err := os.WriteFile(script, ttnnjob.Script, 0o600); err != nil {
		return nil, err
	}
	cmd := command(ctx, p.Python, script)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{"TT_METAL_LOGS_PATH=" + dir}, p.env, env)
	job, err := ttnnjob.Start(ctx, cmd, dir)
	if cmd.Process != nil {
		p.jobs = append(p.jobs, cmd.Process.Pid)
	}
	return job, err
}

// failed adds a row for a program that did not do what it was told to: the
// error, and the last line that the program wrote, which is the error of Python.
func (p *play) failed(what string, err error) {
	text, said, _ := strings.Cut(err.Error(), "\n")
	if said = strings.TrimSpace(said); said != "" {
		text += ": " + said[strings.LastIndexByte(said, '\n')+1:]
	}
	p.report.Add(report.Row{Part: report.Program, What: what + " of the ttnn program, " + p.how, Verdict: report.Failed, Note: p.where + ": " + text})
}

// moment is some steps of the program, after which all is compared.
type moment struct {
	what  string
	steps []ttnnjob.Step
}

const mib = 1 << 20

// steps is what the program does on one chip.
func (p *play) steps(ctx context.Context) error {
	err := p.moments(ctx, []moment{
		{"a tensor in every pool", []ttnnjob.Step{
			{"do": "open", "device": 0, "l1_small": 32768, "trace": mib},
			{"do": "alloc", "name": "weights", "pool": "dram", "bytes": 64 * mib},
			{"do": "alloc", "name": "activation", "pool": "l1", "bytes": mib},
			{"do": "alloc", "name": "halo", "pool": "l1_small", "bytes": 8 * 2048},
			{"do": "alloc", "name": "trace", "pool": "trace", "bytes": mib / 4},
		}},
		{"one of another thread", []ttnnjob.Step{{"do": "alloc", "name": "thread", "pool": "dram", "bytes": 32 * mib, "thread": true}}},
		{"the result of an operation", []ttnnjob.Step{{"do": "add", "name": "sum", "of": []string{"thread", "thread"}}}},
		{"two freed", []ttnnjob.Step{{"do": "free", "name": "weights"}, {"do": "free", "name": "activation"}}},
	})
	if err != nil {
		return err
	}
	return p.questions(ctx)
}

// mesh is what it does on two chips.
func (p *play) mesh(ctx context.Context) error {
	return p.moments(ctx, []moment{
		{"a tensor on a mesh", []ttnnjob.Step{
			{"do": "open", "mesh": []int{1, 2}},
			{"do": "alloc", "name": "weights", "pool": "dram", "bytes": 16 * mib},
			{"do": "alloc", "name": "activation", "pool": "l1", "bytes": mib},
		}},
		{"one freed", []ttnnjob.Step{{"do": "free", "name": "activation"}}},
	})
}

func (p *play) moments(ctx context.Context, list []moment) error {
	for _, m := range list {
		var last ttnnjob.Reply
		for _, s := range m.steps {
			var err error
			if last, err = p.job.Do(s); err != nil {
				return err
			}
			p.chipsOpen = max(p.chipsOpen, last.Chips)
		}
		if err := p.compare(ctx, m.what, last); err != nil {
			return err
		}
	}
	return nil
}
