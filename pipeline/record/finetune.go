package record

import (
	"encoding/json"
	"strconv"
)

// Finetune asks for a new head of a model version; key model/version on the finetune topic. Like every output of a
// model task it is a function of the panes log: a repeat has the same bytes.
type Finetune struct {
	Schema  int    `json:"schema"` // 1
	ID      string `json:"id"`     // model/shadow_version: one head, one request
	Model   string `json:"model"`
	Version string `json:"version"` // that serves
	// Number counts the requests of the model version from 1; the head that comes of it is ShadowVersion,
	// version+headN.
	Number        int    `json:"number"`
	ShadowVersion string `json:"shadow_version"`
	Reason        string `json:"reason"` // ece | accuracy | aurc
	Why           string `json:"why"`    // in words
	// DecidedAt is the end of the deciding label pane. The head runs as a shadow on rows from ShadowFrom on; where it
	// has not by Deadline, the request has failed. All event times.
	DecidedAt  Time `json:"decided_at"`
	ShadowFrom Time `json:"shadow_from"`
	Deadline   Time `json:"deadline"`
	// Recipe is what to train, as `plumbline train --recipe` names it; Seed the seed of everything random in it.
	Recipe   string           `json:"recipe"`
	Seed     uint64           `json:"seed"`
	Classes  int              `json:"classes"`
	Data     FinetuneData     `json:"data"`
	Evidence FinetuneEvidence `json:"evidence"`
}

// FinetuneData says which rows to train on: those with a prediction time in [From, To) that had their label by then.
type FinetuneData struct {
	From Time `json:"from"`
	To   Time `json:"to"`
	// Rows is how many labelled rows the model task has seen since From: a hint.
	Rows int64 `json:"rows"`
}

// FinetuneEvidence are the numbers on which the trigger decided: of the latest Rows sampled labelled rows, with the
// calibrators in force, and of the Reference rows with which they are compared.
type FinetuneEvidence struct {
	Since             Time     `json:"since"` // end of the first label pane over the bound
	Rows              int64    `json:"rows"`
	Accuracy          float64  `json:"accuracy"`
	ECE               float64  `json:"ece"`
	ECENull           float64  `json:"ece_null"`
	AURC              *float64 `json:"aurc"`
	ReferenceRows     int64    `json:"reference_rows"`
	ReferenceAccuracy float64  `json:"reference_accuracy"`
	ReferenceAURC     *float64 `json:"reference_aurc"`
	// Refit is the newest refit decision at that time; null where there was none.
	Refit json.RawMessage `json:"refit"`
}

// Kinds of records on the heads topic. A head's latest state is what its records say together: see HeadKey.
const (
	HeadTrained = "head"    // a trainer's result
	HeadJob     = "job"     // who works on a request, and how far it is
	HeadVerdict = "verdict" // of the model task, on the shadow's rows
	HeadOrder   = "order"   // of a person: pin, rollback, auto
	HeadCancel  = "cancel"  // of a person: stop the job
)

// HeadKey is the key of a record on the heads topic: model/version+headN/kind, so that compaction keeps the latest of
// every kind; jobs and results have the attempt besides.
func HeadKey(id, kind string) string { return id + "/" + kind }

// Outcomes of a job.
const (
	OutcomeTrained   = "trained"   // there is a head
	OutcomeUnchanged = "unchanged" // none was better than the one that serves, on validation rows
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
)

