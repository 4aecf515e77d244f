package calibrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// onlineMethod is the method in the JSON of OnlinePlatt.
const onlineMethod = "online_platt"

// onlineWire is the JSON of OnlinePlatt: all of its state.
type onlineWire struct {
	Version  int            `json:"version"`
	Method   string         `json:"method"`
	Settings OnlineSettings `json:"settings"`
	Theta    []float64      `json:"theta"`  // slope, intercept
	Matrix   []float64      `json:"matrix"` // A_11, A_12, A_22
	Rows     uint64         `json:"rows"`
	Track    []tally        `json:"track"`
	Hedge    []tally        `json:"hedge,omitempty"`
}

// MarshalJSON writes the whole state, from which UnmarshalJSON goes on bit for bit:
//
//	{"version":1,"method":"online_platt","settings":{…},"theta":[1,0],"matrix":[100,0,100],"rows":0,"track":[…]}
func (o *OnlinePlatt) MarshalJSON() ([]byte, error) {
	if o.set.Bins == 0 {
		return nil, errors.New("encode: online_platt: not made")
	}
	return json.Marshal(onlineWire{
		Version: Version, Method: onlineMethod, Settings: o.set, Theta: o.theta[:], Matrix: o.a[:], Rows: o.rows,
		Track: o.track, Hedge: o.hedge,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote. It is strict: an unknown version or key, a value out of range, or
// tallies that do not fit the settings and the number of rows are an error that wraps ErrFormat, and o is as before.
func (o *OnlinePlatt) UnmarshalJSON(b []byte) error {
	back, err := decodeOnline(b)
	if err != nil {
		return fmt.Errorf("%w: online_platt: %w", ErrFormat, err)
	}
	*o = *back
	return nil
}

func decodeOnline(b []byte) (*OnlinePlatt, error) {
	var w onlineWire
	if err := decodeObject(b, &w); err != nil {
		return nil, err
	}
	switch {
	case w.Version != Version:
		return nil, fmt.Errorf("version: %d, allowed %d", w.Version, Version)
	case w.Method != onlineMethod:
		return nil, fmt.Errorf("method: %q, allowed %s", w.Method, onlineMethod)
	}
	set, err := w.Settings.withDefaults()
	if err != nil {
		return nil, err
	}
	o := &OnlinePlatt{set: set, rows: w.Rows, track: w.Track, hedge: w.Hedge}
	if len(w.Theta) != 2 || len(w.Matrix) != 3 {
		return nil, fmt.Errorf("theta, matrix: %d, %d numbers, allowed are 2 and 3", len(w.Theta), len(w.Matrix))
	}
	copy(o.theta[:], w.Theta)
	copy(o.a[:], w.Matrix)
	return o, o.check()
}

func (o *OnlinePlatt) check() error {
	const slack = 1e-9 // a projection ends on the sphere but for rounding
	if !(math.Hypot(o.theta[0], o.theta[1]) <= o.set.Radius*(1+slack)) {
		return fmt.Errorf("theta: %g, allowed are %g from 0", o.theta, o.set.Radius)
	}
	if err := within("matrix", o.a[:], -math.MaxFloat64, math.MaxFloat64); err != nil {
		return err
	}
	if det := (o.a[0]/o.a[2])*1 - (o.a[1]/o.a[2])*(o.a[1]/o.a[2]); !(o.a[0] > 0 && o.a[2] > 0 && det > 0) {
		return errors.New("matrix: allowed are positive definite ones")
	}
	if err := o.checkTallies("track", o.track, o.set.Bins); err != nil {
		return err
	}
	want := 0
	if o.set.Calibeating == Hedging {
		want = o.set.Bins * o.set.Bins
	}
	return o.checkTallies("hedge", o.hedge, want)
}

func (o *OnlinePlatt) checkTallies(name string, v []tally, want int) error {
	if len(v) != want {
		return fmt.Errorf("%s: %d bins, allowed %d", name, len(v), want)
	}
	var rows uint64
	for j, t := range v {
		if t.Hits > t.Rows || t.Rows > o.rows {
			return fmt.Errorf("%s %d: %d of %d rows right, allowed are up to all of %d", name, j, t.Hits, t.Rows,
				o.rows)
		}
		rows += t.Rows
	}
	if want > 0 && rows != o.rows {
		return fmt.Errorf("%s: %d rows, allowed %d", name, rows, o.rows)
	}
	return nil
}
