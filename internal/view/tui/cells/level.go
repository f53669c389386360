package cells

import "github.com/ttmon/ttmon/internal/model"

// Of is the style of what has a level: the one rule of colours of health.
func Of(l model.Level) Style {
	if l == model.Fine {
		return Good
	}
	return OfNote(l)
}

// OfNote is Of for text that is plain while all is well.
func OfNote(l model.Level) Style {
	switch l {
	case model.Critical:
		return Bad
	case model.Warning:
		return Warn
	}
	return Text
}
