package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"mime"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Command runs a program for each message: the JSON of Alertmanager's webhook
// on its standard input, the essentials in its environment.
type Command struct {
	Run  []string // program and arguments; no shell
	User string   // whom it runs as if we are root
}

// Name implements Target.
func (c *Command) Name() string {
	if len(c.Run) == 1 {
		return "command " + c.Run[0]
	}
	h := fnv.New32a() // two may differ in what may be a secret only
	h.Write([]byte(strings.Join(c.Run[1:], "\x00")))
	return fmt.Sprintf("command %s #%08x", c.Run[0], h.Sum32())
}

// Send implements Target.
func (c *Command) Send(ctx context.Context, m *Message) error {
	b, err := json.Marshal(alertmanager(m))
	if err != nil {
		return permanent{err}
	}
	env := []string{
		"TTMON_ALERT=" + m.Alerts[0].Name(), "TTMON_STATUS=" + string(m.Status), "TTMON_SEVERITY=" + m.Alerts[0].Severity(),
		"TTMON_HOST=" + m.Host, "TTMON_SUMMARY=" + strings.ReplaceAll(summary(m), "\x00", ""),
	}
	return run(ctx, c.Run, c.User, env, b)
}

// Mail hands messages to the local sendmail.
type Mail struct {
	Sendmail string // its path
	From     string
	To       []string
	User     string // whom sendmail runs as if we are root
}

// Name implements Target.
func (t *Mail) Name() string { return "mail " + strings.Join(t.To, ",") }

// Send implements Target.
func (t *Mail) Send(ctx context.Context, m *Message) error {
	var b bytes.Buffer
	header := func(name, value string) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, value))
	}
	if t.From != "" {
		header("From", t.From)
	}
	header("To", strings.Join(t.To, ", "))
	header("Subject", mime.QEncoding.Encode("utf-8", title(m)))
	header("Date", m.Time.Format(time.RFC1123Z))
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Auto-Submitted", "auto-generated")
	b.WriteString("\n" + text(m))
	return run(ctx, append([]string{t.Sendmail, "-i", "--"}, t.To...), t.User, nil, b.Bytes())
}

// run runs a program to its end, as an unprivileged user where we are root,
// in a process group of its own, with next to no environment.
func run(ctx context.Context, argv []string, as string, env []string, stdin []byte) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "HOME=/"}, env...)
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(stdin)
	said := &limited{left: 2000}
	cmd.Stdout, cmd.Stderr = io.Discard, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if os.Geteuid() == 0 {
		cred, err := credential(as)
		if err != nil {
			return permanent{err}
		}
		cmd.SysProcAttr.Credential = cred
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", argv[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	stop()
	if ctx.Err() != nil {
		return fmt.Errorf("%s timed out", argv[0])
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(said.String()))
	}
	return nil
}

// credential is a user's, who must not be root.
func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("looking up the user %q: %w", name, err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if uid == 0 {
		return nil, fmt.Errorf("alert commands do not run as root: choose a user other than %q", name)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{}}, nil
}

// limited keeps the beginning of what is written.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.Buffer.Write(b[:n])
	return len(b), nil
}
