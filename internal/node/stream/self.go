package stream

import "time"

// Self is what ttmond says about itself.
type Self struct {
	Sources []Source
	Limits  []Limit
	Clients []Client
}

// Source is how one source did in the last collection.
type Source struct {
	Name     string
	Duration time.Duration
	OK       bool
	LastOK   time.Time // zero: never
}

// Limit is a bound that ttmond keeps.
type Limit struct {
	Name      string
	Max, Used float64
	Dropped   float64 // what it has turned away so far
}

// Client is a kind of client and how many of it there are.
type Client struct {
	Kind  string
	Count int
}
