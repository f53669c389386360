package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// sdCmd is the command ttmon sd with its flags.
type sdCmd struct {
	*app
	from, out string
	port      string
	labels    []string
}

func newSD(a *app) *cobra.Command {
	s := &sdCmd{app: a}
	cmd := &cobra.Command{
		Use:   "sd [HOST…]",
		Short: "Writes a list of hosts from which Prometheus finds its ttmonds",
		Long: `Writes the JSON of Prometheus's file_sd_configs and http_sd_configs: a list of the
hosts named, or of those in a file (or standard input, -), one a line. Written with -o
the file is replaced in one step: Prometheus never reads half of it.`,
		Example: `  ttmon sd node1 node2 --label rack=7 -o /etc/prometheus/ttmon.json
  ttmon sd --from hosts.txt -o /etc/prometheus/ttmon.json
  ttmon sd --from hosts.txt --port 9108`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args) },
	}
	f := cmd.Flags()
	f.StringVar(&s.from, "from", "", "read hosts from this `FILE`; - is standard input")
	f.StringVarP(&s.out, "output", "o", "", "write to this `FILE`")
	f.StringVar(&s.port, "port", "9108", "the `PORT` of hosts that come without one")
	f.StringSliceVar(&s.labels, "label", nil, "a `NAME=VALUE` label of all hosts; may be given again")
	return cmd
}

func (s *sdCmd) run(hosts []string) error {
	if s.from != "" {
		in := os.Stdin
		if s.from != "-" {
			var err error
			if in, err = os.Open(s.from); err != nil {
				return usage("--from: %w", err)
			}
			defer in.Close()
		}
		more, err := readHosts(in)
		if err != nil {
			return usage("--from: %w", err)
		}
		hosts = append(hosts, more...)
	}
	if len(hosts) == 0 {
		return usage("which hosts? Name some, or give --from FILE")
	}
	labels := map[string]string{}
	for _, l := range s.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return usage("--label: %q is not NAME=VALUE", l)
		}
		labels[name] = value
	}
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels,omitempty"`
	}
	g := group{Labels: labels}
	for _, h := range hosts {
		if strings.ContainsAny(h, " \t/\"'") {
			return usage("%q is not a host", h)
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), s.port)
		}
		if !slices.Contains(g.Targets, h) {
			g.Targets = append(g.Targets, h)
		}
	}
	b, err := json.MarshalIndent([]group{g}, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if s.out == "" || s.out == "-" {
		return s.output("").write(b)
	}
	if err := os.WriteFile(s.out+".new", b, 0o644); err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	if err := os.Rename(s.out+".new", s.out); err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	return nil
}

// readHosts reads one host a line; # begins a comment.
func readHosts(r io.Reader) (hosts []string, err error) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		line, _, _ := strings.Cut(in.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			hosts = append(hosts, line)
		}
	}
	return hosts, in.Err()
}
