package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// The reports of all nodes fit into an answer, whatever they say, and however many there are.
func TestReportsAreBounded(t *testing.T) {
	m := cluster.Member{Number: 3, Name: "n3"}
	long := strings.Repeat("\x01\"\u2028", 4<<20)
	size := func(r admin.NodeReport) int {
		t.Helper()
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	few := admin.NodeActor{Path: "/user/x", Type: "m/x", State: "running", Turns: math.MaxUint64, Mailbox: math.MaxInt}
	hostile := []admin.NodeReport{
		{Number: 9, Name: long, Bundle: long, Error: long},
		{Tree: []admin.NodeActor{{Path: long, Type: long, State: long}, few}},
		{Tree: make([]admin.NodeActor, 100_000), Left: math.MaxInt},
	}
	for _, share := range []int{mostReport, mostReports / 1023} {
		for i, r := range hostile {
			if r = taken(m, true, r, nil, share); size(r) > share+16<<10 || r.Number != 3 || r.Name != "n3" || r.Error != "" || r.Left < 0 {
				t.Errorf("report %d: %d bytes of %d, %+.80v", i, size(r), share, r)
			}
		}
	}
	if r := taken(m, true, hostile[0], errors.New(long), mostReport); r.Error == "" || size(r) > 16<<10 || r.Bundle != "" {
		t.Errorf("%d bytes", size(r))
	}
	both := admin.NodeReport{Tree: []admin.NodeActor{few}, Events: []json.RawMessage{json.RawMessage(`{"event":"log"}`)}, Left: 3}
	for what, want := range map[any][3]int{false: {}, true: {1, 0, 3}, asksEvents: {0, 1, 3}} {
		if r := taken(m, what, both, nil, mostReport); [3]int{len(r.Tree), len(r.Events), r.Left} != want {
			t.Errorf("asked %v: %+v", what, r)
		}
	}
	honest := admin.NodeReport{Bundle: "b", Tree: make([]admin.NodeActor, mostReported)}
	for i := range honest.Tree {
		honest.Tree[i] = few
	}
	if r := taken(m, true, honest, nil, mostReport); len(r.Tree) != mostReported || r.Left != 0 || r.Tree[7] != few || r.Bundle != "b" {
		t.Errorf("%d actors, %d are left out", len(r.Tree), r.Left)
	}
	if r := taken(m, true, honest, nil, mostReports/1023); len(r.Tree)+r.Left != mostReported || len(r.Tree) < 100 {
		t.Errorf("%d actors, %d are left out", len(r.Tree), r.Left)
	}
}

// So does what another node says of its shards; it says nothing of who it is, nor of others' roles.
func TestStatusOfOthersIsBounded(t *testing.T) {
	m := cluster.Member{Number: 3, Name: "n3", Roles: []string{"back"}}
	long := strings.Repeat("\x01\"\u2028", 1<<20)
	s := admin.ClusterStatus{
		Number: 9, Name: long, Cluster: long, ID: long, Silent: long, Stops: long, Unknown: long, Unready: long, Keepers: make([]string, 100_000),
		Members: make([]admin.ClusterNode, 100_000), Kinds: make([]admin.ClusterKind, 100_000),
	}
	s.Code = &admin.ClusterCode{Modules: make([]admin.ClusterModule, 100_000)}
	s.Code.Modules[0] = admin.ClusterModule{Name: long, As: long, SHA256: long}
	s.Keepers[0], s.Kinds[0] = long, admin.ClusterKind{Kind: long, Wrong: long}
	s.Members[0], s.Members[1] = admin.ClusterNode{Name: long, Zone: long, Roles: []string{long}}, admin.ClusterNode{Name: "n3", Roles: []string{long}}
	got := takenStatus(m, s)
	text, err := json.Marshal(got)
	if err != nil || len(text) > 1<<20 || got.Number != 3 || got.Name != "n3" || len(got.Members[0].Roles) != 0 || got.Members[1].Roles[0] != "back" {
		t.Errorf("%v, %d bytes, %d %s", err, len(text), got.Number, got.Name)
	}
	if got = takenStatus(m, admin.ClusterStatus{}); got.Keepers == nil || got.Members == nil || got.Kinds == nil {
		t.Errorf("%+v", got)
	}
}

// A node looks at a part of its tree only, and not for each question.
func TestReportsCostLittle(t *testing.T) {
	sys, err := host.New(host.NewConfig("report"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	x := &membership{}
	if err := x.reportTo(sys); err != nil {
		t.Fatal(err)
	}
	quiet := host.Func(func(*host.Context, host.Message) error { return nil })
	spawn := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := sys.Spawn(fmt.Sprint(sys.View().Totals().Actors, "-", i), quiet); err != nil {
				t.Fatal(err)
			}
		}
	}
	ref, err := sys.Identify(t.Context(), "/system/"+reporter)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() admin.NodeReport {
		t.Helper()
		r, err := host.AskAs[admin.NodeReport](t.Context(), sys, ref, true)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	spawn(10)
	first, began := ask(), time.Now()
	if len(first.Tree) != 11 || first.Left != 0 || first.Tree[0].Path != "/user" {
		t.Errorf("%+v", first)
	}
	spawn(1)
	if r := ask(); time.Since(began) < reportAge/2 && len(r.Tree) != 11 {
		t.Errorf("%d actors: the report was made again at once", len(r.Tree))
	}
	spawn(3000)
	time.Sleep(reportAge)
	if r := ask(); len(r.Tree) != mostReported || len(r.Tree)+r.Left < 3012 {
		t.Errorf("%d actors, %d are left out", len(r.Tree), r.Left)
	}
}
