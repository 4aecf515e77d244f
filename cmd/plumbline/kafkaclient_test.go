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
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
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
		cause                 string // "" = it works
	}{
		{"right password", "right", encrypted + sasl("PLAIN", "plumbline"), ""},
		{"wrong password", "wrong", encrypted + sasl("PLAIN", "plumbline"), `refuses user "plumbline": wrong user`},
		{"no password", "", encrypted + sasl("PLAIN", "plumbline"), "kafka.sasl.password_env"},
		{"unknown authority", "right", "  tls: {enabled: true}\n" + sasl("PLAIN", "plumbline"),
			"kafka.tls.ca_file is empty"},
		{"no TLS", "right", sasl("PLAIN", "plumbline"), "speaks TLS: set kafka.tls.enabled"},
		{"no user", "right", encrypted, "wants a user name (PLAIN"},
		{"SCRAM-SHA-256", "right", encrypted + sasl("SCRAM-SHA-256", "scram"), ""},
		{"SCRAM-SHA-512", "right", encrypted + sasl("SCRAM-SHA-512", "scram"), ""},
		{"wrong SCRAM password", "wrong", encrypted + sasl("SCRAM-SHA-512", "scram"), `refuses user "scram"`},
		{"user of another mechanism", "right", encrypted + sasl("SCRAM-SHA-512", "plumbline"), "refuses user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PLUMBLINE_TEST_PASSWORD", c.password)
			file := brokerConfig(t, cluster.ListenAddrs(), c.extra)
			code, _, stderr := runCommand(t, "topics", "create", "-c", file)
			if (code == exitDone) != (c.cause == "") || !strings.Contains(stderr, c.cause) ||
				strings.Contains(stderr, "topics create") {
				t.Errorf("got exit code %d, stderr %q, want %q", code, stderr, c.cause)
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
		{"no certificate", "", exitFailed, "does it want a certificate (kafka.tls.cert_file)?"},
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

// TestTopicsCreateWaitsForLeaders: a cluster that is starting answers that nobody leads yet.
func TestTopicsCreateWaitsForLeaders(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var asked atomic.Int32
	cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		n := asked.Add(1)
		if n > 2 {
			return nil, nil, false
		}
		res := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, topic := range req.(*kmsg.CreateTopicsRequest).Topics {
			answer := kmsg.NewCreateTopicsResponseTopic()
			answer.Topic, answer.ErrorCode = topic.Topic, kerr.NotController.Code
			if n == 2 {
				answer.ErrorCode = kerr.LeaderNotAvailable.Code
			}
			res.Topics = append(res.Topics, answer)
		}
		return res, nil, true
	})
	code, out, stderr := runCommand(t, "topics", "create", "-c", brokerConfig(t, cluster.ListenAddrs(), ""))
	if code != exitDone || strings.Count(out, "created") != 13 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, stderr)
	}
}
