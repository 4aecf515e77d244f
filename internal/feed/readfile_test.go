package feed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/table"
)

// fromText reads a CSV file of this text, with these slice columns.
func fromText(t *testing.T, text string, slices ...string) *Rows {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := ReadFile(path, table.Options{}, slices)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestFile: a file's rows come through the messages as plumbline's own decoder reads them.
func TestFile(t *testing.T) {
	rows := fromText(t, "id,probs_0,probs_1,label,zone,device\na,0.25,0.75,1,n,x\nb,0.5,0.5,0,s,y\nc,1,0,,n,z\n",
		"device", "zone")
	rows.Model = ""
	messages := play(t, Options{Model: "m", Version: "2"}, source(t, rows, Order{}))
	if len(messages) != 2 {
		t.Fatalf("got %d messages, want one of predictions and one of labels", len(messages))
	}
	decoder := arrowio.NewDecoder(arrowio.Options{Slices: []string{"device", "zone"}})
	decode := func(m Message, kind arrowio.Kind) *arrowio.Batch {
		batches, err := decoder.Decode(m.Value, arrowio.Origin{}, kind)
		if err != nil {
			t.Fatal(err)
		}
		if len(batches) != 1 || batches[0].Models[0] != (arrowio.ModelKey{Model: "m", Version: "2"}) {
			t.Fatalf("got %d batches of %v, want 1 of m/2", len(batches), batches[0].Models)
		}
		return batches[0]
	}
	b := decode(messages[0], arrowio.Predictions)
	if b.N != 3 || b.K != 2 || !b.Probs || b.Scores[1] != 0.75 || b.Scores[4] != 1 {
		t.Errorf("got N %d, K %d, probs %v, scores %v, want the file's", b.N, b.K, b.Probs, b.Scores)
	}
	got := map[string]string{}
	for _, s := range b.Slices {
		for _, i := range s.Index {
			got[s.Name] += s.Values[i]
		}
	}
	if got["zone"] != "nsn" || got["device"] != "xyz" {
		t.Errorf("slices: got %v, want zone nsn and device xyz", got)
	}
	l := decode(messages[1], arrowio.Labels)
	if l.N != 2 || l.IDs[0] != b.IDs[0] || l.IDs[1] != b.IDs[1] || l.Label[0] != 1 || l.Label[1] != 0 {
		t.Errorf("labels: got %d with classes %v, want those of a and b: 1 and 0", l.N, l.Label)
	}
}

func TestScoresAreRounded(t *testing.T) {
	r := fromText(t, "logits_0,logits_1\n0.1,-3\n")
	if len(r.Scores) != 2 || r.Scores[0] != float32(0.1) || r.Scores[1] != -3 {
		t.Errorf("got %v, want the float32 nearest to 0.1 and -3", r.Scores)
	}
	if _, err := r.Open(Order{}); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	r.Scores = r.Scores[:1]
	if _, err := r.Open(Order{}); err == nil || !strings.Contains(err.Error(), "column scores") {
		t.Errorf("got error %v, want one on the column scores", err)
	}
}

// TestFileOfVersions: rows keep the model and version that the file gives them, and so do their labels, in one message
// of each kind; a name for all rows replaces them.
func TestFileOfVersions(t *testing.T) {
	const text = "id,prob,label,model,version\na,0.5,1,m,1\na,0.5,0,m,2\nb,0.5,1,n,2\nc,0.5,1,n,\nd,0.5,1,,2\n"
	for _, c := range []struct {
		o      Options
		rows   []string
		labels []string // of which one names no version where its row names none
	}{
		{Options{}, []string{"m/1", "m/2", "n/2", "n/0", "/2 null_row"}, []string{"m/1", "m/2", "n/2", "n/", "/2"}},
		{Options{Version: "7"}, []string{"m/7", "m/7", "n/7", "n/7", "/7 null_row"},
			[]string{"m/7", "m/7", "n/7", "n/7", "/7"}},
		{Options{Model: "x", Version: "7"}, []string{"x/7", "x/7", "x/7", "x/7", "x/7"},
			[]string{"x/7", "x/7", "x/7", "x/7", "x/7"}},
	} {
		messages := play(t, c.o, source(t, fromText(t, text), Order{}))
		if len(messages) != 2 {
			t.Fatalf("got %d messages, want one of predictions and one of labels", len(messages))
		}
		for i, want := range [][]string{c.rows, c.labels} {
			kind := []arrowio.Kind{arrowio.Predictions, arrowio.Labels}[i]
			batches, err := arrowio.NewDecoder(arrowio.Options{}).Decode(messages[i].Value, arrowio.Origin{}, kind)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for row := range batches[0].N {
				key, _ := batches[0].ModelOf(row)
				text := key.Model + "/" + key.Version
				if !batches[0].Good(row) {
					text += " " + batches[0].Reject[row]
				}
				got = append(got, text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v, kind %d: got %q, want %q", c.o, kind, got, want)
			}
		}
	}
}
