package pipeline

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Actions of a person on the calibrators of a model version.
const (
	ActionPin      = "pin"      // only a person changes the calibrator in force
	ActionUnpin    = "unpin"    // refits and rollbacks go on
	ActionPublish  = "publish"  // the calibrator of the message takes force
	ActionRollback = "rollback" // an earlier calibrator is in force again
	// ActionClasses sets the number of classes of a model version, or confirms the present one.
	ActionClasses = "set-classes"
)

// Order is a person's order to the task of a model. It goes through the panes topic, keyed by model, so it has one
// place among the label panes, the same in every replay.
type Order struct {
	ID             [16]byte // of this order: a repeat is recognised by it
	Action         string
	Model, Version string // version "" = the model's only one
	// Revision is the revision to roll back to or to pin; 0 with ActionRollback = the one before. If it is set,
	// Calibrator is the calibrator of that revision.
	Revision   int
	Calibrator []byte // JSON, for ActionPublish, and where Revision says which
	Classes    int    // for ActionClasses
	By, Why    string
}

// Limits of what an order may claim; the calibrator of 1,000 classes by a full matrix is below.
const (
	maxOrderText       = 1 << 10
	maxOrderCalibrator = 1 << 26
	maxClasses         = 1 << 17
)

// NewOrderID returns a random ID.
func NewOrderID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// Check returns the first fault of an order that shows without knowing the model's state.
func (c *Order) Check() error {
	actions := []string{ActionPin, ActionUnpin, ActionPublish, ActionRollback, ActionClasses}
	switch {
	case !slices.Contains(actions, c.Action):
		return fmt.Errorf("action %q, allowed are %s", c.Action, strings.Join(actions, ", "))
	case c.Model == "":
		return fmt.Errorf("%s: model: must not be empty", c.Action)
	case c.Revision < 0:
		return fmt.Errorf("%s: revision %d: must not be negative", c.Action, c.Revision)
	case (c.Action == ActionClasses) != (c.Classes != 0) || c.Classes < 0 || c.Classes == 1 || c.Classes > maxClasses:
		return fmt.Errorf("%s: classes: %d, must be from 2 to %d for %s, and no other", c.Action, c.Classes, maxClasses,
			ActionClasses)
	case c.Action == ActionPublish && len(c.Calibrator) == 0:
		return fmt.Errorf("%s: calibrator: must not be empty", c.Action)
	}
	for name, v := range map[string]string{"model": c.Model, "version": c.Version, "by": c.By, "why": c.Why} {
		if len(v) > maxOrderText || !utf8.ValidString(v) {
			return fmt.Errorf("%s: %s: must be UTF-8 of at most %d bytes", c.Action, name, maxOrderText)
		}
	}
	return nil
}

// AppendOrder appends the encoding of c to dst, in the primitives of docs/format.md: "PLBP", u8 2; id (16 random bytes,
// which identify a repeat); string action, model and version ("" = the only one); uvarint revision of the calibrator
// (0 = none) and K of set-classes; bytes calibrator (JSON; empty but for publish); string by and why.
func AppendOrder(dst []byte, c *Order) []byte {
	dst = append(append(dst, paneMagic...), kindOrder)
	dst = append(dst, c.ID[:]...)
	for _, s := range []string{c.Action, c.Model, c.Version} {
		dst = binenc.AppendString(dst, s)
	}
	dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(c.Revision)), uint64(c.Classes))
	dst = binenc.AppendBytes(dst, c.Calibrator)
	return binenc.AppendString(binenc.AppendString(dst, c.By), c.Why)
}

// IsOrder reports whether bytes on the panes topic start like an order.
func IsOrder(b []byte) bool {
	return len(b) > 4 && string(b[:4]) == paneMagic && b[4] == kindOrder
}

// DecodeOrder reads an order. The error wraps ErrPane.
func DecodeOrder(b []byte) (*Order, error) {
	if !IsOrder(b) {
		return nil, fmt.Errorf("%w: no order in %d bytes", ErrPane, len(b))
	}
	r := binenc.NewReader(b[5:])
	c := &Order{}
	copy(c.ID[:], r.Raw(len(c.ID)))
	c.Action, c.Model, c.Version = r.String(maxOrderText), r.String(maxOrderText), r.String(maxOrderText)
	c.Revision = int(r.Int("revision", 0, 1<<40))
	c.Classes = int(r.Int("classes", 0, maxClasses))
	c.Calibrator = slices.Clone(r.Bytes(maxOrderCalibrator))
	c.By, c.Why = r.String(maxOrderText), r.String(maxOrderText)
	err := r.Close()
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: order: %w", ErrPane, err)
	}
	return c, nil
}
