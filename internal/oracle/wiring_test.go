package oracle_test

// The only file of this package that knows the program's packages. It follows them when they move.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/output"
)

// wiring builds tasks from a configuration file's text, as `plumbline run` does.
type wiring struct {
	t          testing.TB
	cfg        config.Config
	log        *slog.Logger
	shards     int
	partitions int // of panes
	published  *operators.Published
	heads      *operators.Heads
	fits       *operators.FitPool
	files      map[string][]byte // that checkpoints refer to
}

func newWiring(t testing.TB, yaml string, shards, partitions int) *wiring {
	t.Helper()
	cfg, err := config.Parse([]byte(yaml), "oracle.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	return &wiring{t: t, cfg: cfg, log: slog.New(slog.NewTextHandler(io.Discard, nil)), shards: shards, partitions: partitions,
		published: operators.NewPublished(), heads: operators.NewHeads(cfg.Heads.Max), fits: operators.NewFitPool(1),
		files: map[string][]byte{}}
}

// partitionOf is where a key goes on a topic of so many partitions.
func partitionOf(key string, partitions int) int {
	return int(pipeline.PartitionOf([]byte(key), partitions))
}

// inputs is 1 where labels travel with the predictions.
func (w *wiring) inputs() int {
	if w.cfg.Topics.Labels == "" {
		return 1
	}
	return 2
}

func (w *wiring) acc() acc.Config {
	c := &w.cfg
	return acc.Config{Bins: c.Stats.Bins, SoftBins: c.Stats.SoftBins, SoftTemperature: c.Stats.SoftTemperature,
		SampleRows: c.Sample.RowsPerCell, SampleBytes: c.Sample.BytesPerCell, SampleSeed: 0x706c756d62}
}

// shard is one shard task.
type shard struct {
	w *wiring
	s *pipeline.Shard
}

func (w *wiring) newShard(id int) *shard {
	c := &w.cfg
	pane, columns := int64(c.EventTime.Pane), c.Slices.Columns
	counts := pipeline.NewCounts()
	out, outbox := pipeline.NewOut(counts), pipeline.NewOutbox(id, w.shards, pane, w.partitions)
	classes := map[string]int{}
	for _, m := range c.Models {
		classes[m.Name] = m.Classes
	}
	join := operators.JoinConfig{Wait: int64(c.Join.Wait), MaxRows: c.Join.MaxRows, Slices: columns, Remember: c.Join.Remember,
		MemoryBytes: c.Join.MemoryBytes, Dir: w.t.TempDir(), Name: fmt.Sprintf("shard-%05d", id), Log: w.log}
	byClass := operators.ClassesNone
	if c.Unlabelled.Enabled {
		byClass = c.Unlabelled.Classes
	}
	stages := []pipeline.Stage{{Name: "validate", Operator: operators.NewValidate(operators.ValidateConfig{Classes: classes,
		MaxAhead: int64(c.EventTime.MaxAhead), NeedID: w.inputs() == 2}, out, counts)},
		{Name: "join", Operator: operators.NewJoin(join, out, counts)}}
	if c.Calibrated.Enabled {
		stages = append(stages, pipeline.Stage{Name: "apply", Operator: operators.NewApply(w.published, c.Calibrated.Columns == "top1", out)})
	}
	if c.Heads.Shadow {
		stages = append(stages, pipeline.Stage{Name: "shadow", Operator: operators.NewShadow(operators.ShadowConfig{Pane: pane,
			Wait: int64(c.Join.Wait), MemoryBytes: c.Heads.MemoryBytes}, w.heads, counts, w.log)})
	}
	stages = append(stages, pipeline.Stage{Name: "stats", Operator: operators.NewStats(operators.StatsConfig{Acc: w.acc(), Pane: pane,
		Slices: columns, MaxKeys: c.Slices.MaxKeys, Classes: byClass}, outbox, counts)})
	wm := pipeline.NewWatermark(w.inputs(), int64(c.EventTime.AllowedLateness))
	for in := range w.inputs() {
		wm.Leave(pipeline.Input(in))
	}
	return &shard{w, pipeline.NewShard(pipeline.ShardSpec{ID: id, Inputs: w.inputs(), PaneLength: pane, Watermark: wm,
		Decoder: arrowio.NewDecoder(arrowio.Options{Slices: columns, MaxMessageBytes: c.Kafka.MessageMax}),
		Stages:  stages, Outbox: outbox, Out: out, Counts: counts, Log: w.log})}
}

// next is the first offset of an input that the shard has not taken.
func (s *shard) next(input int) int { return int(max(s.s.Next()[pipeline.Input(input)], 0)) }

func (s *shard) take(r record) {
	s.w.must(s.s.Take(context.Background(), r.pipeline()))
}

