package main

import (
	"slices"
	"strconv"
	"strings"
)

// asSMI puts smi in front of a command line that has no command: ttmon alone prints the
// table, as nvidia-smi does, and ttmon -L is ttmon smi -L. bare: only flags of all
// commands were given, so the user may not know of any command.
func asSMI(args []string) (_ []string, bare bool) {
	for i := 0; i < len(args); i++ {
		name, _, has := strings.Cut(args[i], "=")
		switch name {
		case "--direct", "--ascii":
		case "--root", "--daemon", "--color": // with a value
			if !has {
				i++
			}
		case "-h", "--help", "-v", "--version":
			return args, false
		default:
			if args[i] == "--" || !strings.HasPrefix(args[i], "-") { // a command
				return args, false
			}
			return slices.Concat([]string{"smi"}, args), false
		}
	}
	return slices.Concat([]string{"smi"}, args), true
}

// normalize turns what nvidia-smi and tt-smi spell in their own ways into flags
// that GNU-style parsing understands: several letters after one dash (-lms, -ls),
// and values that may be left out (-l, -f, -r). It touches nothing but the flags
// of smi itself.
func normalize(args []string, official bool) []string {
	at := slices.Index(args, "smi")
	if at < 0 || slices.ContainsFunc(args[:at], isOtherProgram) {
		return args
	}
	n := normalizer{rest: args[at+1:], official: official}
	n.watch = slices.Contains(n.rest, "-w") || slices.Contains(n.rest, "--watch")
	for len(n.rest) > 0 {
		if arg := n.rest[0]; arg == "--" || arg == "dmon" || arg == "pmon" { // whose flags are their own
			break
		}
		n.step()
	}
	return slices.Concat(args[:at+1], n.out, n.rest)
}

// isOtherProgram reports whether what follows an argument may be the command line
// of another program, which is passed on as it is.
func isOtherProgram(arg string) bool { return arg == "--" || arg == "run" || arg == "record" }

type normalizer struct {
	rest, out []string
	official  bool
	watch     bool // -w is given, which the official tool does not have
}

func (n *normalizer) step() {
	arg := n.rest[0]
	n.rest = n.rest[1:]
	name, value, has := strings.Cut(arg, "=")
	emit := func(name string) {
		if has {
			name += "=" + value
		}
		n.out = append(n.out, name)
	}
	switch name {
	case "-lms":
		emit("--loop-ms")
	case "-ls":
		emit("--list")
	case "-glx_reset_tray":
		emit("-" + name)
		n.take(func(s string) bool { return !strings.HasPrefix(s, "-") })
	case "-eow":
		emit("--error-on-warning")
	case "-col":
		if !has {
			value, has = n.take(isNumber)
		}
		emit("--columns")
	case "-glx_reset", "-glx_reset_auto", "-glx_list_tray_to_device":
		emit("-" + name)
	case "-l", "--loop": // seconds; nvidia-smi takes 5 where there are none
		if !has {
			value, has = n.take(isNumber)
		}
		switch {
		case has:
			emit("--loop")
		case n.official && name == "-l": // tt-smi: only local chips
			emit("--local")
		default:
			n.out = append(n.out, "--loop=5")
		}
	case "-f", "--filename": // tt-smi makes a name up where there is none
		if !has {
			value, _ = n.take(func(s string) bool { return s == "-" || !strings.HasPrefix(s, "-") })
		}
		n.out = append(n.out, "--filename="+value)
	case "-r", "--reset":
		if name == "-r" && n.isTime(has) {
			n.out = append(n.out, arg) // ours: milliseconds
			return
		}
		// A reset takes any number of devices. The answer does not depend on them.
		for ok := true; ok; {
			_, ok = n.take(func(s string) bool { return !strings.HasPrefix(s, "-") })
		}
		n.out = append(n.out, "--reset")
	default:
		n.out = append(n.out, arg)
	}
}

// isTime reports whether -r is ours, milliseconds between updates, and not the official
// tool's reset; has: it has a value of its own.
func (n *normalizer) isTime(has bool) bool {
	return n.watch || !n.official && (has || len(n.rest) == 0 || isNumber(n.rest[0]) || strings.HasPrefix(n.rest[0], "-"))
}

// take consumes the next argument if it can be a value.
func (n *normalizer) take(fits func(string) bool) (string, bool) {
	if len(n.rest) == 0 || !fits(n.rest[0]) {
		return "", false
	}
	v := n.rest[0]
	n.rest = n.rest[1:]
	return v, true
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}
