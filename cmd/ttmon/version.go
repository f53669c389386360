package main

import (
	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/version"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Prints the version of ttmon, what it was built from, and the Go that built it.",
		Example: "  ttmon version",
		RunE: func(*cobra.Command, []string) error {
			return a.Output("").Write([]byte(versionLine()))
		},
	}
}

func versionLine() string { return "ttmon " + version.Long() + "\n" }
