package metal

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the script language, one command a line or separated by ";".
const Usage = `  name NAME               call the process NAME (at most 15 characters)
  open CHIP [DEVICE]      open a chip by its unique id, as logical device DEVICE
  alloc CHIP POOL BYTES [elsewhere]
  free CHIP POOL BYTES [elsewhere]
                          POOL is dram, l1, l1_small or trace; BYTES may end in
                          K, M or G; elsewhere is on another thread
  cb CHIP BYTES           circular buffers now take BYTES
  host CHIP               allocate a buffer in host memory
  close CHIP              close the chip
  make CHIP               make a region and get no further
  store CHIP OFFSET WORD  put a raw 64-bit word into the region
  lib PATH                map PATH as libtt_metal.so would be
  device PATH             open a device node, as UMD would
  map PATH                map a device node, as whatever drives a chip does
  fork [COMMANDS]         fork; the child runs COMMANDS and stays
  exec                    become another program without closing anything
  leave                   end the first thread; the others go on
  sleep DURATION          do nothing for a while
  die                     be killed (SIGKILL)
  exit                    end without closing anything
  quit                    close everything and end
`

// errEnd ends a script with a clean close, errExit without one.
var (
	errEnd  = errors.New("end")
	errExit = errors.New("exit")
)

// Reply is the answer to one command.
type Reply struct {
	PID     int    `json:"pid"` // in the process's own namespace
	Error   string `json:"error,omitempty"`
	Dropped bool   `json:"dropped,omitempty"` // a CB update fell to the rate limit
	Child   int    `json:"child,omitempty"`   // pid of a forked child
	Held    Held   `json:"held"`
}

// Do carries out one command.
func (w *Workload) Do(line string) (reply Reply, err error) {
	reply.PID = os.Getpid()
	fields := strings.Fields(line)
	if len(fields) > 0 {
		err = w.command(fields[0], fields[1:], line, &reply)
	}
	reply.Held = w.Held()
	return reply, err
}

func (w *Workload) command(verb string, args []string, line string, reply *Reply) (err error) {
	a := arguments{verb: verb, rest: args}
	switch verb {
	case "name":
		err = setName(a.word("a name"))
	case "open":
		id, device := a.number("a chip id"), uint64(0)
		if len(a.rest) > 0 {
			device = a.number("a device number")
		}
		err = a.then(func() error { return w.Open(id, uint32(device)) })
	case "alloc", "free":
		id, pool, size := a.number("a chip id"), a.pool(), a.bytes()
		elsewhere := a.flag("elsewhere")
		do := w.Alloc
		if verb == "free" {
			do = w.Free
		}
		err = a.then(func() error { return do(id, pool, size, elsewhere) })
	case "cb":
		id, size := a.number("a chip id"), a.bytes()
		err = a.then(func() (err error) { reply.Dropped, err = w.SetCB(id, size); return err })
	case "host":
		id := a.number("a chip id")
		err = a.then(func() error { return w.HostBuffer(id) })
	case "close":
		id := a.number("a chip id")
		err = a.then(func() error { return w.Close(id) })
	case "make":
		id := a.number("a chip id")
		err = a.then(func() error { return w.Make(id) })
	case "store":
		id, at, word := a.number("a chip id"), a.number("an offset"), a.number("a word")
		err = a.then(func() error { return w.Store(id, int(at), word) })
	case "lib", "map":
		err = w.MapLibrary(a.word("a path"))
	case "device":
		err = w.OpenDevice(a.word("a path"))
	case "fork":
		_, commands, _ := strings.Cut(line, "fork")
		reply.Child, err = w.fork(strings.TrimSpace(commands))
	case "exec":
		err = become()
	case "leave":
		leave()
	case "sleep":
		err = a.sleep()
	case "die":
		err = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "exit":
		err = errExit
	case "quit":
		err = errEnd
	default:
		err = fmt.Errorf("no command %q; commands are:\n%s", verb, Usage)
	}
	return errors.Join(a.err, err)
}

// setName renames the process: /proc/<pid>/comm is its first thread's.
func setName(name string) error {
	return os.WriteFile("/proc/self/comm", []byte(name), 0)
}

// arguments takes a command's words one by one and remembers what was wrong.
type arguments struct {
	verb string
	rest []string
	err  error
}

func (a *arguments) word(what string) string {
	if a.err != nil {
		return ""
	}
	if len(a.rest) == 0 {
		a.err = fmt.Errorf("%s needs %s", a.verb, what)
		return ""
	}
	word := a.rest[0]
	a.rest = a.rest[1:]
	return word
}

func (a *arguments) number(what string) uint64 {
	word := a.word(what)
	if a.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(word, 0, 64)
	if err != nil {
		a.err = fmt.Errorf("%s: %q is not %s", a.verb, word, what)
	}
	return n
}

func (a *arguments) bytes() uint64 {
	word := a.word("a number of bytes")
	n, err := ParseBytes(word)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s: %w", a.verb, err)
	}
	return n
}

// ParseBytes reads a size: 4096, 64K, 64M, 2G.
func ParseBytes(text string) (uint64, error) {
	digits, shift := text, 0
	if i := strings.IndexAny(text, "KMG"); i >= 0 && i == len(text)-1 {
		digits, shift = text[:i], 10*(1+strings.IndexByte("KMG", text[i]))
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > 1<<63>>shift {
		return 0, fmt.Errorf("%q is not a size such as 4096, 64K, 64M or 2G", text)
	}
	return n << shift, nil
}

func (a *arguments) pool() Pool {
	word := a.word("a pool")
	for p, name := range poolNames[:CB] {
		if name == word {
			return Pool(p)
		}
	}
	if a.err == nil {
		a.err = fmt.Errorf("%s: %q is not a pool: use dram, l1, l1_small or trace", a.verb, word)
	}
	return 0
}

func (a *arguments) flag(word string) bool {
	if len(a.rest) == 0 || a.rest[0] != word {
		return false
	}
	a.rest = a.rest[1:]
	return true
}

// then runs the command if its arguments were right.
func (a *arguments) then(do func() error) error {
	if a.err == nil && len(a.rest) > 0 {
		a.err = fmt.Errorf("%s: what is %q?", a.verb, strings.Join(a.rest, " "))
	}
	if a.err != nil {
		return nil
	}
	return do()
}

func (a *arguments) sleep() error {
	d, err := time.ParseDuration(a.word("a duration"))
	if a.err == nil && err == nil {
		time.Sleep(d)
	}
	return err
}
