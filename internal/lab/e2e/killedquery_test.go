package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// get asks the API and reads the answer into to. One that does not come in a
// minute is an error: who asks asks again.
func (l *killer) get(ctx context.Context, path string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", l.socket())
		},
	}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ttmond"+path, nil)
	if err != nil {
		return err
	}
	r, err := c.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", path, r.Status, b)
	}
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	return err
}

// snapshot is the time of the newest snapshot.
func (l *killer) snapshot(ctx context.Context) (time.Time, error) {
	var s struct{ Time time.Time }
	err := l.get(ctx, "/v1/snapshot", &s)
	return s.Time.Truncate(time.Millisecond), err
}

func (l *killer) happened(ctx context.Context) ([]model.Event, error) {
	var answer struct{ Events []model.Event }
	err := l.get(ctx, "/v1/events", &answer)
	return answer.Events, err
}

// samples are the times of all samples of the last ten minutes of one series.
func (l *killer) samples(ctx context.Context) (times []time.Time, err error) {
	var answer struct {
		Data struct{ Result []struct{ Values [][2]any } }
	}
	err = l.get(ctx, "/prometheus/api/v1/query?"+url.Values{"query": {`tenstorrent_heartbeat_total{device="0"}[10m]`}}.Encode(), &answer)
	for _, r := range answer.Data.Result {
		for _, v := range r.Values {
			seconds, _ := v[0].(float64)
			times = append(times, time.UnixMilli(int64(seconds*1000+0.5)))
		}
	}
	return times, err
}

// churn is processes that come and go.
type churn struct {
	stop chan struct{}
	done chan error
}

// startChurn starts processes that stay, and others that stay for a while.
func startChurn(h *sim.Host, processes int, stay time.Duration) (*churn, error) {
	devices, err := deviceCount(h)
	if err != nil {
		return nil, err
	}
	for i := range processes {
		if _, err := h.Ctl("run", fmt.Sprintf("name=worker%d,devices=%d,kind=metal,dram=1G,l1=1M,moves", i, i%devices)); err != nil {
			return nil, err
		}
	}
	c := &churn{make(chan struct{}), make(chan error, 1)}
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-c.stop:
				c.done <- nil
				return
			default:
				err = visit(h, i%devices, stay)
			}
		}
		c.done <- err
	}()
	return c, nil
}

// visit lets a few processes come, stay, and go.
func visit(h *sim.Host, device int, stay time.Duration) error {
	names := []string{"ann", "bob", "cay"}
	for _, name := range names {
		if _, err := h.Ctl("run", fmt.Sprintf("name=%s,devices=%d", name, device)); err != nil {
			return err
		}
	}
	time.Sleep(stay) // how long it uses the device
	for _, name := range names {
		if _, err := h.Ctl("kill", name); err != nil {
			return err
		}
	}
	return nil
}

func (c *churn) end() error {
	close(c.stop)
	return <-c.done
}

func deviceCount(h *sim.Host) (int, error) {
	out, err := h.Ctl("state")
	if err != nil {
		return 0, err
	}
	var state struct{ Devices []json.RawMessage }
	err = json.Unmarshal([]byte(out), &state)
	return max(len(state.Devices), 1), err
}
