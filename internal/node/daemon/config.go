package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/base/nearest"
)

// Duration is a time.Duration written as in "1s".
type Duration struct{ time.Duration }

// MarshalText writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(b))
	return err
}

// StateDir is where a daemon keeps its state: root's below /var/lib, a user's
// below $XDG_STATE_HOME.
func StateDir(name string) string {
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib", name)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ttmon")
	}
	if home := os.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "ttmon")
	}
	return filepath.Join("/var/lib", name)
}

// UserSocket is where a user's own daemon listens: a directory that only the
// user can write to.
func UserSocket(name string) string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ttmon", name)
	}
	return filepath.Join(StateDir("ttmon"), name)
}

// ConfigPath is where a configuration file is.
func ConfigPath(name string) string {
	if os.Geteuid() == 0 {
		return filepath.Join("/etc/ttmon", name)
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ttmon", name)
	}
	return filepath.Join(os.Getenv("HOME"), ".config", "ttmon", name)
}

// ReadConfig reads a TOML file over c, a pointer to a struct. Unknown keys are
// errors.
func ReadConfig(path string, c any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	if err := parse(b, c); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func parse(b []byte, c any) error {
	err := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields().Decode(c)
	if e, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		row, _ := e.Errors[0].Position()
		name := strings.Join(e.Errors[0].Key(), ".")
		hint := ""
		if near := nearest.Word(name, keys(c)); near != "" {
			hint = " (did you mean " + near + "?)"
		}
		return fmt.Errorf("line %d: unknown key %s%s:\n%s", row, name, hint, plain(e.Errors[0].String()))
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := e.Position()
		return fmt.Errorf("line %d: %s:\n%s", row, plain(e.Error()), plain(e.String()))
	}
	return err
}

// plain is a message of the decoder without the names of Go's types, which say
// nothing to the author of a configuration file.
func plain(message string) string {
	message = regexp.MustCompile(`cannot decode TOML (\w+) into (?:struct field \S+|a Go value) of type \S+`).ReplaceAllString(message, "wrong type: $1")
	return strings.NewReplacer("toml: ", "", "unknown field", "unknown key", "missing table", "unknown section",
		"cannot store a table in a string", "a section where a string is expected").Replace(message)
}

// keys are the names of all sections and settings of a configuration.
func keys(c any) (names []string) {
	var add func(t reflect.Type, above string)
	add = func(t reflect.Type, above string) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for i := range t.NumField() {
			if t.Field(i).Anonymous {
				add(t.Field(i).Type, above)
			}
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ",")
			if name != "" && name != "-" {
				names = append(names, above+name)
				add(t.Field(i).Type, above+name+".")
			}
		}
	}
	add(reflect.TypeOf(c), "")
	return names
}

// EachDifference calls f with every setting in which two configurations,
// pointers to structs of the same type, differ, in the order of the file. A
// list is one setting.
func EachDifference(old, new any, f func(name string, old, new reflect.Value)) {
	var walk func(prefix string, a, b reflect.Value)
	walk = func(prefix string, a, b reflect.Value) {
		for i := range a.NumField() {
			if a.Type().Field(i).Anonymous {
				walk(prefix, a.Field(i), b.Field(i))
				continue
			}
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("toml"), ",")
			if name == "" {
				continue // from the command line only
			}
			x, y := a.Field(i), b.Field(i)
			switch {
			case x.Kind() == reflect.Struct && x.Type() != reflect.TypeFor[Duration]():
				walk(prefix+name+".", x, y)
			case !reflect.DeepEqual(x.Interface(), y.Interface()):
				f(prefix+name, x, y)
			}
		}
	}
	walk("", reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem())
}

// FormatSetting is a setting as text; a list may have secrets in it.
func FormatSetting(v reflect.Value) string {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return "as it is"
	}
	return fmt.Sprint(v.Interface())
}

// ParseMode reads the permissions of a socket.
func ParseMode(s string) (fs.FileMode, error) {
	m, err := strconv.ParseUint(s, 8, 32)
	if err != nil || m == 0 || m > 0o777 {
		return 0, fmt.Errorf("%q is not a permission like 0660", s)
	}
	return fs.FileMode(m), nil
}

// LookUpGroup returns 0 for the empty name.
func LookUpGroup(s string) (gid int, err error) {
	if s == "" {
		return 0, nil
	}
	if gid, err := strconv.Atoi(s); err == nil && gid >= 0 {
		return gid, nil
	}
	g, err := user.LookupGroup(s)
	if err != nil {
		return 0, fmt.Errorf("no such group: %q", s)
	}
	return strconv.Atoi(g.Gid)
}
