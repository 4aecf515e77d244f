package calibrate

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestCanaryByID: of rows with ids, those in the share get the canary, the others and those without ids what is in
// force.
func TestCanaryByID(t *testing.T) {
	s, base := serve(t)
	canary, err := calibrator.NewTemperature(2)
	if err != nil {
		t.Fatal(err)
	}
	s.f.Canary, s.f.Share = canary, .3
	const n = 200
	var logits, ids []string
	for i := range n {
		logits = append(logits, "[0,2]")
		if i%2 == 0 {
			ids = append(ids, fmt.Sprint(i))
		} else {
			ids = append(ids, fmt.Sprintf("%q", fmt.Sprint("row-", i)))
		}
	}
	post := func(body string) (int, answer, string) {
		resp, text := do(t, http.MethodPost, base+"/calibrate", map[string]string{"Content-Type": typeJSON},
			[]byte(body))
		var a answer
		if resp.StatusCode == http.StatusOK {
			if err := json.Unmarshal(text, &a); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode, a, string(text)
	}
	_, a, text := post(`{"logits":[` + strings.Join(logits, ",") + `],"ids":[` + strings.Join(ids, ",") + `]}`)
	if a.Canary < n/5 || a.Canary > n*2/5 {
		t.Fatalf("%d of %d rows got the canary of 0.3: %.200s", a.Canary, n, text)
	}
	got := 0
	for i, p := range a.Probabilities {
		id := arrowio.HashIntID(uint64(i))
		if i%2 == 1 {
			id = arrowio.HashID(fmt.Sprint("row-", i))
		}
		want := 1 / (1 + math.Exp(-2))
		if arrowio.InShare(id, .3) {
			want = 1 / (1 + math.Exp(-1))
			got++
		}
		if math.Abs(p[1]-want) > 1e-12 {
			t.Errorf("row %d: %v, want %v", i, p[1], want)
		}
	}
	if got != a.Canary {
		t.Errorf("%d rows by the canary, the answer says %d", got, a.Canary)
	}
	if _, a, _ := post(`{"logits":[` + strings.Join(logits, ",") + `]}`); a.Canary != 0 {
		t.Errorf("%d rows without ids got the canary", a.Canary)
	}
	for _, ids := range []string{`[1]`, `[1,1.5]`, `[1,null]`, `[1,{}]`} {
		if code, _, text := post(`{"logits":[[0,2],[0,2]],"ids":` + ids + `}`); code != http.StatusBadRequest ||
			!strings.Contains(text, "ids") {
			t.Errorf("ids %s: %d %s, want 400 that names them", ids, code, text)
		}
	}
}
