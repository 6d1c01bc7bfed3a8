package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestItIsSeen(t *testing.T) {
	var batches atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { batches.Add(1) }))
	defer collector.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l, collector.URL) }()
	get := func(path string) string {
		r, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 100 { // one trace of ten is recorded
		get("/count")
	}
	if got := get("/count"); got != "101\n" {
		t.Errorf("%q", got)
	}
	if text := get("/metrics"); !strings.Contains(text, `wasmactors_actor_turns_total{path="/user/counter",type="native"} `) || !strings.Contains(text, "wasmactors_trace_spans_total ") {
		t.Error(text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if batches.Load() == 0 {
		t.Error("nothing was sent")
	}
}
