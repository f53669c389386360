package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
)

// AwaitReloads reads the configuration again at every hangup, until ctx is done.
func AwaitReloads(ctx context.Context, hups <-chan os.Signal, log *slog.Logger, reload func() ([]string, error)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hups:
			if _, err := reload(); err != nil {
				log.Error("config reload failed; keeping the current configuration", "err", err)
			}
		}
	}
}

// Changes are the settings that can change while a daemon runs, and what is done
// then.
type Changes map[string]*change

// change is done once, whichever of its settings has changed.
type change struct{ do func() }

// On calls do when one of the settings has changed.
func (c Changes) On(do func(), names ...string) {
	x := &change{do}
	for _, name := range names {
		c[name] = x
	}
}

// Apply makes live, a configuration, what next says, as far as that can change, and
// reports a sentence for each setting that is another. What cannot change is
// reported every time, with restart: what has to be done for it.
func (c Changes) Apply(live, next any, restart string, log *slog.Logger) (said []string) {
	var todo []*change
	EachDifference(live, next, func(name string, old, new reflect.Value) {
		x := c[name]
		if x == nil {
			said = append(said, fmt.Sprintf("%s stays %s until %s", name, FormatSetting(old), restart))
			return
		}
		old.Set(new)
		said = append(said, name+" has changed")
		if !slices.Contains(todo, x) {
			todo = append(todo, x)
		}
	})
	for _, x := range todo {
		x.do()
	}
	for _, text := range said {
		log.Info("config reloaded", "change", text)
	}
	if len(said) == 0 {
		log.Info("config reloaded", "change", "none")
	}
	return said
}
