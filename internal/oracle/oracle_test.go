package oracle_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

var update = flag.Bool("update", false, "write the golden files anew: only where behaviour is meant to change")

// seeds is how many worlds there are.
const seeds = 56

// lines are golden lines, name and value, in order.
type lines []string

func (l *lines) add(name string, format string, args ...any) {
	*l = append(*l, name+"  "+fmt.Sprintf(format, args...))
}

// TestWorld runs the world of every seed.
func TestWorld(t *testing.T) {
	testsize.Slow(t)
	var mu sync.Mutex
	outputs, formats := make([]lines, seeds), make([]lines, seeds)
	seen := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := runWorld(t, newPlan(uint64(seed)))
				w.dump()
				mu.Lock()
				defer mu.Unlock()
				outputs[seed], formats[seed] = w.outputLines(), w.formatLines()
				w.count(seen)
			})
		}
	})
	var coverage lines
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		coverage.add(name, "%d", seen[name])
	}
	golden(t, "coverage.golden", coverage)
	golden(t, "world.golden", slices.Concat(outputs...))
	golden(t, "formats.golden", slices.Concat(formats...))
}

// digest is the SHA-256 of parts, each with its length before it.
type digest struct {
	h hash.Hash
	n int
}

func (d *digest) put(parts ...[]byte) {
	if d.h == nil {
		d.h = sha256.New()
	}
	for _, p := range parts {
		fmt.Fprintf(d.h, "%d ", len(p))
		d.h.Write(p)
	}
	d.n++
}

func (d *digest) String() string {
	d.put()
	return hex.EncodeToString(d.h.Sum(nil))
}

// digests are digests by name, in the order of their names.
type digests map[string]*digest

func (d digests) put(name string, parts ...[]byte) {
	if d[name] == nil {
		d[name] = &digest{}
	}
	d[name].put(parts...)
}

func (d digests) lines(prefix string) (out lines) {
	for _, name := range slices.Sorted(maps.Keys(d)) {
		n := d[name].n
		out.add(prefix+name, "%d %s", n, d[name])
	}
	return out
}

// outputLines has a line for each stream of each task, and one for each ledger.
func (w *world) outputLines() (out lines) {
	prefix := fmt.Sprintf("seed %02d ", w.plan.seed)
	streams, ledgers := digests{}, map[string][sha256.Size]byte{}
	for p, ms := range w.outputs {
		for _, m := range ms {
			m.value = build.ReplaceAll(m.value, []byte(`"build":"oracle"`))
			// The outputs of two models of a task have no order between them: one may wait for a fit.
			model, key := m.ledger()
			streams.put(fmt.Sprintf("model %d %q %s", p, model, m.stream), []byte(m.key), fmt.Append(nil, m.time),
				m.value)
			h := sha256.New()
			prev := ledgers[key]
			h.Write(prev[:])
			h.Write([]byte(m.stream))
			h.Write([]byte(m.key))
			h.Write(m.value)
			ledgers[key] = [sha256.Size]byte(h.Sum(nil))
		}
	}
	for i, ms := range w.letters {
		for _, m := range ms {
			text := fmt.Appendf(nil, "%q %d %q", m.key, m.time, m.headers)
			if m.stream == "calibrated" {
				text = append(text, w.describeCalibrated(m.value)...)
			} else {
				w.quotes(i, &m)
			}
			streams.put(fmt.Sprintf("shard %d %s", i, m.stream), text)
		}
	}
	for _, m := range w.log {
		text, _ := w.describePane(m.value)
		streams.put("shards panes", fmt.Appendf(nil, "%q %d %d", m.key, m.partition, m.time), []byte(text))
	}
	out = streams.lines(prefix)
	for _, key := range slices.Sorted(maps.Keys(ledgers)) {
		out.add(prefix+"ledger "+key, "%x", ledgers[key])
	}
	return out
}

