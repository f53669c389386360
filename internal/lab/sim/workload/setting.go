package workload

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// The settings of a workload, and of each kind of workload, are the fields of a
// struct. Their tags are the table from which they are read and help is made:
//
//	set:"fds=2"   the key, with an example of a value
//	help:"…"      what it means; a field without it is shown with another one,
//	              or has a type that knows
//	in:"1 1000"   the bounds of a number; else it is not negative

// setting is a field that can be set.
type setting struct {
	reflect.StructField
	key   string
	value reflect.Value
}

// settingsOf lists the settings in a struct.
func settingsOf(of any) (list []setting) {
	v := reflect.ValueOf(of).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if key, _, _ := strings.Cut(f.Tag.Get("set"), "="); key != "" {
			list = append(list, setting{f, key, v.FieldByIndex(f.Index)})
		}
	}
	return list
}

// usageOf is the help text of settings, a line break before each.
func usageOf(indent string, of any) (text string) {
	for _, s := range settingsOf(of) {
		help := s.Tag.Get("help")
		if own, ok := s.value.Interface().(interface{ help() string }); ok {
			help = own.help()
		}
		if help != "" {
			text += usageLine(indent, s.Tag.Get("set"), help)
		}
	}
	return text
}

func usageLine(indent, usage, help string) string {
	return fmt.Sprintf("\n%s%-18s %s", indent, usage, strings.ReplaceAll(help, "\n", fmt.Sprintf("\n%s%19s", indent, "")))
}

// apply gives a setting its value; known is false if there is no such setting.
func apply(of any, key, value string) (known bool, err error) {
	list := settingsOf(of)
	i := slices.IndexFunc(list, func(s setting) bool { return s.key == key })
	if i < 0 {
		return false, nil
	}
	if err := list[i].read(value); err != nil {
		return true, fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return true, nil
}

// applyAll gives the settings of a kind their values.
func applyAll(kind string, of any, p Params) error {
	for _, key := range slices.Sorted(maps.Keys(p)) {
		known, err := apply(of, key, p[key])
		if err != nil {
			return err
		}
		if !known {
			return fmt.Errorf("no setting %q of kind %s; there are:%s", key, kind, usageOf("  ", of))
		}
	}
	return nil
}

// read gives the field the value that text stands for: types that are read in
// their own way have a method for it.
func (s setting) read(text string) (err error) {
	var number float64
	switch v := s.value.Addr().Interface().(type) {
	case interface{ parse(string) error }:
		return v.parse(text)
	case *string:
		*v = text
		return nil
	case *bool:
		*v = true
		return nil
	case *time.Duration:
		*v, err = time.ParseDuration(text)
		return err
	case *int:
		*v, err = strconv.Atoi(text)
		number = float64(*v)
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
		number = *v
	default:
		panic("BUG: no setting can be a " + s.Type.String())
	}
	low, high := 0.0, math.Inf(1)
	_, _ = fmt.Sscan(s.Tag.Get("in"), &low, &high)
	if err != nil || !(number >= low && number <= high) {
		return fmt.Errorf("%q is not a number from %.0f to %.0f", text, low, high)
	}
	return nil
}

// size is a number of bytes: 4096, 64K, 64M, 2G.
type size uint64

func (s *size) parse(text string) error {
	n, err := metal.ParseBytes(text)
	*s = size(n)
	return err
}

// words is a text that blanks separate.
type words []string

func (w *words) parse(text string) error {
	*w = strings.Fields(text)
	return nil
}

// indices are numbers of devices: 0+1.
type indices []int

func (list *indices) parse(text string) error {
	for part := range strings.SplitSeq(text, "+") {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return fmt.Errorf("%q is not the index of a device", part)
		}
		*list = append(*list, int(n))
	}
	return nil
}
