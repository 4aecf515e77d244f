package oracle_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// commands are run in their order, in a directory with the files of writeFiles. What they print is compared, and the
// files that they write.
var commands = []struct{ name, args, files string }{
	{"eval", "eval val.csv", ""},
	{"eval-json", "eval val.csv --json", ""},
	{"eval-detail", "eval val.arrows --json --detail --bins 10", ""},
	{"eval-uncertainty", "eval val.npz:logits --labels y --uncertainty --resamples 50 --seed 3", ""},
	{"eval-uncertainty-json", "eval val.npz:logits --labels y --uncertainty --resamples 50 --seed 3 --json", ""},
	{"eval-by", "eval val.csv --by region", ""},
	{"eval-by-json", "eval val.csv --by region --json --no-weights", ""},
	{"eval-two", "eval val.csv test.csv --csf margin --soft-bins 10 --norm 1", ""},
	{"eval-two-json", "eval val.csv test.csv --csf negent --json", ""},
	{"eval-probs", "eval probs.npz --json", ""},
	{"eval-bad-by", "eval val.csv --by city", ""},
	{"eval-no-file", "eval none.csv", ""},
	{"eval-bad-row", "eval bad.csv", ""},
	{"fit", "fit val.csv -o temperature.json", "temperature.json"},
	{"fit-compare", "fit val.csv -m all --holdout test.csv -o best.json --seed 5", "best.json"},
	{"fit-compare-json", "fit val.csv -m all --holdout 0.3 --seed 5 --json --skip metacal_accuracy", ""},
	{"fit-folds", "fit test.csv -m temperature,vector,isotonic,beta --folds 4 --loss-scaling both --seed 2", ""},
	{"fit-folds-json", "fit test.csv -m platt,spline --folds 3 --json --no-weights", ""},
	{"fit-matrix", "fit val.npz:logits --labels y -m matrix --lambda 0.1 --mu 0.1 -o matrix.json --json",
		"matrix.json"},
	{"fit-dirichlet", "fit probs.npz -m dirichlet -o dirichlet.json", "dirichlet.json"},
	{"fit-isotonic", "fit val.arrows -m isotonic -o isotonic.json --json", "isotonic.json"},
	{"fit-parameterised", "fit val.csv -m parameterised_temperature --seed 7 -o pts.json --refit --holdout 0.2",
		"pts.json"},
	{"fit-metacal", "fit val.csv -m metacal_miscoverage --miscoverage 0.1 -o metacal.json", "metacal.json"},
	{"fit-class-scaling", "fit val.csv -m temperature --loss-scaling on -o cls.json --holdout test.csv", "cls.json"},
	{"fit-unknown", "fit val.csv -m nothing", ""},
	{"eval-calibrator", "eval test.csv --calibrator pts.json --json", ""},
	{"apply-csv", "apply best.json test.csv -o -", ""},
	{"apply-npz", "apply matrix.json val.npz:logits -o applied.npz --labels y", "applied.npz"},
	{"apply-arrow", "apply cls.json val.arrows -o applied.csv --float64", "applied.csv"},
	{"apply-twice", "apply cls.json val.arrows -o applied.csv", ""},
	{"convert-temperature", "convert temperature.json -o temperature.onnx", "temperature.onnx"},
	{"convert-matrix", "convert matrix.json -o matrix.onnx --json", "matrix.onnx"},
	{"convert-isotonic", "convert isotonic.json -o isotonic.onnx", "isotonic.onnx"},
	{"convert-pts", "convert pts.json -o pts.onnx", "pts.onnx"},
	{"replay", "replay -c replay.yaml stream.csv" + late, ""},
	{"replay-json", "replay -c replay.yaml stream.csv --json --shards 3" + late, ""},
	{"replay-times", "replay -c replay.yaml val.arrows --event-rate 0 --inline-labels --json --model named --version 7",
		""},
	{"replay-no-labels", "replay -c replay.yaml stream.csv --no-labels --event-rate 20 --limit 500 --shuffle" + from,
		""},
	{"replay-auto", "replay -c auto.yaml stream.csv --log-level info" + late, ""},
	{"replay-bad-configuration", "replay -c bad.yaml stream.csv", ""},
	{"test-rules", "test rules rules.yaml", ""},
	{"test-rules-json", "test rules rules.yaml --json", ""},
	{"test-rules-fail", "test rules fail.yaml", ""},
}

