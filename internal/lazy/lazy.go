// Package lazy makes the tables of a package when they are first needed. What is
// assigned to a variable of a package otherwise is made by every start of every
// program that links it: a map, a pattern and sync.OnceValue alike.
package lazy

import "sync"

// Value is made by New when it is first read. As a variable of a package it is laid
// down by the linker: a start that does not read it runs no code for it.
type Value[T any] struct {
	New   func() T
	once  sync.Once
	value T
}

// Get returns the value. It may be called from any goroutine.
func (v *Value[T]) Get() T {
	v.once.Do(v.fill)
	return v.value
}

func (v *Value[T]) fill() { v.value = v.New() }
