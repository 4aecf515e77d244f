package inputs

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
)

// TestRequestsApart: of one topic, events of requests become rows without scores and events of responses rows of
// the same ids, by headers, as objects, and in a list of both.
func TestRequestsApart(t *testing.T) {
	c := Config{Topic: "t", Format: "kserve", Columns: Columns{Probs: "predictions[]"}}
	c.Request.Columns = RequestColumns{Features: "instances[].x",
		Slices: []SliceColumn{{Column: "region", Path: "instances[].region"}}}
	const instances = `{"instances":[{"x":[1,2],"region":"north"},{"x":[3,4]}]}`
	const predictions = `{"predictions":[[0.25,0.75],[1,0]]}`
	attributes := func(kind string) []string {
		return []string{"ce_type", "org.kubeflow.serving.inference." + kind, "ce_id", "r1", "ce_inferenceservicename",
			"iris", "ce_time", "2026-01-01T00:00:00Z"}
	}
	object := func(kind, data string) string {
		return `{"type":"org.kubeflow.serving.inference.` + kind + `","id":"r1","inferenceservicename":"iris",` +
			`"time":"2026-01-01T00:00:00Z","data":` + data + `}`
	}
	for name, records := range map[string][]*Record{
		"headers": {{Headers: headers(attributes("request")...), Value: []byte(instances)},
			{Headers: headers(attributes("response")...), Value: []byte(predictions)}},
		"objects": {{Value: []byte(object("request", instances))}, {Value: []byte(object("response", predictions))}},
		"a list":  {{Value: []byte("[" + object("response", predictions) + "," + object("request", instances) + "]")}},
	} {
		d, err := New(c, Options{Slices: []string{"region"}})
		if err != nil {
			t.Fatal(err)
		}
		var bs []*arrowio.Batch
		for _, r := range records {
			messages, err := d.Decode(r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, m := range messages {
				more, err := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}}).Decode(m, arrowio.Origin{},
					arrowio.Predictions)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				bs = append(bs, more...)
			}
		}
		if len(bs) != 2 || bs[0].Side != arrowio.Request || bs[1].Side != arrowio.Response {
			t.Fatalf("%s: got %d batches", name, len(bs))
		}
		request := bs[0]
		if request.N != 2 || request.K != 0 || request.D != 2 || request.Features[3] != 4 ||
			request.Slices[0].Index[1] != -1 || request.Models[0].Model != "iris" || request.Rejected() != 0 {
			t.Errorf("%s: request %+v", name, request)
		}
		isRows(t, bs[1:], "r1/0", "r1/1")
		for i := range 2 {
			if request.IDs[i] != bs[1].IDs[i] {
				t.Errorf("%s: row %d has two ids", name, i)
			}
		}
	}
}

// TestRequestsElsewhere: a topic of requests is an input of its own, and formats that do not tell the two apart need
// one.
func TestRequestsElsewhere(t *testing.T) {
	c := Config{Topic: "answers", Format: "json", Model: "m"}
	c.Request.Columns.Features = "x"
	c.Request.Topic = "questions"
	all := WithRequests([]Config{c})
	if len(all) != 2 || all[1].Topic != "questions" || all[1].Kind() != arrowio.Predictions {
		t.Fatalf("got %+v", all)
	}
	d, err := New(all[1], Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(&Record{Value: []byte(`{"x":[1]}`)}); err == nil || !strings.Contains(err.Error(), "ids") {
		t.Errorf("a request without an id: %v", err)
	}
	messages, err := d.Decode(&Record{Value: []byte(`{"id":"a","x":[1,2]}`)})
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	d, err = New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(&Record{Value: []byte(`{"id":"a","x":[1,2]}`)}); err == nil {
		t.Error("a response without scores is taken")
	}
}
