package schemas

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/pipeline/inputs"
)

// Bounds of what a registry answers.
const (
	patience  = 10 * time.Second
	maxAnswer = 4 << 20 // bytes
	maxRefers = 100     // schemas that one refers to, through others
	maxKept   = 1000
	// again is when a schema that was not there is asked for again.
	again = time.Minute
)

// Client knows the schemas of a registry. Safe for concurrent use.
type Client struct {
	registry *sr.Client

	mu   sync.Mutex
	kept map[uint32]kept
}

type kept struct {
	schema inputs.Schema
	err    error // ErrNoSchema or ErrBadSchema, as the registry said at
	at     time.Time
}

// New returns a client; nil where no registry is configured.
func New(c Config) (*Client, error) {
	if c.URL == "" {
		return nil, nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("schema_registry.ca_file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("schema_registry.ca_file: %s: no certificate in PEM", c.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	options := []sr.ClientOpt{sr.URLs(c.URL), sr.UserAgent("plumbline"),
		sr.HTTPClient(&http.Client{Transport: bounded{transport}, Timeout: patience})}
	if c.Username != "" {
		password, err := setting.Secret("schema_registry.password", c.PasswordEnv, c.PasswordFile)
		if err != nil {
			return nil, err
		}
		options = append(options, sr.BasicAuth(c.Username, password))
	}
	registry, err := sr.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("schema_registry.url: %w", err)
	}
	return &Client{registry: registry, kept: map[uint32]kept{}}, nil
}

// bounded bounds the body of an answer.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{&limited{answer.Body, maxAnswer}, answer.Body}
	}
	return answer, err
}

// limited is an error, not an end, after so many bytes.
type limited struct {
	io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("the registry's answer has more than %d bytes", maxAnswer)
	}
	return n, err
}

// Schema implements inputs.Schemas.
func (c *Client) Schema(ctx context.Context, id uint32) (inputs.Schema, error) {
	// Registries number by Java's int. Asked for more, Confluent's answers as if its address were wrong, and whoever
	// writes one such record would have its partition wait for ever.
	if id > math.MaxInt32 {
		return inputs.Schema{}, inputs.ErrNoSchema
	}
	c.mu.Lock()
	k, known := c.kept[id]
	c.mu.Unlock()
	if known && (k.err == nil || time.Since(k.at) < again) {
		return k.schema, k.err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := c.ask(ctx, id)
	if err != nil && !errors.Is(err, inputs.ErrNoSchema) && !errors.Is(err, inputs.ErrBadSchema) {
		return s, fmt.Errorf("schema %d of the registry: %w", id, err)
	}
	k = kept{schema: s, err: err, at: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxKept {
		c.kept = map[uint32]kept{}
	}
	c.kept[id] = k
	return s, err
}

func (c *Client) ask(ctx context.Context, id uint32) (inputs.Schema, error) {
	got, err := c.registry.SchemaByID(ctx, int(id))
	if err != nil {
		return inputs.Schema{}, missing(err)
	}
	s := inputs.Schema{Type: got.Type.String(), Text: got.Schema}
	err = c.refers(ctx, &s, got.References, map[string]bool{})
	return s, err
}

// refers adds what a schema refers to, and what that does, which comes before it.
func (c *Client) refers(ctx context.Context, s *inputs.Schema, to []sr.SchemaReference, seen map[string]bool) error {
	for _, r := range to {
		if seen[r.Name] {
			continue
		}
		if seen[r.Name] = true; len(seen) > maxRefers {
			return fmt.Errorf("%w: more than %d references", inputs.ErrBadSchema, maxRefers)
		}
		other, err := c.registry.SchemaByVersion(ctx, r.Subject, r.Version)
		if err != nil {
			return missing(err)
		}
		if err := c.refers(ctx, s, other.References, seen); err != nil {
			return err
		}
		s.Refers = append(s.Refers, inputs.NamedSchema{Name: r.Name, Text: other.Schema.Schema})
	}
	return nil
}

// missing is ErrNoSchema where a registry says that it has no such schema, subject or version: its codes for that begin
// with 404. A plain 404 is another server's.
func missing(err error) error {
	var answer *sr.ResponseError
	if errors.As(err, &answer) && answer.ErrorCode/100 == http.StatusNotFound {
		return inputs.ErrNoSchema
	}
	return err
}
