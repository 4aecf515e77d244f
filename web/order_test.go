package web

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/sinks/history"
)

type orderBook struct {
	got []Order
	err error
}

func (b *orderBook) Order(_ context.Context, o Order) (any, error) {
	b.got = append(b.got, o)
	return map[string]string{"id": "7"}, b.err
}

func TestOrders(t *testing.T) {
	book := &orderBook{}
	h := history.New(history.Config{})
	on := New(Deps{History: h, Control: &recorded{}, Orders: book})
	for _, c := range []struct {
		method, target, body string
		err                  error
		code                 int
		want                 string // of the answer
		order                string
		header               []string
	}{
		{"POST", "pin?version=v&by=ann&why=audit", "", nil, 200, `"id":"7"`, "pin m v 0 ann audit", nil},
		{"POST", "unpin?why=done", "", nil, 200, `"id":"7"`, "unpin m  0 192.0.2.1 done", nil},
		{"POST", "rollback?why=wrong&revision=3&by=eve", "", nil, 200, `"id":"7"`, "rollback m  3 eve wrong",
			[]string{"Authorization", "Basic Ym9iOnNlY3JldA=="}},
		{"POST", "publish?why=mine", "{}", nil, 200, `"id":"7"`, "publish m  0 192.0.2.1 mine{}", nil},
		{"POST", "pin?why=x", "", fmt.Errorf("%w: two versions", ErrOrder), 409, "two versions", "pin m  0 192.0.2.1 x",
			nil},
		{"POST", "pin?why=x", "", errors.New("no broker"), 500, "no broker", "pin m  0 192.0.2.1 x", nil},
		{"POST", "pin", "", nil, 400, `\"why\" is required`, "", nil},
		{"POST", "pin?why=x&revision=0", "", nil, 400, "revision", "", nil},
		{"POST", "pin?why=x&revision=one", "", nil, 400, "revision", "", nil},
		{"POST", "publish?why=x", strings.Repeat(" ", maxCalibrator+1), nil, 413, "body of more than 67108864 bytes",
			"", nil},
		{"POST", "pin?why=x&who=y", "", nil, 400, "unknown parameter", "", nil},
		{"GET", "pin?why=x", "", nil, 405, "POST", "", nil},
		{"POST", "pin?why=x", "", nil, 403, "cross-origin", "", []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		book.got, book.err = nil, c.err
		r := httptest.NewRequest(c.method, "/api/v1/models/m/calibrators/"+c.target, strings.NewReader(c.body))
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		on.ServeHTTP(w, r)
		order := ""
		for _, o := range book.got {
			order += fmt.Sprintf("%s %s %s %d %s %s%s", o.Action, o.Model, o.Version, o.Revision, o.By, o.Why,
				o.Calibrator)
		}
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) || order != c.order {
			t.Errorf("%s %s: %d %s, order %q; want %d with %q, %q", c.method, c.target, w.Code, w.Body, order, c.code,
				c.want, c.order)
		}
	}
	for _, d := range []Deps{{History: h}, {History: h, Control: &recorded{}}} {
		w := httptest.NewRecorder()
		New(d).ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/models/m/calibrators/pin?why=x", nil))
		if w.Code != 403 && w.Code != 404 {
			t.Errorf("without control or orders: %d %s", w.Code, w.Body)
		}
	}
}
