package kafkaclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// probeTimeout bounds each connection of a probe.
const probeTimeout = 3 * time.Second

// The steps of a connection, in their order.
const (
	stepDial = iota
	stepTLS
	stepVersions
	stepSASL
	stepMetadata
	stepDone
)

// probe is one attempt to connect to a broker, step by step.
type probe struct {
	addr  string
	step  int    // where it ended
	cause string // in words for whoever writes the configuration; "" = it works

	broker *metadata.Response
	named  map[string]bool // addresses of the brokers that this one names

	cfg kafkaio.Config
}

// newProbe connects to the broker at addr and says how far it got.
func newProbe(ctx context.Context, cfg kafkaio.Config, addr string) probe {
	p := probe{addr: addr, cfg: cfg}
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	p.run(ctx)
	return p
}

func (p *probe) run(ctx context.Context) {
	conn, err := p.dial(ctx)
	if err != nil {
		p.cause = fmt.Sprintf("%v (no broker answers: is one of kafka.brokers right, and up?)", err)
		return
	}
	defer conn.Close()
	if p.cfg.TLS.Enabled {
		p.step = stepTLS
		if conn, err = p.encrypt(ctx, conn); err != nil {
			p.cause = p.whyTLS(ctx, err)
			return
		}
	}
	p.step = stepVersions
	kc, err := p.versions(conn)
	if err != nil {
		p.cause = p.whyVersions(ctx, err)
		return
	}
	if p.cfg.SASL.Username != "" {
		p.step = stepSASL
		if p.cause = p.logIn(ctx, kc); p.cause != "" {
			return
		}
	}
	p.step = stepMetadata
	res, err := kc.RoundTrip(&metadata.Request{TopicNames: []string{}})
	if err != nil {
		p.cause = p.whyMetadata(ctx, err)
		return
	}
	p.step, p.broker, p.named = stepDone, res.(*metadata.Response), map[string]bool{}
	for _, b := range p.broker.Brokers {
		p.named[net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))] = true
	}
}

func (p *probe) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", p.addr)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(probeTimeout))
	}
	return conn, err
}

// encrypt is the handshake of TLS with the configuration's certificates.
func (p *probe) encrypt(ctx context.Context, conn net.Conn) (net.Conn, error) {
	c, err := tlsConfig(p.cfg.TLS)
	if err != nil {
		return conn, err
	}
	c.ServerName, _, _ = net.SplitHostPort(p.addr)
	out := tls.Client(conn, c)
	return out, out.HandshakeContext(ctx)
}

// versions asks for the versions of the requests that the broker knows, and uses them from then on.
func (p *probe) versions(conn net.Conn) (*protocol.Conn, error) {
	kc := protocol.NewConn(conn, p.cfg.ClientID)
	res, err := kc.RoundTrip(&apiversions.Request{})
	if err != nil {
		return nil, err
	}
	known := map[protocol.ApiKey]int16{}
	for _, k := range res.(*apiversions.Response).ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		known[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	kc.SetVersions(known)
	return kc, nil
}

// logIn authenticates and returns what is in the way; "" = nothing.
func (p *probe) logIn(ctx context.Context, kc *protocol.Conn) string {
	mechanism, err := saslMechanism(p.cfg.SASL)
	if err != nil {
		return err.Error()
	}
	res, err := kc.RoundTrip(&saslhandshake.Request{Mechanism: mechanism.Name()})
	if err != nil {
		return fmt.Sprintf("%s ends the connection when a user is named: %v (kafka.sasl)", p.addr, err)
	}
	offer := res.(*saslhandshake.Response)
	switch code := kafka.Error(offer.ErrorCode); {
	case code == kafka.IllegalSASLState:
		return p.addr + " takes no user name: leave out kafka.sasl, or use the port of the listener with SASL " +
			"in kafka.brokers"
	case code == kafka.UnsupportedSASLMechanism:
		return fmt.Sprintf("%s does not offer %s, it offers %s: set kafka.sasl.mechanism", p.addr, mechanism.Name(),
			strings.Join(offer.Mechanisms, ", "))
	case code != 0:
		return fmt.Sprintf("%s refuses to authenticate: %v (kafka.sasl)", p.addr, code)
	}
	if said := authenticate(ctx, kc, mechanism); said != nil {
		return fmt.Sprintf("%s refuses user %q: wrong user name or password (kafka.sasl): %v", p.addr,
			p.cfg.SASL.Username, said)
	}
	return ""
}

// authenticate is the exchange that follows a handshake.
func authenticate(ctx context.Context, kc *protocol.Conn, mechanism sasl.Mechanism) error {
	session, state, err := mechanism.Start(ctx)
	for done := false; err == nil && !done; {
		var res protocol.Message
		if res, err = kc.RoundTrip(&saslauthenticate.Request{AuthBytes: state}); err != nil {
			break
		}
		answer := res.(*saslauthenticate.Response)
		if answer.ErrorCode != 0 {
			return errors.New(answer.ErrorMessage)
		}
		done, state, err = session.Next(ctx, answer.AuthBytes)
	}
	return err
}

// whyTLS says why the handshake of TLS failed.
func (p *probe) whyTLS(ctx context.Context, err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		trusted := "kafka.tls.ca_file is empty, so those of this machine are: set it to the PEM file of the authority"
		if p.cfg.TLS.CAFile != "" {
			trusted = fmt.Sprintf("kafka.tls.ca_file, %s, holds another", p.cfg.TLS.CAFile)
		}
		return fmt.Sprintf("%s: its certificate is signed by an authority that is not trusted here; %s", p.addr,
			trusted)
	case errors.As(err, &host):
		return fmt.Sprintf("%s: %v: use a name in kafka.brokers that is in the certificate", p.addr, host)
	case errors.As(err, &invalid):
		return fmt.Sprintf("%s: its certificate cannot be used: %v", p.addr, invalid)
	case remoteAlert(err):
		return p.whyAlert(err)
	}
	if conn, derr := p.dial(ctx); derr == nil {
		defer conn.Close()
		if _, verr := p.versions(conn); verr == nil {
			return p.addr + " does not speak TLS: leave out kafka.tls, or use the port of the listener with TLS " +
				"in kafka.brokers"
		}
	}
	return fmt.Sprintf("%s does not answer to TLS: %v: is it a broker's port (kafka.brokers, kafka.tls)?", p.addr, err)
}

