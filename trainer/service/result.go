package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/head"
)

// Files of a result directory. The report is written last: where it is, the others are whole.
const (
	FileHead    = "head.safetensors"
	FileONNX    = "head.onnx"
	FileReport  = "report.json"
	FileRequest = "request.json"
	resultDir   = "result"
)

// Report is report.json of a result, by its runner. Evidence is passed on unread.
type Report struct {
	Outcome  string          `json:"outcome"` // trained | unchanged
	Why      string          `json:"why"`
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// Result is a result directory that has been read and checked.
type Result struct {
	Report
	Dir  string
	Head *head.Head // nil unless trained
}

// ErrResult is wrapped by errors of results that are not as they must be.
var ErrResult = errors.New("result")

const (
	maxReport = 64 << 20
	maxWhy    = 4 << 10 // of what is published of it
)

// ReadResult reads a result directory and checks it against the request: a head that is trained has finite weights and
// the request's number of classes.
func ReadResult(dir string, r record.Finetune) (*Result, error) {
	text, err := readBounded(filepath.Join(dir, FileReport), maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no %s", ErrResult, FileReport)
	}
	if err != nil {
		return nil, err
	}
	res := &Result{Dir: dir}
	if err := json.Unmarshal(text, &res.Report); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrResult, FileReport, err)
	}
	res.Why = shortened(res.Why, maxWhy)
	switch res.Outcome {
	case record.OutcomeUnchanged:
		return res, nil
	case record.OutcomeTrained:
	default:
		return nil, fmt.Errorf("%w: %s: outcome %q, allowed are trained and unchanged",
			ErrResult, FileReport, res.Outcome)
	}
	if res.Head, err = readHead(dir); err != nil {
		return nil, err
	}
	if k := res.Head.K(); r.Classes != 0 && k != r.Classes {
		return nil, fmt.Errorf("%w: %s: %d classes, the request is of %d", ErrResult, FileHead, k, r.Classes)
	}
	return res, nil
}

// readHead reads the head of a result directory.
func readHead(dir string) (*head.Head, error) {
	const maxHead = 8 << 30
	weights, err := readBounded(filepath.Join(dir, FileHead), maxHead)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: outcome trained, but no %s", ErrResult, FileHead)
	case errors.Is(err, ErrResult):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	h, _, err := artefact.ReadSafetensors(weights)
	if err == nil {
		err = h.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrResult, FileHead, err)
	}
	return h, nil
}

func readBounded(file string, most int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s: mode %s, allowed is a regular file", ErrResult, file, info.Mode())
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%w: %s: %d bytes, allowed are at most %d", ErrResult, file, info.Size(), most)
	}
	return os.ReadFile(file)
}

// shortened is the beginning of a text, of at most so many bytes.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// WriteResult writes a result into a directory that is there: the head as safetensors and ONNX where one was trained,
// then the report.
func WriteResult(dir string, rep Report, h *head.Head) error {
	if h != nil {
		meta := map[string]string{"plumbline.why": rep.Why}
		var b bytes.Buffer
		if err := artefact.WriteSafetensors(&b, h, meta); err != nil {
			return err
		}
		if err := durable.WriteFile(filepath.Join(dir, FileHead), b.Bytes()); err != nil {
			return err
		}
		if err := writeONNX(dir, h); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, FileReport), text)
}

func writeONNX(dir string, h *head.Head) error {
	const temperature = 1 // it is in the weights
	b, err := artefact.ONNX(h, temperature, nil)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, FileONNX), b)
}

// publishDir makes a whole directory the job's result, unless there is one.
func publishDir(staged, dir string) error {
	err := os.Rename(staged, dir)
	if errors.Is(err, fs.ErrExist) || err != nil && exists(filepath.Join(dir, FileReport)) {
		return os.RemoveAll(staged) // another attempt was first
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// record is what is published of a result. Weights are in it up to so many bytes.
func (res *Result) record(r record.Finetune, attempt int, trainer string, inline int) (record.Head, error) {
	h := headRecord(r, attempt, trainer)
	h.Outcome, h.Why, h.Evidence = res.Outcome, res.Why, res.Evidence
	if res.Head == nil {
		return h, nil
	}
	h.Features, h.Classes = res.Head.D(), res.Head.K()
	for _, name := range []string{FileHead, FileONNX, FileReport} {
		path, err := filepath.Abs(filepath.Join(res.Dir, name))
		if err != nil {
			return h, err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return h, err
		}
		sum := sha256.Sum256(b)
		h.Artefacts = append(h.Artefacts, record.Artefact{
			Name:   name,
			Path:   path,
			Bytes:  int64(len(b)),
			SHA256: hex.EncodeToString(sum[:]),
		})
		if name == FileHead && len(b) <= inline {
			h.Weights = b
		}
	}
	return h, nil
}

func headRecord(r record.Finetune, attempt int, trainer string) record.Head {
	return record.Head{
		Schema:        1,
		Kind:          record.HeadTrained,
		ID:            r.ID,
		Model:         r.Model,
		Version:       r.Version,
		Number:        r.Number,
		ShadowVersion: r.ShadowVersion,
		Attempt:       attempt,
		Trainer:       trainer,
		EffectiveFrom: r.ShadowFrom,
	}
}

// Weights returns the head of a record: what is in it, or what its artefact has, whose hash must be the record's.
func Weights(h record.Head) (*head.Head, error) {
	b := h.Weights
	if len(b) == 0 {
		for _, a := range h.Artefacts {
			if a.Name != FileHead {
				continue
			}
			var err error
			if b, err = readBounded(a.Path, a.Bytes); err != nil {
				return nil, fmt.Errorf("head %s: %w", h.ID, err)
			}
			if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != a.SHA256 {
				return nil, fmt.Errorf("%w: head %s: %s has SHA-256 %x, its record says %s",
					ErrResult, h.ID, a.Path, sum, a.SHA256)
			}
		}
	}
	hd, _, err := artefact.ReadSafetensors(b)
	if err != nil {
		return nil, fmt.Errorf("head %s: %w", h.ID, err)
	}
	if hd.D() != h.Features || hd.K() != h.Classes {
		return nil, fmt.Errorf("%w: head %s: %d features and %d classes, its record says %d and %d",
			ErrResult, h.ID, hd.D(), hd.K(), h.Features, h.Classes)
	}
	return hd, nil
}
