package selftest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/preload"
	"github.com/ttmon/ttmon/internal/selftest/report"
	"github.com/ttmon/ttmon/internal/ttnnjob"
)

// What tells tt-metal to run without a board.
const (
	mockVar      = "TT_METAL_MOCK_CLUSTER_DESC_PATH"
	simulatorVar = "TT_METAL_SIMULATOR"
	visibleVar   = "TT_VISIBLE_DEVICES"
)

// ttnn runs a program that knows what it holds: first as it is, then with
// libttmon in it; then, where there are two chips, on both.
func (t *test) ttnn(ctx context.Context, r *report.Report) {
	if t.Python == "" {
		r.Add(report.Row{Part: report.Program, What: "a ttnn program", Verdict: report.Unknown, Note: "name a Python that has ttnn with --python to run one"})
		return
	}
	env, where, err := t.stage(ctx)
	if err != nil {
		r.Add(report.Row{Part: report.Program, What: "a ttnn program", Verdict: report.Unknown, Note: err.Error()})
		return
	}
	if os.Getenv(simulatorVar) != "" && r.Stage == report.NoBoard {
		r.Stage = report.ChipSimulator
	}
	r.Metal = t.release(ctx)
	if os.Getenv(mockVar) != "" && slowOnly(r.Metal) {
		env = append(env, "TT_METAL_SLOW_DISPATCH_MODE=1")
	}
	p := play{test: t, report: r, where: where, env: env}
	p.run(ctx, "as it is", nil, t.plainWatchers(), p.steps)
	if t.chips(ctx, env) > 1 {
		p.run(ctx, "on two chips", nil, t.plainWatchers(), p.mesh)
	}
	library, err := preload.Place()
	if err != nil {
		r.Add(report.Row{Part: report.Program, What: "with libttmon", Verdict: report.Unknown, Note: err.Error()})
		return
	}
	defer library.Close()
	p.run(ctx, "libttmon", []string{"LD_PRELOAD=" + library.Path, "TTMON_RUN=selftest"}, []watcher{t.directly(model.FromTrack)}, p.steps)
}

// slowOnly tells whether a release can run in mock mode with slow dispatch only:
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

// visible tells whether an environment shows a device to tt-metal.
func visible(env []string, device int) bool {
	for _, v := range env {
		if list, ok := strings.CutPrefix(v, visibleVar+"="); ok {
			return slices.Contains(strings.Split(list, ","), strconv.Itoa(device))
		}
	}
	return true
}

// stage decides where the program runs: on a board that nobody uses, or without
// one where the environment says so.
func (t *test) stage(ctx context.Context) (env []string, where string, err error) {
	if os.Getenv(mockVar) != "" {
		return nil, "mock mode: tt-metal's own allocator, no chip", nil
	}
	if os.Getenv(simulatorVar) != "" {
		return nil, "a simulator of the chip", nil
	}
	s := t.snapshot(ctx)
	if len(t.Only) > 0 {
		if s, err = t.Only.From(s); err != nil {
			return nil, "", err
		}
		var list []string
		for i := range s.Devices {
			list = append(list, strconv.Itoa(s.Devices[i].Index))
		}
		return []string{visibleVar + "=" + strings.Join(list, ",")}, "device " + strings.Join(list, ", "), nil
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.State == model.StateOK && len(ours(s, d.Index)) == 0 && d.HiddenFDs == 0 {
			index := strconv.Itoa(d.Index)
			return []string{visibleVar + "=" + index}, "device " + index, nil
		}
	}
	if len(s.Devices) == 0 {
		return nil, "", errors.New("there is no device")
	}
	return nil, "", errors.New("every device is in use: name one with -i to run on it all the same")
}

// release is the release of ttnn; empty: not known.
func (t *test) release(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, t.Python, "-c", `from importlib.metadata import version; print(version("ttnn"))`).Output()
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

	how      string
	watchers []watcher
	job      *ttnnjob.Job
	// chipsOpen is how many chips the program has opened; each holds the same.
	chipsOpen int
}

// jobTime is how long one run may take.
const jobTime = 45 * time.Second

// run starts the program and compares after each step.
func (p *play) run(ctx context.Context, how string, env []string, watchers []watcher, steps func(context.Context) error) {
	p.how, p.watchers, p.chipsOpen = how, watchers, 0
	dir, err := os.MkdirTemp("", "ttmon-selftest-")
	if err != nil {
		p.failed("start", err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	if p.job, err = p.start(ctx, dir, env); err != nil {
		p.failed("start", err)
		return
	}
	err = steps(ctx)
	if err == nil {
		err = p.job.End()
	} else {
		_ = p.job.Kill()
	}
	if err != nil {
		p.failed("run", err)
		return
	}
	p.gone(ctx)
}

func (p *play) start(ctx context.Context, dir string, env []string) (*ttnnjob.Job, error) {
	script := filepath.Join(dir, "job.py")
	if err := os.WriteFile(script, ttnnjob.Script, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.Python, script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TT_METAL_LOGS_PATH="+dir, "TT_LOGGER_LEVEL=error")
	cmd.Env = append(append(cmd.Env, p.env...), env...)
	return ttnnjob.Start(cmd, dir)
}

func (p *play) failed(what string, err error) {
	text, _, _ := strings.Cut(err.Error(), "\n")
	p.report.Add(report.Row{Part: report.Program, What: what + " of the ttnn program, " + p.how, Verdict: report.Unknown, Note: p.where + ": " + text})
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
