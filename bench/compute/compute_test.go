package compute

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestSuiteIsTheSameEverywhere: every program computes the same plain and metered,
// compiled and interpreted, and spends the same fuel on both engines.
func TestSuiteIsTheSameEverywhere(t *testing.T) {
	ctx := context.Background()
	suites := []*Suite{C()}
	if !testing.Short() { // two minutes under the race detector
		s, err := Go(ctx, ".")
		if err != nil {
			t.Fatal(err)
		}
		suites = append(suites, s)
	}
	for _, s := range suites {
		t.Run(s.Name, func(t *testing.T) {
			plain := open(t, ctx, s, Plain, wazero.NewRuntimeConfigCompiler())
			compiled := open(t, ctx, s, Metered, wazero.NewRuntimeConfigCompiler())
			interpreted := open(t, ctx, s, Metered, wazero.NewRuntimeConfigInterpreter())
			for i := range s.Programs {
				p := &s.Programs[i]
				want, err := plain.RunSmall(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range []*Machine{compiled, interpreted} {
					if got, err := m.RunSmall(ctx, p); err != nil || got != want {
						t.Errorf("%s: got %#x, want %#x, error %v", p.Name, got, want, err)
					}
				}
				if compiled.Fuel != interpreted.Fuel || compiled.Fuel <= 0 {
					t.Errorf("%s: spent %d compiled, %d interpreted", p.Name, compiled.Fuel, interpreted.Fuel)
				}
			}
		})
	}
}

func open(t *testing.T, ctx context.Context, s *Suite, make func(context.Context, *Suite, wazero.RuntimeConfig) (*Machine, error), cfg wazero.RuntimeConfig) *Machine {
	t.Helper()
	m, err := make(ctx, s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(ctx) })
	return m
}
