package main

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// addDevices adds the flags that choose devices, the same in all commands: -i, as
// nvidia-smi has it, and -d.
func addDevices(f *pflag.FlagSet, ids *[]string, usage string) {
	f.StringArrayVarP(ids, "id", "i", nil, usage+" (also -d)")
	addHidden(f, "device", "d", f.Lookup("id").Value)
}

// theseDevices is what most commands say of -i.
const theseDevices = "only these `DEVICES`: index, bus id, serial number or ASIC id, comma-separated"

// addInterval adds the flag for the time between two samples, the same in all commands.
func addInterval(f *pflag.FlagSet, every *time.Duration, usual time.Duration, usage string) {
	*every = usual
	f.Var((*interval)(every), "interval", usage)
	f.Lookup("interval").DefValue = ""
	if usual > 0 {
		f.Lookup("interval").DefValue = usual.String()
	}
}

// addHidden adds another name of a flag, which works without standing in the help.
func addHidden(f *pflag.FlagSet, name, letter string, value pflag.Value) {
	f.VarP(value, name, letter, "another name of a flag")
	_ = f.MarkHidden(name)
}

// interval is a time between two samples as users type it: 500ms, 2s, or a number of
// seconds.
type interval time.Duration

func (d *interval) String() string { return time.Duration(*d).String() }

// Type is what pflag calls it.
func (d *interval) Type() string { return "interval" }

func (d *interval) Set(s string) error {
	v, err := time.ParseDuration(s)
	if n, nerr := strconv.ParseFloat(s, 64); nerr == nil && math.Abs(n) < math.MaxInt32 {
		v, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil {
		return errors.New("not a time, such as 500ms or 2s; a number is in seconds")
	}
	*d = interval(v)
	return nil
}
