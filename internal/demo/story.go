package demo

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// story follows the outputs of the model task that concern the whole model, tells them line by line, and keeps
// what the result is made of. It looks at nothing else, so equal outputs give equal stories and results.
type story struct {
	plan  plan
	lines *Lines

	mu          sync.Mutex
	seen        map[[sha256.Size]byte]bool // a rebalance repeats outputs, byte by byte
	shifted     bool                       // SHIFT is told
	told        int                        // of milestones
	since       int                        // lines about the calibrator in force
	before      *record.Snapshot           // the last at or before the shift
	after       *record.Snapshot           // the last after it that the refit had seen
	refitted    *record.Snapshot           // the last with the calibrator of the refit in force
	labelled    int64                      // labelled rows up to now
	atShift     int64                      // labelled up to the shift
	alarmRows   int64                      // labelled from the shift to the alarm
	alarm       *record.Alert              // the first that fired
	resolved    *record.Alert              // the first that resolved it
	inhibited   bool                       // that an alarm on the raw confidence is, is told
	refit       *record.Calibrator         // the first published after the alarm
	request     *record.Finetune           // the first for a new head
	verdict     *record.Verdict            // on that head
	heard       time.Time                  // event time up to which everything has come
	alerts      []record.Alert
	calibrators []record.Calibrator
}

func newStory(plan plan, lines *Lines) *story {
	return &story{plan: plan, lines: lines, seen: map[[sha256.Size]byte]bool{}}
}

// take is the engine's listener. Outputs of one model come in order of event time.
func (s *story) take(m pipeline.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec, ok := m.Record.(*record.Snapshot); ok {
		if rec.Slice != "" {
			return
		}
		s.heard = time.Unix(0, m.Time).UTC()
	}
	id := sha256.Sum256(m.Value)
	if s.seen[id] {
		return
	}
	s.seen[id] = true
	at := time.Unix(0, m.Time).UTC()
	if !s.shifted && at.After(s.plan.Shift) {
		s.shifted = true
		s.lines.at(s.plan.Shift, "%s begins: from row %d on the images are rotated, noisy and partly hidden",
			s.lines.mark("SHIFT"), s.plan.shiftRow)
	}
	switch r := m.Record.(type) {
	case *record.Snapshot:
		s.snapshot(*r, at)
	case *record.Alert:
		s.alert(*r, at)
	case *record.Calibrator:
		s.calibrator(*r, at)
	case *record.Finetune:
		s.asked(*r, at)
	case *record.Verdict:
		s.judged(*r, at)
	}
}

// milestones are the times after the shift at which the story says how the ECE does until the refit.
var milestones = []time.Duration{20 * time.Second, 40 * time.Second, 60 * time.Second, 100 * time.Second}

// sinceRows are the labelled rows of the new calibrator at which the story says how it does.
var sinceRows = []int64{250, 1000, 3000}

func (s *story) snapshot(n record.Snapshot, at time.Time) {
	if n.Version != modelVersion { // of a shadow
		return
	}
	switch n.Window.Name {
	case runWindow:
		s.labelled = n.Labelled
		if !at.After(s.plan.Shift) {
			s.atShift = n.Labelled
		}
	case windowName:
		s.ece(&n, at)
	}
}

func (s *story) ece(n *record.Snapshot, at time.Time) {
	switch {
	case !at.After(s.plan.Shift):
		if n.Labelled >= 1000 && (s.before == nil || s.before.Labelled < 1000 || at.Equal(s.plan.Shift)) {
			s.lines.at(at, "ECE %s", eceText(&n.Raw))
		}
		s.before = n
	case s.refit == nil:
		for s.told < len(milestones) && at.Sub(s.plan.Shift) >= milestones[s.told] {
			s.told++
			s.lines.at(at, "ECE %s, accuracy %s", eceText(&n.Raw), percent(n.Raw.Accuracy))
		}
		s.after = n
	case n.InForce != nil && n.InForce.Version >= s.refit.Revision && n.InForce.Raw.N > 0:
		s.refitted = n
		if s.since < len(sinceRows) && n.InForce.Raw.N >= sinceRows[s.since] {
			s.since++
			s.lines.at(at, "ECE of the calibrated stream %s, without the refit %s; %d rows since it",
				percent(n.InForce.Calibrated.ECE), percent(n.InForce.Raw.ECE), n.InForce.Raw.N)
		}
	}
}

