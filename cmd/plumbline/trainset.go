package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/trainer/data"
)

// set makes a set of the rows that have features and a label, are of the span, and are no repeats. Features of at most
// the bound are read into memory. k = 0: the highest label and one.
func (s *trainSource) set(file string, k int) (*data.Set, error) {
	out, err := s.usable(file, k)
	if err != nil {
		return nil, err
	}
	s.keys = nil
	return out, s.hold(out)
}

// usable is the set with features where they lie.
func (s *trainSource) usable(file string, k int) (*data.Set, error) {
	const least = 16 << 20
	stored, err := data.NewStored(s.d, min(max(s.memory, least), data.DefaultCache), s.regions...)
	if err != nil {
		return nil, err
	}
	out := &data.Set{D: s.d, K: k, Stored: stored}
	if k == 0 {
		for _, y := range s.labels {
			out.K = max(out.K, int(y)+1, 2)
		}
	}
	bad, outside, repeated := make([]bool, len(s.labels)), make([]bool, len(s.labels)), s.repeats()
	if err := stored.Scan(func(row int, finite bool) { bad[row] = !finite }); err != nil {
		return nil, fmt.Errorf("read %w", err)
	}
	for _, i := range s.null {
		bad[i] = true
	}
	for _, i := range s.outside {
		outside[i] = true
	}
	timed := !s.untimed && len(s.times) == len(s.labels)
	for i, label := range s.labels {
		switch {
		case outside[i]:
			s.used.Outside++
			continue
		case int(label) >= out.K:
			return nil, fmt.Errorf("%s: row %d: label %d, allowed 0..%d", file, i, label, out.K-1)
		case label < 0:
			s.used.Unlabelled++
			continue
		case bad[i]:
			s.used.NoFeatures++
			continue
		case repeated != nil && repeated[i]:
			s.used.Repeated++
			continue
		}
		out.Index, out.Y = append(out.Index, int32(i)), append(out.Y, label)
		if timed {
			out.Time = append(out.Time, s.times[i])
		}
	}
	if !timed {
		s.times = nil
	}
	if out.N() == 0 {
		return nil, fmt.Errorf("%s: none of the %d rows has features and a label%s", file, len(s.labels), s.used.left())
	}
	return out, nil
}

// hold reads the features of a set into memory where they fit, and closes the files then.
func (s *trainSource) hold(out *data.Set) (err error) {
	if s.used.FeatureBytes = out.Stored.Bytes(out.N()); s.used.FeatureBytes > s.memory {
		s.used.Streamed = true
		return nil
	}
	if out.Half, out.X, err = out.Stored.Pack(out.Index); err != nil {
		return fmt.Errorf("read %w", err)
	}
	out.Stored, out.Index, s.times = nil, data.Rows(out.N()), out.Time
	return s.close()
}

// newest is the last n rows of a set, all where n is 0, in the order of time, of id where times are equal, and of their
// place: which files the rows came from is of no account where they have ids.
func (s *trainSource) newest(set *data.Set, n int) *data.Set {
	rows := data.Rows(set.N())
	if set.Time != nil {
		keyed := len(s.keys) == len(s.labels)
		slices.SortStableFunc(rows, func(a, b int32) int {
			c := cmp.Compare(set.Time[a], set.Time[b])
			if c == 0 && keyed {
				c = cmp.Compare(s.keys[set.Index[a]], s.keys[set.Index[b]])
			}
			return c
		})
	}
	if n > 0 && len(rows) > n {
		rows = rows[len(rows)-n:]
	}
	return set.Select(rows)
}

// repeats marks the rows whose key and time were there before; nil where rows have none.
func (s *trainSource) repeats() []bool {
	if len(s.keys) != len(s.labels) || len(s.times) != len(s.labels) {
		return nil
	}
	rows := data.Rows(len(s.keys))
	slices.SortFunc(rows, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.keys[a], s.keys[b]), cmp.Compare(s.times[a], s.times[b]), cmp.Compare(a, b))
	})
	out := make([]bool, len(rows))
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		out[b] = s.keys[b] == s.keys[a] && s.times[b] == s.times[a] && s.keys[b] != 0
	}
	return out
}

// timeRange is the first and the last event time of some rows: RFC 3339, or a number where the unit is not known.
type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// timeOf is the time range of a set of this source; nil where there are no times.
func (s *trainSource) timeOf(set *data.Set) *timeRange {
	if set == nil || s.times == nil || set.N() == 0 {
		return nil
	}
	place := func(i int) int { return int(set.Index[i]) }
	lo := s.times[place(0)]
	hi := lo
	for i := range set.N() {
		t := s.times[place(i)]
		lo, hi = min(lo, t), max(hi, t)
	}
	format := func(t int64) string {
		if !s.nanos {
			return strconv.FormatInt(t, 10)
		}
		return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
	}
	return &timeRange{format(lo), format(hi)}
}

// left says what was left out beside rows.
func (r trainRows) left() (text string) {
	for _, left := range []struct {
		n   int
		why string
	}{{r.Outside, "rows are of other times"}, {r.OtherFiles, "files are not of the model version"}, {r.Vanished, "files were gone when they were opened"}} {
		if left.n > 0 {
			text += fmt.Sprintf("\n%d %s", left.n, left.why)
		}
	}
	for _, why := range r.Unreadable {
		text += "\nleft out: " + why
	}
	return text
}

// files says where the rows came from: times, files left out, whether features stay in them.
func (r trainRows) files() string {
	text := ""
	for _, of := range []struct {
		name string
		t    *timeRange
	}{{"train", r.TrainTime}, {"validation", r.ValidTime}, {"held out", r.HeldOutTime}} {
		if of.t != nil {
			text += fmt.Sprintf("\n%s: %s to %s", of.name, of.t.From, of.t.To)
		}
	}
	text += r.left()
	if r.Streamed {
		text += fmt.Sprintf("\n%.1f GiB of features stay in %d files (--memory)", float64(r.FeatureBytes)/(1<<30), r.Files)
	}
	return text
}
