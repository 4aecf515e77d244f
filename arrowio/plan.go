package arrowio

import (
	"container/list"
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// Schema metadata keys.
const (
	MetaModel      = "plumbline.model"
	MetaVersion    = "plumbline.version"
	MetaCalibrator = "plumbline.calibrator"
	MetaCorrection = "plumbline.correction"
	MetaSide       = "plumbline.side"
)

// DefaultVersion is the version of predictions that name none.
const DefaultVersion = "0"

// plan says which field of a schema plays which part. Field indices are -1 where absent.
type plan struct {
	schema                                                  *wire.Schema
	metaBytes                                               int // of the schema message
	want                                                    []bool
	id, ts, label, features, model, version, served, weight int
	scores                                                  int
	form                                                    ScoreForm
	slices                                                  []int // by configured slice column
	metaModel, metaVersion                                  string
	side                                                    Side
}

// ScoreForm is how a message or a file carries its scores.
type ScoreForm struct {
	Column string
	Probs  bool
	Binary bool // one score a row, K = 2
}

// ScoreForms are in order of preference: a message with several of them is read by the first.
var ScoreForms = []ScoreForm{
	{Column: "logits"},
	{Column: "probs", Probs: true},
	{Column: "logit", Binary: true},
	{Column: "prob", Probs: true, Binary: true},
}

func (d *Decoder) parsePlan(m wire.Message, kind Kind) (*plan, error) {
	s, err := wire.ParseSchema(m, wire.Limits{Fields: d.opt.MaxFields, Depth: 16, Text: 1024, Meta: 256})
	if err != nil {
		return nil, err
	}
	p := &plan{schema: s, metaBytes: len(m.Meta), metaModel: s.Meta[MetaModel], metaVersion: s.Meta[MetaVersion]}
	f := planner{p, wire.NewFinder(s)}
	p.id = f.Find("id", "utf8, large_utf8, binary, large_binary, int64 or uint64", (*wire.Field).IsID)
	p.ts = f.Find("ts", "timestamp", (*wire.Field).IsTimestamp)
	p.label = f.findLabel(kind)
	p.model = f.Find("model", "utf8, large_utf8 or a dictionary of them", (*wire.Field).IsText)
	p.version = f.FindOptional("version", "utf8, large_utf8 or a dictionary of them", (*wire.Field).IsText)
	p.features, p.served, p.weight, p.scores = -1, -1, -1, -1
	if kind == Predictions {
		f.findSide()
		p.features = f.FindOptional("features", "a list of float16, float32 or float64", (*wire.Field).IsFloatList)
		p.served = f.FindOptional("served", "a float", (*wire.Field).IsFloat)
		p.weight = f.FindOptional("weight", "a float", (*wire.Field).IsFloat)
		if p.side != Request {
			f.findScores()
		}
		for _, name := range d.opt.Slices {
			p.slices = append(p.slices,
				f.FindOptional(name, "utf8, large_utf8 or a dictionary of them", (*wire.Field).IsText))
		}
	}
	f.check(kind, d.opt)
	if f.Err != nil {
		return nil, f.Err
	}
	p.want = f.Want
	return p, nil
}

type planner struct {
	*plan
	*wire.Finder
}

// findLabel finds the labels, which only predictions may be without.
func (f *planner) findLabel(kind Kind) int {
	if kind == Labels {
		return f.Find("label", "an integer", (*wire.Field).IsInt)
	}
	return f.FindOptional("label", "an integer", (*wire.Field).IsInt)
}

func (f *planner) findScores() {
	for _, form := range ScoreForms {
		allowed, ok := "a list of float16, float32 or float64", (*wire.Field).IsFloatList
		if form.Binary {
			allowed, ok = "a float", (*wire.Field).IsFloat
		}
		if f.scores = f.Find(form.Column, allowed, ok); f.scores >= 0 {
			f.form = form
			return
		}
	}
}

// check refuses a schema that lacks what its kind needs.
func (f *planner) check(kind Kind, o Options) {
	if f.Err != nil {
		return
	}
	fail := func(reason, format string, args ...any) { f.Err = wire.Errorf(reason, format, args...) }
	switch {
	case kind == Labels && f.id < 0:
		fail(wire.NoColumn, "labels without the column id")
	case kind == Labels && f.label < 0:
		fail(wire.NoColumn, "labels without the column label")
	case f.side != Whole && f.id < 0:
		fail(wire.NoColumn, "requests or responses without the column id")
	case kind == Predictions && f.scores < 0 && f.side != Request:
		fail(wire.NoColumn, "predictions without scores: no column logits, probs, logit or prob")
	case kind == Predictions && f.id < 0 && f.label < 0:
		fail(wire.NoColumn, "predictions with neither the column id, to join labels by, nor the column label")
	case kind == Predictions && f.model < 0 && f.metaModel == "":
		fail(wire.NoModel, "no column model and no schema metadata %s", MetaModel)
	case len(f.metaModel) > o.MaxText || len(f.metaVersion) > o.MaxText:
		fail(wire.TooLarge, "metadata %s or %s of more than %d bytes", MetaModel, MetaVersion, o.MaxText)
	case !utf8.ValidString(f.metaModel) || !utf8.ValidString(f.metaVersion):
		fail(wire.BadText, "metadata %s or %s is not UTF-8", MetaModel, MetaVersion)
	}
}

// planCache keeps the plans of the schemas seen, by the bytes of their message, latest use first.
type planCache struct {
	max   int
	bytes int                         // of all entries
	byKey [2]map[string]*list.Element // by kind
	order list.List
}

// maxPlanBytes bounds the memory of the plans kept. Messages of one row that name their model in the metadata have a
// schema for each model version, so there are more plans than one thinks, and small ones.
const maxPlanBytes = 16 << 20

type planEntry struct {
	key  string
	kind Kind
	plan *plan
}

// bytes is about the memory of an entry.
func (e *planEntry) bytes() int {
	const beside = 512
	return beside + 2*len(e.key) + e.plan.schema.Bytes()
}

// planOf parses a schema message, or finds the plan of a byte-identical one.
func (d *Decoder) planOf(m wire.Message, kind Kind) (*plan, error) {
	c := &d.plans
	if m.Header == wire.HeaderSchema && len(m.Body) == 0 {
		if e := c.byKey[kind][string(m.Meta)]; e != nil {
			c.order.MoveToFront(e)
			return e.Value.(planEntry).plan, nil
		}
	}
	p, err := d.parsePlan(m, kind)
	if err != nil {
		return nil, err
	}
	if len(m.Meta) > maxCachedSchema || p.schema.Bytes() > maxCachedSchema {
		return p, nil
	}
	if c.byKey[kind] == nil {
		c.byKey[kind] = make(map[string]*list.Element)
	}
	e := planEntry{key: string(m.Meta), kind: kind, plan: p}
	c.byKey[kind][e.key] = c.order.PushFront(e)
	c.bytes += e.bytes()
	for c.order.Len() > c.max || c.bytes > maxPlanBytes {
		last := c.order.Remove(c.order.Back()).(planEntry)
		c.bytes -= last.bytes()
		delete(c.byKey[last.kind], last.key)
	}
	return p, nil
}

// maxCachedSchema keeps long schemas, which anybody may send, from filling the cache's memory: in bytes of the message,
// and of what it became, since fields that share one table in the message do not when parsed.
const maxCachedSchema = 64 << 10
