package recipe

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
)

// ErrCheckpoint means that the bytes are no checkpoint, damaged, or of another training.
var ErrCheckpoint = errors.New("checkpoint")

// A checkpoint is, little-endian:
//
//	magic "PLTRAIN1" │ u32 length of header │ header, JSON │ slabs │ u32 CRC-32C of all before
//
// with the slabs of the parameters, velocities and best parameters as float32 in the order of backend.TrainingState,
// then Right and Seen as int32. Their lengths are those of the training that reads it, never of the bytes.
const checkpointMagic = "PLTRAIN1"

type checkpointHeader struct {
	Of        uint64  `json:"of"` // fingerprint of configuration and rows
	Report    Report  `json:"report"`
	Q         float64 `json:"q"`
	Step      uint32  `json:"step"`
	BestNLL   float64 `json:"best_nll"`
	BestScale float32 `json:"best_scale"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fingerprintRows is how many rows the fingerprint takes at a time.
const fingerprintRows = 256

// fingerprint is FNV-1a over configuration, shapes, rows, their scaling and initial parameters; computed once.
func (t *Training) fingerprint() (uint64, error) {
	if t.of == 0 {
		var err error
		if t.of, err = t.hashAll(); err != nil {
			return 0, err
		}
	}
	return t.of, nil
}

func (t *Training) hashAll() (uint64, error) {
	h := fnv.New64a()
	cfg, err := json.Marshal(t.cfg)
	if err != nil {
		return 0, err
	}
	h.Write(cfg)
	var buf []byte
	for _, s := range []*data.Set{t.in.Train, t.in.Valid} {
		buf = binary.LittleEndian.AppendUint64(buf[:0], uint64(s.N()))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(s.D))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(s.K))
		h.Write(buf)
		h.Write(appendInts(buf[:0], s.Y))
		var scratch []float32
		for from := 0; from < s.N(); from += fingerprintRows {
			scratch = s.Chunk(scratch, from, min(fingerprintRows, s.N()-from))
			buf = appendFloats(buf[:0], scratch)
			h.Write(buf)
		}
	}
	for _, p := range t.problem.Head.Params() {
		h.Write(appendFloats(buf[:0], p))
	}
	if c := t.scaling; c != nil { // a fresh head has the same parameters without
		h.Write(fmt.Appendf(nil, "%x %x", c.mean, c.sd))
	}
	for _, v := range t.in.CDF {
		h.Write(binary.LittleEndian.AppendUint64(buf[:0], math.Float64bits(v)))
	}
	return h.Sum64(), nil
}

func appendFloats(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func appendInts(b []byte, v []int32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// Checkpoint encodes everything that [Training.Restore] needs to go on with the same bits.
func (t *Training) Checkpoint() ([]byte, error) {
	st, err := t.session.State()
	if err != nil {
		return nil, err
	}
	of, err := t.fingerprint()
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(checkpointHeader{
		Of:        of,
		Report:    t.report,
		Q:         t.q,
		Step:      t.step,
		BestNLL:   t.bestNLL,
		BestScale: t.bestScale,
	})
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32([]byte(checkpointMagic), uint32(len(head)))
	b = append(b, head...)
	for _, group := range [][][]float32{st.Params, st.Velocity, t.best} {
		for _, p := range group {
			b = appendFloats(b, p)
		}
	}
	b = appendInts(appendInts(b, st.Right), st.Seen)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// Restore puts a training, made with the same configuration and input, where the checkpoint was taken. After an error,
// which wraps [ErrCheckpoint] where the bytes are at fault, the training is as it was.
func (t *Training) Restore(b []byte) error {
	h, slabs, err := openCheckpoint(b)
	if err != nil {
		return err
	}
	of, err := t.fingerprint()
	if err != nil {
		return err
	}
	if h.Of != of {
		return fmt.Errorf("%w: of another configuration, rows or head: fingerprint %016x, allowed %016x",
			ErrCheckpoint, h.Of, of)
	}
	st, best, err := t.readState(slabs)
	if err != nil {
		return err
	}
	if err := t.session.SetState(st); err != nil {
		return err
	}
	h.Report.Backend = t.report.Backend
	t.report, t.q, t.step, t.best, t.bestNLL, t.bestScale = h.Report, h.Q, h.Step, best, h.BestNLL, h.BestScale
	return nil
}

// readState reads what a checkpoint has behind its header: parameters, velocities, the best parameters, the history.
func (t *Training) readState(b []byte) (st *backend.TrainingState, best [][]float32, err error) {
	words := 2 * t.in.Train.N()
	for _, p := range t.best {
		words += 3 * len(p)
	}
	if len(b) != 4*words {
		return nil, nil, fmt.Errorf("%w: %d bytes of parameters, allowed %d", ErrCheckpoint, len(b), 4*words)
	}
	st = &backend.TrainingState{}
	for _, group := range []*[][]float32{&st.Params, &st.Velocity, &best} {
		for _, p := range t.best {
			v := make([]float32, len(p))
			for i := range v {
				v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
			*group, b = append(*group, v), b[4*len(p):]
		}
	}
	for _, list := range []*[]int32{&st.Right, &st.Seen} {
		for range t.in.Train.N() {
			*list, b = append(*list, int32(binary.LittleEndian.Uint32(b))), b[4:]
		}
	}
	return st, best, nil
}

func openCheckpoint(b []byte) (h checkpointHeader, slabs []byte, err error) {
	if !bytes.HasPrefix(b, []byte(checkpointMagic)) || len(b) < len(checkpointMagic)+8 {
		return h, nil, fmt.Errorf("%w: %d bytes without the mark %s", ErrCheckpoint, len(b), checkpointMagic)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return h, nil, fmt.Errorf("%w: damaged: CRC %08x, stored %08x", ErrCheckpoint, got, sum)
	}
	body = body[len(checkpointMagic):]
	n := binary.LittleEndian.Uint32(body)
	body = body[4:]
	if uint64(n) > uint64(len(body)) {
		return h, nil, fmt.Errorf("%w: header of %d bytes, %d remain", ErrCheckpoint, n, len(body))
	}
	if err := json.Unmarshal(body[:n], &h); err != nil {
		return h, nil, fmt.Errorf("%w: header: %w", ErrCheckpoint, err)
	}
	return h, body[n:], nil
}
