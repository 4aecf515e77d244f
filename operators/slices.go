package operators

import (
	"github.com/plumbline/plumbline/calib/detect/evalue"
)

// rejected returns the slices of a version that the e-BH procedure rejects on a signal: of all slices whose alarm has seen
// rows, the expected share of false ones among them is at most FDR, at any time.
func (t *ModelTask) rejected(v *version, names []string, signal string) (off map[string]bool, of int) {
	var logE []float64
	var slices []string
	for _, name := range names {
		k := v.keys[name]
		if a := k.alarm(signal); a != nil && a.slice && a.tests != nil && a.tests.Headline.Panes() > 0 {
			logE, slices = append(logE, a.logE()), append(slices, name)
		}
	}
	off = map[string]bool{}
	for _, i := range evalue.EBH(logE, t.cfg.Alarm.FDR) {
		off[slices[i]] = true
	}
	return off, len(slices)
}
