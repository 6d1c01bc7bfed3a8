package schedule_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/schedule"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of the documentation, and that it stands there.
func TestBundle(t *testing.T) {
	m, err := bundle.LoadWith("testdata", nil, schedule.Service)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: "go", Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := b.Start(nil, func(*host.System) {})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := sys.Lookup("/user/reports")
	if err != nil {
		t.Fatal(err)
	}
	for order, want := range map[string]string{"list": "nightly! ping! ", "get ping": "ping 10m0s to /user/reports runs 0 retries 0"} {
		if got, err := host.AskAs[string](t.Context(), sys, ref, order); got != want || err != nil {
			t.Errorf("%s: %q, %v", order, got, err)
		}
	}
	if _, err := host.AskAs[string](t.Context(), sys, ref, "every often 60"); err == nil || !strings.Contains(err.Error(), "capabilities.schedule.least") {
		t.Error(err)
	}
	_ = sys.Close(context.Background())
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile("../../../docs/services/schedule.md")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("testdata/bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(manifest), "services:\n  schedule")
	if !strings.Contains(string(page), "services:\n  schedule"+strings.TrimSpace(from)+"\n```") {
		t.Error("docs/services/schedule.md has another manifest")
	}
}

// A program starts the service and grants it as a manifest does.
func Example() {
	sys, _ := host.New(host.NewConfig("reports"))
	env := &service.Env{StateDir: func() (string, error) { return os.MkdirTemp("", "reports") }}
	_, err := schedule.Service.Start(sys, env, &schedule.Settings{
		Entries: map[string]schedule.Planned{"nightly": {Actor: "/user/reports", Cron: "0 3 * * *", Zone: "Europe/Berlin"}},
	})
	grant := schedule.Service.Grant(schedule.Grant{Entries: 10}, service.Bounds{})
	_, _ = sys.Spawn("reports", host.Func(func(ctx *host.Context, m host.Message) error {
		var run schedule.Run
		if err := m.Decode(&run); err != nil {
			return err
		}
		return ctx.Reply(nil) // else it comes again
	}).WithGrant("schedule", grant))
	_ = sys.Close(context.Background())
	if err != nil {
		panic(err)
	}
	// Output:
}