// Head is a trainer's result. The first one of an ID in the log counts.
type Head struct {
	Schema        int    `json:"schema"` // 1
	Kind          string `json:"kind"`   // head
	ID            string `json:"id"`
	Model         string `json:"model"`
	Version       string `json:"version"`
	Number        int    `json:"number"`
	ShadowVersion string `json:"shadow_version"`
	Attempt       int    `json:"attempt"`
	Trainer       string `json:"trainer"`
	Outcome       string `json:"outcome"` // trained | unchanged | failed | cancelled
	Why           string `json:"why"`
	// EffectiveFrom is the event time from which the head runs as a shadow: the request's shadow_from.
	EffectiveFrom Time `json:"effective_from"`
	Features      int  `json:"features,omitempty"`
	Classes       int  `json:"classes,omitempty"`
	// Weights is the head as a safetensors file; empty where it is larger than trainer.inline_bytes: then it is read
	// from the artefact head.safetensors.
	Weights   []byte     `json:"weights,omitempty"`
	Artefacts []Artefact `json:"artefacts,omitempty"`
	// Evidence is what the trainer says: rows, recipe, scores of the current and the new head on validation rows.
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// Artefact is a file of a result.
type Artefact struct {
	Name   string `json:"name"`
	Path   string `json:"path"` // where the trainer wrote it
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Job is the report of a trainer on a request that it works on. The first record of an attempt claims the request;
// later ones of the same trainer are its heartbeat.
type Job struct {
	Schema  int     `json:"schema"` // 1
	Kind    string  `json:"kind"`   // job
	ID      string  `json:"id"`
	Attempt int     `json:"attempt"` // from 1
	Trainer string  `json:"trainer"`
	State   string  `json:"state"` // claimed | running | failed | stopped
	Step    string  `json:"step,omitempty"`
	Done    float64 `json:"done"` // share of the work
	NLL     float64 `json:"nll,omitempty"`
	// Beat counts the records of the attempt.
	Beat int `json:"beat"`
}

// States of a shadow.
const (
	ShadowRunning  = "running"
	ShadowReady    = "ready"
	ShadowRejected = "rejected"
	ShadowRolled   = "rolled_back"
	ShadowLost     = "lost" // no row of it came by the request's deadline
)

// Verdict is the decision of a model task about a shadow head.
type Verdict struct {
	Schema        int    `json:"schema"` // 1
	Kind          string `json:"kind"`   // verdict
	ID            string `json:"id"`
	Model         string `json:"model"`
	Version       string `json:"version"`
	Number        int    `json:"number"`
	ShadowVersion string `json:"shadow_version"`
	State         string `json:"state"` // ready | rejected | rolled_back | lost
	Why           string `json:"why"`
	DecidedAt     Time   `json:"decided_at"` // end of the deciding label pane
	// EffectiveFrom is the event time from which the shadow runs no more; empty while it does.
	EffectiveFrom Time           `json:"effective_from,omitzero"`
	Evidence      ShadowEvidence `json:"evidence"`
}

// ShadowEvidence compares the serving version, as its calibrator in force makes it, with the shadow, on the same rows.
type ShadowEvidence struct {
	Rows    int64       `json:"rows"`
	From    Time        `json:"from"` // of prediction times
	To      Time        `json:"to"`
	Serving ShadowScore `json:"serving"`
	Shadow  ShadowScore `json:"shadow"`
	// NLLGain is the mean of NLL serving - NLL shadow, each with probabilities floored at e^-Bound, and its standard
	// error.
	NLLGain   float64 `json:"nll_gain"`
	NLLGainSE float64 `json:"nll_gain_se"`
	Bound     float64 `json:"nll_bound"`
	// LogE are the natural logarithms of anytime-valid e-values: against "the shadow is not better", "the shadow is not
	// worse" (both by NLL), and "its accuracy is lower by the margin or more". Alpha is the level of each test.
	LogEBetter   float64 `json:"log_e_better"`
	LogEWorse    float64 `json:"log_e_worse"`
	LogEAccuracy float64 `json:"log_e_accuracy"`
	Alpha        float64 `json:"alpha"`
}

// ShadowScore is one side of the comparison.
type ShadowScore struct {
	Accuracy float64  `json:"accuracy"`
	NLL      float64  `json:"nll"`
	ECE      float64  `json:"ece"`
	ECENull  float64  `json:"ece_null"`
	AURC     *float64 `json:"aurc"`
}

// Actions of an order.
const (
	OrderPin      = "pin"      // serve this head whatever the verdict
	OrderRollback = "rollback" // do not serve this head
	OrderAuto     = "auto"     // as the verdict says
)

// Order is the decision of a person about a head or, with kind cancel, a job. The decisions topic also has refused
// orders, those about calibrators included. Accepted orders about calibrators go to the panes topic, and their result
// is a Calibrator.
type Order struct {
	Schema int    `json:"schema"` // 1
	Kind   string `json:"kind"`   // order | cancel | calibrator
	ID     string `json:"id"`     // of the head; with kind calibrator of the order
	// pin | rollback | auto | cancel; with kind calibrator pin | unpin | publish | rollback
	Action string `json:"action"`
	By     string `json:"by"`
	Why    string `json:"why,omitempty"`
	At     Time   `json:"at"` // wall clock
	// Model, Version and Revision are those that an order of kind calibrator named.
	Model    string `json:"model,omitempty"`
	Version  string `json:"version,omitempty"`
	Revision int    `json:"revision,omitempty"`
	// Refused is why the order was not given; empty where it was.
	Refused string `json:"refused,omitempty"`
}

// CalibratorOrder is the kind of an Order about a calibrator.
const CalibratorOrder = "calibrator"

// About names what an order is about.
func (o *Order) About() string {
	if o.Kind != CalibratorOrder {
		return o.ID
	}
	about := o.Model
	if o.Version != "" {
		about += "/" + o.Version
	}
	if o.Revision > 0 {
		about += " to revision " + strconv.Itoa(o.Revision)
	}
	return about
}
