package browsertest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/wasmactors/wasmactors/host/admin/dashboard"
)

// What of the dashboard is pure, tested where it runs.
func TestPure(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/dashboard/", dashboard.Handler())
	mux.HandleFunc("/jstest/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		http.ServeFile(w, r, r.URL.Path[1:])
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><link rel=icon href=data:,>"))
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	p := open(t, 800, 600)
	p.run(chromedp.Navigate(srv.URL))
	var results []struct{ Name, Problem string }
	p.eval(`import("/jstest/all.js").then((m) => m.all())`, &results)
	if len(results) < 30 {
		t.Errorf("only %d tests have run", len(results))
	}
	for _, r := range results {
		t.Run(r.Name, func(t *testing.T) {
			if r.Problem != "" {
				t.Error(r.Problem)
			}
		})
	}
}
