package pipeline

import (
	"maps"
	"strings"
	"testing"
)

// TestConservationOfTheArchive: what an archive was given is accounted for where there is one, by balances of their
// own.
func TestConservationOfTheArchive(t *testing.T) {
	good := map[string]int64{CountRows + ":logits": 12, CountPredictions: 12, CountInline: 12, CountLabelled: 12,
		CountArchiveOff: 2, CountArchived: 7, CountArchiveSkipped + ":no_features": 1,
		CountArchiveSkipped + ":features_range": 1, CountArchiveDropped: 1,
		CountArchivePublished: 3, CountArchiveMemory: 1, CountArchiveDisk: 1, CountArchiveLost: 2}
	if n, detail := Unaccounted(good); n != 0 {
		t.Errorf("%d rows are unaccounted for, want none: %s", n, detail)
	}
	for name := range good {
		head, _, _ := strings.Cut(name, ":")
		if !strings.HasPrefix(head, "archive") {
			continue
		}
		bad := maps.Clone(good)
		bad[name] += 5
		want := int64(5)
		if name == CountArchived { // is in both
			want = 10
		}
		if n, detail := Unaccounted(bad); n != want || !strings.Contains(detail, "archive") {
			t.Errorf("5 more %s: %d rows are unaccounted for, want %d: %s", name, n, want, detail)
		}
		delete(bad, CountArchiveOff)
		if n, detail := Unaccounted(bad); n != 0 {
			t.Errorf("without an archive: %d rows are unaccounted for, want none: %s", n, detail)
		}
	}
}