// out returns the dead letters and calibrated rows since the last save, and the panes that were not written yet.
func (s *shard) out() (before, panes []message) {
	return s.w.messages(s.s.Before()), s.w.messages(s.s.After())
}

// written tells the shard that what out returned has been written.
func (s *shard) written() { s.s.Written() }

func (s *shard) close() { s.w.must(s.s.Close()) }

// save returns a checkpoint.
func (s *shard) save() []byte {
	c, err := pipeline.EncodeCheckpoint(s.s.Sections())
	s.w.must(err)
	for _, f := range c.Files {
		if s.w.files[f.Name] == nil {
			s.w.files[f.Name], err = os.ReadFile(f.Path)
			s.w.must(err)
		}
	}
	return c.Data
}

func (s *shard) restore(checkpoint []byte) {
	s.w.must(pipeline.RestoreCheckpoint(checkpoint, s.s.Sections(), func(name, path string) error {
		return os.WriteFile(path, s.w.files[name], 0o600)
	}))
}

// model is one model task.
type model struct {
	w *wiring
	m *operators.ModelTask
}

func (w *wiring) newModel(partition int) *model {
	c := &w.cfg
	mc := operators.ModelConfig{Pane: int64(c.EventTime.Pane), Acc: w.acc(), Bins: c.Stats.Bins, ExtraBins: c.Stats.ExtraBins,
		CDFNu: c.Stats.CDFNu, Resamples: c.Stats.Resamples, SampleRows: c.Sample.Rows,
		FinalAfter: int64(c.Join.Wait + c.EventTime.AllowedLateness), Hold: int64(c.Alarm.Hold), Fits: w.fits,
		Slices: operators.SliceSpec{Columns: c.Slices.Columns, Max: c.Slices.MaxKeys, HalfLife: int64(c.Slices.HalfLife)}}
	if f := c.EventTime.ForgetAfter; f > 0 {
		mc.ForgetAfter = int64(max(f, c.Join.Wait+c.EventTime.AllowedLateness+c.EventTime.Pane))
	}
	for _, v := range c.Windows {
		mc.Windows = append(mc.Windows, operators.WindowSpec{Name: v.Name, Kind: v.Kind, Size: int64(v.Size), Slide: int64(v.Slide),
			Rows: v.Rows, Every: v.Every})
	}
	if u := c.Unlabelled; u.Enabled {
		mc.Unlabelled = &operators.UnlabelledSpec{Reference: u.Reference, ReferenceRows: u.ReferenceRows, Alpha: u.Alpha, Slices: u.Slices}
	}
	mc.Alarm, mc.Rules, mc.Refit = alarmSpec(c), ruleSpecs(c), refitSpec(c)
	t, h := c.Trigger, c.Heads
	mc.Trigger = operators.TriggerSpec{Enabled: t.Enabled, Recipe: t.Recipe, Rows: t.Rows, MinRows: t.MinRows,
		ReferenceRows: t.ReferenceRows, MaxECE: t.MaxECE, MaxAccDrop: t.MaxAccDrop, MaxAURCRise: t.MaxAURCRise, Z: t.Z,
		For: int64(t.For), DataRows: t.DataRows, Cooldown: int64(t.Cooldown), Budget: t.Budget,
		BudgetPeriod: int64(t.BudgetPeriod), ShadowAfter: int64(t.ShadowAfter), Deadline: int64(t.Deadline)}
	mc.Judge = operators.JudgeSpec{Enabled: h.Shadow, Alpha: h.Alpha, NLLBound: h.NLLBound, MinRows: h.MinRows, MaxRows: h.MaxRows,
		MaxECERise: h.MaxECERise, MaxAccDrop: h.MaxAccDrop, MaxAURCRis: h.MaxAURCRise, Watch: int64(h.Watch)}
	return &model{w, operators.NewModelTask(mc, partition, pipeline.NewCounts(), w.log)}
}

func alarmSpec(c *config.Config) *operators.AlarmSpec {
	a := &c.Alarm
	if !a.Enabled {
		return nil
	}
	s := &operators.AlarmSpec{Name: "calibration", Severity: a.Severity, Signals: a.Signals, Bins: a.Bins, EpsilonECE: a.EpsilonECE,
		EpsilonBin: a.EpsilonBin, EpsilonAccuracy: a.EpsilonAccuracy, AccuracySeverity: a.FallSeverity,
		Alpha: float64(c.EventTime.Pane) / float64(a.FalseAlarmEvery), MaxWeight: a.MaxWeight, Matured: int64(a.Matured),
		ReferenceRows: a.ReferenceRows, Slack: a.Slack, Slices: a.Slices, FDR: a.FDR, ClearRows: a.ClearRows,
		ClearFor: int64(a.ClearFor), QuietRows: a.QuietRows}
	if a.Reference != "none" {
		s.Reference = a.Reference
	}
	return s
}

