package setting

import (
	"net"
	"regexp"
	"strconv"
)

// format is the required form of a text.
type format struct {
	allowed string // for documents: a regular expression, or a description
	must    string // end of the message "must ..."
	pattern string // for the schema; "" = no pattern can express it
	is      func(s string) bool
}

// formats holds the formats by the value of the tag format.
var formats = map[string]format{
	"name":    named(`^[a-zA-Z0-9._-]{1,100}$`),
	"topic":   named(`^[a-zA-Z0-9._-]{1,249}$`),
	"url":     matching(`^https?://[^\s]+$`),
	"label":   matching(`^[a-zA-Z_][a-zA-Z0-9_]*=.+$`),
	"address": address(false),
	"listen":  address(true),
}

// IsURL reports whether s is an http or https address.
func IsURL(s string) bool { return formats["url"].is(s) }

func matching(pattern string) format {
	re := regexp.MustCompile(pattern)
	return format{allowed: pattern, must: "match " + pattern, pattern: pattern, is: re.MatchString}
}

// named returns the format of names that match pattern.
func named(pattern string) format {
	f := matching(pattern)
	match := f.is
	f.must += " and not be . or .."
	f.is = func(s string) bool { return match(s) && s != "." && s != ".." }
	return f
}

// address returns the format host:port. If listen is true, the host may be empty (all interfaces) and the port 0 (any).
func address(listen bool) format {
	return format{allowed: "host:port", must: "be host:port, such as 127.0.0.1:9092", is: func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		n, perr := strconv.ParseUint(port, 10, 16)
		return err == nil && perr == nil && (listen || n > 0 && host != "")
	}}
}
