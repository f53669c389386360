package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hashPassword runs the command with something on its standard input.
func hashPassword(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetArgs(append([]string{"hash-password"}, args...))
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// What hash-password prints protects an address that other machines can reach.
func TestHashPassword(t *testing.T) {
	t.Parallel()
	text, err := hashPassword(t, "correct horse\n", "prometheus")
	if err != nil || strings.Contains(text, "correct horse") {
		t.Fatalf("%v: %s", err, text)
	}
	file := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	h.simulate("p150a")
	port := strings.TrimPrefix(freePort(t), "127.0.0.1:")
	config := filepath.Join(t.TempDir(), "server.toml")
	if err := os.WriteFile(config, []byte("[listen]\nweb_config = '"+file+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := h.start("--config", config, "--listen", "0.0.0.0:"+port)
	await(t, "HTTP", func() bool { return strings.Contains(i.log.String(), "serving HTTP") })
	status := func(password string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("prometheus", password)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	if got := status("wrong"); got != http.StatusUnauthorized {
		t.Errorf("a wrong password: %d", got)
	}
	if got := status("correct horse"); got != http.StatusOK {
		t.Errorf("the password: %d", got)
	}
}

func TestHashPasswordRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stdin string
		args  []string
	}{
		"no user":     {"x\n", nil},
		"no password": {"\n", []string{"anna"}},
		"a colon":     {"x\n", []string{"anna:b"}},
		"too long":    {strings.Repeat("x", 80), []string{"anna"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := hashPassword(t, c.stdin, c.args...); err == nil || out != "" {
				t.Errorf("%v: %q", err, out)
			}
		})
	}
}
