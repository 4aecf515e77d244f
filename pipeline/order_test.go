package pipeline

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestOrderRoundTrip(t *testing.T) {
	want := &Order{ID: NewOrderID(), Action: ActionRollback, Model: "m", Version: "v", Revision: 7,
		Calibrator: []byte(`{"version":1}`), By: "ann", Why: "why"}
	b := AppendOrder(nil, want)
	got, err := DecodeOrder(b)
	if err != nil || !reflect.DeepEqual(got, want) || !IsOrder(b) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := DecodePane(b); !errors.Is(err, ErrPane) || !strings.Contains(err.Error(), "kind 2, want 1") {
		t.Errorf("as a pane message: %v, want an error that names both kinds", err)
	}
	if IsOrder(AppendPane(nil, &PaneMessage{Of: 1, Seq: 1, Length: 1, Punctuation: true})) {
		t.Error("a punctuation is taken for an order")
	}
	for i := range b {
		if _, err := DecodeOrder(b[:i]); !errors.Is(err, ErrPane) {
			t.Errorf("%d of %d bytes: %v, want %v", i, len(b), err, ErrPane)
		}
	}
	if _, err := DecodeOrder(append(b, 0)); !errors.Is(err, ErrPane) {
		t.Errorf("a byte too many: %v, want %v", err, ErrPane)
	}
}

func TestOrderCheck(t *testing.T) {
	good := Order{Action: ActionPublish, Model: "m", Calibrator: []byte("{}")}
	for name, change := range map[string]func(*Order){
		"action":            func(o *Order) { o.Action = "drop" },
		"model":             func(o *Order) { o.Model = "" },
		"calibrator":        func(o *Order) { o.Calibrator = nil },
		"revision":          func(o *Order) { o.Revision = -1 },
		"why":               func(o *Order) { o.Why = strings.Repeat("x", maxOrderText+1) },
		"by: must be UTF-8": func(o *Order) { o.By = "\xff" },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func FuzzDecodeOrder(f *testing.F) {
	f.Add(AppendOrder(nil, &Order{ID: [16]byte{1}, Action: ActionPin, Model: "m", By: "b", Why: "w"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := DecodeOrder(b)
		if err != nil {
			return
		}
		if again, err := DecodeOrder(AppendOrder(nil, o)); err != nil || !reflect.DeepEqual(again, o) {
			t.Fatalf("%+v became %+v, %v", o, again, err)
		}
	})
}
