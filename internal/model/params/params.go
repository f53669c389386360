// Package params turns questions into the parameters of a call of the API, and back. A
// question is a struct: of each field its tags say what it is called in a URL (param)
// and in the description of the API (help). What is zero is not asked for.
package params

import (
	"encoding"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

// Param is a parameter of a call.
type Param struct {
	Name, Help string
	InPath     bool
	Required   bool
}

// Of lists the parameters of a question.
func Of(question any) (list []Param) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(question)) {
		if name := f.Tag.Get("param"); name != "" {
			_, required := f.Tag.Lookup("required")
			list = append(list, Param{Name: name, Help: f.Tag.Get("help"), Required: required})
		}
	}
	return list
}

// Values are the parameters of a question, which is a pointer.
func Values(question any) url.Values {
	v, of := url.Values{}, reflect.ValueOf(question).Elem()
	for i := range of.NumField() {
		name, f := of.Type().Field(i).Tag.Get("param"), of.Field(i)
		switch {
		case name == "" || f.IsZero():
		case f.Kind() == reflect.Slice:
			for _, x := range f.Seq2() {
				v.Add(name, format(x))
			}
		default:
			v.Set(name, format(reflect.Indirect(f)))
		}
	}
	return v
}

func format(x reflect.Value) string {
	if m, ok := x.Interface().(encoding.TextMarshaler); ok {
		text, _ := m.MarshalText()
		return string(text)
	}
	return fmt.Sprint(x.Interface())
}

// Parse is the inverse of Values. Parameters that the question does not have are passed
// over.
func Parse(v url.Values, question any) error {
	of := reflect.ValueOf(question).Elem()
	for i := range of.NumField() {
		name, f := of.Type().Field(i).Tag.Get("param"), of.Field(i)
		if _, required := of.Type().Field(i).Tag.Lookup("required"); required && v.Get(name) == "" {
			return fmt.Errorf("%s: it is required", name)
		}
		for _, text := range v[name] {
			if text == "" {
				continue
			}
			kind := f.Type()
			if list := kind.Kind() == reflect.Slice; list || kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			x := reflect.New(kind)
			if err := parse(text, x); err != nil {
				return fmt.Errorf("%s: %q is %w", name, text, err)
			}
			switch f.Kind() {
			case reflect.Slice:
				f.Set(reflect.Append(f, x.Elem()))
			case reflect.Pointer:
				f.Set(x)
			default:
				f.Set(x.Elem())
			}
		}
	}
	return nil
}

// What a text is not.
var (
	errNoTime   = errors.New("not a time like 2026-11-15T08:30:00Z")
	errNoNumber = errors.New("not a number")
	errNoBool   = errors.New("neither true nor false")
	errUnknown  = errors.New("none of the words that are known: /v1/openapi.json lists them")
)

// parse reads the value that to points to.
func parse(text string, to reflect.Value) error {
	x := to.Elem()
	if t, ok := to.Interface().(*time.Time); ok {
		if t.UnmarshalText([]byte(text)) != nil {
			return errNoTime
		}
		return nil
	}
	if u, ok := to.Interface().(encoding.TextUnmarshaler); ok {
		if u.UnmarshalText([]byte(text)) != nil || format(x) != text {
			return errUnknown
		}
		return nil
	}
	switch x.Kind() {
	case reflect.String:
		x.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if x.SetBool(b); err != nil {
			return errNoBool
		}
	case reflect.Int:
		n, err := strconv.ParseUint(text, 10, 31)
		if x.SetInt(int64(n)); err != nil {
			return errNoNumber
		}
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 63)
		if x.SetUint(n); err != nil {
			return errNoNumber
		}
	default:
		panic("BUG: a parameter of type " + x.Type().String())
	}
	return nil
}