// whyAlert says why the broker ended the handshake, or, with TLS 1.3, the connection after it.
func (p *probe) whyAlert(err error) string {
	if p.cfg.TLS.CertFile == "" {
		return fmt.Sprintf("%s refuses the connection: %v: does it want a certificate (kafka.tls.cert_file)?", p.addr,
			err)
	}
	return fmt.Sprintf("%s refuses the connection: %v: does it trust the certificate of kafka.tls.cert_file, %s?",
		p.addr, err, p.cfg.TLS.CertFile)
}

// remoteAlert reports whether the other side ended TLS with a reason.
func remoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// whyVersions says why the first request was not answered.
func (p *probe) whyVersions(ctx context.Context, err error) string {
	if remoteAlert(err) {
		return p.whyAlert(err)
	}
	if !p.cfg.TLS.Enabled && p.speaksTLS(ctx) {
		return p.addr + " speaks TLS: set kafka.tls.enabled (and kafka.tls.ca_file, if its authority is your own)"
	}
	return fmt.Sprintf("%s does not answer as a Kafka broker: %v: is it the port for clients (kafka.brokers)?", p.addr,
		err)
}

// speaksTLS reports whether the broker answers to TLS, whoever it is.
func (p *probe) speaksTLS(ctx context.Context) bool {
	conn, err := p.dial(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	//nolint:gosec // nothing is sent: the question is whether TLS is spoken
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	return err == nil || remoteAlert(err)
}

// whyMetadata says why the first request that needs rights was not answered.
func (p *probe) whyMetadata(ctx context.Context, err error) string {
	if remoteAlert(err) {
		return p.whyAlert(err)
	}
	if p.cfg.SASL.Username == "" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		if offer := p.mechanisms(ctx); len(offer) > 0 {
			return fmt.Sprintf("%s wants a user name (%s): set kafka.sasl", p.addr, strings.Join(offer, ", "))
		}
	}
	return fmt.Sprintf("%s ends the connection: %v: is it the port for clients (kafka.brokers), and does it want "+
		"a user (kafka.sasl)?", p.addr, err)
}

// mechanisms asks on a new connection for the SASL mechanisms that the broker offers; nil where it has no SASL.
func (p *probe) mechanisms(ctx context.Context) []string {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if p.cfg.TLS.Enabled {
		if conn, err = p.encrypt(ctx, conn); err != nil {
			return nil
		}
	}
	kc, err := p.versions(conn)
	if err != nil {
		return nil
	}
	res, err := kc.RoundTrip(&saslhandshake.Request{Mechanism: "none"})
	if err != nil {
		return nil
	}
	return res.(*saslhandshake.Response).Mechanisms
}
