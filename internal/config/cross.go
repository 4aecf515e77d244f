package config

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gridCells is the number of equal cells of the confidence grid: ECE is exact for numbers of bins that divide it.
const gridCells = 3600

// reserved are the columns that the wire schema gives a meaning; they cannot be cohorts.
var reserved = []string{"id", "ts", "logits", "logit", "probs", "prob", "label", "features", "model", "version", "served", "weight"}

// cross checks the conditions between keys, and those that the table of fields cannot state.
func (ck *checker) cross(c Config) {
	ck.kafka(c.Kafka)
	ck.topics(c)
	ck.models(c)
	ck.stats(c)
	ck.windows(c)
	ck.alarm(c)
	ck.rules(c)
	ck.refit(c)
	ck.finetune(c)
	ck.notify(c.Notify)
	ck.archive(c.Archive)
	ck.history(c.History)
	if c.HTTP.Listen != "" {
		ck.address("http.listen", c.HTTP.Listen)
	}
}

func (ck *checker) archive(a Archive) {
	if a.MaxBytes > 0 && a.MaxBytes < a.RollBytes {
		ck.fail("archive.max_bytes", a.MaxBytes, "must be 0 or at least archive.roll_bytes, %d", a.RollBytes)
	}
	if a.MaxAge > 0 && a.MaxAge < a.RollTime {
		ck.fail("archive.max_age", a.MaxAge, "must be 0 or at least archive.roll_time, %s", a.RollTime)
	}
}

func (ck *checker) kafka(k Kafka) {
	for i, b := range k.Brokers {
		ck.address(indexed("kafka.brokers", i), b)
	}
	if k.FetchMax < k.MessageMax {
		ck.fail("kafka.fetch_max_bytes", k.FetchMax, "must be at least kafka.message_max_bytes, %d", k.MessageMax)
	}
	if k.TLS.CAFile != "" && !k.TLS.Enabled {
		ck.fail("kafka.tls.ca_file", quoted(k.TLS.CAFile), "has no effect while kafka.tls.enabled is false")
	}
	for _, f := range []struct{ key, name string }{{"cert_file", k.TLS.CertFile}, {"key_file", k.TLS.KeyFile}} {
		if f.name != "" && !k.TLS.Enabled {
			ck.fail("kafka.tls."+f.key, quoted(f.name), "has no effect while kafka.tls.enabled is false")
		}
	}
	if (k.TLS.CertFile == "") != (k.TLS.KeyFile == "") {
		ck.fail("kafka.tls.cert_file", quoted(k.TLS.CertFile), "must be set together with kafka.tls.key_file (%s)", quoted(k.TLS.KeyFile))
	}
	s := k.SASL
	switch {
	case s.Username == "" && s.PasswordEnv+s.PasswordFile != "":
		ck.fail("kafka.sasl.username", quoted(""), "must not be empty where a password is named")
	case s.Username != "" && s.PasswordEnv == "" && s.PasswordFile == "":
		ck.fail("kafka.sasl.username", quoted(s.Username), "needs a password: set kafka.sasl.password_env or kafka.sasl.password_file")
	case s.PasswordEnv != "" && s.PasswordFile != "":
		ck.fail("kafka.sasl.password_file", quoted(s.PasswordFile), "only one of password_env and password_file may be set")
	}
}

// address checks host:port; the host may be empty (all interfaces) only for listening.
func (ck *checker) address(path, s string) {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.ParseUint(port, 10, 16)
	listen := path == "http.listen"
	if err != nil || perr != nil || (n == 0 || host == "") && !listen {
		ck.fail(path, quoted(s), "must be host:port, such as 127.0.0.1:9092")
	}
}

func (ck *checker) topics(c Config) {
	t := c.Topics
	seen := map[string]string{}
	for _, e := range []struct{ key, name string }{
		{"logits", t.Logits}, {"labels", t.Labels}, {"panes", t.Panes}, {"snapshots", t.Snapshots},
		{"calibrators", t.Calibrators}, {"alerts", t.Alerts}, {"decisions", t.Decisions}, {"finetune", t.Finetune}, {"heads", t.Heads}, {"calibrated", t.Calibrated}, {"deadletter", t.DeadLetter}, {"checkpoints", t.Checkpoints},
		{"logits_unkeyed", t.LogitsUnkeyed}, {"labels_unkeyed", t.LabelsUnkeyed},
	} {
		if e.name == "" {
			continue
		}
		if other, dup := seen[e.name]; dup {
			ck.fail("topics."+e.key, quoted(e.name), "must differ from topics.%s", other)
		}
		seen[e.name] = e.key
	}
	if c.Calibrated.Enabled && t.Calibrated == "" {
		ck.fail("topics.calibrated", quoted(""), "must not be empty while calibrated.enabled is true")
	}
	if t.LabelsUnkeyed != "" && t.Labels == "" {
		ck.fail("topics.labels_unkeyed", quoted(t.LabelsUnkeyed), "has no effect while topics.labels is empty")
	}
	if c.Checkpoints.Store == StoreTopic && t.Checkpoints == "" {
		ck.fail("topics.checkpoints", quoted(""), "must not be empty while checkpoints.store is topic")
	}
}

