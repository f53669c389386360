package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// Documents show commands in two kinds of blocks. In a block marked "console"
// each line that begins with "$ " is run on a simulated host, and the lines
// below it are what it prints: "…" stands for anything within a line, a line
// "…" for any lines. The comment before the block describes the host:
//
//	<!-- simulated: boards=n300,p150a daemon run=name=serve,devices=0,kind=metal,dram=9G ctl=hang,1 -->
//
// daemon starts a ttmond; ttnn has the python of the newest release in front; long leaves
// the page to make test-all.
//
// Lines of all other blocks that begin with a program of ours are checked for
// being understood: the command and its flags exist.

// shown is a command of a document and what it is said to print.
type shown struct {
	line    int
	command string
	output  []string
}

// fenced is a fenced block of a document.
type fenced struct {
	line int
	kind string // behind the fence: "console", "sh", …
	host string // the comment that describes the host
	text []string
}

// blocksOf reads the fenced blocks of a document.
func blocksOf(text string) (list []fenced) {
	host, open := "", false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch fence, kind, _ := strings.Cut(trimmed, "```"); {
		case strings.HasPrefix(trimmed, "```") && fence == "" && !open:
			list, open = append(list, fenced{line: i + 1, kind: strings.TrimSpace(kind), host: host}), true
		case strings.HasPrefix(trimmed, "```"):
			open = false
		case open:
			b := &list[len(list)-1]
			b.text = append(b.text, line)
		case strings.HasPrefix(trimmed, "<!-- simulated:"):
			host = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(trimmed, "<!-- simulated:"), "-->"))
		}
	}
	return list
}

// commands are those of a console block.
func (b *fenced) commands() (list []shown) {
	for i, line := range b.text {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			list = append(list, shown{line: b.line + 1 + i, command: command})
		} else if len(list) > 0 && strings.TrimSpace(line) != "" {
			last := &list[len(list)-1]
			last.output = append(last.output, line)
		}
	}
	return list
}

// pages are all documents, by path from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/install/*.md", "docs/tasks/*.md"} {
		list, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range list {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(root, path)
			found[name] = string(text)
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages", len(found))
	}
	return found
}

// TestPagesShowWhatIsPrinted runs the commands of console blocks.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	programs.Depend(t)
	n := 0
	for name, text := range pages(t) {
		hosts := map[string][]fenced{}
		for _, b := range blocksOf(text) {
			if b.kind == "console" {
				hosts[b.host] = append(hosts[b.host], b)
			}
		}
		for host, list := range hosts {
			n++
			t.Run(fmt.Sprintf("%s:%d", name, list[0].line), func(t *testing.T) {
				t.Parallel()
				if host == "" {
					t.Fatalf("%s:%d: a console block without <!-- simulated: … --> before it", name, list[0].line)
				}
				if !alone(t) {
					return
				}
				p := newPlayground(t, host)
				for _, b := range list {
					for _, c := range b.commands() {
						p.run(t, name, c)
					}
				}
			})
		}
	}
	if n == 0 {
		t.Error("no page has a console block")
	}
}

// playground is the host that a document describes.
type playground struct {
	host *sim.Host
	env  []string
	dir  string // of the repository, where readers run commands
}

func newPlayground(t *testing.T, description string) *playground {
	t.Helper()
	var o sim.Options
	var runs, faults []string
	daemon, withTTNN := false, false
	for field := range strings.FieldsSeq(description) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "boards":
			o.Boards = value
		case "driver":
			o.Driver = value
		case "daemon":
			daemon = true
		case "ttnn":
			withTTNN = true
		case "long":
			hermetic.Long(t)
		case "run":
			runs = append(runs, strings.ReplaceAll(value, "+", " "))
		case "ctl":
			faults = append(faults, value)
		default:
			t.Fatalf("%q describes no host", field)
		}
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	p := &playground{host: start(t, o), dir: root}
	p.env = append(environment(t), "PATH="+bin+":"+os.Getenv("PATH"), "COLUMNS=100", "LANG=C.UTF-8", "NO_COLOR=1")
	if withTTNN {
		own := t.TempDir()
		p.env = append(p.env, "PATH="+filepath.Dir(ttnn.Interpreter(t, ttnn.Newest))+":"+bin+":"+os.Getenv("PATH"), "TT_METAL_MOCK_CLUSTER_DESC_PATH="+sim.MockDescriptor,
			"TT_METAL_LOGS_PATH="+own, "TT_METAL_CACHE="+filepath.Join(own, "cache"), "HOME="+own, "TT_LOGGER_LEVEL=error")
	}
	if daemon {
		d := startDaemon(t, p.host)
		p.env = append(p.env, "TTMON_SOCKET="+d.api, "ALLOC_SOCKET="+d.alloc)
		for i := range runs {
			runs[i] = strings.ReplaceAll(runs[i], "SOCKET", d.alloc)
		}
	}
	for _, r := range runs {
		ctl(t, p.host, "run", r)
	}
	for _, f := range faults {
		ctl(t, p.host, strings.Split(f, ",")...)
	}
	return p
}

