package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/ttmon/ttmon/internal/chipread"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/source/firmware"
)

// readsChip reports whether this process was started to read one chip.
func readsChip() bool { return len(os.Args) == 2 && os.Args[1] == chipread.Flag }

func (c *config) checkFirmware() error {
	switch c.Firmware {
	case firmware.Off, firmware.Table, firmware.Full:
		return nil
	}
	return fmt.Errorf("firmware: %q is none of off, table, full", c.Firmware)
}

// newFirmware is the source that reads the chips' own tables.
func newFirmware(c config, log *slog.Logger) *firmware.Source {
	return firmware.New(firmware.Options{
		Root: hostfs.At(c.Root), Mode: c.Firmware, Log: log, Superuser: firmware.Privileged(),
		Deadline: max(firmware.DefaultDeadline, c.Collect.Patience.Duration),
	})
}
