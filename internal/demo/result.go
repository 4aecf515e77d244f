package demo

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Result is what `plumbline demo --json` prints. All but Wall is the same for equal --for and --seed.
type Result struct {
	Seed           uint64  `json:"seed"`
	Rows           int64   `json:"rows"`
	Labelled       int64   `json:"labelled_rows"`
	Start          string  `json:"start"` // event time of the first row
	ModelAccuracy  float64 `json:"model_accuracy"`
	ShiftAt        string  `json:"shift_at"`
	ShiftRow       int64   `json:"shift_row"`
	LabelledBefore int64   `json:"labelled_rows_before_shift"`

	AlarmAt        record.Time    `json:"alarm_at,omitzero"`
	AlarmAfter     *float64       `json:"alarm_after_shift_s"` // event time; null = no alarm
	AlarmAfterRows *int64         `json:"alarm_after_shift_labelled_rows"`
	ResolvedAt     record.Time    `json:"resolved_at,omitzero"`
	ECEBeforeShift *ECE           `json:"ece_before_shift"`
	ECEAfterShift  *ECE           `json:"ece_after_shift"` // before the refit
	ECEAfterRefit  *ECE           `json:"ece_after_refit"` // both of the same rows, that came after the publication
	Calibrators    []Calibrator   `json:"calibrators"`
	Alerts         []record.Alert `json:"alerts"`
	Finetune       *Finetune      `json:"finetune"` // the new head; null = none was asked for
	LoopClosed     bool           `json:"loop_closed"`
	Reasons        []string       `json:"reasons"` // why the loop did not close
	StateHash      string         `json:"state_hash"`
	Wall           Wall           `json:"wall_clock"`
}

// Wall is what depends on the machine.
type Wall struct {
	Seconds float64 `json:"seconds"`
	Page    string  `json:"page,omitempty"`
	Dir     string  `json:"dir,omitempty"`
}

// ECE is the calibration error at one moment, as the model gave its confidences and as calibrated.
type ECE struct {
	At         record.Time `json:"at"`
	Raw        Metric      `json:"raw"`
	Calibrated Metric      `json:"calibrated"`
}

// Metric is an ECE with what belongs to it.
type Metric struct {
	N        int64    `json:"n"`
	ECE      *float64 `json:"ece"`
	Null     *float64 `json:"ece_null"`
	Lo       *float64 `json:"ece_lo"`
	Hi       *float64 `json:"ece_hi"`
	Accuracy *float64 `json:"accuracy"`
}

// Calibrator is a refit decision.
type Calibrator struct {
	Revision      int             `json:"revision"`
	Published     bool            `json:"published"`
	Temperature   float64         `json:"temperature"` // of the candidate
	EffectiveFrom record.Time     `json:"effective_from"`
	Reason        string          `json:"reason"`
	Outcome       string          `json:"outcome"`
	Evidence      record.Evidence `json:"evidence"`
}

// halfShare is how much of the raw ECE the calibrator may leave for the loop to count as closed.
const halfShare = 0.5

// result judges the story.
func (s *story) result() (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Result{Seed: s.plan.Seed, Rows: s.plan.Rows, Labelled: s.labelled, Start: startTime.Format(time.RFC3339),
		ShiftAt: s.plan.Shift.Format(time.RFC3339), ShiftRow: s.plan.shiftRow, LabelledBefore: s.atShift,
		Alerts: s.alerts, Reasons: []string{}}
	if s.alarm != nil {
		r.AlarmAt, r.AlarmAfterRows = s.alarm.At, &s.alarmRows
		after := s.alarm.At.Std().Sub(s.plan.Shift).Seconds()
		r.AlarmAfter = &after
	}
	if s.resolved != nil {
		r.ResolvedAt = s.resolved.At
	}
	if s.before != nil {
		r.ECEBeforeShift = &ECE{s.before.At, Metrics(&s.before.Raw), Metrics(&s.before.Calibrated)}
	}
	if s.after != nil {
		r.ECEAfterShift = &ECE{s.after.At, Metrics(&s.after.Raw), Metrics(&s.after.Calibrated)}
	}
	if s.refitted != nil {
		f := s.refitted.InForce
		r.ECEAfterRefit = &ECE{s.refitted.At, Metrics(&f.Raw), Metrics(&f.Calibrated)}
	}
	for _, c := range s.calibrators {
		r.Calibrators = append(r.Calibrators, Calibrator{c.Revision, c.Published, c.Evidence.Temperature,
			c.EffectiveFrom, c.Reason, c.Outcome, c.Evidence})
	}
	r.Finetune = s.finetune()
	r.Reasons = append(r.Reasons, s.open()...)
	r.LoopClosed = len(r.Reasons) == 0
	return r, nil
}

// open lists what is missing for the loop to be closed.
func (s *story) open() (why []string) {
	missing := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if s.labelled != s.plan.Rows {
		missing("%d of %d rows got their label", s.labelled, s.plan.Rows)
	}
	switch {
	case s.alarm == nil:
		missing("no alarm after the shift")
	case s.alarmRows <= 0:
		missing("the alarm came at %s, not after the shift at %s", s.alarm.At, s.plan.Shift.Format(time.RFC3339))
	case s.refit == nil:
		missing("no calibrator was published after the alarm")
	case s.refitted == nil:
		missing("no labelled rows came after the refit")
	default:
		f := s.refitted.InForce
		if f.Raw.ECE == nil || f.Calibrated.ECE == nil || !(*f.Calibrated.ECE < halfShare**f.Raw.ECE) {
			missing("after the refit the calibrated ECE is %s, not below half of the raw one, %s",
				percent(f.Calibrated.ECE), percent(f.Raw.ECE))
		}
	}
	switch {
	case s.request == nil:
		missing("no new head was asked for")
	case s.verdict == nil:
		missing("the new head has not been judged")
	case s.verdict.State != record.ShadowReady:
		missing("the new head is %s: %s", s.verdict.State, s.verdict.Why)
	}
	return why
}

// Metrics takes from a snapshot what the demo prints.
func Metrics(m *record.Metrics) Metric {
	return Metric{m.N, m.ECE, m.ECENull, m.ECELo, m.ECEHi, m.Accuracy}
}
