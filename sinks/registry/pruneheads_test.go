package registry

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestHeadsAreFoundByTheirIndex: pruning reads the entries of heads, not all of a model.
func TestHeadsAreFoundByTheirIndex(t *testing.T) {
	s := open(t, Config{Store: SQLite, Path: filepath.Join(t.TempDir(), "history.db"), Timeout: patience})
	db, _, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("EXPLAIN QUERY PLAN "+s.d.bind(headEntriesOf), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if got := strings.Join(plan, "; "); rows.Err() != nil || got != "SEARCH plumbline_entries USING INDEX plumbline_entries_heads (model=?)" {
		t.Errorf("plan: %s, %v; want one search by the index", got, rows.Err())
	}
}

// BenchmarkHeadsInForce looks for the heads in force of a model that has 100,000 entries, a thousandth of them of heads.
func BenchmarkHeadsInForce(b *testing.B) {
	s, err := Open(Config{Store: SQLite, Path: filepath.Join(b.TempDir(), "history.db"), Timeout: patience})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	db, _, err := s.open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.ExecContext(b.Context(), `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
		INSERT INTO plumbline_entries (id, kind, model, version, slice, at, seq, state, summary, who, why, record)
		SELECT 'e' || i, CASE WHEN i % 1000 = 0 THEN 'head' WHEN i % 3 = 0 THEN 'calibrator' ELSE 'alert' END, 'm', '1', '', i, 0, 'trained', 'summary', '', '',
			'{"id":"m/1+head' || i || '","outcome":"trained","number":' || i || ',"more":"' || hex(randomblob(500)) || '"}' FROM n`); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tx, err := db.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if heads, err := s.heads(b.Context(), tx, "m"); err != nil || len(heads) != 100 {
			b.Fatalf("%d heads, %v", len(heads), err)
		}
		if err := tx.Rollback(); err != nil {
			b.Fatal(err)
		}
	}
}
