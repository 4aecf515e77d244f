package main

import (
	"errors"
	"log/slog"

	"github.com/plumbline/plumbline/trainer/backend"
)

// fallback is a backend, and another one where the first cannot do: no device, an old driver, no memory.
type fallback struct {
	first, second backend.Backend
	log           *slog.Logger
}

// Name implements backend.Backend.
func (f fallback) Name() string { return f.first.Name() }

// Open implements backend.Backend.
func (f fallback) Open(p backend.Problem) (backend.Session, error) {
	s, err := f.first.Open(p)
	if !errors.Is(err, backend.ErrUnsupported) {
		return s, err
	}
	f.log.Warn("training on "+f.second.Name()+" instead of "+f.first.Name(), "why", err)
	return f.second.Open(p)
}
