package model

// Held is what a process holds of a pool over all its devices. Where one of
// them says that it may not be read, and nothing more is known, so does the sum.
func (p *Process) Held(pool Pool) Bytes {
	var sum Sum
	for i := range p.Devices {
		u := &p.Devices[i]
		held := u.Memory[pool]
		if held.Status() == Absent && u.Tracking == TrackDenied {
			held = NoBytes(Denied)
		}
		sum.Add(held)
	}
	return sum.Bytes()
}

// Tracking is how far the memory of a process is accounted for, where none of
// its figures is known.
func (p *Process) Tracking() Tracking {
	tracking := TrackAbsent
	for i := range p.Devices {
		if t := p.Devices[i].Tracking; t != "" {
			tracking = t
		}
	}
	return tracking
}
