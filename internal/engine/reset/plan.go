package reset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Where a task without a state begins.
const (
	FromCommitted = "committed" // where the lost state stood: nothing is counted twice
	FromEarliest  = "earliest"  // at the first record that there is: the models' state must be reset as well
)

// Order is a person's order to let tasks begin anew.
type Order struct {
	Task    string // shards/N, models/N, NAME/N of a [Relay], all
	From    string
	By, Why string
}

// Reset is what `plumbline state reset` works on.
type Reset struct {
	Topics
	Store pipeline.CheckpointStore
	// Readable returns an error where this build cannot read a checkpoint of a stage, shards or models.
	Readable func(stage string, data []byte) error
	// Partitions are those of logits and panes.
	Shards, Models int
	Relays         []Relay
	Remade         map[string]bool // topics that were deleted and made again
}

// Change is what is done to one task.
type Change struct {
	Task string `json:"task"`
	// What is begin (with an empty state), move (the state stays, records are gone) or keep.
	What   string       `json:"what"`
	Reason string       `json:"reason"`
	Loss   *record.Loss `json:"loss,omitempty"`

	// The rest is for Apply, filled in by Plan.
	stage     string
	partition int
	in        map[pipeline.Input]string // topics by input
	stored    *pipeline.Stored          // the newest that can be read; nil = none
	foreign   error                     // why the newest that is whole cannot be read by this build
	newest    uint64                    // number of the newest, whatever it is
	next      map[pipeline.Input]int64  // where it goes on
	heard     []model.Heard             // of a model task: what shards had said before
	relay     *Relay                    // whose partition it is; nil = a task of another stage
}

// Kinds of a change.
const (
	Begin = "begin"
	Move  = "move"
	Keep  = "keep"
)

// Why an order is not carried out.
var (
	ErrOrder = errors.New("this cannot be reset") // as things are
	ErrTask  = errors.New("no such task")
)

// Plan returns what an order does, task by task. Nothing is changed. Where it would do nothing, it returns the tasks
// with an error that wraps ErrOrder.
func (r *Reset) Plan(ctx context.Context, o Order) ([]*Change, error) {
	tasks, err := r.tasks(o.Task)
	if err != nil {
		return nil, err
	}
	if len(r.Remade) > 0 && o.Task != "all" {
		return nil, fmt.Errorf("%w: %s made again: all tasks are concerned, use --task all", ErrOrder,
			strings.Join(slices.Sorted(maps.Keys(r.Remade)), " and "))
	}
	shards := map[int]said{}
	for _, c := range tasks {
		if c.stage == "shards" {
			if shards, err = r.panes(ctx, 0, -1, nil); err != nil {
				return nil, err
			}
			break
		}
	}
	for _, c := range tasks {
		if err := r.plan(ctx, c, o, shards); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Task, err)
		}
	}
	if groups := r.mustStop(tasks); groups != nil {
		if err := r.stopped(ctx, groups); err != nil {
			return nil, err
		}
	}
	kept := !slices.ContainsFunc(tasks, func(c *Change) bool { return c.What != Keep })
	if kept && len(r.Remade) == 0 {
		return tasks, fmt.Errorf("%w: %s", ErrOrder, tasks[0].Reason)
	}
	return tasks, nil
}

// mustStop returns the consumer groups that must have no members when tasks are changed; nil = processes may run.
func (r *Reset) mustStop(tasks []*Change) []string {
	stop, groups := false, []string{r.Readers, r.Config.Group + "-models"}
	for _, c := range tasks {
		switch {
		case c.relay != nil && c.What == Move: // brokers take offsets for a group without members only
			if stop = true; !slices.Contains(groups, c.relay.Group) {
				groups = append(groups, c.relay.Group)
			}
		case c.What == Begin && (c.stored != nil || c.foreign != nil):
			stop = true // a build that reads a checkpoint that this one does not may be running, too
		}
	}
	if !stop {
		return nil
	}
	return groups
}

