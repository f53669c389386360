// Package exit holds the exit codes of ttmon, and errors that carry one. What
// runs a command returns such an error; cmd/ttmon prints it and ends with its
// code.
package exit

import "fmt"

// Exit codes. They mean what nvidia-smi's mean, where it has them.
const (
	OK          = 0
	Internal    = 1
	BadArgument = 2
	Unsupported = 3  // not offered by this driver, this ttmond or ttmon
	Denied      = 4  // no permission
	NoDevice    = 6  // no device present
	NoDriver    = 9  // driver not loaded
	Trouble     = 15 // a device shown is hung or lost; the output was printed
)

// Error ends the program with a code. Without Err nothing is printed: the
// output has said it.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usage is the error of a bad argument.
func Usage(format string, args ...any) error {
	return &Error{BadArgument, fmt.Errorf(format, args...)}
}

// With is an error with a code.
func With(code int, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// Silent ends the program with a code and no message.
func Silent(code int) error { return &Error{Code: code} }
