// Package config holds plumbline's configuration: one YAML file, decoded strictly, with defaults.
package config

import "time"

// Config is the whole file. Zero values mean the documented default; see Default.
type Config struct {
	Kafka       Kafka       `yaml:"kafka"`
	Topics      Topics      `yaml:"topics"`
	Group       string      `yaml:"group"` // prefix of the consumer groups and of the checkpoints
	Models      []Model     `yaml:"models"`
	Slices      Slices      `yaml:"slices"`
	EventTime   EventTime   `yaml:"event_time"`
	Join        Join        `yaml:"join"`
	Stats       Stats       `yaml:"stats"`
	Sample      Sample      `yaml:"sample"`
	Windows     []Window    `yaml:"windows"`
	Alarm       Alarm       `yaml:"alarm"`
	Unlabelled  Unlabelled  `yaml:"unlabelled"`
	Rules       []Rule      `yaml:"rules"`
	Refit       Refit       `yaml:"refit"`
	Calibrated  Calibrated  `yaml:"calibrated"`
	Archive     Archive     `yaml:"archive"`
	Trigger     Trigger     `yaml:"trigger"`
	Heads       Heads       `yaml:"heads"`
	Trainer     Trainer     `yaml:"trainer"`
	Notify      Notify      `yaml:"notify"`
	History     History     `yaml:"history"`
	Checkpoints Checkpoints `yaml:"checkpoints"`
	HTTP        HTTP        `yaml:"http"`

	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"` // wall clock
}

// Kafka is how to reach the brokers.
type Kafka struct {
	Brokers     []string      `yaml:"brokers"`
	ClientID    string        `yaml:"client_id"`
	FetchMax    int           `yaml:"fetch_max_bytes"`   // per partition and request
	MessageMax  int           `yaml:"message_max_bytes"` // decoded and produced
	Session     time.Duration `yaml:"session_timeout"`   // of the consumer groups
	TLS         TLS           `yaml:"tls"`
	SASL        SASL          `yaml:"sasl"`
	Replication int           `yaml:"replication"` // of topics that `topics create` makes
	Partitions  int           `yaml:"partitions"`
}

// TLS turns on encryption to the brokers; with a certificate the brokers can tell who connects.
type TLS struct {
	Enabled  bool   `yaml:"enabled"`
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// SASL mechanisms.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
)

// SASL is authentication by password; that comes from a file or an environment variable, never from the YAML.
type SASL struct {
	Mechanism    string `yaml:"mechanism"`
	Username     string `yaml:"username"`
	PasswordEnv  string `yaml:"password_env"`
	PasswordFile string `yaml:"password_file"`
}

// Topics are the topic names.
type Topics struct {
	Logits      string `yaml:"logits"`
	Labels      string `yaml:"labels"` // "" = labels travel with the logits
	Panes       string `yaml:"panes"`
	Snapshots   string `yaml:"snapshots"`
	Calibrators string `yaml:"calibrators"`
	Alerts      string `yaml:"alerts"`
	Decisions   string `yaml:"decisions"` // "" = not written
	Finetune    string `yaml:"finetune"`
	Heads       string `yaml:"heads"`
	Calibrated  string `yaml:"calibrated"`
	DeadLetter  string `yaml:"deadletter"`
	Checkpoints string `yaml:"checkpoints"` // used where checkpoints.store is topic

	// Filled by producers that cannot split their batches by id; "" = none. The repartition stage does it.
	LogitsUnkeyed string `yaml:"logits_unkeyed"`
	LabelsUnkeyed string `yaml:"labels_unkeyed"`
}

// Model declares a model; undeclared ones are accepted with the K of their first message.
type Model struct {
	Name    string `yaml:"name"`
	Classes int    `yaml:"classes"` // 0 = learnt from the first message
}