func ruleSpecs(c *config.Config) (out []operators.RuleSpec) {
	for _, r := range c.Rules {
		age := r.Age
		if age == 0 {
			age = c.Join.Wait
		}
		out = append(out, operators.RuleSpec{Name: r.Name, Signal: r.Signal, Severity: r.Severity, Rows: r.Rows, MinRows: r.MinRows,
			WarmupRows: r.WarmupRows, Fire: r.Fire, Clear: r.Clear, For: int64(r.For), ClearFor: int64(r.ClearFor), Slices: r.Slices,
			Kind: r.Kind, Measure: r.Measure, Score: r.Score, Reference: r.Reference, ReferenceRows: r.ReferenceRows, Alpha: r.Alpha,
			Below: r.Side == "below", Interval: r.Interval, Age: int64(age)})
	}
	return out
}

func refitSpec(c *config.Config) operators.RefitSpec {
	f := c.Refit
	s := operators.RefitSpec{Method: f.Method, MaxBytes: operators.MaxCalibratorBytes(c.Kafka.MessageMax), Period: int64(f.Period),
		Cooldown: int64(f.Cooldown), OnAlarm: f.OnAlarm, FreshRows: f.FreshRows, MinRows: f.MinRows, MaxRows: f.MaxRows,
		TestShare: f.TestShare, Delay: f.Delay, Alpha: f.Alpha, ValidationRows: f.ValidationRows,
		ValidationFor: int64(f.ValidationFor), MinNLLGain: f.MinNLLGain, MaxECERise: f.MaxECERise, MaxAccDr: f.MaxAccDrop,
		ShadowFor: int64(f.ShadowFor), CanaryShare: f.CanaryShare, CanaryFor: int64(f.CanaryFor), Online: f.Online, Build: "oracle"}
	if f.LabelShift != "off" {
		s.LabelShift = f.LabelShift
	}
	if f.RollbackPanes > 0 {
		s.RollbackAlpha = 1 / float64(f.RollbackPanes)
	}
	return s
}

func (m *model) next() int { return int(max(m.m.Next()[pipeline.Panes], 0)) }

func (m *model) take(r record) { m.w.must(m.m.Take(context.Background(), r.pipeline())) }

// settle waits for the fits that are due.
func (m *model) settle() { m.w.must(m.m.Settle(context.Background())) }

// out returns the outputs since the last save, and forgets them.
func (m *model) out() []message {
	ms := m.w.messages(m.m.Before())
	m.m.Written()
	return ms
}

func (m *model) save() []byte {
	c, err := pipeline.EncodeCheckpoint(m.m.Sections())
	m.w.must(err)
	return c.Data
}

func (m *model) restore(checkpoint []byte) {
	m.w.must(pipeline.RestoreCheckpoint(checkpoint, m.m.Sections(), nil))
}

// show gives an output of a model task to what shards apply: calibrators and canaries come into force, heads end.
func (w *wiring) show(m message) {
	switch pipeline.Stream(m.stream) {
	case pipeline.StreamCalibrators, pipeline.StreamDecisions:
		var c output.Calibrator
		w.must(json.Unmarshal(m.value, &c))
		canary := c.Stage == output.StageCanary
		if !c.Published && !canary {
			return
		}
		p := operators.Publication{Revision: c.Revision, From: w.nanos(c.EffectiveFrom), Encoded: c.Calibrator, Canary: canary, Share: c.Share}
		if canary && c.Share == 0 {
			p.Encoded = nil
		}
		w.must(w.published.Put(arrowio.ModelKey{Model: c.Model, Version: c.Version}, p))
	case pipeline.StreamHeads:
		var v output.Verdict
		w.must(json.Unmarshal(m.value, &v))
		if v.Kind == output.HeadVerdict && v.EffectiveFrom != "" {
			w.heads.Stop(arrowio.ModelKey{Model: v.Model, Version: v.Version}, v.Number, w.nanos(v.EffectiveFrom))
		}
	}
}

func (w *wiring) nanos(s string) int64 {
	t, err := time.Parse(time.RFC3339Nano, s)
	w.must(err)
	return t.UnixNano()
}

// putHead has the shards run a head that turns its features by so many classes and scales them.
func (w *wiring) putHead(name, version string, number int, from int64, h head) {
	w.must(w.heads.Put(arrowio.ModelKey{Model: name, Version: version}, number, from, h))
}

// head implements operators.HeadModel.
type head struct {
	k, turn int
	scale   float32
}

func (h head) Features() int { return h.k }
func (h head) Classes() int  { return h.k }
func (h head) Logits(z, x []float32) {
	for i := range z {
		z[i] = h.scale * x[(i+h.turn)%h.k]
	}
}

// record is one record of an input.
type record struct {
	input   int // 0 predictions, 1 labels, 2 panes
	offset  int
	time    int64
	key     string
	value   []byte
	headers map[string]string
	idle    bool
}

