package cli

import (
	"io"
	"log/slog"
	"strings"

	"github.com/plumbline/plumbline/internal/faultlog"
)

// NewLogger returns a logger of a level and a format, as flags name them, that does not repeat a fault that lasts
// ([faultlog.Handler]). Another name is an error of usage.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	at, ok := map[string]slog.Level{
		"debug": slog.LevelDebug,
		"info":  slog.LevelInfo,
		"warn":  slog.LevelWarn,
		"error": slog.LevelError,
	}[strings.ToLower(level)]
	if !ok {
		return nil, Usagef("--log-level %q: must be debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: at}
	switch strings.ToLower(format) {
	case "text":
		return slog.New(faultlog.New(slog.NewTextHandler(w, options))), nil
	case "json":
		return slog.New(faultlog.New(slog.NewJSONHandler(w, options))), nil
	}
	return nil, Usagef("--log-format %q: must be text or json", format)
}
