package digits

import (
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/testsize"
)

const testSeed = 1

// measured is what a monitor would see of some rows.
type measured struct{ accuracy, confidence, ece, nll float64 }

// probs returns the softmax of logits divided by a temperature.
func probs(logits [Classes]float32, temperature float64) [Classes]float64 {
	var z [Classes]float64
	for k, v := range logits {
		z[k] = float64(v) / temperature
	}
	return softmax(z)
}

// measure scores rows at a temperature: accuracy, mean confidence, NLL in nats and 15-bin equal-width ECE.
func measure(rows []Row, temperature float64) measured {
	const bins = 15
	var n, hits, conf [bins]float64
	var m measured
	for _, r := range rows {
		p := probs(r.Logits, temperature)
		top := 0
		for k := range p {
			if p[k] > p[top] {
				top = k
			}
		}
		b := min(bins-1, max(0, int(math.Ceil(p[top]*bins))-1))
		n[b]++
		conf[b] += p[top]
		if int32(top) == r.Label {
			hits[b]++
			m.accuracy++
		}
		m.confidence += p[top]
		m.nll -= math.Log(max(p[r.Label], math.SmallestNonzeroFloat64))
	}
	for b := range n {
		m.ece += math.Abs(hits[b] - conf[b])
	}
	total := float64(len(rows))
	return measured{m.accuracy / total, m.confidence / total, m.ece / total, m.nll / total}
}

// fitTemperature minimises the NLL over a grid of temperatures 2 % apart.
func fitTemperature(rows []Row) float64 {
	best, at := math.Inf(1), 1.0
	for t := 0.3; t < 8; t *= 1.02 {
		if m := measure(rows, t); m.nll < best {
			best, at = m.nll, t
		}
	}
	return at
}

func take(s *Stream, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		s.Next(&rows[i])
	}
	return rows
}

func trained(t *testing.T, seed uint64) (*Network, Set, Set) {
	t.Helper()
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	train, held := set.Split(seed)
	return Train(train, seed), train, held
}

func TestLoad(t *testing.T) {
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	// The counts by class that UCI gives for the test set.
	want := [Classes]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}
	var got [Classes]int
	for _, y := range set.Labels {
		got[y]++
	}
	if got != want {
		t.Errorf("images by class: got %v, want %v", got, want)
	}
	// The first row of the first image, a zero, in the UCI file: 0,0,5,13,9,1,0,0.
	for i, v := range []float64{0, 0, 5, 13, 9, 1, 0, 0} {
		if set.Images[0][i]*16 != v {
			t.Errorf("pixel %d of image 0: got %v, want %v", i, set.Images[0][i]*16, v)
		}
	}
	train, held := set.Split(testSeed)
	if len(train.Images) != 898 || len(held.Images) != 899 {
		t.Errorf("split: got %d and %d images, want 898 and 899", len(train.Images), len(held.Images))
	}
	seen := map[Image]bool{}
	for _, img := range train.Images {
		seen[img] = true
	}
	for i, img := range held.Images {
		if seen[img] {
			t.Errorf("held-out image %d is in the training half too", i)
		}
	}
}

// TestDrift measures what the demo relies on: the network is calibrated before the change, overconfident after it,
// and a temperature fitted on changed rows mends most of that on later ones.
func TestDrift(t *testing.T) {
	testsize.Slow(t)
	const rows, fit = 12000, 4000
	for seed := uint64(1); seed <= 3; seed++ {
		begin := time.Now()
		net, _, held := trained(t, seed)
		took := time.Since(begin)
		stream := NewStream(net, held, StreamOptions{Seed: seed, ShiftAt: rows})
		clean := measure(take(stream, rows), 1)
		shifted := take(stream, rows)
		temperature := fitTemperature(shifted[:fit])
		raw, mended := measure(shifted[fit:], 1), measure(shifted[fit:], temperature)
		t.Logf("seed %d: trained in %v; accuracy, confidence, ECE, NLL: clean %.4f, shifted %.4f, at T = %.2f %.4f",
			seed, took.Round(time.Millisecond), clean, raw, temperature, mended)

		within(t, "clean accuracy", clean.accuracy, 0.93, 0.98)
		within(t, "clean ECE", clean.ece, 0, 0.02)
		within(t, "shifted accuracy", raw.accuracy, 0.60, 0.75)
		within(t, "shifted ECE", raw.ece, 0.12, 0.25)
		within(t, "temperature", temperature, 1.3, 3)
		within(t, "mended ECE", mended.ece, 0, 0.25*raw.ece)
	}
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s: got %.4f, want in [%.4f, %.4f]", what, got, low, high)
	}
}

