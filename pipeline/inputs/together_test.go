package inputs

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// TestTogether: records that go together become the rows that each becomes alone, and what cannot go with the others
// leaves no trace in them.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    Config
		slices []string
		record func(r *rand.Rand, i int) *Record
		least  int // of 2,000 records, in groups of 3 and more
	}{
		{"predictions", Config{Format: "json"}, []string{"region"}, func(r *rand.Rand, i int) *Record {
			return &Record{Value: []byte(oddPrediction(r, i)), Time: int64(1 + i)}
		}, 100},
		{"regular", Config{Format: "json"}, nil, func(r *rand.Rand, i int) *Record {
			return &Record{Time: int64(1 + i), Value: fmt.Appendf(nil,
				`{"id":"a%d","ts":%d,"model":"m%d","logits":[%g,%g]}`, i, 1700000000+i, i%3, r.NormFloat64(),
				r.NormFloat64())}
		}, 2000},
		{"in lists", Config{Format: "json", Model: "m", Columns: Columns{Prob: "out[].p", ID: "id"}}, nil,
			func(r *rand.Rand, i int) *Record {
				return &Record{Time: int64(1 + i),
					Value: fmt.Appendf(nil, `{"id":%d,"out":[{"p":%g}]}`, i, r.Float64())}
			}, 2000},
		{"several rows", Config{Format: "json"}, []string{"region"}, func(r *rand.Rand, i int) *Record {
			rows := make([]string, 1+r.IntN(5)*r.IntN(30)) // some have too many
			for j := range rows {
				rows[j] = fmt.Sprintf(`{"id":"a%d-%d","ts":%d,"model":"m","region":"r%d","logits":[%g,1]}`, i, j,
					1700000000+i, j, r.NormFloat64())
			}
			switch r.IntN(20) {
			case 0: // some rows have the record's time
				rows[0] = strings.Replace(rows[0], `"ts"`, `"x"`, 1)
			case 1:
				rows[len(rows)-1] = strings.Replace(rows[len(rows)-1], `,1]`, `,1,2]`, 1)
			case 2:
				rows[len(rows)-1] = strings.Replace(rows[len(rows)-1], `"id"`, `"x"`, 1)
			case 3:
				for j := range rows {
					rows[j] = strings.Replace(rows[j], `"ts"`, `"x"`, 1)
				}
			}
			return &Record{Time: int64(1 + i), Value: []byte("[" + strings.Join(rows, ",") + "]")}
		}, 1000},
		{"one id for several rows", Config{Format: "json", Model: "m", Columns: Columns{Probs: "out[].p", ID: "id"}},
			nil, func(r *rand.Rand, i int) *Record {
				rows := make([]string, 1+r.IntN(4))
				for j := range rows {
					p := float64(r.IntN(64)) / 64
					rows[j] = fmt.Sprintf(`{"p":[%g,%g]}`, p, 1-p)
				}
				return &Record{Time: int64(1 + i),
					Value: fmt.Appendf(nil, `{"id":"a%d","out":[%s]}`, i, strings.Join(rows, ","))}
			}, 2000},
		{"labels", Config{Format: "json", Rows: "labels", Classes: []string{"no", "yes"}}, nil,
			func(r *rand.Rand, i int) *Record {
				label := []string{`"no"`, `"yes"`, `"yes"`, `"no"`, `null`, `"maybe"`}[r.IntN(5+i%2)]
				return &Record{Value: fmt.Appendf(nil, `{"id":"a%d","label":%s}`, i, label), Time: int64(1 + i)}
			}, 500},
		{"of headers and keys", Config{Format: "json", Columns: Columns{ID: "record:key", Model: "header:model"}}, nil,
			func(r *rand.Rand, i int) *Record {
				return &Record{Key: fmt.Appendf(nil, "k%d", i), Time: int64(1 + i),
					Headers: []pipeline.Header{{Key: "model", Value: fmt.Appendf(nil, "m%d", r.IntN(2))}},
					Value:   []byte(`{"probs":[0.25,0.75]}`)}
			}, 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			d, err := New(c.cfg, Options{Slices: c.slices, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			grouped := 0
			var group []*Record
			end := func() {
				if len(group) > 0 {
					compareTogether(t, &c.cfg, c.slices, d, group)
				}
				if len(group) >= 3 {
					grouped += len(group)
				}
				group = nil
			}
			for i := range 2000 {
				record := c.record(r, i)
				switch {
				case len(group) > 0 && len(group) < 50 && adds(d.Add(record)):
					group = append(group, record)
				default:
					end()
					if adds(d.Start(record)) {
						group = append(group, record)
					}
				}
			}
			end()
			if grouped < c.least {
				t.Errorf("%d records in groups of 3 or more, expected %d", grouped, c.least)
			}
		})
	}
}

