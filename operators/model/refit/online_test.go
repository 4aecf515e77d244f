package refit

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/realdata"
)

// plainRegret is the plain reference: the best fixed map, by descent on the rows themselves.
func plainRegret(c []float64, hit []bool, loss float64) (regret float64) {
	a, b := 1.0, 0.0
	at := func(a, b float64) (sum float64) {
		for i, x := range c {
			x = min(max(x, onlineClip), 1-onlineClip)
			p := 1 / (1 + math.Exp(-(a*math.Log(x/(1-x)) + b)))
			if !hit[i] {
				p = 1 - p
			}
			sum -= logProb(p)
		}
		return sum
	}
	best := at(a, b)
	for size := .5; size > 1e-5; {
		moved := false
		for _, d := range [][2]float64{{size, 0}, {-size, 0}, {0, size}, {0, -size}} {
			if l := at(a+d[0], b+d[1]); l < best {
				best, a, b, moved = l, a+d[0], b+d[1], true
			}
		}
		if !moved {
			size /= 2
		}
	}
	return (loss - best) / float64(len(c))
}

// TestOnlineRegretOnRealDrift runs real confidences through a drift: clean images, then one corruption after the other.
// The mean regret against the best fixed map in hindsight equals that computed from the rows. Under such a drift it is
// below 0, because the fixed map cannot move.
func TestOnlineRegretOnRealDrift(t *testing.T) {
	z, labels := realScores(t, "resnet20", "resnet20_gauss_noise_s1", "resnet20_contrast_s3", "resnet20_gauss_blur_s5")
	p, err := calibrator.NewOnlinePlatt(calibrator.OnlineSettings{Clip: onlineClip})
	if err != nil {
		t.Fatal(err)
	}
	o := &forecasts{}
	var conf []float64
	var hits []bool
	row, q := make([]float64, 10), make([]float64, 10)
	for part, scores := range z {
		for i := range 5000 {
			n := (i + part*5000) % len(labels)
			top := 0
			for j := range row {
				if row[j] = float64(scores[n*10+j]); row[j] > row[top] {
					top = j
				}
			}
			calibrator.Identity{}.Apply(q, row)
			conf, hits = append(conf, q[top]), append(hits, int32(top) == labels[n])
			told := calibrator.TopCorrection{Slope: p.Slope(), Intercept: p.Intercept()}.Map(q[top])
			o.take(q[top], told, int32(top) == labels[n])
			if err := p.Update(q[top], int32(top) == labels[n]); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := o.shown(servedCorrection{correction: uncorrected})
	want := plainRegret(conf, hits, o.loss)
	t.Logf("regret %.4f nats a row (rows themselves: %.4f), ECE %.4f, slope %.2f, best fixed %+v", got.Regret, want,
		got.ECE, got.Slope, got.BestFixed)
	// A cell holds rows whose log-odds differ by up to 1/14.
	const cells = 1e-3
	if math.Abs(got.Regret-want) > cells {
		t.Errorf("regret %.5f, of the rows themselves %.5f", got.Regret, want)
	}
	if got.Regret > 0 || got.ECE > .05 {
		t.Errorf("regret %.4f, ECE %.4f; want at most 0, .05", got.Regret, got.ECE)
	}
	state := o.append(nil)
	r := binenc.NewReader(state)
	back := &forecasts{}
	if err := back.restore(&r); err != nil {
		t.Fatal(err)
	}
	again, none := back.append(nil), servedCorrection{correction: uncorrected}
	if !bytes.Equal(state, again) || asJSON(t, back.shown(none)) != asJSON(t, got) {
		t.Errorf("state of %d bytes became %d", len(state), len(again))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// realScores reads logits of c10jpeg_resnet_logits and their labels. It skips the test if the data is missing.
func realScores(t *testing.T, names ...string) (z [][]float32, labels []int32) {
	t.Helper()
	arrays := realdata.Arrays(t, "c10jpeg_resnet_logits.npz", append(slices.Clone(names), "test_labels")...)
	for _, name := range names {
		z = append(z, arrays[name].F32)
	}
	return z, arrays["test_labels"].Int
}

// TestOnlineIsPacked: what is kept of a new version is the same packed as not, when it grows out of that, and restored.
func TestOnlineIsPacked(t *testing.T) {
	hit, miss := followedRow{conf: .9, told: .8, hit: true}, followedRow{conf: .6, told: .7}
	panes := [][]followedRow{{hit, miss}, nil, {hit}}
	var packed, grown, want online
	if got := want.append(nil); !bytes.Equal(got, []byte{0}) || want.now().shown(servedCorrection{}) != nil {
		t.Errorf("before the first row: %x", got)
	}
	for i, rows := range panes {
		packed.step(rows, true)
		grown.step(rows, i == 0)
		want.step(rows, false)
		if packed.forecasts != nil || packed.packed == nil {
			t.Fatalf("pane %d: those of a new version are not packed", i)
		}
	}
	var restored online
	in := binenc.NewReader(want.append(nil))
	if err := restored.restore(&in); err != nil || in.Len() > 0 {
		t.Fatalf("%v, %d bytes left", err, in.Len())
	}
	for name, got := range map[string]*online{"packed": &packed, "grown": &grown, "restored": &restored} {
		if !bytes.Equal(got.append(nil), want.append(nil)) || got.now().rows != 3 {
			t.Errorf("%s: %d rows %+v, want %+v", name, got.now().rows, got.now(), want.now())
		}
	}
}
