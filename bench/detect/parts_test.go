package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestParts: what is measured in parts, stopped between them and gone on with, is what one measurement gives; tests
// that have fewer runs have the first of them.
func TestParts(t *testing.T) {
	o := options{out: t.TempDir(), runs: 7}
	s := toy(-.3)
	s.group = groupCalm
	whole, err := runs(&s, tests, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(o.out, "parts", "code"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, span := range [][2]int{{0, 3}, {3, 7}} {
		if err := measurePart(o, &s, "code", span[0], span[1]); err != nil {
			t.Fatal(err)
		}
	}
	var r result
	for _, from := range []int{0, 3} {
		var p part
		if err := readJSON(partFile(o, &s, "code", from), &p); err != nil {
			t.Fatal(err)
		}
		if p.Code != "code" || p.Commit == "" || len(p.Tests) != len(tests) || p.Rows != s.n {
			t.Errorf("part from %d does not say what it is of: %+v", from, p)
		}
		r.add(p)
	}
	for k := range tests {
		for l := range levels {
			if !slices.Equal(r.FirstCrossings[k][l], whole[k][l]) {
				t.Fatalf("%s at %v: %v in parts, %v at once", tests[k].name, levels[l], r.FirstCrossings[k][l],
					whole[k][l])
			}
		}
	}
	// A part that is there is not measured again: a mark in it stays.
	file := partFile(o, &s, "code", 0)
	if err := writeJSON(file, part{Commit: "mark", To: 3}); err != nil {
		t.Fatal(err)
	}
	if err := measurePart(o, &s, "code", 0, 3); err != nil {
		t.Fatal(err)
	}
	var p part
	if err := readJSON(file, &p); err != nil || p.Commit != "mark" {
		t.Errorf("commit %q, error %v: the part was measured again", p.Commit, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := measurePart(o, &s, "code", 0, 3); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a broken part: %v", err)
	}
}

func TestWanted(t *testing.T) {
	for _, x := range tests {
		for _, c := range []struct {
			group string
			from  int
			want  bool
		}{{groupCalm, 0, true}, {groupDelay, shortRuns - 1, true}, {groupCalm, shortRuns, x.pane == 100 ||
			x.compared}, {groupLate, shortRuns, x.pane == 100}} {
			if got := x.wanted(c.group, c.from); got != c.want {
				t.Errorf("%s, %s from %d: %v", x.name, c.group, c.from, got)
			}
		}
	}
	s := toy(-.3)
	s.group = groupLate
	r, err := wantedRuns(&s, shortRuns, shortRuns+2)
	if err != nil {
		t.Fatal(err)
	}
	for k, x := range tests {
		want := 2
		if x.pane < 100 {
			want = 0
		}
		if len(r) != len(tests) || len(r[k]) != len(levels) || len(r[k][0]) != want {
			t.Errorf("%s: %d runs, want %d", x.name, len(r[k][0]), want)
		}
	}
}

// TestCodeDigest: another source is another digest, a test is none.
func TestCodeDigest(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll("calib/detect", 0o750); err != nil {
		t.Fatal(err)
	}
	digest := func(file, text string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := codeDigest(dir)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := digest("calib/detect/a.go", "x")
	if b := digest("calib/detect/a_test.go", "x"); b != a {
		t.Error("a test changed the digest")
	}
	if b := digest("calib/detect/a.go", "y"); b == a {
		t.Error("another source has the same digest")
	}
	if b := digest("frozen-c0.npy", "y"); b == a || b == digest("frozen-c0.npy", "z") {
		t.Error("other real streams have the same digest")
	}
}

// TestKeyed: a key of one row in 20 has panes and a reference of so many rows less, 20 times the threshold, and
// crossings in rows of the whole.
func TestKeyed(t *testing.T) {
	s := stream{group: "toy", name: "keyed", n: 3000, change: 500, every: sliceOf,
		draw: func(rng *rand.Rand, i int) drawn {
			c := .5 + .5*rng.Float64()
			if i < 500 {
				return drawn{c, rng.Float64() < c}
			}
			return drawn{c, rng.Float64() < c-.4}
		}}
	rows := s.rows(0, nil)
	one := []test{{name: "x", spec: tests[2].spec, pane: 100}}
	keyed, err := observe(rows, &s, one, detectors(one))
	if err != nil {
		t.Fatal(err)
	}
	const few = 5 // 100/20
	plain, err := crossings(detectors(one)[0], panes(rows, few), 1)
	if err != nil {
		t.Fatal(err)
	}
	// 20 times 1e4 is 2e5.
	if got, want := keyed[0][slices.Index(levels, 1e4)], plain[slices.Index(levels, 2e5)]; want < 0 ||
		got != sliceOf*few*want {
		t.Errorf("crosses 1e4 at row %d of the whole, want 20 times %d", got, few*want)
	}
	learned := []test{{name: "y", spec: tests[3].spec, pane: 100, learn: changeAt}}
	out, err := observe(rows, &s, learned, detectors(learned))
	if err != nil {
		t.Fatal(err)
	}
	if at := out[0][0]; at <= 500*sliceOf || at > 3000*sliceOf {
		t.Errorf("change is found at row %d of the whole, want after %d", at, 500*sliceOf)
	}
}
