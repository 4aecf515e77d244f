package calibrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/web/budget"
	"github.com/plumbline/plumbline/web/reply"
)

// Content types of calibrate requests and answers.
const (
	typeJSON  = "application/json"
	typeArrow = "application/vnd.apache.arrow.stream"
)

// rows is the JSON body: one of the two, n rows of K numbers.
type rows struct {
	Logits        [][]float64 `json:"logits"`
	Probabilities [][]float64 `json:"probabilities"`
	// IDs are the rows' prediction ids, strings or whole numbers as on the logits topic; without them no row is a
	// canary's.
	IDs []json.RawMessage `json:"ids"`
}

// answer is the JSON answer.
type answer struct {
	Model         string      `json:"model"`
	Version       string      `json:"version"`
	Revision      int         `json:"revision"`
	Top           *top        `json:"top,omitempty"` // what corrects all rows but those of the canary
	Probabilities [][]float64 `json:"probabilities"`
	Canary        int         `json:"canary_rows,omitempty"` // that the canary calibrated
}

func (h *Handler) calibrate(w http.ResponseWriter, r *http.Request) {
	if !reply.Allows(w, r, http.MethodPost) || !h.known(w, r, "version") {
		return
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != typeJSON && kind != typeArrow {
		reply.Error(w, http.StatusUnsupportedMediaType,
			fmt.Sprintf("content type %q: must be %s or %s", r.Header.Get("Content-Type"), typeJSON, typeArrow))
		return
	}
	f, _, ok := h.find(w, r)
	if !ok {
		return
	}
	body, free, err := h.budget.Read(r.Context(), budget.Body{From: r.Body, Length: r.ContentLength, Most: MaxBody})
	defer free()
	if err != nil {
		h.refuse(w, err)
		return
	}
	cost := int64(len(body)) * costJSON
	if kind == typeArrow {
		cost = int64(len(body)) * costArrow
	}
	done, err := h.budget.Turn(r.Context(), cost)
	if err != nil {
		h.refuse(w, err)
		return
	}
	defer done()
	f.classes = h.source.Classes(f.Model, f.Version)
	w.Header().Set("Plumbline-Revision", strconv.Itoa(f.Revision))
	if kind == typeArrow {
		h.arrow(w, &f, body)
		return
	}
	out, err := f.json(body)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	h.writeRows(w, out)
}

// refuse answers where a body could not be read, or not be worked on.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	var large budget.TooLarge
	switch {
	case errors.Is(err, budget.ErrBusy):
		w.Header().Set("Retry-After", "1")
		reply.Error(w, http.StatusServiceUnavailable, err.Error())
	case errors.As(err, &large):
		reply.Error(w, http.StatusRequestEntityTooLarge, large.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		reply.Error(w, http.StatusRequestTimeout, "the body did not come in time: send it again, or fewer rows")
	default:
		reply.Error(w, http.StatusBadRequest, "body: "+err.Error())
	}
}

// writeRows sends an answer row by row: encoded as a whole it would take more than all the rest.
func (h *Handler) writeRows(w http.ResponseWriter, out *answer) {
	list := out.Probabilities
	out.Probabilities = [][]float64{}
	frame, err := json.Marshal(out)
	if err != nil {
		reply.Error(w, http.StatusInternalServerError, "encode reply: "+err.Error())
		return
	}
	const mark = `"probabilities":[`
	at := bytes.LastIndex(frame, []byte(mark)) + len(mark)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", reply.Type)
	b := bufio.NewWriterSize(w, 64<<10)
	_, _ = b.Write(frame[:at])
	for i, row := range list {
		text, err := json.Marshal(row)
		if err != nil { // none is NaN: json has seen to that
			h.log.Error("encode a row of probabilities", "err", err)
			return
		}
		if i > 0 {
			_ = b.WriteByte(',')
		}
		_, _ = b.Write(text)
	}
	_, _ = b.Write(append(frame[at:], '\n'))
	if err := b.Flush(); err != nil {
		h.log.Debug("write reply", "err", err)
	}
}

// asInStream gives probabilities the floor that they have in messages, as float32, which calibrators are fitted on: the
// logarithm of 0 would be another.
func asInStream(p []float64) {
	for i, v := range p {
		if v >= 0 && v < math.SmallestNonzeroFloat32 {
			p[i] = math.SmallestNonzeroFloat32
		}
	}
}

// json calibrates the rows of a JSON body.
func (f *InForce) json(body []byte) (*answer, error) {
	in, err := decode(body)
	if err != nil {
		return nil, err
	}
	list, name := in.Logits, "logits"
	if list == nil {
		list, name = in.Probabilities, "probabilities"
	}
	out := &answer{
		Model:         f.Model,
		Version:       f.Version,
		Revision:      f.Revision,
		Top:           f.correction(),
		Probabilities: make([][]float64, len(list)),
	}
	if len(list) == 0 {
		return out, nil
	}
	slab, err := join(list, name)
	if err != nil {
		return nil, err
	}
	if err := noNull(body, name); err != nil {
		return nil, err
	}
	ids, err := idsOf(in.IDs, len(list))
	if err != nil {
		return nil, err
	}
	k := len(list[0])
	if name == "probabilities" {
		asInStream(slab)
	}
	rows := scores[float64]{z: slab, k: k, probabilities: name == "probabilities", ids: ids}
	if out.Canary, err = apply(f, slab, rows); err != nil {
		return nil, err
	}
	for i := range list {
		p := slab[i*k : (i+1)*k]
		if p[0] != p[0] {
			return nil, fmt.Errorf("%s: row %d gives no probabilities: allowed are finite logits, "+
				"or values in [0, 1] whose sum is within 0.05 of 1", name, i)
		}
		out.Probabilities[i] = p
	}
	return out, nil
}

// decode reads a JSON body, which has exactly one list of rows.
func decode(body []byte) (*rows, error) {
	var in rows
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, bodyError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("body: more than one JSON value")
	}
	if (in.Logits == nil) == (in.Probabilities == nil) {
		return nil, errors.New("body: exactly one of logits and probabilities is needed")
	}
	return &in, nil
}

