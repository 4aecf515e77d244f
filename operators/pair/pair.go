package pair

import (
	"bytes"
	"container/heap"
	"context"
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

//go:embed pair.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the wait of requests and responses for each other.
type Config struct {
	// Event time that a request waits. A response waits until the watermark passes it.
	Wait time.Duration `yaml:"wait" default:"1m" min:"0s"`
	// About the most memory of a shard for them. When full, the oldest goes: a response counts without its request.
	MemoryBytes int `yaml:"memory_bytes" default:"64MiB" min:"0" max:"1TiB"`
}

// Options are the configuration and the settings of the process.
type Options struct {
	Config
	Slices []string // configured slice columns, in order
	Shard  int
}

// Why a request met no response, and a response went on alone.
const (
	reasonWaited   = "waited"
	reasonEvicted  = "evicted"
	reasonRepeated = "repeated" // a second request of an id, while the first waits
)

// Operator holds requests and responses until they meet.
type Operator struct {
	cfg    Options
	counts *pipeline.Counts
	by     map[key]*entry // the newest of each key
	queues [2]queue       // responses and requests, by time
	bytes  int            // about those of what waits
	seq    uint64
	origin arrowio.Origin // of the record that was taken last
	out    batches
	buf    []byte
}

// key is what a request and its response have in common.
type key struct {
	id    arrowio.ID
	model string
}

// entry is a request or a response that waits.
type entry struct {
	key     key
	ts      pipeline.Time
	seq     uint64 // order of arrival
	place   int    // in its queue
	request bool
	row     []byte // see row
	// The others of its key: responses, or one request.
	older, newer *entry
}

// entryBytes is about what an entry takes beside its row: itself, its place in the queue, and in the map.
const entryBytes = 256

func (e *entry) bytes() int { return entryBytes + cap(e.row) + len(e.key.model) }

// New returns the operator of a shard.
func New(cfg Options, h pipeline.Host) *Operator {
	// What waited before a restart may go on before the first record.
	none := arrowio.Origin{Partition: int32(cfg.Shard)}
	return &Operator{cfg: cfg, counts: h.Counts, by: map[key]*entry{}, origin: none, out: batches{columns: cfg.Slices}}
}

// Process implements pipeline.Operator: what is no request or response passes on.
func (p *Operator) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	if b.Side == arrowio.Whole {
		return emit(b)
	}
	p.origin = b.Origin
	rows := newEncoder(b)
	for i := range b.N {
		if !b.Good(i) {
			continue
		}
		m, _ := b.ModelOf(i)
		e := &entry{key: key{b.IDs[i], m.Model}, ts: b.TS[i], request: b.Side == arrowio.Request}
		p.buf = rows.append(p.buf[:0], i)
		e.row = p.buf
		if err := p.take(e); err != nil {
			return b.Reject, err
		}
	}
	if err := p.evict(); err != nil {
		return b.Reject, err
	}
	return b.Reject, p.out.emit(p.origin, emit)
}

// take lets a row meet those of its key, or wait.
func (p *Operator) take(e *entry) error {
	if !e.request {
		if request := p.requestOf(e.key); request != nil {
			p.remove(request)
			p.counts.Add(pipeline.CountPaired, 1)
			return p.respond(e, request)
		}
		p.add(e)
		return nil
	}
	oldest := p.by[e.key]
	switch {
	case p.requestOf(e.key) != nil:
		p.counts.AddReason(pipeline.CountRequestsUnmet, reasonRepeated, 1)
		return nil
	case oldest == nil:
		p.add(e)
		return nil
	}
	for oldest.older != nil {
		oldest = oldest.older
	}
	p.counts.Add(pipeline.CountPaired, 1)
	for w := oldest; w != nil; {
		next := w.newer
		p.remove(w)
		if err := p.respond(w, e); err != nil {
			return err
		}
		w = next
	}
	return nil
}

// requestOf is the request of a key that waits.
func (p *Operator) requestOf(k key) *entry {
	if e := p.by[k]; e != nil && e.request {
		return e
	}
	return nil
}

// respond lets a response go on, with what its request has; nil = it goes alone.
func (p *Operator) respond(e, request *entry) error {
	w, err := decode(e.row)
	if err != nil {
		return err
	}
	if request != nil {
		r, err := decode(request.row)
		if err != nil {
			return err
		}
		w.complete(&r)
	}
	p.out.add(e, &w)
	return nil
}

func (p *Operator) queueOf(e *entry) (q *queue, count string) {
	if e.request {
		return &p.queues[1], pipeline.CountWaitingRequests
	}
	return &p.queues[0], pipeline.CountWaitingResponses
}

// add lets a row wait.
func (p *Operator) add(e *entry) {
	e.row = bytes.Clone(e.row)
	p.hold(e)
	_, count := p.queueOf(e)
	p.counts.Add(count, 1)
}

// remove takes a row out of all that holds it.
func (p *Operator) remove(e *entry) {
	q, count := p.queueOf(e)
	heap.Remove(q, e.place)
	p.bytes -= e.bytes()
	p.counts.Add(count, -1)
	switch {
	case e.newer != nil:
		e.newer.older = e.older
	case e.older != nil:
		p.by[e.key] = e.older
	default:
		delete(p.by, e.key)
	}
	if e.older != nil {
		e.older.newer = e.newer
	}
	e.older, e.newer = nil, nil
}

// drop ends the wait of a row that met none.
func (p *Operator) drop(e *entry, reason string) error {
	p.remove(e)
	if e.request {
		p.counts.AddReason(pipeline.CountRequestsUnmet, reason, 1)
		return nil
	}
	p.counts.AddReason(pipeline.CountResponsesAlone, reason, 1)
	return p.respond(e, nil)
}

// evict drops the oldest while there are more bytes than may be.
func (p *Operator) evict() error {
	for p.bytes > p.cfg.MemoryBytes {
		oldest := p.queues[0].first()
		if r := p.queues[1].first(); oldest == nil || r != nil && r.before(oldest) {
			oldest = r
		}
		if err := p.drop(oldest, reasonEvicted); err != nil {
			return err
		}
	}
	return nil
}

// release ends the waits that the watermark is about to end.
func (p *Operator) release(_ context.Context, wm func() pipeline.Time, emit pipeline.Emit) error {
	if len(p.by) == 0 {
		return nil
	}
	now := wm()
	for i, wait := range []int64{0, int64(p.cfg.Wait)} {
		for e := p.queues[i].first(); e != nil && e.ts+wait < now; e = p.queues[i].first() {
			if err := p.drop(e, reasonWaited); err != nil {
				return err
			}
		}
	}
	if len(p.by) == 0 { // the memory of maps and slices does not shrink by itself
		p.by, p.queues = map[key]*entry{}, [2]queue{}
	}
	return p.out.emit(p.origin, emit)
}

// Advance implements pipeline.Operator. What the watermark ends has ended.
func (p *Operator) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }
