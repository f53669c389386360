package node

import (
	"fmt"
	"log/slog"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/source/firmware"
)

func (c *Config) checkFirmware() error {
	switch c.Firmware {
	case firmware.Off, firmware.Table, firmware.Full:
		return nil
	}
	return fmt.Errorf("firmware: %q is not one of off, table, full", c.Firmware)
}

// newFirmware is the source that reads the chips' own tables.
func newFirmware(c Config, log *slog.Logger) *firmware.Source {
	return firmware.New(firmware.Options{
		Root: hostfs.At(c.Root), Mode: c.Firmware, Log: log, Superuser: firmware.Privileged(),
		Deadline: max(firmware.DefaultDeadline, c.Collect.Timeout.Duration),
	})
}
