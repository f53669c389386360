package chipread

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
)

// Read reads one chip. A mapping that the driver takes away while it is read, as
// it does when the chip is reset, is an ordinary answer.
func Read(bus Bus, r *Request) (answer Response) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case runtime.Error:
			answer = Response{Cause: model.ResetWhileRead, Errno: int(unix.EFAULT)}
		default:
			panic(e)
		}
	}()
	m, err := openMemory(bus, r)
	if err != nil {
		return failed(err)
	}
	defer m.close()
	answer, err = readTable(m, r)
	if err != nil || answer.Cause != "" {
		return orFailed(answer, err)
	}
	if r.Dispatch || len(r.Ethernet) > 0 {
		err = readTiles(bus, m, r, &answer)
	}
	return orFailed(answer, err)
}

func orFailed(a Response, err error) Response {
	if err != nil {
		return failed(err)
	}
	return a
}

// failure is an error of a call with what it means.
type failure struct {
	cause model.TelemetryCause
	err   error
}

func (f failure) Error() string { return string(f.cause) + ": " + f.err.Error() }
func (f failure) Unwrap() error { return f.err }

func failed(err error) Response {
	r := Response{Cause: model.ReaderFailed}
	if f, ok := errors.AsType[failure](err); ok {
		r.Cause = f.cause
	}
	if e, ok := errors.AsType[unix.Errno](err); ok {
		r.Errno = int(e)
	}
	return r
}

// openFailure is what an error of open(2) means.
func openFailure(err error) error {
	cause := model.ReaderFailed
	switch {
	case errors.Is(err, unix.EAGAIN):
		cause = model.ExclusiveHolder
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		cause = model.ReadDenied
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		cause = model.ChipGone
	}
	return failure{cause, err}
}

// windowFailure is what an error of a request for a window means.
func windowFailure(err error) error {
	cause := model.ReaderFailed
	switch {
	case errors.Is(err, unix.ENODEV):
		cause = model.ResetUnderWay
	case errors.Is(err, unix.ENOMEM):
		cause = model.NoWindowFree
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTTY):
		cause = model.WindowRefused
	}
	return failure{cause, err}
}

// mapFailure is what an error of mmap(2) means.
func mapFailure(err error) error {
	cause := model.ReaderFailed
	switch {
	case errors.Is(err, unix.ENXIO):
		cause = model.WindowOutsideBAR
	case errors.Is(err, unix.ENODEV):
		cause = model.ResetUnderWay
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		cause = model.ReadDenied // lockdown
	}
	return failure{cause, err}
}

// readTable reads the directory, unless it is known, and the values.
func readTable(m memory, r *Request) (Response, error) {
	table, data, err := m.pointers()
	if err != nil {
		return Response{}, err
	}
	if wrong := telemetry.CheckPointers(table, data); wrong != "" {
		return Response{Cause: wrong}, nil
	}
	x, first := telemetry.Index{}, r.First
	if r.Known != nil && r.Known.Table == table && r.Known.Data == data {
		x = telemetry.Index{Table: table, Data: data, Entries: r.Known.Entries}
	} else {
		var wrong model.TelemetryCause
		if x, wrong, err = readIndex(m, table, data); err != nil || wrong != "" {
			return Response{Cause: wrong}, err
		}
		first = true
	}
	answer := Response{Index: x, Words: telemetry.Words{}}
	for _, e := range telemetry.Wanted(r.Arch, x.Entries, first) {
		if !telemetry.InMemory(x.Address(e)) {
			return Response{Cause: model.TableInvalid}, nil
		}
		w, err := m.load(x.Address(e))
		if err != nil {
			return Response{}, err
		}
		answer.Words[e.Tag] = w
	}
	if allOnes(answer.Words) {
		return Response{Cause: model.ReadAllOnes}, nil
	}
	return answer, nil
}

func allOnes(words telemetry.Words) bool {
	for _, w := range words {
		if w != telemetry.AllOnes {
			return false
		}
	}
	return len(words) > 0
}

func readIndex(m memory, table, data uint32) (x telemetry.Index, wrong model.TelemetryCause, err error) {
	var head [2]uint32
	for i := range head {
		if head[i], err = m.load(table + 4*uint32(i)); err != nil {
			return x, "", err
		}
	}
	n, wrong := telemetry.CheckHeader(table, head[0], head[1])
	if wrong != "" {
		return x, wrong, nil
	}
	words := make([]uint32, n)
	for i := range words {
		if words[i], err = m.load(table + 8 + 4*uint32(i)); err != nil {
			return x, "", err
		}
	}
	return telemetry.NewIndex(table, data, words), "", nil
}
