package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// bcryptOfRight is bcrypt of the password "right", at the lowest cost.
const bcryptOfRight = "$2a$04$yL5KfRBk0ss61nQ.c1VZX.ZFb9iEtaAhhWGIjKuuigI8YIA8UZtdi"

// secured runs the page with a web configuration and returns its address.
func secured(t *testing.T, webConfig string) string {
	t.Helper()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "plumbline.logits", "plumbline.labels", "plumbline.panes",
		"plumbline.snapshots", "plumbline.calibrators",
		"plumbline.alerts", "plumbline.decisions", "plumbline.deadletter")
	cfg := config.Default()
	cfg.Kafka.Brokers, cfg.Checkpoints.Dir, cfg.HTTP.WebConfig = brokers, t.TempDir(),
		writeFile(t, "web.yaml", webConfig)
	rt := engine.New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	var err error
	if rt.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, engine.Stages{Shards: true, Models: true}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return rt.Listener.Addr().String()
}

// TestWebConfig asks for the page, the API and the metrics over TLS, with the right password, a wrong one and none.
func TestWebConfig(t *testing.T) {
	cert, ca := selfSigned(t)
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile := writeFile(t, "cert.pem", ca)
	keyFile := writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	address := secured(t,
		"tls_server_config: {cert_file: "+certFile+", key_file: "+keyFile+"}\n"+
			"basic_auth_users: {ops: "+bcryptOfRight+"}\n")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for _, path := range []string{"/", "/api/v1/status", "/metrics", "/-/healthy"} {
		for password, want := range map[string]int{"right": http.StatusOK, "wrong": http.StatusUnauthorized,
			"": http.StatusUnauthorized} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if password != "" {
				req.SetBasicAuth("ops", password)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s with password %q: status %d, want %d", path, password, resp.StatusCode, want)
			}
		}
	}
	if resp, err := http.Get("http://" + address + "/"); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("the page was served in the clear")
		}
	}
}

func TestWebConfigThatCannotBeRead(t *testing.T) {
	cfg := config.Default()
	cfg.HTTP.Listen, cfg.HTTP.WebConfig = "127.0.0.1:0",
		writeFile(t, "web.yaml", "tls_server_config: {cert_file: absent.pem, key_file: absent.pem}\n")
	rt := engine.New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	err := rt.ServeHTTP(t.Context(), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "http.web_config_file ") {
		t.Errorf("got %v, want an error that names http.web_config_file", err)
	}
}

// TestOrdersNeedAPerson pauses a process through addresses of the loopback and of all networks, with and without users
// in the web configuration: a name is believed only where its password was checked.
func TestOrdersNeedAPerson(t *testing.T) {
	users := writeFile(t, "web.yaml", "basic_auth_users: {ops: "+bcryptOfRight+"}\n")
	for _, c := range []struct {
		name, listen, file, user, password string
		code                               int
		by                                 string // "" = refused
	}{
		{"loopback", "127.0.0.1:0", "", "", "", 200, "ann"},
		{"loopback, a name that nobody checked", "127.0.0.1:0", "", "eve", "right", 200, "ann"},
		{"loopback with users", "127.0.0.1:0", users, "ops", "right", 200, "ops"},
		{"all networks", "0.0.0.0:0", "", "", "", 403, ""},
		{"all networks, a name that nobody checked", "0.0.0.0:0", "", "ops", "right", 403, ""},
		{"all networks with users", "0.0.0.0:0", users, "ops", "right", 200, "ops"},
		{"all networks, wrong password", "0.0.0.0:0", users, "ops", "wrong", 401, ""},
		{"all networks, nobody", "0.0.0.0:0", users, "", "", 401, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Checkpoints.Dir, cfg.HTTP.WebConfig, cfg.HTTP.Control = t.TempDir(), c.file, true
			rt := engine.New(cfg, slog.New(slog.DiscardHandler))
			var err error
			if rt.Listener, err = net.Listen("tcp4", c.listen); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			g, ctx := errgroup.WithContext(ctx)
			if err := rt.ServeHTTP(ctx, g); err != nil {
				t.Fatal(err)
			}
			_, port, _ := net.SplitHostPort(rt.Listener.Addr().String())
			req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+port+"/api/v1/pause?by=ann&why=x", nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.user != "" {
				req.SetBasicAuth(c.user, c.password)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != c.code || c.by != "" && !strings.Contains(string(body), `"`+c.by+`"`) {
				t.Errorf("%d %s, %v; want %d by %q", resp.StatusCode, body, err, c.code, c.by)
			}
			req.Host, req.Method = "evil.example", http.MethodGet
			if resp, err = http.DefaultClient.Do(req); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got := resp.StatusCode; got != http.StatusMisdirectedRequest && got != http.StatusUnauthorized {
				t.Errorf("a foreign name: %d", resp.StatusCode)
			}
			cancel()
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
