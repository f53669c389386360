// Package control is the language in which a simulated host is told what to
// do: by "ttmon-sim ctl", by a script, or by a test.
//
// Each verb is a row of one table, from which the help texts are made too.
package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/sim/cluster"
	"github.com/ttmon/ttmon/internal/sim/driver"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

// Host is what the verbs act on.
type Host struct {
	Driver    *driver.Driver
	Workloads *workload.Manager
	Plain     bool            // the files are plain ones: no read fails or blocks
	Cluster   cluster.Options // how boards are cabled
}

// Verb is one command.
type Verb struct {
	Name  string
	Usage string // arguments, as help shows them
	Short string
	Long  string // what more there is to say; may be empty
	run   func(h *Host, a *arguments) (string, error)
	live  bool // makes reads fail or block, which plain files cannot do
}

// Verbs lists all commands in the order in which help shows them.
func Verbs() []Verb {
	return slices.Concat(lookVerbs, chipVerbs, valueVerbs, faultVerbs, plugVerbs, processVerbs)
}

// find returns a verb by name.
func find(name string) (Verb, error) {
	verbs := Verbs()
	i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == name })
	if i < 0 {
		names := make([]string, len(verbs))
		for i, v := range verbs {
			names[i] = v.Name
		}
		return Verb{}, fmt.Errorf("no command %q for a simulated host; there are %s", name, strings.Join(names, ", "))
	}
	return verbs[i], nil
}

// Do carries out one command and returns what it prints.
func (h *Host) Do(args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("no command for the simulated host; try list")
	}
	v, err := find(args[0])
	if err != nil {
		return "", err
	}
	if v.live && h.Plain {
		return "", fmt.Errorf("%s: files of a plain tree neither fail nor block; run without --root for that", v.Name)
	}
	a := &arguments{verb: v, rest: args[1:]}
	out, err := v.run(h, a)
	if a.err != nil {
		err = a.err // it came first
	}
	return out, err
}

// arguments takes a command's arguments apart: words in order, and settings
// of the form key=value anywhere. The first error stays.
type arguments struct {
	verb Verb
	rest []string
	err  error
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("%s: %w; usage: %s %s", a.verb.Name, fmt.Errorf(format, args...), a.verb.Name, a.verb.Usage)
	}
}

// word takes the next word; what names it in errors.
func (a *arguments) word(what string) string {
	if len(a.rest) == 0 {
		a.fail("%s is missing", what)
		return ""
	}
	w := a.rest[0]
	a.rest = a.rest[1:]
	return w
}

// optional takes the next word if there is one.
func (a *arguments) optional() string {
	if len(a.rest) == 0 {
		return ""
	}
	return a.word("")
}

// setting takes key=value out of the rest.
func (a *arguments) setting(key string) (value string, ok bool) {
	for i, w := range a.rest {
		if v, found := strings.CutPrefix(w, key+"="); found {
			a.rest = slices.Delete(slices.Clone(a.rest), i, i+1)
			return v, true
		}
	}
	return "", false
}

// flag takes a bare word out of the rest.
func (a *arguments) flag(name string) bool {
	i := slices.Index(a.rest, name)
	if i >= 0 {
		a.rest = slices.Delete(slices.Clone(a.rest), i, i+1)
	}
	return i >= 0
}

// duration takes key=2s, or key=forever.
func (a *arguments) duration(key string, otherwise time.Duration) time.Duration {
	value, ok := a.setting(key)
	if !ok {
		return otherwise
	}
	if value == "forever" {
		return driver.Forever
	}
	t, err := time.ParseDuration(value)
	if err != nil || t < 0 {
		a.fail("%s=%s is not a time such as 500ms or 2s, or forever", key, value)
	}
	return t
}

// done complains about what is left over. It reports whether all went well.
func (a *arguments) done() bool {
	if len(a.rest) > 0 {
		a.fail("%q is too much", strings.Join(a.rest, " "))
	}
	return a.err == nil
}

// devices takes a device, or "all", and returns what it means.
func (a *arguments) devices(h *Host) []*driver.Device {
	name := a.word("DEVICE (an index, a PCI address or all)")
	if a.err != nil {
		return nil
	}
	if name == "all" {
		return h.Driver.Devices()
	}
	dev, err := h.Driver.Device(name)
	if err != nil {
		a.err = err
		return nil
	}
	return []*driver.Device{dev}
}

// each applies f to devices and joins what goes wrong.
func each(devs []*driver.Device, f func(*driver.Device) error) (string, error) {
	var errs []error
	for _, d := range devs {
		errs = append(errs, f(d))
	}
	return "", errors.Join(errs...)
}
