package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/head"
)

// trainOutput is what the tests read of the report.
type trainOutput struct {
	D, K     int
	Rows     map[string]any
	Recipe   string
	Backend  string
	Training *struct {
		Config json.RawMessage
		Best   int
		Epochs []struct{ Epoch int }
	}
	Auto *struct {
		Chosen string
		Tried  []struct{ Name string }
	}
	Temperature float64
	Changed     bool
	Tempered    bool
	Validation  trainScores
	Holdout     *trainScores
}

type trainScores struct {
	Before, After map[string]any
	Difference    map[string]float64 `json:"nll_difference"`
}

func trainJSON(t *testing.T, args ...string) (out trainOutput) {
	t.Helper()
	stdout := run(t, append([]string{"train", "--json", "--log-level", "error", "--threads", "1"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return out
}

// trainTable has features of five clusters, the logits of a poor head on them, and times that run backwards.
func trainTable(n int) (*table.Table, *head.Head) {
	rows := conformance.Rows(n, 3)
	h := head.FreshLinear(rows.D, rows.K, 9)
	t := &table.Table{N: n, K: rows.K, D: rows.D, Features: rows.X, Label: slices.Clone(rows.Y),
		Scores32: slices.Clone(head.NewPass(h, n, head.Gonum{}).Forward(h, rows.X, n))}
	for i := range n {
		t.TS = append(t.TS, 1_700_000_000_000_000_000-int64(i)*1e9)
	}
	return t, h
}

func writeHead(t *testing.T, h *head.Head) string {
	t.Helper()
	var b bytes.Buffer
	if err := artefact.WriteSafetensors(&b, h, nil); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "head.safetensors", b.String())
}

func readHead(t *testing.T, file string) *head.Head {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, _, err := artefact.ReadSafetensors(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// nllOf is the mean NLL of rows by the definition.
func nllOf(h *head.Head, x []float32, y []int32) float64 {
	n := len(y)
	z := head.NewPass(h, n, head.Gonum{}).Forward(h, x, n)
	var sum float64
	for i, label := range y {
		var s float64
		for _, v := range z[i*h.K() : (i+1)*h.K()] {
			s += math.Exp(float64(v))
		}
		sum += math.Log(s) - float64(z[i*h.K()+int(label)])
	}
	return sum / float64(n)
}

// TestTrainFiles: from every format, the head that is written has the NLL of the report on the newest rows, which are
// the file's first.
func TestTrainFiles(t *testing.T) {
	table, current := trainTable(300)
	headFile := writeHead(t, current)
	var first []byte
	for _, name := range []string{"a.arrow", "a.arrows", "a.parquet", "a.csv", "a.npz"} {
		dir := filepath.Join(t.TempDir(), "new", "head")
		got := trainJSON(t, writeTable(t, name, table), "--head", headFile, "--recipe", "ce", "--epochs", "8",
			"--holdout", "0.3", "-o", dir)
		h := readHead(t, filepath.Join(dir, "head.safetensors"))
		held := 90 // the newest 30 %
		x, y := table.Features[:held*table.D], table.Label[:held]
		for _, c := range []struct {
			what string
			h    *head.Head
			got  map[string]any
		}{{"before", current, got.Holdout.Before}, {"after", h, got.Holdout.After}} {
			if want := nllOf(c.h, x, y); math.Abs(c.got["nll"].(float64)-want) > 1e-5 {
				t.Errorf("%s: NLL %s is %v, want %v", name, c.what, c.got["nll"], want)
			}
		}
		d := got.Holdout.Difference
		want := got.Holdout.After["nll"].(float64) - got.Holdout.Before["nll"].(float64)
		if math.Abs(d["mean"]-want) > 1e-5 || d["hi"] >= 0 {
			t.Errorf("%s: difference %v, want %v, below 0", name, d, want)
		}
		if got.D != 7 || got.K != 5 || got.Rows["order"] != "time" || got.Rows["train"] != 168. ||
			got.Rows["validation"] != 42. || got.Rows["held_out"] != 90. {
			t.Errorf("%s: got %+v", name, got)
		}
		model, err := os.ReadFile(filepath.Join(dir, "head.onnx"))
		if err != nil || !bytes.Contains(model, []byte("Gemm")) || !bytes.Contains(model, []byte("Softmax")) {
			t.Errorf("%s: head.onnx: %v, %d bytes", name, err, len(model))
		}
		curves, err := os.ReadFile(filepath.Join(dir, "curves.png"))
		if err != nil || !bytes.HasPrefix(curves, []byte("\x89PNG")) {
			t.Errorf("%s: curves.png: %v", name, err)
		}
		var report trainOutput
		text, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err != nil || json.Unmarshal(text, &report) != nil ||
			report.Holdout.After["nll"] != got.Holdout.After["nll"] {
			t.Errorf("%s: report.json: %v, %s", name, err, text)
		}
		weights, err := os.ReadFile(filepath.Join(dir, "head.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = weights
		} else if !bytes.Equal(weights, first) {
			t.Errorf("%s: another head than from the first format", name)
		}
	}
}

// npyText is an array as a file.
func npyText(descr, shape string, values any) string {
	var b bytes.Buffer
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape)
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	b.WriteString(header)
	order := binary.ByteOrder(binary.LittleEndian)
	if descr[0] == '>' {
		order = binary.BigEndian
	}
	if err := binary.Write(&b, order, values); err != nil {
		panic(err)
	}
	return b.String()
}

func writeNPZ(t *testing.T, compress bool, arrays map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		method := zip.Store
		if compress {
			method = zip.Deflate
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, arrays[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "a.npz", b.String())
}

// TestTrainArrays: features of every float type, labels of several integer types, times in any unit; fewer features
// than classes; the head of an npz.
func TestTrainArrays(t *testing.T) {
	const n, k = 60, 4 // 2 features
	var half []uint16
	var single []float32
	var double []float64
	var small []uint8
	var wide []int64
	var ts []int64
	for i := range n {
		for j := range 2 {
			bits := []uint16{0x3c00, 0xbc00, 0x4000, 0, 0x3800}[(i*(j+2)+i/7)%5] // 1, -1, 2, 0, 0.5
			v := map[uint16]float64{0x3c00: 1, 0xbc00: -1, 0x4000: 2, 0: 0, 0x3800: 0.5}[bits]
			half, single, double = append(half, bits), append(single, float32(v)), append(double, v)
		}
		small, wide, ts = append(small, uint8(i*i%k)), append(wide, int64(i*i%k)), append(ts, int64(1000-i))
	}
	w, bias := []float32{1, 0, 0, 1, -1, 0, 0, -1}, []float32{0, 0, 0, 0.5}
	var first map[string]any
	for i, c := range []map[string]string{
		{"f": npyText("<f2", "60, 2", half), "y": npyText("|u1", "60,", small)},
		{"f": npyText("<f4", "60, 2", single), "y": npyText("<i8", "60,", wide)},
		{"f": npyText("<f8", "60, 2", double), "y": npyText("<i8", "60,", wide), "ts": npyText("<M8[ms]", "60,", ts)},
		{"f": npyText(">f4", "60, 2", single), "y": npyText(">i8", "60,", wide)},
	} {
		c["W"], c["b"] = npyText("<f4", "4, 2", w), npyText("<f4", "4,", bias)
		file := writeNPZ(t, i == 1 || i == 2, c)
		got := trainJSON(t, file+":f", "--head", file, "--recipe", "ce", "--epochs", "3", "--holdout", "0.25")
		if want := []string{"file", "file", "time", "file"}[i]; got.Rows["order"] != want || got.K != k || got.D != 2 {
			t.Errorf("%d: got %+v", i, got)
		}
		switch {
		case i == 0:
			first = got.Holdout.After
		case i != 2 && got.Holdout.After["nll"] != first["nll"]:
			t.Errorf("file %d: NLL %v, want %v as of float16", i, got.Holdout.After["nll"], first["nll"])
		case i == 2 && got.Holdout.After["nll"] == first["nll"]:
			t.Error("times that run backwards change nothing")
		}
	}
	y := npyText("|u1", "60,", small)
	for _, c := range []struct {
		arrays map[string]string
		args   []string
		want   string
	}{
		{map[string]string{"y": y}, nil, `no array "f"; there are: y`},
		{map[string]string{"f": npyText("<f2", "60, 2", half)}, nil,
			"no labels: none of the arrays label, labels, y; there are: f; --labels names one"},
		{map[string]string{"f": npyText("<f2", "60, 2", half), "y": y}, []string{"--labels", "l"},
			`no array "l"; there are: f, y`},
		{map[string]string{"f": npyText("<f2", "120,", half), "y": y}, nil,
			"array f of type float16 has shape [120], allowed are floats of N×D"},
		{map[string]string{"f": npyText("<f2", "60, 3", half), "y": y}, nil,
			"array f: 240 bytes for 180 elements of 2 bytes"},
		{map[string]string{"f": npyText("<f2", "999999999999, 2", half), "y": y}, nil,
			"array f: shape (999999999999, 2)"},
		{map[string]string{"f": npyText("<f2", "60, 2", half), "y": npyText("|u1", "59,", small[:59])}, nil,
			"array y of type uint8 has shape [59], allowed are 60 integers"},
		{map[string]string{"f": npyText("<f2", "60, 2", half), "y": npyText("|i1", "60,",
			append([]int8{-2}, make([]int8, 59)...))}, nil, "array y: label -2 at row 0"},
		{map[string]string{"f": "\x93NUMPY", "y": y}, nil, "array f: not in the .npy format"},
	} {
		code, _, stderr := runCommand(t, append([]string{"train", writeNPZ(t, false, c.arrays) + ":f", "--recipe",
			"bottleneck"}, c.args...)...)
		if code != exitFailed || !strings.Contains(stderr, c.want) {
			t.Errorf("got exit code %d, %q, want %q", code, stderr, c.want)
		}
	}
}

// TestTrainBackends agree, and the seed decides.
func TestTrainBackends(t *testing.T) {
	table, current := trainTable(200)
	file, headFile := writeTable(t, "a.parquet", table), writeHead(t, current)
	nll := func(args ...string) float64 {
		return trainJSON(t, append([]string{file, "--head", headFile, "--recipe", "maccal", "--epochs", "4"},
			args...)...).Validation.After["nll"].(float64)
	}
	a, plain, other := nll(), nll("--blas", "gonum"), nll("--seed", "1")
	if math.Abs(a-plain) > 1e-3 || math.Abs(a-other) < 1e-6 {
		t.Errorf("NLL %v, %v with gonum's products; another seed %v", a, plain, other)
	}
	if backends.Check(backends.Gorgonia) != nil {
		code, _, stderr := runCommand(t, "train", file, "--head", headFile, "--backend", "gorgonia")
		if code != exitUsage || !strings.Contains(stderr, "plumbline-train does (make plumbline-train") {
			t.Errorf("gorgonia where it is not linked: exit code %d, %s", code, stderr)
		}
		return
	}
	if b := nll("--backend", "gorgonia"); math.Abs(a-b) > 1e-3 {
		t.Errorf("NLL %v by go, %v by gorgonia", a, b)
	}
}

// lateCancel is a context that is cancelled after it was asked a number of times.
type lateCancel struct {
	context.Context
	left int
}

func (c *lateCancel) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestTrainResume: interrupted between epochs and resumed, the head has the same bits.
func TestTrainResume(t *testing.T) {
	table, current := trainTable(120)
	file, headFile := writeTable(t, "a.arrow", table), writeHead(t, current)
	dir := t.TempDir()
	args := func(out string, more ...string) []string {
		return append([]string{"train", file, "--head", headFile, "--recipe", "maccal", "--epochs", "9", "--json",
			"--log-level", "error",
			"-o", filepath.Join(dir, out)}, more...)
	}
	checkpoint := filepath.Join(dir, "run.ckpt")
	run(t, args("whole")...)
	var stdout, stderr bytes.Buffer
	code := execute(&lateCancel{context.Background(), 5}, args("never", "--checkpoint", checkpoint), &stdout, &stderr)
	if _, err := os.Stat(filepath.Join(dir, "never")); code != exitFailed || err == nil ||
		!strings.Contains(stderr.String(), "interrupted: --resume goes on from --checkpoint "+checkpoint) {
		t.Fatalf("got exit code %d, %v, %q", code, err, stderr.String())
	}
	if code, _, stderr := runCommand(t, args("x", "--checkpoint", checkpoint)...); code != exitFailed ||
		!strings.Contains(stderr, "run.ckpt: the file is there; --force replaces it, --resume goes on from it") {
		t.Errorf("got exit code %d, %q", code, stderr)
	}
	if code, _, stderr := runCommand(t, args("x", "--checkpoint", checkpoint, "--resume", "--rate",
		"0.5")...); code != exitFailed || !strings.Contains(stderr, "of another configuration, rows or head") {
		t.Errorf("got exit code %d, %q", code, stderr)
	}
	var report trainOutput
	if err := json.Unmarshal([]byte(run(t, args("resumed", "--checkpoint", checkpoint, "--resume")...)),
		&report); err != nil || len(report.Training.Epochs) != 9 {
		t.Fatalf("%v, %+v", err, report)
	}
	want, err := os.ReadFile(filepath.Join(dir, "whole", "head.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "resumed", "head.safetensors"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: the resumed head is another one", err)
	}
}

// TestTrainAuto: the head is the one that was chosen, and that was tried.
func TestTrainAuto(t *testing.T) {
	table, current := trainTable(240)
	dir := filepath.Join(t.TempDir(), "out")
	file := writeTable(t, "a.npz", table)
	got := trainJSON(t, file, "--head", writeHead(t, current), "--epochs", "6", "-o", dir)
	if len(got.Auto.Tried) != 7 || // cross-entropy at three rates and with more decay, AU, MaC-Cal, bottleneck
		!slices.ContainsFunc(got.Auto.Tried, func(s struct{ Name string }) bool { return s.Name == got.Auto.Chosen }) ||
		!got.Changed || got.Training != nil {
		t.Errorf("got %+v", got)
	}
	x, y := table.Features[:48*table.D], table.Label[:48]
	if want := nllOf(readHead(t, filepath.Join(dir, "head.safetensors")), x,
		y); math.Abs(got.Validation.After["nll"].(float64)-want) > 1e-5 {
		t.Errorf("NLL %v, want %v", got.Validation.After["nll"], want)
	}
	text := run(t, "train", file, "--head", writeHead(t, current), "--epochs", "2", "--log-level", "error")
	for _, want := range []string{"192 rows train, 48 validate, 0 are held out, by time", "2 standard errors",
		"chosen: ", "nll, validation"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
}

// TestTrainUnchanged: where nothing is shown to be better than the current head, the command says so, ends with 0, and
// writes nothing unless it is asked to.
func TestTrainUnchanged(t *testing.T) {
	table, current := trainTable(240)
	file, headFile := writeTable(t, "a.npz", table), writeHead(t, current)
	for _, recipe := range []string{"auto", "ce"} {
		dir := filepath.Join(t.TempDir(), "out")
		args := []string{"train", file, "--head", headFile, "--recipe", recipe, "--epochs", "1", "--batch", "100000",
			"--momentum", "0", "-o", dir}
		if recipe == "ce" {
			args = append(args, "--rate", "0")
		}
		// Labels that no feature tells.
		for i := range table.Label {
			table.Label[i] = int32(i % table.K)
		}
		args[1] = writeTable(t, "noise.npz", table)
		text := run(t, args...)
		if !strings.Contains(text, "unchanged: nothing was shown to be better") {
			t.Errorf("%s: got %q", recipe, text)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s was written", recipe, dir)
		}
		var got struct {
			Changed *bool
			Output  string
		}
		out := run(t, append(args, "--json", "--write-unchanged")...)
		err := json.Unmarshal([]byte(out), &got)
		if err != nil || got.Changed == nil || *got.Changed || got.Output != dir {
			t.Errorf("%s: %v in %s", recipe, err, out)
		}
		if h := readHead(t, filepath.Join(dir, "head.safetensors")); !slices.Equal(h.Layers[0].W, current.Layers[0].W) {
			t.Errorf("%s: another head was written", recipe)
		}
	}
}

// TestTrainUnknown: rows of no known class are told from the others by the confidence of the heads.
func TestTrainUnknown(t *testing.T) {
	table, current := trainTable(240)
	file, headFile := writeTable(t, "a.npz", table), writeHead(t, current)
	for i := range table.Features {
		table.Features[i] = 0 // every class alike
	}
	for i := range table.Label {
		table.Label[i] = int32(table.K + i%2)
	}
	unknown := writeTable(t, "unknown.npz", table)
	var got struct {
		Unknown struct {
			Rows          int
			Before, After struct{ AUROC, FPR95 float64 }
		}
	}
	out := run(t, "train", file, "--head", headFile, "--recipe", "ce", "--epochs", "30", "--ood", unknown, "--json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if u := got.Unknown; u.Rows != 240 || u.After.AUROC < 0.6 || u.After.AUROC > 1 || u.Before.AUROC == 0 {
		t.Errorf("got %+v", u)
	}
	if text := run(t, "train", file, "--head", headFile, "--recipe", "ce", "--epochs", "1", "--ood",
		unknown); !strings.Contains(text, "auroc, unknown rows") {
		t.Errorf("got %q", text)
	}
}

// TestTrainRecipeFile: the settings in a report are a recipe.
func TestTrainRecipeFile(t *testing.T) {
	table, current := trainTable(100)
	file, headFile := writeTable(t, "a.arrow", table), writeHead(t, current)
	a := trainJSON(t, file, "--head", headFile, "--loss", "focal{gamma:2} + 0.5*savuc", "--epochs", "5", "--batch",
		"16", "--mixup", "0.5",
		"--interleave", "sbece", "--temper", "--tempered", "--seed", "4")
	b := trainJSON(t, file, "--head", headFile, "--recipe", writeFile(t, "r.json", string(a.Training.Config)), "--seed",
		"4", "--temper")
	if a.Validation.After["nll"] != b.Validation.After["nll"] || !bytes.Equal(a.Training.Config, b.Training.Config) {
		t.Errorf("got %s, want %s", b.Training.Config, a.Training.Config)
	}
	if !strings.Contains(string(a.Training.Config), `"interleave"`) || !strings.Contains(string(a.Training.Config),
		`"batch": 16`) {
		t.Errorf("settings are not in %s", a.Training.Config)
	}
	fresh := trainJSON(t, file, "--loss", "ce", "--from", "bottleneck", "--width", "6", "--epochs", "3")
	if fresh.Validation.Before != nil || fresh.Validation.Difference != nil || fresh.Training.Best == 0 {
		t.Errorf("a fresh head: %+v", fresh)
	}
}

// TestTrainRowsLeftOut: rows without label or features are counted and not used.
func TestTrainRowsLeftOut(t *testing.T) {
	table, current := trainTable(100)
	table.TS = nil
	for i := range 10 {
		table.Label[3*i] = -1
	}
	table.Features[50*table.D] = float32(math.NaN())
	headFile := writeHead(t, current)
	got := trainJSON(t, writeTable(t, "a.csv", table), "--head", headFile, "--recipe", "ce", "--epochs", "1",
		"--max-rows", "40", "--balance", "2")
	if r := got.Rows; r["unlabelled"] != 10. || r["no_features"] != 1. || r["order"] != "file" || r["rows"] != 89. ||
		r["too_old"] != 31. || r["train"].(float64)+r["balanced"].(float64) != 40 {
		t.Errorf("got %v", got.Rows)
	}
	random := trainJSON(t, writeTable(t, "a.csv", table), "--head", headFile, "--recipe", "ce", "--epochs", "1",
		"--split", "random")
	if random.Rows["order"] != "random" || random.Validation.After["nll"] == got.Validation.After["nll"] {
		t.Errorf("got %v", random.Rows)
	}
	other, _ := trainTable(60)
	files := trainJSON(t, writeTable(t, "a.csv", table), "--head", headFile, "--recipe", "ce", "--epochs", "1",
		"--validation", writeTable(t, "v.arrow", other), "--holdout", writeTable(t, "h.arrow", other))
	if files.Rows["train"] != 89. || files.Rows["validation"] != 60. ||
		files.Holdout.After["nll"] != files.Validation.After["nll"] {
		t.Errorf("got %v", files.Rows)
	}
}

func TestTrainRefuses(t *testing.T) {
	table, current := trainTable(50)
	file, headFile := writeTable(t, "a.arrow", table), writeHead(t, current)
	bare := writeFile(t, "bare.csv", fourRows)
	table.Label = nil
	unlabelled := writeTable(t, "u.arrow", table)
	wide, wideHead := writeTable(t, "wide.arrow", fullTable(20, 5, false, false)), []string{"--head", headFile}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "head.onnx"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "takes FILE[:array]; got nothing"},
		{[]string{file}, exitUsage, "--recipe auto starts from the current head: --head FILE is needed"},
		{[]string{file, "--recipe", "mccal"}, exitUsage,
			`--recipe "mccal": allowed are auto, ce, au, maccal, maccal_printed, tst, vtst, balcal, plp, ` +
				`bottleneck and a .json file`},
		{[]string{file, "--recipe", writeFile(t, "r.json", `{"los":"ce"}`)}, exitUsage, `unknown field "los"`},
		{[]string{file, "--recipe", writeFile(t, "r.json", `{"loss":"ce"} 1`)}, exitUsage, "text after the object"},
		{[]string{file, "--recipe", "nowhere.json"}, exitUsage, "nowhere.json: no such file"},
		{[]string{file, "--recipe", "maccal", "--loss", "focl"}, exitUsage, "focl"},
		{[]string{file, "--recipe", "maccal", "--loss", "focal{gamma:-1}"}, exitUsage, "gamma"},
		{[]string{file, "--recipe", "maccal", "--rate", "-1"}, exitUsage, "lr -1, allowed 0..1000000"},
		{[]string{file, "--recipe", "maccal", "--epochs", "0"}, exitUsage, "epochs 0, allowed 1..1000000"},
		{[]string{file, "--recipe", "maccal", "--schedule", "sine"}, exitUsage,
			`kind "sine", allowed constant, cosine, linear, steps`},
		{[]string{file, "--recipe", "bottleneck", "--gamma", "1"}, exitUsage,
			"--gamma 1: a setting of maccal, which is not asked for"},
		{[]string{file, "--recipe", "bottleneck", "--interleave-share", "0.5"}, exitUsage,
			"--interleave-share 0.5: needs --interleave"},
		{append([]string{file, "--rate", "1"}, wideHead...), exitUsage, "--rate: not with --recipe auto"},
		{append([]string{file, "--checkpoint", "x"}, wideHead...), exitUsage, "--checkpoint x: not with --recipe auto"},
		{append([]string{file, "--resume"}, wideHead...), exitUsage, "--resume: needs --checkpoint"},
		{[]string{file, "--recipe", "maccal", "--backend", "torch"}, exitUsage, `--backend "torch": allowed are go`},
		{[]string{file, "--recipe", "maccal", "--blas", "mkl"}, exitUsage,
			`--blas "mkl": allowed are auto, openblas and gonum`},
		{[]string{file, "--recipe", "maccal", "--threads", "-1"}, exitUsage, "--threads -1: allowed are 0 and more"},
		{[]string{file, "--recipe", "maccal", "--split", "class"}, exitUsage,
			`--split "class": allowed are time and random`},
		{[]string{file, "--recipe", "maccal", "--validation", "1"}, exitUsage,
			"--validation 1: a share must be between 0 and 1"},
		{[]string{file, "--recipe", "maccal", "--holdout", "0"}, exitUsage,
			"--holdout 0: a share must be between 0 and 1"},
		{[]string{file, "--recipe", "maccal", "--balance", "0.5"}, exitUsage, "balance 0.5"},
		{[]string{file, "--recipe", "maccal", "--metric-bins", "0"}, exitUsage, "--metric-bins 0: allowed 1..65536"},
		{[]string{file, "--recipe", "maccal", "--max-rows", "-1"}, exitUsage, "--max-rows -1, allowed 0"},
		{[]string{file, "--recipe", "maccal", "--classes", "1"}, exitUsage, "--classes 1: allowed are 0 and 2..131072"},
		{[]string{file, "--recipe", "maccal", "--classes", "3"}, exitFailed, "allowed 0..2"},
		{[]string{file, "--recipe", "maccal", "--holdout", "0.99"}, exitFailed,
			"--holdout 0.99 of 50 rows is 50, allowed 1..48"},
		{[]string{file, "--head", "head.bin"}, exitUsage, "--head head.bin: allowed are files .safetensors and .npz"},
		{[]string{file, "--head", "head"}, exitUsage, "--head head: allowed are files .safetensors and .npz"},
		{[]string{file, "--head", filepath.Join(dir, "no.safetensors")}, exitFailed, "no.safetensors: no such file"},
		{[]string{file, "--head", writeFile(t, "bad.safetensors", "12345678{")}, exitFailed,
			"bad.safetensors: safetensors: "},
		{[]string{file, "--head", writeFile(t, "bad.npz", "PK")}, exitFailed, "bad.npz: "},
		{[]string{file, "--recipe", "ce", "--head", writeTable(t, "t.npz", fullTable(5, 2, false, false))}, exitFailed,
			`no array "W"; there are: `},
		{append([]string{wide}, wideHead...), exitFailed, "wide.arrow: 2 features a row, --head " + headFile +
			" takes 7"},
		{append([]string{file, "--holdout", wide}, wideHead...), exitFailed, "wide.arrow: 2 features a row, " + file +
			" has 7"},
		{append([]string{bare}, wideHead...), exitFailed, "bare.csv: no features: a column features is needed"},
		{append([]string{unlabelled}, wideHead...), exitFailed, "u.arrow: no labels: a column label is needed"},
		{append([]string{file, "-o", file}, wideHead...), exitFailed, "a.arrow: not a directory"},
		{append([]string{file, "-o", dir}, wideHead...), exitFailed,
			"head.onnx: the file is there; --force replaces it"},
		{append([]string{file, "--loss", "ce", "--rate", "1e6", "--weight-decay", "1000"}, wideHead...), exitFailed,
			"training diverged"},
	} {
		code, out, stderr := runCommand(t, append([]string{"train"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || out != "" {
			t.Errorf("train %q: got exit code %d, stdout %q, stderr %q, want %d and %q", c.args, code, out, stderr,
				c.code, c.want)
		}
	}
}

// TestTrainRealDrift: cross-entropy on noisy images is known to reach 74.5 % and an ECE near the floor, from 55 %.
func TestTrainRealDrift(t *testing.T) {
	file := realdata.File(t, "c10jpeg_resnet20_features.npz")
	for _, backend := range []string{backends.Go, backends.Gorgonia} {
		if backends.Check(backend) != nil {
			continue
		}
		got := trainJSON(t, file+":gauss_noise_s1_f", "--labels", "test_labels", "--head", file, "--recipe", "ce",
			"--holdout", "0.5", "--seed", "1", "--backend", backend)
		before, after, ece := got.Holdout.Before["accuracy"].(float64), got.Holdout.After["accuracy"].(float64),
			got.Holdout.After["ece"].(float64)
		t.Logf("%s: accuracy %.4f -> %.4f, ECE %.4f", backend, before, after, ece)
		if math.Abs(before-0.5512) > 1e-3 || after < 0.74 || ece > 0.02 || got.Rows["order"] != "file" ||
			got.Rows["train"] != 4000. {
			t.Errorf("%s: %+v, %v", backend, got.Holdout, got.Rows)
		}
	}
}
