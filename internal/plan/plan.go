package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/operators/model/window"
)

// Load is what will come.
type Load struct {
	Rows    float64       `json:"rows_per_second"` // predictions
	Classes int           `json:"classes"`
	Keys    int           `json:"keys"` // values of all slice columns, beside the model versions
	Models  int           `json:"model_versions"`
	Delay   time.Duration `json:"label_delay"` // of nearly all labels; 0 and Inline: they come with the predictions
	Inline  bool          `json:"inline_labels"`
	Batch   int           `json:"rows_per_message"`
}

// Check refuses what no deployment has.
func (l *Load) Check() error {
	const most = 1_000_000_000
	switch {
	case !(l.Rows > 0) || l.Rows > most:
		return fmt.Errorf("--rows-per-second %v: must be above 0, and at most 1e9", l.Rows)
	case l.Classes < 2 || l.Classes > 1<<20:
		return fmt.Errorf("--classes %d: must be 2 to %d", l.Classes, 1<<20)
	case l.Keys < 0 || l.Keys > most:
		return fmt.Errorf("--keys %d: must be 0 to 1e9", l.Keys)
	case l.Models < 1 || l.Models > most:
		return fmt.Errorf("--models %d: must be 1 to 1e9", l.Models)
	case l.Batch < 1 || l.Batch > most:
		return fmt.Errorf("--batch %d: must be 1 to 1e9", l.Batch)
	case l.Delay < 0:
		return fmt.Errorf("--delay %v: must be 0 or more", l.Delay)
	case l.Inline && l.Delay > 0:
		return errors.New("labels come with their predictions (--inline, or topics.labels is empty): leave --delay out")
	}
	return nil
}

// Plan is what a deployment takes.
type Plan struct {
	Load Load `json:"load"`
	// Cores are those that are busy at this load; Provision has room to catch up after an outage.
	Cores      float64 `json:"cores_busy"`
	Provision  int     `json:"cores_to_provide"`
	Parts      Parts   `json:"cores_of"`
	Partitions int     `json:"partitions"`
	Processes  int     `json:"processes"`
	// Memory is resident, of all processes together and of one of them, and the limit to set for it.
	Memory  float64 `json:"memory_bytes"`
	Process float64 `json:"memory_bytes_of_a_process"`
	Shards  float64 `json:"memory_in_use_of_shards"`
	Tasks   float64 `json:"memory_in_use_of_model_tasks"`
	Disk    float64 `json:"disk_bytes"`
	Waiting float64 `json:"waiting_rows"`
	Topics  []Topic `json:"topics"`
	Config  string  `json:"configuration"`
}

// Parts are the cores by what they do.
type Parts struct {
	Inputs      float64 `json:"inputs"` // asking brokers for rows
	Rows        float64 `json:"rows"`
	Keys        float64 `json:"panes_of_keys"`
	Sampled     float64 `json:"sampled_rows"` // corrections and estimates of model versions
	Checkpoints float64 `json:"checkpoints"`
	Disk        float64 `json:"waiting_on_disk"`
}

func (p *Parts) sum() float64 {
	return p.Inputs + p.Rows + p.Keys + p.Sampled + p.Checkpoints + p.Disk
}

// Topic is the volume of a topic.
type Topic struct {
	Name string  `json:"topic"`
	Day  float64 `json:"bytes_a_day"` // before replication and compression
}

// coresPerProcess is the size of the processes that are advised: more of them restart faster.
const coresPerProcess = 4

