package chipread

// Confine is for tests of what a confined process cannot do.
func Confine(opensNode bool) error { return confine(opensNode) }

// HeartbeatCause is why a chip is not to be read after its heartbeat was.
var HeartbeatCause = heartbeatCause
