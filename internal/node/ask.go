package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
)

// reloadTimeout is how long a running ttmond may take to be executed again: what
// answers users ends first, and may hang on the driver until its limits.
const reloadTimeout = time.Minute

// Reload has the running ttmond execute its program again, and read its configuration.
// It returns when the next one serves, and prints what has changed.
func Reload(ctx context.Context, c Config, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	var d net.Dialer
	web := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", c.API.Socket)
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ttmond/v1/reload", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := web.Do(request)
	if err != nil {
		return fmt.Errorf("no ttmond has answered at %s: %w", c.API.Socket, err)
	}
	defer answer.Body.Close()
	var said struct {
		Changes []string
		Error   string
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&said); err != nil {
		return fmt.Errorf("reading the answer of ttmond: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ttmond at %s: %s", c.API.Socket, words.Escape(said.Error))
	}
	if len(said.Changes) == 0 {
		fmt.Fprintln(out, "ttmond was executed again; nothing has changed")
	}
	for _, text := range said.Changes {
		fmt.Fprintln(out, words.Escape(text))
	}
	return nil
}