const (
	from = " --start 2026-01-31T00:00:00Z"
	late = " --label-delay 0s-8s --seed 4 --event-rate 10" + from
)

const replayConfiguration = `slices: {columns: [region]}
join: {wait: 1m}
stats: {resamples: 20}
sample: {slice_rows: 8192}
windows:
- {name: minute, kind: time, size: 1m}
- {name: rows, kind: rows, rows: 300}
alarm: {reference_rows: 200, false_alarm_every: 24h, clear_rows: 100, clear_for: 10s}
unlabelled: {reference_rows: 200}
rules:
- {name: excess, rows: 300, min_rows: 100, warmup_rows: 100, fire: 0.05, clear: 0.03, for: 10s, slices: true}
- {name: drift, kind: distance, measure: ks, rows: 300, min_rows: 100, reference_rows: 200, fire: 0.1, clear: 0.05}
- {name: fall, kind: reference, measure: accuracy, rows: 300, min_rows: 100, reference_rows: 200,
   fire: 0.1, clear: 0.05}
`

const refitConfiguration = "refit: {method: %s, period: 1m, fresh_rows: 100, min_rows: 100, max_rows: 1000, " +
	"validation_rows: 400, alpha: 0.05}\n"

const failingRules = `configuration: {alarm: {reference_rows: 1000}}
tests:
- name: expects what does not come
  rows: [{count: 1500}]
  expect:
  - {rule: calibration-raw, state: firing, to: 5m}
- name: names a rule that is not there
  rows: [{count: 1000, confidence: 0.9, accuracy: 0.7}]
  expect:
  - {rule: nothing, state: firing}
  - {rule: calibration-raw, never: true}
`

// TestCommands runs the commands on files that it writes.
func TestCommands(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	binary := buildCommand(t)
	dir := t.TempDir()
	writeFiles(t, dir)
	for _, c := range commands {
		cmd := exec.Command(binary, strings.Fields(c.args)...)
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		code := 0
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code = exit.ExitCode()
		}
		text := fmt.Sprintf("$ plumbline %s\n%sexit %d\n%s", c.args, masked(stdout.String()), code,
			masked(stderr.String()))
		for file := range strings.FieldsSeq(c.files) {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Error(err)
			}
			text += fmt.Sprintf("file %s: %d bytes, SHA-256 %x\n", file, len(b), sha256.Sum256(b))
		}
		goldenText(t, filepath.Join("command", c.name+".golden"), text)
	}
}

// buildCommand builds the command, or takes the one that PLUMBLINE_ORACLE_COMMAND names. The file stays where it is, so
// that the next run need not link it again.
func buildCommand(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("PLUMBLINE_ORACLE_COMMAND"); path != "" {
		return path
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("plumbline-oracle-%x", sha256.Sum256([]byte(root))), "plumbline")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/plumbline")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// masks are what may differ from run to run, or from build to build.
var masks = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`("[^"]+": "|state hash )[0-9a-f]{64}`), "${1}HASH"},
	{regexp.MustCompile(`"(seconds|fit_seconds|rows_per_second)": [0-9.e+-]+`), `"$1": 0`},
	{regexp.MustCompile(`[0-9.]+ s, [0-9]+ rows/s`), "0 s, 0 rows/s"},
	{regexp.MustCompile(` +[0-9.]+ (µs|ms|s|min)\n`), " TIME\n"},
	{regexp.MustCompile(` +fit\n`), " fit\n"}, // the head of a column of times is as wide as the longest
	{regexp.MustCompile(`time=[^ ]+ `), "time=T "},
	{regexp.MustCompile(`"build": ?"[^"]*"`), `"build": "oracle"`},
}

func masked(s string) string {
	for _, m := range masks {
		s = m.of.ReplaceAllString(s, m.by)
	}
	return s
}

