package heads

import (
	"encoding/json"
	"io"
	"math"

	"github.com/plumbline/plumbline/internal/printable"
	"github.com/plumbline/plumbline/internal/texttable"
	"github.com/plumbline/plumbline/pipeline/record"
)

// line writes to where the last line's error is seen.
func line(w io.Writer, format string, args ...any) { _, _ = printable.Fprintf(w, format, args...) }

// Print tells of a head in words: request, training, verdict, orders, files.
func (h *Head) Print(w io.Writer) error {
	serve := ""
	if h.Serve {
		serve = ", to be served"
	}
	line(w, "%s: %s%s\n", h.ID, h.State, serve)
	if h.Why != "" {
		line(w, "%s\n", h.Why)
	}
	if r := h.Request; r != nil {
		line(w, "asked for at %s (%s): %s, on rows of %s to %s, ", r.DecidedAt, r.Reason, r.Why, r.Data.From,
			r.Data.To)
		line(w, "recipe %s, seed %d; runs as a shadow from %s\n", r.Recipe, r.Seed, r.ShadowFrom)
	}
	if j := h.Job; j != nil && h.Result == nil {
		line(w, "attempt %d on %s, %s: %.0f %% %s\n", j.Attempt, j.Trainer, j.State, 100*j.Done, j.Step)
	}
	if o := h.Order; o != nil {
		line(w, "%s by %s at %s: %s\n", o.Action, o.By, o.At, o.Why)
	}
	if err := h.printResult(w); err != nil {
		return err
	}
	return h.printVerdict(w)
}

// printVerdict tells of how the head compares in the stream.
func (h *Head) printVerdict(w io.Writer) error {
	if h.Verdict == nil || h.Verdict.Evidence.Rows == 0 {
		return nil
	}
	e := h.Verdict.Evidence
	line(w, "on %d rows of the stream, %s to %s:\n", e.Rows, e.From, e.To)
	lines := [][]string{scoreColumns(), scoreLine("serving", e.Serving), scoreLine(h.ShadowVersion, e.Shadow)}
	if err := texttable.Print(w, lines, 1); err != nil {
		return err
	}
	const text = "chance that it is no better: at most %.2g; no worse: %.2g; that its accuracy has dropped: %.2g; " +
		"proved from %.2g\n"
	_, err := printable.Fprintf(w, text, chance(e.LogEBetter), chance(e.LogEWorse), chance(e.LogEAccuracy), e.Alpha)
	return err
}

// chance is the bound e^-log on a probability that evidence gives.
func chance(log float64) float64 { return math.Exp(-max(log, 0)) }

// printResult tells of what the trainer left.
func (h *Head) printResult(w io.Writer) error {
	r := h.Result
	if r == nil {
		return nil
	}
	line(w, "%s by %s, attempt %d: %s\n", r.Outcome, r.Trainer, r.Attempt, r.Why)
	type scored struct {
		N int64 `json:"n"`
		record.ShadowScore
	}
	var ev struct{ Before, After *scored }
	// A program's evidence may be anything.
	if json.Unmarshal(r.Evidence, &ev) == nil && ev.After != nil && ev.After.N > 0 {
		lines := [][]string{scoreColumns()}
		if ev.Before != nil {
			lines = append(lines, scoreLine("serving", ev.Before.ShadowScore))
		}
		lines = append(lines, scoreLine(h.ShadowVersion, ev.After.ShadowScore))
		line(w, "on %d validation rows:\n", ev.After.N)
		if err := texttable.Print(w, lines, 1); err != nil {
			return err
		}
	}
	for _, a := range r.Artefacts {
		line(w, "%s: %s, %d bytes, SHA-256 %s\n", a.Name, a.Path, a.Bytes, a.SHA256)
	}
	return nil
}

func scoreColumns() []string { return []string{"", "accuracy", "nll", "ece", "if calibrated", "aurc"} }

func scoreLine(name string, s record.ShadowScore) []string {
	aurc := "-"
	if s.AURC != nil {
		aurc = texttable.Short(*s.AURC)
	}
	return []string{name, texttable.Short(s.Accuracy), texttable.NLL(s.NLL), texttable.Short(s.ECE),
		texttable.Short(s.ECENull), aurc}
}
