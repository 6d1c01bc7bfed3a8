package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/observe"
)

// scripted is a server that answers with one thing after the other.
func scripted(t *testing.T, answers ...admin.ClusterNodes) (c *client.Client, asked *[]url.Values) {
	asked = &[]url.Values{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query())
		_ = json.NewEncoder(w).Encode(answers[min(len(*asked), len(answers))-1])
	}))
	t.Cleanup(s.Close)
	c = client.DialTCP(strings.TrimPrefix(s.URL, "http://"), admin.Token{})
	t.Cleanup(c.Close)
	return c, asked
}

// Each node is asked for what came after its last event, and what becomes of nodes is said once.
func TestEventsOfAllNodesAreFollowed(t *testing.T) {
	event := func(text string) json.RawMessage {
		return json.RawMessage(`{"time":"2026-01-01T00:00:01Z","event":"log","level":"info","actor":"/user/a","text":"` + text + `"}`)
	}
	c, asked := scripted(t,
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 1, Name: "n1", Events: []json.RawMessage{event("first")}, Next: 7}, {Number: 2, Name: "n2", Next: 3}}},
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 1, Name: "n1", Next: 9, Left: 2}, {Number: 2, Name: "n2", Error: "no answer"}}},
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 1, Name: "n1", Next: 9}, {Number: 2, Name: "n2", Error: "no answer"}, {Number: 3, Name: "n3", Events: []json.RawMessage{event("second")}, Next: 1}}},
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 1, Name: "n1", Next: 9}, {Number: 2, Name: "n2", Next: 4}, {Number: 3, Name: "n3", Next: 1}}},
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 2, Name: "n2", Next: 4}, {Number: 3, Name: "n3", Next: 1}}},
	)
	var out, errs bytes.Buffer
	f := &follower{&reached{Client: c, env: &environment{stdout: &out, stderr: &errs}}, url.Values{"kind": {"log"}}, nil, map[int]uint64{}, map[int]string{}}
	for range 5 {
		if err := f.look(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"", "1:7 2:3", "1:9 2:3", "1:9 2:3 3:1", "1:9 2:4 3:1"} {
		if got := strings.Join((*asked)[i]["after"], " "); got != want || (*asked)[i].Get("kind") != "log" {
			t.Errorf("%d: asked for %v, want %q", i, (*asked)[i], want)
		}
	}
	want := "wasmactors: node n1 has had 2 more events, which are not kept\nwasmactors: node n2 does not answer: no answer\nwasmactors: node 3 (n3) is there\nwasmactors: node n2 answers again\nwasmactors: node 1 (n1) is gone\n"
	if got := errs.String(); !sameLines(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "first") || !strings.Contains(text, "node=n3") {
		t.Errorf("%s", text)
	}
}

func sameLines(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// The rates are those between two looks, over all nodes.
func TestTheBusiestOfAllNodes(t *testing.T) {
	tree := func(turns ...uint64) (all []admin.NodeActor) {
		for i, n := range turns {
			all = append(all, admin.NodeActor{Path: "/user/" + string(rune('a'+i)), Type: "m/t", State: "running", Turns: n})
		}
		return all
	}
	c, _ := scripted(t,
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 1, Name: "n1", Tree: tree(10, 500)}, {Number: 2, Name: "n2", Tree: tree(7)}, {Number: 3, Name: "n3", Error: "no answer"}}},
		admin.ClusterNodes{Nodes: []admin.NodeReport{{Number: 1, Name: "n1", Tree: tree(10, 600), Left: 5}, {Number: 2, Name: "n2", Tree: tree(1007, 3)}, {Number: 3, Name: "n3", Error: "no answer"}}},
	)
	var out bytes.Buffer
	all, err := observe.PathMatcher([]string{"/user/*"})
	if err != nil {
		t.Fatal(err)
	}
	x := &clusterTop{reached: &reached{Client: c, env: &environment{stdout: &out}}, paths: all, sort: "rate", limit: 3}
	if _, err := x.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := x.look(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, a := range got.Actors {
		order = append(order, a.Node+a.Path)
	}
	if strings.Join(order, " ") != "n2/user/a n1/user/b n1/user/a" || got.More != 6 || got.Actors[0].Rate <= got.Actors[1].Rate || got.Actors[2].Rate != 0 {
		t.Errorf("%v, %d more, %+v", order, got.More, got.Actors)
	}
	if err := x.show(got, &out, ""); err != nil || !strings.Contains(out.String(), "n3           does not answer: no answer") || !strings.Contains(out.String(), "6 more") {
		t.Errorf("%v\n%s", err, &out)
	}
}
