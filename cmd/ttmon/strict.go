package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/source/setup"
)

// strict makes every command answer a wrong flag, argument or subcommand with
// one line that names it and what was probably meant.
func strict(root *cobra.Command) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.SetFlagErrorFunc(flagError)
		if cmd.Args == nil {
			cmd.Args = noArguments
		}
		cmd.Flags().SortFlags = false
		cmd.Flags().SetNormalizeFunc(hyphens)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
}

// hyphens lets --snapshot_no_tty be written with hyphens too, as the rest of
// our flags are, and the other way round.
func hyphens(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	if err := notHere(cmd, args[0]); err != nil {
		return err
	}
	if _, err := strconv.Atoi(args[0]); err == nil && cmd.Flags().Lookup("id") != nil {
		return exit.Usage("unexpected argument %q: -i %s selects a device", args[0], args[0])
	}
	if cmd.Name() == "smi" && slices.ContainsFunc(commands(), func(c command) bool { return c.name == args[0] }) {
		return exit.Usage("ttmon %s is a command of its own", args[0])
	}
	what := "unexpected argument"
	if nearest.Word(args[0], known) != "" || cmd == cmd.Root() {
		what = "unknown command"
	}
	return exit.Usage("%s %q%s", what, args[0], meant(cmd, args[0], known))
}

// notHere returns the error for a command that only other tools have; nil: it is none.
func notHere(cmd *cobra.Command, word string) error {
	if use := elsewhere[word]; use != "" && (cmd == cmd.Root() || cmd.Name() == "smi") {
		return exit.With(exit.Unsupported, "no command %q: %s", word, use)
	}
	return nil
}

// flagError rewords the errors of pflag, and says what was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); len(args) > 0 { // "nvlink -s": the word is the mistake, not the flag
		if err := notHere(cmd, args[0]); err != nil {
			return err
		}
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return badValue(cmd, bad)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, typed(unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()))
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return missingValue(cmd, typed(bare.GetSpecifiedName(), bare.GetSpecifiedShortnames()))
	}
	return &exit.Error{Code: exit.BadArgument, Err: err}
}

// typed returns a flag as the user typed it: --name, or the letters after one dash.
func typed(name, letters string) string {
	if letters != "" {
		return "-" + letters
	}
	return "--" + name
}

func unknownFlag(cmd *cobra.Command, flag string) error {
	if strings.HasPrefix(flag, "--") {
		flag = strings.ReplaceAll(flag, "_", "-") // as hyphens does
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, "--"+f.Name)
		}
	})
	switch {
	case onlySmi[flag] != "" && cmd.Name() != "smi":
		return exit.With(exit.Unsupported, "%s has no %s: %s", cmd.CommandPath(), flag, onlySmi[flag])
	case settings[flag] != "" && cmd.Name() == "smi":
		return wouldSet(flag)
	case instead[flag] != "":
		return exit.With(exit.Unsupported, "%s has no %s: %s", cmd.CommandPath(), flag, instead[flag])
	case strings.HasPrefix(flag, "--"):
		return exit.Usage("unknown flag %s%s", flag, meant(cmd, flag, known))
	case len(flag) > 3: // "-json"; two letters are near to everything
		return exit.Usage("unknown flag %s%s", flag, meant(cmd, "-"+flag, known))
	}
	return exit.Usage("unknown flag %s: see %s --help", flag, cmd.CommandPath())
}

// noDevice adds to the error about a device that is not there that -d is no time, as it is
// to nvidia-smi dmon and nvtop.
func noDevice(cmd *cobra.Command, err error) error {
	if errors.Is(err, selection.ErrNoDevice) && (cmd.Flags().Changed("device") || cmd.Flags().Changed("display")) {
		return exit.Usage("%w; -d selects devices, --interval sets the time between two samples", err)
	}
	return err
}

func missingValue(cmd *cobra.Command, flag string) error {
	if flag == "-r" && cmd.Name() == "smi" { // the official tool's reset has no value
		return exit.Usage("flag -r needs a value, milliseconds between updates (ttmon does not reset boards: %s)", howToReset())
	}
	return exit.Usage("flag %s needs a value: see %s --help", flag, cmd.CommandPath())
}

// howToReset is where to go with the wish to reset a board, which ttmon does not do.
func howToReset() string {
	if at := setup.Broker(hostfs.Root{}); at != "" {
		return "resets are " + words.BrokerResets(at)
	}
	return "stop the programs that use it (ttmon pmon -c 1), then use Tenstorrent's " + words.ResetCommand
}

// elsewhere are commands of other tools, and what to use instead.
var elsewhere = map[string]string{
	"ps": "ttmon pmon -c 1 lists the programs that use devices", "who": "ttmon pmon -c 1 lists the programs that use devices",
	"list": "ttmon smi -L lists the devices", "nvlink": "ttmon topo --links shows the Ethernet links between chips",
	"stats": "ttmon dmon prints a line per device every second", "health": "ttmon doctor checks the host, ttmon check is for Nagios",
	"discovery": "ttmon smi -L lists the devices", "reset": "ttmon never resets a board: " + howToReset(),
	"clocks": "ttmon smi -q -d CLOCK shows the clocks", "pci": "ttmon smi -q -d PCIE shows the links",
	"mig": noPartitions, "vgpu": noPartitions, "encodersessions": noCodecs, "fbcsessions": noCodecs,
	"gpm": "ttmon ops shows what the chips work on", "c2c": "ttmon topo --links shows the Ethernet links between chips",
	"drain": neverChanges, "boost-slider": neverChanges, "power-hint": neverChanges, "power-profiles": neverChanges,
	"conf-compute": neverChanges, "compute-policy": neverChanges,
	"kill": "ttmon top ends a process with F9", "status": "ttmon smi shows all devices, ttmon doctor checks the host",
	"info": "ttmon smi -q prints all that is known of each device",
}

