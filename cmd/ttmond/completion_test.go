package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/lab/golden"
)

// The files are made here and not by cobra, which ttmond does without: they ship as
// they are, so that root's half has no code for them.
const completionDir = "../../packaging/completion/"

const madeBy = "# Made from the flags of ttmond: make update\n"

// TestCompletionFiles: what shells complete are the flags that there are.
func TestCompletionFiles(t *testing.T) {
	for _, c := range []struct {
		file  string
		write func([]option) string
	}{
		{"ttmond.bash", bashCompletion}, {"_ttmond", zshCompletion}, {"ttmond.fish", fishCompletion},
	} {
		t.Run(c.file, func(t *testing.T) { golden.Check(t, completionDir+c.file, []byte(c.write(options()))) })
	}
}

// option is a flag as a shell sees it.
type option struct {
	long, short, help string
	value             valueKind
	choices           []string
}

type valueKind int

const (
	noValue valueKind = iota
	fileValue
	dirValue
	choiceValue
)

// options are the flags that --help lists.
func options() (list []option) {
	new(flags).flagSet().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		help, _, _ := strings.Cut(usage, " (default ") // it depends on the user
		o := option{long: f.Name, short: f.Shorthand, help: help, value: fileValue}
		switch {
		case f.Value.Type() == "bool":
			o.value = noValue
		case strings.Contains(name, "|"):
			o.value, o.choices = choiceValue, strings.Split(name, "|")
		case f.Name == "root" || strings.HasSuffix(f.Name, "-dir"):
			o.value = dirValue
		}
		list = append(list, o)
	})
	return list
}

func bashCompletion(list []option) string {
	var names, cases strings.Builder
	for _, o := range list {
		names.WriteString(" --" + o.long)
		if o.short != "" {
			names.WriteString(" -" + o.short)
		}
		generate := map[valueKind]string{fileValue: "-f", dirValue: "-d", choiceValue: "-W '" + strings.Join(o.choices, " ") + "'"}[o.value]
		if generate != "" {
			fmt.Fprintf(&cases, "	--%s) mapfile -t COMPREPLY < <(compgen %s -- \"$cur\") ;;\n", o.long, generate)
		}
	}
	return madeBy + `_ttmond() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	# --flag=value is three words.
	if [ "$cur" = = ]; then cur=; elif [ "$prev" = = ]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
	case $prev in
` + cases.String() + `	*) mapfile -t COMPREPLY < <(compgen -W '` + names.String()[1:] + `' -- "$cur") ;;
	esac
}
complete -o filenames -F _ttmond ttmond
`
}

func zshCompletion(list []option) string {
	var b strings.Builder
	b.WriteString("#compdef ttmond\n" + madeBy + "_arguments")
	for _, o := range list {
		value := map[valueKind]string{
			fileValue: ":file:_files", dirValue: ":directory:_files -/", choiceValue: ":" + o.long + ":(" + strings.Join(o.choices, " ") + ")",
		}[o.value]
		help := "[" + strings.ReplaceAll(o.help, "'", `'\''`) + "]"
		name := "--" + o.long
		if o.value != noValue {
			name += "="
		}
		fmt.Fprintf(&b, " \\\n\t'%s%s%s'", name, help, value)
		if o.short != "" {
			fmt.Fprintf(&b, " \\\n\t'-%s%s'", o.short, help)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func fishCompletion(list []option) string {
	var b strings.Builder
	b.WriteString(madeBy + "complete -c ttmond -f\n")
	for _, o := range list {
		b.WriteString("complete -c ttmond -l " + o.long)
		if o.short != "" {
			b.WriteString(" -s " + o.short)
		}
		b.WriteString(map[valueKind]string{
			fileValue: " -r -F", dirValue: " -x -a '(__fish_complete_directories)'", choiceValue: " -x -a '" + strings.Join(o.choices, " ") + "'",
		}[o.value])
		b.WriteString(" -d '" + strings.ReplaceAll(o.help, "'", `\'`) + "'\n")
	}
	return b.String()
}

// bash completes flags and their values with that file.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, c := range []struct{ name, words, want string }{
		{"a flag", "ttmond --rel", "--reload"},
		{"a value", "ttmond --firmware t", "table"},
		{"a value after =", "ttmond --firmware = f", "full"},
		{"all values after =", "ttmond --firmware =", "off table full"},
		{"a directory", "ttmond --root /us", "/usr"},
		{"a flag of ttmon-server", "ttmond --list", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ttmond; echo "${COMPREPLY[*]}"`
			args := append([]string{"-euc", script, "bash", completionDir + "ttmond.bash"}, strings.Fields(c.words)...)
			out, err := exec.Command(bash, args...).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
