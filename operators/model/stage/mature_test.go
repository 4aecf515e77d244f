package stage

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
)

// TestMaturity: a row counts once, from the same pane on however soon its label came, and what is kept of more rows
// than there is room for is of either kind alike.
func TestMaturity(t *testing.T) {
	const pane, panes, each = 10, 60, 30
	m := Maturity{After: 95, Pane: pane}
	for _, limit := range []int{panes * each, 100} {
		rng := rand.New(rand.NewPCG(6, uint64(limit)))
		arriving := map[int64][]acc.SampleRow{}
		var want []acc.SampleRow // in time
		for i := range panes * each {
			row := acc.SampleRow{TS: int64(i) * pane / each, Y: int32(rng.IntN(2))}
			binary.LittleEndian.PutUint64(row.ID[8:], rng.Uint64())
			row.LabelTS = row.TS + 3 // wrong rows at once, right ones late, some of them too late
			if row.Y == 1 {
				row.LabelTS = row.TS + 60 + rng.Int64N(50)
			}
			arriving[row.LabelTS/pane] = append(arriving[row.LabelTS/pane], row)
			if row.LabelTS/pane <= row.TS/pane+10 {
				want = append(want, row)
			}
		}
		k, n, counted := &Key{}, map[int32]int{}, []acc.SampleRow(nil)
		for p := int64(0); p < panes+20; p++ {
			rows := arriving[p]
			slices.SortFunc(rows, CompareRows)
			m.Keep(k, rows, p, limit)
			if len(k.Sample) > 2*limit+each/pane { // rows of one time go together
				t.Fatalf("%d rows are kept, want at most %d of either kind", len(k.Sample), limit)
			}
			all, fresh := m.Rows(k.Sample, p, limit)
			for i := range fresh {
				if row := &fresh[i]; row.TS/pane+10 != p {
					t.Fatalf("a row of %d counts at the end of pane %d", row.TS, p)
				}
				n[fresh[i].Y]++
			}
			counted = append(counted, fresh...)
			same := func(a, b acc.SampleRow) bool { return CompareRows(a, b) == 0 }
			latest := counted[max(0, len(counted)-limit):]
			if !slices.EqualFunc(all, latest[max(0, len(latest)-len(all)):], same) {
				t.Fatalf("pane %d: %d rows count, want the latest %d that came", p, len(all), len(latest))
			}
		}
		slices.SortFunc(want, CompareRows)
		if limit == panes*each && !reflect.DeepEqual(counted, want) {
			t.Errorf("%d rows counted, want the %d whose labels came in time", len(counted), len(want))
		}
		share := float64(n[1]) / float64(n[0]+n[1])
		if limit == 100 && (n[0]+n[1] < 300 || share < .35 || share > .65) {
			t.Errorf("with room for %d, %d rows counted, %.2f of them of the class whose labels come late", limit,
				n[0]+n[1], share)
		}
	}
}
