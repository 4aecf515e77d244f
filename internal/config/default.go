package config

import "time"

// Default returns the configuration that an empty file gives. Example writes it out with its comments.
func Default() Config {
	return Config{
		Kafka: Kafka{
			Brokers:     []string{"127.0.0.1:9092"},
			ClientID:    "plumbline",
			FetchMax:    8 << 20,
			Session:     10 * time.Second,
			MessageMax:  8 << 20,
			SASL:        SASL{Mechanism: SASLPlain},
			Replication: 1,
			Partitions:  4,
		},
		Topics: Topics{
			Logits:      "plumbline.logits",
			Labels:      "plumbline.labels",
			Panes:       "plumbline.panes",
			Snapshots:   "plumbline.snapshots",
			Calibrators: "plumbline.calibrators",
			Alerts:      "plumbline.alerts",
			Decisions:   "plumbline.decisions",
			Finetune:    "plumbline.finetune",
			Heads:       "plumbline.heads",
			Calibrated:  "plumbline.calibrated",
			DeadLetter:  "plumbline.deadletter",
			Checkpoints: "plumbline.checkpoints",
		},
		Group:  "plumbline",
		Slices: Slices{MaxKeys: 1000, HalfLife: time.Hour},
		EventTime: EventTime{
			Pane:            10 * time.Second,
			AllowedLateness: 10 * time.Second,
			MaxAhead:        24 * time.Hour,
			IdleTimeout:     time.Minute,
			ForgetAfter:     30 * 24 * time.Hour,
		},
		Join: Join{Wait: time.Hour, MaxRows: 10_000_000, MemoryBytes: 32 << 20, Remember: 1_000_000},
		Stats: Stats{
			Bins:            15,
			SoftBins:        15,
			SoftTemperature: 0.01,
			CDFNu:           0.1,
			Resamples:       200,
		},
		Sample: Sample{RowsPerCell: 1024, BytesPerCell: 262_144, Rows: 8192},
		Windows: []Window{
			{Name: "10m", Kind: KindTime, Size: 10 * time.Minute, Slide: time.Minute},
			{Name: "day", Kind: KindTime, Size: 24 * time.Hour, Slide: 24 * time.Hour},
			{Name: "last5000", Kind: KindRows, Rows: 5000},
		},
		Alarm: Alarm{
			Enabled:         true,
			Signals:         []string{"raw", "calibrated", "accuracy"},
			EpsilonECE:      0.02,
			EpsilonBin:      0.05,
			EpsilonAccuracy: 0.02,
			Bins:            15,
			FalseAlarmEvery: 365 * 24 * time.Hour,
			Severity:        "critical",
			FallSeverity:    "warning",
			MaxWeight:       1,
			Reference:       "none",
			ReferenceRows:   10_000,
			Slack:           1,
			Slices:          true,
			FDR:             0.05,
			ClearRows:       1000,
			ClearFor:        30 * time.Second,
			QuietRows:       50_000,
			Hold:            15 * time.Minute,
		},
		Unlabelled: Unlabelled{Enabled: true, Reference: "pinned", ReferenceRows: 10_000, Alpha: 0.001, Slices: true, Classes: "model"},
		Rules:      []Rule{defaultRule("excess-ece")},
		Refit: Refit{
			Method:         "auto",
			Period:         time.Hour,
			OnAlarm:        true,
			FreshRows:      1000,
			MinRows:        500,
			MaxRows:        5000,
			TestShare:      0.3,
			Delay:          1,
			Alpha:          0.01,
			ValidationRows: 10_000,
			MinNLLGain:     0.001,
			MaxECERise:     0.005,
			MaxAccDrop:     0.005,
			CanaryFor:      10 * time.Minute,
			RollbackPanes:  1_000_000,
			Cooldown:       2 * time.Minute,
			LabelShift:     "off",
		},
		Calibrated: Calibrated{Columns: "probs"},
		Archive: Archive{Features: FeaturesHalf, Logits: true, RollRows: 1_000_000, RollBytes: 256 << 20, RollTime: 10 * time.Minute,
			MaxBytes: 100 << 30, MaxAge: 30 * 24 * time.Hour, MemoryBytes: 32 << 20, PendingBytes: 1 << 30, WhenFull: WhenFullWait},
		Trigger:     defaultTrigger(),
		Heads:       defaultHeads(),
		Trainer:     defaultTrainer(),
		Notify:      Notify{Resend: time.Minute, Timeout: 10 * time.Second, RetryFor: 15 * time.Minute},
		History:     History{Store: HistorySQLite, Rows: 100_000, Timeout: 10 * time.Second},
		Checkpoints: Checkpoints{Store: StoreDirectory, Dir: "./state", Interval: 5 * time.Second, Keep: 2},
		HTTP:        HTTP{Listen: "127.0.0.1:8080", Slices: 20},

		ShutdownTimeout: 25 * time.Second,
	}
}

// Window kinds.
const (
	KindTime = "time"
	KindRows = "rows"
)

// defaultRule is what the keys that a rule in the file leaves out stand for.
func defaultRule(name string) Rule {
	return Rule{
		Name:       name,
		Signal:     "calibrated",
		Rows:       2000,
		MinRows:    500,
		WarmupRows: 2000,
		Fire:       0.05,
		Clear:      0.03,
		For:        30 * time.Second,
		ClearFor:   30 * time.Second,
		Severity:   "warning",

		Kind:          "excess",
		Measure:       "ece",
		Score:         "msp",
		Reference:     "pinned",
		ReferenceRows: 5000,
		Alpha:         0.0001,
		Side:          "above",
	}
}
