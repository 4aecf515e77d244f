package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// peerKind is a detector with its settings, from sensitive to calm; the first is river's default.
type peerKind struct {
	name      string
	gap       bool // watches a - c; else the error 1 - a
	parameter string
	values    []float64
	make      func(v float64) riverDetector
}

var peerKinds = []peerKind{
	{"ADWIN (a − c)", true, "delta", []float64{2e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10},
		func(v float64) riverDetector { return &adwin{delta: v} }},
	{"Page–Hinkley (a − c)", true, "threshold", []float64{50, 100, 150, 200, 250, 300, 400, 600},
		func(v float64) riverDetector { return &pageHinkley{threshold: v} }},
	{"DDM (error)", false, "drift_threshold", []float64{3, 3.5, 4, 4.5, 5, 6, 7},
		func(v float64) riverDetector { return &ddm{threshold: v} }},
	{"HDDM_A (error)", false, "drift_confidence", []float64{1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10},
		func(v float64) riverDetector { return &hddmA{confidence: v} }},
	{"HDDM_W (error)", false, "drift_confidence", []float64{1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12},
		func(v float64) riverDetector { return &hddmW{confidence: v} }},
}

// peerSources are the files that peers' numbers depend on, besides the streams'.
var peerSources = []string{"bench/detect/river.go", "bench/detect/adwin.go", "bench/detect/peergrid.go"}

func (k *peerKind) setting(v float64) string { return fmt.Sprintf("%s = %g", k.parameter, v) }

// firstAlarm returns the row of the first alarm after the change, from 1, -1 for none, and whether there was one
// before.
func (k *peerKind) firstAlarm(v float64, rows []drawn, change int) (first int, early bool) {
	d := k.make(v)
	for i, r := range rows {
		a := 0.0
		if r.right {
			a = 1
		}
		x := 1 - a
		if k.gap {
			x = a - r.c
		}
		if d.update(x) {
			if i+1 > change {
				return i + 1, early
			}
			early = true
		}
	}
	return -1, early
}

// measurePeers runs river's detectors on the first runs of the streams that say something of them: every setting from
// the most sensitive to the first calm one where nobody may alarm, then the default and the calm one on all others;
// errors in a part of the rows are for the yardstick alone.
func measurePeers(o options) error {
	_, streams, err := allStreams(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.out, "peers"), 0o750); err != nil {
		return err
	}
	var all []peer
	for k := range peerKinds {
		kind := &peerKinds[k]
		chosen, err := kind.choose(o, streams, &all)
		if err != nil {
			return err
		}
		for i := range streams {
			if isCalm(streams[i].group) {
				continue
			}
			for _, order := range chosen {
				if streams[i].group == groupWhere && !kind.measures(order) {
					continue
				}
				p, err := kind.onStream(o, &streams[i], order)
				if err != nil {
					return err
				}
				all = append(all, p)
			}
		}
		fmt.Printf("%s: settings %v are compared\n", kind.name, chosen)
		if err := writeJSON(filepath.Join(o.out, "peers.json"), all); err != nil {
			return err
		}
	}
	return nil
}

// choose runs settings where nobody may alarm until one is calm, and returns the default and that one.
func (k *peerKind) choose(o options, streams []stream, all *[]peer) ([]int, error) {
	for order := range k.values {
		calm := true
		for i := range streams {
			if s := &streams[i]; s.name == calibratedName || s.name == turns {
				p, err := k.onStream(o, s, order)
				if err != nil {
					return nil, err
				}
				*all = append(*all, p)
				calm = calm && p.summaryAfter(0).crossed <= calmest
			}
		}
		if calm && order > 0 {
			return []int{0, order}, nil
		}
		if calm {
			break
		}
	}
	return []int{0}, nil
}

// measures is whether it is the yardstick, by which scenarios are matched: that has as many runs as plumbline.
func (k *peerKind) measures(order int) bool { return k.name == yardstick && order == 0 }

// onStream measures a setting on the first runs of a stream, or reads what was measured before.
func (k *peerKind) onStream(o options, s *stream, order int) (peer, error) {
	v := k.values[order]
	n := o.peerRuns
	switch {
	case s.group == groupReal:
		n = 1
	case isCalm(s.group):
		n = o.calmPeerRuns
	case k.measures(order):
		n = o.delayRuns
	}
	code, err := codeDigest(o.out, peerSources...)
	if err != nil {
		return peer{}, err
	}
	p := peer{Stream: s.name, Group: s.group, Detector: k.name, Setting: k.setting(v), Order: order, Runs: n,
		Code: code, Commit: commit()}
	key := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%s/%d/%d", code, k.name, p.Setting, s.name, s.n, n))
	file := filepath.Join(o.out, "peers", fmt.Sprintf("%x.json", key[:8]))
	var kept peer
	if err := readJSON(file, &kept); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	p.First = make([]int, n)
	early := make([]bool, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buffer []drawn
			for run := range next {
				buffer = s.rows(run, buffer)
				p.First[run], early[run] = k.firstAlarm(v, buffer, s.change)
				if p.First[run] > 0 {
					p.First[run] *= s.weight()
				}
			}
		})
	}
	for run := range n {
		next <- run
	}
	close(next)
	wg.Wait()
	for _, e := range early {
		if e {
			p.Early++
		}
	}
	return p, writeJSON(file, p)
}
