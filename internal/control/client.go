package control

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"
)

// Client sends requests to processes as one user.
type Client struct {
	http           *http.Client
	user, password string
}

// New returns a client. If caFile is not "", the client trusts the authorities in it. If user is not "", the client
// sends the password from passwordFile.
func New(caFile, user, passwordFile string) (*Client, error) {
	c := &Client{http: &http.Client{}, user: user}
	if user != "" {
		password, err := os.ReadFile(passwordFile)
		if err != nil {
			return nil, fmt.Errorf("--password-file: %w", err)
		}
		c.password = string(bytes.TrimRight(password, "\r\n"))
	}
	if caFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca-file %s: no certificate in it, PEM is needed", caFile)
	}
	c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}
	return c, nil
}

// Request is one request to a process.
type Request struct {
	Method string
	Base   string // address of the process
	Path   string // below /api/v1/
	Query  url.Values
	Body   []byte
}

// timeout returns how long to wait for an answer. An order may take longer, because the process may have to search the
// topics.
func (r *Request) timeout() time.Duration {
	if r.Method == http.MethodPost {
		return time.Minute
	}
	return 10 * time.Second
}

// Do sends a request and decodes the answer. Errors start with the address.
func (c *Client) Do(ctx context.Context, r Request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.Base+"/api/v1/"+r.Path+"?"+r.Query.Encode(),
		bytes.NewReader(r.Body))
	if err != nil {
		return fmt.Errorf("--url %s: %w", r.Base, err)
	}
	if c.user != "" {
		req.SetBasicAuth(c.user, c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		err = unanswered(err)
		if r.Method == http.MethodPost && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s: do brokers answer the process? Whether the order was taken is not "+
				"known; plumbline history shows it once it is carried out: %w", r.timeout(), err)
		}
		return fmt.Errorf("%s: %w", r.Base, err)
	}
	defer resp.Body.Close()
	const most = 1 << 28
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("%s: %w", r.Base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(r.Base, resp, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: answer %.100q: %w", r.Base, text, err)
	}
	return nil
}

// Healthy is the path by which Check asks only whether a process answers.
const Healthy = "healthy"

// Check asks /-/ready or /-/healthy of a process, and returns what it says where that is not "yes". A process that asks
// for TLS or a password is healthy: images have their health check before anybody has set one.
func (c *Client) Check(ctx context.Context, base, path string) error {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/-/"+path, nil)
	if err != nil {
		return fmt.Errorf("--url %s: %w", base, err)
	}
	if c.user != "" {
		req.SetBasicAuth(c.user, c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", base, unanswered(err))
	}
	defer resp.Body.Close()
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	answers := path == Healthy &&
		(resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized)
	if err == nil && resp.StatusCode != http.StatusOK && !answers {
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	if err != nil {
		return fmt.Errorf("%s: not %s: %w", base, path, err)
	}
	return nil
}

// unanswered describes the error of a request that got no answer. It leaves out the address, which the caller adds. If
// nobody listens, it says what to do.
func unanswered(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no process answers there (plumbline run is one; --url names another): %w", err)
	}
	return err
}

// refusal returns the error that a process answered with.
func refusal(base string, resp *http.Response, body []byte) error {
	var said struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		return fmt.Errorf("%s: %s (%s)", base, said.Error, resp.Status)
	}
	return fmt.Errorf("%s: %s: %.400s", base, resp.Status, bytes.TrimSpace(body))
}
