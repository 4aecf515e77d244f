package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// running asks a process how it is, and how many labels meet their predictions.
func (d *doctor) running(ctx context.Context) {
	if d.Ask == nil {
		return
	}
	s, err := d.Ask(ctx)
	if err != nil {
		d.say("process", Warn, "plumbline run -c FILE starts one; --url names another address", "%v", err)
		return
	}
	unusable := false // topics: labels may meet nothing for that
	switch {
	case len(s.Process.Failing) > 0:
		first, do := s.Process.Failing[0], "the log has the record; docs/operations.md says what to do"
		if unusable = first.Task == "topics"; unusable {
			do = "see topics and permissions above; it goes on by itself then"
		}
		d.say("process", Bad, do, "%d tasks fail: %s", len(s.Process.Failing), first.Cause)
	case !s.Ready:
		d.say("process", Warn, "", "not ready: %s", s.Because)
	default:
		d.say("process", OK, "", "ready, %d tasks", len(s.Process.Tasks))
	}
	n := map[string]int64{}
	for _, t := range s.Process.Tasks {
		for name, v := range t.Counts {
			n[name] += v
		}
	}
	d.refusals(n)
	if !unusable {
		d.joins(n)
	}
}

// refusals says what the process has refused since its state began.
func (d *doctor) refusals(n map[string]int64) {
	var said []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		kind, reason, ok := strings.Cut(name, ":")
		if ok && n[name] > 0 && (kind == "dead_letters" || kind == "rejected") {
			what := " messages "
			if kind == "rejected" {
				what = " rows "
			}
			said = append(said, strconv.FormatInt(n[name], 10)+what+reason)
		}
	}
	if said != nil {
		d.say("refused", Warn, "plumbline deadletters shows why", "by this process: %s", strings.Join(said, ", "))
	}
}

// joins says which share of labels meet their prediction.
func (d *doctor) joins(n map[string]int64) {
	labels, met := n["labels"], n["met"]
	lost := n["orphans"] + n["evicted_labels"]
	predictions, waiting, expired := n["predictions"], n["waiting"], n["expired"]
	const few, share = 100, 0.5
	switch {
	case labels == 0 && n["inline"] == 0 && predictions > 0:
		d.say("labels", Warn, "without labels only statistics before labels are there: send some to "+
			d.Config.Topics.Labels, "%d predictions, no label yet", predictions)
	case labels == 0:
	case labels >= few && float64(lost) > share*float64(labels):
		d.say("labels", Bad, "ids of labels must be those of predictions, in the same partition (see keys), and come "+
			"within join.wait", "%d of %d labels met no prediction", lost, labels)
	case labels >= few && float64(met) < share*float64(labels) && waiting+expired > 0:
		d.say("labels", Warn, fmt.Sprintf("do the ids and partitions of labels fit those of predictions (see keys), "+
			"and do labels come within join.wait, %v?", d.Config.Join.Wait),
			"%d of %d labels have met their prediction; %d labels and %d predictions wait for each other; %d "+
				"predictions waited in vain", met, labels, n["waiting_labels"], waiting, expired)
	default:
		d.say("labels", OK, "", "%d of %d labels have met their prediction", met, labels)
	}
	if late := n["late"]; late*10 > n["labelled"]+predictions && late > few {
		d.say("late", Warn, "raise event_time.allowed_lateness", "%d rows came after their pane was emitted", late)
	}
}
