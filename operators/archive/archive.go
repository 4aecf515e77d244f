package archive

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/pipeline"
)

// Counts of the archive operator. A labelled row is in exactly one of the first three. The fate of archived rows is
// counted too (pipeline.CountArchivePublished and others).
const (
	CountArchived       = pipeline.CountArchived
	CountArchiveSkipped = pipeline.CountArchiveSkipped
	CountArchiveDropped = pipeline.CountArchiveDropped
	CountArchiveFiles   = "archive_files"  // files completed
	ReasonNoFeatures    = "no_features"    // the row has none
	ReasonFeatureRange  = "features_range" // a feature is not finite, or not as a float16
	maxOpen             = 1024             // files that are open at a time
	batchBytes          = 4 << 20          // of a record batch
	memoryDefault       = 8 * batchBytes
)

// Options are the configuration and the settings of the process.
type Options struct {
	Config
	Group  string // begins the names of files
	Shard  int
	Slices []string // configured slice columns, in order
	// Dir is where a directory is made whose name begins with Name: for rows that are not published yet.
	Dir, Name string
	// Publish makes a file visible: once is enough, and again changes nothing. A file is given up after
	// archivefile.ErrDamaged.
	Publish func(context.Context, *archivefile.File) error
	// ID is what an id is in the files; nil = itself. It decides nothing.
	ID func(arrowio.ID) arrowio.ID
	// AtOnce publishes a file as soon as it is complete: no checkpoints are taken, so there is none to wait for.
	AtOnce bool

	batchBytes int           // of a test
	retry      time.Duration // of a test: the first wait before an attempt is repeated
}

// Operator writes labelled rows that have features to Arrow files, every row once. Which rows make a file depends only
// on the rows in their order, their label times and the watermark, not on a clock. The checkpoint holds all rows that
// are not published: encoded record batches as its files, the others in the state. A complete file is published when a
// checkpoint has it. So after a crash the same checkpoint makes the same file again, and files of later rows were not
// published yet.
type Operator struct {
	cfg    Options
	counts *pipeline.Counts
	log    *slog.Logger
	wm     pipeline.Time
	seq    uint64 // of the next file
	open   map[fileKey]*openFile
	order  []*openFile // open, in order of seq
	bytes  int         // of rows in memory
	kept   int         // bytes of memory that files keep for rows to come
	values map[string]string
	work   scratch
	queue  publishQueue
	outbox *pipeline.Outbox // whose epoch it is; nil = the first
}

// fileKey is what the rows of one file have in common.
type fileKey struct {
	model  arrowio.ModelKey
	k, d   int
	probs  bool
	scores bool // the file has them
	half   bool
}

// openFile is a file that gets rows.
type openFile struct {
	key   fileKey
	file  archivefile.File
	until pipeline.Time // the watermark that ends it
	rows  archivefile.Rows
	size  int // of rows, as Bytes has it
	kept  int // bytes of memory that it kept when a record batch was made
}

// New returns the operator. Close it.
func New(cfg Options, h pipeline.Host) *Operator {
	if cfg.MemoryBytes == 0 {
		cfg.MemoryBytes = memoryDefault
	}
	if cfg.batchBytes == 0 {
		cfg.batchBytes = batchBytes
	}
	if cfg.retry == 0 {
		cfg.retry = retryFirst
	}
	a := &Operator{
		cfg:    cfg,
		counts: h.Counts,
		log:    h.Log,
		wm:     pipeline.NoTime,
		open:   map[fileKey]*openFile{},
		values: map[string]string{},
		outbox: h.Outbox,
	}
	a.work = scratch{dir: cfg.Dir, name: cfg.Name}
	a.queue.init(&a.cfg, h)
	a.setCounts(0, 0, 0)
	return a
}

// Process implements pipeline.Operator: rows pass on, those with a label and features are kept.
func (a *Operator) Process(ctx context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	a.queue.count()
	if b.Kind != arrowio.Labels && b.Label != nil {
		if err := a.rows(ctx, b); err != nil {
			return b.Reject, err
		}
	}
	return emit(b)
}

// fate says whether a labelled row is archived, and why not.
type fate int

const (
	kept fate = iota
	withoutFeatures
	outOfRange
	dropped
	fates
)

func (a *Operator) rows(ctx context.Context, b *arrowio.Batch) error {
	room, err := a.queue.room(ctx)
	if err != nil {
		return err
	}
	columns := a.columns(b)
	var n [fates]int64
	for i := range b.N {
		if !b.Good(i) || b.Label[i] < 0 {
			continue
		}
		f := dropped
		if b.D == 0 || b.Features[i*b.D] != b.Features[i*b.D] {
			f = withoutFeatures
		} else if room {
			if f, err = a.row(ctx, b, i, columns); err != nil {
				return err
			}
		}
		n[f]++
	}
	a.counts.Add(CountArchived, n[kept])
	a.counts.Add(pipeline.CountArchiveMemory, n[kept])
	if n[withoutFeatures] > 0 {
		a.counts.AddReason(CountArchiveSkipped, ReasonNoFeatures, n[withoutFeatures])
	}
	if n[outOfRange] > 0 {
		a.counts.AddReason(CountArchiveSkipped, ReasonFeatureRange, n[outOfRange])
	}
	if n[dropped] > 0 {
		a.counts.Add(CountArchiveDropped, n[dropped])
	}
	return nil
}

// row puts row i, which has features, into its file.
func (a *Operator) row(ctx context.Context, b *arrowio.Batch, i int, columns []int) (fate, error) {
	o, err := a.file(ctx, b, i)
	if err != nil {
		return kept, err
	}
	if !o.rows.AppendFeatures(b.Features[i*b.D : (i+1)*b.D]) {
		return outOfRange, nil
	}
	a.append(o, b, i, columns)
	return kept, a.settle(ctx, o)
}

