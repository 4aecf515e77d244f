package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// askTopology asks the brokers for the topology.
func (r *KafkaRun) askTopology(ctx context.Context) (topology, error) {
	t := topology{{key: "logits", name: r.Config.Topics.Logits}, {key: "labels", name: r.Config.Topics.Labels},
		{key: "panes", name: r.Config.Topics.Panes}}
	if err := t.askIDs(ctx, r); err != nil {
		return t, kafkaclient.Explain(ctx, r.Config.Kafka, err)
	}
	for i := range t {
		if t[i].name == "" {
			continue
		}
		var err error
		if t[i].partitions, err = kafkaio.Partitions(ctx, r.Client, t[i].name); err != nil {
			return t, err
		}
	}
	return t, nil
}

// identified returns the topics that must stay the same ones, and where they stand in t. Topics of inputs need not,
// also where topics.logits or topics.labels names them: they are read anew (errMadeAgain).
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
func (t *topology) askIDs(ctx context.Context, r *KafkaRun) error {
	names, at := t.identified(&r.Config)
	ids, err := kafkaio.TopicIDs(ctx, r.Client, names...)
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

func topologyKey(group string) string { return group + "/topology" }

// checkTopology compares the topics with those that the group's checkpoints were made from; the first start records
// them. It returns them with the numbers of partitions of that time.
func (r *KafkaRun) checkTopology(ctx context.Context, now topology) (topology, error) {
	key := topologyKey(r.Config.Group)
	for {
		stored, err := r.store.Load(ctx, key)
		if err != nil {
			return now, fmt.Errorf("read %s: %w", key, err)
		}
		was, ok := r.storedTopology(stored)
		if ok {
			now = now.known(was)
			if err := sameTopology(r.Config.Group, was, now); err != nil || was == now.shaped(was) {
				return now, err
			}
		} else if err := now.joins(); err != nil && !r.Config.Splits() {
			return now, err
		}
		err = saveTopology(ctx, r.store, key, now, stored)
		if err == nil || !errors.Is(err, pipeline.ErrFenced) {
			return now, err
		}
	}
}

// hasBegun reports whether a process of the group has run before.
func hasBegun(ctx context.Context, r *KafkaRun) (bool, error) {
	stored, err := r.store.Load(ctx, topologyKey(r.Config.Group))
	if err != nil {
		return false, fmt.Errorf("read %s: %w", topologyKey(r.Config.Group), err)
	}
	return len(stored) > 0, nil
}

// saveTopology records the topics. A damaged record is replaced by the present topology.
func saveTopology(ctx context.Context, store pipeline.CheckpointStore, key string, t topology,
	stored []pipeline.Stored) error {
	c, err := pipeline.EncodeCheckpoint(t.sections())
	if err != nil {
		return err
	}
	number := uint64(1)
	if len(stored) > 0 {
		number = stored[0].Number + 1
	}
	return store.Save(ctx, key, number, c)
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

// storedTopology returns the newest stored topology that can be read.
func (r *KafkaRun) storedTopology(stored []pipeline.Stored) (was topology, ok bool) {
	for _, st := range stored {
		data, err := st.Read()
		if err == nil {
			err = pipeline.RestoreCheckpoint(data, was.sections(), nil)
		}
		if err == nil {
			return was, true
		}
		r.Log.Error("the topics' numbers of partitions cannot be read, trying the record before", "checkpoint", st.Name,
			"err", err)
	}
	return was, false
}

// watchTopology asks repeatedly whether a topic was made again, and returns that as an error. Partitions that nobody
// reads, and topics that cannot be used, are shown as failing tasks.
func (r *KafkaRun) watchTopology(ctx context.Context, was topology) error {
	var named [len(topology{})]atomic.Bool
	var topics topicsWatch
	tick := time.NewTicker(r.WatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for i := range was {
			growing{r}.nameUnread(ctx, &was[i], &named[i])
		}
		topics.look(ctx, r)
		now := was
		if err := now.askIDs(ctx, r); err != nil {
			r.Log.Debug("ids of topics", "err", err)
		}
		if err := sameTopology(r.Config.Group, was, now); err != nil {
			return err
		}
	}
}

// taskTopics is no task of a group.
const taskTopics = "topics"

// topicsWatch shows, as a task that fails, that topics cannot be used. The tasks that need them wait, and go on by
// themselves once they can.
type topicsWatch struct {
	before bool   // at the last look, too: a topic may have been made a moment ago
	said   string // which topics, and why; "" = there is no such task
	end    func() // ends it
}

// look asks once.
func (u *topicsWatch) look(ctx context.Context, r *KafkaRun) {
	err, now := unusableTopics(ctx, r), ""
	if err != nil && u.before {
		now = err.Error()
	}
	u.before = err != nil
	if now == u.said {
		return
	}
	if u.said != "" {
		u.end()
	}
	if u.said = now; now == "" {
		r.Log.Info("all topics can be used again")
		return
	}
	while, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	u.end = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		_ = r.attempts.Run(while, attempts.ID{Task: taskTopics}, func(context.Context, *attempts.Guard) error {
			return attempts.Lasting(err)
		})
	}()
}

// unusableTopics returns an error that names the topics that this deployment reads and writes and that cannot be used.
// Dead letters stop nothing, and those that are lost are counted. If no broker answers, nothing is known.
func unusableTopics(ctx context.Context, r *KafkaRun) error {
	ctx, cancel := context.WithTimeout(ctx, idPatience)
	defer cancel()
	used := map[string]bool{r.Config.Topics.Logits: true, r.Config.Topics.Labels: true}
	for _, topic := range r.Config.InputTopics() {
		used[topic] = true
	}
	for stream, topic := range outputTopics(r.Config) {
		used[topic] = used[topic] || stream != pipeline.StreamDeadLetter
	}
	used[r.Config.Topics.Checkpoints] = r.Config.Checkpoints.Store == pipeline.StoreTopic
	maps.DeleteFunc(used, func(topic string, used bool) bool { return topic == "" || !used })
	found, err := kafkaio.UnusableTopics(ctx, r.Client, slices.Sorted(maps.Keys(used))...)
	if err != nil {
		r.Log.Debug("state of topics", "err", err)
	}
	said := map[string]bool{}
	var all []string
	for _, u := range append(found, r.unread()...) {
		if !said[u.Topic] {
			said[u.Topic] = true
			all = append(all, u.Err.Error())
		}
	}
	if all == nil {
		return nil
	}
	return errors.New(strings.Join(all, "; "))
}

// idPatience is how long a task waits for the ids of topics.
const idPatience = 5 * time.Second

// unchanged returns an error if a topic was made again since the start. A task asks before it saves what it has read,
// so that no state contains records of a topic that replaced its own, however soon that one had as many. If the
// brokers cannot tell, or the topic does not exist, it assumes no change.
func unchanged(ctx context.Context, r *KafkaRun) error {
	ctx, cancel := context.WithTimeout(ctx, idPatience)
	defer cancel()
	now := r.topics
	names, at := now.identified(&r.Config)
	ids, err := kafkaio.KnownTopicIDs(ctx, r.Client, names...)
	if err != nil {
		r.Log.Debug("ids of topics", "err", err)
	}
	for i, id := range ids {
		now[at[i]].id = id
	}
	if len(remade(r.topics, now)) == 0 {
		return nil
	}
	return attempts.Lasting(sameTopology(r.Config.Group, r.topics, now))
}

// confirmer asks unchanged for all tasks of a process: tasks that come while a question is being asked share the next
// one.
type confirmer struct {
	ask func(context.Context) error

	mu     sync.Mutex
	next   *question // that is not asked yet
	asking *question // nil = none
	last   *question // that was answered well

	doubted time.Time // nothing that was asked before holds any more
}

type question struct {
	asked time.Time
	done  chan struct{}
	err   error
}

// now returns the answer to a question that is asked after the call.
func (c *confirmer) now(ctx context.Context) error {
	c.mu.Lock()
	q := c.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		c.next = q
		go c.answer(context.WithoutCancel(ctx), q, c.asking)
	}
	c.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done(): // nothing is known
		return nil
	}
}

// answer asks a question once the one before is answered.
func (c *confirmer) answer(ctx context.Context, q, before *question) {
	if before != nil {
		<-before.done
	}
	c.mu.Lock()
	c.next, c.asking, q.asked = nil, q, time.Now()
	c.mu.Unlock()
	q.err = c.ask(ctx)
	c.mu.Lock()
	if q.err == nil {
		c.last = q
	}
	c.mu.Unlock()
	close(q.done)
}

// confirmEvery is how often the repartition stage asks while messages come.
const confirmEvery = time.Second

// lately returns the answer to a recent question, or to one asked after the call.
func (c *confirmer) lately(ctx context.Context) error {
	c.mu.Lock()
	fresh := c.last != nil && c.last.asked.After(c.doubted) && time.Since(c.last.asked) < confirmEvery
	c.mu.Unlock()
	if fresh {
		return nil
	}
	return c.now(ctx)
}

// doubt makes lately ask again: something has happened that may have changed the answer, such as a failed read.
func (c *confirmer) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubted = time.Now()
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
