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

// TestAwait: what came of an order is the newest decision of the same person for the same reason, not an older one with
// the same words, nor that of another.
func TestAwait(t *testing.T) {
	decision := func(revision int, by, outcome string) string {
		return fmt.Sprintf(`{"version":"7","revision":%d,"by":%q,"why":"w","outcome":%q}`, revision, by, outcome)
	}
	old := decision(1, "ann", "pin by ann")
	for _, c := range []struct{ after, want string }{
		{decision(3, "ann", "pin by ann"), "3"},
		{decision(2, "bob", "pin by bob") + "," + decision(4, "ann", "pin by ann"), "4"},
		{decision(0, "ann", "refused: pin by ann: no such version"), "pin of m/7 (order o1): refused: pin by ann: no"},
		{decision(2, "bob", "pin by bob"), "no decision about it has come within 1ns"},
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
