package sandbox

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// A module that needs what this host does not have is refused, with the feature's name.
func TestUnknownFeatureIsRefused(t *testing.T) {
	for needs, want := range map[string]string{"": "", "time-travel": `"time-travel"`} {
		d := abi.Description{ABI: abi.Version, SDK: "x/1", Types: []string{"a"}}
		if needs != "" {
			d.Needs = []string{needs}
		}
		_, err := describe(abi.AppendDescription(nil, &d), true, nil, control{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", needs, err)
		}
	}
	d := abi.Description{ABI: abi.Version + 1, SDK: "x/1", Types: []string{"a"}, Needs: []string{"time-travel"}}
	if _, err := describe(abi.AppendDescription(nil, &d), true, nil, control{}); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("the version comes first: %v", err)
	}
}
