package main

import (
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Bounds of a request.
const (
	patience  = 20 * time.Second
	mostBytes = 48 << 10 // of a page: it must fit a message
)

// response is what a web server has answered.
type response struct {
	status  int
	headers map[string]string // by small letters
	body    []byte
}

// get requests a page of the service http. Redirects are followed as often as is said.
func get(ctx *actor.Context, url, agent string, redirects int64, then func(*actor.Context, *response, error) error) {
	args := actor.Func(func(w *abi.Writer) {
		w.Map(5)
		w.Text("url")
		w.Text(url)
		w.Text("headers")
		w.Array(2)
		for _, h := range [][2]string{{"user-agent", agent}, {"accept", "text/html, text/plain"}} {
			w.Array(2)
			w.Text(h[0])
			w.Text(h[1])
		}
		w.Text("redirects")
		w.Int(redirects)
		w.Text("inline")
		w.Int(mostBytes)
		w.Text("max")
		w.Int(mostBytes)
	})
	service.Ask(ctx, "http", "do", args, patience, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		r, err := readResponse(m)
		return then(ctx, r, err)
	})
}

func readResponse(m *actor.Message) (*response, error) {
	x, r := &response{headers: map[string]string{}}, m.Reader()
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "status":
			x.status = int(r.Int())
		case "headers":
			for range r.Array() {
				if r.Array() != 2 {
					r.Fail(abi.ErrArity)
				}
				name, value := strings.ToLower(r.Text()), r.Text()
				x.headers[name] = value
			}
		case "body":
			x.body = r.Bytes()
		default:
			r.Skip()
		}
	}
	return x, r.Done()
}
