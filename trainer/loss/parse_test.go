package loss

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

func TestNamesParseAgain(t *testing.T) {
	for text, want := range map[string]string{
		" ce ":                                "ce",
		"focal{ gamma : 3 }":                  "focal{gamma:3}",
		"1*ce+0.50 * mdca":                    "ce + 0.5*mdca",
		"au{csf:msp,through:true,nu:1e+0}":    "au{through:true,nu:1}",
		"classwise{alpha:1}(focal{gamma:2})":  "classwise{alpha:1}(focal{gamma:2})",
		"sbece{}":                             "sbece",
		"inverse_focal{gamma:4,force:true}":   "inverse_focal{force:true,gamma:4}",
		"aurc(squared) + 2*entropy + 0.1*cpc": "aurc(squared) + 2*entropy + 0.1*cpc",
		"1000000*mdca":                        "1e+06*mdca",
		"ce+1e+06*mdca+1e-07*entropy":         "ce + 1e+06*mdca + 1e-07*entropy",
		"mbls{lambda:1e6,margin:1e-6}":        "mbls{lambda:1e+06,margin:1e-06}",
	} {
		l := mustParse(t, text)
		if l.Name() != want {
			t.Errorf("%q: name %q, want %q", text, l.Name(), want)
		}
		if again := mustParse(t, l.Name()).Name(); again != want {
			t.Errorf("%q: parsed again %q, want %q", text, again, want)
		}
	}
	for _, name := range Names() {
		if got := mustParse(t, name).Name(); got != name {
			t.Errorf("%s without options is named %q", name, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "the end, allowed the name of a loss",
		"cee":                            `loss "cee", allowed ce, squared`,
		"focal{gama:3}":                  `loss focal: key "gama" with value "3", allowed gamma`,
		"focal{gamma:-1}":                `loss focal: gamma "-1", allowed 0..100`,
		"focal{gamma:NaN}":               `gamma "NaN"`,
		"focal{gamma:3":                  ", or }",
		"focal{gamma:3,gamma:4}":         "gamma given twice",
		"ce{gamma:3}":                    "allowed no options",
		"ce ce":                          `loss "ce ce", allowed ce`,
		"ce + ":                          "allowed the name of a loss",
		"ce(focal)":                      `loss ce: inner loss "focal", allowed none`,
		"classwise(mdca)":                `inner loss "mdca", allowed a mean over rows: ce, squared`,
		"aurc(ce":                        "allowed )",
		"x*ce":                           `weight "x", allowed 0..1e+06`,
		"-1*ce":                          `weight "-1"`,
		"ce + 1e+07*mdca":                `weight "1e+07", allowed 0..1e+06`,
		"1 + 2*ce":                       `loss "1", allowed ce`,
		"Inf*ce":                         `weight "Inf"`,
		"inverse_focal{gamma:3.6}":       `loss inverse_focal: gamma "3.6", allowed 0..3.591`,
		"dual_focal{variant:best}":       `variant "best", allowed eq24, released, eq25_26`,
		"au{csf:max}":                    `csf "max", allowed msp, margin, negent`,
		"au{bins:2.5}":                   `bins "2.5", allowed whole numbers 1..100000`,
		"au{through:yes}":                `through "yes", allowed true, false`,
		"savuc{kappa:1}":                 `kappa "1", allowed above 0 and below 1`,
		"classwise(classwise(aurc(ce)))": "no further loss",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := Parse("inverse_focal{gamma:3.59}"); err != nil {
		t.Errorf("gamma below the bound: %v", err)
	}
}

// TestInverseFocalBound: below the bound the loss falls in p everywhere, above it it rises somewhere.
func TestInverseFocalBound(t *testing.T) {
	rises := func(gamma float64) bool {
		for p := 0.001; p < 1; p += 0.001 {
			if gamma*-math.Log(p)/(1+p) > 1/p {
				return true
			}
		}
		return false
	}
	if rises(inverseGamma-1e-6) || !rises(inverseGamma+1e-3) {
		t.Errorf("bound %v: rises below %v, above %v", inverseGamma, rises(inverseGamma-1e-6), rises(inverseGamma+1e-3))
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range cases() {
		f.Add(c.text)
	}
	f.Add("ce{:}*(")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(l.Name())
		if err != nil || again.Name() != l.Name() {
			t.Fatalf("%q is named %q, which parses to %v, %v", text, l.Name(), again, err)
		}
	})
}

func ExampleParse() {
	l, err := Parse("ce + 0.5*mdca")
	if err != nil {
		fmt.Println(err)
		return
	}
	z := []float32{2, 0, 0, 1, 3, 1} // two rows of three classes
	grad := make([]float32, len(z))
	v, err := l.Eval32(z, Batch{N: 2, K: 3, Y: []int32{0, 2}}, grad)
	fmt.Printf("%s: %.4f %v, first row's gradient %.4f\n", l.Name(), v, err, grad[:3])
	// Output: ce + 0.5*mdca: 1.3885 <nil>, first row's gradient [-0.1205 0.0691 0.0514]
}

// TestDocumented: every loss has its item in docs/math.md, with every option.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/math.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries() {
		o := &options{name: e.name}
		if e.row != nil {
			e.row(o)
		} else {
			e.batch(o, crossEntropy{})
		}
		row := ""
		for _, line := range strings.Split(string(b), "\n") {
			head, _, ok := strings.Cut(line, ": ")
			if ok && strings.HasPrefix(head, "- ") && strings.Contains(head, "`"+e.name+"`") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("%s has no row", e.name)
		}
		for _, key := range o.known {
			if !strings.Contains(row, "`"+key+"`") {
				t.Errorf("%s: option %s is not in its row", e.name, key)
			}
		}
	}
}
