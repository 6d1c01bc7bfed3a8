package middleware

import (
	"compress/gzip"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// Compress is the compression of answers, by gzip.
type Compress struct {
	On    bool
	Least int      // bytes of a body; default 1 KiB
	Types []string // content types, such as text/* or application/json; default those that are texts
}

// textTypes are the types that are worth compressing.
var textTypes = []string{"text/*", "application/json", "application/*+json", "application/javascript", "application/xml", "application/*+xml", "image/svg+xml", "application/wasm"}

// Middleware compresses what a handler answers, unless it is encoded already, is a part of something larger, or
// says no-transform. Streams of events go through as they are. ETags become weak: the bytes are others.
func (c *Compress) Middleware() func(next http.Handler) http.Handler {
	least := c.Least
	if least <= 0 {
		least = gzhttp.DefaultMinSize
	}
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(least), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.ContentTypeFilter(c.fits))
	if err != nil {
		panic(err) // of a level that does not exist
	}
	return func(next http.Handler) http.Handler {
		return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&marked{w, c}, r) }))
	}
}

// fits reports whether answers of a type are compressed.
func (c *Compress) fits(contentType string) bool {
	typ, _, _ := strings.Cut(contentType, ";")
	typ = strings.ToLower(strings.TrimSpace(typ))
	types := c.Types
	if len(types) == 0 {
		types = textTypes
	}
	for _, t := range types {
		before, after, wild := strings.Cut(t, "*")
		if typ == t || wild && len(typ) >= len(before)+len(after) && strings.HasPrefix(typ, before) && strings.HasSuffix(typ, after) {
			return typ != "text/event-stream"
		}
	}
	return false
}

// marked says what gzhttp does not look for.
type marked struct {
	http.ResponseWriter
	c *Compress
}

func (m *marked) WriteHeader(status int) {
	h := m.Header()
	switch tag := h.Get("Etag"); {
	case InList(h["Cache-Control"], "no-transform"):
		h.Set(gzhttp.HeaderNoCompression, "1")
	case strings.HasPrefix(tag, `"`) && h.Get("Content-Encoding") == "" && m.c.fits(h.Get("Content-Type")):
		h.Set("Etag", "W/"+tag)
	}
	m.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (m *marked) Unwrap() http.ResponseWriter { return m.ResponseWriter }