// alert tells of the whole model's alerts that a notifier would tell of, and keeps all of them.
func (s *story) alert(a record.Alert, at time.Time) {
	if a.Slice != "" || a.Version != modelVersion {
		return
	}
	s.alerts = append(s.alerts, a)
	ours := a.Kind == "anytime" && a.Rule != "accuracy-fall"
	switch {
	case ours && a.State == "firing" && a.InhibitedBy == "" && s.alarm == nil:
		s.alarm = &a
		s.alarmRows = s.labelled - s.atShift
		s.lines.at(at, "%s: the model is %s beyond the tolerance, by its own estimate since %s; "+
			"one inside it shows this %s", s.lines.mark("ALARM firing"),
			a.Evidence.Direction, a.Since.Std().Format(time.TimeOnly), a.Evidence.ByChance)
		s.lines.at(at, "%v and %d labelled rows after the shift; ECE of the %d rows since that estimate %s",
			at.Sub(s.plan.Shift), s.alarmRows, a.Rows, percent(&a.ECE))
	case ours && a.State == "firing" && strings.HasPrefix(a.InhibitedBy, "calibrator"):
		if s.inhibited { // a later calibrator does so again
			return
		}
		s.inhibited = true
		s.lines.at(at, "alarm on the raw confidence: inhibited by %s", a.InhibitedBy)
	case ours && a.State == "resolved" && s.alarm != nil && s.resolved == nil:
		s.resolved = &a
		s.lines.at(at, "%s: with the calibrator in force the error is back inside the tolerance; ECE %s",
			s.lines.mark("ALARM resolved"), percent(&a.ECE))
	case a.InhibitedBy == "" && a.Rule == "accuracy-fall":
		s.lines.at(at, "%s %s: %s", a.Rule, a.State, a.Message)
	case a.InhibitedBy == "" && a.State != "pending":
		s.lines.at(at, "%s %s: ECE %s", a.Rule, a.State, percent(&a.ECE))
	}
}

func (s *story) calibrator(c record.Calibrator, at time.Time) {
	if c.Version != modelVersion {
		return
	}
	s.calibrators = append(s.calibrators, c)
	if c.Published && (c.Reason == "alarm" || c.Reason == "quick") && s.alarm != nil && s.refit == nil {
		s.refit = &c
	}
	if !c.Published {
		s.lines.at(at, "refit by %s: %s", c.Reason, ascii.Replace(c.Outcome))
		return
	}
	what := c.Method
	if c.Evidence.Temperature > 0 {
		what = fmt.Sprintf("T = %.3f", c.Evidence.Temperature)
	}
	how := s.lines.mark("REFIT") + " by " + c.Reason
	if c.Reason == "quick" {
		how = s.lines.mark("FIRST ANSWER")
	}
	s.lines.at(at, "%s published %s as revision %d: NLL %.4f -> %.4f, ECE %s -> %s on %d newer rows",
		how, what, c.Revision, c.Evidence.NLLInForce, c.Evidence.NLLNew, percent(&c.Evidence.ECEInForce),
		percent(&c.Evidence.ECENew), c.Evidence.TestRows)
}

// ascii writes what the records say for people without other characters.
var ascii = strings.NewReplacer("→", "->", "±", "+-")

// eceText is an ECE with what belongs to it.
func eceText(m *record.Metrics) string {
	return fmt.Sprintf("%s of %d labelled rows (95 %% interval %s to %s; a calibrated model would show %s)",
		percent(m.ECE), m.N, percent(m.ECELo), percent(m.ECEHi), percent(m.ECENull))
}

func percent(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", 100**v)
}

// Lines writes the story: a line an event, the event time first.
type Lines struct {
	mu     sync.Mutex
	W      io.Writer
	Colour bool
	Width  int // of the terminal, in columns; 0: none, lines stay whole
}

// at writes a line about a moment of event time.
func (l *Lines) at(t time.Time, format string, args ...any) {
	l.write(t.Format(time.TimeOnly), format, args...)
}

// plain writes a line that has no event time.
func (l *Lines) plain(format string, args ...any) { l.write("", format, args...) }

func (l *Lines) write(stamp, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	for i, part := range wrapped(text, l.Width-stampWidth) {
		if i > 0 {
			stamp = ""
		}
		fmt.Fprintf(l.W, "%8s  %s\n", stamp, part)
	}
}

const (
	stampWidth = 10 // columns before the text of a line
	leastWidth = 20 // a terminal narrower than that gets whole lines
)

// wrapped breaks text at spaces into parts of at most width columns, of which the marks of a terminal take none.
func wrapped(text string, width int) []string {
	if width < leastWidth {
		return []string{text}
	}
	var parts []string
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(unmark.Replace(word))
		if len(parts) > 0 && column+1+n <= width {
			parts[len(parts)-1] += " " + word
			column += 1 + n
			continue
		}
		parts = append(parts, word)
		column = n
	}
	return parts
}

const (
	markOn  = "\x1b[1m"
	markOff = "\x1b[0m"
)

var unmark = strings.NewReplacer(markOn, "", markOff, "")

// mark makes a word stand out on a terminal.
func (l *Lines) mark(word string) string {
	if !l.Colour {
		return word
	}
	return markOn + word + markOff
}