// stopped returns an error while processes run: a task that has a checkpoint may write panes behind those that were
// looked at.
func (r *Reset) stopped(ctx context.Context, groups []string) error {
	res, err := r.Spec.Client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: groups})
	if err != nil {
		return fmt.Errorf("consumer groups: %w", err)
	}
	for _, g := range res.Groups {
		if len(g.Members) > 0 {
			return fmt.Errorf("%w: group %s has %d members: stop all processes first", ErrOrder, g.GroupID,
				len(g.Members))
		}
	}
	return nil
}

// tasks are those that an order names.
func (r *Reset) tasks(name string) ([]*Change, error) {
	shard := func(p int) *Change {
		return &Change{Task: Task("shards", p), stage: "shards", partition: p, in: r.Inputs}
	}
	models := func(p int) *Change {
		return &Change{Task: Task("models", p), stage: "models", partition: p, in: r.modelInputs()}
	}
	var out, relays []*Change
	for i := range r.Relays {
		relay := &r.Relays[i]
		for p := range relay.Partitions {
			relays = append(relays, &Change{Task: Task(relay.Name, p), stage: relay.Name, partition: p,
				in: map[pipeline.Input]string{relay.Input: relay.Topic}, relay: relay})
		}
	}
	if name == "all" {
		for p := range r.Shards {
			out = append(out, shard(p))
		}
		for p := range r.Models {
			out = append(out, models(p))
		}
		return append(out, relays...), nil
	}
	stage, p, err := ParseTask(name)
	switch {
	case err == nil && stage == "shards" && p < r.Shards:
		return []*Change{shard(p)}, nil
	case err == nil && stage == "models" && p < r.Models:
		return []*Change{models(p)}, nil
	}
	if i := slices.IndexFunc(relays, func(c *Change) bool { return c.Task == name }); i >= 0 {
		return relays[i : i+1], nil
	}
	allowed := fmt.Sprintf("shards/0 to shards/%d, models/0 to models/%d", r.Shards-1, r.Models-1)
	for _, relay := range r.Relays {
		allowed += fmt.Sprintf(", %s/0 to %s/%d", relay.Name, relay.Name, relay.Partitions-1)
	}
	return nil, fmt.Errorf("--task %q: %w: must be %s, or all", name, ErrTask, allowed)
}

// ParseTask reads the name of one task, as [Task] writes it.
func ParseTask(name string) (stage string, partition int, err error) {
	stage, number, _ := strings.Cut(name, "/")
	p, err := strconv.ParseUint(number, 10, 31)
	known := stage == "shards" || stage == "models" || strings.HasPrefix(stage, "repartition-") ||
		strings.HasPrefix(stage, "input-")
	if err != nil || !known {
		return "", 0, fmt.Errorf("--task %q: %w: must be %s", name, ErrTask, Tasks)
	}
	return stage, int(p), nil
}

// Tasks are those that an order can name.
const Tasks = "shards/N, models/N, repartition-logits/N, repartition-labels/N, input-TOPIC/N or all"

// plan fills in what is to be done to a task.
func (r *Reset) plan(ctx context.Context, c *Change, o Order, shards map[int]said) error {
	if c.relay != nil {
		return r.planRelay(ctx, c, o)
	}
	info, err := r.load(ctx, c)
	if err != nil {
		return err
	}
	c.Loss = &record.Loss{Schema: 1, Task: c.Task, From: map[string]int64{}, By: o.By, Why: o.Why, At: record.Now()}
	c.next = map[pipeline.Input]int64{}
	if info != nil && o.From == FromCommitted {
		return r.move(ctx, c, info)
	}
	c.What = Begin
	if c.Reason = "it has no checkpoint that can be used in " + r.place(c.stage, c.partition); info != nil {
		c.Reason = "its checkpoint is given up"
	}
	if info == nil && c.foreign != nil {
		c.Reason += fmt.Sprintf(": %v. The build that wrote it can use it, and loses nothing", c.foreign)
	}
	if o.From == FromEarliest {
		return r.fromEarliest(ctx, c, o.Task == "all")
	}
	return r.fromCommitted(ctx, c, shards)
}

