package model

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// There may be many new versions, by mistake or by malice, so what is kept for one is packed between its panes.

// keys packs the keys of new versions.
var keys stage.Packer

// restBytes is up to what size a key is packed: a version without labels stays new, and may have many rows.
const restBytes = 128 << 10

// atRest is a key that is packed: of stage.Key only what names it and what changes without a pane is left then.
type atRest struct {
	packed     []byte // nil = awake
	isOpen     bool   // what open reports
	alerted    bool   // whether an alert was published
	isAlerting bool   // what alerting reports
	large      bool   // whether there was too much to pack
	// ofRows is not nil where packed leaves Recent out, because the sampled rows give it.
	ofRows *Config
}

// mostAwake is how many keys of new versions are not packed: where few have rows, each is needed again soon.
const mostAwake = 8

// awake are the keys of new versions that are not packed, in a ring.
type awake struct {
	ring [mostAwake]*keyState
	next int
}

// rest lets a key rest when it has observed a pane. The one that has been awake for longest is packed for it.
func (a *awake) rest(k *keyState, cfg *Config) error {
	if i := slices.Index(a.ring[:], k); i >= 0 {
		if !k.IsNew() {
			a.ring[i] = nil // it will hold much, and its version may be forgotten
		}
		return nil
	}
	if !k.IsNew() {
		return nil
	}
	old := a.ring[a.next]
	a.ring[a.next] = k
	a.next = (a.next + 1) % mostAwake
	if old == nil {
		return nil
	}
	return old.rest(cfg)
}

// rest packs the key of a version that is new until it is needed.
func (k *keyState) rest(cfg *Config) error {
	if !k.IsNew() || k.packed != nil || k.large || len(k.Ended) > 0 {
		return nil
	}
	ofRows, err := k.leaveRecent(cfg)
	if err != nil {
		return err
	}
	recent := k.Recent
	if ofRows != nil {
		k.Recent = stage.Recent{}
	}
	b, err := k.appendKept(k.Snapshots.AppendTexts(nil), cfg.table)
	k.Recent = recent
	if err != nil {
		return err
	}
	if len(b) > restBytes {
		k.large = true
		return nil
	}
	published := func(a *stage.Alert) bool { return a.Last.Record != nil }
	k.atRest = atRest{packed: keys.Pack(b), isOpen: k.open(), alerted: slices.ContainsFunc(k.Alerts, published),
		isAlerting: k.alerting(), ofRows: ofRows}
	k.states = nil
	k.Key = stage.Key{Version: k.Version, Slice: k.Slice, K: k.K, Labelled: k.Labelled, LateRows: k.LateRows,
		Began: k.Began, Added: k.Added, Ledger: k.Ledger}
	return nil
}

// leaveRecent returns cfg if the sampled rows say all that Recent does, and that is worth the time.
func (k *keyState) leaveRecent(cfg *Config) (*Config, error) {
	const worth = 1 << 10
	have := k.Recent.Append(nil)
	if len(have) < worth {
		return nil, nil
	}
	made, err := stage.RecentOfRows(&k.Key, k.Sample, cfg.Pane, cfg.Bins)
	if err != nil || !bytes.Equal(made.Append(nil), have) {
		return nil, err
	}
	return cfg, nil
}

// unpacked is what rest packed: snapshots, and what appendKept wrote.
func (k *keyState) unpacked() []byte {
	b := keys.Unpack(k.packed)
	if k.ofRows == nil {
		return b
	}
	r := binenc.NewReader(b)
	new(stage.SnapshotReader).Read(&r)
	before := b[:len(b)-r.Len()]
	new(stage.Recent).Restore(&r)
	after := b[len(b)-r.Len():]
	recent, err := stage.RecentOfRows(&k.Key, stage.RestoreRows(&r, k.K), k.ofRows.Pane, k.ofRows.Bins)
	if err = errors.Join(err, r.Err()); err != nil {
		panic("model: " + err.Error()) // what this process has packed itself
	}
	return append(recent.Append(before[:len(before):len(before)]), after...)
}

// wake brings back what rest has packed.
func (k *keyState) wake(f *fleet) {
	if k.packed == nil {
		return
	}
	r := binenc.NewReader(k.unpacked())
	k.atRest = atRest{}
	k.begin(f.models[k.Version.Model].versions[k.Version.Name], &f.cfg)
	from := &restoring{&stage.SnapshotReader{}, acc.NewDecoder()}
	if err := errors.Join(k.restoreKept(f, &r, from), r.Close()); err != nil {
		panic("model: " + err.Error()) // what this process has packed itself
	}
}

// remembered returns the latest snapshots. It holds as much memory as the key does until the function is called.
func (k *keyState) remembered() func() [][]byte {
	packed, snapshots := k.packed, maps.Clone(k.Snapshots)
	return func() [][]byte {
		if packed != nil {
			r := binenc.NewReader(keys.Unpack(packed))
			return slices.Collect(maps.Values(new(stage.SnapshotReader).Read(&r).All()))
		}
		return slices.Collect(maps.Values(snapshots.All()))
	}
}
