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

// TestTLSAndPassword makes topics on a broker that wants both.
func TestTLSAndPassword(t *testing.T) {
	cert, ca := selfSigned(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "plumbline", "right"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	caFile := writeFile(t, "ca.pem", ca)
	sasl := "  sasl: {username: plumbline, password_env: PLUMBLINE_TEST_PASSWORD}\n"
	for _, c := range []struct {
		name, password, extra string
		code                  int
	}{
		{"right password", "right", "  tls: {enabled: true, ca_file: " + caFile + "}\n" + sasl, exitDone},
		{"wrong password", "wrong", "  tls: {enabled: true, ca_file: " + caFile + "}\n" + sasl, exitFailed},
		{"no password", "", "  tls: {enabled: true, ca_file: " + caFile + "}\n" + sasl, exitFailed},
		{"unknown authority", "right", "  tls: {enabled: true}\n" + sasl, exitFailed},
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

func TestCAFileWithoutCertificate(t *testing.T) {
	file := brokerConfig(t, []string{"127.0.0.1:1"}, "  tls: {enabled: true, ca_file: "+writeFile(t, "ca.pem", "nothing")+"}\n")
	if code, _, stderr := runCommand(t, "topics", "create", "-c", file); code != exitFailed || !strings.Contains(stderr, "no certificate in it") {
		t.Errorf("got exit code %d, stderr %q", code, stderr)
	}
}
