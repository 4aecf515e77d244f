package reset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Topics are what is asked about tasks whose state is gone.
type Topics struct {
	Config  config.Config
	Spec    kafkaio.TailSpec
	Inputs  map[pipeline.Input]string // what shards read
	Readers string                    // the group of the shards
}

// modelInputs are those of a model task.
func (t Topics) modelInputs() map[pipeline.Input]string {
	return map[pipeline.Input]string{pipeline.Panes: t.Config.Topics.Panes}
}

// committed are the offsets that a group has committed of a partition, by input; inputs without one are left out.
func (t Topics) committed(ctx context.Context, stage string, in map[pipeline.Input]string, p int) (
	map[pipeline.Input]int64, error) {
	out := map[pipeline.Input]int64{}
	group := t.Readers
	if stage == "models" {
		group = t.Config.Group + "-models"
	}
	for i, topic := range in {
		o, err := kafkaio.Committed(ctx, t.Spec.Client, group, topic, p)
		if err != nil {
			return nil, err
		}
		if o >= 0 {
			out[i] = o
		}
	}
	return out, nil
}

// said is the last that a shard has said of itself on the panes topic.
type said struct {
	shard, of      int
	epoch, seq     uint64
	closed, length int64
	next           []int64
	offset         int64 // of the message
}

// panes reads a panes partition up to an offset, -1 = to its end, and returns what every shard has said last.
// take, if not nil, sees them as they come and ends the reading where it returns false.
func (t Topics) panes(ctx context.Context, p int, until int64, take func(shard int) bool) (
	map[int]said, error) {
	lo, hi, err := kafkaio.Bounds(ctx, t.Spec.Client, t.Config.Topics.Panes, p)
	if err != nil {
		return nil, err
	}
	if until >= 0 {
		hi = min(hi, until)
	}
	out := map[int]said{}
	if lo >= hi {
		return out, nil
	}
	log := kafkaio.NewLog(t.Spec, t.Config.Topics.Panes, p, kafkaio.Range{Next: lo, Until: hi})
	defer log.Close()
	for {
		r, err := log.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		m, err := pipeline.DecodePane(r.Value)
		if r.Idle || err != nil {
			continue
		}
		s := out[m.Shard]
		if s.of == 0 {
			s = said{shard: m.Shard, of: m.Of, length: m.Length, closed: math.MinInt64}
		}
		s.epoch, s.seq, s.offset = m.Epoch, m.Seq, r.Offset
		if m.Punctuation {
			s.closed, s.next = m.Closed, m.Next
		}
		out[m.Shard] = s
		if take != nil && !take(m.Shard) {
			return out, nil
		}
	}
}

// BeginShard returns an error where a shard without a checkpoint had one: then its state is gone, and what it would
// count anew is counted already.
func (t Topics) BeginShard(ctx context.Context, p int) error {
	o, err := t.committed(ctx, "shards", t.Inputs, p)
	if err != nil {
		return err
	}
	if len(o) > 0 {
		return t.gone("shards", p, "its group has read "+t.offsets(t.Inputs, o))
	}
	// A shard sends punctuations to every panes partition: the first is enough.
	found, err := t.panes(ctx, 0, -1, func(shard int) bool { return shard != p })
	if err != nil {
		return err
	}
	if s, ok := found[p]; ok {
		return t.gone("shards", p, fmt.Sprintf("%s has panes of it (partition 0, offset %d)", t.Config.Topics.Panes,
			s.offset))
	}
	return nil
}

// BeginModel is BeginShard for a model task: it reads all panes that there are, unless it has read some.
func (t Topics) BeginModel(ctx context.Context, p int) error {
	o, err := t.committed(ctx, "models", t.modelInputs(), p)
	if err != nil || len(o) == 0 {
		return err
	}
	return t.gone("models", p, "its group has read "+t.offsets(t.modelInputs(), o))
}

func (t Topics) offsets(in map[pipeline.Input]string, at map[pipeline.Input]int64) string {
	var out []string
	for _, i := range slices.Sorted(maps.Keys(at)) {
		out = append(out, fmt.Sprintf("%s up to offset %d", in[i], at[i]))
	}
	return strings.Join(out, " and ")
}

// gone is the error of a task whose state is not where it should be.
func (t Topics) gone(stage string, p int, evidence string) error {
	elsewhere := ""
	if t.Config.Checkpoints.Store != pipeline.StoreTopic {
		elsewhere = " If another process has it: all need one directory that they share, or checkpoints.store: topic."
	}
	return fmt.Errorf("%w: there is none in %s, but %s.%s Bring back what was there, or give up what it held: %s",
		pipeline.ErrUnusable, t.place(stage, p), evidence, elsewhere, Command(Task(stage, p)))
}

// place is where a task's checkpoints are.
func (t Topics) place(stage string, p int) string {
	name := strings.TrimSuffix(stage, "s")
	key := fmt.Sprintf("%s/%s/%s-%05d", t.Config.Group, stage, name, p)
	if t.Config.Checkpoints.Store == pipeline.StoreTopic {
		return fmt.Sprintf("topic %s under %s", t.Config.Topics.Checkpoints, key)
	}
	return absolute(t.Config.Checkpoints.Dir) + "/" + key
}

// absolute is a path that says the same in every directory.
func absolute(dir string) string {
	if out, err := filepath.Abs(dir); err == nil {
		return out
	}
	return dir
}

// Task is how a command names a task.
func Task(stage string, p int) string { return fmt.Sprintf("%s/%d", stage, p) }

// Command is what lets a task begin anew.
func Command(task string) string {
	return "plumbline state reset --config FILE --task " + task +
		" --by NAME --why REASON (it says what is lost, and does it with --accept-loss)"
}
