package stats

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
)

// storedCell is a cell of a restored state, before and after its set is decoded.
type storedCell struct {
	key  cellKey
	body []byte
	set  *acc.Set
	err  error
}

// RestoreState implements pipeline.State. Nearly all of its time goes into decoding sets, which are independent: as
// many goroutines as there are processors do it.
func (s *Operator) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	if err := pipeline.CheckPaneLength(r.Varint(), s.cfg.Pane); err != nil {
		return err
	}
	s.closed = r.Varint()
	s.keys.restore(&r)
	var stored [2][]storedCell
	for i := range stored {
		var err error
		if stored[i], err = s.storedCells(&r); err != nil {
			return err
		}
	}
	if err := checkSums(&r, s.acc); err != nil {
		return err
	}
	for i, m := range []map[cellKey]*acc.Set{s.cells, s.late} {
		clear(m)
		if err := s.decodeCells(stored[i]); err != nil {
			return err
		}
		for _, c := range stored[i] {
			m[c.key] = c.set
		}
	}
	s.room = 0
	return nil
}

// checkSums refuses a state whose sums have another configuration, even if it has no cells: panes that the model tasks
// have not read yet may have such sums, and a window cannot hold both. A state of an early version does not say how
// its sums were configured.
func checkSums(r *binenc.Reader, is acc.Config) error {
	if r.Len() == 0 {
		return r.Err()
	}
	was := sumconfig.Read(r)
	if r.Err() != nil {
		return r.Err()
	}
	is.K = was.K
	return sumconfig.Check(was, is)
}

// storedCells parses one of the two lists of cells.
func (s *cellTable) storedCells(r *binenc.Reader) ([]storedCell, error) {
	n := r.Count(4, 1<<30)
	cells := make([]storedCell, 0, n)
	for range n {
		k := cellKey{key: int32(r.Int("key", 0, math.MaxInt32)), labelPane: r.Varint(), predictionPane: r.Varint()}
		body := r.Bytes(1 << 30)
		if r.Err() != nil {
			break
		}
		if int(k.key) >= len(s.keys.keys) {
			return nil, fmt.Errorf("cell of key %d, there are %d", k.key, len(s.keys.keys))
		}
		cells = append(cells, storedCell{key: k, body: body})
	}
	return cells, r.Err()
}

// decodeCells decodes every cell's set, and returns the error of the first one that is damaged or configured
// otherwise.
func (s *cellTable) decodeCells(cells []storedCell) error {
	want, err := s.configs(cells)
	if err != nil {
		return err
	}
	const atOnce = 64
	var wg sync.WaitGroup
	for part := range chunks(len(cells), runtime.GOMAXPROCS(0), atOnce) {
		wg.Go(func() {
			d := acc.NewDecoder()
			for i := part[0]; i < part[1]; i++ {
				c := &cells[i]
				func() {
					defer pipeline.Caught(&c.err)
					c.set, c.err = decodeSet(d, c.body, want[s.keys.keys[c.key.key].classes])
				}()
			}
		})
	}
	wg.Wait()
	for i := range cells {
		if cells[i].err != nil {
			return cells[i].err
		}
	}
	return nil
}

// chunks divides n into so many ranges of about equal size, fewer if they would be smaller than least.
func chunks(n, parts, least int) func(yield func([2]int) bool) {
	parts = max(min(parts, n/least), 1)
	return func(yield func([2]int) bool) {
		for i := range parts {
			if !yield([2]int{n * i / parts, n * (i + 1) / parts}) {
				return
			}
		}
	}
}

// configs returns the configurations that the cells' sets must have, by number of classes.
func (s *cellTable) configs(cells []storedCell) (map[int]acc.Config, error) {
	out := map[int]acc.Config{}
	for i := range cells {
		k := s.keys.keys[cells[i].key.key].classes
		if _, ok := out[k]; ok {
			continue
		}
		cfg := s.acc
		cfg.K = k
		set, err := acc.New(cfg)
		if err != nil {
			return nil, err
		}
		out[k] = set.Settings()
	}
	return out, nil
}

func decodeSet(d *acc.Decoder, body []byte, want acc.Config) (*acc.Set, error) {
	set, err := d.DecodeSet(body)
	if err != nil {
		return nil, err
	}
	return set, sumconfig.Check(set.Settings(), want)
}
