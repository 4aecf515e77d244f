package drift

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// TestConfidenceMap: the map is linear between bins with rows and constant beyond them. Without a calibrator it is the
// identity.
func TestConfidenceMap(t *testing.T) {
	var m confidenceMap
	if m.at(.3) != .3 {
		t.Errorf("identity gives %v", m.at(.3))
	}
	m.bins = make([]float64, stage.ScoreBins)
	for j := range m.bins {
		m.bins[j] = math.NaN()
	}
	if m.at(.7) != .7 {
		t.Errorf("without rows %v", m.at(.7))
	}
	m.bins[20], m.bins[50] = .4, .7
	for c, want := range map[float64]float64{0: .4, middle(20): .4, middle(35): .55, middle(50): .7, 1: .7} {
		if got := m.at(c); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: %v, want %v", c, got, want)
		}
	}
}

// TestStateOfClasses: the state of a reference with class counts starts with the bytes of one without, and can be
// restored.
func TestStateOfClasses(t *testing.T) {
	plain := State{ref: reference{}, next: reference{}, classes: classDrift{k: 3}}
	plain.ref.grow()
	plain.ref.scores[0][3] = 12
	before, err := plain.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	full := State{ref: reference{}, next: reference{}, classes: classDrift{k: 3, at: 77}}
	full.ref.grow()
	full.ref.scores[0][3] = 12
	c, err := acc.NewClassCounts(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Label(1, .7, 2, 1); err != nil {
		t.Fatal(err)
	}
	full.ref.classes.confused, full.classes.block = c, c.Clone()
	full.classes.soft = softJoint{pool: shift.NewPool(make([]float64, 3)), revision: 4, fresh: 9, rows: 300,
		bias: []float64{1, 2, .5}, joint: make([]float64, 3*acc.Bands*3)}
	full.classes.soft.joint[5] = 1.5
	full.classes.soft.byLabel.Rows, full.classes.soft.byLabel.Gap = make([]float64, 3), make([]float64, 3*gapBins)
	full.classes.soft.byLabel.Gap[7] = -.5
	after, err := full.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(after, before) {
		t.Error("what follows is not behind what was there before")
	}
	for name, b := range map[string][]byte{"without": before, "with": after} {
		back := State{classes: classDrift{k: 3}}
		if err := restored(&back, b); err != nil {
			t.Fatal(err)
		}
		if again, err := back.AppendState(nil); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s classes: %d bytes read back as %d, %v", name, len(b), len(again), err)
		}
	}
	other := State{classes: classDrift{k: 4}}
	if err := restored(&other, after); err == nil {
		t.Error("counts of three classes are taken for four")
	}
	for n := range after {
		if n > len(before) {
			cut := State{classes: classDrift{k: 3}}
			if err := restored(&cut, after[:n]); err == nil {
				t.Fatalf("%d of %d bytes are taken", n, len(after))
			}
		}
	}
}

func restored(d *State, b []byte) error {
	r := binenc.NewReader(b)
	if err := d.RestoreState(&r, nil); err != nil {
		return err
	}
	return r.Close()
}

// TestStateOfPastErrors: a block under way and the errors of past ones are restored as they were; what no rows can have
// is refused.
func TestStateOfPastErrors(t *testing.T) {
	e := pastErrors{block: make([]blockBin, stage.ScoreBins), rows: 7,
		blocks: []unlabelled.Past{{Rows: 1000}, {Excess: .25, Miss: -.3, Rows: 1200}}}
	e.block[50] = blockBin{right: 4, wrong: 3, sumC: 5.9}
	body := e.append(nil)
	in := binenc.NewReader(body)
	var got pastErrors
	got.restore(&in)
	if err := in.Close(); err != nil || got.rows != 7 || got.block[50] != e.block[50] ||
		!bytes.Equal(got.append(nil), body) {
		t.Errorf("restored %+v, error %v", got, err)
	}
	for name, bad := range map[string]pastErrors{
		"half a block":    {block: make([]blockBin, 3)},
		"too sure":        {block: append(make([]blockBin, stage.ScoreBins-1), blockBin{right: 1, sumC: 1.1})},
		"off by too much": {blocks: []unlabelled.Past{{Excess: 1.5}}},
		"missed by more":  {blocks: []unlabelled.Past{{Miss: -1.5}}},
		"not a number":    {blocks: []unlabelled.Past{{Excess: math.NaN()}}},
	} {
		in := binenc.NewReader(bad.append(nil))
		new(pastErrors).restore(&in)
		if in.Close() == nil {
			t.Errorf("%s was restored", name)
		}
	}
	// Excesses alone, as they were written once: how far the blocks missed is not known.
	was := binenc.AppendFloat64s(binenc.AppendUvarint(binenc.AppendUvarint(nil, 0), 2), 0, .25)
	in = binenc.NewReader(was)
	got.restore(&in)
	if want := []unlabelled.Past{{}, {Excess: .25}}; in.Close() != nil || !slices.Equal(got.blocks, want) {
		t.Errorf("restored %+v, want %+v", got.blocks, want)
	}
}
