package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Health is how a daemon is doing: what ttmon shows of /v1/health.
type Health struct {
	Status      string    `json:"status"`
	Problems    []Problem `json:"problems"`
	Warnings    []Problem `json:"warnings"`
	PID         int       `json:"pid"`
	Version     string    `json:"version"`
	Uptime      float64   `json:"uptime_s"`
	SnapshotAge *float64  `json:"snapshot_age_s"`
	Watchers    int64     `json:"watchers"`
	HeapBytes   uint64    `json:"heap_bytes"`
	MemoryLimit uint64    `json:"memory_limit_bytes"`
	Descriptors struct {
		Open  int `json:"open"`
		Limit int `json:"limit"`
	} `json:"descriptors"`
	Budgets   []Budget `json:"budgets"`
	LostLines uint64   `json:"lost_log_lines"`
	Pause     *float64 `json:"takeover_pause_s"`
	Ledger    struct {
		Processes int    `json:"processes"`
		Buffers   int    `json:"buffers"`
		Events    uint64 `json:"events"`
	} `json:"ledger"`
	Uprobe *Watch `json:"uprobe"`
	Loop   struct {
		Longest     Turn    `json:"longest_turn"`
		Busiest     Turn    `json:"busiest_turn"`
		LongestStep float64 `json:"longest_step_s"`
		Lag         float64 `json:"lag_s"`
		Queue       int     `json:"queue"`
	} `json:"loop"`
	Sources []struct {
		Name string  `json:"name"`
		Late bool    `json:"late"`
		Took float64 `json:"took_s"`
	} `json:"sources"`
	AllocSocket struct {
		Connections int64  `json:"connections"`
		Dropped     uint64 `json:"dropped_replies"`
		Rejected    uint64 `json:"rejected_frames"`
	} `json:"alloc_socket"`
}

// Watch is how the watching of allocators through the kernel is doing.
type Watch struct {
	State     string `json:"state"` // "on", "off" or "unavailable"
	Reason    string `json:"reason"`
	Late      string `json:"late"`
	Processes int    `json:"processes"`
	Events    uint64 `json:"events"`
	Lost      uint64 `json:"lost_events"`
	LetGo     []int  `json:"let_go"`
	Libraries []struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	} `json:"libraries"`
}

// Turn is one turn of the daemon's loop.
type Turn struct {
	Took float64 `json:"took_s"`
	CPU  float64 `json:"cpu_s"` // how long it worked
	Work string  `json:"work"`  // what took longest
}

// PartLoop is the part of ttmond that serves the programs which report to it.
const PartLoop = "loop"

// Problem is one thing that is wrong.
type Problem struct {
	Part   string `json:"part"` // PartLoop, "snapshots", a source, …
	Reason string `json:"reason"`
}

// Budget is one thing that the daemon shares out among users.
type Budget struct {
	Name    string `json:"name"`
	Used    int64  `json:"used"`
	Limit   int64  `json:"limit"`
	PerUID  int64  `json:"limit_per_uid"`
	Refused uint64 `json:"refused"`
	Users   []struct {
		UID     int    `json:"uid"`
		Used    int64  `json:"used"`
		Refused uint64 `json:"refused"`
	} `json:"users"`
}

// Health asks how the daemon is doing. body is the whole answer.
func (c *Client) Health(ctx context.Context) (h Health, body []byte, err error) {
	status, body, err := c.ask(ctx, "GET", "/v1/health")
	switch {
	case err != nil:
		return h, nil, fmt.Errorf("asking the ttmond at %s: %w", c.path, err)
	case status != 200 && status != 503:
		return h, nil, fmt.Errorf("the ttmond at %s answers %d: %s", c.path, status, reason(body))
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return h, nil, fmt.Errorf("reading the health of the ttmond at %s: %w", c.path, err)
	}
	return h, body, nil
}

// ErrForbidden is the error of a call that is for others.
var ErrForbidden = errors.New("not allowed")

// Reload has the daemon read its configuration again, and returns what has
// come of it.
func (c *Client) Reload(ctx context.Context) (changes []string, err error) {
	status, body, err := c.ask(ctx, "POST", "/v1/reload")
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking the ttmond at %s: %w", c.path, err)
	case status == 403:
		return nil, fmt.Errorf("%w: %s", ErrForbidden, reason(body))
	case status != 200:
		return nil, fmt.Errorf("the ttmond at %s: %s", c.path, reason(body))
	}
	var answer struct{ Changes []string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer of the ttmond at %s: %w", c.path, err)
	}
	return answer.Changes, nil
}
