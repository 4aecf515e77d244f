package web

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/goccy/go-yaml"
)

// People says who sends a request. Whoever reaches an address that is not of the loopback must have shown a password or
// a certificate before anything is changed in their name.
type People struct {
	File     string // http.web_config_file; "" = nobody is asked for a password
	Loopback bool   // only this machine reaches the address
}

var errNobody = errors.New("orders from another machine need a person whose password or certificate is checked: " +
	"set basic_auth_users or client certificates in http.web_config_file, or listen on a loopback address")

// Who is the name that was checked; "" = none was, and on the loopback none is needed.
func (p People) Who(r *http.Request) (string, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != "" {
			return name, nil
		}
	}
	if name, _, ok := r.BasicAuth(); ok && p.File != "" {
		known, err := usersOf(p.File)
		if err != nil {
			return "", fmt.Errorf("http.web_config_file: %w", err)
		}
		if known[name] { // or the request would not have come so far
			return name, nil
		}
	}
	if p.Loopback {
		return "", nil
	}
	return "", errNobody
}

// maxUsersFile is how many bytes a web configuration file may have: some thousand users.
const maxUsersFile = 1 << 20

// usersOf are the users that a web configuration file names. It is read each time, as the server does.
func usersOf(file string) (map[string]bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxUsersFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxUsersFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxUsersFile)
	}
	var c struct {
		Users map[string]string `yaml:"basic_auth_users"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, errors.New("it cannot be read") // the text has hashes of passwords
	}
	known := map[string]bool{}
	for name := range c.Users {
		known[name] = true
	}
	return known, nil
}

// OnLoopback reports whether only this machine reaches an address.
func OnLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
