package control_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/control"
)

// TestAwait: what came of an order is the decision that bears its id, not an older one with the same words, nor that of
// another.
func TestAwait(t *testing.T) {
	decision := func(order, state string, revision int) string {
		return fmt.Sprintf(`{"version":"7","revision":%d,"by":"ann","why":"w","order":%q,"state":%q,"outcome":"…"}`,
			revision, order, state)
	}
	old := decision("o0", "pinned", 1) + "," + decision("", "published", 1)
	for _, c := range []struct{ after, want string }{
		{decision("o1", "pinned", 3), "3"},
		{decision("o2", "pinned", 2) + "," + decision("o1", "pinned", 4), "4"},
		{decision("o1", "refused", 0), "pin of m/7 (order o1): …"},
		{decision("o2", "pinned", 2), "no decision about it has come within 1ns"},
	} {
		list, posted := old, ""
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				list, posted = list+","+c.after, r.URL.String()
				fmt.Fprint(w, `{"id":"o1","action":"pin","model":"m","version":"7","by":"ann","why":"w"}`)
				return
			}
			fmt.Fprintf(w, `{"calibrators":[%s]}`, list)
		}))
		client, err := control.New("", "", "")
		if err != nil {
			t.Fatal(err)
		}
		d, err := control.Process{Client: client, Base: srv.URL}.Await(t.Context(), control.Order{Action: "pin",
			Model: "m", Version: "7", Revision: 2, By: "ann", Why: "w"}, time.Nanosecond)
		srv.Close()
		if got := fmt.Sprint(d.Revision, " ", err); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.after, got, c.want)
		}
		if posted != "/api/v1/models/m/calibrators/pin?by=ann&revision=2&version=7&why=w" {
			t.Error(posted)
		}
	}
}