// columns are the places of the configured slice columns in the batch; -1 = it has not that one.
func (a *Operator) columns(b *arrowio.Batch) []int {
	out := make([]int, len(a.cfg.Slices))
	for c, name := range a.cfg.Slices {
		out[c] = slices.IndexFunc(b.Slices, func(s arrowio.SliceColumn) bool { return s.Name == name })
	}
	return out
}

// file is the open file that takes row i, a new one where there is none.
func (a *Operator) file(ctx context.Context, b *arrowio.Batch, i int) (*openFile, error) {
	m, _ := b.ModelOf(i)
	key := fileKey{model: m, k: b.K, d: b.D, probs: b.Probs, scores: a.cfg.Logits, half: a.cfg.Features == FeaturesHalf}
	if o := a.open[key]; o != nil {
		return o, nil
	}
	if len(a.order) >= maxOpen {
		if err := a.complete(ctx, a.order[0]); err != nil {
			return nil, err
		}
	}
	// they may share a message's memory
	key.model = arrowio.ModelKey{Model: strings.Clone(m.Model), Version: strings.Clone(m.Version)}
	o := a.newOpen(key, a.seq)
	a.seq++
	o.file.First = b.Origin
	ts := labelTime(b, i)
	o.file.Oldest, o.file.Newest = ts, ts
	o.until = max(a.wm, ts) + int64(a.cfg.RollTime)
	return o, nil
}

// groupOf is the first part of the names of files. It has the epoch of a state that was begun anew, so new names differ
// from those of existing files.
func groupOf(a *Operator) string {
	if a.outbox == nil || a.outbox.Again() == "" {
		return a.cfg.Group
	}
	return a.cfg.Group + "-" + a.outbox.Again()
}

// newOpen enters an empty file.
func (a *Operator) newOpen(key fileKey, seq uint64) *openFile {
	o := &openFile{key: key}
	o.file = archivefile.File{
		Group:     groupOf(a),
		Model:     key.model.Model,
		Version:   key.model.Version,
		Partition: a.cfg.Shard,
		Sequence:  seq,
		K:         key.k,
	}
	o.rows.Columns = a.cfg.Slices
	o.begin()
	a.open[key] = o
	a.order = append(a.order, o)
	return o
}

// begin begins a record batch in new memory.
func (o *openFile) begin() {
	o.rows = archivefile.Rows{
		Model:   o.key.model.Model,
		Version: o.key.model.Version,
		K:       o.key.k,
		D:       o.key.d,
		Probs:   o.key.probs,
		Half:    o.key.half,
		Columns: o.rows.Columns,
		Slices:  make([][]string, len(o.rows.Columns)),
	}
}

func labelTime(b *arrowio.Batch, i int) pipeline.Time {
	if b.LabelTS != nil {
		return b.LabelTS[i]
	}
	return b.TS[i]
}

// append adds the rest of a row whose features have been appended.
func (a *Operator) append(o *openFile, b *arrowio.Batch, i int, columns []int) {
	r, ts := &o.rows, labelTime(b, i)
	id := arrowio.ID{}
	if b.IDs != nil {
		id = b.IDs[i]
	}
	if a.cfg.ID != nil {
		id = a.cfg.ID(id)
	}
	weight := float32(1)
	if b.Weight != nil {
		weight = b.Weight[i]
	}
	r.IDs, r.TS, r.LabelTS = append(r.IDs, id), append(r.TS, b.TS[i]), append(r.LabelTS, ts)
	r.Label, r.Weight = append(r.Label, b.Label[i]), append(r.Weight, weight)
	size := 40 + r.D*r.FeatureBytes()
	if o.key.scores {
		r.Scores = append(r.Scores, b.Scores[i*b.K:(i+1)*b.K]...)
		size += 4 * b.K
	}
	for c, at := range columns {
		v := ""
		if at >= 0 && b.Slices[at].Index[i] >= 0 {
			v = a.value(b.Slices[at].Values[b.Slices[at].Index[i]])
		}
		r.Slices[c] = append(r.Slices[c], v)
		size += 4 + len(v)
	}
	o.file.Rows++
	o.file.Last = b.Origin
	o.file.Oldest, o.file.Newest = min(o.file.Oldest, ts), max(o.file.Newest, ts)
	o.size += size
	a.bytes += size
}

// value is v in memory of its own, the same for equal ones.
func (a *Operator) value(v string) string {
	const most = 4096
	if own, ok := a.values[v]; ok {
		return own
	}
	if len(a.values) >= most {
		clear(a.values)
	}
	own := strings.Clone(v)
	a.values[own] = own
	return own
}

// settle is called after each row. It encodes a full record batch, and completes a full file.
func (a *Operator) settle(ctx context.Context, o *openFile) error {
	if o.size >= a.cfg.batchBytes {
		if err := a.cut(ctx, o); err != nil {
			return err
		}
	}
	if o.file.Rows >= a.cfg.RollRows || o.file.Bytes()+int64(o.size) >= a.cfg.RollBytes {
		return a.complete(ctx, o)
	}
	for a.bytes > a.cfg.MemoryBytes {
		if err := a.cut(ctx, slices.MaxFunc(a.order, func(x, y *openFile) int { return x.size - y.size })); err != nil {
			return err
		}
	}
	return nil
}

// Advance implements pipeline.Operator: files whose time is over are complete.
func (a *Operator) Advance(ctx context.Context, wm pipeline.Time, _ pipeline.Emit) error {
	a.wm = wm
	a.queue.count()
	for _, o := range slices.Clone(a.order) {
		if wm >= o.until {
			if err := a.complete(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}
