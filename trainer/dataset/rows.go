package dataset

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/data"
)

// Rows says which rows were used, and how.
type Rows struct {
	data.Used
	Order      string `json:"order"` // time, file (no column ts) or random
	Unlabelled int    `json:"unlabelled"`
	NoFeatures int    `json:"no_features"` // null, or not finite
	Repeated   int    `json:"repeated"`    // rows of an archive that were there before, by id and time
	Files      int    `json:"files"`
	// NotFinite of the rows without features have some that are NaN, infinite or beyond float32; FirstNotFinite is one.
	NotFinite      int    `json:"not_finite,omitempty"`
	FirstNotFinite string `json:"first_not_finite,omitempty"`

	Outside    int `json:"outside,omitempty"`     // rows that are not of the wanted times
	OtherFiles int `json:"other_files,omitempty"` // of a directory: of other model versions
	Vanished   int `json:"vanished_files,omitempty"`
	// Unreadable says which files of a directory were left out, and why.
	Unreadable []string `json:"unreadable,omitempty"`
	// Streamed says that features stayed in their files; FeatureBytes is what they would take in memory.
	Streamed     bool       `json:"streamed"`
	FeatureBytes int64      `json:"feature_bytes"`
	TrainTime    *timeRange `json:"train_time,omitempty"`
	ValidTime    *timeRange `json:"validation_time,omitempty"`
	HeldOutTime  *timeRange `json:"held_out_time,omitempty"`
	HeldOut      int        `json:"held_out"`
	Validation   string     `json:"validation_file,omitempty"`
	Holdout      string     `json:"holdout_file,omitempty"`
	Weighted     bool       `json:"weights_not_used,omitempty"`
}

// timeRange is the first and the last event time of some rows: RFC 3339, or a number where the unit is not known.
type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// without says why no rows are left.
func (r Rows) without() (text string) {
	for _, left := range []struct {
		n   int
		why string
	}{{r.Unlabelled, "without a label"}, {r.NoFeatures - r.NotFinite, "with features that are null"},
		{r.NotFinite, "with features that are not finite"}, {r.Repeated, "that are there twice"}} {
		if left.n > 0 {
			text += fmt.Sprintf("; %d %s", left.n, left.why)
		}
	}
	return text + r.left()
}

// left says what was left out beside rows.
func (r Rows) left() (text string) {
	for _, left := range []struct {
		n   int
		why string
	}{{r.Outside, "rows are of other times"}, {r.OtherFiles, "files are not of the model version"},
		{r.Vanished, "files were gone when they were opened"}} {
		if left.n > 0 {
			text += fmt.Sprintf("\n%d %s", left.n, left.why)
		}
	}
	if r.FirstNotFinite != "" {
		text += "\nnot finite: " + r.FirstNotFinite
	}
	for _, why := range r.Unreadable {
		text += "\nleft out: " + why
	}
	return text
}

// description says where the rows came from: times, files left out, whether features stay in them.
func (r Rows) description() string {
	text := ""
	for _, of := range []struct {
		name string
		t    *timeRange
	}{{"train", r.TrainTime}, {"validation", r.ValidTime}, {"held out", r.HeldOutTime}} {
		if of.t != nil {
			text += fmt.Sprintf("\n%s: %s to %s", of.name, of.t.From, of.t.To)
		}
	}
	text += r.left()
	if r.Streamed {
		text += fmt.Sprintf("\n%.1f GiB of features stay in %d files (--memory)", float64(r.FeatureBytes)/(1<<30),
			r.Files)
	}
	return text
}

// OneClass refuses training rows that are all of one class: a head that is trained on them says that class of any row.
func (r Rows) OneClass(file string) error {
	if present := r.Present(); len(present) == 1 {
		return fmt.Errorf("%s: all %d training rows are of class %d, allowed are rows of at least 2 classes", file,
			r.Train, present[0])
	}
	return nil
}

// String says what became of the rows.
func (r Rows) String() string {
	order := map[string]string{"time": "by time", "file": "in the order of the file, which has no column ts",
		"random": "at random"}[r.Order]
	text := fmt.Sprintf("%d rows train, %d validate, %d are held out, %s", r.Train, r.Used.Validation, r.HeldOut, order)
	for _, left := range []struct {
		n   int
		why string
	}{{r.Unlabelled, "without a label"}, {r.NoFeatures, "with features that are null or not finite"},
		{r.Repeated, "that are there twice"}, {r.TooOld, "older than --max-rows"}, {r.Balanced, "for --balance"}} {
		if left.n > 0 {
			text += fmt.Sprintf("; left out %d %s", left.n, left.why)
		}
	}
	if r.Weighted {
		text += "; column weight is not used"
	}
	for _, of := range []struct {
		name string
		by   []int
	}{{"training", r.TrainBy}, {"validation", r.ValidBy}} {
		if absent := count(of.by, 0); absent > 0 {
			text += fmt.Sprintf("\nwarning: %d of %d classes have no %s rows", absent, len(of.by), of.name)
		}
	}
	return text + r.description()
}

// count is how many values are v.
func count(list []int, v int) (n int) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}
