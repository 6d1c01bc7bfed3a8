package httpclient

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// unpack decompresses gzip as it comes. Its memory does not depend on the data, and the reader
// counts the decompressed bytes.
func unpack(answer *http.Response, body io.Reader) io.Reader {
	if !strings.EqualFold(answer.Header.Get("Content-Encoding"), "gzip") {
		return body
	}
	answer.Header.Del("Content-Encoding")
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	return &gunzip{body: body}
}

// gunzip opens the format at the first read.
type gunzip struct {
	body io.Reader
	z    *gzip.Reader
}

func (g *gunzip) Read(b []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g.body)
		if err != nil {
			if err == io.EOF {
				return 0, io.EOF // no body at all
			}
			return 0, err
		}
		g.z = z
	}
	return g.z.Read(b)
}