// New plans a deployment with a configuration, and with the changes to it that it advises.
func New(l Load, c *config.Config) (*Plan, error) {
	l.Inline = l.Inline || c.Topics.Labels == ""
	if err := l.Check(); err != nil {
		return nil, err
	}
	p := &Plan{Load: l, Waiting: l.Rows * l.Delay.Seconds()}
	before, advised := c, *c
	advised.Join.Wait = joinWait(&l, c)
	c = &advised // what is asked with this configuration gets the same answer
	p.Parts.Rows = l.Rows * RowTime(l) / 1e9
	if !c.Topics.Keyed {
		p.Parts.Rows += l.Rows * (splitRow + splitClass*float64(l.Classes)) / 1e9
	}
	ofKey := func(keys int, pane float64) float64 {
		of := func(rows float64) float64 { return KeyTime(l, rows) }
		return float64(keys) * expected(of, l.Rows*pane/float64(max(keys, 1))) / 1e9 / pane
	}
	p.Parts.Keys = ofKey(l.Models, c.EventTime.Pane.Seconds()) + ofKey(l.Keys, slicePane(c))
	// Shards, and with them partitions, are chosen for twice the cores: two to four a core.
	p.Partitions = max(c.Kafka.Partitions, partitionsFor(p.Parts.Rows+p.Parts.Keys))
	p.Parts.Inputs = p.inputCores(c)
	p.Parts.Sampled = p.sampledCores(c)
	inMemory := float64(c.Join.MemoryBytes) / (waitingMemory + 4*float64(l.Classes)) * float64(p.Partitions)
	onDisk := p.Waiting - inMemory
	if c.Join.MemoryBytes == 0 || onDisk < 0 {
		onDisk = 0
	}
	if onDisk > 0 {
		p.Parts.Disk = l.Rows * diskRow / 1e9
	}
	saved := float64(p.Partitions + min(p.Partitions, l.Models)) // shards, and model tasks with a model
	p.Parts.Checkpoints = (saved*saveTime + p.memory(c, onDisk)*encodedByte) / 1e9 / c.Checkpoints.Interval.Seconds()
	p.Cores = p.Parts.sum()
	p.Provision = int(math.Ceil(max(1, spare*p.Cores)))
	p.Processes = max(1, (p.Provision+coresPerProcess-1)/coresPerProcess)
	p.Memory = float64(p.Processes)*processBytes + garbage*(p.Shards+p.Tasks)
	p.Process = p.Memory / float64(p.Processes)
	p.volumes(c)
	p.Config = p.configuration(before, c)
	return p, nil
}

func partitionsFor(cores float64) int {
	n := 4
	for float64(n) < 2*spare*cores {
		n += 4
	}
	return n
}

// slicePane is the length of the panes of slices, in seconds.
func slicePane(c *config.Config) float64 { return float64(c.SliceTurns()) * c.EventTime.Pane.Seconds() }

// RowTime is the processor time of a row in ns, the evaluation of panes apart.
func RowTime(l Load) float64 {
	k := float64(l.Classes)
	t := inlineRow + firstClass*min(k, 100) + otherClass*k
	if l.Inline {
		return t + pairTime/2/float64(l.Batch)
	}
	return t + joinedRow + joinedClass*k + pairTime/float64(l.Batch)
}

// KeyTime is the processor time of a key's pane in ns, by the key's rows in it.
func KeyTime(l Load, rows float64) float64 {
	return keyPane.at(rows) + keyPaneClass*float64(l.Classes)*min(1, rows/fullPane)
}

// expected is the mean of what a cell, a bucket or a pane takes where rows come to it by chance, mean of them: without
// a row there is none, else it is taken to have as many as those that have any.
func expected(of func(rows float64) float64, mean float64) float64 {
	share := some(mean)
	if share == 0 {
		return 0
	}
	return share * of(mean/share)
}

// some is the chance of any row where the mean of a Poisson number of them is known.
func some(mean float64) float64 { return -math.Expm1(-mean) }

// sampled are the sampled rows of a cell of a model version that has so many rows.
func sampled(l *Load, c *config.Config, rows float64) float64 {
	bytes := float64(cmp.Or(c.Sample.BytesPerCell, c.Kafka.MessageMax/2))
	return min(rows, float64(c.Sample.RowsPerCell), bytes/4/float64(l.Classes))
}

// cells are those of keys by shard: the prediction panes that labels of a label pane reach, and the rows of each.
func (p *Plan) cells(keys, pane float64) (reached, rows float64) {
	reached = 1 + math.Ceil(p.Load.Delay.Seconds()/pane)
	return reached, p.Load.Rows / float64(p.Partitions) * pane / reached / max(1, keys)
}

// sampledCores are of the sampled rows of model versions: corrections learn from new ones, and the table of estimates
// is made of all again when a quarter is new.
func (p *Plan) sampledCores(c *config.Config) float64 {
	versions, pane := float64(p.Load.Models), c.EventTime.Pane.Seconds()
	reached, rows := p.cells(versions, pane)
	fresh := float64(p.Partitions) * reached * expected(func(rows float64) float64 {
		return sampled(&p.Load, c, rows)
	}, rows)
	again := min(4*fresh, float64(c.Sample.Rows))
	return versions * again * float64(p.Load.Classes) * sampledClass / 1e9 / pane
}

