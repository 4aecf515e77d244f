package inspect

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
)

// PaneReport is the output of `inspect pane --json`.
type PaneReport struct {
	pipeline.PaneInfo
	Cells []CellReport `json:"cells,omitempty"`
}

// CellReport describes one cell. Its metrics are null if no row has a label.
type CellReport struct {
	Version        string   `json:"version"`
	Slice          string   `json:"slice"`
	K              int      `json:"k"`
	PredictionPane string   `json:"prediction_pane"`
	Bytes          int      `json:"bytes"`
	Seen           int64    `json:"seen"`
	Labelled       int64    `json:"labelled"`
	Accuracy       *float64 `json:"accuracy"`
	Confidence     *float64 `json:"confidence"`
	ECE            *float64 `json:"ece"`
}

func readCell(c *pipeline.Cell, length int64) (CellReport, error) {
	out := CellReport{Version: c.Version, Slice: c.Slice, K: c.K,
		PredictionPane: pipeline.Format(c.PredictionPane * length), Bytes: len(c.Set)}
	var s acc.Set
	if err := s.UnmarshalBinary(c.Set); err != nil {
		return out, err
	}
	if s.Seen != nil {
		out.Seen, _ = s.Seen.Total()
	}
	if s.Labelled == nil {
		return out, nil
	}
	if out.Labelled, _ = s.Labelled.Total(); out.Labelled == 0 {
		return out, nil
	}
	bins, err := s.Labelled.MSP.Bins(acc.DefaultBins)
	if err != nil {
		return out, err
	}
	accuracy, confidence, ece := s.Labelled.Scores.Accuracy(), s.Labelled.Scores.MeanConfidence(), metric.ECE(bins)
	out.Accuracy, out.Confidence, out.ECE = &accuracy, &confidence, &ece
	return out, nil
}

// Pane decodes a pane message and its cells.
func Pane(data []byte) (PaneReport, error) {
	m, err := pipeline.DecodePane(data)
	if err != nil {
		return PaneReport{}, err
	}
	report := PaneReport{PaneInfo: m.Info()}
	for i := range m.Cells {
		c, err := readCell(&m.Cells[i], m.Length)
		if err != nil {
			return report, fmt.Errorf("cell %d: %w", i, err)
		}
		report.Cells = append(report.Cells, c)
	}
	return report, nil
}