func TestStream(t *testing.T) {
	net, _, held := trained(t, testSeed)
	n := len(held.Images)
	opts := StreamOptions{Seed: testSeed, ShiftAt: int64(n)}
	a, b := take(NewStream(net, held, opts), 2*n), take(NewStream(net, held, opts), 2*n)
	opts.Seed++
	other := take(NewStream(net, held, opts), 2*n)
	same, devices, classes := 0, map[string]int{}, [2]map[int32]int{{}, {}}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("row %d: got %+v and %+v from equal options", i, a[i], b[i])
		}
		if a[i].Shifted != (i >= n) {
			t.Errorf("row %d: shifted is %v, want it from row %d on", i, a[i].Shifted, n)
		}
		if a[i].Logits == other[i].Logits {
			same++
		}
		devices[a[i].Device]++
		classes[i/n][a[i].Label]++
	}
	if same > 0 {
		t.Errorf("another seed gave %d equal rows, want 0", same)
	}
	if devices["A"]+devices["B"] != 2*n || devices["A"] < n*8/10 || devices["B"] < n*8/10 {
		t.Errorf("devices: got %v, want A and B about equally often", devices)
	}
	for k := range int32(Classes) {
		if classes[0][k] != classes[1][k] {
			t.Errorf("class %d: got %d and %d rows in two passes over the images, want equally many", k, classes[0][k],
				classes[1][k])
		}
	}
}

func TestFeaturesGiveLogits(t *testing.T) {
	net, train, _ := trained(t, testSeed)
	features, logits := net.Forward(&train.Images[0])
	for k := range logits {
		want := net.b2[k]
		for j, h := range features {
			want += net.w2[k][j] * h
		}
		if math.Abs(logits[k]-want) > 1e-12 {
			t.Errorf("logit %d: got %v, want %v from the features", k, logits[k], want)
		}
	}
}

func TestGradient(t *testing.T) {
	net, train, _ := trained(t, testSeed)
	img, y := &train.Images[3], (train.Labels[3]+1)%Classes
	loss := func() float64 {
		_, z := net.Forward(img)
		return -math.Log(softmax(z)[y])
	}
	var grad Network
	net.backward(&grad, img, y)
	const h = 1e-5 // central differences: error about h² plus 1e-16/h
	check := func(what string, at *float64, got float64) {
		was := *at
		*at = was + h
		up := loss()
		*at = was - h
		down := loss()
		*at = was
		if want := (up - down) / (2 * h); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("d loss/d %s: got %v, want %v", what, got, want)
		}
	}
	for j := range net.w1 {
		check("b1", &net.b1[j], grad.b1[j])
		check("w1", &net.w1[j][27], grad.w1[j][27])
		check("w2", &net.w2[y][j], grad.w2[y][j])
	}
	check("b2", &net.b2[y], grad.b2[y])
}

func TestRotate(t *testing.T) {
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	img := set.Images[7]
	if got := Rotate(&img, 0); got != img {
		t.Errorf("rotation by 0°: got %v, want %v", got, img)
	}
	got := Rotate(&img, 90)
	for y := range Side {
		for x := range Side {
			if want := img[(Side-1-x)*Side+y]; math.Abs(got[y*Side+x]-want) > 1e-12 {
				t.Errorf("rotation by 90° at (%d,%d): got %v, want %v", x, y, got[y*Side+x], want)
			}
		}
	}
}

func TestOcclude(t *testing.T) {
	var img Image
	for i := range img {
		img[i] = 1
	}
	out := Occlude(&img, 5, 6, 2)
	for i, v := range out {
		x, y := i%Side, i/Side
		hidden := x >= 5 && x < 7 && y >= 6 && y < 8
		if hidden != (v == 0) {
			t.Errorf("pixel (%d,%d): got %v, want hidden %v", x, y, v, hidden)
		}
	}
}
