package deployment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// topology is what determines where everything in a deployment belongs: ids by the partitions that logits and labels
// had when it started, models by the partitions of panes.
type topology [3]topicShape

// topicShape is a topic by its key in the configuration; an empty name = not used; partitions 0 = their number may
// change.
type topicShape struct {
	key, name  string
	partitions int
	id         kafkaio.TopicID
}

// ask asks the brokers for the topology.
func (d *Deployment) ask(ctx context.Context) (topology, error) {
	t := topology{{key: "logits", name: d.Config.Topics.Logits}, {key: "labels", name: d.Config.Topics.Labels},
		{key: "panes", name: d.Config.Topics.Panes}}
	if err := t.askIDs(ctx, d); err != nil {
		return t, kafkaclient.Explain(ctx, d.Config.Kafka, err)
	}
	for i := range t {
		if t[i].name == "" {
			continue
		}
		var err error
		if t[i].partitions, err = kafkaio.Partitions(ctx, d.Client, t[i].name); err != nil {
			return t, err
		}
	}
	return t, nil
}

// identified returns the topics that must stay the same ones, and where they stand in t. Topics of inputs need not,
// also where topics.logits or topics.labels names them: they are read anew (ErrMadeAgain).
func (t *topology) identified(c *config.Config) (names []string, at []int) {
	inputs := c.InputTopics()
	for i := range t {
		if t[i].name != "" && !slices.Contains(inputs, t[i].name) {
			names, at = append(names, t[i].name), append(at, i)
		}
	}
	return names, at
}

// askIDs asks for the topics' ids.
func (t *topology) askIDs(ctx context.Context, d *Deployment) error {
	names, at := t.identified(d.Config)
	ids, err := kafkaio.TopicIDs(ctx, d.Client, names...)
	if err != nil {
		return err
	}
	for i, id := range ids {
		t[at[i]].id = id
	}
	return nil
}

// remade returns the topics that were deleted and made again since the state was started. A broker before 2.8 cannot
// tell.
func remade(was, now topology) map[string]bool {
	out := map[string]bool{}
	for i := range was {
		a, b := was[i], now[i]
		if a.name == b.name && a.id != b.id && a.id != (kafkaio.TopicID{}) && b.id != (kafkaio.TopicID{}) {
			out[a.name] = true
		}
	}
	return out
}

// sameTopology compares the topology of a deployment's state with the present one.
func sameTopology(group string, was, now topology) error {
	for topic := range remade(was, now) {
		return fmt.Errorf("topic %s was deleted and made again: what the state of group %s has read of it "+
			"is not what is there now. %s", topic, group, reset.Command("all"))
	}
	for i := range was {
		a, b := was[i], now[i]
		if a.name != b.name {
			return fmt.Errorf("topics.%s is %q, the state of group %s is of %q: set it back, "+
				"or start from nothing with a new group and a new topics.panes", b.key, b.name, group, a.name)
		}
	}
	return nil
}

// joins returns an error if a deployment cannot start with these topics.
func (t *topology) joins() error {
	if logits, labels := t[0], t[1]; labels.name != "" && labels.partitions != logits.partitions {
		return fmt.Errorf("topic %s has %d partitions, %s has %d: predictions and labels join by partition, "+
			"so they need the same number",
			logits.name, logits.partitions, labels.name, labels.partitions)
	}
	return nil
}

// topologyRecord is the topology in the checkpoint store.
type topologyRecord struct {
	store pipeline.CheckpointStore
	group string
	log   *slog.Logger
}

func (d *Deployment) record() topologyRecord { return topologyRecord{d.Store, d.Config.Group, d.Log} }

func (r topologyRecord) key() string { return r.group + "/topology" }

// load returns what the processes of the group have recorded, the newest first; none = none has run yet.
func (r topologyRecord) load(ctx context.Context) ([]pipeline.Stored, error) {
	stored, err := r.store.Load(ctx, r.key())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.key(), err)
	}
	return stored, nil
}