// goldenText compares a text with that of a file; of a long one the beginning is kept, and the hash of all.
func goldenText(t *testing.T, name, text string) {
	t.Helper()
	const most = 6000
	if len(text) > most {
		begin := text[:strings.LastIndexByte(text[:most], '\n')]
		text = fmt.Sprintf("%s\n… %d bytes, SHA-256 %x\n", begin, len(text), sha256.Sum256([]byte(text)))
	}
	golden(t, name, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// writeFiles writes what the commands read.
func writeFiles(t *testing.T, dir string) {
	t.Helper()
	draw := func(seed uint64, rows int, phases ...phase) []row {
		s := stream{rows: rows, step: second, models: []modelPlan{{"m", 4, []string{"v1"}}}, columns: 1, values: 3,
			maxLag: second, weighs: true, phases: phases}
		return s.draw(seed)
	}
	over := phase{sharpness: 2.5, only: -1}
	val, test := draw(1001, 900, over), draw(1002, 500, over)
	changing := draw(1003, 1800, phase{sharpness: 1, only: -1}, phase{from: .4, sharpness: 3, only: -1},
		phase{from: .75, sharpness: 1, wrong: .3, only: -1})
	rules, err := os.ReadFile(filepath.Join("testdata", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWiring(t, "", 1, 1)
	for name, content := range map[string][]byte{"val.csv": csvFile(val), "test.csv": csvFile(test),
		"stream.csv": csvFile(changing),
		"bad.csv":    []byte("logits_0,logits_1,label\n1,2,0\n1,nan,0\n"), "val.arrows": w.encodePredictions(val, true),
		"val.npz": npzFile(t, "logits", val, "y"), "probs.npz": npzFile(t, "probs", probabilities(test), "labels"),
		"replay.yaml": fmt.Appendf([]byte(replayConfiguration), refitConfiguration, "temperature"),
		"auto.yaml":   fmt.Appendf([]byte(replayConfiguration), refitConfiguration, "auto"),
		"bad.yaml":    []byte("refit: {method: magic, perid: 1m}\n"), "rules.yaml": rules,
		"fail.yaml": []byte(failingRules)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func csvFile(rows []row) []byte {
	var b bytes.Buffer
	for j := range rows[0].scores {
		fmt.Fprintf(&b, "logits_%d,", j)
	}
	b.WriteString("label,weight,region\n")
	for _, r := range rows {
		for _, x := range r.scores {
			fmt.Fprintf(&b, "%.4f,", x)
		}
		fmt.Fprintf(&b, "%d,%.3f,%s\n", r.label, r.weight, r.slices[0])
	}
	return b.Bytes()
}

func probabilities(rows []row) []row {
	out := slices.Clone(rows)
	for i := range out {
		z := make([]float64, len(out[i].scores))
		for j, x := range out[i].scores {
			z[j] = float64(x)
		}
		softmax(z)
		out[i].scores = nil
		for _, x := range z {
			out[i].scores = append(out[i].scores, float32(x))
		}
	}
	return out
}

// npzFile has the scores as float32 and the labels as int64.
func npzFile(t *testing.T, name string, rows []row, labels string) []byte {
	t.Helper()
	var scores, label []byte
	for _, r := range rows {
		for _, x := range r.scores {
			scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(x))
		}
		label = binary.LittleEndian.AppendUint64(label, uint64(r.label))
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name, descr, shape string, data []byte) {
		f, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
		head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
		size := []byte{byte(len(head)), byte(len(head) >> 8)}
		if _, err := f.Write(slices.Concat([]byte("\x93NUMPY\x01\x00"), size, []byte(head), data)); err != nil {
			t.Fatal(err)
		}
	}
	add(name, "<f4", fmt.Sprintf("%d, %d", len(rows), len(rows[0].scores)), scores)
	add(labels, "<i8", fmt.Sprintf("%d,", len(rows)), label)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRowsAreFixed holds the generator of random numbers to what it gave when the golden files were written.
func TestRowsAreFixed(t *testing.T) {
	if got := rand.New(rand.NewPCG(1, 2)).Uint64(); got != 0xc4f5a58656eef510 {
		t.Errorf("the generator gives %#x: nothing else here can be compared", got)
	}
}
