package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// use is what is done with a topic.
type use struct {
	key, name   string
	read, write bool
}

// uses are the topics that the configuration names. With two of reading and writing a topic takes both.
func uses(cfg config.Config) []use {
	t := cfg.Topics
	all := []use{
		{"topics.logits", t.Logits, true, cfg.HTTP.Ingest},
		{"topics.labels", t.Labels, true, cfg.HTTP.Ingest},
		{"topics.panes", t.Panes, true, true},
		{"topics.snapshots", t.Snapshots, false, true},
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

// brokers asks for the topics, and reports whether somebody answers.
func (d *doctor) brokers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var names []string
	for _, u := range uses(d.Config) {
		names = append(names, u.name)
	}
	began := time.Now()
	cluster, err := kafkaclient.Describe(ctx, d.dialer, d.Config.Kafka, names)
	if err != nil {
		d.say("brokers", Bad, "start the brokers, or set kafka.brokers, kafka.tls and kafka.sasl to what they want",
			"%v", kafkaclient.Explain(ctx, d.Config.Kafka, err))
		return false
	}
	d.topics = cluster.Topics
	d.say("brokers", OK, "", "%d answer, the first in %d ms", cluster.Brokers, time.Since(began).Milliseconds())
	return true
}

// checkTopics looks whether the topics are there, and fit each other.
func (d *doctor) checkTopics() {
	var missing, leaderless, thin []string
	for _, u := range uses(d.Config) {
		t, ok := d.topics[u.name]
		switch {
		case !ok:
			missing = append(missing, u.name+" ("+u.key+")")
		case t.Leaderless > 0:
			leaderless = append(leaderless, u.name)
		case t.Behind > 0:
			thin = append(thin, u.name)
		}
	}
	if missing != nil {
		d.say("topics", Bad, "plumbline topics create -c FILE makes them",
			"not there, or not to be seen by this user: %s", strings.Join(missing, ", "))
	}
	if leaderless != nil {
		d.say("topics", Bad, "start the brokers that have their replicas", "partitions without a leader: %s",
			strings.Join(leaderless, ", "))
	}
	if thin != nil {
		d.say("topics", Warn, "a broker is down or slow: look at its log", "replicas behind their leader: %s",
			strings.Join(thin, ", "))
	}
	logits, labels := d.topics[d.Config.Topics.Logits], d.topics[d.Config.Topics.Labels]
	if !d.Config.Splits() && logits.Partitions > 0 && labels.Partitions > 0 && logits.Partitions != labels.Partitions {
		d.say("topics", Bad, "make both with the same number: plumbline scale -c FILE --partitions N",
			"%s has %d partitions, %s has %d: predictions meet labels by partition", d.Config.Topics.Logits,
			logits.Partitions, d.Config.Topics.Labels, labels.Partitions)
	}
	if missing == nil && leaderless == nil {
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
	small, _ := kafkaclient.SmallTopics(ctx, d.client, d.Config) // the same error
	for _, s := range small {
		d.say("topics", Warn, "", "%s", s)
	}
}

// permissions says what this user may not do with the topics.
func (d *doctor) permissions() {
	var denied []string
	known := 0
	for _, u := range uses(d.Config) {
		t, ok := d.topics[u.name]
		if !ok || !t.Known {
			continue
		}
		known++
		if u.read && !t.Read {
			denied = append(denied, "Read "+u.name)
		}
		if u.write && !t.Write {
			denied = append(denied, "Write "+u.name)
		}
	}
	user := d.user()
	switch {
	case denied != nil:
		d.say("permissions", Bad, "give them, as with kafka-acls.sh --add (docs/operations.md, Security)",
			"%s may not: %s", user, strings.Join(denied, ", "))
	case known == 0:
		d.say("permissions", Unknown, "", "the brokers do not say what %s may do", user)
	default:
		d.say("permissions", OK, "", "%s may read and write what it must", user)
	}
}

// groups are the consumer groups that processes join.
func (d *doctor) groups() []string {
	c := d.Config
	if !c.Splits() {
		return []string{c.Group + "-shards", c.Group + "-models"}
	}
	// As of the first start; names after a change of the number of shards, or where an input was made again, differ in
	// their end.
	of := fmt.Sprintf("-%d", cmp.Or(d.topics[c.Topics.Logits].Partitions, c.Kafka.Partitions))
	out := []string{c.Group + "-shards" + of, c.Group + "-models"}
	inputs := c.InputTopics()
	for _, topic := range inputs {
		out = append(out, c.Group+"-input-"+topic+of)
	}
	for in, topic := range map[string]string{"logits": c.Topics.Logits, "labels": c.Topics.Labels} {
		if topic != "" && !c.Topics.Keyed && !slices.Contains(inputs, topic) {
			out = append(out, c.Group+"-repartition-"+in+of)
		}
	}
	slices.Sort(out)
	return out
}

// checkGroups asks whether this user may join the consumer groups.
func (d *doctor) checkGroups(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var denied []string
	for _, name := range d.groups() {
		if kafkaio.MayJoin(ctx, d.client, name) != nil {
			denied = append(denied, name)
		}
	}
	if denied != nil {
		d.say("permissions", Bad, "allow Read on groups that begin with "+d.Config.Group+"-",
			"%s may not: Read group %s", d.user(), strings.Join(denied, ", "))
	}
}

func (d *doctor) user() string {
	if name := d.Config.Kafka.SASL.Username; name != "" {
		return "user " + name
	}
	return "this user"
}
