package inputs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/pipeline"
)

// TestHiddenValues: where dead letters hide what they hold, no refusal of a record quotes a value of it, wherever in
// the record the value is and whatever it was to be.
func TestHiddenValues(t *testing.T) {
	secrets := []string{`"alice"`, `"ali\"alice"`, `{"alice":1}`, `alice`, `"alice`, `4711`, `47114711470000000000`,
		`4711471147114711471147114711`, `-4711.5`, `4711e300`, `[4711,"alice"]`, `"4711-01-01T00:00:00Z"`,
		"\"alice\xff\"", `NaN4711`}
	templates := []string{
		`{"id":?,"ts":1,"model":"m","version":"1","probs":[0.5,0.5]}`,
		`{"id":"a","ts":1,"model":"m","version":"1","probs":[0.5,0.5]},{"id":?,"ts":1,"model":"m","probs":[0.5,0.5]}`,
		`{"id":1,"ts":1,"model":"m","version":"1","probs":[0.5,0.5]}{"id":?,"ts":1,"model":"m","probs":[0.5,0.5]}`,
		`{"id":"a","ts":?,"model":"m","version":"1","probs":[0.5,0.5]}`,
		`{"id":"a","ts":1,"model":?,"version":"1","probs":[0.5,0.5]}`,
		`{"id":"a","ts":1,"model":"m","version":?,"probs":?}`,
		`{"id":"a","ts":1,"model":"m","probs":[0.5,?],"label":?}`,
		`{"id":"a","ts":1,"model":"m","probs":[0.5,0.5],"label":?,"region":?}`,
		`{"id":"a","weight":?,"model":"m","probs":[0.5,0.5]}`,
		`{?:1}`, `?`, `{"id" ?}`, `[?`, `{"outputs":?}`,
		`{"model_name":"m","outputs":[{"name":?,"datatype":?,"shape":[?],"data":?}]}`,
		`{"outputs":[{"name":"probs","datatype":"FP32","shape":[1,2],"data":[?,0.5]},` +
			`{"name":"ids","datatype":"BYTES","shape":[1],"data":[?]}]}`,
		`{"predictions":[[?,1]]}`, `{"id":?,"source":?,"data":{"p":[?]}}`,
	}
	refused := 0
	for format, configs := range fuzzed {
		for _, c := range configs {
			for _, at := range templates {
				for _, secret := range secrets {
					d, err := New(c, Options{Slices: []string{"region"}, MaxBytes: 1 << 16})
					if err != nil {
						t.Fatal(err)
					}
					headers := []pipeline.Header{{Key: "t", Value: []byte("alice")},
						{Key: "ce_id", Value: []byte("4711")}}
					r := &Record{Value: []byte(strings.ReplaceAll(at, "?", secret)), Headers: headers}
					_, err = d.Decode(r)
					var fe *wire.FormatError
					if err == nil || !errors.As(err, &fe) {
						continue
					}
					refused++
					o := pipeline.NewOut(pipeline.NewCounts())
					o.Hide(func([]byte) []byte { return nil })
					o.Begin(pipeline.Record{Topic: "rows", Value: r.Value, Headers: r.Headers})
					o.Refuse(fe.Reason, fe.Detail)
					o.End()
					text := fmt.Sprintf("%s", o.Drain()[0].Headers)
					if strings.Contains(text, "alice") || strings.Contains(text, "4711") {
						t.Errorf("%s: of %s the dead letter has %s", format, r.Value, text)
					}
				}
			}
		}
	}
	if refused < 500 {
		t.Errorf("%d records were refused: the test says little", refused)
	}
}
