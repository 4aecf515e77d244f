package web

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/web/reply"
)

// KnownHosts refuses requests whose Host header is a name that this server does not have: a page of another site can
// make its own name an address of ours (DNS rebinding), and a browser then takes our answers for that site's. Addresses
// and names of the loopback are known, as are those given; "*" is every name, "*.x" every name below x.
func KnownHosts(next http.Handler, names ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostOf(r.Host); !knownHost(host, names) {
			reply.Error(w, http.StatusMisdirectedRequest, fmt.Sprintf(
				"the name %q is not known here: add it to http.hosts, or use an address", host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is a Host header without its port.
func hostOf(header string) string {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// knownHost also takes every address: what a browser has loaded from one, that one has sent.
func knownHost(host string, names []string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil {
		return true
	}
	return host != "" && slices.ContainsFunc(names, func(n string) bool {
		below, ok := strings.CutPrefix(hostOf(n), "*.")
		return n == "*" || hostOf(n) == host || ok && len(host) > len(below)+1 && strings.HasSuffix(host, "."+below)
	})
}

// person is who sends a request that changes something, claimed is who they say they are. Only a name whose password or
// certificate was checked is believed before that.
func (a *api) person(w http.ResponseWriter, r *http.Request, claimed string) (by string, ok bool) {
	if a.Who != nil {
		name, err := a.Who(r)
		if err != nil {
			reply.Error(w, http.StatusForbidden, err.Error())
			return "", false
		}
		if name != "" {
			return name, true
		}
	}
	if claimed == "" {
		claimed, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	return claimed, true
}
