package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/service"
)

// broken is a service that can be opened only while its disk is there.
type broken struct{}

func (broken) Serve(context.Context, *service.Request[struct{}]) (any, error) { return "served", nil }
func (broken) Close(context.Context) error                                    { return nil }

// An operator's kill of a service is no end: readiness says which one is down and since when, to everybody, and
// why, to whoever may read; and it comes back. A stop, which would be one, is refused.
func TestReadinessNamesServices(t *testing.T) {
	var gone atomic.Bool
	kind := service.Define(service.Definition[struct{}, struct{}]{Name: "store", Open: func(*service.Env, *struct{}) (service.Provider[struct{}], error) {
		if gone.Load() {
			return nil, errors.New("/var/state: the disk is gone")
		}
		return broken{}, nil
	}})
	var sys *host.System
	var running []*service.Running
	s := serveSiteOf(t, func(x *host.System) {
		sys = x
		r, err := kind.Start(sys, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, r)
	}, func(c Config) Config {
		o := observe.New(sys, observe.Options{}.WithSharing(-1).WithServices(func() []*service.Running { return running }))
		t.Cleanup(o.Close)
		return c.WithObserver(o).WithHealth("127.0.0.1:0")
	})
	if status, text := s.do(http.MethodPost, "/v1/stop", `{"select":{"paths":["/system/store"]}}`); status != 200 || !strings.Contains(string(text), "a service runs as long as the bundle does") {
		t.Errorf("%d %s", status, text)
	}
	gone.Store(true)
	was := running[0].Ref()
	if status, text := s.do(http.MethodPost, "/v1/kill", `{"select":{"paths":["/system/store"]}}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	var h Health
	eventually(t, "readiness does not name the service", func() bool {
		status, text := s.do(http.MethodGet, "/readyz", "")
		h = Health{}
		return status == 503 && json.Unmarshal(text, &h) == nil && h.Status == "down"
	})
	if len(h.Down) != 1 || h.Down[0].Service != "store" || h.Down[0].Since.IsZero() {
		t.Errorf("%+v", h)
	}
	eventually(t, "the system does not say why", func() bool {
		_, text := s.do(http.MethodGet, "/v1/system", "")
		var x observe.System
		return json.Unmarshal(text, &x) == nil && !x.Ready && len(x.Down) == 1 && x.Down[0].Why == "/var/state: the disk is gone"
	})
	if _, text := s.do(http.MethodGet, "/readyz", ""); strings.Contains(string(text), "/var") {
		t.Errorf("everybody learns of files: %s", text)
	}
	gone.Store(false)
	eventually(t, "it does not come back", func() bool {
		status, _ := s.do(http.MethodGet, "/readyz", "")
		return status == 200
	})
	if running[0].Ref() != was {
		t.Error("it has another ref")
	}
}
