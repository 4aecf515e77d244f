package oracle_test

// The only file of this package that knows the program's packages. It follows them when they move.

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	opmodel "github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
	published "github.com/plumbline/plumbline/pipeline/record"
)

// wiring builds tasks from a configuration file's text, as `plumbline run` does.
type wiring struct {
	t          testing.TB
	e          *engine.Engine
	shards     int
	partitions int               // of panes
	files      map[string][]byte // that checkpoints refer to
}

func newWiring(t testing.TB, yaml string, shards, partitions int) *wiring {
	t.Helper()
	cfg, err := config.Parse([]byte(yaml), "oracle.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, yaml)
	}
	cfg.Join.Dir = t.TempDir()
	return &wiring{t: t, e: engine.New(cfg, slog.New(slog.DiscardHandler)), shards: shards, partitions: partitions,
		files: map[string][]byte{}}
}

// partitionOf is where a key goes on a topic of so many partitions.
func partitionOf(key string, partitions int) int {
	return murmur.PartitionOf([]byte(key), partitions)
}

// inputs is 1 where labels travel with the predictions.
func (w *wiring) inputs() int {
	if w.e.Config.Topics.Labels == "" {
		return 1
	}
	return 2
}

// shard is one shard task.
type shard struct {
	w *wiring
	s *pipeline.Shard
}

func (w *wiring) newShard(id int) *shard {
	s, err := w.e.NewShard(id, w.shards, w.partitions)
	w.must(err)
	return &shard{w, s}
}

// next is the first offset of an input that the shard has not taken.
func (s *shard) next(input int) int { return int(max(s.s.Next()[pipeline.Input(input)], 0)) }

func (s *shard) take(r record) {
	s.w.must(batchtest.Lend(r.pipeline(), func(r pipeline.Record) error { return s.s.Take(context.Background(), r) }))
}

// out returns the dead letters and calibrated rows since the last save, and the panes that were not written yet.
func (s *shard) out() (before, panes []message) {
	d := s.s.Decided()
	return s.w.messages(d.Before), s.w.messages(d.After)
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
	m *opmodel.Task
}

func (w *wiring) newModel(partition int) *model {
	return &model{w, w.e.NewModelTask(partition, pipeline.NewCounts())}
}

func (m *model) next() int { return int(max(m.m.Next()[pipeline.Panes], 0)) }

func (m *model) take(r record) { m.w.must(m.m.Take(context.Background(), r.pipeline())) }

// settle waits for the fits that are due.
func (m *model) settle() { m.w.must(m.m.Settle(context.Background())) }

// out returns the outputs since the last save, and forgets them.
func (m *model) out() []message {
	ms := m.w.messages(m.m.Decided().Before)
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
	var rec any
	var err error
	switch pipeline.Stream(m.stream) {
	case pipeline.StreamCalibrators, pipeline.StreamDecisions:
		rec, err = published.Decode[published.Calibrator](m.value)
	case pipeline.StreamTops:
		rec, err = published.Decode[published.TopCorrection](m.value)
	case pipeline.StreamHeads:
		rec, err = published.DecodeHeads(m.value)
	default:
		return
	}
	w.must(err)
	w.e.Show(rec)
}

// putHead has the shards run a head that turns its features by so many classes and scales them.
func (w *wiring) putHead(name, version string, number int, from int64, h head) {
	w.must(w.e.Heads.Put(arrowio.ModelKey{Model: name, Version: version}, number, from, h))
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
	out := pipeline.Record{Input: in, Topic: in.String(), Offset: int64(r.offset), Time: r.time, Key: []byte(r.key),
		Value: r.value, Idle: r.idle}
	for k, v := range r.headers {
		out.Headers = append(out.Headers, pipeline.Header{Key: k, Value: []byte(v)})
	}
	return out
}

// watermarkRecord promises that no row before a time follows.
func watermarkRecord(input int, at int64) record {
	return record{input: input, time: at, headers: map[string]string{pipeline.WatermarkHeader: strconv.FormatInt(at,
		10)}}
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
		o := message{stream: string(m.Stream), key: string(m.Key), partition: int(m.Partition), time: m.Time,
			value: bytes.Clone(m.Value)}
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
	p := pipeline.Order{
		ID:       [16]byte{o.number},
		Action:   o.action,
		Model:    o.model,
		Version:  o.version,
		Revision: o.revision,
		By:       "ann",
		Why:      "because of " + o.action,
	}
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