// Slices are the cohort columns; every value gets statistics of its own.
type Slices struct {
	Columns []string `yaml:"columns"`
	MaxKeys int      `yaml:"max_keys"` // values of a column, by model version; the rest are pooled and counted
	// HalfLife is the event time after which the row counts are halved that choose the values.
	HalfLife time.Duration `yaml:"half_life"`
}

// EventTime is panes and lateness.
type EventTime struct {
	Pane            time.Duration `yaml:"pane"`
	AllowedLateness time.Duration `yaml:"allowed_lateness"`
	MaxAhead        time.Duration `yaml:"max_ahead"`    // a row may be this far ahead of its Kafka timestamp
	IdleTimeout     time.Duration `yaml:"idle_timeout"` // wall clock: an exhausted input stops holding the watermark back; 0 = never
	ForgetAfter     time.Duration `yaml:"forget_after"` // a model version without rows for so long, while another has some; 0 = never
}

// Join is the wait of predictions for labels.
type Join struct {
	Wait        time.Duration `yaml:"wait"`         // event time
	MaxRows     int           `yaml:"max_rows"`     // waiting rows a shard; the oldest goes out first
	MemoryBytes int           `yaml:"memory_bytes"` // of them in memory; 0 = all
	Dir         string        `yaml:"dir"`          // of the others; "" = work in checkpoints.dir
	Remember    int           `yaml:"remember"`     // joined ids a shard; 0 = none
}

// Stats configures the accumulators.
type Stats struct {
	Bins            int     `yaml:"bins"`       // must divide 3600
	ExtraBins       []int   `yaml:"extra_bins"` // further ECEs by number of bins
	SoftBins        int     `yaml:"soft_bins"`
	SoftTemperature float64 `yaml:"soft_temperature"`
	CDFNu           float64 `yaml:"cdf_nu"`
	Resamples       int     `yaml:"resamples"` // of the null expectation and the interval
}

// Sample is the bounded sample of labelled rows.
type Sample struct {
	RowsPerCell  int `yaml:"rows_per_cell"`
	BytesPerCell int `yaml:"bytes_per_cell"`
	Rows         int `yaml:"rows"` // kept by key in the model task
}

// Window is one window definition.
type Window struct {
	Name  string        `yaml:"name"`
	Kind  string        `yaml:"kind"`  // time | rows
	Size  time.Duration `yaml:"size"`  // kind time: prediction time
	Slide time.Duration `yaml:"slide"` // kind time; = size (tumbling) where absent
	Rows  int64         `yaml:"rows"`  // kind rows: latest whole label panes with at least this many labelled rows
	Every int64         `yaml:"every"` // kind rows; labelled rows between windows; = rows: tumbling; absent: each pane
}

// Alarm is the anytime-valid alarm on calibration error of every key.
type Alarm struct {
	Enabled         bool          `yaml:"enabled"`
	Signals         []string      `yaml:"signals"`           // raw, calibrated, accuracy
	EpsilonECE      float64       `yaml:"epsilon_ece"`       // tolerance of the ECE
	EpsilonBin      float64       `yaml:"epsilon_bin"`       // tolerance of a single bin
	EpsilonAccuracy float64       `yaml:"epsilon_accuracy"`  // tolerance of a fall of accuracy
	Bins            int           `yaml:"bins"`              // divides 3600
	FalseAlarmEvery time.Duration `yaml:"false_alarm_every"` // event time, on average at least, of a whole model version
	Severity        string        `yaml:"severity"`
	FallSeverity    string        `yaml:"accuracy_severity"`
	MaxWeight       float64       `yaml:"max_weight"`     // largest weight that a row may have
	Matured         time.Duration `yaml:"matured"`        // 0 = labels as they come; else rows enter so long after their prediction
	Reference       string        `yaml:"reference"`      // none | pinned | rolling
	ReferenceRows   int64         `yaml:"reference_rows"` // rows of the reference curve
	Slack           float64       `yaml:"slack"`          // of the curve, in standard errors
	Slices          bool          `yaml:"slices"`         // watch every slice too
	FDR             float64       `yaml:"fdr"`            // of the alarms of slices
	ClearRows       int64         `yaml:"clear_rows"`     // fewest rows that can resolve it
	ClearFor        time.Duration `yaml:"clear_for"`
	QuietRows       int64         `yaml:"quiet_rows"` // rows without another alarm that resolve it; 0 = never
	Hold            time.Duration `yaml:"hold"`       // event time that an alert stays inhibited after its inhibitor is gone
}

