package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// lack is what this user may not do, with some topics, or with those that begin with a prefix.
type lack struct {
	operations []string
	names      []string
	prefix     string // "": the names are all
}

// create is a right that run needs where it has to make topics.
const create = "Create"

// permissions says what this user may not do with topics and consumer groups, and how that is given.
func (d *doctor) permissions(ctx context.Context) {
	var lacks []lack
	var later []string
	known := false
	for _, u := range d.uses {
		l, told := d.lackOf(u)
		known, lacks = known || told, add(lacks, l)
		if _, there := d.topics[u.name]; !told && !there && u.key == "" && !d.noCreate[u.name] {
			later = append(later, u.name)
		}
	}
	for _, l := range lacks {
		mend := d.grant("topic", l)
		if slices.Contains(l.operations, create) {
			mend += "; or a user who may Create makes them: plumbline topics create -c FILE"
		}
		d.say("permissions", Bad, mend, "%s may not %s: %s", d.user(), strings.Join(l.operations, ", "), list(l.names))
	}
	groups := lack{operations: []string{"Read"}, names: d.notToJoin(ctx), prefix: d.Config.Group + "-"}
	if groups.names != nil {
		d.say("permissions", Bad, d.grant("group", groups), "%s may not Read the consumer groups: %s", d.user(),
			list(groups.names))
	}
	switch {
	case lacks != nil || groups.names != nil:
	case !known:
		d.say("permissions", Unknown, "", "the brokers do not say what %s may do", d.user())
	case later != nil:
		d.say("permissions", OK, "plumbline run makes them when it starts, or plumbline topics create -c FILE now; "+
			"then ask again: rights are known of topics that are there",
			"%s may read and write the topics that are there; not there yet: %s", d.user(), list(later))
	default:
		d.say("permissions", OK, "", "%s may read and write what it must", d.user())
	}
}

// lackOf is what this user may not do with a topic, and whether the brokers have told.
func (d *doctor) lackOf(u use) (l lack, told bool) {
	l.names = []string{u.name}
	if u.key == "" { // their names end in how many shards there are
		l.prefix = d.Config.Group + "."
		if d.noCreate[u.name] {
			l.operations = append(l.operations, create)
		}
	}
	t := d.topics[u.name]
	if told = d.hidden[u.name] || t.Known; !told {
		return l, false
	}
	if u.read && !t.Read {
		l.operations = append(l.operations, "Read")
	}
	if u.write && !t.Write {
		l.operations = append(l.operations, "Write")
	}
	return l, true
}

// add adds a lack to those of the same operations.
func add(lacks []lack, l lack) []lack {
	if l.operations == nil {
		return lacks
	}
	for i, have := range lacks {
		if slices.Equal(have.operations, l.operations) && have.prefix == l.prefix {
			lacks[i].names = append(have.names, l.names...)
			return lacks
		}
	}
	return append(lacks, l)
}

// grant is the command that gives what is lacking.
func (d *doctor) grant(kind string, l lack) string {
	k := &d.Config.Kafka
	who := "ANONYMOUS"
	if k.TLS.CertFile != "" {
		who = "NAME" // as the brokers take it from the certificate
	}
	command := fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s",
		strings.Join(k.Brokers, ","), cmp.Or(k.SASL.Username, who))
	for _, operation := range l.operations {
		command += " --operation " + operation
	}
	names := l.names
	if l.prefix != "" {
		names = []string{l.prefix}
		command += " --resource-pattern-type prefixed"
	}
	for _, name := range names {
		command += " --" + kind + " " + name
	}
	return command
}

// reads are the topics of each consumer group that processes join.
func (d *doctor) reads() map[string][]string {
	c := d.Config
	own := []string{c.Topics.Logits}
	if c.Topics.Labels != "" {
		own = append(own, c.Topics.Labels)
	}
	if !d.split {
		return map[string][]string{c.Group + "-shards": own, c.Group + "-models": {c.Topics.Panes}}
	}
	// Names where an input was made again differ in their end.
	of := fmt.Sprintf("-%d", d.shards)
	out := map[string][]string{c.Group + "-models": {c.Topics.Panes}}
	for _, u := range d.byID() {
		out[c.Group+"-shards"+of] = append(out[c.Group+"-shards"+of], u.name)
	}
	inputs := c.InputTopics()
	for _, topic := range inputs {
		out[c.Group+"-input-"+topic+of] = []string{topic}
	}
	for i, topic := range own {
		if !slices.Contains(inputs, topic) {
			out[c.Group+"-repartition-"+[]string{"logits", "labels"}[i]+of] = []string{topic}
		}
	}
	return out
}

// notToJoin are the consumer groups that this user may not join.
func (d *doctor) notToJoin(ctx context.Context) (denied []string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(d.reads())) {
		if kafkaio.MayJoin(ctx, d.client, name) != nil {
			denied = append(denied, name)
		}
	}
	return denied
}

func (d *doctor) user() string {
	if name := d.Config.Kafka.SASL.Username; name != "" {
		return "user " + name
	}
	return "this user"
}

// list names things, each once.
func list(names []string) string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}
