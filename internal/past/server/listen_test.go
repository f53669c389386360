package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenAddress(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := write("password.yml", "basic_auth_users: {alice: $2a$04$Fq0CaYHpQ9BXl1pWdAuOKeoR2EWgWPJCPMsVLv2tSNbCExYMsbHzS}\n")
	empty := write("empty.yml", "{}\n")
	broken := write("broken.yml", "basic_auth: [\n")
	for _, c := range []struct {
		address, web, want string
	}{
		{"127.0.0.1:9108", "", ""},
		{"[::1]:9108", "", ""},
		{"localhost:9108", "", ""},
		{"off", "", ""},
		{"0.0.0.0:9108", "", "can be reached from other machines"},
		{":9108", "", "can be reached from other machines"},
		{"192.0.2.1:9108", empty, "can be reached from other machines"},
		{"0.0.0.0:9108", password, ""},
		{"127.0.0.1:9108", broken, "listen.web_config"},
		{"127.0.0.1:9108", dir + "/none.yml", "listen.web_config"},
		{"9108", "", "not an address like"},
		{"127.0.0.1:nonsense", "", "not a port"},
	} {
		t.Run(c.address+" "+filepath.Base(c.web), func(t *testing.T) {
			err := (&Listen{c.address, c.web}).check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s with %q: %v, want %q", c.address, c.web, err, c.want)
			}
		})
	}
}
