package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// selfSigned returns a certificate for 127.0.0.1, and itself as PEM.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestTLSAndPassword makes topics on a broker that wants a password, over TLS.
func TestTLSAndPassword(t *testing.T) {
	cert, ca := selfSigned(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "plumbline", "right"),
		kfake.Superuser("SCRAM-SHA-256", "scram", "right"), kfake.Superuser("SCRAM-SHA-512", "scram", "right"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	encrypted := "  tls: {enabled: true, ca_file: " + writeFile(t, "ca.pem", ca) + "}\n"
	sasl := func(mechanism, user string) string {
		return "  sasl: {mechanism: " + mechanism + ", username: " + user + ", password_env: PLUMBLINE_TEST_PASSWORD}\n"
	}
	for _, c := range []struct {
		name, password, extra string
		code                  int
	}{
		{"right password", "right", encrypted + sasl("PLAIN", "plumbline"), exitDone},
		{"wrong password", "wrong", encrypted + sasl("PLAIN", "plumbline"), exitFailed},
		{"no password", "", encrypted + sasl("PLAIN", "plumbline"), exitFailed},
		{"unknown authority", "right", "  tls: {enabled: true}\n" + sasl("PLAIN", "plumbline"), exitFailed},
		{"SCRAM-SHA-256", "right", encrypted + sasl("SCRAM-SHA-256", "scram"), exitDone},
		{"SCRAM-SHA-512", "right", encrypted + sasl("SCRAM-SHA-512", "scram"), exitDone},
		{"wrong SCRAM password", "wrong", encrypted + sasl("SCRAM-SHA-512", "scram"), exitFailed},
		{"user of another mechanism", "right", encrypted + sasl("SCRAM-SHA-512", "plumbline"), exitFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PLUMBLINE_TEST_PASSWORD", c.password)
			code, _, stderr := runCommand(t, "topics", "create", "-c", brokerConfig(t, cluster.ListenAddrs(), c.extra))
			if code != c.code {
				t.Errorf("got exit code %d, stderr %q, want %d", code, stderr, c.code)
			}
			if c.password != "" && strings.Contains(stderr, c.password+"\"") {
				t.Errorf("stderr %q shows the password", stderr)
			}
		})
	}
}

// TestClientCertificate makes topics on a broker that wants to know who connects.
func TestClientCertificate(t *testing.T) {
	cert, ca := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca))
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs: pool}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	caFile := writeFile(t, "ca.pem", ca)
	keyFile := writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	for _, c := range []struct {
		name, extra string
		code        int
		stderr      string
	}{
		{"certificate", "cert_file: " + caFile + ", key_file: " + keyFile, exitDone, ""},
		{"no certificate", "", exitFailed, ""},
		{"not a key", "cert_file: " + caFile + ", key_file: " + caFile, exitFailed, "kafka.tls.cert_file"},
		{"no key", "cert_file: " + caFile, exitUsage, "must be set together with kafka.tls.key_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			extra := "  tls: {enabled: true, ca_file: " + caFile + ", " + c.extra + "}\n"
			code, _, stderr := runCommand(t, "topics", "create", "-c", brokerConfig(t, cluster.ListenAddrs(), extra))
			if code != c.code || !strings.Contains(stderr, c.stderr) {
				t.Errorf("got exit code %d, stderr %q, want %d, %q", code, stderr, c.code, c.stderr)
			}
		})
	}
}

func TestCAFileWithoutCertificate(t *testing.T) {
	file := brokerConfig(t, []string{"127.0.0.1:1"}, "  tls: {enabled: true, ca_file: "+writeFile(t, "ca.pem",
		"nothing")+"}\n")
	if code, _, stderr := runCommand(t, "topics", "create", "-c", file); code != exitFailed ||
		!strings.Contains(stderr, "no certificate in it") {
		t.Errorf("got exit code %d, stderr %q", code, stderr)
	}
}

// TestNoBroker: a broker that does not answer is not taken for a topic that is not there, and the other way round.
func TestNoBroker(t *testing.T) {
	down := brokerConfig(t, []string{"127.0.0.1:1"}, "")
	for _, args := range [][]string{{"run", "-c", down}, {"topics", "create", "-c", down}} {
		code, _, stderr := runCommand(t, args...)
		if code != exitFailed || !strings.Contains(stderr, "no broker answers: is one of kafka.brokers right") ||
			strings.Contains(stderr, "makes the topics") {
			t.Errorf("%v without a broker: got exit code %d, stderr %q", args, code, stderr)
		}
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	code, _, stderr := runCommand(t, "run", "-c", brokerConfig(t, cluster.ListenAddrs(), ""))
	if code != exitFailed || !strings.Contains(stderr, "plumbline topics create makes the topics") {
		t.Errorf("without topics: got exit code %d, stderr %q", code, stderr)
	}
}
