package gateway

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
	"sync"
)

// textTypes are the types that are worth compressing.
var textTypes = []string{"text/*", "application/json", "application/*+json", "application/javascript", "application/xml", "application/*+xml", "image/svg+xml", "application/wasm"}

var zippers = sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }}

// compress is the body of an answer as it is sent.
func (x *exchange) compress(a *answer) []byte {
	h := x.w.Header()
	if !x.compresses(h.Get("Content-Type")) || h.Get("Content-Encoding") != "" || !bodyAllowed(a.status) || inList(h["Cache-Control"], "no-transform") || h.Get("Content-Range") != "" {
		return a.body
	}
	h.Add("Vary", "Accept-Encoding")
	if len(a.body) < x.g.cfg.Compress.Least || !acceptsGzip(x.r.Header["Accept-Encoding"]) {
		return a.body
	}
	out := bytes.NewBuffer(a.buf[:0])
	z := zippers.Get().(*gzip.Writer)
	z.Reset(out)
	_, _ = z.Write(a.body)
	_ = z.Close()
	zippers.Put(z)
	a.buf = out.Bytes()
	if len(a.buf) >= len(a.body) {
		return a.body
	}
	h.Set("Content-Encoding", "gzip")
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) {
		h.Set("Etag", "W/"+tag) // the bytes are others
	}
	return a.buf
}

// compresses reports whether answers of a type are compressed on this route.
func (x *exchange) compresses(contentType string) bool {
	if !x.g.cfg.Compress.On || x.route.Compress == "off" {
		return false
	}
	typ, _, _ := strings.Cut(contentType, ";")
	typ = strings.ToLower(strings.TrimSpace(typ))
	types := x.g.cfg.Compress.Types
	if len(types) == 0 {
		types = textTypes
	}
	for _, t := range types {
		before, after, wild := strings.Cut(t, "*")
		if typ == t || wild && len(typ) >= len(before)+len(after) && strings.HasPrefix(typ, before) && strings.HasSuffix(typ, after) {
			return true
		}
	}
	return false
}

// acceptsGzip reads Accept-Encoding.
func acceptsGzip(values []string) bool {
	any := false
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			name, params, _ := strings.Cut(one, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			if name != "gzip" && name != "*" {
				continue
			}
			q := 1.0
			if text, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
				var err error
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					q = 0
				}
			}
			if name == "gzip" {
				return q > 0
			}
			any = q > 0
		}
	}
	return any
}
