package control

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ttmon/ttmon/internal/sim/driver"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

var processVerbs = []Verb{{
	Name: "run", Usage: "SETTING,…", Short: "start a workload: a real process that holds devices open",
	Long: "Settings:\n" + workload.Usage(),
	run: func(h *Host, a *arguments) (string, error) {
		text := strings.Join(a.rest, " ")
		specs, err := workload.Parse(text)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, s := range specs {
			p, err := h.Workloads.Start(s)
			if err != nil {
				return b.String(), err
			}
			fmt.Fprintln(&b, p.PID)
		}
		return b.String(), nil
	},
}, {
	Name: "kill", Usage: "NAME|PID", Short: "end a workload",
	run: func(h *Host, a *arguments) (string, error) {
		who := a.word("NAME or PID")
		if !a.done() {
			return "", nil
		}
		if h.Workloads.Kill(who) == 0 {
			return "", fmt.Errorf("no workload %q runs here (see ps)", who)
		}
		return "", nil
	},
}, {
	Name: "work", Usage: "NAME|PID ORDER…", Short: "have a workload's chips do something else: " + workload.WorkOrders,
	Long: `It is for workloads of kind=ledger with work=. Power follows: a chip that hangs
or idles draws little.`,
	run: func(h *Host, a *arguments) (string, error) {
		who, order := a.word("NAME or PID"), strings.Join(a.rest, " ")
		if a.err != nil {
			return "", nil
		}
		if err := workload.CheckWork(order); err != nil {
			return "", err
		}
		for _, p := range h.Workloads.List() {
			if p.Is(who) && p.Spec.Params["work"] == "" {
				return "", fmt.Errorf("workload %s was started without work=: it has its chips do nothing", p.Spec.Name)
			}
		}
		n, err := h.Workloads.Order(who, order)
		if n == 0 {
			return "", fmt.Errorf("no workload %q runs here (see ps)", who)
		}
		return "", err
	},
}, {
	Name: "ps", Short: "list the workloads",
	run: func(h *Host, a *arguments) (string, error) {
		if !a.done() {
			return "", nil
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "PID\tNAME\tDEVICES\tLOAD\tCOMMAND\t(simulated)")
		for _, p := range h.Workloads.List() {
			fmt.Fprintf(w, "%d\t%s\t%s\t%.2f\t%s\n", p.PID, p.Spec.Name, strings.Trim(fmt.Sprint(p.Spec.Devices), "[]"), p.Spec.Load, strings.Join(p.Spec.Command, " "))
		}
		w.Flush()
		return b.String(), nil
	},
}, {
	Name: "opener", Usage: "DEVICE PID|stale|clear", Short: "add a fake line to the pids file, or remove such lines",
	Long: `0 is an opener in a pid namespace that the reader cannot see into, stale a
pid that no process has. For the real things run a workload with pidns or
orphan.`,
	run: func(h *Host, a *arguments) (string, error) {
		devs, what := a.devices(h), a.word("PID")
		if what == "clear" {
			if !a.done() {
				return "", nil
			}
			return each(devs, func(d *driver.Device) error { d.DropMadeUp(); return nil })
		}
		pid, err := strconv.Atoi(what)
		if what == "stale" {
			pid, err = stalePID()
		}
		if a.err == nil && (err != nil || pid < 0) {
			a.fail("%q is neither a pid nor stale nor clear", what)
		}
		if !a.done() {
			return "", nil
		}
		_, err = each(devs, func(d *driver.Device) error { d.AddOpener(pid); return nil })
		return fmt.Sprintln(pid), err
	},
}}

// stalePID is a number that no process has, and none will have soon: the
// kernel counts upwards, and we look from the top.
func stalePID() (int, error) {
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return 0, err
	}
	top, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, err
	}
	for pid := top - 1; pid > 1; pid-- {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); os.IsNotExist(err) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("every pid is in use")
}
