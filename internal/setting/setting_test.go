package setting_test

import (
	_ "embed"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed setting_test.go
var source string

// Declaration documents the keys.
func (oven) Declaration() string { return source }

type oven struct {
	// Temperature
	// in degrees.
	Heat float64 `yaml:"heat" default:"180" above:"0" max:"300"`
	// Time in it.
	Time time.Duration `yaml:"time" default:"1h30m" min:"1m"`
	// Bytes of the recipe.
	Bytes int64 `yaml:"bytes" default:"8MiB" min:"1KiB" max:"1GiB"`
	// Programme.
	Mode string `yaml:"mode" default:"fan" enum:"fan|grill"`
	// What speaks.
	Bells []string `yaml:"bells" default:"ding,dong" required:"true" format:"name"`
	// Trays.
	Trays []tray `yaml:"trays"`
	// The door.
	Door door `yaml:"door"`
}

type tray struct {
	// Its name.
	Name string `yaml:"name" required:"true"`
	// Its height.
	Level int `yaml:"level" default:"2" min:"1" max:"5"`
}

type door struct {
	// Shut it.
	Shut bool `yaml:"shut" default:"true"`
	// Keep it shut.
	Locked bool `yaml:"locked"`
}

// Check refuses a lock on an open door.
func (d door) Check(r *setting.Report) {
	if d.Locked && !d.Shut {
		r.Fail("locked", d.Locked, "needs @shut")
	}
}

func TestDefaultsComeFromTags(t *testing.T) {
	want := oven{Heat: 180, Time: 90 * time.Minute, Bytes: 8 << 20, Mode: "fan", Bells: []string{"ding", "dong"},
		Door: door{Shut: true}}
	got := setting.Default[oven]()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got.Bells[0] = "gong"
	if again := setting.Default[oven](); again.Bells[0] != "ding" {
		t.Error("a list of the defaults is shared")
	}
	if item := setting.DefaultOf(reflect.TypeFor[tray]()).Interface(); item != (tray{Level: 2}) {
		t.Errorf("a tray is %+v, want level 2", item)
	}
}

func TestCheckReportsAllWithPaths(t *testing.T) {
	c := setting.Default[oven]()
	if ps := setting.Check(c); ps != nil {
		t.Errorf("defaults have problems: %v", ps)
	}
	c.Heat, c.Time, c.Mode, c.Bells = 0, time.Second, "steam", []string{"", ".."}
	c.Trays, c.Door = []tray{{Name: "a", Level: 2}, {Level: 9}}, door{Locked: true}
	want := []string{
		"heat: 0: must be above 0 and at most 300",
		"time: 1s: must be 1m to 8784h",
		`mode: "steam": must be one of fan, grill`,
		`bells[0]: "": must not be empty`,
		`bells[1]: "..": must match ^[a-zA-Z0-9._-]{1,100}$ and not be . or ..`,
		`trays[1].name: "": must not be empty`,
		"trays[1].level: 9: must be 1 to 5",
		"door.locked: true: needs door.shut",
	}
	var got []string
	for _, p := range setting.Check(c) {
		got = append(got, p.Error())
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMeaningsComeFromComments(t *testing.T) {
	got := map[string]string{}
	for _, f := range setting.Fields(reflect.TypeFor[oven]()) {
		got[f.Path] = f.Meaning
	}
	for path, want := range map[string]string{
		"heat": "Temperature in degrees.", "trays[].level": "Its height.", "door.shut": "Shut it.", "door": "The door.",
	} {
		if got[path] != want {
			t.Errorf("%s means %q, want %q", path, got[path], want)
		}
	}
}

func TestPage(t *testing.T) {
	page := string(setting.Page(setting.Default[oven]()))
	for _, want := range []string{
		"- `bytes: 8388608` (1024…1073741824) Bytes of the recipe.\n",
		"(>0…300) Temperature in degrees.\n", "(fan, grill) ",
		"- `bells: [ding, dong]` What speaks.\n",
		"## trays\nTrays.\n", "- `trays[].level: 2` (1…5) Its height.\n",
		"## door\nThe door.\n", "- `door.locked: false` Keep it shut.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestExampleSkipsAbsentKeysOfItems(t *testing.T) {
	c := setting.Default[oven]()
	c.Trays = []tray{{Name: "a", Level: 1}, {Name: "b"}}
	example := string(setting.Example(c))
	want := "# Trays.\ntrays:\n  - name: a                              # Its name.\n" +
		"    level: 1                             # Its height. [1 to 5]\n  - name: b\n    level: 0\n"
	if !strings.Contains(example, want) {
		t.Errorf("got\n%s\nwant in it\n%s", example, want)
	}
}

func TestWrongTagsPanic(t *testing.T) {
	for name, c := range map[string]any{
		"no key": struct{ A int }{},
		"no bounds": struct {
			A int `yaml:"a"`
		}{},
		"bad default": struct {
			A bool `yaml:"a" default:"maybe"`
		}{},
		"bad format": struct {
			A string `yaml:"a" format:"colour"`
		}{},
		"bad bound": struct {
			A string `yaml:"a" min:"1"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			setting.Check(c)
		}()
	}
}
