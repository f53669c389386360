package programs

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// saysTimeout is how long a program may take to say something: far above what
// it takes on a busy machine.
const saysTimeout = 5 * time.Minute

// Output is what a program has said so far.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *Output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(line + "\n")
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// UntilSays starts a program, which is interrupted when the test ends, and waits
// for a line with a text on its standard error.
func UntilSays(t testing.TB, cmd *exec.Cmd, text string) (line string, said *Output) {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said = &Output{}
	found, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said.add(lines.Text())
			if strings.Contains(lines.Text(), text) {
				select {
				case found <- lines.Text():
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(saysTimeout):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = cmd.Wait()
	})
	select {
	case line = <-found:
	case <-ended:
		t.Fatalf("it has ended, and said:\n%s", said)
	case <-time.After(saysTimeout):
		t.Fatalf("it does not say %q, but:\n%s", text, said)
	}
	return line, said
}

// Prometheus starts a real one that scrapes targets every second, and returns its
// address.
func Prometheus(t testing.TB, targets ...string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus here: tools/setup test installs it")
	}
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: ttmon\n  static_configs: [{targets: [" + strings.Join(targets, ", ") + "]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	// It chooses its port itself, and says which: one that we chose could be
	// another's by then.
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	line, said := UntilSays(t, cmd, `msg="Listening on" address=`)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("prometheus:\n%s", said)
		}
	})
	_, address, _ := strings.Cut(line, "address=")
	return "http://" + strings.Fields(address)[0]
}
