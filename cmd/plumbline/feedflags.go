package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/feed"
)

// inputFlags name columns, and arrays of npz files; they hold for every FILE argument.
type inputFlags struct {
	of      table.Options
	classes string
}

func (f *inputFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	// labels is what files call it.
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "labels" {
			name = "label"
		}
		return pflag.NormalizedName(name)
	})
	flags.StringVar(&f.of.Array, "array", "", "scores `array` of npz files")
	flags.StringVar(&f.of.Logits, "logits", "",
		"`column` of logits, the beginning of several names, or these separated by commas")
	flags.StringVar(&f.of.Probs, "prob", "", "`column` of probabilities, likewise; one number a row: that of class 1")
	flags.StringVar(&f.of.Labels, "label", "", "`column` or array of labels, or a .npy file of them")
	flags.StringVar(&f.of.Time, "ts", "", "`column` or array of times")
	flags.StringVar(&f.classes, "classes", "",
		"`names` of the classes in the order of the scores, separated by commas")
	said := map[string]bool{}
	f.of.Note = func(what string) {
		if !said[what] { // a file may be read twice
			said[what] = true
			fmt.Fprintln(cmd.ErrOrStderr(), what)
		}
	}
}

// table is what the flags say about a file.
func (f inputFlags) table() table.Options {
	of := f.of
	if f.classes != "" {
		of.Classes = strings.Split(f.classes, ",")
	}
	return of
}

// feedFlags say how files become a stream; `produce` and `replay` share them.
type feedFlags struct {
	inputFlags
	model, version string
	eventRate      float64
	rate           *pflag.Flag // of eventRate
	start          string
	labelDelay     string
	noLabels       bool
	inlineLabels   bool
	batch          int
	seed           uint64
	shuffle        bool
	repeat         int
	skip, limit    int64
	idPrefix       string
	end            bool

	startTime          time.Time // of start; zero where it is not given
	pace               float64   // rows per second of wall clock; 0: as fast as possible
	delayMin, delayMax time.Duration
}

// addFeedFlags adds the flags to cmd. Call check, then open.
func addFeedFlags(cmd *cobra.Command) *feedFlags {
	f := &feedFlags{}
	flags := cmd.Flags()
	f.add(cmd)
	flags.StringVar(&f.model, "model", "",
		"model `name` of all rows; default: each row's, else the file's name and array")
	flags.StringVar(&f.version, "version", "", "model `version` of all rows; default: each row's, else 0")
	flags.Float64Var(&f.eventRate, "event-rate", 10, "rows per second of event time; 0: the files' times")
	f.rate = flags.Lookup("event-rate")
	flags.StringVar(&f.start, "start", "", "event `time` of the first row, RFC 3339; default: so that the last is now")
	flags.StringVar(&f.labelDelay, "label-delay", "0s",
		"event time from a row to its label, uniform in `MIN-MAX` such as 0s-5m")
	flags.BoolVar(&f.noLabels, "no-labels", false, "send no labels")
	flags.BoolVar(&f.inlineLabels, "inline-labels", false, "send labels with the logits")
	flags.IntVar(&f.batch, "batch", 256, "most rows of a message")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of order and delays")
	flags.BoolVar(&f.shuffle, "shuffle", false, "send the rows of each file in random order")
	flags.IntVar(&f.repeat, "repeat", 1, "passes over each file")
	flags.Int64Var(&f.skip, "skip", 0, "rows to skip; they keep their numbers and times")
	flags.Int64Var(&f.limit, "limit", 0, "rows to send; 0: all")
	flags.StringVar(&f.idPrefix, "id-prefix", "",
		"`prefix` of ids of rows without one, another one for each stream (default: row)")
	flags.BoolVar(&f.end, "end", true, "end with a watermark, so that all windows complete")
	return f
}