func (r *record) pipeline() pipeline.Record {
	in := pipeline.Input(r.input)
	out := pipeline.Record{Input: in, Topic: in.String(), Offset: int64(r.offset), Time: r.time, Key: []byte(r.key), Value: r.value, Idle: r.idle}
	for k, v := range r.headers {
		out.Headers = append(out.Headers, pipeline.Header{Key: k, Value: []byte(v)})
	}
	return out
}

// watermarkRecord promises that no row before a time follows.
func watermarkRecord(input int, at int64) record {
	return record{input: input, time: at, headers: map[string]string{pipeline.WatermarkHeader: strconv.FormatInt(at, 10)}}
}

// message is one output.
type message struct {
	stream, key string
	partition   int
	time        int64
	value       []byte
	headers     [][2]string
}

func (w *wiring) messages(ms []pipeline.Message) (out []message) {
	for _, m := range ms {
		o := message{stream: string(m.Stream), key: string(m.Key), partition: int(m.Partition), time: m.Time, value: bytes.Clone(m.Value)}
		for _, h := range m.Headers {
			o.headers = append(o.headers, [2]string{h.Key, string(h.Value)})
		}
		out = append(out, o)
	}
	return out
}

func (w *wiring) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// encodePredictions is the value of a record of the predictions topic.
func (w *wiring) encodePredictions(rows []row, inline bool) []byte {
	c := arrowio.Columns{Model: rows[0].model, Version: rows[0].version, K: len(rows[0].scores)}
	for i := range rows {
		r := &rows[i]
		c.IDs, c.TS = append(c.IDs, r.id), append(c.TS, r.ts)
		if r.probs {
			c.Probs = append(c.Probs, r.scores...)
		} else {
			c.Logits = append(c.Logits, r.scores...)
		}
		if inline {
			c.Label = append(c.Label, r.label)
		}
		c.Features, c.D = append(c.Features, r.features...), len(r.features)
		if r.weighs {
			c.Weight, c.Served = append(c.Weight, r.weight), append(c.Served, r.served)
		}
	}
	for s, name := range []string{"region", "tenant"} {
		if rows[0].slices[s] != absent {
			col := arrowio.StringColumn{Name: name}
			for i := range rows {
				col.Values = append(col.Values, rows[i].slices[s])
			}
			c.Slices = append(c.Slices, col)
		}
	}
	b, err := arrowio.EncodePredictions(c)
	w.must(err)
	return b
}

// encodeLabels is the value of a record of the labels topic.
func (w *wiring) encodeLabels(rows []row) []byte {
	var ids []string
	var ts []int64
	var label []int32
	for _, r := range rows {
		ids, ts, label = append(ids, r.id), append(ts, r.labelTS), append(label, r.label)
	}
	b, err := arrowio.EncodeLabels(rows[0].model, rows[0].version, ids, ts, label)
	w.must(err)
	return b
}

// order is what a person decides about the calibrators of a model version; temperature 0: nothing is published.
type order struct {
	number                 byte
	action, model, version string
	revision               int
	temperature            float64
}

func (w *wiring) encodeOrder(o order) []byte {
	p := pipeline.Order{ID: [16]byte{o.number}, Action: o.action, Model: o.model, Version: o.version, Revision: o.revision,
		By: "ann", Why: "because of " + o.action}
	if o.temperature > 0 {
		c, err := calibrator.NewTemperature(o.temperature)
		w.must(err)
		p.Calibrator, err = calibrator.Encode(c)
		w.must(err)
	}
	return pipeline.AppendOrder(nil, &p)
}

// describePane says all of a pane message but its accumulators, whose bytes are cells.
func (w *wiring) describePane(value []byte) (text string, cells [][]byte) {
	m, err := pipeline.DecodePane(value)
	w.must(err)
	var b strings.Builder
	fmt.Fprintln(&b, m.Shard, m.Of, m.Seq, m.Length, m.Punctuation, m.Closed, m.Idle, m.Model, m.LabelPane, m.Late)
	for _, c := range m.Cells {
		fmt.Fprintf(&b, "%q %q %d %d\n", c.Version, c.Slice, c.K, c.PredictionPane)
		cells = append(cells, c.Set)
	}
	return b.String(), cells
}

// describeCalibrated says what a message of the calibrated stream holds.
func (w *wiring) describeCalibrated(value []byte) string {
	r, err := ipc.NewReader(bytes.NewReader(value))
	w.must(err)
	defer r.Release()
	var b strings.Builder
	fmt.Fprintln(&b, r.Schema())
	for r.Next() {
		for _, c := range r.Record().Columns() {
			fmt.Fprintln(&b, c)
		}
	}
	w.must(r.Err())
	return b.String()
}
