package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/admin"
)

// The status of a node says what it keeps of the code of others, for which node, and against which bounds; one that takes none says nothing.
func TestCodeInTheStatus(t *testing.T) {
	var out bytes.Buffer
	r := &reached{env: &environment{stdout: &out}}
	s := &admin.ClusterStatus{Number: 2, Name: "b", Cluster: "c", Acting: true, Members: []admin.ClusterNode{{Number: 1, Name: "a"}}}
	if err := r.clusterStatus(s); err != nil || strings.Contains(out.String(), "code of other nodes") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	s.Code = &admin.ClusterCode{MostModules: 32, MostBytes: 128 << 20, ShareModules: 16, ShareBytes: 64 << 20, Modules: []admin.ClusterModule{
		{Node: 1, Name: "a", As: "worker", SHA256: strings.Repeat("ab", 32), Bytes: 7000, Children: 3}, {Node: 9, As: "worker", SHA256: strings.Repeat("cd", 32), Bytes: 5},
	}}
	if err := r.clusterStatus(s); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"code of other nodes: 2 of 32 modules, 7005 of 134217728 bytes; each node may have 16 modules and 67108864 bytes of it",
		"OF NODE AS BYTES CHILDREN SHA-256", "1 a worker 7000 3 abababababababab", "9 - worker 5 0 cdcdcdcdcdcdcdcd",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
