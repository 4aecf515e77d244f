package arrowio

import (
	"container/list"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// Schema metadata keys.
const (
	MetaModel      = "plumbline.model"
	MetaVersion    = "plumbline.version"
	MetaCalibrator = "plumbline.calibrator"
)

// DefaultVersion is the version of predictions that name none.
const DefaultVersion = "0"

// plan says which field of a schema plays which part. Field indices are -1 where absent.
type plan struct {
	schema                                                  *wire.Schema
	want                                                    []bool
	id, ts, label, features, model, version, served, weight int
	scores                                                  int
	form                                                    scoreForm
	slices                                                  []int // by configured slice column
	metaModel, metaVersion                                  string
}

// scoreForm is how a message carries its scores.
type scoreForm struct {
	column string
	probs  bool
	binary bool // one score a row, K = 2
}

// scoreForms in order of preference: a message with several of them is read by the first.
var scoreForms = []scoreForm{
	{column: "logits"},
	{column: "probs", probs: true},
	{column: "logit", binary: true},
	{column: "prob", probs: true, binary: true},
}

func (d *Decoder) parsePlan(m wire.Message, kind Kind) (*plan, error) {
	s, err := wire.ParseSchema(m, wire.Limits{Fields: d.opt.MaxFields, Depth: 16, Text: 1024, Meta: 256})
	if err != nil {
		return nil, err
	}
	p := &plan{schema: s, want: make([]bool, len(s.Fields)), metaModel: s.Meta[MetaModel], metaVersion: s.Meta[MetaVersion]}
	f := planner{plan: p}
	p.id = f.find("id", "utf8, large_utf8, binary, large_binary, int64 or uint64", isID)
	p.ts = f.find("ts", "timestamp", isTimestamp)
	p.label = f.find("label", "an integer", isInt)
	p.model = f.find("model", "utf8, large_utf8 or a dictionary of them", isText)
	p.version = f.find("version", "utf8, large_utf8 or a dictionary of them", isText)
	p.features, p.served, p.weight, p.scores = -1, -1, -1, -1
	if kind == Predictions {
		p.features = f.find("features", "a list of float16, float32 or float64", isFloatList)
		p.served = f.find("served", "a float", isFloat)
		p.weight = f.find("weight", "a float", isFloat)
		f.findScores()
		for _, name := range d.opt.Slices {
			p.slices = append(p.slices, f.find(name, "utf8, large_utf8 or a dictionary of them", isText))
		}
	}
	f.check(kind, d.opt)
	if f.err != nil {
		return nil, f.err
	}
	return p, nil
}

type planner struct {
	*plan
	err *wire.Error
}

// find is the index of the column name, whose type must pass ok, or -1.
func (f *planner) find(name, allowed string, ok func(*wire.Field) bool) int {
	found := -1
	for i := range f.schema.Fields {
		c := &f.schema.Fields[i]
		if c.Name != name || f.err != nil {
			continue
		}
		switch {
		case found >= 0:
			f.err = wire.Errorf(wire.Duplicate, "column %.64q occurs twice", name)
		case !ok(c):
			f.err = wire.Errorf(wire.ColumnType, "column %.64q is %s, allowed is %s", name, typeName(c), allowed)
		}
		found = i
		f.want[i] = true
	}
	return found
}

func (f *planner) findScores() {
	for _, form := range scoreForms {
		allowed, ok := "a list of float16, float32 or float64", isFloatList
		if form.binary {
			allowed, ok = "a float", isFloat
		}
		if f.scores = f.find(form.column, allowed, ok); f.scores >= 0 {
			f.form = form
			return
		}
	}
}

// check refuses a schema that lacks what its kind needs.
func (f *planner) check(kind Kind, o Options) {
	if f.err != nil {
		return
	}
	fail := func(reason, format string, args ...any) { f.err = wire.Errorf(reason, format, args...) }
	switch {
	case kind == Labels && f.id < 0:
		fail(wire.NoColumn, "labels without the column id")
	case kind == Labels && f.label < 0:
		fail(wire.NoColumn, "labels without the column label")
	case kind == Predictions && f.scores < 0:
		fail(wire.NoColumn, "predictions without scores: no column logits, probs, logit or prob")
	case kind == Predictions && f.id < 0 && f.label < 0:
		fail(wire.NoColumn, "predictions with neither the column id, to join labels by, nor the column label")
	case kind == Predictions && f.model < 0 && f.metaModel == "":
		fail(wire.NoModel, "no column model and no schema metadata %s", MetaModel)
	case len(f.metaModel) > o.MaxText || len(f.metaVersion) > o.MaxText:
		fail(wire.TooLarge, "metadata %s or %s of more than %d bytes", MetaModel, MetaVersion, o.MaxText)
	case !validText(f.metaModel) || !validText(f.metaVersion):
		fail(wire.BadText, "metadata %s or %s is not UTF-8", MetaModel, MetaVersion)
	}
}

// planCache keeps the plans of the schemas seen, by the bytes of their message, latest use first.
type planCache struct {
	max   int
	byKey [2]map[string]*list.Element // by kind
	order list.List
}

type planEntry struct {
	key  string
	kind Kind
	plan *plan
}

// plan parses a schema message, or finds the plan of a byte-identical one.
func (d *Decoder) plan(m wire.Message, kind Kind) (*plan, error) {
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
	key := string(m.Meta)
	c.byKey[kind][key] = c.order.PushFront(planEntry{key: key, kind: kind, plan: p})
	if c.order.Len() > c.max {
		last := c.order.Remove(c.order.Back()).(planEntry)
		delete(c.byKey[last.kind], last.key)
	}
	return p, nil
}

// maxCachedSchema keeps a stranger's long schemas from filling the cache's memory: in bytes of the message, and of what it
// became, since fields that share one table in the message do not when parsed.
const maxCachedSchema = 64 << 10
