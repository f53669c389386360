package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/base/nearest"
)

// Path is where the file is: $TTMON_CONFIG, else config.toml below
// $XDG_CONFIG_HOME/ttmon or ~/.config/ttmon. It is empty where there is no
// home. getenv is os.Getenv outside tests.
func Path(getenv func(string) string) string {
	if p := getenv("TTMON_CONFIG"); p != "" {
		return p
	}
	// The XDG rules ignore a relative path.
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ttmon", "config.toml")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "ttmon", "config.toml")
	}
	return ""
}

// Load is Default overridden by the file at path and then by TTMON_*
// variables. A file that does not exist is no error.
func Load(path string, getenv func(string) string) (Config, error) {
	c := Default()
	if path != "" {
		b, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || unreachable(path):
		case err != nil:
			return c, fmt.Errorf("reading the configuration: %w", err)
		default:
			if c, err = Parse(b); err != nil {
				return Default(), fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	for _, o := range Options() {
		if v := getenv(o.Variable()); v != "" {
			if err := o.Set(&c, v); err != nil {
				return Default(), fmt.Errorf("environment variable %s: %w", o.Variable(), err)
			}
		}
	}
	return c, nil
}

// unreachable reports whether a file lies in a directory that this user may not
// enter: sudo and setpriv leave another user's $HOME.
func unreachable(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrPermission)
}

// Variable is the environment variable that sets the option: TTMON_TOP_INTERVAL.
func (o *Option) Variable() string {
	return "TTMON_" + strings.ToUpper(strings.ReplaceAll(o.Path, ".", "_"))
}

// Parse reads the text of a file over the defaults. Errors name the line.
func Parse(b []byte) (Config, error) {
	c := Default()
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Default(), explain(err)
	}
	for _, o := range Options() {
		if err := o.check(&c); err != nil {
			return Default(), err
		}
	}
	return c, nil
}

// explain turns the decoder's error into "line 3: …".
func explain(err error) error {
	if missing, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var all []error
		for i := range missing.Errors {
			e := &missing.Errors[i]
			row, _ := e.Position()
			key := strings.Join(e.Key(), ".")
			text := fmt.Sprintf("line %d: unknown key %s", row, key)
			if near := nearestSetting(key); near != "" {
				text += ": did you mean " + near + "?"
			}
			all = append(all, errors.New(text))
		}
		return errors.Join(all...)
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, col := e.Position()
		return fmt.Errorf("line %d, column %d: %s", row, col, strings.TrimPrefix(e.Error(), "toml: "))
	}
	return err
}

// nearestSetting is the setting that an unknown key was probably meant to be:
// the same name elsewhere, or one that is spelled nearly so.
func nearestSetting(key string) string {
	name := key[strings.LastIndexByte(key, '.')+1:]
	var paths []string
	for _, o := range Options() {
		if o.Path[strings.LastIndexByte(o.Path, '.')+1:] == name {
			return o.Path
		}
		paths = append(paths, o.Path)
	}
	return nearest.Word(key, paths)
}
