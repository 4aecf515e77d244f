package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var embedded embed.FS

// contentTypes are those of the files that the page may have; the system's table is not to be trusted with them.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

type asset struct {
	body      []byte
	etag      string
	mediaType string
}

// assets maps URL paths to embedded files: / and /assets/….
type assets map[string]asset

func newAssets() assets {
	out := assets{}
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		url := "/" + name
		if name == "assets/index.html" {
			url = "/"
		}
		out[url] = asset{body, `"` + hex.EncodeToString(sum[:8]) + `"`, contentTypes[strings.ToLower(path.Ext(name))]}
		return nil
	})
	if err != nil {
		panic("web: embedded assets: " + err.Error())
	}
	return out
}

// serve answers with the asset at the request's path, or returns false. Clients revalidate by ETag every time, so that
// the modules of a page are always those of one build.
func (as assets) serve(w http.ResponseWriter, r *http.Request) bool {
	a, ok := as[r.URL.Path]
	if !ok {
		return false
	}
	w.Header().Set("Content-Type", a.mediaType)
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
	return true
}
