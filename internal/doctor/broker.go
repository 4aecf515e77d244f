package doctor

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
)

// use is what is done with a topic.
type use struct {
	key, name   string // key "": a topic of plumbline's own, which run makes
	read, write bool
}

// uses are the topics that the configuration names. With two of reading and writing a topic takes both.
func uses(cfg config.Config) []use {
	t := cfg.Topics
	all := []use{
		{"topics.logits", t.Logits, true, cfg.HTTP.Ingest},
		{"topics.labels", t.Labels, true, cfg.HTTP.Ingest},
		{"topics.panes", t.Panes, true, true},
		{"topics.snapshots", t.Snapshots, true, true},
		{"topics.calibrators", t.Calibrators, true, true},
		{"topics.alerts", t.Alerts, true, true},
		{"topics.decisions", t.Decisions, true, true},
		{"topics.deadletter", t.DeadLetter, false, true},
	}
	if cfg.Trigger.Enabled || cfg.Heads.Shadow {
		all = append(all, use{"topics.finetune", t.Finetune, true, cfg.Trigger.Enabled},
			use{"topics.heads", t.Heads, true, true})
	}
	for _, topic := range cfg.InputTopics() {
		all = append(all, use{"inputs", topic, true, false})
	}
	if cfg.Calibrated.Enabled {
		all = append(all, use{"topics.calibrated", t.Calibrated, false, true})
	}
	if cfg.Checkpoints.Store == pipeline.StoreTopic {
		all = append(all, use{"topics.checkpoints", t.Checkpoints, true, true})
	}
	var out []use
	for _, u := range all {
		if u.name != "" {
			out = append(out, u)
		}
	}
	return out
}

// byID are the topics of plumbline's own that shards read where others are split for them.
func (d *doctor) byID() (out []use) {
	for _, topic := range []string{d.Config.Topics.Logits, d.Config.Topics.Labels} {
		if d.split && topic != "" {
			out = append(out, use{"", kafkaclient.ByID(&d.Config, topic, d.shards), true, true})
		}
	}
	return out
}

// brokers asks for the topics, and reports whether somebody answers.
func (d *doctor) brokers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.topics, d.hidden = map[string]kafkaclient.Topic{}, map[string]bool{}
	began := time.Now()
	brokers, err := d.describe(ctx, uses(d.Config))
	took := time.Since(began)
	if err == nil {
		d.shards, d.split = kafkaclient.Shards(ctx, d.client, &d.Config)
		_, err = d.describe(ctx, d.byID())
	}
	if err != nil {
		d.say("brokers", Bad, "start the brokers, or set kafka.brokers, kafka.tls and kafka.sasl to what they want",
			"%v", kafkaclient.Explain(ctx, d.Config.Kafka, err))
		return false
	}
	d.say("brokers", OK, "", "%d answer, the first in %d ms", brokers, took.Milliseconds())
	d.askCreate(ctx)
	return true
}

// describe asks for the topics of some uses, which it keeps, and returns how many brokers there are.
func (d *doctor) describe(ctx context.Context, of []use) (brokers int, err error) {
	if len(of) == 0 {
		return 0, nil
	}
	var names []string
	for _, u := range of {
		names = append(names, u.name)
	}
	cluster, err := kafkaclient.Describe(ctx, d.dialer, d.Config.Kafka, names)
	maps.Copy(d.topics, cluster.Topics)
	maps.Copy(d.hidden, cluster.Hidden)
	d.uses = append(d.uses, of...)
	return cluster.Brokers, err
}

// askCreate asks which of the topics that are not there, or not to be seen, this user may not make.
func (d *doctor) askCreate(ctx context.Context) {
	var names []string
	for _, u := range d.uses {
		if _, there := d.topics[u.name]; !there && !slices.Contains(names, u.name) {
			names = append(names, u.name)
		}
	}
	if names == nil {
		return
	}
	denied, err := kafkaclient.NotToMake(ctx, d.client, names)
	if err != nil {
		d.say("permissions", Unknown, "", "%v", err)
	}
	d.noCreate = map[string]bool{}
	for _, name := range denied {
		d.noCreate[name] = true
	}
}

// checkTopics looks whether the topics are there, and fit each other.
func (d *doctor) checkTopics() {
	var missing, hidden, leaderless, thin []string
	mend := "plumbline topics create -c FILE makes them"
	for _, u := range d.uses {
		t, ok := d.topics[u.name]
		switch {
		case d.hidden[u.name]:
			hidden = append(hidden, u.name)
		case !ok && u.key == "":
		case !ok:
			missing = append(missing, u.name+" ("+u.key+")")
			if d.noCreate[u.name] {
				mend = "plumbline topics create -c FILE makes them, as a user who may: " + d.user() + " has no right to"
			}
		case t.Leaderless > 0:
			leaderless = append(leaderless, u.name)
		case t.Behind > 0:
			thin = append(thin, u.name)
		}
	}
	if missing != nil {
		d.say("topics", Bad, mend, "not there: %s", list(missing))
	}
	if hidden != nil {
		d.say("topics", Unknown, "give the rights below first", "%s may not see whether they are there: %s", d.user(),
			list(hidden))
	}
	if leaderless != nil {
		d.say("topics", Bad, "start the brokers that have their replicas", "partitions without a leader: %s",
			list(leaderless))
	}
	if thin != nil {
		d.say("topics", Warn, "a broker is down or slow: look at its log", "replicas behind their leader: %s",
			list(thin))
	}
	logits, labels := d.topics[d.Config.Topics.Logits], d.topics[d.Config.Topics.Labels]
	if d.Config.Splits() && !d.split {
		d.say("topics", Warn, "set it to true; or let plumbline split them: plumbline scale -c FILE --partitions N",
			"topics.keyed is false and has no effect: the shards of group %s have read the topics themselves since it "+
				"began, so each row must be in the partition of its id", d.Config.Group)
	}
	if !d.split && logits.Partitions > 0 && labels.Partitions > 0 && logits.Partitions != labels.Partitions {
		d.say("topics", Bad, "make both with the same number: plumbline scale -c FILE --partitions N",
			"%s has %d partitions, %s has %d: predictions meet labels by partition", d.Config.Topics.Logits,
			logits.Partitions, d.Config.Topics.Labels, labels.Partitions)
	}
	if missing == nil && hidden == nil && leaderless == nil {
		d.say("topics", OK, "", "all %d are there, %d partitions of predictions", len(d.topics), logits.Partitions)
	}
}

// settings looks whether topics delete or refuse what is needed.
func (d *doctor) settings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	unfit, err := kafkaclient.UnfitTopics(ctx, d.client, d.Config)
	if err != nil {
		d.say("topics", Unknown, "allow DescribeConfigs on them (docs/operations.md, Security)",
			"whether they keep what they must, and take messages of kafka.message_max_bytes: %v", err)
	}
	for _, u := range unfit {
		state := Bad
		if u.Slow {
			state = Warn
		}
		d.say("topics", state, u.Mend(d.Config), "%s", u)
	}
	refuse, _ := kafkaclient.RefuseWrites(ctx, d.client, d.topics)
	if refuse != nil {
		d.say("topics", Bad, "start the broker that is down, add replicas, or lower min.insync.replicas",
			"nothing can be written, so nothing goes on: too few replicas of %s", list(refuse))
	}
	small, _ := kafkaclient.SmallTopics(ctx, d.client, d.Config) // the same error
	for _, s := range small {
		d.say("topics", Warn, "", "%s", s)
	}
}
