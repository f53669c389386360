package client

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

// TestPaths: a ttmond of the user's own is found whether or not it was started, or ttmon
// is, where $XDG_RUNTIME_DIR is set. Root has the system's.
func TestPaths(t *testing.T) {
	run := "/run/user/" + strconv.Itoa(os.Geteuid()) + "/ttmon/ttmond.sock"
	for name, c := range map[string]struct {
		env  map[string]string
		want []string // of an ordinary user; root's are the first two
	}{
		"all":          {map[string]string{"XDG_RUNTIME_DIR": "/x", "XDG_STATE_HOME": "/s", "HOME": "/h"}, []string{SystemSocket, "/x/ttmon/ttmond.sock", run, "/s/ttmon/ttmond.sock"}},
		"home":         {map[string]string{"XDG_RUNTIME_DIR": "/x", "HOME": "/h"}, []string{SystemSocket, "/x/ttmon/ttmond.sock", run, "/h/.local/state/ttmon/ttmond.sock"}},
		"no directory": {map[string]string{"XDG_RUNTIME_DIR": "x"}, []string{SystemSocket, run}},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if os.Geteuid() == 0 {
				want = slices.DeleteFunc(slices.Clone(want), func(path string) bool { return path == run || path[1] == 's' || path[1] == 'h' })
			}
			if got := SocketPaths(func(key string) string { return c.env[key] }); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