// check compares the topics with those that the group's checkpoints were made from; the first start records them. It
// returns them with the numbers of partitions of that time.
func (r topologyRecord) check(ctx context.Context, now topology, splits bool) (topology, error) {
	for {
		stored, err := r.load(ctx)
		if err != nil {
			return now, err
		}
		was, ok, err := r.newest(stored)
		if err != nil {
			return now, err
		}
		if ok {
			now = now.known(was)
			if err := sameTopology(r.group, was, now); err != nil || was == now.shaped(was) {
				return now, err
			}
		} else if err := now.joins(); err != nil && !splits {
			return now, err
		}
		err = r.save(ctx, now, stored)
		if err == nil || !errors.Is(err, pipeline.ErrFenced) {
			return now, err
		}
	}
}

// save records the topics. A damaged record is replaced by the present topology.
func (r topologyRecord) save(ctx context.Context, t topology, stored []pipeline.Stored) error {
	c, err := pipeline.EncodeCheckpoint(t.sections())
	if err != nil {
		return err
	}
	number := uint64(1)
	if len(stored) > 0 {
		number = stored[0].Number + 1
	}
	return r.store.Save(ctx, r.key(), number, c)
}

// known returns t with the numbers of partitions that the tasks were made for, and with ids that a broker did not tell
// this time.
func (t topology) known(was topology) topology {
	for i := range t {
		if t[i].name != was[i].name {
			continue
		}
		t[i].partitions = was[i].partitions
		if t[i].id == (kafkaio.TopicID{}) {
			t[i].id = was[i].id
		}
	}
	return t
}

// newest returns the newest stored topology that is not damaged. An error means that this machine cannot read it now:
// whoever replaced it then would forget of how many partitions the tasks are.
func (r topologyRecord) newest(stored []pipeline.Stored) (was topology, ok bool, err error) {
	for _, st := range stored {
		data, err := st.Read()
		if err == nil {
			err = pipeline.RestoreCheckpoint(data, was.sections(), nil)
		}
		if err == nil {
			return was, true, nil
		}
		if pipeline.OfMachine(err) || errors.Is(err, syscall.EIO) { // as a file server gives that has gone
			return was, false, fmt.Errorf("%s cannot be read now: %w", st.Name, err)
		}
		r.log.Error("the topics' numbers of partitions cannot be read, trying the record before", "checkpoint", st.Name,
			"err", err)
	}
	return was, false, nil
}

// IDPatience is how long a task waits for the ids of topics.
const IDPatience = 5 * time.Second

// MadeAgain returns an error if a topic was made again since Open. If the brokers cannot tell, it assumes no change.
func (d *Deployment) MadeAgain(ctx context.Context) error {
	now := d.topics
	if err := now.askIDs(ctx, d); err != nil {
		d.Log.Debug("ids of topics", "err", err)
	}
	return sameTopology(d.Config.Group, d.topics, now)
}

// unchanged returns an error if a topic was made again since Open. A task asks before it saves what it has read,
// so that no state contains records of a topic that replaced its own, however soon that one had as many. If the
// brokers cannot tell, or the topic does not exist, it assumes no change.
func (d *Deployment) unchanged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, IDPatience)
	defer cancel()
	now := d.topics
	names, at := now.identified(d.Config)
	ids, err := kafkaio.KnownTopicIDs(ctx, d.Client, names...)
	if err != nil {
		d.Log.Debug("ids of topics", "err", err)
	}
	for i, id := range ids {
		now[at[i]].id = id
	}
	if len(remade(d.topics, now)) == 0 {
		return nil
	}
	return attempts.Lasting(sameTopology(d.Config.Group, d.topics, now))
}

// shaped returns t with the keys of as: keys are not stored.
func (t topology) shaped(as topology) topology {
	for i := range t {
		t[i].key = as[i].key
	}
	return t
}

// sections returns the sections of the stored record.
func (t *topology) sections() []pipeline.Section {
	return []pipeline.Section{{Name: "topology", Version: 3, State: t}}
}

// AppendState implements pipeline.State.
func (t *topology) AppendState(dst []byte) ([]byte, error) {
	for _, s := range t {
		dst = binenc.AppendString(dst, s.name)
		dst = append(binenc.AppendUvarint(dst, uint64(s.partitions)), s.id[:]...)
	}
	return dst, nil
}

// RestoreState implements pipeline.State.
func (t *topology) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	for i := range t {
		t[i].name, t[i].partitions = r.String(249), int(r.Int("partitions", 0, 1<<20))
		copy(t[i].id[:], r.Raw(len(t[i].id)))
	}
	return r.Close()
}
