package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/onnx"
	"github.com/plumbline/plumbline/internal/offline"
)

func TestConvert(t *testing.T) {
	cal := writeFile(t, "cal.json", `{"version":1,"method":"vector","params":{"w":[1.5,0.5],"b":[0.25,-0.25]}}`)
	out := filepath.Join(t.TempDir(), "cal.onnx")
	run(t, "convert", cal, "-o", out)
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	c, err := offline.ReadCalibrator(cal)
	if err != nil {
		t.Fatal(err)
	}
	want, err := onnx.Calibrator(c)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%d bytes, not the %d of the package", len(got), len(want))
	}
	// The API's answer and a record of the topic have it in them.
	record := writeFile(t, "record.json",
		`{"model":"m","version":"7","revision":3,"calibrator":{"version":1,"method":"vector",`+
			`"params":{"w":[1.5,0.5],"b":[0.25,-0.25]}}}`)
	run(t, "convert", record, "-o", out, "--force")
	if got, err = os.ReadFile(out); err != nil || string(got) != string(want) {
		t.Errorf("of a record: %d bytes (%v), not the %d of the package", len(got), err, len(want))
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{writeFile(t, "none.json", `{"model":"m","published":false,"calibrator":null}`), "-o", out, "--force"},
			1, "the record has no calibrator"},
		{[]string{cal, "-o", out}, 1, "the file is there; --force replaces it"},
		{[]string{cal, "-o", "cal.txt"}, 2, `-o: "cal.txt", allowed is a file with the extension .onnx`},
		{[]string{cal}, 2, "-o"},
		{[]string{writeFile(t, "bad.json", `{"version":1,"method":"nothing"}`), "-o", out, "--force"}, 1,
			calibrator.ErrFormat.Error()},
	} {
		code, _, stderr := runCommand(t, append([]string{"convert"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("convert %v: exit code %d, %q; want %d, with %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
