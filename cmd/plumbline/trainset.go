package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/trainer/data"
)

// set makes a set of the rows that have features and a label, and are no repeats. Features of at most the bound are read
// into memory. k = 0: the highest label and one.
func (s *trainSource) set(file string, k int) (*data.Set, error) {
	stored, err := data.NewStored(s.d, 0, s.regions...)
	if err != nil {
		return nil, err
	}
	out := &data.Set{D: s.d, K: k, Stored: stored}
	if k == 0 {
		for _, y := range s.labels {
			out.K = max(out.K, int(y)+1, 2)
		}
	}
	bad := make([]bool, len(s.labels))
	if err := stored.Scan(func(row int, finite bool) { bad[row] = !finite }); err != nil {
		return nil, fmt.Errorf("read %w", err)
	}
	for _, i := range s.null {
		bad[i] = true
	}
	repeated := s.repeats()
	timed := !s.untimed && len(s.times) == len(s.labels)
	for i, label := range s.labels {
		switch {
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
	if out.N() == 0 {
		return nil, fmt.Errorf("%s: none of the %d rows has features and a label", file, len(s.labels))
	}
	if !timed {
		s.times = nil
	}
	if s.used.FeatureBytes = stored.Bytes(); s.used.FeatureBytes > s.memory {
		s.used.Streamed = true
		return out, nil
	}
	out.Stored = nil
	if out.Half, out.X, err = stored.Load(); err != nil {
		return nil, fmt.Errorf("read %w", err)
	}
	return out, s.close()
}

// repeats marks the rows whose key was there before; nil where rows have none.
func (s *trainSource) repeats() []bool {
	if len(s.keys) != len(s.labels) {
		return nil
	}
	rows := data.Rows(len(s.keys))
	slices.SortFunc(rows, func(a, b int32) int { return cmp.Or(cmp.Compare(s.keys[a], s.keys[b]), cmp.Compare(a, b)) })
	out := make([]bool, len(rows))
	for i := 1; i < len(rows); i++ {
		out[rows[i]] = s.keys[rows[i]] == s.keys[rows[i-1]] && s.keys[rows[i]] != 0
	}
	s.keys = nil
	return out
}

// timeRange is the first and the last event time of some rows: RFC 3339, or a number where the unit is not known.
type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// timeOf is the time range of a set of this source; nil where there are no times, or it is of another file.
func (s *trainSource) timeOf(set *data.Set) *timeRange {
	if set == nil || s.times == nil || set.N() == 0 || set.Stored != nil && set.Stored.Rows() != len(s.times) {
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
	for _, left := range []struct {
		n   int
		why string
	}{{r.OtherFiles, "files are not of the model version"}, {r.Vanished, "files were gone when they were opened"}} {
		if left.n > 0 {
			text += fmt.Sprintf("\n%d %s", left.n, left.why)
		}
	}
	for _, why := range r.Unreadable {
		text += "\nleft out: " + why
	}
	if r.Streamed {
		text += fmt.Sprintf("\n%.1f GiB of features stay in %d files (--memory)", float64(r.FeatureBytes)/(1<<30), r.Files)
	}
	return text
}
