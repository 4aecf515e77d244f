package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Entry is one entry of the history.
type Entry struct {
	// ID names the record: the first 128 bits of SHA-256 over kind and record, in hexadecimal digits.
	ID      string `json:"id"`
	Kind    string `json:"kind"` // of record.Decision
	Model   string `json:"model"`
	Version string `json:"version"`
	Slice   string `json:"slice,omitempty"`
	// At is event time, of orders about heads the wall clock.
	At record.Time `json:"at"`
	// State is what was decided, in a word: see the States of each kind in docs/http.md.
	State   string `json:"state"`
	Summary string `json:"summary"` // in words
	By      string `json:"by,omitempty"`
	Why     string `json:"why,omitempty"`
	// Record is the record as its topic has it, a head without its weights.
	Record json.RawMessage `json:"record,omitempty"`

	// 1 + offset on the decisions topic, which orders what was decided at one moment; 0 = not from there
	seq int64
	// of the calibrator that the record put in force, or wrote again; of a trained head its number; 0 = none
	revision int64
	head     string // id of the head that the record is about; "" = of none
}

func (e *Entry) rank() position { return position{e.At.UnixNano(), e.seq, e.ID} }

// decisive reports whether an entry may say what is in force: which calibrator, pin, canary or head.
func (e *Entry) decisive() bool {
	switch e.Kind {
	case record.DecisionCalibrator:
		return e.revision > 0 || slices.Contains([]string{record.DecidedPinned, record.DecidedUnpinned,
			record.DecidedCanary, record.DecidedCanaryEnded}, e.State)
	case record.DecisionHead, record.DecisionVerdict, record.DecisionOrder:
		return e.State != record.DecidedRefused
	}
	return false
}

// States of entries whose records have none.
const (
	stateLost    = "lost"
	stateSkipped = "skipped"
)

// Decode returns the entry of a record; ok is false where there is none in it.
type Decode func(r *pipeline.Record) (e Entry, ok bool, err error)

// FromDecisions decodes the decisions topic.
func FromDecisions(r *pipeline.Record) (Entry, bool, error) {
	if len(r.Value) == 0 {
		return Entry{}, false, nil
	}
	var d record.Decision
	if err := json.Unmarshal(r.Value, &d); err != nil {
		return Entry{}, false, fmt.Errorf("decision: %w", err)
	}
	e, ok, err := decode(d.Kind, d.Record, r.Time)
	e.seq = r.Offset + 1
	return e, ok, err
}

// FromTopic decodes a topic whose records are all of a kind.
func FromTopic(kind string) Decode {
	return func(r *pipeline.Record) (Entry, bool, error) {
		if len(r.Value) == 0 {
			return Entry{}, false, nil // a tombstone
		}
		if kind == record.DecisionCalibrator {
			if c, err := record.DecodeCalibrators(r.Value); err == nil {
				if _, ok := c.(*record.TopCorrection); ok {
					return Entry{}, false, nil // no decision
				}
			}
		}
		return decode(kind, r.Value, r.Time)
	}
}

// FromHeads decodes the heads topic.
func FromHeads(r *pipeline.Record) (Entry, bool, error) {
	if len(r.Value) == 0 {
		return Entry{}, false, nil
	}
	var k struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(r.Value, &k); err != nil {
		return Entry{}, false, fmt.Errorf("heads record: %w", err)
	}
	kind, ok := map[string]string{record.HeadTrained: record.DecisionHead, record.HeadVerdict: record.DecisionVerdict,
		record.HeadOrder:  record.DecisionOrder,
		record.HeadCancel: record.DecisionOrder}[k.Kind]
	if !ok {
		return Entry{}, false, nil
	}
	return decode(kind, r.Value, r.Time)
}

// decode makes an entry of a record. Where the record says no time it has that of the log.
func decode(kind string, body []byte, logged pipeline.Time) (Entry, bool, error) {
	fill, ok := fillers[kind]
	if !ok {
		return Entry{}, false, fmt.Errorf("decision of kind %q: not known", kind)
	}
	e := Entry{Kind: kind, Record: body}
	if err := fill(&e); err != nil {
		return Entry{}, false, fmt.Errorf("%s: %w", kind, err)
	}
	if e.Model == "" {
		return Entry{}, false, fmt.Errorf("%s: it names no model", kind)
	}
	if e.At.IsZero() {
		e.At = record.At(logged)
	}
	h := sha256.New()
	h.Write([]byte(kind + "\n"))
	h.Write(e.Record)
	e.ID = hex.EncodeToString(h.Sum(nil)[:16])
	for _, s := range []*string{&e.Model, &e.Version, &e.Slice, &e.State, &e.Summary, &e.By, &e.Why, &e.head} {
		*s = clean(*s)
	}
	e.Model, e.Record = short(e.Model), json.RawMessage(clean(string(e.Record)))
	return e, true, nil
}

// maxModel is the longest model name in bytes that is a column as it is: PostgreSQL's indexes take no more than some
// 2,700.
const maxModel = 1 << 10