// Unlabelled is what is said of predictions before their labels come.
type Unlabelled struct {
	Enabled       bool    `yaml:"enabled"`
	Reference     string  `yaml:"reference"`      // pinned | rolling
	ReferenceRows int64   `yaml:"reference_rows"` // predictions, and labelled rows
	Alpha         float64 `yaml:"alpha"`          // level of the thresholds of distances
	Slices        bool    `yaml:"slices"`
	Classes       string  `yaml:"classes"` // none | model | slices: whose rows are counted by predicted class
}

// Rule is an alert on a value beyond a bound for a while, with hysteresis.
type Rule struct {
	Name       string        `yaml:"name"`
	Signal     string        `yaml:"signal"` // calibrated (what the calibrator in force gives) | raw
	Rows       int64         `yaml:"rows"`   // judged on the latest label panes with at least this many rows
	MinRows    int64         `yaml:"min_rows"`
	WarmupRows int64         `yaml:"warmup_rows"` // labelled rows of the key before the rule may fire
	Fire       float64       `yaml:"fire"`        // value beyond which it is pending
	Clear      float64       `yaml:"clear"`       // value below which it resolves; side below: above which
	For        time.Duration `yaml:"for"`         // event time beyond Fire before it fires
	ClearFor   time.Duration `yaml:"clear_for"`
	Severity   string        `yaml:"severity"` // info | warning | critical
	Slices     bool          `yaml:"slices"`   // judge every slice too

	Kind          string  `yaml:"kind"`           // excess | reference | distance | estimate | threshold
	Measure       string  `yaml:"measure"`        // by kind
	Score         string  `yaml:"score"`          // kind distance: msp | margin | negent | class
	Reference     string  `yaml:"reference"`      // kinds reference and distance: pinned | rolling
	ReferenceRows int64   `yaml:"reference_rows"` // of it
	Alpha         float64 `yaml:"alpha"`          // kind distance: level of the threshold

	Side     string        `yaml:"side"`     // kind threshold: above | below fire
	Interval bool          `yaml:"interval"` // kind threshold: the whole interval must be beyond fire
	Age      time.Duration `yaml:"age"`      // measure coverage: of predictions this old; 0 = join.wait
}

// Refit is when and how calibrators are refitted. Times are event time.
type Refit struct {
	Method         string        `yaml:"method"` // a method of calibration | auto | none
	Period         time.Duration `yaml:"period"` // 0 = never by period
	OnAlarm        bool          `yaml:"on_alarm"`
	FreshRows      int           `yaml:"fresh_rows"` // sampled rows since the alarm's start that a refit on alarm waits for
	MinRows        int           `yaml:"min_rows"`
	MaxRows        int           `yaml:"max_rows"`        // latest sampled rows that a refit uses
	TestShare      float64       `yaml:"test_share"`      // newest share, never fitted on
	Delay          int64         `yaml:"delay"`           // label panes after which a fit is due
	Workers        int           `yaml:"workers"`         // fits at a time in this process; 0 = half of the processors
	Alpha          float64       `yaml:"alpha"`           // of the paired test that publishes
	ValidationRows int           `yaml:"validation_rows"` // a validation that proved nothing by then ends
	ValidationFor  time.Duration `yaml:"validation_for"`  // or by then; 0 = with the next refit
	MinNLLGain     float64       `yaml:"min_nll_gain"`    // and by at least so much, in nats
	MaxECERise     float64       `yaml:"max_ece_rise"`    // and ECE does not rise by more
	MaxAccDrop     float64       `yaml:"max_accuracy_drop"`
	ShadowFor      time.Duration `yaml:"shadow_for"`   // a candidate is at least so long scored only
	CanaryShare    float64       `yaml:"canary_share"` // of the ids that get it first; 0 = no canary
	CanaryFor      time.Duration `yaml:"canary_for"`
	RollbackPanes  int64         `yaml:"rollback_panes"` // mean label panes between false rollbacks; 0 = no automatic rollback
	Cooldown       time.Duration `yaml:"cooldown"`       // between refits on alarm
	Online         bool          `yaml:"online"`         // online Platt scaling beside it
	LabelShift     string        `yaml:"label_shift"`    // off | candidate | at_once: class weights where shares of classes have moved
}

