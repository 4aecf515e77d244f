package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/plumbline/plumbline/web/reply"
)

// Order is what a person wants of a model version's calibrator.
type Order struct {
	Action         string // pin | unpin | publish | rollback | set-classes
	Model, Version string
	Revision       int    // 0 = none named
	Classes        int    // for set-classes; 0 = none named
	Calibrator     []byte // JSON, for publish
	By, Why        string
}

// Orders takes what people decide about calibrators.
type Orders interface {
	// Order hands an order to the model task and returns what is known of it, encoded as JSON. An error that wraps
	// ErrOrder is the order's fault.
	Order(ctx context.Context, o Order) (any, error)
}

// ErrOrder says that an order cannot be carried out.
var ErrOrder = errors.New("order cannot be carried out")

// maxCalibrator bounds the body of publish; 1,000 classes by a full matrix take about 20 MB.
const maxCalibrator = 64 << 20

// orderPath is where orders go: POST, with the calibrator as the body of publish.
const orderPath = calibratePrefix + "{model}/calibrators/{action}"

func isOrder(path string) bool {
	return strings.HasPrefix(path, calibratePrefix) && strings.Contains(path, "/calibrators/")
}

// orderOf reads an order from a request, except for its body; p has the first error.
func orderOf(p *params, r *http.Request) Order {
	o := Order{
		Action:  r.PathValue("action"),
		Model:   r.PathValue("model"),
		Version: p.text("version"),
		By:      p.text("by"),
		Why:     p.text("why"),
	}
	o.Revision, o.Classes = p.whole("revision"), p.whole("classes")
	return o
}

// order takes one order under the same conditions as a pause.
func (a *api) order(w http.ResponseWriter, r *http.Request) {
	p, ok := a.control(w, r, "version", "revision", "classes", "by", "why")
	if !ok {
		return
	}
	o := orderOf(p, r)
	if p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	}
	if o.By, ok = a.person(w, r, o.By); !ok {
		return
	}
	if a.Orders == nil {
		reply.Error(w, http.StatusNotFound, "this process writes no panes topic: orders go to one that does")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCalibrator))
	if err != nil {
		code, why := http.StatusBadRequest, "body: "+err.Error()
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			code, why = http.StatusRequestEntityTooLarge, fmt.Sprintf("body of more than %d bytes", large.Limit)
		}
		reply.Error(w, code, why)
		return
	}
	o.Calibrator = body
	a.Log.Info("order", "action", o.Action, "model", o.Model, "version", o.Version, "revision", o.Revision,
		"classes", o.Classes, "by", o.By, "why", o.Why, "from", r.RemoteAddr)
	answer, err := a.Orders.Order(r.Context(), o)
	a.ordered(w, "order", answer, err)
}

// ordered answers an order with what came of it.
func (a *api) ordered(w http.ResponseWriter, what string, answer any, err error) {
	switch {
	case errors.Is(err, ErrOrder):
		reply.Error(w, http.StatusConflict, err.Error())
	case err != nil:
		a.Log.Error(what, "err", err)
		reply.Error(w, http.StatusInternalServerError, err.Error())
	default:
		a.reply(w, answer)
	}
}
