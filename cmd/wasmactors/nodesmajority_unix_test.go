//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Two of the three nodes that keep the directory are killed. The third says that the majority is lost and what stops, is not ready any
// more, and stops when its lease is over. When they are back it goes on by itself.
func TestTheMajorityIsLost(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("three processes for half a minute: make thorough")
	}
	f := fieldOf(t, 3, ofRegisters)
	a := f.nodes[0]
	health := freePorts(t, 1)[0]
	a.args = []string{"--health", health}
	f.start(f.nodes...)
	f.settle(someKeys(everywhere))
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + health + path)
		if err != nil {
			return 0, err.Error()
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	until := func(what string, ok func() bool) time.Duration {
		t.Helper()
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if ok() {
				return time.Since(began)
			}
			if time.Since(began) > patience {
				_, ready := get("/readyz")
				t.Fatalf("%s: not after %v; readyz says %s", what, patience, ready)
			}
		}
	}
	if code, text := get("/readyz"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	_, text := get("/metrics")
	for _, want := range []string{"wasmactors_cluster_acting 1\n", "wasmactors_cluster_directory_up 1\n", "wasmactors_cluster_members 3\n", `wasmactors_cluster_shards_owned{kind="regs"}`,
		`wasmactors_cluster_link_messages_total{node="n2",direction="sent"}`, `wasmactors_cluster_moves_total{kind="regs",result="in"}`, "wasmactors_cluster_directory_seconds_count"} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	f.nodes[1].kill()
	f.nodes[2].kill()
	took := until("it is ready", func() bool {
		code, text := get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, `"apart"`)
	})
	t.Logf("it is not ready %v after two of three were killed", took.Round(10*time.Millisecond))
	if took > lease {
		t.Errorf("it took longer than the lease")
	}
	until("status names what is lost", func() bool {
		code, stdout, _ := try(t, context.Background(), "", "cluster", "status", "--json", "--bundle", fmt.Sprint(a.cmd.Process.Pid))
		var s admin.ClusterStatus
		return code == 0 && json.Unmarshal([]byte(stdout), &s) == nil && s.Silent != "" && s.SilentMS > 0 && strings.Contains(s.Stops, "no shard moves") && strings.Contains(s.Stops, "2 of the nodes n1, n2, n3")
	})
	until("the metrics say so", func() bool {
		_, text := get("/metrics")
		return strings.Contains(text, "wasmactors_cluster_directory_up 0\n") && !strings.Contains(text, "wasmactors_cluster_lease_left_seconds 3.")
	})
	f.start(f.nodes[1], f.nodes[2])
	took = until("it is ready again", func() bool { code, _ := get("/readyz"); return code == http.StatusOK })
	t.Logf("it is ready again %v after they are up", took.Round(10*time.Millisecond))
	f.settle(someKeys(everywhere))
	for _, wrong := range f.seen.overlaps() {
		t.Error(wrong)
	}
}
