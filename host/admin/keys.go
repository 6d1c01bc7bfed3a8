package admin

import (
	"encoding/base64"
	"errors"
	"net/http"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/kv/operate"
)

// WithKeys serves the keys of the service kv below /v1/kv, with full access only. find is
// called for each request, by any goroutine; nil says that there are none.
func (c Config) WithKeys(find func() operate.Keys) Config { c.keys = find; return c }

// keysRoutes are what WithKeys serves.
func keysRoutes() []*route {
	namespace := param{name: "namespace", needed: true, about: "the namespace"}
	return []*route{
		{method: http.MethodGet, path: "/v1/kv", needs: full, about: "The namespaces of the service kv that are not empty.", answer: operate.Namespaces{},
			serve: func(s *Server, c *call) error { return keys(s, c, operate.Keys.Namespaces) }},
		{method: http.MethodGet, path: "/v1/kv/list", needs: full, about: "Keys in the order of their bytes, a page of them, without values.", answer: operate.KeyPage{},
			params: []param{namespace, {name: "prefix", about: "what the keys begin with"}, {name: "cursor", about: "cursor of the previous page"}, {name: "limit", kind: countParam, about: "at most this many, up to 1000; 0: the default"}, {name: "reverse", kind: flagParam, about: "from the last to the first"}},
			serve:  (*Server).listKeys},
		{method: http.MethodGet, path: "/v1/kv/entry", needs: full, about: "The value of a key.", answer: operate.KeyEntry{},
			params: []param{namespace, {name: "key", needed: true, about: "the key"}},
			serve: func(s *Server, c *call) error {
				return keys(s, c, func(k operate.Keys) (operate.KeyEntry, error) {
					return k.Get(c.query.Get("namespace"), c.query.Get("key"))
				})
			}},
		{method: http.MethodPost, path: "/v1/kv/put", needs: full, about: "Writes a value.", body: operate.PutKey{}, answer: operate.Written{},
			serve: func(s *Server, c *call) error {
				var p operate.PutKey
				if err := c.decode(&p); err != nil {
					return err
				}
				return keys(s, c, func(k operate.Keys) (operate.Written, error) { return k.Put(c.r.Context(), p) })
			}},
		{method: http.MethodPost, path: "/v1/kv/delete", needs: full, about: "Removes an entry.", body: operate.DeleteKey{}, answer: operate.Deleted{},
			serve: func(s *Server, c *call) error {
				var d operate.DeleteKey
				if err := c.decode(&d); err != nil {
					return err
				}
				return keys(s, c, func(k operate.Keys) (operate.Deleted, error) { return k.Delete(c.r.Context(), d) })
			}},
	}
}

func (s *Server) listKeys(c *call) error {
	q := operate.Query{Namespace: c.query.Get("namespace"), Prefix: c.query.Get("prefix")}
	var err error
	if q.Limit, err = c.count("limit", 1000); err != nil {
		return err
	}
	if q.Reverse, err = c.flag("reverse"); err != nil {
		return err
	}
	if text := c.query.Get("cursor"); text != "" {
		if q.Cursor, err = base64.StdEncoding.DecodeString(text); err != nil {
			return bad("bad_query", "cursor is not one that a page has", "")
		}
	}
	return keys(s, c, func(k operate.Keys) (operate.KeyPage, error) { return k.List(q) })
}

// keys answers a request about the keys.
func keys[T any](s *Server, c *call, ask func(operate.Keys) (T, error)) error {
	var of operate.Keys
	if s.cfg.keys != nil {
		of = s.cfg.keys()
	}
	if of == nil {
		return &Problem{http.StatusConflict, "no_kv", "this bundle does not use the service kv", ""}
	}
	v, err := ask(of)
	var e *service.Error
	if errors.As(err, &e) {
		return &Problem{keyStatus(e.Code), string(e.Code), e.Text, ""}
	}
	if err != nil {
		return err
	}
	return c.json(v)
}

func keyStatus(code service.Code) int {
	switch code {
	case service.NotFound:
		return http.StatusNotFound
	case service.Exists, service.Conflict:
		return http.StatusConflict
	case service.TooLarge:
		return http.StatusRequestEntityTooLarge
	case service.Unavailable:
		return http.StatusServiceUnavailable
	case service.Timeout, service.Cancelled:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadRequest
}
