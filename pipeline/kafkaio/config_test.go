package kafkaio_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLUMBLINE_TEST_PASSWORD", "from env")
	for _, c := range []struct {
		sasl kafkaio.SASL
		want string
		ok   bool
	}{
		{kafkaio.SASL{}, "", true},
		{kafkaio.SASL{Username: "u", PasswordEnv: "PLUMBLINE_TEST_PASSWORD"}, "from env", true},
		{kafkaio.SASL{Username: "u", PasswordFile: file}, "from file", true},
		{kafkaio.SASL{Username: "u", PasswordEnv: "PLUMBLINE_TEST_UNSET"}, "", false},
		{kafkaio.SASL{Username: "u", PasswordFile: file + "x"}, "", false},
		{kafkaio.SASL{Username: "u"}, "", false},
	} {
		if got, err := c.sasl.Password(); got != c.want || (err == nil) != c.ok {
			t.Errorf("%+v: got %q, %v, want %q, ok %v", c.sasl, got, err, c.want, c.ok)
		}
	}
}
