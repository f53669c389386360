// Package monitor asks a running ttmond how much device memory is allocated, by all
// processes, for Go programs: what SystemMemoryMonitor is in C++ (lib/include/ttmon.hpp)
// and system_stats in Python.
//
// A process's own allocators are in its ledger: see lib/ledgerfile.
package monitor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bound says how far a figure can be trusted.
type Bound string

// The bounds.
const (
	Exact   Bound = "exact"
	AtLeast Bound = "at_least"
	Unsure  Bound = "unsure"
	Missing Bound = "missing" // there is no figure
)

// Figure is a number of bytes, and how sure it is.
type Figure struct {
	Bytes uint64
	Bound Bound
}

// Pool is a pool of a device, or of one of its chips.
type Pool struct {
	Device int    // N of /dev/tenstorrent/N
	BusID  string // 0000:41:00.0
	Chip   string // "all": the whole device; "L" and "R" of an n300
	ChipID uint64 // unique id; 0: not known
	Name   string // dram, l1, l1_small, trace, cb, kernel
	Used   Figure
	// Of these 0 stands for not known.
	Total, Free, LargestFree uint64
	Banks                    int
}

// ErrNoDaemon means that no ttmond answers.
var ErrNoDaemon = errors.New("no ttmond responds")

// System is what all processes have allocated on a device, by pool.
func System(ctx context.Context, device int) (map[string]Figure, error) {
	list, err := Detailed(ctx, device)
	if err != nil {
		return nil, err
	}
	sums := map[string]Figure{}
	for _, p := range list {
		if p.Chip == "all" {
			sums[p.Name] = p.Used
		}
	}
	return sums, nil
}

// Detailed lists the pools of a device, then those of each of its chips.
func Detailed(ctx context.Context, device int) ([]Pool, error) {
	failed := ErrNoDaemon
	for _, socket := range sockets() {
		body, err := get(ctx, socket, "/v1/memory?device="+strconv.Itoa(device))
		if _, away := errors.AsType[*net.OpError](err); away {
			failed = fmt.Errorf("%w: %w", ErrNoDaemon, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		return parse(body)
	}
	return nil, failed
}

// sockets are where a ttmond may listen, the best first.
func sockets() []string {
	if named := os.Getenv("TTMON_SOCKET"); named != "" {
		return []string{named}
	}
	list := []string{"/run/ttmon/ttmond.sock"}
	state := os.Getenv("XDG_STATE_HOME")
	if home := os.Getenv("HOME"); state == "" && home != "" {
		state = filepath.Join(home, ".local/state")
	}
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), "/run/user/" + strconv.Itoa(os.Geteuid()), state} {
		if filepath.IsAbs(dir) {
			list = append(list, filepath.Join(dir, "ttmon/ttmond.sock"))
		}
	}
	return list
}

func get(ctx context.Context, socket, target string) (string, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ttmond"+target, nil)
	if err != nil {
		return "", err
	}
	r, err := transport.RoundTrip(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("ttmond at %s: %s", socket, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// parse reads the table by the names of its columns: a later ttmond may have more.
func parse(table string) (list []Pool, err error) {
	lines := bufio.NewScanner(strings.NewReader(table))
	lines.Scan()
	head := strings.Fields(lines.Text())
	for lines.Scan() {
		p, fields := Pool{Used: Figure{Bound: Missing}}, strings.Fields(lines.Text())
		if len(fields) != len(head) {
			return nil, fmt.Errorf("a line of ttmond with %d fields instead of %d", len(fields), len(head))
		}
		for i, text := range fields {
			if err := p.set(head[i], text); err != nil {
				return nil, fmt.Errorf("the column %s of ttmond: %w", head[i], err)
			}
		}
		list = append(list, p)
	}
	return list, lines.Err()
}

func (p *Pool) set(column, text string) error {
	switch column {
	case "bus_id":
		p.BusID = text
		return nil
	case "chip":
		p.Chip = text
		return nil
	case "pool":
		p.Name = text
		return nil
	case "bound":
		p.Used.Bound = Bound(text)
		return nil
	}
	number, ok := map[string]*uint64{"chip_id": &p.ChipID, "used_bytes": &p.Used.Bytes, "total_bytes": &p.Total, "free_bytes": &p.Free, "largest_free_bytes": &p.LargestFree}[column]
	whole := map[string]*int{"device": &p.Device, "banks": &p.Banks}[column]
	if text == "-" || !ok && whole == nil {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	if ok {
		*number = n
	} else {
		*whole = int(n)
	}
	return nil
}
