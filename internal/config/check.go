package config

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

// Check implements the check of conditions between keys.
func (t Topics) Check(r *setting.Report) {
	seen := map[string]string{}
	for _, f := range setting.Texts(t) {
		if f.Value == "" {
			continue
		}
		if other, dup := seen[f.Value]; dup {
			r.Fail(f.Key, setting.Quote(f.Value), "must differ from @%s", other)
		}
		seen[f.Value] = f.Key
	}
	if t.LabelsUnkeyed != "" && t.Labels == "" {
		r.Fail("labels_unkeyed", setting.Quote(t.LabelsUnkeyed), "has no effect while @labels is empty")
	}
}

// Check implements the check of conditions between keys.
func (m Model) Check(r *setting.Report) {
	if m.Classes == 1 {
		r.Fail("classes", m.Classes, "must be 0 (learnt) or 2 to 1000000")
	}
}

// Check implements the check of conditions between keys.
func (s Slices) Check(r *setting.Report) {
	columns := r.Distinct("columns", "")
	for i, col := range s.Columns {
		columns(i, col)
		if slices.Contains(reserved, col) {
			r.Fail(setting.Item("columns", i), setting.Quote(col), "is a column of the schema, not a cohort")
		}
	}
}

// gridCells is the number of equal cells of the confidence grid: ECE is exact for numbers of bins that divide it.
const gridCells = 3600

// divides checks a number of bins.
func divides(r *setting.Report, key string, n int) {
	if n > 0 && n <= gridCells && gridCells%n != 0 {
		r.Fail(key, n, "must divide %d, such as 10, 12, 15, 18, 20, 24, 25, 30", gridCells)
	}
}

// Check implements the check of conditions between keys.
func (s Stats) Check(r *setting.Report) {
	divides(r, "bins", s.Bins)
	seen := map[int]bool{s.Bins: true}
	for i, n := range s.ExtraBins {
		key := setting.Item("extra_bins", i)
		divides(r, key, n)
		if seen[n] {
			r.Fail(key, n, "is there already, here or as @bins")
		}
		seen[n] = true
	}
}

// Check implements the check of conditions between keys.
func (w Window) Check(r *setting.Report) {
	switch {
	case w.Kind == KindTime && (w.Rows != 0 || w.Every != 0):
		r.Fail("kind", w.Kind, "takes size and slide; rows and every are for kind rows")
	case w.Kind == KindRows && (w.Size != 0 || w.Slide != 0):
		r.Fail("kind", w.Kind, "takes rows and every; size and slide are for kind time")
	}
	if w.Kind == KindRows && w.Rows < 1 {
		r.Fail("rows", w.Rows, "must be 1 to 1000000000")
	}
}

// checkPane looks at the times of the window at path against the length of a pane.
func (w Window) checkPane(r *setting.Report, path string, pane time.Duration) {
	of := func(d time.Duration) bool { return pane <= 0 || d%pane == 0 }
	switch show := setting.Show; {
	case w.Kind != KindTime:
	case w.Size <= 0 || !of(w.Size):
		r.Fail(path+".size", w.Size, "must be a multiple of event_time.pane, %s", show(pane))
	case w.Slide > 0 && (w.Size%w.Slide != 0 || !of(w.Slide)):
		r.Fail(path+".slide", w.Slide, "must divide size, %s, and be a multiple of event_time.pane, %s",
			show(w.Size), show(pane))
	}
}

// alarmNames are the rules that the alarm goes by in alerts.
var alarmNames = []string{"calibration-raw", "calibration-calibrated", "accuracy-fall"}

// Check implements the check of conditions between keys.
func (a Alarm) Check(r *setting.Report) {
	divides(r, "bins", a.Bins)
	signals := r.Distinct("signals", "")
	for i, s := range a.Signals {
		signals(i, s)
	}
}

// measures are those of each kind of rule.
var measures = map[string][]string{
	"excess":    {"ece"},
	"reference": {"ece", "smece", "accuracy", "nll", "curve"},
	"distance":  {"ks", "psi", "wasserstein", "js"},
	"estimate":  {"accuracy", "ece", "miss"},
	"threshold": {"accuracy", "nll", "ece", "smece", "confidence", "coverage"},
}

// Check implements the check of conditions between keys.
func (c Rule) Check(r *setting.Report) {
	c.bounds(r)
	if allowed := measures[c.Kind]; allowed != nil && !slices.Contains(allowed, c.Measure) {
		r.Fail("measure", c.Measure, "kind %s takes %s", c.Kind, strings.Join(allowed, ", "))
	}
	if c.Kind == "distance" && c.Score == "class" && c.Measure != "psi" && c.Measure != "js" {
		r.Fail("measure", c.Measure, "score class takes psi, js: classes have no order")
	}
	if c.MinRows > c.Rows {
		r.Fail("min_rows", c.MinRows, "must be at most rows, %d", c.Rows)
	}
}

