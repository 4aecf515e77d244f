package engine

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/sinks/registry"
)

// past is the history in a database.
type past struct {
	config *config.Config
	log    *slog.Logger
	mu     sync.Mutex
	Past   *decisionlog.Store // nil = no history in a database
}

// OpenPast opens the history, if one is configured.
func (p *past) OpenPast() error {
	if p.config.History.Store == registry.Off {
		return nil
	}
	store, err := decisionlog.Open(p.config.History, HistoryFile(p.config))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Past = &decisionlog.Store{Store: store, Fill: registry.NewFiller(store, p.log)}
	return nil
}

// now returns the history; nil if there is none or it is not open yet, since the status may be asked early.
func (p *past) now() *decisionlog.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Past
}

// HistoryFile returns the file of the history's database. Its name includes the host's: machines that share the work
// directory have one each.
func HistoryFile(c *config.Config) string {
	if c.History.Path != "" {
		return c.History.Path
	}
	return filepath.Join(workDir(c), "history-"+c.Group+"@"+url.QueryEscape(Hostname())+".db")
}
