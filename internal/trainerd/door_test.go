package trainerd

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/trainer/service"
	"github.com/plumbline/plumbline/web"
)

// TestForeignNames: the trainer's own port refuses requests under a foreign name, as that of `run` does.
func TestForeignNames(t *testing.T) {
	p := &process{
		Service: service.New(service.Options{}),
		log:     slog.New(slog.DiscardHandler),
		ready:   make(chan struct{}),
	}
	h := p.handler(web.Config{Listen: "trainer.internal:9000", Hosts: []string{"gpu.example"}})
	for host, want := range map[string]int{"127.0.0.1:9000": 200, "trainer.internal:9000": 200, "gpu.example": 200,
		engine.Hostname(): 200, "evil.example": 421, "evil.example:9000": 421} {
		r := httptest.NewRequest("GET", "/-/healthy", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}
