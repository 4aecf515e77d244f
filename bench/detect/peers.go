package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// peer is what peers.json has of a detector, a setting and a stream. Order is the place of the setting from sensitive
// to calm; 0 is the default.
type peer struct {
	Stream, Group, Detector, Setting string
	Order                            int
	First                            []int
	Early                            int
	Runs                             int
	Code, Commit                     string // of the streams
}

// river is what peers.py says: how many first alarms of river itself were compared, and what only river has.
type river struct {
	River           string
	Compared, Equal int
	Peers           []peer
}

// readRiver reads river.json; nothing where peers.py has not run.
func readRiver(folder string) (river, error) {
	var r river
	err := readJSON(filepath.Join(folder, "river.json"), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	return r, err
}

// summary looks at the first alarms after a change; the detector went on after earlier ones.
func (p *peer) summaryAfter(change int) summary {
	s := summarise(p.First, change)
	s.early = float64(p.Early) / float64(len(p.First))
	return s
}

// rows prints the summary; a stream that was not run is empty.
func (p *peer) rows(change int) string {
	if len(p.First) == 0 {
		return ""
	}
	return p.summaryAfter(change).rows()
}

// find returns the entry of peers, or one without runs.
func find(peers []peer, detector, setting, stream string) *peer {
	for i := range peers {
		if p := &peers[i]; p.Detector == detector && p.Setting == setting && p.Stream == stream {
			return p
		}
	}
	return &peer{}
}

// detectorsOf lists the peers' names with their default settings.
func detectorsOf(peers []peer) (names, settings []string) {
	for _, p := range peers {
		if p.Order == 0 && !slices.Contains(names, p.Detector) {
			names, settings = append(names, p.Detector), append(settings, p.Setting)
		}
	}
	return names, settings
}

// calmest is the largest share of runs of a boundary stream with an alarm that a setting may have to be compared.
const calmest = .01

// calmSetting returns the most sensitive setting of a detector with alarms in at most 1 % of the runs of both streams
// that it was chosen on, "" without one.
func calmSetting(peers []peer, detector string) string {
	best := &peer{}
	for i := range peers {
		p := &peers[i]
		if p.Detector != detector || p.Stream != turns || best.Detector != "" && best.Order <= p.Order {
			continue
		}
		calm := find(peers, detector, p.Setting, calibratedName)
		if len(calm.First) > 0 && p.summaryAfter(0).crossed <= calmest && calm.summaryAfter(0).crossed <= calmest {
			best = p
		}
	}
	return best.Setting
}

// peerFalseAlarms is the share of runs with an alarm by setting. A setting is given up at the alarm that puts it above
// 1 %.
func peerFalseAlarms(b *strings.Builder, peers []peer) {
	names, _ := detectorsOf(peers)
	if len(names) == 0 {
		return
	}
	var chosen []peer
	for _, p := range peers {
		if p.Stream == turns {
			chosen = append(chosen, p)
		}
	}
	slices.SortStableFunc(chosen, func(a, b peer) int {
		return cmp.Or(cmp.Compare(slices.Index(names, a.Detector), slices.Index(names, b.Detector)),
			cmp.Compare(a.Order, b.Order))
	})
	share := func(p *peer) string {
		if len(p.First) == 0 {
			return ""
		}
		return fmt.Sprintf("%s of %d", percent(p.summaryAfter(0).crossed), len(p.First))
	}
	var rows [][]string
	for _, p := range chosen {
		mark := ""
		if p.Order == 0 {
			mark = " (default)"
		}
		if p.Setting == calmSetting(peers, p.Detector) {
			mark += " **calm**"
		}
		rows = append(rows, []string{p.Detector, p.Setting + mark,
			share(find(peers, p.Detector, p.Setting, calibratedName)), share(&p)})
	}
	table(b, "River's detectors on the first of the same runs, each row a label: share of runs that ever alarm. From "+
		"sensitive settings to the first calm one, with alarms in at most 1 % of the runs of both.",
		[]string{"detector", "setting", calibratedName, turns}, rows)
}
