// Package makes the parts of a release that no tool of the field makes from what
// we have: the list of what is inside the programs (SBOM), its licences, and the
// wheels of the Python package. tools/package/build calls it; everything it
// writes depends on its input and SOURCE_DATE_EPOCH only.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "package", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(sbomCommand(), licencesCommand(), wheelCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// sourceDate is the moment that everything in a release is from.
func sourceDate() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: tools/package/build sets it to the time of the commit", s)
	}
	return time.Unix(n, 0).UTC(), nil
}

func sbomCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sbom PROGRAM…",
		Short: "Writes the modules inside programs as CycloneDX",
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return writeSBOM(cmd.OutOrStdout(), args) },
	}
}

func licencesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licences PROGRAM…",
		Short: "Writes the licences of the modules inside programs",
		Args:  cobra.MinimumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return writeLicences(cmd.OutOrStdout(), args) },
	}
}

func wheelCommand() *cobra.Command {
	var w wheel
	var dir string
	cmd := &cobra.Command{
		Use:   "wheel",
		Short: "Writes a wheel of the Python package, with libttmon inside",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			date, err := sourceDate()
			if err != nil {
				return err
			}
			w.date = date
			return w.write(dir)
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.version, "version", "", "the release")
	f.StringVar(&w.platform, "platform", "", "platform tags")
	f.StringVar(&w.library, "library", "", "libttmon.so")
	f.StringVar(&w.program, "program", "", "the program ttmon")
	f.StringVar(&w.readme, "readme", "", "the description, in Markdown")
	f.StringVar(&w.licence, "licence", "", "the licence's text")
	f.StringVar(&w.source, "source", "", "directory with pyproject.toml")
	f.StringVar(&dir, "output", ".", "directory for the wheel")
	return cmd
}

// writeString writes s, and keeps the first error.
func writeString(w io.Writer, err *error, s string) {
	if *err == nil {
		_, *err = io.WriteString(w, s)
	}
}