func adds(rows int, ok bool) bool { return ok && rows > 0 }

// oddPrediction is a record that may lack a column, have another size, several rows, or a fault.
func oddPrediction(r *rand.Rand, i int) string {
	var f []string
	add := func(share float64, text string) {
		if r.Float64() < share {
			f = append(f, text)
		}
	}
	if r.IntN(10) == 0 {
		f = append(f, fmt.Sprintf(`"id":%d`, i))
	} else {
		add(.98, fmt.Sprintf(`"id":"id-%d"`, i))
	}
	add(.95, fmt.Sprintf(`"ts":%d`, 1700000000000+i))
	add(.97, `"model":"m"`)
	add(.05, `"version":"2"`)
	add(.9, fmt.Sprintf(`"region":"r%d"`, r.IntN(3)))
	add(.05, `"label":1`)
	add(.05, `"weight":2`)
	add(.05, `"features":[1,2,3]`)
	switch r.IntN(25) {
	case 0:
		f = append(f, `"probs":[0.25,0.75]`)
	case 1:
		f = append(f, `"logits":[1,2,3]`)
	case 2:
		f = append(f, `"logits":[1,null]`)
	case 3:
		f = append(f, `"logits":[1,"x"]`)
	default:
		f = append(f, fmt.Sprintf(`"logits":[%g,%g]`, r.NormFloat64(), r.NormFloat64()))
	}
	r.Shuffle(len(f), func(i, j int) { f[i], f[j] = f[j], f[i] })
	text := "{" + strings.Join(f, ",") + "}"
	switch r.IntN(40) {
	case 0:
		return text + "\n" + strings.ReplaceAll(text, "id-", "id+")
	case 1:
		return text[:len(text)-1]
	case 2:
		return "[]"
	}
	return text
}

func compareTogether(t *testing.T, cfg *Config, sliceNames []string, d *Decoder, group []*Record) {
	t.Helper()
	together, order, err := d.Together()
	if err != nil {
		t.Fatal(err)
	}
	said := rowsOf(t, together, cfg, sliceNames, 0)
	got := make([]string, len(order))
	if len(said) == len(order) {
		for i, at := range order {
			got[at] = said[i]
		}
	} else {
		got = said
	}
	if len(got) == 1 && len(group) > 1 { // all are refused for the same
		got = slices.Repeat(got, len(group))
	}
	var want []string
	for _, r := range group {
		alone, err := New(*cfg, Options{Slices: sliceNames, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		ms, err := alone.Decode(r)
		if err != nil || len(ms) == 0 {
			t.Fatalf("%s went with others, and alone it is %d messages: %v", r.Value, len(ms), err)
		}
		from := len(want)
		for _, m := range ms {
			want = append(want, rowsOf(t, m, cfg, sliceNames, r.Time)...)
		}
		if len(got) >= len(want) { // those of one number of scores lie together
			slices.Sort(want[from:])
			slices.Sort(got[from:len(want)])
		}
	}
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("row %d of %d:\n%s\nalone:\n%s", i, len(got), got[i], want[i])
			}
		}
		t.Fatalf("%d rows, alone %d", len(got), len(want))
	}
}

// rowsOf are the rows that a shard would read, or why it refuses them.
func rowsOf(t *testing.T, message []byte, cfg *Config, sliceNames []string, at int64) (out []string) {
	t.Helper()
	bs, err := arrowio.NewDecoder(arrowio.Options{Slices: sliceNames}).Decode(message, arrowio.Origin{Time: at},
		cfg.Kind())
	if err != nil {
		return []string{err.Error()}
	}
	for _, b := range bs {
		for i := range b.N {
			m, rejected := b.ModelOf(i)
			cell := func(v reflect.Value) any {
				if v.Len() == 0 {
					return nil
				}
				if v.Index(i).IsZero() && v.Index(i).Kind() == reflect.String {
					return nil
				}
				return v.Index(i).Interface()
			}
			text := fmt.Sprint(m, rejected, b.TS[i], b.K, b.Probs, b.D)
			for _, v := range []any{b.IDs, b.Label, b.Served, b.Weight, b.Reject} {
				text += fmt.Sprint(" ", cell(reflect.ValueOf(v)))
			}
			if b.K > 0 {
				text += fmt.Sprint(b.Scores[i*b.K : (i+1)*b.K])
			}
			if b.D > 0 {
				text += fmt.Sprint(b.Features[i*b.D : (i+1)*b.D])
			}
			for _, s := range b.Slices {
				if at := s.Index[i]; at >= 0 {
					text += fmt.Sprintf(" %s=%q", s.Name, s.Values[at])
				}
			}
			out = append(out, text)
		}
	}
	return out
}
