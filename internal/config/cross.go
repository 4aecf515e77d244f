package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
)

// Check checks the conditions between sections, and the lists of the file.
func (c Config) Check(r *setting.Report) {
	c.checkTopics(r)
	c.checkLists(r)
	c.checkInputs(r)
	c.checkPane(r)
	c.checkUnlabelled(r)
	if a := c.Alarm; a.Enabled && a.Matured > c.Join.Wait && r.Sound("join.wait") {
		r.Fail("alarm.matured", a.Matured, "must be at most join.wait, %s: no label joins later",
			setting.Show(c.Join.Wait))
	}
	limit := c.Kafka.MessageMax
	if c.Sample.BytesPerCell > limit {
		r.Fail("sample.bytes_per_cell", c.Sample.BytesPerCell, "must be at most kafka.message_max_bytes, %d", limit)
	}
	if n := c.Trainer.InlineBytes; n > limit/2 {
		r.Fail("trainer.inline_bytes", n, "must be at most half of kafka.message_max_bytes, %d", limit)
	}
	if c.Refit.Method != "none" && c.Sample.Rows < c.Refit.MaxRows {
		r.Fail("sample.rows", c.Sample.Rows, "must be at least refit.max_rows, %d", c.Refit.MaxRows)
	}
}

// checkTopics checks that topics are named if other sections need them.
func (c Config) checkTopics(r *setting.Report) {
	needed := func(key, name string, when bool, why string) {
		if when && name == "" {
			r.Fail("topics."+key, setting.Quote(""), "must not be empty while %s", why)
		}
	}
	t := c.Topics
	needed("calibrated", t.Calibrated, c.Calibrated.Enabled, "calibrated.enabled is true")
	needed("checkpoints", t.Checkpoints, c.Checkpoints.Store == pipeline.StoreTopic, "checkpoints.store is topic")
	needed("finetune", t.Finetune, c.Trigger.Enabled, "trigger.enabled is true")
	needed("heads", t.Heads, c.Heads.Shadow || c.Trigger.Enabled, "trigger.enabled or heads.shadow is true")
}

// checkLists checks the names in the lists.
func (c Config) checkLists(r *setting.Report) {
	distinct := r.Distinct("models", ".name")
	for i, m := range c.Models {
		distinct(i, m.Name)
	}
	distinct = r.Distinct("windows", ".name")
	for i, w := range c.Windows {
		distinct(i, w.Name)
	}
	distinct = r.Distinct("rules", ".name")
	for i, x := range c.Rules {
		distinct(i, x.Name)
		if slices.Contains(alarm.Names, x.Name) {
			r.Fail(setting.Item("rules", i)+".name", setting.Quote(x.Name), "is that of the alarm")
		}
	}
}

// checkInputs checks that every record is read once, and that its slices are known.
func (c Config) checkInputs(r *setting.Report) {
	distinct := r.Distinct("inputs", ".topic")
	for i, in := range c.Inputs {
		path := setting.Item("inputs", i)
		distinct(i, in.Topic)
		for _, f := range setting.Texts(c.Topics) {
			if f.Value == in.Topic && f.Key != "logits" && f.Key != "labels" {
				r.Fail(path+".topic", setting.Quote(in.Topic), "is that of topics.%s", f.Key)
			}
			if f.Value != "" && f.Value == in.Request.Topic {
				r.Fail(path+".request.topic", setting.Quote(in.Request.Topic), "is that of topics.%s", f.Key)
			}
		}
		for j, other := range c.Inputs {
			if j != i && in.Request.Topic != "" && slices.Contains([]string{other.Topic, other.Request.Topic},
				in.Request.Topic) {
				r.Fail(path+".request.topic", setting.Quote(in.Request.Topic), "is that of %s",
					setting.Item("inputs", j))
			}
		}
		if in.Rows == "labels" && c.Topics.Labels == "" {
			r.Fail(path+".rows", in.Rows, "has no effect while topics.labels is empty")
		}
		if in.Registered() && c.SchemaRegistry.URL == "" {
			r.Fail(path+".format", in.Format, "needs schema_registry.url, which knows the schemas")
		}
		c.checkSlices(r, path+".columns.slices", in.Columns.Slices)
		c.checkSlices(r, path+".request.columns.slices", in.Request.Columns.Slices)
	}
}

func (c Config) checkSlices(r *setting.Report, path string, columns []inputs.SliceColumn) {
	for j, s := range columns {
		if !slices.Contains(c.Slices.Columns, s.Column) {
			r.Fail(setting.Item(path, j)+".column", setting.Quote(s.Column), "must be one of slices.columns")
		}
	}
}

// checkPane checks the times that the length of a pane bounds.
func (c Config) checkPane(r *setting.Report) {
	pane := c.EventTime.Pane
	if !r.Sound("event_time.pane") {
		return // what follows from it says nothing to a person
	}
	for i, w := range c.Windows {
		w.CheckPane(r, setting.Item("windows", i), pane)
	}
	if every := c.Alarm.FalseAlarmEvery; every <= pane {
		r.Fail("alarm.false_alarm_every", every, "must be more than event_time.pane, %s", setting.Show(pane))
	}
	if p := c.Refit.Period; p > 0 && p < pane {
		r.Fail("refit.period", p, "must be 0 (never) or at least event_time.pane, %s", setting.Show(pane))
	}
	if !r.Sound("slices.pane") || !r.Sound("windows") {
		return
	}
	// A silence ends the panes of all slices too, and rows after it would be late by what is left of theirs.
	turns, idle := c.SliceTurns(), c.EventTime.IdleTimeout
	if turns > 1 && idle > 0 && time.Duration(turns)*pane > idle {
		r.Fail("slices.pane", c.Slices.Pane, "must be at most event_time.idle_timeout, %s", setting.Show(idle))
	}
}

// checkUnlabelled checks the keys that need statistics of predictions before their labels.
func (c Config) checkUnlabelled(r *setting.Report) {
	u := c.Unlabelled
	classes := u.Enabled && u.Classes != "none"
	for i, x := range c.Rules {
		path := setting.Item("rules", i)
		if x.Kind == "estimate" && (!u.Enabled || x.Slices && !u.Slices) {
			r.Fail(path+".kind", x.Kind, "needs unlabelled.enabled, and unlabelled.slices where it is for slices")
		}
		if x.Kind == "distance" && x.Score == "class" && (!classes || x.Slices && u.Classes != "slices") {
			r.Fail(path+".score", x.Score,
				"needs unlabelled.enabled and unlabelled.classes, slices where it is for slices")
		}
	}
	if c.Refit.LabelShift != "off" && !classes {
		r.Fail("refit.label_shift", c.Refit.LabelShift, "needs unlabelled.enabled and unlabelled.classes")
	}
}

// SliceTurns are after how many panes slices have theirs (slices.pane).
func (c Config) SliceTurns() slicing.Turns {
	var slides []int64
	for _, w := range c.Windows {
		if w.Kind == window.KindTime {
			slides = append(slides, int64(cmp.Or(w.Slide, w.Size)))
		}
	}
	return slicing.TurnsWithin(int64(c.Slices.Pane), int64(c.EventTime.Pane), slides)
}
