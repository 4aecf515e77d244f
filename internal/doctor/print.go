package doctor

import (
	"io"

	"github.com/plumbline/plumbline/internal/printable"
)

// Report is the result of all checks.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Worst is the worst state of the findings.
func (r Report) Worst() State {
	worst := OK
	for _, f := range r.Findings {
		if f.State == Bad || f.State == Warn && worst != Bad {
			worst = f.State
		}
	}
	return worst
}

// Print writes a line for each finding, and one for what mends it.
func (r Report) Print(w io.Writer) error {
	for _, f := range r.Findings {
		if _, err := printable.Fprintf(w, "%-7s  %-12s  %s\n", string(f.State), f.Check, f.Found); err != nil {
			return err
		}
		if f.Do == "" {
			continue
		}
		if _, err := printable.Fprintf(w, "%23s %s\n", "->", f.Do); err != nil {
			return err
		}
	}
	return nil
}

// Print writes when and why a message was refused, where it was, and how it begins.
func (l Letter) Print(w io.Writer) error {
	rows := "the whole message"
	if l.Rows != "" {
		rows = "rows " + l.Rows
	}
	if l.Part != "" {
		rows += " of its part " + l.Part
	}
	_, err := printable.Fprintf(w, "%s  %s/%d/%d  %s: %s\n  %s; %d bytes, %s\n", l.Time.Format("2006-01-02 15:04:05Z"),
		l.Topic, l.Partition, l.Offset, l.Reason, l.Detail, rows, l.Bytes, l.Looks)
	if err == nil && l.Head != "" {
		_, err = printable.Fprintf(w, "  %s\n", l.Head)
	}
	return err
}