// check parses and checks the flags; its errors are wrong usage.
func (f *feedFlags) check() error {
	var err error
	if f.start != "" {
		if f.startTime, err = time.Parse(time.RFC3339Nano, f.start); err != nil {
			return cli.Usagef("--start %q: must be a time such as 2026-01-31T12:00:00Z", f.start)
		}
		if year := f.startTime.UTC().Year(); year < 1678 || year > 2261 { // nanoseconds since 1970 hold these
			return cli.Usagef("--start %q: must be of the years 1678 to 2261", f.start)
		}
	}
	var ok bool
	if f.delayMin, f.delayMax, ok = feed.ParseDelay(f.labelDelay); !ok {
		return cli.Usagef("--label-delay %q: must be MIN-MAX such as 0s-5m, 0 <= MIN <= MAX", f.labelDelay)
	}
	switch {
	case !(f.eventRate >= 0) || f.eventRate > 1e9:
		return cli.Usagef("--event-rate %v: must be 0 to 1e9 rows per second", f.eventRate)
	case f.batch < 1:
		return cli.Usagef("--batch %d: must be at least 1 row", f.batch)
	case f.repeat < 1:
		return cli.Usagef("--repeat %d: must be at least 1", f.repeat)
	case f.skip < 0:
		return cli.Usagef("--skip %d: must not be negative", f.skip)
	case f.limit < 0:
		return cli.Usagef("--limit %d: must not be negative", f.limit)
	case f.eventRate == 0 && (f.shuffle || f.repeat > 1):
		return cli.Usagef("--event-rate 0: the files' own times exclude --shuffle and --repeat")
	case f.noLabels && f.inlineLabels:
		return cli.Usagef("--no-labels and --inline-labels: only one of them")
	}
	return nil
}

// options are the feed's, for a stream of so many partitions that starts at start unless --start says otherwise.
func (f *feedFlags) options(cfg config.Config, partitions int, start time.Time) feed.Options {
	if !f.startTime.IsZero() {
		start = f.startTime
	}
	return feed.Options{
		Model:        f.model,
		Version:      f.version,
		Partitions:   partitions,
		EventRate:    f.eventRate,
		Start:        start.UnixNano(),
		DelayMin:     f.delayMin,
		DelayMax:     f.delayMax,
		NoLabels:     f.noLabels,
		InlineLabels: f.inlineLabels || cfg.Topics.Labels == "" && !f.noLabels,
		Batch:        f.batch,
		MessageBytes: cfg.Kafka.MessageMax / 2, // ids, times and slices need room too
		FlushEvery:   feed.FlushEvery(cfg.EventTime.AllowedLateness, f.pace > 0),
		Seed:         f.seed,
		Skip:         f.skip,
		Limit:        f.limit,
		IDPrefix:     f.idPrefix,
		End:          f.end,
		Pane:         cfg.EventTime.Pane,
	}
}

// open returns the feed of the files one after another, and the number of rows it will send.
func (f *feedFlags) open(files []string, cfg config.Config, partitions int) (*feed.Feed, int64, error) {
	in := feed.Files{
		Names:   files,
		Table:   f.table(),
		Columns: cfg.Slices.Columns,
		Order:   feed.Order{Shuffle: f.shuffle, Seed: f.seed, Repeat: f.repeat, ByTime: f.eventRate == 0},
	}
	stream, rows, err := in.Open(f.options(cfg, partitions, time.Now()))
	if err == nil && stream.LeavesTimes() && !f.rate.Changed {
		f.of.Note("the files have times of their own, which --event-rate 0 takes: rows are 10 a second without it")
	}
	if err != nil || !f.startTime.IsZero() || f.eventRate == 0 {
		return stream, rows, err
	}
	start := time.Now().Add(-f.ahead(rows)).Truncate(time.Second) // people read it in alerts
	f.startTime = start
	return in.Open(f.options(cfg, partitions, start))
}

// goOn are the flags with which a feed goes on at a row.
func (f *feedFlags) goOn(row int64) string {
	flags := fmt.Sprintf("--skip %d", row)
	if !f.startTime.IsZero() {
		flags += " --start " + f.startTime.UTC().Format(time.RFC3339Nano)
	}
	if f.limit > 0 {
		flags += fmt.Sprintf(" --limit %d", f.limit-(row-f.skip))
	}
	return flags
}

// ahead is how far event time gets ahead of the clock while so many rows are sent: rows of the future are rejected.
func (f *feedFlags) ahead(rows int64) time.Duration {
	seconds := float64(rows) / f.eventRate
	if f.pace > 0 {
		seconds -= float64(rows) / f.pace
	}
	return time.Duration(max(0, seconds)*1e9) + f.delayMax
}
