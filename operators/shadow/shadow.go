package shadow

import (
	"context"
	"log/slog"
	"math"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Counts of the shadow stage, in heads and rows.
const (
	CountShadowRows    = "shadow_rows"    // predictions that a shadow made
	CountShadowJoined  = "shadow_joined"  // of them, that got their label
	CountShadowExpired = "shadow_expired" // whose label did not come within join.wait
	CountShadowEvicted = "shadow_evicted" // that heads.memory_bytes pushed out
	CountShadowNone    = "shadow_none"    // rows without features, or with another D or K than the head's
)

// Options configures the operator.
type Options struct {
	proving.Config
	Pane  int64
	Wait  int64  // as the join's
	Heads *Heads // shared by all shards of the process
}

// Operator runs heads on the features that flow by. Each prediction of a version with a running head is followed by one
// of the shadow version, with logits = head(features), and each labelled row by the shadow's: the join that matters is
// that of the serving version, so both versions have the same rows, labels and label times. It comes after Join and
// before Stats. Shadow rows have no slices, and are in none of the counts of rows.
//
// A head runs on rows whose event time is in [from, until). Where a shard sees a head only after rows from `from` on
// have passed, the head begins in this shard with the first whole pane that no row has come for: each shadow row is
// counted as predicted before it is as labelled, and what is in the checkpoint says from when. So a replay that has all
// heads from the start gives the same as the live run where every head was there in time, and only there.
type Operator struct {
	cfg    Options
	counts *pipeline.Counts
	log    *slog.Logger

	changes int64 // of heads, when begun was brought up to date
	newest  pipeline.Time
	begun   map[beganKey]pipeline.Time // event time from which a head runs here
	wait    waitingRows

	builds map[beganKey]*builder
	order  []*builder
	z      []float32
}

// beganKey names a head.
type beganKey struct {
	arrowio.ModelKey
	number int
}

// New returns the operator.
func New(cfg Options, h pipeline.Host) *Operator {
	return &Operator{
		cfg:     cfg,
		counts:  h.Counts,
		log:     h.Log,
		changes: -1,
		newest:  math.MinInt64,
		begun:   map[beganKey]pipeline.Time{},
		wait:    newWaitingRows(),
		builds:  map[beganKey]*builder{},
	}
}

// Stage is the operator as a shard registers it.
func (s *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "shadow", Operator: s, Version: 1, Take: s.take}
}

// Process implements pipeline.Operator: batches pass on unchanged, those of shadows follow.
func (s *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	rejects, err := emit(b)
	if err != nil || b.Kind == arrowio.Labels {
		return rejects, err
	}
	s.begin()
	for i := range b.N {
		if !b.Good(i) {
			continue
		}
		if b.Kind == arrowio.Predictions {
			s.predict(b, i)
		} else {
			s.label(b, i)
		}
	}
	return rejects, s.flush(emit)
}

// begin notes from when heads that are new in the table run here.
func (s *Operator) begin() {
	n := s.cfg.Heads.changes.Load()
	if n == s.changes {
		return
	}
	s.changes = n
	for _, h := range s.cfg.Heads.all() {
		key := beganKey{h.key, h.number}
		if _, known := s.begun[key]; known || h.model == nil {
			continue
		}
		from := h.from
		if s.newest >= from {
			from = (pipeline.PaneIndex(s.newest, s.cfg.Pane) + 1) * s.cfg.Pane
			s.log.Warn("a head came after rows that it was to run on", "model", h.key.Model, "version", h.version(),
				"from", pipeline.Format(h.from), "begins", pipeline.Format(from))
		}
		s.begun[key] = from
	}
}

