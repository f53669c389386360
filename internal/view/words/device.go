package words

import "github.com/ttmon/ttmon/internal/model"

// Power says the draw of the core rail of a device and its limit: "61/160 W";
// a limit of the catalogue has a mark: "61/~160 W".
func Power(d *model.Device) string {
	w, ok := d.Power.Get()
	if !ok {
		return Missing(d.Power.Status)
	}
	limit, ok := d.PowerLimit.Get()
	if !ok {
		return Watts(w)
	}
	return Whole(w) + "/" + Nominal(d.PowerLimit, Whole(limit)) + " W"
}

// Nominal marks a figure of the catalogue: "~160".
func Nominal[T any](r model.Reading[T], text string) string {
	if r.Nominal {
		return Mark(model.Unsure) + text
	}
	return text
}
