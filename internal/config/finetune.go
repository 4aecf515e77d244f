package config

import (
	"maps"
	"time"
)

// Trigger is when a model version is to get a new head.
type Trigger struct {
	Enabled       bool          `yaml:"enabled"`
	Recipe        string        `yaml:"recipe"`
	Rows          int64         `yaml:"rows"` // judged on the latest label panes with at least this many sampled rows
	MinRows       int64         `yaml:"min_rows"`
	ReferenceRows int64         `yaml:"reference_rows"`
	MaxECE        float64       `yaml:"max_ece"`
	MaxAccDrop    float64       `yaml:"max_accuracy_drop"`
	MaxAURCRise   float64       `yaml:"max_aurc_rise"`
	Z             float64       `yaml:"z"`
	For           time.Duration `yaml:"for"` // event time, as all of these
	DataRows      int64         `yaml:"data_rows"`
	Cooldown      time.Duration `yaml:"cooldown"`
	Budget        int           `yaml:"budget"`
	BudgetPeriod  time.Duration `yaml:"budget_period"`
	ShadowAfter   time.Duration `yaml:"shadow_after"`
	Deadline      time.Duration `yaml:"deadline"`
}

// Heads is the proof of new heads in the stream.
type Heads struct {
	Shadow      bool          `yaml:"shadow"`
	MemoryBytes int           `yaml:"memory_bytes"` // of a shard
	Max         int           `yaml:"max"`          // shadows of a model version at a time
	Alpha       float64       `yaml:"alpha"`
	NLLBound    float64       `yaml:"nll_bound"`
	MinRows     int64         `yaml:"min_rows"`
	MaxRows     int64         `yaml:"max_rows"`
	MaxECERise  float64       `yaml:"max_ece_rise"`
	MaxAccDrop  float64       `yaml:"max_accuracy_drop"`
	MaxAURCRise float64       `yaml:"max_aurc_rise"`
	Watch       time.Duration `yaml:"watch"`
}

// Trainer is the process that trains heads, `plumbline trainer`.
type Trainer struct {
	Name        string        `yaml:"name"` // "" = the host's name
	Dir         string        `yaml:"dir"`
	Archive     string        `yaml:"archive"`
	Settle      time.Duration `yaml:"settle"`
	Files       []string      `yaml:"files"`
	Heads       []TrainerHead `yaml:"heads"`
	Backend     string        `yaml:"backend"`
	Device      int           `yaml:"device"`
	Command     []string      `yaml:"command"`
	MaxRows     int           `yaml:"max_rows"`
	MemoryBytes int           `yaml:"memory_bytes"`
	Balance     float64       `yaml:"balance"` // 0 = off
	Validation  float64       `yaml:"validation"`
	Attempts    int           `yaml:"attempts"`
	Timeout     time.Duration `yaml:"timeout"`
	Heartbeat   time.Duration `yaml:"heartbeat"`
	LostAfter   time.Duration `yaml:"lost_after"`
	InlineBytes int           `yaml:"inline_bytes"`
	Keep        int           `yaml:"keep"`
}

// TrainerHead names the file of a head that serves.
type TrainerHead struct {
	Model   string `yaml:"model"`
	Version string `yaml:"version"`
	File    string `yaml:"file"`
}

func defaultTrigger() Trigger {
	return Trigger{Recipe: "auto", Rows: 2000, MinRows: 1000, ReferenceRows: 4000, MaxECE: 0.03, MaxAccDrop: 0.03, MaxAURCRise: 0.03, Z: 3,
		For: 5 * time.Minute, DataRows: 2000, Cooldown: 6 * time.Hour, Budget: 7, BudgetPeriod: 7 * 24 * time.Hour,
		ShadowAfter: 30 * time.Minute, Deadline: 24 * time.Hour}
}

func defaultHeads() Heads {
	return Heads{MemoryBytes: 32 << 20, Max: 2, Alpha: 0.05, NLLBound: 5, MinRows: 1000, MaxRows: 50_000, MaxECERise: 0.01, MaxAccDrop: 0.01,
		MaxAURCRise: 0.01, Watch: 7 * 24 * time.Hour}
}