// quotes checks that a dead letter is the record that its headers name.
func (w *world) quotes(shard int, m *message) {
	input, offset := 0, -1
	for _, h := range m.headers {
		switch h[0] {
		case "plumbline-topic":
			input = slices.Index([]string{"logits", "labels"}, h[1])
		case "plumbline-offset":
			fmt.Sscan(h[1], &offset)
		}
	}
	if offset < 0 || string(w.in[shard][input][offset].value) != string(m.value) {
		w.t.Errorf("seed %d: a dead letter of shard %d is not the record that it names: %q", w.plan.seed, shard,
			m.headers)
	}
}

// ledger names the model and the key that an output is of.
func (m *message) ledger() (model, key string) {
	var of struct{ Model, Version, Slice string }
	if json.Unmarshal(m.value, &of) != nil {
		return "unreadable", ""
	}
	return of.Model, fmt.Sprintf("%s|%s|%s", of.Model, of.Version, of.Slice)
}

// build is the version of the program in a record; that may change.
var build = regexp.MustCompile(`"build":"[^"]*"`)

// formatLines has the bytes of what only the program reads.
func (w *world) formatLines() lines {
	d := digests{}
	for _, m := range w.log {
		_, cells := w.describePane(m.value)
		d.put("panes", m.value)
		d.put("cells", cells...)
	}
	for _, ms := range w.letters {
		for _, m := range ms {
			if m.stream == "calibrated" {
				d.put("calibrated", m.value)
			}
		}
	}
	return d.lines(fmt.Sprintf("seed %02d ", w.plan.seed))
}

var (
	names   = regexp.MustCompile(` by ann|"[^"]*"|'[^']*'`)
	numbers = regexp.MustCompile(`-?[0-9][0-9.eE+-]*%?`)
)

// count adds to what the streams of all seeds contain.
func (w *world) count(seen map[string]int) {
	for _, ms := range w.outputs {
		for _, m := range ms {
			var v struct {
				Rule, State, Reason, Outcome, Stage, Kind string
				Slice                                     string
			}
			w.must(json.Unmarshal(m.value, &v))
			what := []string{m.stream}
			if v.Slice != "" {
				what = append(what, "slice")
			}
			if v.Rule != "" {
				what = append(what, v.Rule)
			}
			for _, s := range []string{v.Kind, v.Reason, v.Stage, v.State, v.Outcome} {
				if s != "" {
					what = append(what, numbers.ReplaceAllString(names.ReplaceAllString(s, ""), "#"))
				}
			}
			seen[strings.Join(what, " | ")]++
		}
	}
	for _, ms := range w.letters {
		for _, m := range ms {
			name := m.stream
			for _, h := range m.headers {
				if h[0] == "plumbline-reason" {
					name += " | " + h[1]
				}
			}
			seen[name]++
		}
	}
}

// dump writes the outputs of a seed where PLUMBLINE_ORACLE_DUMP says.
func (w *world) dump() {
	dir := os.Getenv("PLUMBLINE_ORACLE_DUMP")
	if dir == "" {
		return
	}
	var b strings.Builder
	b.WriteString(w.plan.yaml)
	for _, m := range slices.Concat(slices.Concat(w.outputs...), slices.Concat(w.letters...)) {
		if m.stream == "calibrated" || m.stream == "deadletter" {
			m.value = nil
		}
		fmt.Fprintf(&b, "%s %q %d %q\n%s\n", m.stream, m.key, m.time, m.headers, m.value)
	}
	w.must(os.MkdirAll(dir, 0o755))
	w.must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("seed%02d.txt", w.plan.seed)), []byte(b.String()), 0o644))
}

// golden compares lines with those of a file of testdata.
func golden(t *testing.T, name string, got lines) {
	t.Helper()
	path := filepath.Join("testdata", name)
	text := strings.Join(got, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if slices.Equal(want, got) {
		return
	}
	was := map[string]bool{}
	for _, l := range want {
		was[l] = true
	}
	var moved []string
	for _, l := range got {
		if !was[l] {
			moved = append(moved, l)
		}
	}
	t.Errorf("%s: %d of %d items differ, %d were recorded. If the change is meant, write the files anew with "+
		"go test ./internal/oracle -update, and read their diff. The first:\n%s", name, len(moved), len(got), len(want),
		strings.Join(moved[:min(20, len(moved))], "\n"))
}