func (ck *checker) models(c Config) {
	names := ck.distinct("models", ".name")
	for i, m := range c.Models {
		names(i, m.Name)
		if m.Classes == 1 {
			ck.fail(indexed("models", i)+".classes", m.Classes, "must be 0 (learnt) or 2 to 1000000")
		}
	}
	columns := ck.distinct("slices.columns", "")
	for i, col := range c.Slices.Columns {
		columns(i, col)
		for _, r := range reserved {
			if col == r {
				ck.fail(indexed("slices.columns", i), quoted(col), "is a column of the schema, not a cohort")
			}
		}
	}
}

// distinct returns a check that the items of a list have different names.
func (ck *checker) distinct(list, key string) func(i int, name string) {
	seen := map[string]int{}
	return func(i int, name string) {
		if first, dup := seen[name]; dup && name != "" {
			ck.fail(indexed(list, i)+key, quoted(name), "is that of %s; each must be there once", indexed(list, first))
			return
		}
		seen[name] = i
	}
}

func (ck *checker) stats(c Config) {
	divides := func(path string, n int) {
		if n > 0 && n <= gridCells && gridCells%n != 0 {
			ck.fail(path, n, "must divide %d, such as 10, 12, 15, 18, 20, 24, 25, 30", gridCells)
		}
	}
	divides("stats.bins", c.Stats.Bins)
	seen := map[int]bool{c.Stats.Bins: true}
	for i, n := range c.Stats.ExtraBins {
		path := indexed("stats.extra_bins", i)
		divides(path, n)
		if seen[n] {
			ck.fail(path, n, "is there already, here or as stats.bins")
		}
		seen[n] = true
	}
	if c.Sample.BytesPerCell > c.Kafka.MessageMax {
		ck.fail("sample.bytes_per_cell", c.Sample.BytesPerCell, "must be at most kafka.message_max_bytes, %d", c.Kafka.MessageMax)
	}
}

func (ck *checker) windows(c Config) {
	pane := c.EventTime.Pane
	names := ck.distinct("windows", ".name")
	for i, w := range c.Windows {
		names(i, w.Name)
		path := indexed("windows", i)
		switch w.Kind {
		case KindTime:
			if w.Size <= 0 || pane > 0 && w.Size%pane != 0 {
				ck.fail(path+".size", w.Size, "must be a multiple of event_time.pane, %s", show(pane))
			} else if slide := w.Slide; slide > 0 && (w.Size%slide != 0 || pane > 0 && slide%pane != 0) {
				ck.fail(path+".slide", slide, "must divide size, %s, and be a multiple of event_time.pane, %s", show(w.Size), show(pane))
			}
			if w.Rows != 0 || w.Every != 0 {
				ck.fail(path+".kind", w.Kind, "takes size and slide; rows and every are for kind rows")
			}
		case KindRows:
			if w.Rows < 1 {
				ck.fail(path+".rows", w.Rows, "must be 1 to %d", int64(maxRows))
			}
			if w.Size != 0 || w.Slide != 0 {
				ck.fail(path+".kind", w.Kind, "takes rows and every; size and slide are for kind time")
			}
		}
	}
}

// alarmNames are the rules that the alarm goes by in alerts.
var alarmNames = []string{"calibration-raw", "calibration-calibrated", "accuracy-fall"}

