package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// roles are what the processes of the tests do.
var roles = map[string]func(args []string) error{
	"hold":      playHold,
	"bequest":   playBequest,
	"inheritor": playInheritor,
	"freeze":    playFreeze,
}

// A role may end its process's first thread, so it has to run on it.
func init() {
	if os.Getenv(roleVariable) != "" {
		runtime.LockOSThread()
	}
}

// playHold opens the files it is given, in order, and obeys: "open PATH",
// "lock PATH" (with O_APPEND), "close N" and "dup N" (N counts the files), "map
// N", "busy".
func playHold(args []string) error {
	var files []*os.File
	open := func(path string) error {
		f, err := os.Open(path)
		files = append(files, f)
		return err
	}
	for _, path := range args[1:] {
		if err := open(path); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	return steps(func(step string) error {
		verb, arg, _ := strings.Cut(step, " ")
		n, _ := strconv.Atoi(arg)
		var err error
		switch verb {
		case "open":
			err = open(arg)
		case "lock":
			var f *os.File
			f, err = os.OpenFile(arg, os.O_RDWR|os.O_APPEND, 0)
			files = append(files, f)
		case "close":
			err = files[n].Close()
		case "dup":
			_, err = syscall.Dup(int(files[n].Fd()))
		case "map":
			_, err = syscall.Mmap(int(files[n].Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
		case "leave": // end the first thread, go on with the others
			go func() {
				fmt.Println("done")
				_ = steps(func(string) error { return nil })
				os.Exit(0)
			}()
			_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
		}
		if err == nil {
			fmt.Println("done")
		}
		return err
	})
}

// playBequest opens a file, leaves it to a child, tells the child's pid and
// obeys: "close" gives up its own descriptor, "exit" ends it.
func playBequest(args []string) error {
	f, err := os.Open(args[1])
	if err != nil {
		return err
	}
	inheritor := exec.Command("/proc/self/exe", "inheritor")
	inheritor.Env = append(os.Environ(), roleVariable+"=inheritor")
	inheritor.ExtraFiles, inheritor.Stderr = []*os.File{os.NewFile(3, "lifeline"), f}, os.Stderr
	if err := inheritor.Start(); err != nil {
		return err
	}
	fmt.Println(inheritor.Process.Pid)
	return steps(func(step string) error {
		switch step {
		case "close":
			if err := f.Close(); err != nil {
				return err
			}
			fmt.Println("done")
		case "exit":
			os.Exit(0)
		}
		return nil
	})
}

func playInheritor([]string) error {
	_, err := io.Copy(io.Discard, os.NewFile(3, "lifeline"))
	return err
}
