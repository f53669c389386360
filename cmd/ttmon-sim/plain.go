package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// plain makes a tree of ordinary files.
func (f *flags) plain(cmd *cobra.Command, args []string) error {
	return errors.New("--root is not there yet")
}