func (ck *checker) alarm(c Config) {
	a := c.Alarm
	if a.Bins > 0 && gridCells%a.Bins != 0 {
		ck.fail("alarm.bins", a.Bins, "must divide %d, such as 10, 12, 15, 18, 20, 24, 25, 30", gridCells)
	}
	if a.FalseAlarmEvery <= c.EventTime.Pane {
		ck.fail("alarm.false_alarm_every", a.FalseAlarmEvery, "must be more than event_time.pane, %s", show(c.EventTime.Pane))
	}
	signals := ck.distinct("alarm.signals", "")
	for i, s := range a.Signals {
		signals(i, s)
	}
	for i, r := range c.Rules {
		if slices.Contains(alarmNames, r.Name) {
			ck.fail(indexed("rules", i)+".name", quoted(r.Name), "is that of the alarm")
		}
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

func (ck *checker) rules(c Config) {
	rules := c.Rules
	names := ck.distinct("rules", ".name")
	for i, r := range rules {
		names(i, r.Name)
		path := indexed("rules", i)
		ck.bounds(path, r)
		if allowed := measures[r.Kind]; allowed != nil && !slices.Contains(allowed, r.Measure) {
			ck.fail(path+".measure", r.Measure, "kind %s takes %s", r.Kind, strings.Join(allowed, ", "))
		}
		if r.Kind == "estimate" && (!c.Unlabelled.Enabled || r.Slices && !c.Unlabelled.Slices) {
			ck.fail(path+".kind", r.Kind, "needs unlabelled.enabled, and unlabelled.slices where it is for slices")
		}
		if r.Kind == "distance" && r.Score == "class" {
			ck.classRule(path, r, c.Unlabelled)
		}
		if r.MinRows > r.Rows {
			ck.fail(path+".min_rows", r.MinRows, "must be at most rows, %d", r.Rows)
		}
	}
}

// classRule checks a rule on the shares of predicted classes.
func (ck *checker) classRule(path string, r Rule, u Unlabelled) {
	if r.Measure != "psi" && r.Measure != "js" {
		ck.fail(path+".measure", r.Measure, "score class takes psi, js: classes have no order")
	}
	if !u.Enabled || u.Classes == "none" || r.Slices && u.Classes != "slices" {
		ck.fail(path+".score", r.Score, "needs unlabelled.enabled and unlabelled.classes, slices where it is for slices")
	}
}

// bounds checks what a rule's value is compared with.
func (ck *checker) bounds(path string, r Rule) {
	switch {
	case r.Side == "below" && r.Clear <= r.Fire:
		ck.fail(path+".clear", r.Clear, "must be more than fire, %s, with side below", show(r.Fire))
	case r.Side != "below" && r.Clear >= r.Fire:
		ck.fail(path+".clear", r.Clear, "must be less than fire, %s", show(r.Fire))
	}
	if r.Kind != "threshold" && (r.Side != "above" || r.Interval || r.Age != 0) {
		ck.fail(path+".kind", r.Kind, "side, interval and age are for kind threshold")
	}
	if r.Kind == "threshold" && r.Measure != "coverage" && r.Age != 0 {
		ck.fail(path+".age", r.Age, "is for measure coverage")
	}
	if r.Kind == "threshold" && r.Measure == "nll" {
		return
	}
	for _, b := range []struct {
		key   string
		value float64
	}{{".fire", r.Fire}, {".clear", r.Clear}} {
		if b.value > 1 {
			ck.fail(path+b.key, b.value, "must be at most 1: only measure nll of kind threshold goes higher")
		}
	}
}

func (ck *checker) refit(c Config) {
	r := c.Refit
	if r.Period > 0 && r.Period < c.EventTime.Pane {
		ck.fail("refit.period", r.Period, "must be 0 (never) or at least event_time.pane, %s", show(c.EventTime.Pane))
	}
	if r.MinRows > r.MaxRows {
		ck.fail("refit.min_rows", r.MinRows, "must be at most refit.max_rows, %d", r.MaxRows)
	}
	if r.FreshRows > r.MaxRows {
		ck.fail("refit.fresh_rows", r.FreshRows, "must be at most refit.max_rows, %d", r.MaxRows)
	}
	if r.Method != "none" && c.Sample.Rows < r.MaxRows {
		ck.fail("sample.rows", c.Sample.Rows, "must be at least refit.max_rows, %d", r.MaxRows)
	}
	if u := c.Unlabelled; r.LabelShift != "off" && (!u.Enabled || u.Classes == "none") {
		ck.fail("refit.label_shift", r.LabelShift, "needs unlabelled.enabled and unlabelled.classes")
	}
}

// ownLabels are those that tell alerts apart in Alertmanager.
var ownLabels = []string{"alertname", "severity", "model", "version", "slice"}

func (ck *checker) notify(n Notify) {
	if n.ExternalURL != "" && !regexp.MustCompile(urlPattern).MatchString(n.ExternalURL) {
		ck.fail("notify.external_url", quoted(n.ExternalURL), "must be http:// or https:// and a host")
	} else if strings.ContainsAny(n.ExternalURL, "?#") {
		ck.fail("notify.external_url", quoted(n.ExternalURL), "must have neither ? nor #: paths and queries are added to it")
	}
	seen := map[string]bool{}
	for i, l := range n.Labels {
		name, _, _ := strings.Cut(l, "=")
		switch {
		case slices.Contains(ownLabels, name):
			ck.fail(indexed("notify.labels", i), quoted(l), "must not be one of the alert's own labels, %s: alerts of different models would be one", strings.Join(ownLabels, ", "))
		case seen[name]:
			ck.fail(indexed("notify.labels", i), quoted(l), "must have a name that is there once")
		}
		seen[name] = true
	}
	for i, w := range n.Webhooks {
		path := indexed("notify.webhooks", i)
		if (w.URL == "") == (w.URLFile == "") {
			ck.fail(path+".url", quoted(w.URL), "exactly one of url and url_file must be set")
		}
		if w.SecretEnv != "" && w.SecretFile != "" {
			ck.fail(path+".secret_file", quoted(w.SecretFile), "only one of secret_env and secret_file may be set")
		}
	}
}