// bounds checks the thresholds.
func (c Rule) bounds(r *setting.Report) {
	switch {
	case c.Side == "below" && c.Clear <= c.Fire:
		r.Fail("clear", c.Clear, "must be more than fire, %s, with side below", setting.Show(c.Fire))
	case c.Side != "below" && c.Clear >= c.Fire:
		r.Fail("clear", c.Clear, "must be less than fire, %s", setting.Show(c.Fire))
	}
	if c.Kind != "threshold" && (c.Side != "above" || c.Interval || c.Age != 0) {
		r.Fail("kind", c.Kind, "side, interval and age are for kind threshold")
	}
	if c.Kind == "threshold" && c.Measure != "coverage" && c.Age != 0 {
		r.Fail("age", c.Age, "is for measure coverage")
	}
	if c.Kind == "threshold" && c.Measure == "nll" {
		return
	}
	for _, b := range []struct {
		key   string
		value float64
	}{{"fire", c.Fire}, {"clear", c.Clear}} {
		if b.value > 1 {
			r.Fail(b.key, b.value, "must be at most 1: only measure nll of kind threshold goes higher")
		}
	}
}

// Check implements the check of conditions between keys.
func (c Refit) Check(r *setting.Report) {
	if c.MinRows > c.MaxRows {
		r.Fail("min_rows", c.MinRows, "must be at most @max_rows, %d", c.MaxRows)
	}
	if c.FreshRows > c.MaxRows {
		r.Fail("fresh_rows", c.FreshRows, "must be at most @max_rows, %d", c.MaxRows)
	}
}

// Check implements the check of conditions between keys.
func (a Archive) Check(r *setting.Report) {
	if a.MaxBytes > 0 && a.MaxBytes < a.RollBytes {
		r.Fail("max_bytes", a.MaxBytes, "must be 0 or at least @roll_bytes, %d", a.RollBytes)
	}
	if a.MaxAge > 0 && a.MaxAge < a.RollTime {
		r.Fail("max_age", a.MaxAge, "must be 0 or at least @roll_time, %s", setting.Show(a.RollTime))
	}
}

// Check implements the check of conditions between keys.
func (t Trigger) Check(r *setting.Report) {
	if t.MinRows > t.Rows {
		r.Fail("min_rows", t.MinRows, "must be at most @rows, %d", t.Rows)
	}
}

// Check implements the check of conditions between keys.
func (h Heads) Check(r *setting.Report) {
	if h.MinRows > h.MaxRows {
		r.Fail("min_rows", h.MinRows, "must be at most @max_rows, %d", h.MaxRows)
	}
}

// Check implements the check of conditions between keys.
func (t Trainer) Check(r *setting.Report) {
	if t.LostAfter < 2*t.Heartbeat {
		r.Fail("lost_after", t.LostAfter, "must be at least twice @heartbeat, %s", setting.Show(t.Heartbeat))
	}
	if t.Balance > 0 && t.Balance < 1 {
		r.Fail("balance", t.Balance, "must be 0 or at least 1")
	}
}

// ownLabels are those that tell alerts apart in Alertmanager.
var ownLabels = []string{"alertname", "severity", "model", "version", "slice"}

// Check implements the check of conditions between keys.
func (n Notify) Check(r *setting.Report) {
	if strings.ContainsAny(n.ExternalURL, "?#") {
		r.Fail("external_url", setting.Quote(n.ExternalURL),
			"must have neither ? nor #: paths and queries are added to it")
	}
	seen := map[string]bool{}
	for i, l := range n.Labels {
		name, _, _ := strings.Cut(l, "=")
		switch {
		case slices.Contains(ownLabels, name):
			r.Fail(setting.Item("labels", i), setting.Quote(l),
				"must not be one of the alert's own labels, %s: alerts of different models would be one",
				strings.Join(ownLabels, ", "))
		case seen[name]:
			r.Fail(setting.Item("labels", i), setting.Quote(l), "must have a name that is there once")
		}
		seen[name] = true
	}
}

// Check implements the check of conditions between keys.
func (w Webhook) Check(r *setting.Report) {
	if (w.URL == "") == (w.URLFile == "") {
		r.Fail("url", setting.Quote(w.URL), "exactly one of url and url_file must be set")
	}
	if w.SecretEnv != "" && w.SecretFile != "" {
		r.Fail("secret_file", setting.Quote(w.SecretFile), "only one of secret_env and secret_file may be set")
	}
}

// Check implements the check of conditions between keys.
func (h History) Check(r *setting.Report) {
	if h.DSNEnv != "" && h.DSNFile != "" {
		r.Fail("dsn_file", setting.Quote(h.DSNFile), "only one of dsn_env and dsn_file may be set")
	}
	for _, k := range []struct{ key, value, store string }{
		{"dsn_env", h.DSNEnv, HistoryPostgres}, {"dsn_file", h.DSNFile, HistoryPostgres},
		{"path", h.Path, HistoryFile},
	} {
		if k.value != "" && h.Store != k.store {
			r.Fail(k.key, setting.Quote(k.value), "has no effect while @store is %s", h.Store)
		}
	}
}
