//go:build integration

package integration

import (
	"bytes"
	le "encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/onnx"
	"github.com/plumbline/plumbline/trainer/artefact"
	classifier "github.com/plumbline/plumbline/trainer/head"
)

// TestElsewhere: what other runtimes make of calibrators and heads.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	python := pythonWith(t, "-r", filepath.Join("testdata", "requirements-onnx.txt"))
	t.Run("calibrators", func(t *testing.T) { calibratorsElsewhere(t, python) })
	t.Run("heads", func(t *testing.T) { headsElsewhere(t, python) })
}

// calibratorsElsewhere: every method's calibrator gives the same probabilities in onnxruntime, to 1e-5, and by the
// reference in Python, to 1e-6, with a correction of the top confidence too, on rows of all sizes of logits; and the
// ONNX checker accepts it.
func calibratorsElsewhere(t *testing.T, python string) {
	t.Helper()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 7))
	for _, k := range []int{2, 10} {
		z, y := randomRows(random, 4000, k)
		for _, m := range calibrator.Methods() {
			c, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, k, y, nil), calibrator.Options{})
			if err != nil {
				t.Fatalf("fit %s: %v", m.Name, err)
			}
			writeCase(t, filepath.Join(dir, fmt.Sprintf("%s-%d", m.Name, k)), c, k, wildRows(random, z, k))
		}
		vector, _, err := calibrator.Fit("vector", calibrator.NewData(z, k, y, nil), calibrator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]float64, k)
		for j := range weights {
			weights[j] = math.Exp(random.NormFloat64())
		}
		weighed, err := calibrator.NewClassWeights(vector, weights)
		if err != nil {
			t.Fatal(err)
		}
		writeCase(t, filepath.Join(dir, fmt.Sprintf("class_weights-%d", k)), weighed, k, wildRows(random, z, k))
	}
	cmd := exec.Command(python, "-B", filepath.Join("testdata", "check_calibrators.py"), dir,
		filepath.Join("..", "..", "examples", "calibrate"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("check_calibrators.py: %v\n%s", err, tail(out))
	}
	var got map[string]struct {
		ONNX, Python float64
		NaN          bool
		Rows         int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if want := 2 * (len(calibrator.Methods()) + 1); len(got) != want { // and class weights
		t.Errorf("%d calibrators compared, want %d", len(got), want)
	}
	for name, d := range got {
		t.Logf("%s: %d rows, ONNX %.1g, Python %.1g", name, d.Rows, d.ONNX, d.Python)
		if !(d.ONNX <= 1e-5) || !(d.Python <= 1e-6) || !d.NaN {
			t.Errorf("%s on %d rows: ONNX off by %g (at most 1e-5), Python by %g (1e-6), a NaN stays in its row: %v",
				name, d.Rows, d.ONNX, d.Python, d.NaN)
		}
	}
}

// randomRows are rows of an overconfident classifier that is right more often where it is surer.
func randomRows(random *rand.Rand, n, k int) (z []float32, y []int32) {
	z, y = make([]float32, n*k), make([]int32, n)
	p := make([]float64, k)
	for i := range n {
		for j := range k {
			z[i*k+j] = float32(3 * random.NormFloat64())
			p[j] = float64(z[i*k+j])
		}
		temperature, err := calibrator.NewTemperature(1.7)
		if err != nil {
			panic(err)
		}
		temperature.Apply(p, p)
		u := random.Float64()
		for y[i] = 0; int(y[i]) < k-1 && u > p[y[i]]; y[i]++ {
			u -= p[y[i]]
		}
	}
	return z, y
}

// wildRows adds rows that are hard to compute: ties, equal rows, very sure ones, a wide range.
func wildRows(random *rand.Rand, z []float32, k int) []float32 {
	out := append([]float32(nil), z...)
	for _, scale := range []float64{1e-3, 10, 80} {
		for range 200 {
			for range k {
				out = append(out, float32(scale*(2*random.Float64()-1)))
			}
		}
	}
	for _, top := range []float32{0, 1, 17, 40, 80} {
		for j := range k { // all others tied, and two on top
			row := make([]float32, k)
			row[j], row[(j+k/2)%k] = top, top
			out = append(out, row...)
			row[(j+k/2)%k] = 0
			out = append(out, row...)
		}
	}
	return out
}

func writeCase(t *testing.T, path string, c calibrator.Calibrator, k int, z []float32) {
	t.Helper()
	encoded, err := calibrator.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	model, err := onnx.Calibrator(c)
	if err != nil {
		t.Fatal(err)
	}
	corrected, err := calibrator.Correct(c, calibrator.Correction{Power: 1.3,
		TopCorrection: calibrator.TopCorrection{Slope: .7, Intercept: -.4}})
	if err != nil {
		t.Fatal(err)
	}
	probs := func(c calibrator.Calibrator) (out []byte) {
		p := make([]float64, len(z))
		if err := calibrator.ApplyRows(c, p, z, k, false); err != nil {
			t.Fatal(err)
		}
		for _, v := range p {
			out = le.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
		return out
	}
	text := fmt.Appendf(nil, `{"classes":%d,"calibrator":%s,"top":{"power":1.3,"slope":0.7,"intercept":-0.4}}`, k,
		encoded)
	for kind, b := range map[string][]byte{".json": text, ".onnx": model, ".logits": float32s(z),
		".probs": probs(c), ".top": probs(corrected)} {
		if err := os.WriteFile(path+kind, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// headsElsewhere: a head gives the same logits in onnxruntime and from its safetensors file in NumPy, as far as
// float32 sums in another order can.
func headsElsewhere(t *testing.T, python string) {
	t.Helper()
	const n, temperature = 100, 1.7
	dir, h, random := t.TempDir(), classifier.Bottleneck(64, 32, 10, 5), rand.New(rand.NewPCG(2, 3))
	x := make([]float32, n*h.D())
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	z := classifier.NewPass(h, n, classifier.Gonum{}).Forward(h, x, n)
	model, err := artefact.ONNX(h, temperature, map[string]string{"recipe": "au"})
	if err != nil {
		t.Fatal(err)
	}
	var tensors bytes.Buffer
	if err := artefact.WriteSafetensors(&tensors, h, map[string]string{"recipe": "au"}); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"head.onnx": model, "head.safetensors": tensors.Bytes(),
		"features": float32s(x), "logits": float32s(z)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, "-B", filepath.Join("testdata", "check_head.py"), dir, fmt.Sprint(temperature))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("check_head.py: %v\n%s", err, tail(out))
	}
	var got struct {
		ONNX, Safetensors, Probabilities float64
		Meta                             map[string]string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if !(got.ONNX <= 1e-5) || !(got.Safetensors <= 1e-5) || !(got.Probabilities <= 1e-5) || got.Meta["recipe"] != "au" {
		t.Errorf("differences at most 1e-5 and the metadata are wanted, got %s", out)
	}
}

func float32s(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = le.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
