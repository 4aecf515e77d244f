package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
)

// reserveBytes stays free on the device: recorded launches, the driver's own.
const reserveBytes = 256 << 20

// source is where the features of a set are. Streamed ones have slab 0.
type source struct {
	set    *data.Set
	half   bool
	slab   uint64
	place  uint64
	labels uint64
}

// width is the bytes of a feature as it is stored or streamed.
func (s *source) width() int {
	if s.half {
		return 2
	}
	return 4
}

// openSources puts labels, and features as far as they fit, on the device: the training set first, slabs that several
// sets view only once.
func (s *session) openSources(limit int64) error {
	slabs := map[unsafe.Pointer]uint64{}
	var free, total uint64
	if err := s.check("memory", s.MemInfo(&free, &total)); err != nil {
		return err
	}
	room := int64(free) - reserveBytes
	if limit != 0 {
		room = max(limit, 0)
	}
	for _, set := range append([]*data.Set{s.p.Train}, s.p.Eval...) {
		src := &source{set: set, half: set.Half != nil && set.Mean == nil}
		var err error
		if src.labels, err = s.alloc("labels", 4*set.N()); err != nil {
			return err
		}
		if err := s.put(src.labels, bytesOf(set.Y)); err != nil {
			return err
		}
		used, err := s.resident(src, slabs, room)
		if err != nil {
			return err
		}
		room -= used
		s.streams = s.streams || src.slab == 0
		s.sources = append(s.sources, src)
	}
	return nil
}

// resident puts features on the device where room has the bytes, and returns how many it took.
func (s *session) resident(src *source, slabs map[unsafe.Pointer]uint64, room int64) (int64, error) {
	set := src.set
	key := unsafe.Pointer(unsafe.SliceData(set.X))
	if set.Half != nil {
		key = unsafe.Pointer(unsafe.SliceData(set.Half))
	}
	bytes := src.width() * (len(set.X) + len(set.Half))
	need := int64(4 * len(set.Index))
	slab, shared := slabs[key]
	if !shared {
		need += int64(bytes)
	}
	if bytes == 0 || need > room {
		return 0, nil
	}
	var err error
	if !shared {
		// Free memory may be in pieces: what cannot be had is streamed.
		if slab, err = s.alloc("features", bytes); err != nil {
			return 0, nil // streaming is what is done about it
		}
		if err := s.putFeatures(slab, set); err != nil {
			return 0, err
		}
		slabs[key] = slab
	}
	if set.Index != nil {
		if src.place, err = s.alloc("places", 4*len(set.Index)); err != nil {
			return 0, err
		}
		if err := s.put(src.place, bytesOf(set.Index)); err != nil {
			return 0, err
		}
	}
	src.slab = slab
	return need, nil
}

// putFeatures copies all features that a set views to the device, scaled where they are to be.
func (s *session) putFeatures(slab uint64, set *data.Set) error {
	switch {
	case set.Mean == nil && set.Half != nil:
		return s.put(slab, bytesOf(set.Half))
	case set.Mean == nil:
		return s.put(slab, bytesOf(set.X))
	}
	const rows = 4096 // at a time
	all := *set
	all.Index = nil
	var scratch []float32
	for from, n := 0, (len(set.X)+len(set.Half))/set.D; from < n; from += rows {
		scratch = all.Chunk(scratch, from, min(rows, n-from))
		if err := s.put(slab+uint64(4*from*set.D), bytesOf(scratch)); err != nil {
			return err
		}
	}
	return nil
}

// slot is one of two buffers that streamed features go through, so that the host fills one while the device reads the
// other. copied is reached when the host may write again, used when the device may be overwritten.
type slot struct {
	host         []byte
	at           uint64
	copied, used uintptr
}

func (s *session) openSlots(rows int) error {
	if !s.streams {
		return nil
	}
	if err := s.check("stream", s.StreamCreate(&s.copies, streamNonBlocking)); err != nil {
		return err
	}
	s.device.streams = append(s.device.streams, s.copies)
	n := 4 * s.p.Train.D * max(rows, 2*s.p.Batch)
	for i := range s.slots {
		c := &s.slots[i]
		var err error
		if c.host, err = s.hostAlloc(n); err != nil {
			return err
		}
		if c.at, err = s.alloc("streamed features", n); err != nil {
			return err
		}
		if c.copied, err = s.newEvent(); err != nil {
			return err
		}
		if c.used, err = s.newEvent(); err != nil {
			return err
		}
	}
	return nil
}

// send gathers rows, and behind them partners, into a slot and copies them while the device computes.
func (s *session) send(c *slot, src *source, rows, partners []int32) error {
	if err := s.check("wait for a copy", s.EventSync(c.copied)); err != nil {
		return err
	}
	bytes := len(rows) * src.set.D * src.width()
	src.gather(c.host[:bytes], rows)
	if partners != nil {
		src.gather(c.host[bytes:2*bytes], partners)
		bytes *= 2
	}
	if err := s.check("order", s.StreamWait(s.copies, c.used, 0)); err != nil {
		return err
	}
	r := s.ToDevice(c.at, unsafe.Pointer(&c.host[0]), uint64(bytes), s.copies)
	if err := s.check("copy to device", r); err != nil {
		return err
	}
	if err := s.check("event", s.EventRecord(c.copied, s.copies)); err != nil {
		return err
	}
	return s.check("order", s.StreamWait(s.stream, c.copied, 0))
}

// used records that the device has read a slot; nil is none.
func (s *session) used(c *slot) error {
	if c == nil {
		return nil
	}
	return s.check("event", s.EventRecord(c.used, s.stream))
}

// gatherRows is how many rows are worth a goroutine.
const gatherRows = 128

// gather copies rows' features as they are stored.
func (s *source) gather(to []byte, rows []int32) {
	var wait sync.WaitGroup
	part := max(gatherRows, (len(rows)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	row := s.set.D * s.width()
	for from := 0; from < len(rows); from += part {
		some := rows[from:min(from+part, len(rows))]
		out := to[from*row : (from+len(some))*row]
		wait.Go(func() { s.gatherPart(out, some) })
	}
	wait.Wait()
}

func (s *source) gatherPart(to []byte, rows []int32) {
	if !s.half {
		s.set.Gather(unsafe.Slice((*float32)(unsafe.Pointer(&to[0])), len(rows)*s.set.D), rows)
		return
	}
	row := 2 * s.set.D
	all := bytesOf(s.set.Half)
	for i, r := range rows {
		if s.set.Index != nil {
			r = s.set.Index[r]
		}
		copy(to[i*row:(i+1)*row], all[int(r)*row:])
	}
}

// sourceOf is that of a set of the problem.
func (s *session) sourceOf(set int) (*source, bool) {
	if set < backend.TrainSet || set >= len(s.p.Eval) {
		return nil, false
	}
	return s.sources[set+1], true
}
