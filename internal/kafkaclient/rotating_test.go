package kafkaclient

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// TestPasswordsAndCertificatesChange: a connection logs in with what is in the files when it is made.
func TestPasswordsAndCertificatesChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := write("password", []byte("one\n"))
	m, err := saslMechanism(kafkaio.SASL{Mechanism: kafkaio.SASLPlain, Username: "ann", PasswordFile: password})
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(serial int64) (cert, key string) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		of := &x509.Certificate{SerialNumber: big.NewInt(serial)}
		der, err := x509.CreateCertificate(rand.Reader, of, of, &k.PublicKey, k)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		return write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
			write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	}
	cert, key := certificate(1)
	encryption, err := tlsConfig(kafkaio.TLS{Enabled: true, CertFile: cert, KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	for serial, word := range []string{"one", "two"} {
		write("password", []byte(word))
		certificate(int64(serial))
		if _, first, err := m.Start(t.Context()); err != nil || !bytes.HasSuffix(first, []byte("\x00"+word)) {
			t.Errorf("logs in with %q, %v; want %s", first, err, word)
		}
		c, err := encryption.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if x, err := x509.ParseCertificate(c.Certificate[0]); err != nil || x.SerialNumber.Int64() != int64(serial) {
			t.Errorf("certificate %v, %v; want number %d", x.SerialNumber, err, serial)
		}
	}
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Start(t.Context()); err == nil {
		t.Error("logs in without a password")
	}
}