func defaultTrainer() Trainer {
	return Trainer{Dir: "./trainer", Settle: 15 * time.Minute, Backend: "auto", MaxRows: 1_000_000, MemoryBytes: 1 << 30, Validation: 0.2, Attempts: 3, Timeout: 6 * time.Hour,
		Heartbeat: 5 * time.Second, LostAfter: time.Minute, InlineBytes: 4 << 20, Keep: 20}
}

// finetuneFields are the keys of these sections; fields takes them in.
var finetuneFields = map[string]field{
	"trigger":                   text("When a model version is to get a new head: calibration that a refit did not mend, or worse accuracy or AURC than in the reference rows. Event time."),
	"trigger.enabled":           text("Ask for heads, on topics.finetune."),
	"trigger.recipe":            needed("What to train, a recipe of `plumbline train`."),
	"trigger.rows":              number("Judged on the latest label panes with at least so many sampled rows, as the calibrators in force make them.", 10, maxRows),
	"trigger.min_rows":          number("Not judged below; at most rows.", 10, maxRows),
	"trigger.reference_rows":    number("First sampled rows of a model version, which the later ones are held against.", 10, maxRows),
	"trigger.max_ece":           positive("Excess ECE, of rows since a refit or after one that changed nothing, above which a head is due.", 1),
	"trigger.max_accuracy_drop": positive("Accuracy so much below that of the reference rows.", 1),
	"trigger.max_aurc_rise":     positive("AURC so much above that of the reference rows.", 1),
	"trigger.z":                 number("And the drop or rise is so many standard errors of accuracy.", 0, 10),
	"trigger.for":               duration("For so long.", 0),
	"trigger.data_rows":         number("And with so many sampled rows since it began, to train on.", 10, maxRows),
	"trigger.cooldown":          duration("Between requests for a model version.", 0),
	"trigger.budget":            number("Most requests for a model version within budget_period.", 1, 1000),
	"trigger.budget_period":     duration("Of the budget.", time.Second),
	"trigger.shadow_after":      duration("From a request to the first rows that its head runs on: longer than training takes, or the shadow begins when the head is there and a replay with it differs.", 0),
	"trigger.deadline":          duration("From a request to when it counts as failed, if its head has not run.", time.Second),

	"heads":                   text("How a new head proves itself on the features in the stream before anyone serves it."),
	"heads.shadow":            text("Run the heads of topics.heads as shadow versions, VERSION+headN."),
	"heads.memory_bytes":      number("About how much memory of a shard the shadow's scores may take that wait for their label; the oldest goes out and is counted.", 1<<10, 1<<40),
	"heads.max":               number("Most shadows of a model version; beyond, the oldest runs no more.", 1, 16),
	"heads.alpha":             positive("Level of each anytime-valid test.", 0.5),
	"heads.nll_bound":         positive("Probabilities are floored at e^-bound for the tests of NLL.", 100),
	"heads.min_rows":          number("No decision before so many sampled rows that both have.", 2, maxRows),
	"heads.max_rows":          number("Rejected where it is not shown to be better after so many; at least min_rows.", 2, maxRows),
	"heads.max_ece_rise":      number("Ready only if ECE rises by no more.", 0, 1),
	"heads.max_accuracy_drop": positive("Ready only if accuracy is shown not to drop by so much.", 1),
	"heads.max_aurc_rise":     number("Ready only if AURC rises by no more.", 0, 1),
	"heads.watch":             duration("How long a head that is ready still runs as a shadow, to be rolled back if it turns worse than the old one.", 0),

	"trainer":                 text("`plumbline trainer`: trains the heads that topics.finetune asks for. Wall clock."),
	"trainer.name":            named("Name of the process in records, different for each; empty: the host's.", `^[a-zA-Z0-9._-]{1,100}$`, false),
	"trainer.dir":             needed("Directory of jobs: requests, checkpoints, results. Where trainers share it, one goes on where another stopped."),
	"trainer.archive":         text("Directory of archived rows to train on; empty: that of the section archive, or files."),
	"trainer.settle":          duration("Longest wait for the archive to have all rows of a request: its files are complete after archive.roll_time.", 0),
	"trainer.files":           text("Files and directories to train on where nothing is archived: Arrow, Parquet, CSV or npz with features, label and ts. Files that say whose rows they have are taken where they are of the request's model and backbone (its version without +headN)."),
	"trainer.files[]":         needed("Path."),
	"trainer.heads":           text("The heads that serve, to start from and to compare with."),
	"trainer.heads[]":         text("One head."),
	"trainer.heads[].model":   needed("Model."),
	"trainer.heads[].version": text("Version; empty: every one that has no entry of its own and comes from no head of topics.heads."),
	"trainer.heads[].file":    needed("Its .safetensors file."),
	"trainer.backend":         oneOf("What computes. auto: cuda where there is a device, else gorgonia.", "auto", "cuda", "gorgonia", "go"),
	"trainer.device":          number("Number of the CUDA device; a process uses one.", 0, 1023),
	"trainer.command":         text("Command that trains in place of the recipes (docs/train.md); empty: none."),
	"trainer.command[]":       text("Program or argument."),
	"trainer.max_rows":        number("Newest rows of a request's range that train; 0: all.", 0, 1e9),
	"trainer.memory_bytes":    number("Features of at most so many bytes are held in memory; more stay in their files and are read as the training goes.", 0, 1<<50),
	"trainer.balance":         number("Keep of a class at most so many times the training rows of the rarest; 0: all. At least 1.", 0, 1e9),
	"trainer.validation":      positive("Newest share of the rows, which validates.", 0.9),
	"trainer.attempts":        number("How often a job is begun before it counts as failed.", 1, 1000),
	"trainer.timeout":         duration("Longest run of one attempt.", time.Second),
	"trainer.heartbeat":       duration("Between signs of life of a job.", 100*time.Millisecond),
	"trainer.lost_after":      duration("Without a sign of life for so long, another trainer takes the job over; at least twice heartbeat.", 200*time.Millisecond),
	"trainer.inline_bytes":    number("Heads up to so many bytes are in their record; larger ones are read from trainer.dir, which shards must then share. At most half of kafka.message_max_bytes.", 0, 1<<29),
	"trainer.keep":            number("Directories of finished jobs that are kept.", 1, 100_000),
}

