package words_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func TestJob(t *testing.T) {
	for _, c := range []struct {
		p    model.Process
		want string
	}{
		{model.Process{}, "–"},
		{model.Process{SystemdUnit: "serve.service"}, "serve"},
		{model.Process{SystemdUnit: "serve.service", SlurmJob: "4711"}, "slurm 4711"},
		{model.Process{Container: model.Container{Runtime: "docker", ID: "8c1f0a7be2d94c55aa"}}, "docker 8c1f0a7be2d9"},
		{model.Process{Container: model.Container{Runtime: "cri-o", ID: "8c", Pod: "6f7d8e9a-1b2c-4d3e-8f90-a1b2c3d4e5f6"}}, "pod 6f7d8e9a"},
		{model.Process{Container: model.Container{Pod: "6f7d8e9a-1b2c", Namespace: "ml\x1b"}}, `pod ml\x1b/6f7d8e9a`},
		{model.Process{Container: model.Container{Pod: "6f7d8e9a-1b2c", PodName: "train-0", Namespace: "ml"}}, "pod ml/train-0"},
		{model.Process{Container: model.Container{ID: "abc"}}, "abc"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.Job(&c.p); got != c.want {
				t.Errorf("Job(%+v) = %q, want %q", c.p.Container, got, c.want)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		p    model.Process
		want string
	}{
		{model.Process{Cmdline: model.Value("a\nb")}, `a\nb`},
		{model.Process{Cmdline: model.Value(" "), Name: model.Value("kworker")}, "[kworker]"},
		{model.Process{Cmdline: model.Missing[string](model.Denied, "")}, "(denied)"},
		{model.Process{State: model.Hidden}, "(cannot be seen from here)"},
		{model.Process{State: model.Exited, Name: model.Value("x")}, "(exited, descriptor still open)"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.Command(&c.p); got != c.want {
				t.Errorf("Command = %q, want %q", got, c.want)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	got := words.Wrap("  the slot 日本語 can do averyverylongword  x", 10)
	want := []string{"the slot", "日本語 can", "do", "averyverylongword", "x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"python,", "3 h ago:", "see", "128 MiB."}, words.Wrap("python, 3 h ago: see 128 MiB.", 9)); diff != "" {
		t.Error(diff)
	}
	if got := words.Wrap("", 10); len(got) != 0 {
		t.Errorf("Wrap of nothing = %q", got)
	}
	if got := strings.Join(words.Wrap("a b", 0), "|"); got != "a|b" {
		t.Errorf("Wrap at 0 = %q", got)
	}
}