// load finds the newest checkpoint of a task that this build can read; info is nil where there is none.
func (r *Reset) load(ctx context.Context, c *Change) (*pipeline.CheckpointInfo, error) {
	stored, err := r.Store.Load(ctx, c.key(r.Config.Group))
	if err != nil {
		return nil, err
	}
	for i := range stored {
		c.newest = max(c.newest, stored[i].Number)
		data, err := stored[i].Read()
		if err != nil {
			continue
		}
		err = r.Readable(c.stage, data)
		format := (*pipeline.FormatError)(nil)
		switch {
		case errors.As(err, &format):
			c.foreign = cmp.Or(c.foreign, err)
			continue
		case errors.Is(err, pipeline.ErrCheckpoint):
			continue
		case err != nil:
			return nil, err
		}
		info, err := pipeline.InspectCheckpoint(data)
		if err != nil {
			continue
		}
		c.stored = &stored[i]
		return info, nil
	}
	return nil, nil
}

func (c *Change) key(group string) string { return Key(group, c.stage, c.partition) }

// Key is where the checkpoints of a task are: of stage shards or models.
func Key(group, stage string, partition int) string {
	return fmt.Sprintf("%s/%s/%s-%05d", group, stage, strings.TrimSuffix(stage, "s"), partition)
}

// move lets a task with a state go on where records are, if those that it would read next are gone.
func (r *Reset) move(ctx context.Context, c *Change, info *pipeline.CheckpointInfo) error {
	c.What, c.Reason = Keep, "its checkpoint is whole, of a format of this build, and the records after it are there"
	for in, topic := range c.in {
		at, ok := info.Offsets[in.String()]
		if !ok {
			return fmt.Errorf("its checkpoint has no offset of %s", topic)
		}
		to, skipped, err := r.within(ctx, c, in, at)
		if err != nil {
			return err
		}
		c.next[in], c.Loss.From[topic] = to, to
		if to != at {
			c.What, c.Reason = Move, fmt.Sprintf("offset %d of %s is not in the log any more", at, topic)
			if r.Remade[topic] {
				c.Reason = topic + " was deleted and made again"
			}
		}
		c.skip(topic, skipped)
	}
	if c.What == Keep {
		c.Loss = nil
		return nil
	}
	if at, err := record.ParseTime(info.Watermark); err == nil {
		c.Loss.Since = at
	}
	return nil
}

func (c *Change) skip(topic string, n int64) {
	if n <= 0 {
		return
	}
	if c.Loss.Skipped == nil {
		c.Loss.Skipped = map[string]int64{}
	}
	c.Loss.Skipped[topic] = n
}

// within returns the first offset at or after at that there is, and how many there were between. One that is beyond the
// end is of another topic of that name, as every one of a topic that was made again.
func (r *Reset) within(ctx context.Context, c *Change, in pipeline.Input, at int64) (to, skipped int64, err error) {
	lo, hi, err := kafkaio.Bounds(ctx, r.Spec.Client, c.in[in], c.partition)
	switch {
	case err != nil:
		return 0, 0, err
	case r.Remade[c.in[in]] || at > hi:
		return lo, 0, nil
	case at < lo && at >= 0:
		return lo, lo - at, nil
	}
	return at, 0, nil
}

// fromEarliest begins at the first records that there are. Model tasks whose shards count everything anew begin behind
// what these have written so far.
func (r *Reset) fromEarliest(ctx context.Context, c *Change, all bool) error {
	for in, topic := range c.in {
		lo, hi, err := kafkaio.Bounds(ctx, r.Spec.Client, topic, c.partition)
		if err != nil {
			return err
		}
		if all && in == pipeline.Panes {
			lo = hi
		}
		c.next[in], c.Loss.From[topic] = lo, lo
	}
	return nil
}