// Calibrated turns on the calibrated stream.
type Calibrated struct {
	Enabled bool   `yaml:"enabled"`
	Columns string `yaml:"columns"` // probs | top1
}

// Values of archive.features and archive.when_full.
const (
	FeaturesHalf   = "float16"
	FeaturesSingle = "float32"
	WhenFullWait   = "wait"
	WhenFullDrop   = "drop"
)

// Archive is the directory of labelled rows with features.
type Archive struct {
	Directory    string        `yaml:"directory"` // "" = none
	Features     string        `yaml:"features"`  // FeaturesHalf or FeaturesSingle
	Logits       bool          `yaml:"logits"`    // write the scores too
	RollRows     int64         `yaml:"roll_rows"`
	RollBytes    int64         `yaml:"roll_bytes"`
	RollTime     time.Duration `yaml:"roll_time"` // event time
	MaxBytes     int64         `yaml:"max_bytes"` // of the directory; 0 = no bound
	MaxAge       time.Duration `yaml:"max_age"`   // event time; 0 = no bound
	MemoryBytes  int           `yaml:"memory_bytes"`
	PendingBytes int64         `yaml:"pending_bytes"`
	WhenFull     string        `yaml:"when_full"` // WhenFullWait or WhenFullDrop
}

// Notify is whom to tell of alerts.
type Notify struct {
	ExternalURL   string        `yaml:"external_url"`  // of the page
	Alertmanagers []string      `yaml:"alertmanagers"` // base URLs
	Labels        []string      `yaml:"labels"`        // name=value
	Resend        time.Duration `yaml:"resend"`
	Timeout       time.Duration `yaml:"timeout"`
	RetryFor      time.Duration `yaml:"retry_for"`
	Webhooks      []Webhook     `yaml:"webhooks"`
}

// Webhook is one address that is told of changes. The address may be a secret, and the key that signs is one.
type Webhook struct {
	URL        string   `yaml:"url"`
	URLFile    string   `yaml:"url_file"`
	SecretEnv  string   `yaml:"secret_env"`
	SecretFile string   `yaml:"secret_file"`
	States     []string `yaml:"states"` // empty: firing and resolved
}

// Values of checkpoints.store.
const (
	StoreDirectory = "directory"
	StoreTopic     = "topic"
)

// Checkpoints are where and how often state is saved.
type Checkpoints struct {
	Store    string        `yaml:"store"` // StoreDirectory or StoreTopic
	Dir      string        `yaml:"dir"`
	Interval time.Duration `yaml:"interval"` // wall clock; outputs become visible at checkpoints
	Rows     int64         `yaml:"rows"`     // rows of a shard; 0 = by interval only
	Keep     int           `yaml:"keep"`
}

// HTTP is the page, the API and the metrics.
type HTTP struct {
	Listen    string `yaml:"listen"`          // "" = off
	WebConfig string `yaml:"web_config_file"` // TLS and users; "" = neither
	Slices    int    `yaml:"metrics_slices"`  // worst slices in /metrics
	Pprof     bool   `yaml:"pprof"`           // serve /debug/pprof/ too
	Control   bool   `yaml:"control"`         // take POST /api/v1/pause and /resume
}
