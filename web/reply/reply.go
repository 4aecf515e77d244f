// Package reply answers requests of the HTTP API: a value in JSON, or {"error": why}. A client that has gone before its
// answer is no news, so nothing is logged.
package reply

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Type is the content type of answers in JSON.
const Type = "application/json; charset=utf-8"

// JSON answers with v, which nobody may keep unless the caller has set Cache-Control. Encoding comes first, so that a
// value that JSON cannot hold (NaN) is an error and the answer 500, not half an answer.
func JSON(w http.ResponseWriter, code int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		Error(w, http.StatusInternalServerError, "encode reply: "+err.Error())
		return err
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	Send(w, code, Type, append(body, '\n'))
	return nil
}

// Error answers with {"error": why}.
func Error(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Cache-Control", "no-store")
	_ = JSON(w, code, map[string]string{"error": why}) // a text has an encoding
}

// Send answers with a body of any kind.
func Send(w http.ResponseWriter, code int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// Allows refuses other methods than those allowed; it reports whether it has not.
func Allows(w http.ResponseWriter, r *http.Request, allowed ...string) bool {
	if slices.Contains(allowed, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	Error(w, http.StatusMethodNotAllowed, "method "+r.Method+" is not allowed here: "+strings.Join(allowed, " or "))
	return false
}
