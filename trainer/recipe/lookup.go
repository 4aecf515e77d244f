package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Auto is the name of what tries several recipes: [Candidates].
const Auto = "auto"

// Preset is a recipe that has a name of its own.
type Preset struct {
	Name, Title string
	Config      func() Config
}

// Presets are the recipes by name.
var Presets = []Preset{
	{"ce", "cross-entropy, from the current head", CrossEntropy},
	{"au", "AU: risk reweighted by confidence, from the current head", AU},
	{"maccal", "MaC-Cal, the stable preset: a fresh bottleneck under adaptive masks", MaCCalStable},
	{"maccal_printed", "MaC-Cal as its paper prints it", MaCCalPrinted},
	{"tst", "two-stage training: a fresh bottleneck, its best epoch", TST},
	{"vtst", "the same with Gaussian values between its layers", VTST},
	{"balcal", "BalCAL: a fresh linear head balanced with a fixed simplex", BalCAL},
	{"plp", "progressively layer-peeled training of a fresh bottleneck", PLP},
	{"bottleneck", "cross-entropy on a fresh bottleneck", func() Config {
		c := MaCCalPrinted()
		c.MaCCal = nil
		return c
	}},
}

// Lookup gives a preset, the settings of a .json file, or for Auto its candidates with their seed.
func Lookup(name string, seed uint64) ([]Named, error) {
	if name == Auto {
		return Candidates(seed), nil
	}
	if strings.HasSuffix(name, ".json") {
		c, err := readConfig(name)
		return []Named{{Name: name, Config: c}}, err
	}
	list := []string{Auto}
	for _, p := range Presets {
		if p.Name == name {
			return []Named{{Name: name, Config: p.Config()}}, nil
		}
		list = append(list, p.Name)
	}
	return nil, fmt.Errorf("allowed are %s and a .json file", strings.Join(list, ", "))
}

// readConfig reads the settings of a recipe, and checks them: those of a report are one.
func readConfig(file string) (Config, error) {
	var c Config
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, err
	}
	if _, err := d.Token(); err != io.EOF {
		return c, errors.New("text after the object")
	}
	return c, c.Validate()
}
