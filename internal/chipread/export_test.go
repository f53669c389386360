package chipread

// Confine is for tests of what a confined process cannot do.
func Confine(r *Request) error { return confine(r) }
