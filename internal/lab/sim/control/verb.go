// Package control is the language in which a simulated host is told what to
// do: by "ttmon-sim ctl", by a script, or by a test.
//
// Each verb is a row of one table, from which the help texts are made too.
package control

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/lab/sim/workload"
)

// Host is what the verbs act on.
type Host struct {
	Driver    *driver.Driver
	Workloads *workload.Manager
	Cluster   cluster.Options // how boards are cabled
}

// Verb is one command. It reads its arguments first, and returns what it then
// does: to each of the devices that its first argument stands for, or to the
// host, printing something.
type Verb struct {
	Name   string
	Usage  string // arguments, as help shows them
	Short  string
	Long   string // what more there is to say; may be empty
	device func(a *arguments) onDevice
	host   func(a *arguments) onHost
}

type (
	onDevice = func(*driver.Device) error
	onHost   = func(*Host) (string, error)
)

// Verbs lists all commands in the order in which help shows them.
func Verbs() []Verb {
	return slices.Concat(lookVerbs, valueVerbs, faultVerbs, plugVerbs, processVerbs)
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
	a := &arguments{verb: v, rest: args[1:], driver: h.Driver}
	act := onEach
	if v.host != nil {
		act = v.host
	}
	do := act(a)
	if len(a.rest) > 0 {
		a.fail("%q is too much", strings.Join(a.rest, " "))
	}
	if a.err != nil {
		return "", a.err
	}
	return do(h)
}

// onEach is a verb of devices as one of the host. What goes wrong with several
// of them is joined.
func onEach(a *arguments) onHost {
	devs := a.devices()
	do := a.verb.device(a)
	return func(*Host) (string, error) {
		var errs []error
		for _, d := range devs {
			errs = append(errs, do(d))
		}
		return "", errors.Join(errs...)
	}
}

// arguments takes a command's arguments apart: words in order, and settings
// of the form key=value anywhere. The first error stays.
type arguments struct {
	verb   Verb
	rest   []string
	driver *driver.Driver
	all    bool // devices are meant
	err    error
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

// words takes all that are left, of which there must be one.
func (a *arguments) words(what string) []string {
	list := append([]string{a.word(what)}, a.rest...)
	a.rest = nil
	return list
}

// text takes all that is left as one text.
func (a *arguments) text() string {
	text := strings.Join(a.rest, " ")
	a.rest = nil
	return text
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

// devices takes a device, or "all", and returns what it means.
func (a *arguments) devices() []*driver.Device {
	name := a.word("DEVICE (an index, a PCI address or all)")
	if a.err != nil {
		return nil
	}
	if a.all = name == "all"; a.all {
		return a.driver.Devices()
	}
	dev, err := a.driver.Device(name)
	a.err = err
	return []*driver.Device{dev}
}

func (a *arguments) float(what string, low, high float64) float64 {
	text := a.word(what)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= low && f <= high) {
		a.fail("%s %q is not a number from %v to %v", what, text, low, high)
	}
	return f
}

// rate takes key=1.2e9.
func (a *arguments) rate(key string) float64 {
	text, ok := a.setting(key)
	f, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(f >= 0) || math.IsInf(f, 0) {
		a.fail("%s=%s is not a number of bytes per second", key, text)
	}
	return f
}

func (a *arguments) uint32(what string) uint32 {
	text := a.word(what)
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		a.fail("%s %q is not a 32-bit number", what, text)
	}
	return uint32(n)
}

// number is a setting that may be missing.
func (a *arguments) number(key string, otherwise int) int {
	text, ok := a.setting(key)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		a.fail("%s=%s is not a number", key, text)
	}
	return n
}

// each reads words with a function that can fail.
func each[T any](a *arguments, words []string, read func(string) (T, error)) (list []T) {
	for _, w := range words {
		v, err := read(w)
		if err != nil {
			a.fail("%w", err)
		}
		list = append(list, v)
	}
	return list
}

// table is lines of cells that tabs separate, as columns.
func table(lines []string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	w.Flush()
	return b.String()
}