// withFinetune adds them.
func withFinetune(all map[string]field) map[string]field {
	maps.Copy(all, finetuneFields)
	return all
}

// finetune checks the conditions between keys of these sections.
func (ck *checker) finetune(c Config) {
	t, h, r := c.Trigger, c.Heads, c.Trainer
	if t.MinRows > t.Rows {
		ck.fail("trigger.min_rows", t.MinRows, "must be at most trigger.rows, %d", t.Rows)
	}
	if t.Enabled && c.Topics.Finetune == "" {
		ck.fail("topics.finetune", quoted(""), "must not be empty while trigger.enabled is true")
	}
	if (h.Shadow || t.Enabled) && c.Topics.Heads == "" {
		ck.fail("topics.heads", quoted(""), "must not be empty while trigger.enabled or heads.shadow is true")
	}
	if h.MinRows > h.MaxRows {
		ck.fail("heads.min_rows", h.MinRows, "must be at most heads.max_rows, %d", h.MaxRows)
	}
	if r.LostAfter < 2*r.Heartbeat {
		ck.fail("trainer.lost_after", r.LostAfter, "must be at least twice trainer.heartbeat, %s", show(r.Heartbeat))
	}
	if r.Balance > 0 && r.Balance < 1 {
		ck.fail("trainer.balance", r.Balance, "must be 0 or at least 1")
	}
	if r.InlineBytes > c.Kafka.MessageMax/2 {
		ck.fail("trainer.inline_bytes", r.InlineBytes, "must be at most half of kafka.message_max_bytes, %d", c.Kafka.MessageMax)
	}
}
