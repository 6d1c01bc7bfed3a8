package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
)

// rolling is a roll of node b, at a server that answers orders and questions.
func rolling(t *testing.T, status func(order *admin.DrainNode) admin.ClusterStatus) *roll {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var order *admin.DrainNode
		if q.Method == http.MethodPost {
			order = &admin.DrainNode{}
			if err := json.NewDecoder(q.Body).Decode(order); err != nil {
				t.Error(err)
			}
		}
		_ = json.NewEncoder(w).Encode(status(order))
	}))
	t.Cleanup(server.Close)
	r := &reached{Client: client.DialTCP(strings.TrimPrefix(server.URL, "http://"), admin.Token{}), env: &environment{stdout: &bytes.Buffer{}}}
	t.Cleanup(r.Close)
	return &roll{reached: r, remote: true, seat: "a", names: []string{"b"}, wait: 500 * time.Millisecond}
}

// A node that was lost and has joined again was not restarted: it is not counted as replaced, and is not left drained.
func TestRollKnowsALostLeaseFromARestart(t *testing.T) {
	s := drained(func(s *admin.ClusterStatus) { s.Name, s.Number, s.Draining = "b", 2, false })
	x := rolling(t, func(order *admin.DrainNode) admin.ClusterStatus {
		if order != nil {
			s.Draining = order.On
		} else if s.Draining {
			defer func() { s.Number = 3 }() // drained, and then lost
		}
		return s
	})
	err := x.all(t.Context(), []string{"b"})
	if err == nil || !strings.Contains(err.Error(), "was not restarted: it was lost") || !strings.Contains(err.Error(), "may have shards again") || s.Draining || len(x.report.Nodes) != 0 {
		t.Errorf("%v, %+v, still drained: %v", err, x.report, s.Draining)
	}
}

// A node is told to be replaced although shards move for too long afterwards.
func TestRollTellsWhatIsReplaced(t *testing.T) {
	s := drained(func(s *admin.ClusterStatus) { s.Name, s.Number, s.Draining = "b", 2, false })
	x := rolling(t, func(order *admin.DrainNode) admin.ClusterStatus {
		if order != nil {
			s.Draining = order.On
		} else if s.Draining {
			before := s
			s.Number, s.Draining, s.Kinds = 3, false, []admin.ClusterKind{{Kind: "a", Moving: 1}}
			return before
		}
		return s
	})
	err := x.all(t.Context(), []string{"b", "c"})
	if err == nil || !strings.Contains(err.Error(), "node b is replaced, but after") || !strings.Contains(err.Error(), "nor were c") || len(x.report.Nodes) != 1 || x.report.Nodes[0].Number != 3 || x.report.Failed != "b" {
		t.Errorf("%v, %+v", err, x.report)
	}
}
