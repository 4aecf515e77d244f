package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/offline"
)

// methodOf is a method that has the setting.
func methodOf(s offline.Setting) string {
	if s.Methods == nil {
		return "temperature" + calibrator.Suffix
	}
	return s.Methods[len(s.Methods)-1]
}

// settingValues are a value of every setting that is allowed and is not the default.
var settingValues = map[string]string{
	"bins": "4", "soft-bins": "5", "soft-temperature": "0.2", "norm": "1", "lambda": "3", "mu": "2", "kappa": "40",
	"knots": "3", "residual": "true",
	"top": "2", "hidden": "2", "steps": "3", "ridge": "0.5", "mse": "true", "accuracy": "0.7", "miscoverage": "0.4",
	"delta": "0.3", "rank-every": "3",
	"alpha": "0.2", "beta": "1.9", "printed": "true",
}

// TestFitSettings: every flag sets the field of the options that it names, and changes the fit.
func TestFitSettings(t *testing.T) {
	table := fullTable(400, 3, true, false)
	table.Weight = nil
	file := writeTable(t, "a.parquet", table)
	for _, s := range offline.Settings {
		value, ok := settingValues[s.Flag]
		if !ok {
			t.Errorf("--%s: no value to try", s.Flag)
			continue
		}
		method := methodOf(s)
		var opt calibrator.Options
		var err error
		switch v := s.Value(&opt).(type) {
		case *int:
			_, err = fmt.Sscan(value, v)
		case *float64:
			_, err = fmt.Sscan(value, v)
		case *bool:
			*v = true
		}
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := calibrator.Fit(method, calibrator.NewData(table.Scores64, 3, table.Label, nil), opt)
		if err != nil {
			t.Fatalf("--%s %s: %v", s.Flag, value, err)
		}
		text, err := calibrator.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		plain := fitJSON[fitOutput](t, file, "--method", method).Calibrator
		got := fitJSON[fitOutput](t, file, "--method", method, "--"+s.Flag+"="+value).Calibrator
		if squeeze(t, got) != string(text) {
			t.Errorf("--%s %s of %s: got %s, want %s", s.Flag, value, method, got, text)
		}
		if bytes.Equal(got, plain) {
			t.Errorf("--%s %s of %s changes nothing", s.Flag, value, method)
		}
	}
}

func squeeze(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFitSettingsAreChecked: a value out of range is refused with the flag, the value and what is allowed; so is a
// setting of a method that is not asked for.
func TestFitSettingsAreChecked(t *testing.T) {
	four := writeFile(t, "four.csv", fourRows)
	for _, s := range offline.Settings {
		var bad []string
		var opt calibrator.Options
		switch s.Value(&opt).(type) {
		case *int:
			bad = []string{fmt.Sprint(s.Lo - 1), fmt.Sprint(int(s.Hi) + 1), "0"}
		case *float64:
			bad = []string{"NaN", "Inf", "-1"}
			if s.Open {
				bad = append(bad, fmt.Sprint(s.Lo))
			}
			if s.Hi < math.MaxFloat64 {
				bad = append(bad, fmt.Sprint(s.Hi+.1))
			}
			if s.Open && s.Hi < math.MaxFloat64 {
				bad = append(bad, fmt.Sprint(s.Hi))
			}
		}
		for _, value := range bad {
			code, out, stderr := runCommand(t, "fit", four, "--method", methodOf(s), "--"+s.Flag+"="+value)
			if code != exitUsage || !strings.Contains(stderr, "--"+s.Flag+" "+strings.Replace(value, "Inf", "+Inf",
				1)+": allowed are ") || out != "" {
				t.Errorf("--%s %s: got exit code %d, %q, %q", s.Flag, value, code, out, stderr)
			}
		}
		code, _, stderr := runCommand(t, "fit", four, "--method", "identity", "--"+s.Flag+"="+settingValues[s.Flag])
		if want := "--" + s.Flag + ": a setting of " + s.Owner() + ", which is not asked for"; code != exitUsage ||
			!strings.Contains(stderr, want) {
			t.Errorf("got exit code %d, %q, want %q", code, stderr, want)
		}
	}
}
