package kafkaclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

const (
	dialTimeout   = 10 * time.Second
	clientTimeout = 30 * time.Second
)

// New returns a client of the brokers and, for readers and consumer groups, a dialer with the same TLS,
// user and name. Writers take the client's Transport. No connection is made yet.
func New(cfg kafkaio.Config) (*kafka.Client, *kafka.Dialer, error) {
	encryption, err := tlsConfig(cfg.TLS)
	if err != nil {
		return nil, nil, err
	}
	mechanism, err := saslMechanism(cfg.SASL)
	if err != nil {
		return nil, nil, err
	}
	connect := connector{clientID: cfg.ClientID, tls: encryption, mechanism: mechanism}
	client := &kafka.Client{
		Addr:      kafka.TCP(cfg.Brokers...),
		Timeout:   clientTimeout,
		Transport: &kafka.Transport{Dial: connect.dial, DialTimeout: dialTimeout, ClientID: cfg.ClientID},
	}
	dialer := &kafka.Dialer{Timeout: dialTimeout, ClientID: cfg.ClientID, DialFunc: connect.dial}
	return client, dialer, nil
}

// tlsConfig is nil where TLS is off.
func tlsConfig(cfg kafkaio.TLS) (*tls.Config, error) {
	if !cfg.Enabled {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
			if err != nil {
				err = fmt.Errorf("kafka.tls.cert_file %s, key_file %s: %w", cfg.CertFile, cfg.KeyFile, err)
			}
			return &cert, err
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		// Each connection has what is in the files then: certificates are renewed under a process that runs.
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	if cfg.CAFile == "" {
		return out, nil
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("kafka.tls.ca_file: %w", err)
	}
	out.RootCAs = x509.NewCertPool()
	if !out.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("kafka.tls.ca_file: %s: no certificate in it, PEM is needed", cfg.CAFile)
	}
	return out, nil
}

// saslMechanism is nil where no user name is set.
func saslMechanism(cfg kafkaio.SASL) (sasl.Mechanism, error) {
	if cfg.Username == "" {
		return nil, nil
	}
	first, err := mechanismNow(cfg)
	if err != nil {
		return nil, err
	}
	return rotating{cfg, first.Name()}, nil
}

// rotating logs in with the password that is in its file at that moment: passwords change under a process that runs.
type rotating struct {
	cfg  kafkaio.SASL
	name string
}

// Name implements sasl.Mechanism.
func (r rotating) Name() string { return r.name }

// Start implements sasl.Mechanism.
func (r rotating) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	now, err := mechanismNow(r.cfg)
	if err != nil {
		return nil, nil, err
	}
	return now.Start(ctx)
}

func mechanismNow(cfg kafkaio.SASL) (sasl.Mechanism, error) {
	password, err := cfg.Password()
	if err != nil {
		return nil, err
	}
	switch cfg.Mechanism {
	case kafkaio.SASLScramSHA256:
		return scram.Mechanism(scram.SHA256, cfg.Username, password)
	case kafkaio.SASLScramSHA512:
		return scram.Mechanism(scram.SHA512, cfg.Username, password)
	}
	return plain.Mechanism{Username: cfg.Username, Password: password}, nil
}