// inputCores are of asking for rows. Where plumbline splits topics by id, it reads those, too, and each message that
// comes alone is written alone. Under load many come in one answer.
func (p *Plan) inputCores(c *config.Config) float64 {
	topics, split := 2.0, 0.0
	if p.Load.Inline {
		topics = 1
	}
	if !c.Topics.Keyed {
		split = topics * min(p.Load.Rows/float64(p.Load.Batch), mostAnswers*float64(p.Partitions))
		topics *= 2
	}
	return (float64(p.Partitions)*(topics+1)*askTime + split*splitTime) / 1e9 // panes are a topic, too
}

// memory follows docs/operations.md, Sizing. It returns the bytes of a checkpoint of all tasks.
func (p *Plan) memory(c *config.Config, onDisk float64) (encoded float64) {
	l := &p.Load
	k, shards, pane := float64(l.Classes), float64(p.Partitions), c.EventTime.Pane.Seconds()
	keys, versions := float64(l.Keys+l.Models), float64(l.Models)
	open := func(of curve, keys, pane float64) float64 { // cells of open label panes
		reached, rows := p.cells(keys, pane)
		panes := 1 + stillOpen*c.EventTime.Pane.Seconds()/pane
		return panes * reached * keys * expected(of.at, rows)
	}
	reached, rows := p.cells(versions, pane)
	scores := (1 + stillOpen) * reached * versions * sampled(l, c, rows) * 4 * k
	cells := scores + open(cellBytes, versions, pane) + open(cellBytes, float64(l.Keys), slicePane(c))
	packed := scores + open(cellMessage, versions, pane) + open(cellMessage, float64(l.Keys), slicePane(c))
	row := waitingMemory + 4*k
	waiting := (p.Waiting-onDisk)*row + onDisk*waitingIndex
	remembered := min(float64(c.Join.Remember)*shards, l.Rows*c.Join.Wait.Seconds())
	if l.Inline {
		remembered = 0
	}
	inputs := 2.0
	if l.Inline {
		inputs = 1
	}
	fetch := 2 * float64(c.Kafka.FetchMax) * inputs
	p.Shards = shards*(cells+outputBytes+fetch) + waiting + remembered*rememberBytes

	window := 0.0
	for _, w := range c.Windows {
		window += windowBytes(&w, c, l, keys)
	}
	kept := versions * float64(c.Sample.Rows)
	if c.Alarm.Matured > 0 {
		kept *= 2 // as many wait until they count in refits
	}
	if c.Unlabelled.ReadsRows("slice") {
		kept += float64(l.Keys) * float64(c.Sample.SliceRows)
	}
	samples := kept * (sampledBytes + 4*k)
	square := min(k, squareClasses)
	recent := recentBytes * recentRows / max(1, l.Rows/keys*pane)
	perKey := keys*(keyBytes+keyClass*k+recent+window) + versions*(0.03e6+squareBytes*square*square)
	p.Tasks = shards*(taskBytes+2*float64(c.Kafka.FetchMax)) + samples + perKey +
		pageKeyBytes*min(pageKeys, keys*float64(len(c.Windows)))
	encoded = shards*packed + (p.Waiting-onDisk)*(waitingDisk+4*k) + samples + perKey
	// Rows that wait, a second time while their files are rewritten, and the checkpoints that are kept and the next.
	p.Disk = 2*onDisk*(waitingDisk+4*k) + float64(c.Checkpoints.Keep+1)*(encoded+remembered*waitingIndex)
	return encoded
}

// windowBytes is a window of a key; keys have equal numbers of rows.
func windowBytes(w *window.Config, c *config.Config, l *Load, keys float64) float64 {
	slide := cmp.Or(w.Slide, w.Size)
	rate := l.Rows / keys
	if w.Kind != window.KindTime {
		block := w.BlockRows(max(1, rate*c.EventTime.Pane.Seconds()))
		return math.Ceil(float64(w.Rows)/block) * (bucket(l.Classes, min(block, float64(w.Rows))) + bucketBytes)
	}
	n := float64(w.Size+c.Join.Wait+c.EventTime.AllowedLateness) / float64(slide)
	n = math.Ceil(n)
	reached := min(n, 1+math.Ceil(l.Delay.Seconds()/slide.Seconds()))
	of := func(rows float64) float64 { return bucket(l.Classes, rows) + bucketBytes }
	return (n + (newRows-1)*reached) * expected(of, rate*slide.Seconds())
}

// bucket is the bytes of a bucket, between the classes of the table by the logarithm.
func bucket(classes int, rows float64) float64 {
	c := curve{}
	for _, b := range buckets {
		c = append(c, struct{ x, y float64 }{b.classes, 1000 * b.kb.at(min(rows, 1e6))})
	}
	return c.at(float64(classes))
}