// join puts rows of one length behind each other.
func join(list [][]float64, name string) ([]float64, error) {
	k := len(list[0])
	if k < 2 {
		return nil, fmt.Errorf("%s: row 0 has %d values, allowed are 2 and more", name, k)
	}
	slab := make([]float64, 0, len(list)*k)
	for i, row := range list {
		if len(row) != k {
			return nil, fmt.Errorf("%s: row %d has %d values, row 0 has %d", name, i, len(row), k)
		}
		slab = append(slab, row...)
	}
	return slab, nil
}

// bodyError is an error of encoding/json in the words of whoever wrote the body.
func bodyError(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("body: empty, must be a JSON object with logits or probabilities")
	case errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number ") && wrong.Type.Kind() == reflect.Float64:
		return fmt.Errorf("body: %s: %s at byte %d, must be at most %g in size", wrong.Field, wrong.Value, wrong.Offset,
			math.MaxFloat64)
	case errors.As(err, &wrong):
		return fmt.Errorf("body: %s: %s at byte %d, must be a list of rows of numbers", wrong.Field, wrong.Value,
			wrong.Offset)
	}
	return fmt.Errorf("body: %w", err)
}

// noNull refuses a null among the numbers, which is what many encoders make of NaN, and what Go's decoder would take
// for 0.
func noNull(body []byte, name string) error {
	if !bytes.Contains(body, []byte("null")) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	_, _ = dec.Token() // {: it was decoded before
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return bodyError(err)
		}
		if k, ok := key.(string); ok && strings.EqualFold(k, name) {
			if err := noNullIn(dec, name); err != nil {
				return err
			}
			continue
		}
		var other json.RawMessage
		if err := dec.Decode(&other); err != nil {
			return bodyError(err)
		}
	}
	return nil
}

// noNullIn looks for a null in the list of rows that comes next.
func noNullIn(dec *json.Decoder, name string) error {
	depth, row, class := 0, -1, -1
	for {
		token, err := dec.Token()
		if err != nil {
			return bodyError(err)
		}
		switch token {
		case json.Delim('['):
			if depth++; depth == 2 {
				row, class = row+1, -1
			}
		case json.Delim(']'):
			depth--
		default:
			class++
		}
		if token == nil && depth == 2 {
			return fmt.Errorf("%s: row %d, class %d: null, must be a number", name, row, class)
		}
		if depth == 0 {
			return nil
		}
	}
}

// arrow calibrates a message as it is on the logits topic, and answers as on the calibrated topic.
func (h *Handler) arrow(w http.ResponseWriter, f *InForce, body []byte) {
	d := h.decoders.Get().(*arrowio.Decoder)
	defer h.decoders.Put(d)
	batches, err := d.Decode(body, arrowio.Origin{}, arrowio.Predictions)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	if len(batches) != 1 {
		reply.Error(w, http.StatusBadRequest, fmt.Sprintf("%d record batches with rows, allowed is 1", len(batches)))
		return
	}
	b := batches[0]
	want := arrowio.ModelKey{Model: f.Model, Version: f.Version}
	for _, m := range b.Models {
		if m != want {
			reply.Error(w, http.StatusBadRequest, fmt.Sprintf("rows of model %q, version %q; allowed are %q, %q",
				m.Model, m.Version, want.Model, want.Version))
			return
		}
	}
	probs := make([]float32, len(b.Scores))
	canary, err := apply(f, probs, scores[float32]{z: b.Scores, k: b.K, probabilities: b.Probs, ids: b.IDs})
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	revisions := strconv.Itoa(f.Revision)
	if canary > 0 {
		revisions += "," + revisions + "-canary"
	}
	o := arrowio.CalibratedOptions{Calibrator: revisions}
	if t := f.correction(); t != nil {
		o.Corrections = []arrowio.Correction{{Model: f.Model, Version: f.Version, Revision: f.Revision,
			EffectiveFrom: t.EffectiveFrom, Correction: f.Top}}
	}
	out, err := arrowio.EncodeCalibrated(b, probs, o)
	if err != nil {
		reply.Error(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	reply.Send(w, http.StatusOK, typeArrow, out)
}
