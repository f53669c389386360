package control

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/workload"
)

var processVerbs = []Verb{{
	Name: "run", Usage: "SETTING,…", Short: "start a workload: a real process that holds devices open",
	Long: "Settings:\n" + workload.Usage(),
	host: func(a *arguments) onHost {
		text := a.text()
		return func(h *Host) (string, error) {
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
		}
	},
}, {
	Name: "kill", Usage: "NAME|PID", Short: "end a workload",
	host: func(a *arguments) onHost {
		who := a.word("NAME or PID")
		return func(h *Host) (string, error) {
			if h.Workloads.Kill(who) == 0 {
				return "", fmt.Errorf("no workload %q runs here (see ps)", who)
			}
			return "", nil
		}
	},
}, {
	Name: "work", Usage: "NAME|PID ORDER…", Short: "have a workload's chips do something else: " + workload.WorkOrders,
	Long: `It is for workloads of kind=ledger with work=. Power follows: a chip that hangs
or idles draws little.`,
	host: func(a *arguments) onHost {
		who, order := a.word("NAME or PID"), a.text()
		return func(h *Host) (string, error) {
			if err := workload.CheckWork(order); err != nil {
				return "", err
			}
			n, err := h.Workloads.Order(who, order)
			if n == 0 {
				return "", fmt.Errorf("no workload %q runs here (see ps)", who)
			}
			return "", err
		}
	},
}, {
	Name: "ps", Short: "list the workloads",
	host: func(*arguments) onHost {
		return func(h *Host) (string, error) {
			lines := []string{"PID\tNAME\tDEVICES\tLOAD\tCOMMAND\t(simulated)"}
			for _, p := range h.Workloads.List() {
				lines = append(lines, fmt.Sprintf("%d\t%s\t%s\t%.2f\t%s", p.PID, p.Spec.Name, strings.Trim(fmt.Sprint(p.Spec.Devices), "[]"), p.Spec.Load, strings.Join(p.Spec.Command, " ")))
			}
			return table(lines), nil
		}
	},
}, {
	Name: "opener", Usage: "DEVICE PID|stale|clear", Short: "add a fake line to the pids file, or remove such lines",
	Long: `0 is an opener in a pid namespace that the reader cannot see into, stale a
pid that no process has. For the real things run a workload with pidns or
orphan.`,
	host: func(a *arguments) onHost {
		devs, empty := a.devices(), a.flag("clear")
		if empty {
			return func(*Host) (string, error) {
				for _, d := range devs {
					d.DropMadeUp()
				}
				return "", nil
			}
		}
		what := a.word("PID")
		pid, err := strconv.Atoi(what)
		if what == "stale" {
			pid, err = stalePID()
		}
		if err != nil || pid < 0 {
			a.fail("%q is neither a pid nor stale nor clear", what)
		}
		return func(*Host) (string, error) {
			for _, d := range devs {
				d.AddOpener(pid)
			}
			return fmt.Sprintln(pid), nil
		}
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
