package main

import "fmt"

// Exit codes. They mean what nvidia-smi's mean, where it has them.
const (
	exitOK          = 0
	exitInternal    = 1
	exitUsage       = 2  // bad argument
	exitUnsupported = 3  // not offered by this driver, or not our business
	exitDenied      = 4  // no permission
	exitNoDevice    = 6  // no device present
	exitNoDriver    = 9  // driver not loaded
	exitTrouble     = 15 // a device shown is hung or lost; the output was printed
)

// exitError ends the program with a code. Without an error nothing is said:
// what was printed says it.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func exitWith(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}
