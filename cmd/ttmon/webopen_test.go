package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// opener puts an xdg-open into $PATH that writes its arguments to a file, and returns
// the file.
func opener(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\necho \"$@\" >" + said + ".new\nmv " + said + ".new " + said + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return said
}

// TestOpenBrowser: no argument of a program has the ticket in it, and only a browser of
// the same user is sent to the page, once.
func TestOpenBrowser(t *testing.T) {
	hermetic.NeedOtherUsers(t)
	const page = "http://127.0.0.1:9108/#ticket=SECRET"
	said := opener(t)
	result := make(chan error, 1)
	go func() { result <- openBrowser(page) }()
	var url string
	await(t, "xdg-open", func() bool {
		b, err := os.ReadFile(said)
		url = strings.TrimSpace(string(b))
		return err == nil
	})
	if strings.Contains(url, "SECRET") {
		t.Fatalf("xdg-open was given %s, for every user to read", url)
	}
	other := exec.Command("bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/$0 && printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$1" >&3 && cat <&3`, port(url), "/"+url[strings.LastIndex(url, "/")+1:])
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 60000, Gid: 60000}}
	other.Dir = "/"
	if out, err := other.CombinedOutput(); err != nil || !strings.Contains(string(out), "403") || strings.Contains(string(out), "SECRET") {
		t.Errorf("another user gets %q, %v", out, err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if r, err := client.Get(url + "x"); err != nil || r.StatusCode != http.StatusForbidden {
		t.Errorf("another path: %v, %v", r, err)
	}
	r, err := client.Get(url)
	if err != nil || r.Header.Get("Location") != page {
		t.Fatalf("the user's browser: %v, %v", r, err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	if r, err := client.Get(url); err == nil && r.Header.Get("Location") != "" {
		t.Error("the address is good twice")
	}
}

func TestOpenBrowserFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	var status *exec.ExitError
	if err := openBrowser("http://127.0.0.1:9108/"); !errors.As(err, &status) {
		t.Errorf("%v", err)
	}
}

func port(url string) string {
	url = strings.TrimPrefix(url, "http://127.0.0.1:")
	number, _, _ := strings.Cut(url, "/")
	return number
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}
