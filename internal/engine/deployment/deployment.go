package deployment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Deployment is a deployment as one process, or a command, sees it.
type Deployment struct {
	Config    *config.Config
	Log       *slog.Logger
	Client    *kafka.Client  // as of Connect
	Clock     *kafkaio.Clock // of Client
	Dialer    *kafka.Dialer
	Store     pipeline.CheckpointStore // as of Open
	Book      *scale.Book
	Confirmed Confirmer // that the topics are those of Open
	topics    topology  // with the numbers of partitions that tasks are made for
}

// New returns a deployment that is not connected.
func New(cfg *config.Config, log *slog.Logger) *Deployment {
	d := &Deployment{Config: cfg, Log: log}
	d.Confirmed.ask = d.unchanged
	return d
}

// Connect makes the clients of the brokers.
func (d *Deployment) Connect() (err error) {
	d.Client, d.Dialer, err = kafkaclient.New(d.Config.Kafka)
	if err == nil {
		d.Clock = kafkaio.NewClock(d.Client.Transport.(*kafka.Transport), d.Log)
		d.Client.Transport = d.Clock
	}
	return err
}

// Open checks the topics and opens the checkpoints and the plan, as a process that is to run does.
func (d *Deployment) Open(ctx context.Context) error {
	t, err := d.ask(ctx)
	if err != nil {
		return err
	}
	for _, topic := range d.Config.InputTopics() {
		if _, err := kafkaio.Partitions(ctx, d.Client, topic); err != nil {
			return err
		}
	}
	if err := d.openStore(ctx); err != nil {
		return err
	}
	began, err := d.record().load(ctx)
	if err != nil {
		return err
	}
	if len(began) == 0 { // the plan is there before what says that shards may have begun
		if err := d.openBook(ctx, t[0].partitions); err != nil {
			return err
		}
		if err := d.beginSplit(ctx, false); err != nil {
			return err
		}
	}
	if t, err = d.record().check(ctx, t, d.Config.Splits()); err != nil {
		return err
	}
	if err := d.openBook(ctx, t[0].partitions); err != nil {
		return err
	}
	d.topics = t
	return d.beginSplit(ctx, true)
}

// openStore opens what holds the checkpoints.
func (d *Deployment) openStore(ctx context.Context) (err error) {
	c := d.Config.Checkpoints
	d.Store = &dirstore.Store{Dir: c.Dir, Keep: c.Keep}
	if c.Store == pipeline.StoreTopic {
		d.Store, err = kafkaio.NewStore(ctx, kafkaio.StoreSpec{
			Client:   d.Client,
			Topic:    d.Config.Topics.Checkpoints,
			Keep:     c.Keep,
			MaxBytes: d.Config.Kafka.MessageMax,
			Log:      d.Log,
		})
	}
	return err
}

// openBook reads how many shards the deployment has; first applies if that was never recorded.
func (d *Deployment) openBook(ctx context.Context, first int) error {
	d.Book = &scale.Book{Store: d.Store, Group: d.Config.Group, Log: d.Log, First: first}
	if err := d.Book.Load(ctx); err != nil {
		return err
	}
	return d.Book.Recover(ctx, d.scaleTopics())
}

func (d *Deployment) scaleTopics() scale.Topics {
	return scale.Topics{Config: d.Config, Client: d.Client}
}

// beginSplit makes a new deployment split its topics from the start, if its configuration asks for that. A deployment
// whose shards have read the producers' topics cannot change to it by configuration.
func (d *Deployment) beginSplit(ctx context.Context, began bool) error {
	plan := d.Plan()
	if plan.Split || !d.Config.Splits() {
		return nil
	}
	if began && len(d.Config.Inputs) == 0 { // a group that began by id goes on so
		d.Log.Warn("topics.keyed is false and has no effect: the shards of this group have read the topics "+
			"themselves since it began, so producers must send each row to the partition of its id. Set it to true; "+
			"or let plumbline split the topics by more partitions: plumbline scale --config FILE --partitions N "+
			"--by NAME --why REASON",
			"group", d.Config.Group, "partitions", plan.Of)
		return nil
	}
	if began {
		return fmt.Errorf("inputs: the shards of group %s read %s themselves since it began, so no other topic can be "+
			"split for them; set another group and another topics.panes, or leave inputs away", d.Config.Group,
			d.Config.Topics.Logits)
	}
	return d.Book.Start(ctx, d.scaleTopics())
}

// Plan is how many shards the deployment has, and what they read.
func (d *Deployment) Plan() scale.Plan {
	plan, _ := d.Book.Now()
	return plan
}

// Panes is how many partitions the panes topic had when the deployment began, and so how many model tasks there are.
func (d *Deployment) Panes() int { return d.topics[2].partitions }

// TailSpec is how topics are read that have no group.
func (d *Deployment) TailSpec() kafkaio.TailSpec {
	return kafkaio.TailSpec{Client: d.Client, MaxBytes: d.Config.Kafka.FetchMax, Log: d.Log}
}

// ScanTopics passes take the present records of a key in a topic, oldest first. It reads the key's partition.
func (d *Deployment) ScanTopics(ctx context.Context, topic, key string, take func(value []byte)) error {
	n, err := kafkaio.Partitions(ctx, d.Client, topic)
	if err != nil {
		return err
	}
	return kafkaio.ReadPartition(ctx, d.TailSpec(), topic, murmur.PartitionOf([]byte(key), n),
		func(rec *pipeline.Record) {
			if string(rec.Key) == key {
				take(rec.Value)
			}
		})
}

// Remains returns the topics in the form that package reset asks about lost state.
func (d *Deployment) Remains() reset.Topics {
	plan := d.Plan()
	return reset.Topics{Config: *d.Config, Spec: d.TailSpec(), Inputs: plan.Inputs(d.Config),
		Readers: d.Config.Group + "-shards" + plan.Suffix()}
}

// HasStateDir returns an error where there is no directory of checkpoints: a command that runs in another directory
// than the processes must not take a state that it does not see for lost.
func HasStateDir(c *config.Config) error {
	if c.Checkpoints.Store == pipeline.StoreTopic {
		return nil
	}
	dir, err := filepath.Abs(c.Checkpoints.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	todo := "is it mounted?"
	if !filepath.IsAbs(c.Checkpoints.Dir) {
		todo = "run this in the directory of plumbline run, or make checkpoints.dir absolute"
	}
	return fmt.Errorf("checkpoints.dir %s: %s does not exist: %s", c.Checkpoints.Dir, dir, todo)
}
