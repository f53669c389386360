package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/console"
	"github.com/ttmon/ttmon/internal/exit"
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
		Short: "Write a Prometheus service discovery file of ttmon hosts",
		Long: `Writes the JSON for Prometheus's file_sd_configs and http_sd_configs: a list of the
hosts named, or of those in a file (or standard input, -), one per line. With -o the
file is replaced atomically: Prometheus never reads half of it.`,
		Example: `  ttmon sd node1 node2 --label rack=7 -o /etc/prometheus/ttmon.json
  ttmon sd --from hosts.txt -o /etc/prometheus/ttmon.json
  ttmon sd --from hosts.txt --port 9108`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args) },
	}
	f := cmd.Flags()
	f.StringVar(&s.from, "from", "", "read hosts from `FILE`, one per line; - is standard input")
	f.StringVarP(&s.out, "output", "o", "", "write to `FILE` instead of standard output")
	f.StringVar(&s.port, "port", "9108", "`PORT` of hosts given without one")
	f.StringSliceVar(&s.labels, "label", nil, "add the label `NAME=VALUE` to all hosts; repeatable")
	return cmd
}

// targets is one entry of the list that Prometheus reads.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels,omitempty"`
}

func (s *sdCmd) run(hosts []string) error {
	if s.from != "" {
		more, err := hostsFrom(s.from)
		if err != nil {
			return exit.Usage("--from: %w", err)
		}
		hosts = append(hosts, more...)
	}
	if len(hosts) == 0 {
		return exit.Usage("no hosts given: name some, or use --from FILE")
	}
	list, err := s.targets(hosts)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent([]targets{list}, "", "  ")
	if err != nil {
		return exit.With(exit.Internal, "writing the list of hosts: %w", err)
	}
	return s.WriteFile(cmp.Or(s.out, "-"), 0o644, func(w io.Writer) error { // Prometheus is another user
		if _, err := w.Write(append(b, '\n')); err != nil {
			return console.FileError(err)
		}
		return nil
	})
}

// targets are the hosts with their ports, each once, and the labels of --label.
func (s *sdCmd) targets(hosts []string) (list targets, err error) {
	list.Labels = map[string]string{}
	for _, l := range s.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return list, exit.Usage("--label: %q is not NAME=VALUE", l)
		}
		list.Labels[name] = value
	}
	if n, err := strconv.ParseUint(s.port, 10, 16); err != nil || n == 0 {
		return list, exit.Usage("--port: %q is not a port", s.port)
	}
	for _, h := range hosts {
		if strings.ContainsAny(h, " \t/\"'") {
			return list, exit.Usage("%q is not a host", h)
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			name := strings.Trim(h, "[]")
			if strings.Contains(name, ":") && net.ParseIP(name) == nil {
				return list, exit.Usage("%q is not a host", h)
			}
			h = net.JoinHostPort(name, s.port)
		}
		if !slices.Contains(list.Targets, h) {
			list.Targets = append(list.Targets, h)
		}
	}
	return list, nil
}

// hostsFrom reads hosts from a file; "-" is the standard input.
func hostsFrom(name string) ([]string, error) {
	if name == "-" {
		return readHosts(os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readHosts(f)
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
