package heads

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/service"
)

// Head is one head in `heads list --json` and in GET /api/v1/heads: what all its records say.
type Head struct {
	ID            string `json:"id"`
	Model         string `json:"model"`
	Version       string `json:"version"`
	Number        int    `json:"number"`
	ShadowVersion string `json:"shadow_version"`
	// State is waiting, running, failed, unchanged, cancelled, shadow, ready, rejected, rolled_back or lost.
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
	// Serve says that this is the head to serve.
	Serve bool `json:"serve"`
	// Queue is the place of a job that waits among those that do, from 1. Of one that runs: for how long its trainer
	// has given no sign of life that this process has seen, whether that is longer than trainer.lost_after, and its
	// curve.
	Queue  int             `json:"queue,omitempty"`
	Silent float64         `json:"silent_seconds,omitempty"`
	Lost   bool            `json:"lost,omitempty"`
	Curve  []service.Point `json:"curve,omitempty"`

	Request *record.Finetune `json:"request,omitempty"`
	Job     *record.Job      `json:"job,omitempty"`
	Result  *record.Head     `json:"result,omitempty"`
	Verdict *record.Verdict  `json:"verdict,omitempty"`
	Order   *record.Order    `json:"order,omitempty"`
}

// Served is what to serve of a model version.
type Served struct {
	Model   string `json:"model"`
	Version string `json:"version"`
	Number  int    `json:"number"` // 0 = the head that the model came with
	Serve   string `json:"serve"`  // the shadow version, or the version itself
	Because string `json:"because"`
}

// View is the object of `heads list --json` and of GET /api/v1/heads.
type View struct {
	Heads []Head   `json:"heads"`
	Serve []Served `json:"serve"`
}

// Current merges the records, heads by model, version and number.
func (t *State) Current() View {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := View{Heads: []Head{}, Serve: []Served{}}
	waiting := 0
	for _, j := range t.queue.All() {
		h, ok := t.head(j)
		if !ok {
			continue
		}
		switch h.State {
		case service.StateWaiting:
			waiting++
			h.Queue = waiting
		case service.StateRunning:
			h.Silent, h.Curve = time.Since(j.Seen).Seconds(), j.Curve
		}
		v.Heads = append(v.Heads, h)
	}
	slices.SortFunc(v.Heads, func(a, b Head) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Number, b.Number))
	})
	for from := 0; from < len(v.Heads); {
		to := from
		for to < len(v.Heads) && v.Heads[to].Model == v.Heads[from].Model &&
			v.Heads[to].Version == v.Heads[from].Version {
			to++
		}
		v.Serve = append(v.Serve, t.serve(v.Heads[from:to]))
		from = to
	}
	return v
}

func (t *State) head(j *service.Job) (Head, bool) {
	h := Head{State: j.State(), Result: j.Result}
	switch {
	case j.Request.ID != "":
		r := j.Request
		h.ID, h.Model, h.Version, h.Number, h.ShadowVersion, h.Request, h.Why = r.ID, r.Model, r.Version, r.Number,
			r.ShadowVersion, &r, r.Why
	case j.Result != nil:
		r := j.Result
		h.ID, h.Model, h.Version, h.Number, h.ShadowVersion = r.ID, r.Model, r.Version, r.Number, r.ShadowVersion
	default:
		return h, false
	}
	if j.Attempt > 0 {
		h.Job = &j.Beat
	}
	switch {
	case j.Cancel != nil:
		h.Why = "cancelled by " + j.Cancel.By + ": " + j.Cancel.Why
	case h.State == service.StateWaiting && j.LastError != "": // why it still waits; it need not be the last one
		h.Why = "an attempt failed: " + j.LastError
	}
	if j.Result != nil {
		h.Why = j.Result.Why
		if j.Result.Outcome == record.OutcomeTrained {
			h.State = "shadow"
		}
	}
	if v, ok := t.verdicts[h.ID]; ok {
		h.Verdict, h.State, h.Why = &v, v.State, v.Why
	}
	if o, ok := t.orders[h.ID]; ok {
		h.Order = &o.Order
	}
	return h, true
}

// serve says which of the heads of a version is to be served: the newest that a person pinned, else the newest that is
// ready and that nobody has rolled back, else none of them. It marks that one.
func (t *State) serve(heads []Head) Served {
	out := Served{Model: heads[0].Model, Version: heads[0].Version, Serve: heads[0].Version,
		Because: "no head of it is ready"}
	best, seq := -1, 0
	for i := range heads {
		if o, ok := t.orders[heads[i].ID]; ok && o.Action == record.OrderPin && o.seq > seq && heads[i].Result != nil &&
			heads[i].Result.Outcome == record.OutcomeTrained {
			best, seq, out.Because = i, o.seq, "pinned by "+o.By
		}
	}
	for i := len(heads) - 1; i >= 0 && best < 0; i-- {
		o := t.orders[heads[i].ID]
		if heads[i].State == record.ShadowReady && o.Action != record.OrderRollback {
			best, out.Because = i, heads[i].Why
		}
	}
	if best >= 0 {
		heads[best].Serve = true
		out.Number, out.Serve = heads[best].Number, heads[best].ShadowVersion
	}
	return out
}