// onlySmi are flags of nvidia-smi that ttmon smi answers, and what to use with
// the commands that do not have them.
var onlySmi = map[string]string{"-eow": useCheck, "--error-on-warning": useCheck, "-col": useSelect, "--columns": useSelect}

const (
	noPartitions = "devices have no partitions; ttmon smi -L lists them"
	noCodecs     = "boards have no video encoders; ttmon pmon -c 1 lists the programs that use devices"
	neverChanges = "ttmon never changes a board"

	useCheck  = "ttmon smi -eow exits with 15 on a warning, ttmon check is for monitoring systems"
	useSelect = "ttmon dmon and ttmon pmon choose columns with -s"
)

// instead are flags of nvidia-smi and tt-smi that show something, and what shows it here.
var instead = map[string]string{
	"-B": allListed, "--list-excluded-gpus": allListed, "-u": noUnits, "--unit": noUnits,
	"--dtd":                  "there is no XML; --json has everything, and docs/schema describes it",
	"--query-accounted-apps": useRuns, "--help-query-accounted-apps": useRuns,
	"--query-retired-pages": useHealth, "--help-query-retired-pages": useHealth,
	"--query-remapped-rows": useHealth, "--help-query-remapped-rows": useHealth,
	"--query-supported-clocks": useClocks, "--help-query-supported-clocks": useClocks,
	"--gpm-metrics": "ttmon ops shows what the chips work on", "--gpm-options": "ttmon ops shows what the chips work on",
	"-p2p": "ttmon topo --links shows which chips reach each other",
}

const (
	allListed = "no device can be excluded; ttmon smi -L lists them all"
	noUnits   = "there are no units of several boards; ttmon smi -q reports each device"
	useRuns   = "ttmon runs lists the programs that used devices, with --csv for scripts"
	useHealth = "ttmon smi -q -d HEALTH has the memory errors that the firmware counts"
	useClocks = "ttmon never sets clocks; ttmon smi -q -d CLOCK shows them"
)

// settings are flags by which nvidia-smi or tt-smi changes a board.
var settings = map[string]string{
	"-pm": "the persistence mode", "-pl": "the power limit", "-ac": "application clocks", "-rac": "application clocks",
	"-lgc": "the clocks", "-rgc": "the clocks", "-lmc": "the memory clocks", "-rmc": "the memory clocks",
	"-mig": "the partitions", "-gtt": "the target temperature", "-am": "the accounting mode", "-caa": "the accounting",
	"-lc": "the clocks", "-cc": "the CUDA clocks", "-p": "the ECC counters", "-acp": "who may set clocks",
	"--persistence-mode": "the persistence mode", "--power-limit": "the power limit", "--applications-clocks": "application clocks", "--reset-applications-clocks": "application clocks",
	"--lock-gpu-clocks": "the clocks", "--reset-gpu-clocks": "the clocks", "--lock-memory-clocks": "the memory clocks", "--reset-memory-clocks": "the memory clocks",
	"--multi-instance-gpu": "the partitions", "--gpu-target-temp": "the target temperature", "--accounting-mode": "the accounting mode", "--clear-accounted-apps": "the accounting",
	"--driver-model": "the driver model", "--ecc-config": "the ECC mode", "--reset-ecc-errors": "the ECC counters", "--compute-mode": "the compute mode", "--gom": "the operation mode",
	"--auto-boost-default": "the clocks", "--cuda-clocks": "the CUDA clocks", "--generate-reset-json": "how tt-smi resets boards", "-dm": "the driver model", "-fdm": "the driver model", "-e": "the ECC mode", "-g": "how tt-smi resets boards",
}

func wouldSet(flag string) error {
	return exit.With(exit.Unsupported, "%s sets %s, which is not supported: ttmon never changes a board", flag, settings[flag])
}

// badValue says which values a flag takes, instead of how parsing failed.
func badValue(cmd *cobra.Command, bad *pflag.InvalidValueError) error {
	f := bad.GetFlag()
	if in := "-" + f.Shorthand + bad.GetValue(); settings[in] != "" && cmd.Name() == "smi" { // -lgc is nvidia-smi's, not -l gc
		return wouldSet(in)
	} else if onlySmi[in] != "" { // -col is nvidia-smi's, not -c ol
		return unknownFlag(cmd, in)
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	takes := map[string]string{
		"float64": "a number", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number",
		"uint": "a whole number", "duration": "a duration, such as 500ms or 10s", "bool": "true or false",
	}[f.Value.Type()]
	if takes == "" {
		return exit.Usage("%s: %q: %w", name, bad.GetValue(), bad.Unwrap())
	}
	return exit.Usage("%s takes %s, not %q: see %s --help", name, takes, bad.GetValue(), cmd.CommandPath())
}

// meant is the end of an error: ": did you mean X?", or where to look.
func meant(cmd *cobra.Command, word string, known []string) string {
	slices.Sort(known)
	dashes := word[:len(word)-len(strings.TrimLeft(word, "-"))] // not compared: else "--foo" would be near "--loop"
	for i := range known {
		known[i] = strings.TrimPrefix(known[i], dashes)
	}
	if n := nearest.Word(word[len(dashes):], known); n != "" {
		return ": did you mean " + dashes + n + "?"
	}
	return ": see " + cmd.CommandPath() + " --help"
}
