package admin

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSharesByRights: a read-only token takes nothing from the full one, nor that one from the owner at the socket:
// bodies that do not come, streams, samples, sessions and connections.
func TestSharesByRights(t *testing.T) {
	s := serveSite(t, func(c Config) Config {
		c.bounds.streams, c.bounds.samples, c.bounds.sessions, c.bounds.connections = 8, 4, 4, 40
		c.bounds.bodies, c.bounds.message, c.bounds.body = 4<<20, 1<<20, 1<<20
		return c
	})
	follow := func(k Token) int {
		s.t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.base+"/v1/events?follow", nil)
		r.Header.Set("Authorization", "Bearer "+k.Reveal())
		res, err := s.tcp.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res.StatusCode
	}
	for _, k := range []Token{s.read, s.token} {
		var got []int
		for range 3 {
			got = append(got, follow(k))
		}
		if fmt.Sprint(got) != "[200 200 429]" {
			t.Error("streams:", got)
		}
	}
	for range 4 {
		s.stream("/v1/events?follow", "") // the owner's own half
	}

	// Bodies that are promised and do not come: of the readers' whole room, then of the writers'.
	slow := func(path string, k Token, of int) {
		for range of {
			s.raw("POST " + path + " HTTP/1.1\r\nHost: " + s.server.Addr().String() + "\r\nOrigin: http://" + s.server.Addr().String() +
				"\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nAuthorization: Bearer " + k.Reveal() + "\r\n\r\n{")
		}
	}
	taken := func(h share) func() bool {
		return func() bool {
			if s.server.rooms[h].bodies.TryAcquire(900_000) {
				s.server.rooms[h].bodies.Release(900_000)
				return false
			}
			return true
		}
	}
	slow("/v1/session", s.read, 10)
	eventually(t, "the readers' room is not taken", taken(readers))
	began := time.Now()
	if status, code := s.try("POST", "/v1/send", "", `{"to":"a","message":5}`, append(bearer(s.token), "Content-Type", "application/json")...); status != 200 {
		t.Error(status, code)
	}
	slow("/v1/send", s.token, 10)
	eventually(t, "the writers' room is not taken", taken(writers))
	if status, body := s.do("POST", "/v1/send", `{"to":"a","message":"`+strings.Repeat("x", 900_000)+`"}`); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if took := time.Since(began); took > usual.readTime-5*time.Second {
		t.Error("the owner waited", took)
	}

	x := sessions{most: 4}
	id, key, ends := x.begin(full, time.Unix(1000, 0), time.Minute)
	for i := range 100 {
		x.begin(reader, time.Unix(1001+int64(i), 0), time.Minute)
	}
	if x.access(id, key, ends) != full || len(x.open) != 3 {
		t.Error("a reader's sessions have pushed out another's,", len(x.open), "are left")
	}
}

// Requests of readers that last have half of the connections, so that the full token finds one.
func TestConnectionsOfReaders(t *testing.T) {
	l := connLimit{most: 4, in: map[*limitedConn]struct{}{}}
	begin := func(h share) *limitedConn {
		g := l.enter(nopConn{})
		if g != nil {
			g.busy, g.share = true, h
		}
		return g
	}
	var of []*limitedConn
	for range 4 {
		of = append(of, begin(readers))
	}
	for i := range 2 {
		if begin(writers) == nil {
			t.Fatal("readers keep others out")
		}
		if _, in := l.in[of[i]]; in {
			t.Error("not the oldest was closed")
		}
	}
	if begin(writers) != nil {
		t.Error("writers push out readers within their half")
	}
}

type nopConn struct{ net.Conn }

func (nopConn) Close() error { return nil }
