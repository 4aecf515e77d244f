package archive

import (
	"log/slog"

	"github.com/plumbline/plumbline/internal/batchtest"
)

const second = batchtest.Second

var quiet = slog.New(slog.DiscardHandler)
