package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
)

// Plan is of how many shards a deployment is one, and what it is becoming.
type Plan struct {
	Of int `json:"of"`
	// To is how many shards are to be, while those there are end; 0 = no more.
	To int `json:"to,omitempty"`
	// From is how many there were, while the new ones begin.
	From int `json:"from,omitempty"`
	// Split: the shards read topics of plumbline's own, into which it splits the configured ones.
	Split bool `json:"split,omitempty"`
	// Fences are what of the configured topics the shards before had taken.
	Fences []pipeline.Fence `json:"fences,omitempty"`

	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// Open reports whether an order is being carried out.
func (p *Plan) Open() bool { return p.To != 0 || p.From != 0 }

// Suffix tells the groups of one number of shards from those of others.
func (p *Plan) Suffix() string {
	if p.Split {
		return fmt.Sprintf("-%d", p.Of)
	}
	return ""
}

// Inputs are the topics of the shards.
func (p *Plan) Inputs(c *config.Config) map[pipeline.Input]string {
	in := map[pipeline.Input]string{pipeline.Logits: c.Topics.Logits}
	if c.Topics.Labels != "" {
		in[pipeline.Labels] = c.Topics.Labels
	}
	if p.Split {
		for i := range in {
			in[i] = kafkaclient.ByID(c, in[i], p.Of)
		}
	}
	return in
}

// Source is a topic that is split by id.
type Source struct {
	Input pipeline.Input
	Topic string
	// As is its entry of inputs; nil: it has messages in Arrow.
	As *inputs.Config
}

// Sources are the topics that are split by id; direct are those that shards have read themselves until the first order.
func (p *Plan) Sources(c *config.Config) (split []Source, direct map[pipeline.Input]string) {
	direct = map[pipeline.Input]string{}
	own := (&Plan{}).Inputs(c)
	for _, in := range slices.Sorted(maps.Keys(own)) {
		named := false
		all := inputs.WithRequests(c.Inputs)
		for i := range all {
			if inputOf(&all[i]) == in {
				split = append(split, Source{in, all[i].Topic, &all[i]})
				named = named || all[i].Topic == own[in]
			}
		}
		switch {
		case named:
		case p.Split:
			split = append(split, Source{Input: in, Topic: own[in]})
		default:
			direct[in] = own[in]
		}
	}
	return split, direct
}

func inputOf(c *inputs.Config) pipeline.Input {
	if c.Kind() == arrowio.Labels {
		return pipeline.Labels
	}
	return pipeline.Logits
}

// Start notes the plan of a deployment that begins with topics of its own, and makes those. Another process may have
// done so.
func (b *Book) Start(ctx context.Context, t Topics) error {
	plan, _ := b.Now()
	b.mu.Lock()
	began := b.number > 0
	b.mu.Unlock()
	if began {
		return nil
	}
	plan.Split = true
	err := t.make(ctx, plan.Of)
	if err == nil {
		err = b.Save(ctx, plan)
	}
	if err != nil {
		if lerr := b.Load(ctx); lerr != nil {
			return lerr
		}
		if now, _ := b.Now(); now.Split {
			return nil
		}
	}
	return err
}

// Book is the plan as it is in the store.
type Book struct {
	Store pipeline.CheckpointStore
	Group string
	Log   *slog.Logger
	First int // shards where nobody has given an order yet

	mu      sync.Mutex
	plan    Plan
	number  uint64
	changed chan struct{}
	seen    map[string]bool // keys that are written once, and are there
}

// Fixed is a book of a plan that nobody changes.
func Fixed(p Plan) *Book { return &Book{plan: p} }

func (b *Book) key() string { return b.Group + "/scale" }

// Load reads the plan.
func (b *Book) Load(ctx context.Context) error {
	stored, err := b.Store.Load(ctx, b.key())
	if err != nil {
		return fmt.Errorf("read %s: %w", b.key(), err)
	}
	plan, number := Plan{Of: b.First}, uint64(0)
	if len(stored) > 0 { // an older plan than the first is not what the tasks are of
		st := stored[0]
		number = st.Number
		data, err := st.Read()
		if err == nil {
			plan, err = decode(data)
		}
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", st.Name, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil || number != b.number {
		if b.changed != nil {
			close(b.changed)
		}
		b.plan, b.number, b.changed = plan, number, make(chan struct{})
	}
	return nil
}

// Now is the plan as it was read last; changed is closed when there is another.
func (b *Book) Now() (plan Plan, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.plan, b.changed
}

// Save replaces the plan that was read last. Where another process has been faster, that one's stands.
func (b *Book) Save(ctx context.Context, next Plan) error {
	b.mu.Lock()
	number := b.number + 1
	b.mu.Unlock()
	c, err := pipeline.EncodeCheckpoint([]pipeline.Section{{Name: "scale", Version: 1, State: &planState{next}}})
	if err != nil {
		return err
	}
	err = b.Store.Save(ctx, b.key(), number, c)
	if err != nil && !errors.Is(err, pipeline.ErrFenced) {
		return fmt.Errorf("write %s: %w", b.key(), err)
	}
	return errors.Join(err, b.Load(ctx))
}

// Until returns when the plan is one that is asked for, or ctx is done.
func (b *Book) Until(ctx context.Context, wanted func(Plan) bool) {
	for {
		plan, changed := b.Now()
		if wanted(plan) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// While is ctx for as long as the plan is one that is asked for.
func (b *Book) While(ctx context.Context, wanted func(Plan) bool) (while context.Context, stop context.CancelFunc) {
	while, stop = context.WithCancel(ctx)
	go func() {
		b.Until(while, func(now Plan) bool { return !wanted(now) })
		stop()
	}()
	return while, stop
}

// ForEachNumber runs work for the number of shards that is in force, until it is another one's turn.
func (b *Book) ForEachNumber(ctx context.Context, work func(context.Context, Plan) error) error {
	for ctx.Err() == nil {
		plan, _ := b.Now()
		while, stop := b.While(ctx, func(now Plan) bool { return now.Of == plan.Of })
		err := work(while, plan)
		if err == nil {
			<-while.Done()
		}
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// poll is how often processes look for another plan.
const poll = time.Second

// Follow reads the plan when there is another, until ctx is done.
func (b *Book) Follow(ctx context.Context) {
	for Sleep(ctx) {
		b.mu.Lock()
		number := b.number
		b.mu.Unlock()
		err := b.Store.Holds(ctx, b.key(), number)
		if errors.Is(err, pipeline.ErrFenced) {
			err = b.Load(ctx)
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("look for a new number of shards", faultlog.Err(err))
		}
	}
}

// Sleep waits until it is time to look again; false when ctx is done.
func Sleep(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(poll):
		return true
	}
}

// Await returns when done holds, which is asked again and again, or when ctx is done or the plan is another.
func (b *Book) Await(ctx context.Context, changed <-chan struct{}, done func() (bool, error)) (bool, error) {
	for {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		select {
		case <-changed:
			return false, nil
		default:
		}
		if !Sleep(ctx) {
			return false, nil
		}
	}
}

// planState is the section with the plan.
type planState struct{ plan Plan }

// AppendState implements pipeline.State.
func (s *planState) AppendState(dst []byte) ([]byte, error) {
	b, err := json.Marshal(&s.plan)
	return append(dst, b...), err
}

// RestoreState implements pipeline.State.
func (s *planState) RestoreState(src []byte) error { return json.Unmarshal(src, &s.plan) }

func decode(data []byte) (Plan, error) {
	s := &planState{}
	err := pipeline.RestoreCheckpoint(data, []pipeline.Section{{Name: "scale", Version: 1, State: s}}, nil)
	return s.plan, err
}