// predict runs the heads of row i.
func (s *Operator) predict(b *arrowio.Batch, i int) {
	s.newest = max(s.newest, b.TS[i])
	m, _ := b.ModelOf(i)
	list := s.cfg.Heads.of(m)
	running := 0
	for n := len(list) - 1; n >= 0 && running < s.cfg.Heads.most; n-- {
		h := list[n]
		from, begun := s.begun[beganKey{m, h.number}]
		if !begun || h.model == nil || b.TS[i] < from || b.TS[i] >= h.until {
			continue
		}
		running++
		if !fitsHead(b, i, h.model) {
			s.counts.Add(CountShadowNone, 1)
			continue
		}
		z := s.grow(b.K)
		h.model.Logits(z, b.Features[i*b.D:(i+1)*b.D])
		if !finite(z) {
			s.counts.Add(CountShadowNone, 1)
			continue
		}
		s.counts.Add(CountShadowRows, 1)
		w := float32(1)
		if b.Weight != nil {
			w = b.Weight[i]
		}
		s.builderOf(h.key, h.number, b, arrowio.Predictions).add(b, i, z, w)
		if labelOf(b, i) >= 0 {
			s.counts.Add(CountShadowJoined, 1)
		} else if b.IDs != nil {
			s.wait.add(waitingID{b.IDs[i], beganKey{m, h.number}}, b.TS[i], w, z)
			s.counts.Add(CountShadowEvicted, s.wait.shrink(s.cfg.MemoryBytes))
		}
	}
}

// label follows row i of a labelled batch with those of its shadows.
func (s *Operator) label(b *arrowio.Batch, i int) {
	if b.IDs == nil || len(s.wait.index) == 0 {
		return
	}
	m, _ := b.ModelOf(i)
	for _, h := range s.cfg.Heads.of(m) {
		row, ok := s.wait.take(waitingID{b.IDs[i], beganKey{m, h.number}})
		if !ok || len(row.z) != b.K {
			continue
		}
		s.counts.Add(CountShadowJoined, 1)
		s.builderOf(h.key, h.number, b, arrowio.Labelled).add(b, i, row.z, row.w)
	}
}

func (s *Operator) grow(k int) []float32 {
	if cap(s.z) < k {
		s.z = make([]float32, k)
	}
	return s.z[:k]
}

// fitsHead reports whether row i has features that the head takes, and as many classes.
func fitsHead(b *arrowio.Batch, i int, h HeadModel) bool {
	if b.D == 0 || b.D != h.Features() || b.K != h.Classes() {
		return false
	}
	return finite(b.Features[i*b.D : (i+1)*b.D])
}

func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// Advance implements pipeline.Operator: scores that have waited too long go.
func (s *Operator) Advance(_ context.Context, wm pipeline.Time, _ pipeline.Emit) error {
	s.counts.Add(CountShadowExpired, s.wait.expire(wm, s.cfg.Wait))
	return nil
}

// builder gathers the rows of a head.
type builder struct{ b arrowio.Batch }

func (s *Operator) builderOf(m arrowio.ModelKey, number int, b *arrowio.Batch, kind arrowio.Kind) *builder {
	key := beganKey{m, number}
	g := s.builds[key]
	if g == nil {
		g = &builder{}
		s.builds[key] = g
	}
	if g.b.N == 0 {
		c := &g.b
		*c = arrowio.Batch{Origin: b.Origin, Kind: kind, K: b.K, Shadow: true,
			Models: []arrowio.ModelKey{{Model: m.Model, Version: record.ShadowVersion(m.Version, number)}},
			IDs:    c.IDs[:0], TS: c.TS[:0], Scores: c.Scores[:0], Label: c.Label[:0], LabelTS: c.LabelTS[:0],
			Weight: c.Weight[:0]}
		s.order = append(s.order, g)
	}
	return g
}

// labelOf is the label of row i, -1 where it is not yet known.
func labelOf(b *arrowio.Batch, i int) int32 {
	if b.Label == nil {
		return -1
	}
	return b.Label[i]
}

// add adds the shadow of row i with its scores and weight.
func (g *builder) add(b *arrowio.Batch, i int, z []float32, w float32) {
	c := &g.b
	c.N++
	c.IDs = append(c.IDs, b.RowID(i))
	c.TS = append(c.TS, b.TS[i])
	c.Scores = append(c.Scores, z...)
	c.Label = append(c.Label, labelOf(b, i))
	if b.LabelTS != nil {
		c.LabelTS = append(c.LabelTS, b.LabelTS[i])
	} else {
		c.LabelTS = append(c.LabelTS, b.TS[i])
	}
	c.Weight = append(c.Weight, w)
}

// flush emits the gathered batches, in the order of their first rows.
func (s *Operator) flush(emit pipeline.Emit) error {
	for _, g := range s.order {
		if _, err := emit(&g.b); err != nil {
			return err
		}
		g.b.N = 0
	}
	s.order = s.order[:0]
	return nil
}
