package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// hashPasswordCommand writes the file that listen.web_config names, so that no other
// program is needed to protect an address.
func hashPasswordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hash-password USER",
		Short: "Read a password and print a web configuration with its hash",
		Long: `Reads a password from standard input, its first line, and prints a web configuration
(listen.web_config) that lets USER in with it. The file holds a bcrypt hash, not the
password. On a terminal it asks, and does not show what is typed.`,
		Example: "  ttmon-server hash-password prometheus >/etc/ttmon/web.yml",
		Args:    oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := readPassword(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return daemon.Usage(err)
			}
			text, err := webConfig(args[0], password)
			if err != nil {
				return daemon.Usage(err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}

// webConfig is a web configuration of Prometheus's exporter-toolkit with one user.
func webConfig(user, password string) (string, error) {
	if user == "" || strings.ContainsRune(user, ':') {
		return "", errors.New("a user's name must not be empty, and must not have a colon")
	}
	if password == "" {
		return "", errors.New("the password is empty")
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return "", fmt.Errorf("cannot hash the password: %w", err)
	}
	return "basic_auth_users:\n  " + strconv.Quote(user) + ": '" + string(hash) + "'\n", nil
}

// readPassword reads one line, without showing it where in is a terminal. It returns
// when ctx ends, so that the terminal shows again what is typed.
func readPassword(ctx context.Context, in io.Reader, prompt io.Writer) (string, error) {
	if f, ok := in.(*os.File); ok {
		fd := int(f.Fd())
		if old, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			hidden := *old
			hidden.Lflag &^= unix.ECHO
			fmt.Fprint(prompt, "Password: ")
			if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
				return "", fmt.Errorf("cannot hide the password: %w", err)
			}
			defer func() {
				_ = unix.IoctlSetTermios(fd, unix.TCSETS, old)
				fmt.Fprintln(prompt)
			}()
		}
	}
	type answer struct {
		line string
		err  error
	}
	typed := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
		typed <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", errors.New("interrupted")
	case a := <-typed:
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			return "", fmt.Errorf("cannot read the password: %w", a.err)
		}
		return strings.TrimRight(a.line, "\r\n"), nil
	}
}