// run runs a command until it prints what the document says: what a host shows
// settles within moments.
func (p *playground) run(t *testing.T, page string, c shown) {
	t.Helper()
	var out string
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := p.host.Command(ctx, "sh", "-c", c.command)
		cmd.Env, cmd.Dir = p.env, p.dir
		r := finish(t, cmd)
		cancel()
		out = r.out + r.err
		if matches(out, c.output) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s:%d: $ %s\nprints\n%s\nthe page says\n%s", page, c.line, c.command, out, strings.Join(c.output, "\n"))
		}
	}
}

// matches compares what was printed with what a document says. Blank lines and
// the width of gaps do not count.
func matches(printed string, said []string) bool {
	var got []string
	for line := range strings.Lines(printed) {
		if line = squeeze(line); line != "" {
			got = append(got, line)
		}
	}
	return matchLines(got, said)
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func matchLines(got, said []string) bool {
	if len(said) == 0 {
		return len(got) == 0
	}
	if squeeze(said[0]) == "…" {
		if len(said) == 1 {
			return true
		}
		for i := range got {
			if matchLines(got[i:], said[1:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && lineIs(got[0], squeeze(said[0])) && matchLines(got[1:], said[1:])
}

func lineIs(got, said string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(said), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

// TestPagesNameCommandsThatExist checks the other blocks: a command with
// --help at its end is understood, whatever it would do.
func TestPagesNameCommandsThatExist(t *testing.T) {
	programs.Depend(t)
	for name, text := range pages(t) {
		t.Run(name, func(t *testing.T) {
			for _, b := range blocksOf(text) {
				for i, line := range b.text {
					if args := ours(line); args != nil {
						understood(t, fmt.Sprintf("%s:%d", name, b.line+1+i), args)
					}
				}
			}
		})
	}
}

// ours is a command line of one of our programs up to where the shell has its
// say; nil if a line is none.
func ours(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	line = strings.TrimPrefix(line, "sudo ")
	for _, end := range []string{" | ", " > ", " >", " && ", " # ", "   ", "; ", " &", " -- "} {
		line, _, _ = strings.Cut(line, end)
	}
	args := strings.Fields(line)
	if len(args) < 2 || !slices.Contains([]string{"ttmon", "ttmond", "ttmon-server", "ttmon-sim"}, args[0]) {
		return nil
	}
	if strings.ContainsAny(line, "…[]{}│") {
		return nil // a synopsis, or something that a program printed
	}
	// "ttmon 0.1.0   driver …" is the first line of a table.
	if !regexp.MustCompile(`^(-|[a-z])`).MatchString(args[1]) {
		return nil
	}
	return args
}

func understood(t *testing.T, where string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program := filepath.Join(bin, args[0])
	if _, err := os.Stat(program); err != nil {
		t.Errorf("%s: there is no program %s", where, args[0])
		return
	}
	for i, a := range args {
		args[i] = strings.Trim(a, `'"`)
		if args[i] == "PID" {
			args[i] = "4242"
		}
	}
	cmd := exec.CommandContext(ctx, program, append(args[1:], "--help")...)
	// A file that a document only names is read before help is asked for.
	if r := finish(t, cmd); r.code != 0 && !strings.Contains(r.err, "no such file or directory") {
		t.Errorf("%s: %s: exit code %d: %s", where, strings.Join(args, " "), r.code, r.err)
	}
}
