package calibrator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

func temperature(t testing.TB, v float64) calibrator.Temperature {
	t.Helper()
	c, err := calibrator.NewTemperature(v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConformance holds every calibrator to the contract of the interface.
func TestConformance(t *testing.T) {
	rows := [][]float64{{0}, {1, 2, 3}, {80, -80, 0}, {-80, -80}, {3.4e38, -3.4e38, 0},
		{math.MaxFloat64, -math.MaxFloat64}}
	for _, c := range []calibrator.Calibrator{
		calibrator.Identity{}, temperature(t, 0.05), temperature(t, 1), temperature(t, 2.5), temperature(t, 20),
	} {
		for _, z := range rows {
			p := make([]float64, len(z))
			c.Apply(p, z)
			var sum float64
			arg, argP := 0, 0
			for k := range z {
				sum += p[k]
				if z[k] > z[arg] {
					arg = k
				}
				if p[k] > p[argP] {
					argP = k
				}
			}
			if math.Abs(sum-1) > 1e-12 || arg != argP {
				t.Errorf("%s %v: p %v", c.Method(), z, p)
			}
			alias := append([]float64(nil), z...)
			c.Apply(alias, alias)
			for k := range p {
				if alias[k] != p[k] {
					t.Errorf("%s %v: aliased %v, apart %v", c.Method(), z, alias, p)
				}
			}
		}
		p := make([]float64, 2)
		if c.Apply(p, []float64{math.NaN(), 1}); !math.IsNaN(p[0]) || !math.IsNaN(p[1]) {
			t.Errorf("%s: a NaN gave %v", c.Method(), p)
		}
		text, err := calibrator.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := calibrator.Decode(text); err != nil || back != c {
			t.Errorf("%s: got %v, %v, want %v", text, back, err, c)
		}
	}
}

func TestTemperatureValues(t *testing.T) {
	p := make([]float64, 2)
	temperature(t, 2).Apply(p, []float64{2 * math.Log(3), 0})
	if math.Abs(p[0]-0.75) > 1e-15 {
		t.Errorf("got %v, want 0.75", p[0])
	}
	for _, v := range []float64{0, -1, 0.049, 20.1, math.NaN(), math.Inf(1)} {
		if _, err := calibrator.NewTemperature(v); err == nil {
			t.Errorf("temperature %g accepted", v)
		}
	}
	if _, err := calibrator.Encode(calibrator.Temperature{}); err == nil {
		t.Error("encoded a temperature that was never made")
	}
	if _, err := calibrator.Encode(nil); err == nil {
		t.Error("encoded nil")
	}
}

var badCalibrators = []string{
	``, `null`, `[]`, `{}`, `1`, `{"method":"identity"}`, `{"version":2,"method":"identity"}`, `{"version":1}`,
	`{"version":1,"method":"platt"}`, `{"version":1,"method":"identity","temperature":1}`,
	`{"version":1,"method":"temperature"}`, `{"version":1,"method":"temperature","temperature":null}`,
	`{"version":1,"method":"temperature","temperature":0}`, `{"version":1,"method":"temperature","temperature":21}`,
	`{"version":1,"method":"temperature","temperature":"1"}`,
	`{"version":1,"method":"temperature","temperature":1e999}`,
	`{"version":1,"method":"identity","params":{}}`, `{"version":1,"method":"platt","params":null}`,
	`{"version":1,"method":"platt","params":{"slope":1}}`,
	`{"version":1,"method":"platt","params":{"slope":1,"intercept":null}}`,
	`{"version":1,"method":"platt","params":{"slope":1,"intercept":0,"slope":2}}`,
	`{"version":1,"method":"platt","params":{"slope":1,"Intercept":0}}`,
	`{"version":1,"method":"platt","params":{"slope":1e7,"intercept":0}}`,
	`{"version":1,"method":"platt","temperature":1,"params":{"slope":1,"intercept":0}}`,
	`{"version":1,"method":"beta","params":{"a":-1,"b":0,"m":0}}`,
	`{"version":1,"method":"isotonic","params":{"x":[0.5,0.5],"v":[0,1]}}`,
	`{"version":1,"method":"isotonic","params":{"x":[],"v":[]}}`,
	`{"version":1,"method":"histogram","params":{"edges":[0,1],"values":[2]}}`,
	`{"version":1,"method":"scaling_binning","params":{"slope":1,"intercept":0,"edges":[0,1],"values":[]}}`,
	`{"version":1,"method":"vector","params":{"w":[1],"b":[0]}}`,
	`{"version":1,"method":"vector","params":{"w":[1,1],"b":[0]}}`,
	`{"version":1,"method":"ensemble_temperature","params":{"temperature":2,"weights":[0.5,0.5,0.5]}}`,
	`{"version":1,"method":"ensemble_temperature","params":{"temperature":2,"weights":[1,0]}}`,
	`{"version":1,"method":"class_temperature","params":{"temperatures":[1,0]}}`,
	`{"version":1,"method":"matrix","params":{"w":[1,0,0],"b":[0,0]}}`,
	`{"version":1,"method":"dirichlet","params":{"w":[],"b":[]}}`,
	`{"version":1,"method":"parameterised_temperature","params":{"classes":3,"top":4,"hidden":1,"w1":[0,0,0],` +
		`"b1":[0],"w2":[0],"b2":[0],"w3":[0],"b3":0}}`,
	`{"version":1,"method":"parameterised_temperature","params":{"classes":3,"top":2,"hidden":1,"w1":[0,0],"b1":[0],` +
		`"w2":[0],"b2":[0],"w3":[0],"b3":0}}`,
	`{"version":1,"method":"parameterised_temperature","params":{"classes":3,"top":2,"hidden":1000000000,"w1":[],` +
		`"b1":[],"w2":[],"b2":[],"w3":[],"b3":0}}`,
	`{"version":1,"method":"parameterised_temperature","params":{"classes":1000000000,"top":0,"hidden":1,"w1":[0],` +
		`"b1":[0],"w2":[0],"b2":[0],"w3":[0],"b3":1e7}}`,
	`{"version":1,"method":"identity","extra":0}`, `{"version":1,"method":"identity"} {}`,
	`{"version":1,"method":"identity"}x`,
}

func TestDecodeIsStrict(t *testing.T) {
	for _, text := range badCalibrators {
		if c, err := calibrator.Decode([]byte(text)); !errors.Is(err, calibrator.ErrFormat) {
			t.Errorf("%s: got %v, %v, want ErrFormat", text, c, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range badCalibrators {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"version":1,"method":"identity"}`))
	f.Add([]byte(` {"version":1,"method":"temperature","temperature":2.03} `))
	f.Add([]byte(`{"version":1,"method":"vector","params":{"w":[1,1,2],"b":[0,1,-1]}}`))
	f.Add([]byte(`{"version":1,"method":"vector","params":{"w":[1,1],"b":[0,0]}}`))
	f.Add([]byte(`{"version":1,"method":"histogram","params":{"edges":[0,0.5,1],"values":[0.2,1]}}`))
	f.Add([]byte(`{"version":1,"method":"isotonic","params":{"x":[0.4,0.5],"v":[0,1]}}`))
	f.Add([]byte(`{"version":1,"method":"beta","params":{"a":1,"b":0,"m":-3}}`))
	z, y := synthetic(60, 3, 2, 4)
	for _, m := range calibrator.Methods() {
		c, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, 3, y, nil), calibrator.Options{Bins: 3})
		if err != nil {
			f.Fatal(err)
		}
		text, err := calibrator.Encode(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := calibrator.Decode(b)
		if err != nil {
			if !errors.Is(err, calibrator.ErrFormat) {
				t.Fatalf("%v does not wrap ErrFormat", err)
			}
			return
		}
		text, err := calibrator.Encode(c)
		if err != nil || !json.Valid(text) {
			t.Fatalf("decoded %v does not encode: %v", c, err)
		}
		back, err := calibrator.Decode(text)
		again, _ := calibrator.Encode(back)
		if err != nil || !reflect.DeepEqual(back, c) || !bytes.Equal(again, text) {
			t.Fatalf("got %v, %v, want %v", back, err, c)
		}
		if of, ok := c.(interface{ Classes() int }); ok && of.Classes() != 3 {
			return
		}
		if d := c.Describe(); d == "" {
			t.Fatalf("%s: no description", text)
		}
		p := make([]float64, 3)
		c.Apply(p, []float64{80, 0, -80})
		if s := p[0] + p[1] + p[2]; !(math.Abs(s-1) <= 1e-12) {
			t.Fatalf("%s: Σp = %g", text, s)
		}
	})
}
