package record_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestFieldsAreDocumented: the documents name every field of the records.
func TestFieldsAreDocumented(t *testing.T) {
	var text string
	for _, name := range []string{"http", "metrics", "format"} {
		b, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	for _, r := range []any{
		record.Snapshot{}, record.Metrics{}, record.Bin{}, record.Calibrator{}, record.Alert{}, record.Decision{},
		record.Finetune{}, record.FinetuneData{}, record.FinetuneEvidence{}, record.Head{}, record.Artefact{},
		record.Job{}, record.Verdict{}, record.Order{}, record.Loss{}, record.Skip{},
	} {
		typ := reflect.TypeOf(r)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			found := name == "" || name == "-"
			for _, as := range []string{"`" + name + "`", "." + name + "`", "`" + name + "."} {
				found = found || strings.Contains(text, as)
			}
			if !found {
				t.Errorf("%s.%s is described nowhere: add `%s` to the record's part of docs/http.md, docs/metrics.md "+
					"or docs/format.md", typ.Name(), name, name)
			}
		}
	}
}
