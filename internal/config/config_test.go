package config_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/sinks/notify"
	"github.com/plumbline/plumbline/trainer/service"
)

// fields returns the keys of the file.
func fields() []setting.Field { return setting.Fields(reflect.TypeFor[config.Config]()) }

func TestEveryKeyHasAMeaning(t *testing.T) {
	for _, f := range fields() {
		if !strings.HasSuffix(f.Meaning, ".") {
			t.Errorf("key %s: the comment of its field is %q, want a sentence", f.Path, f.Meaning)
		}
	}
}

func TestDefaultIsValid(t *testing.T) {
	if err := config.Default().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestExampleParsesToDefault(t *testing.T) {
	got, err := config.Parse(config.Example(), "example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	// The example writes empty lists, which equal absent ones.
	want.Models, want.Slices.Columns, want.Stats.ExtraBins = []config.Model{}, []string{}, []int{}
	want.Notify.Alertmanagers, want.Notify.Labels, want.Notify.Webhooks = []string{}, []string{},
		[]notify.WebhookConfig{}
	want.Trainer.Files, want.Trainer.Heads, want.Trainer.Command = []string{}, []service.ServingHead{}, []string{}
	want.HTTP.Hosts, want.Inputs = []string{}, []inputs.Config{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, f := range fields() {
		itemsOfNone := strings.Contains(f.Path, "[]") && !strings.HasPrefix(f.Path, "rules[]")
		if !itemsOfNone && !strings.Contains(string(config.Example()), f.Key+":") {
			t.Errorf("the example lacks %s", f.Path)
		}
	}
}

func TestAbsentKeysKeepTheirDefaults(t *testing.T) {
	got, err := config.Parse([]byte(`
group: g
stats:
  bins: 10
join:
rules:
- {name: strict, fire: 0.04}
windows:
- {name: w, kind: time, size: 1m}
`), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Group, want.Stats.Bins = "g", 10
	want.Rules = []rule.Config{setting.Default[rule.Config]()}
	want.Rules[0].Name, want.Rules[0].Fire = "strict", 0.04
	want.Windows = []window.Config{{Name: "w", Kind: window.KindTime, Size: time.Minute, Slide: time.Minute}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestAnchorsAndMergesAreFollowed(t *testing.T) {
	got, err := config.Parse([]byte(`
rules:
- &base {name: a, fire: 0.2, clear: 0.1}
- <<: *base
  name: b
`), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Rules[1]; r.Name != "b" || r.Fire != 0.2 || r.Clear != 0.1 {
		t.Errorf("got %+v, want b with fire 0.2 and clear 0.1", r)
	}
}

// TestProblems compares the complete error messages for configuration files. A case is a name, a file, "=>", and the
// messages.
func TestProblems(t *testing.T) {
	cases, err := os.ReadFile("testdata/problems.txt")
	if err != nil {
		t.Fatal(err)
	}
	for c := range strings.SplitSeq(strings.TrimSuffix(string(cases), "\n\n"), "\n\n# ") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(c, "# "), "\n")
		yaml, want, ok := strings.Cut(rest, "=>\n")
		t.Run(name, func(t *testing.T) {
			if !ok {
				t.Fatalf("no => in %q", rest)
			}
			_, err := config.Parse([]byte(yaml), "c.yaml")
			if err == nil {
				t.Fatalf("no error, want %s", want)
			}
			if got := err.Error(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			var ps config.Problems
			if !errors.As(err, &ps) {
				t.Errorf("error is a %T, want Problems", err)
			}
		})
	}
}

// TestHostileValues: no value of any number, duration or text makes a check panic, alone or beside a hostile length of
// a pane, from which others follow. What a check refuses is named with its key.
func TestHostileValues(t *testing.T) {
	hostile := map[reflect.Kind][]any{
		reflect.Int: {math.MinInt, -1, 0, 1, math.MaxInt},
		reflect.Int64: {int64(math.MinInt64), int64(-1), int64(0), int64(1), int64(100 * time.Millisecond),
			int64(366 * 24 * time.Hour), int64(math.MaxInt64)},
		reflect.Float64: {math.NaN(), math.Inf(-1), math.Inf(1), -1.0, 0.0, 5e-324, math.MaxFloat64},
		reflect.String:  {"", " ", "\x00", "\xff", "[", strings.Repeat("a", 1000)},
	}
	c := config.Default()
	var leaves []reflect.Value
	var collect func(v reflect.Value)
	collect = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				collect(v.Field(i))
			}
		case reflect.Slice:
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				v.Index(0).Set(setting.DefaultOf(v.Type().Elem()))
			}
			for i := range v.Len() {
				collect(v.Index(i))
			}
		default:
			leaves = append(leaves, v)
		}
	}
	collect(reflect.ValueOf(&c).Elem())
	check := func(v reflect.Value, x any) {
		defer func() {
			if r := recover(); r != nil {
				t.Fatalf("%v of %s, panes of %s: panic: %v", x, v.Type(), c.EventTime.Pane, r)
			}
		}()
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		defer v.Set(was)
		v.Set(reflect.ValueOf(x).Convert(v.Type()))
		_ = c.Validate()
	}
	own := c.EventTime.Pane
	for _, pane := range []time.Duration{own, math.MinInt64, 0, 1, math.MaxInt64} {
		c.EventTime.Pane = pane
		for _, v := range leaves {
			for _, x := range hostile[v.Kind()] {
				check(v, x)
			}
		}
	}
	c.EventTime.Pane = 0
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "event_time.pane: 0s: must be ") {
		t.Errorf("panes of 0s: %v", err)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want not exist", err)
	}
	got, err := config.Load("")
	if err != nil || !reflect.DeepEqual(got, config.Default()) {
		t.Errorf("got %+v, %v, want the defaults", got, err)
	}
}

func TestSchemaHasEveryKey(t *testing.T) {
	type node struct {
		Properties           map[string]node
		Items                *node
		AdditionalProperties *bool
		Description          string
	}
	var root node
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields() {
		at := root
		for part := range strings.SplitSeq(f.Path, ".") {
			name, list := strings.CutSuffix(part, "[]")
			at = at.Properties[name]
			if list && at.Items != nil {
				at = *at.Items
			}
		}
		if at.Description == "" {
			t.Errorf("the schema does not describe %s", f.Path)
		}
		if f.Type.Kind() == reflect.Struct && (at.AdditionalProperties == nil || *at.AdditionalProperties) {
			t.Errorf("the schema takes unknown keys in %s", f.Path)
		}
	}
}

func TestExampleFilesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../examples/config/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example configurations: %v", err)
	}
	for _, f := range files {
		if _, err := config.Load(f); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(config.Example())
	f.Add([]byte("rules:\n- &base {name: a}\n- <<: *base\n  name: b\n"))
	f.Add([]byte("join: &x\n  <<: *x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse(data, "f.yaml")
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("parsed, but not valid: %v", err)
		}
	})
}
