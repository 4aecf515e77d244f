package rule

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestRuleStates walks the rule over evaluations of one pane each, at ends 10, 20, …: fire .05, clear .03.
func TestRuleStates(t *testing.T) {
	for _, c := range []struct {
		name              string
		forTime, clearFor time.Duration
		excess            string // by pane
		want              string // "end:state" of every change
	}{
		{"calm", 20, 20, ".01 .02 .05", ""},
		{"at the threshold is not over it", 0, 0, ".05", ""},
		{"fires at once without for", 0, 0, ".06 .06", "10:firing"},
		{"pending, then firing", 20, 0, ".06 .06 .06 .06", "10:pending 30:firing"},
		{"falls back before for", 20, 0, ".06 .06 .05 .06 .06", "10:pending 30:resolved 40:pending"},
		{"hysteresis: between clear and fire it stays", 0, 10, ".06 .04 .04 .04 .06", "10:firing"},
		{"resolves at once without clear_for", 0, 0, ".06 .02", "10:firing 20:resolved"},
		{"resolves after clear_for", 0, 20, ".06 .02 .02 .02 .02", "10:firing 40:resolved"},
		{"a rise restarts clear_for", 0, 20, ".06 .02 .02 .04 .02 .02 .02", "10:firing 70:resolved"},
		{"fires again", 0, 0, ".06 .02 .06", "10:firing 20:resolved 30:firing"},
		{"gaps between panes count as time", 30, 0, ".06 - - .06", "10:pending 40:firing"},
		{"significance: below the null's quantile it is not over", 0, 0, "n.06 n.06", ""},
		{"pending ends when it is not significant", 20, 0, ".06 n.06", "10:pending 20:resolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &Config{Fire: .05, Clear: .03, For: c.forTime, ClearFor: c.clearFor}
			var r stage.AlertState
			var got []string
			for i, x := range strings.Fields(c.excess) {
				if x == "-" {
					continue
				}
				end := int64(i+1) * 10
				j := Evaluation{Rows: 100, Significant: true}
				if rest, ok := strings.CutPrefix(x, "n"); ok {
					x, j.Significant = rest, false
				}
				if _, err := fmt.Sscan(x, &j.Value); err != nil {
					t.Fatal(err)
				}
				if state, changed := spec.move(&r, j, end-10, end); changed {
					got = append(got, fmt.Sprintf("%d:%s", end, state))
				}
				// The state survives its encoding at every pane.
				in := binenc.NewReader(r.Append(nil))
				var back stage.AlertState
				back.Restore(&in)
				if err := in.Close(); err != nil || !bytes.Equal(back.Append(nil), r.Append(nil)) ||
					back.State != r.State {
					t.Fatalf("state %+v became %+v, %v", r, back, err)
				}
				r = back
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}
