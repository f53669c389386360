package cells

// Style is what a cell means, not how it looks: the theme decides that, and
// a terminal without colour gets along with bold, reverse and underline.
type Style uint8

// The styles. Good, Warn and Bad are for health alone.
const (
	Text     Style = iota
	Faint          // beside the point: empty part of a bar, units, rules
	Strong         // titles and what is read first
	Label          // the name in front of a value
	Good           // healthy
	Warn           // worth a look
	Bad            // trouble
	Guess          // an estimate, never a measurement
	Fill           // the filled part of a bar
	Selected       // the one row or item that is selected, in the focused pane
	Shadow         // the selected one of a pane without focus
	Heading        // a row of column titles
	Sorted         // the column title the table is sorted by
	Tagged         // a row the user tagged
	Key            // the key in "F1 Help"
	KeyText        // the text in "F1 Help"
	Banner         // a word that must be seen: simulated, read-only, paused
	Dialog         // text inside a dialog
	Axis           // axes, marks and their labels in a chart
	Series0        // chart lines, one style each; NumSeries of them
	Series1
	Series2
	Series3
	Series4
	Series5
	Series6
	Series7
	Ramp0 // from little to much, NumRamp steps: filled areas and heat maps
	Ramp1
	Ramp2
	Ramp3
	Ramp4
	Ramp5
	Ramp6
	Ramp7
	NumStyles
)

// NumSeries is how many chart lines can be told apart by style.
const NumSeries = int(Ramp0 - Series0)

// Series is the style of the i-th chart line.
func Series(i int) Style { return Series0 + Style(i%NumSeries) }

// NumRamp is how many steps lead from little to much.
const NumRamp = int(NumStyles - Ramp0)

// RampAt is the step of a share between 0 and 1.
func RampAt(share float64) Style {
	return Ramp0 + Style(min(max(int(share*float64(NumRamp)), 0), NumRamp-1))
}

// NumTints is how many steps of colour there are behind cells.
const NumTints = 8

// TintAt is the step of a share between 0 and 1.
func TintAt(share float64) uint8 {
	return 1 + uint8(min(max(int(share*NumTints), 0), NumTints-1))
}

var styleNames = [NumStyles]string{
	"text", "faint", "strong", "label", "good", "warn", "bad", "guess", "fill",
	"selected", "shadow", "heading", "sorted", "tagged", "key", "keytext",
	"banner", "dialog", "axis",
	"series0", "series1", "series2", "series3", "series4", "series5", "series6", "series7",
	"ramp0", "ramp1", "ramp2", "ramp3", "ramp4", "ramp5", "ramp6", "ramp7",
}

func (s Style) String() string { return styleNames[s] }
