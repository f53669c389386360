package act

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/base/config"
)

var errNot = errors.New("not today")

func TestDo(t *testing.T) {
	var a Actions
	ctx := context.Background()
	if ev := a.Do(ctx, Kill{Targets: []Target{{PID: 1}}}).(Killed); ev.Errs[0] == nil {
		t.Error("killing without Kill is no error")
	}
	if ev := a.Do(ctx, Save{}).(Saved); ev.Err == nil {
		t.Error("saving without Save is no error")
	}
	if ev := a.Do(ctx, Inspect{}).(Inspected); ev.EnvErr == nil || !errors.Is(ev.BufferErr, ErrUnknown) {
		t.Error("looking up without a way to is no error")
	}
	a = Actions{
		Kill:    func(t Target, _ syscall.Signal) error { return errNot },
		Save:    func(config.Config) (string, error) { return "path", nil },
		Environ: func(Target) ([]string, error) { return []string{"A=b"}, nil },
		Buffers: func(context.Context, Target) ([]Buffer, error) { return []Buffer{{Bytes: 1}}, nil },
	}
	if ev := a.Do(ctx, Kill{Targets: []Target{{PID: 1}, {PID: 2}}}).(Killed); len(ev.Errs) != 2 || !errors.Is(ev.Errs[1], errNot) {
		t.Errorf("Killed %+v", ev)
	}
	if ev := a.Do(ctx, Save{}).(Saved); ev.Path != "path" {
		t.Errorf("Saved %+v", ev)
	}
	if ev := a.Do(ctx, Inspect{}).(Inspected); len(ev.Environ) != 1 || len(ev.Buffers) != 1 {
		t.Errorf("Inspected %+v", ev)
	}
}