// short is the name that a model has in the columns; its record has the whole.
func short(model string) string {
	if len(model) <= maxModel {
		return model
	}
	h := sha256.Sum256([]byte(model))
	return strings.ToValidUTF8(model[:maxModel/2], "") + "…" + hex.EncodeToString(h[:8])
}

// clean makes text that every database takes: PostgreSQL refuses zero bytes and what is not UTF-8.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// fillers take the columns of an entry out of its record.
var fillers = map[string]func(*Entry) error{
	record.DecisionCalibrator: fillCalibrator,
	record.DecisionAlert:      fillAlert,
	record.DecisionRequest:    fillRequest,
	record.DecisionHead:       fillHead,
	record.DecisionVerdict:    fillVerdict,
	record.DecisionOrder:      fillOrder,
	record.DecisionLoss:       fillLoss,
	record.DecisionSkip:       fillSkip,
}

func fillLoss(e *Entry) error {
	var l record.Loss
	if err := json.Unmarshal(e.Record, &l); err != nil {
		return err
	}
	e.Model, e.At, e.State, e.By, e.Why = l.Model, l.Until, stateLost, l.By, l.Why
	if e.At.IsZero() {
		e.At = l.At
	}
	since := "the beginning"
	if !l.Since.IsZero() {
		since = l.Since.String()
	}
	e.Summary = fmt.Sprintf("the state of %s was lost: rows from %s to %s may be missing", l.Task, since, l.Until)
	return nil
}

func fillSkip(e *Entry) error {
	var s record.Skip
	if err := json.Unmarshal(e.Record, &s); err != nil {
		return err
	}
	e.Model, e.At, e.State, e.Why = s.Model, s.At, stateSkipped, s.Why
	e.Summary = fmt.Sprintf("the record at offset %d of topic %s, partition %d, takes no part", s.Offset, s.Topic,
		s.Partition)
	if s.Offsets != "" {
		e.Summary = fmt.Sprintf("the rows of records of topic %s, partition %d, take no part: their timestamps were "+
			"ahead (offsets from %d)", s.Topic, s.Partition, s.Offset)
	}
	return nil
}

func fillCalibrator(e *Entry) error {
	var c record.Calibrator
	if err := json.Unmarshal(e.Record, &c); err != nil {
		return err
	}
	e.Model, e.Version, e.At, e.Summary, e.By, e.Why, e.State = c.Model, c.Version, c.DecidedAt, c.Outcome, c.By, c.Why,
		c.Result()
	if f := &c.Evidence; f.FitDigest != "" {
		e.Summary += fmt.Sprintf("; fitted on %d rows, %s to %s, %s", f.FitRows, f.FitFrom, f.FitTo,
			shortDigest(f.FitDigest))
		if c.Build != "" {
			e.Summary += ", by " + c.Build
		}
	}
	if c.Published && c.Stage != record.StageCanary && len(c.Calibrator) > 0 {
		e.revision = int64(c.Revision)
	}
	return nil
}

// shortDigest is the beginning of a digest; the record has the whole.
func shortDigest(s string) string { return s[:min(len(s), len("sha256:")+12)] }

func fillAlert(e *Entry) error {
	var a record.Alert
	if err := json.Unmarshal(e.Record, &a); err != nil {
		return err
	}
	e.Model, e.Version, e.Slice, e.At, e.State, e.Summary = a.Model, a.Version, a.Slice, a.At, a.State,
		a.Rule+": "+a.Message
	return nil
}

func fillRequest(e *Entry) error {
	var f record.Finetune
	if err := json.Unmarshal(e.Record, &f); err != nil {
		return err
	}
	e.Model, e.Version, e.At, e.State, e.Summary = f.Model, f.Version, f.DecidedAt, "requested",
		f.ShadowVersion+": "+f.Why
	return nil
}

func fillHead(e *Entry) error {
	var h record.Head
	if err := json.Unmarshal(e.Record, &h); err != nil {
		return err
	}
	e.Model, e.Version, e.At, e.State, e.Summary, e.By = h.Model, h.Version, h.EffectiveFrom, h.Outcome,
		h.ShadowVersion+": "+h.Why, h.Trainer
	e.head = h.ID
	if h.Outcome == record.OutcomeTrained {
		e.revision = int64(h.Number)
	}
	if len(h.Weights) == 0 {
		return nil
	}
	h.Weights = nil
	var err error
	e.Record, err = json.Marshal(h)
	return err
}

func fillVerdict(e *Entry) error {
	var v record.Verdict
	if err := json.Unmarshal(e.Record, &v); err != nil {
		return err
	}
	e.Model, e.Version, e.At, e.State, e.Summary = v.Model, v.Version, v.DecidedAt, v.State, v.ShadowVersion+": "+v.Why
	e.head = v.ID
	return nil
}

func fillOrder(e *Entry) error {
	var o record.Order
	if err := json.Unmarshal(e.Record, &o); err != nil {
		return err
	}
	_, e.Model, e.Version = o.Subject()
	e.head = o.ID
	e.At, e.State, e.Summary, e.By, e.Why = o.At, o.Action, o.Action+" of "+o.About(), o.By, o.Why
	if o.Refused != "" {
		e.State = record.DecidedRefused
		e.Summary += ": refused: " + o.Refused
	}
	return nil
}
