package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/sinks/history"
)

// fakeHeads has one head, m/1+head1.
type fakeHeads struct{ orders []HeadOrder }

func (f *fakeHeads) Heads() any { return map[string]any{"heads": []string{"m/1+head1"}} }

func (f *fakeHeads) HeadOrder(_ context.Context, o HeadOrder) (any, error) {
	if o.ID != "m/1+head1" {
		return nil, fmt.Errorf("%w: no head %s", ErrOrder, o.ID)
	}
	f.orders = append(f.orders, o)
	return o, nil
}

func TestHeads(t *testing.T) {
	h := history.New(history.Config{})
	book := &fakeHeads{}
	on := New(Deps{History: h, Control: &recorded{}, Heads: book})
	off := New(Deps{History: h, Heads: book})
	none := New(Deps{History: h, Control: &recorded{}})
	for _, c := range []struct {
		name         string
		to           http.Handler
		method, path string
		code         int
		body         string
	}{
		{"list", on, "GET", "/api/v1/heads", 200, "m/1+head1"},
		{"list of none", none, "GET", "/api/v1/heads", 404, "heads.shadow"},
		{"list by POST", on, "POST", "/api/v1/heads", 405, "not allowed"},
		{"pin", on, "POST", "/api/v1/heads/pin?id=m/1%2Bhead1&why=it+is+good&by=me", 200, "it is good"},
		{"cancel", on, "POST", "/api/v1/heads/cancel?id=m/1%2Bhead1&why=x", 200, "cancel"},
		{"without a reason", on, "POST", "/api/v1/heads/pin?id=m/1%2Bhead1", 400, "why"},
		{"pin by GET", on, "GET", "/api/v1/heads/pin?id=m/1%2Bhead1", 405, "POST"},
		{"without id", on, "POST", "/api/v1/heads/pin?why=x", 400, "id"},
		{"unknown id", on, "POST", "/api/v1/heads/pin?id=x&why=x", 409, "no head x"},
		{"unknown action", on, "POST", "/api/v1/heads/burn?id=m/1%2Bhead1&why=x", 404, "there are pin"},
		{"control off", off, "POST", "/api/v1/heads/pin?id=m/1%2Bhead1", 403, "http.control"},
		{"nobody follows", none, "POST", "/api/v1/heads/pin?id=m/1%2Bhead1&why=x", 404, "heads.shadow"},
		{"long reason", on, "POST", "/api/v1/heads/pin?id=m/1%2Bhead1&why=" + strings.Repeat("x", 300), 400, "why"},
	} {
		rec := httptest.NewRecorder()
		c.to.ServeHTTP(rec, httptest.NewRequest(c.method, c.path, nil))
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.body) {
			t.Errorf("%s: got %d %s, want %d with %q", c.name, rec.Code, rec.Body, c.code, c.body)
		}
	}
	if len(book.orders) != 2 || book.orders[0].By != "me" || book.orders[1].By == "" {
		t.Errorf("got orders %+v, want the pin by me and the cancel by an address", book.orders)
	}
}
