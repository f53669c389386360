package hostfs

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// ErrTimeout means that a read did not return in time. The read itself
// continues in a process of its own and blocks nothing else.
var ErrTimeout = errors.New("the read did not return in time")

// Status classifies errors of driver files. A nil error is Known.
func Status(err error) model.Status {
	switch {
	case err == nil:
		return model.Known
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return model.Absent
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return model.Denied
	case errors.Is(err, unix.ENODATA):
		return model.Resetting
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return model.Lost
	case errors.Is(err, ErrTimeout):
		return model.Hung
	default:
		return model.Absent
	}
}