// fromCommitted begins where the lost state stood: what its group has committed, or what the panes that it wrote say,
// whichever is later. So no row is counted twice; those that waited and those of open panes are lost.
func (r *Reset) fromCommitted(ctx context.Context, c *Change, shards map[int]said) error {
	committed, err := r.committed(ctx, c.stage, c.in, c.partition)
	if err != nil {
		return err
	}
	last, spoke := shards[c.partition]
	for in, topic := range c.in {
		at, known := committed[in]
		if c.stage == "shards" && spoke && int(in) < len(last.next) {
			at, known = max(at, last.next[in]), true
		}
		if !known {
			at = 0
		}
		to, skipped, err := r.within(ctx, c, in, at)
		if err != nil {
			return err
		}
		c.next[in], c.Loss.From[topic] = to, to
		c.skip(topic, skipped)
	}
	if c.stage == "models" {
		return r.lostPanes(ctx, c)
	}
	if spoke && last.closed != math.MinInt64 {
		c.Loss.Since = record.At(last.closed*last.length - int64(r.Config.Join.Wait))
	}
	return nil
}

// lostPanes bounds what a model task has lost: everything that shards had closed where it begins.
func (r *Reset) lostPanes(ctx context.Context, c *Change) error {
	shards, err := r.panes(ctx, c.partition, c.next[pipeline.Panes], nil)
	for _, s := range shards {
		c.heard = append(c.heard, model.Heard{Shard: s.shard, Of: s.of, Epoch: s.epoch, Seq: s.seq, Closed: s.closed})
		if end := s.closed * s.length; s.closed != math.MinInt64 && (c.Loss.Until.IsZero() ||
			end > c.Loss.Until.UnixNano()) {
			c.Loss.Until = record.At(end)
		}
	}
	return err
}

// Apply carries a plan out: from here on the tasks find it.
func (r *Reset) Apply(ctx context.Context, plan []*Change) error {
	var relays []*Change
	for _, c := range plan {
		switch {
		case c.What == Keep:
		case c.relay != nil:
			relays = append(relays, c)
		default:
			if err := r.apply(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.Task, err)
			}
		}
	}
	return r.applyRelays(ctx, relays)
}

func (r *Reset) apply(ctx context.Context, c *Change) error {
	to := slot{r.Store, c.key(r.Config.Group), c.newest + 1}
	if c.What == Move {
		return to.amended(ctx, *c.stored, c.edits())
	}
	cp, err := c.begun()
	if err != nil {
		return err
	}
	return to.save(ctx, cp)
}

// slot is where the next checkpoint of a task comes.
type slot struct {
	store  pipeline.CheckpointStore
	key    string
	number uint64
}

func (to slot) save(ctx context.Context, cp pipeline.Checkpoint) error {
	return to.store.Save(ctx, to.key, to.number, cp)
}

// amended saves a changed copy of a checkpoint.
func (to slot) amended(ctx context.Context, st pipeline.Stored, edits map[string]pipeline.Edit) error {
	dir, err := os.MkdirTemp("", "plumbline-amend-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cp, err := pipeline.Amend(st, edits, dir)
	if err != nil {
		return err
	}
	return to.save(ctx, cp)
}

// offsets are where a shard reads on, by input.
func (c *Change) offsets() []int64 {
	out := make([]int64, len(c.in))
	for in, at := range c.next {
		out[in] = at
	}
	return out
}

func (c *Change) begun() (pipeline.Checkpoint, error) {
	if c.stage == "models" {
		return model.Begun(c.next[pipeline.Panes], c.heard, c.Loss)
	}
	epoch := &pipeline.Epoch{}
	epoch.Begin(pipeline.NewEpoch(), c.Loss)
	return pipeline.Begun(c.offsets(), epoch)
}

func (c *Change) edits() map[string]pipeline.Edit {
	if c.stage == "models" {
		return model.Moved(c.next[pipeline.Panes], c.Loss)
	}
	return map[string]pipeline.Edit{
		"offsets": pipeline.MoveOffsets(func(next []int64) { copy(next, c.offsets()) }),
		"life":    pipeline.EditState(func(l *pipeline.Epoch) { l.Move(c.Loss) }),
	}
}
