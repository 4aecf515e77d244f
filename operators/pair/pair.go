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
	// Event time that a request stays. A response waits until the watermark passes it.
	Wait time.Duration `yaml:"wait" default:"1m" min:"0s"`
	// About the most memory of a shard for them. When full, met requests go, then the oldest: a response counts alone.
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
	reasonRepeated = "repeated" // a second request of an id, within the wait of the first
)

// Operator holds requests and responses until they meet.
type Operator struct {
	cfg    Options
	counts *pipeline.Counts
	by     [2]map[key]*entry // the newest response and the request of each key
	queues [kinds]queue      // by time
	bytes  int               // about those of what waits
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

// kind says what waits, and so in which queue.
type kind uint8

const (
	response kind = iota
	request
	met // a request that has met a response: other versions may answer it too
	kinds
)

// entry is a request or a response that waits.
type entry struct {
	key   key
	ts    pipeline.Time
	seq   uint64 // order of arrival; of requests that have met, the order in which they did
	place int    // in its queue
	kind  kind
	row   []byte // see row
	// The other responses of its key.
	older, newer *entry
}

// entryBytes is about what an entry takes beside its row: itself, its place in the queue, and in the map.
const entryBytes = 256

func (e *entry) bytes() int { return entryBytes + cap(e.row) + len(e.key.model) }

// New returns the operator of a shard.
func New(cfg Options, h pipeline.Host) *Operator {
	// What waited before a restart may go on before the first record.
	none := arrowio.Origin{Partition: int32(cfg.Shard)}
	p := &Operator{cfg: cfg, counts: h.Counts, origin: none, out: batches{columns: cfg.Slices}}
	p.clear()
	return p
}

// clear forgets all that waits.
func (p *Operator) clear() {
	p.by, p.queues, p.bytes = [2]map[key]*entry{{}, {}}, [kinds]queue{}, 0
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
		e := &entry{key: key{b.IDs[i], m.Model}, ts: b.TS[i]}
		if b.Side == arrowio.Request {
			e.kind = request
		}
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

// take lets a row meet those of its key, and wait. A request stays when it has met: were it gone with the first
// response, what a second one gets would depend on the order in which the three came.
func (p *Operator) take(e *entry) error {
	r := p.by[request][e.key]
	if e.kind == response {
		if r == nil || !p.meets(r, e) {
			p.add(e)
			return nil
		}
		p.meet(r)
		return p.respond(e, r)
	}
	switch {
	case r == nil:
	case p.meets(r, e):
		p.counts.AddReason(pipeline.CountRequestsUnmet, reasonRepeated, 1)
		return nil
	default: // the id is used again
		if err := p.drop(r, reasonWaited); err != nil {
			return err
		}
	}
	p.add(e)
	return p.serve(e)
}

// meets reports whether a row of its key comes within the wait of a request. It compares event times, because how long
// a request stays depends on the watermark as well.
func (p *Operator) meets(r, e *entry) bool { return e.ts <= r.ts+int64(p.cfg.Wait) }

// serve lets the responses go on that waited for a request.
func (p *Operator) serve(r *entry) error {
	e := p.by[response][r.key]
	for e != nil && e.older != nil {
		e = e.older
	}
	for e != nil {
		next := e.newer
		if p.meets(r, e) {
			p.remove(e)
			p.meet(r)
			if err := p.respond(e, r); err != nil {
				return err
			}
		}
		e = next
	}
	return nil
}

// meet notes that a request has met a response.
func (p *Operator) meet(r *entry) {
	if r.kind == met {
		return
	}
	p.counts.Add(pipeline.CountPaired, 1)
	p.remove(r)
	r.kind = met
	p.hold(r)
}

// respond lets a response go on, with what its request has; nil = it goes alone.
func (p *Operator) respond(e, r *entry) error {
	w, err := decode(e.row)
	if err != nil {
		return err
	}
	if r != nil {
		its, err := decode(r.row)
		if err != nil {
			return err
		}
		w.complete(&its)
	}
	p.out.add(e, &w)
	return nil
}

// waitingCounts are the counts of what waits, by kind; a request that has met is counted as such.
var waitingCounts = [kinds]string{response: pipeline.CountWaitingResponses, request: pipeline.CountWaitingRequests}

// wait adds to the count of what waits.
func (p *Operator) wait(k kind, d int64) {
	if name := waitingCounts[k]; name != "" {
		p.counts.Add(name, d)
	}
}

// newest is where those of an entry's side are, by key.
func (p *Operator) newest(e *entry) map[key]*entry { return p.by[min(e.kind, request)] }

// add lets a row wait.
func (p *Operator) add(e *entry) {
	e.row = bytes.Clone(e.row)
	p.hold(e)
	p.wait(e.kind, 1)
}

// remove takes a row out of all that holds it.
func (p *Operator) remove(e *entry) {
	heap.Remove(&p.queues[e.kind], e.place)
	p.bytes -= e.bytes()
	p.wait(e.kind, -1)
	switch {
	case e.newer != nil:
		e.newer.older = e.older
	case e.older != nil:
		p.newest(e)[e.key] = e.older
	default:
		delete(p.newest(e), e.key)
	}
	if e.older != nil {
		e.older.newer = e.newer
	}
	e.older, e.newer = nil, nil
}

// drop ends the wait of a row.
func (p *Operator) drop(e *entry, reason string) error {
	p.remove(e)
	switch e.kind {
	case request:
		p.counts.AddReason(pipeline.CountRequestsUnmet, reason, 1)
	case response:
		p.counts.AddReason(pipeline.CountResponsesAlone, reason, 1)
		return p.respond(e, nil)
	default:
		if reason == reasonEvicted {
			p.counts.Add(pipeline.CountPairedEvicted, 1)
		}
	}
	return nil
}

// evict drops rows while there are more bytes than may be: requests that have met, which few rows still need, before
// those that have not and responses, of both the oldest.
func (p *Operator) evict() error {
	for p.bytes > p.cfg.MemoryBytes {
		next := p.queues[met].first()
		if next == nil {
			next = p.queues[response].first()
			if r := p.queues[request].first(); next == nil || r != nil && r.before(next) {
				next = r
			}
		}
		if err := p.drop(next, reasonEvicted); err != nil {
			return err
		}
	}
	return nil
}

// release ends the waits that the watermark is about to end.
func (p *Operator) release(_ context.Context, wm func() pipeline.Time, emit pipeline.Emit) error {
	if p.bytes == 0 {
		return nil
	}
	now := wm()
	for k, wait := range [kinds]int64{request: int64(p.cfg.Wait), met: int64(p.cfg.Wait)} {
		for e := p.queues[k].first(); e != nil && e.ts+wait < now; e = p.queues[k].first() {
			if err := p.drop(e, reasonWaited); err != nil {
				return err
			}
		}
	}
	if p.bytes == 0 { // the memory of maps and slices does not shrink by itself
		p.clear()
	}
	return p.out.emit(p.origin, emit)
}

// Advance implements pipeline.Operator. What the watermark ends has ended.
func (p *Operator) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }
