package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func rec(bench, who, better string, samples ...float64) record {
	r := record{Bench: bench, Who: who, Unit: "u", Better: better}
	r.fill(samples)
	return r
}

// TestVerdict: a change is one only where the whole range says so.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		more      bool
		want      string
	}{
		{0.99, 1.02, false, "same"},
		{1.05, 1.2, false, "worse"},
		{0.8, 0.9, false, "better"},
		{0.9, 1.1, false, "?"},
		{1.05, 1.2, true, "better"},
		{0.8, 0.9, true, "worse"},
		{0.98, 1.0, true, "same"},
	} {
		if got := (change{1, c.low, c.high}).verdict(c.more); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestRatioOfPairs: samples of one interleaved run are compared pair by pair, so that
// a moment that was slow for both does not count.
func TestRatioOfPairs(t *testing.T) {
	date := time.Unix(1, 0)
	later := time.Unix(2, 0)
	o := rec("b", "w", "less", 100, 300, 100, 100, 200)
	n := rec("b", "w", "less", 110, 330, 110, 110, 220)
	o.Date, n.Date = date, later
	if x := ratio(o, n); x.low > 0.5 { // of different runs: the extremes
		t.Errorf("of two runs: %+v", x)
	}
	n.Date = date
	if x := ratio(o, n); x.low < 1.09 || x.high > 1.11 || x.verdict(false) != "worse" {
		t.Errorf("of one run: %+v", x)
	}
}

// TestGoals: a ratio to a peer counts as the goal says, and what is missing is neither met nor not.
func TestGoals(t *testing.T) {
	by := index([]record{
		rec("struct", "native", "less", 110), rec("struct", "go", "less", 251), rec("struct", "goakt", "less", 100),
		rec(postBench, ourFigure, "more", 3), rec(postBench, theBaseline, "more", 10),
		rec(getBench, ourFigure, "more", 8), rec(getBench, theBaseline, "more", 10),
		{Bench: "struct", Who: "tinygo", Missing: "not\nhere"},
	})
	for what, want := range map[string]string{
		"a struct of six fields, Go actors":   "met",
		"a struct of six fields, standard Go": "**missed**",
		"a struct of six fields, TinyGo":      "not here",
		"a shop's POST":                       "**missed**",
		"the gateway's GET at 16 connections": "met",
		"awake actor, WAT":                    "not measured",
		"ping-pong, 32 bytes, standard Go":    "not measured",
		"sleeping keyed actor, standard Go":   "not measured",
		"64 KiB, Go actors":                   "not measured",
	} {
		found := false
		for i := range goals {
			if goals[i].what == what {
				found = true
				if _, met := goals[i].reached(by); met != want {
					t.Errorf("%s: %s, want %s", what, met, want)
				}
			}
		}
		if !found {
			t.Errorf("there is no goal %q", what)
		}
	}
	for _, g := range goals {
		if g.who == ourFigure {
			continue // of a piece
		}
		known := benchmarkOf(g.bench) != nil
		for _, b := range counted {
			known = known || b.name == g.bench
		}
		if !known || contestantOf(g.who) == nil || g.to[1] != "" && contestantOf(g.to[1]) == nil {
			t.Errorf("the goal %q names something that does not exist", g.what)
		}
	}
}

// TestTablesAndChart are written from records alone, and reasons for gaps stand in them.
func TestTablesAndChart(t *testing.T) {
	records := []record{
		rec("ping-pong", "go", "less", 4000, 4100, 3900), rec("ping-pong", "erlang", "less", 800),
		{Bench: "payload-1m", Who: "go", Missing: "too | large"},
		rec("some other", "ours", "less", 1), rec("some other", "baseline", "less", 2), noFairRound("a crowd"),
	}
	var w bytes.Buffer
	writeTables(&w, records)
	for _, want := range []string{"4,000 <sub>3,900..4,100</sub>", "| 800 |", "too / large", "| some other | 1.00 u | 2.00 u |", "| a crowd | - | - | no round within 25s |"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, &w)
		}
	}
	if svg := string(chart(records)); !strings.HasPrefix(svg, "<svg") || !strings.Contains(svg, ">4,000<") || strings.Contains(svg, "NaN") {
		t.Errorf("chart:\n%s", svg)
	}
	text := []byte("a\n" + tableBegin + "\nold\n" + tableEnd + "\nb\n")
	got, err := between(text, tableBegin, tableEnd, []byte("new\n"))
	if err != nil || string(got) != "a\n"+tableBegin+"\n\nnew\n\n"+tableEnd+"\nb\n" {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := between([]byte("nothing"), tableBegin, tableEnd, nil); err == nil {
		t.Error("a page without markers was changed")
	}
}

// TestPlan: a part has its share of what is left, little where others took too long, and never more than three times
// what it needs.
func TestPlan(t *testing.T) {
	now := time.Unix(0, 0)
	p := &plan{end: now.Add(100 * time.Second), left: 100}
	if got := p.take(30, now); got != 30*time.Second {
		t.Error(got)
	}
	if got := p.take(35, now.Add(86*time.Second)); got != 7*time.Second {
		t.Error("where a part took too long the others have less:", got)
	}
	if got := p.take(35, now.Add(200*time.Second)); got != time.Second {
		t.Error("there is no time left:", got)
	}
	p = &plan{end: now.Add(time.Hour), left: 10}
	if got := p.take(10, now); got != 30*time.Second {
		t.Error(got)
	}
}

// TestPieceThatFails: what it had measured stays, the record says what became of the rest, and another piece follows.
func TestPieceThatFails(t *testing.T) {
	for script, want := range map[string]string{
		`echo '{"bench":"first","who":"ours","median":3}'; echo broken >&2; exit 3`: "exit status 3: broken",
		`echo '{"bench":"first","who":"ours","median":3}'; printf '{"bench":'`:      "",
	} {
		exe := filepath.Join(t.TempDir(), "bench")
		if err := os.WriteFile(exe, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		l := &lab{ctx: context.Background(), report: newReporter(&out, true), began: time.Now(), rounds: 1}
		err := l.piece(exe, piece{name: "some"}, time.Second)
		if (err != nil) != (want != "") {
			t.Error(err)
		}
		file := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readRecords(file)
		if err != nil || len(got) == 0 || got[0].Median != 3 || got[0].Go == "" {
			t.Fatalf("%v, %v", got, err)
		}
		if want != "" && (len(got) != 2 || got[1].Bench != "some" || got[1].Missing != want) {
			t.Errorf("%+v", got)
		}
	}
}

// TestOrders: an answer that is not of the order is wrong.
func TestOrders(t *testing.T) {
	request, want, _ := anOrder(nil, nil, 7, nil)
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil || r.URL.Path != "/orders/i7" || r.ContentLength < 64 {
		t.Fatalf("%v, %v", r, err)
	}
	address, end, err := bank()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	t.Setenv(bankVariable, address)
	h, _, err := plainShop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || w.Body.String() != string(want) {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
}

// TestRecordsAreReadBack, the last of the same measurement counts, and a broken line is named.
func TestRecordsAreReadBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.jsonl")
	var text []byte
	for _, r := range []record{rec("b", "w", "less", 1), rec("b", "v", "less", 2), rec("b", "w", "less", 3)} {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readRecords(file)
	if err != nil || len(got) != 2 || got[0].Median != 3 {
		t.Errorf("%v %v", got, err)
	}
	if err := os.WriteFile(file, append(text, "{\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecords(file); err == nil || !strings.Contains(err.Error(), ":4:") {
		t.Errorf("got %v", err)
	}
}

// TestPackets: every size is exact, valid CBOR, and its op is where the guests look.
func TestPackets(t *testing.T) {
	for _, size := range []int{32, 257, 258, 1 << 10, 64 << 10, 1<<16 + 2, 1<<16 + 3, 1 << 20} {
		b := packet('p', 7, size)
		if len(b) != size {
			t.Errorf("%d bytes, not %d", len(b), size)
		}
		if i := at(b); b[i] != 'p' || b[i+4] != 7 {
			t.Errorf("size %d: % x", size, b[:12])
		}
		if got, err := decodeBytes(b); err != nil || len(got) != size-at(b) {
			t.Errorf("size %d: %d bytes inside, %v", size, len(got), err)
		}
	}
}

// TestWorldsAgree: each scenario runs on two worlds, verified by itself; one that loses
// messages is found out.
func TestWorldsAgree(t *testing.T) {
	for _, c := range []*contestant{goroutines, native} {
		for _, name := range []string{"ping-pong", "struct", "payload-1k", "fan-in", "fan-out", "pairs-1", "ring", "skynet", "ask", "spawn-again", "crash", "crash-queue"} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				e := &env{ctx: context.Background(), b: benchmarkOf(name), quick: true, who: c.name}
				s, err := c.opens[name](e)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					n := max(s.fixed, 4*max(1, s.unit))
					if _, err := s.round(n); err != nil {
						t.Error(err)
					}
				}
				if err := s.close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := arrived(63, 64); err == nil {
		t.Error("a lost message is not noticed")
	}
	if err := checkSkynet(44, 10); err == nil {
		t.Error("a wrong sum is not noticed")
	}
}

// TestResidentEach: what was freed before is not counted against what is there after.
func TestResidentEach(t *testing.T) {
	touched := func(n int) [][]byte {
		all := make([][]byte, n)
		for i := range all {
			all[i] = bytes.Repeat([]byte{1}, 16<<10)
		}
		return all
	}
	runtime.KeepAlive(touched(4000))
	var kept [][]byte
	each, err := residentEach(1000, func(n int) error { kept = touched(n); return nil })
	if err != nil || each < 12<<10 || each > 20<<10 {
		t.Errorf("%v bytes, %v; each has 16 KiB", each, err)
	}
	if _, err := residentEach(1000, func(int) error { kept = nil; return nil }); err == nil {
		t.Error("less than nothing is a figure")
	}
	runtime.KeepAlive(kept)
}

// TestFairEnds: a round ends with what it has, whoever does not answer.
func TestFairEnds(t *testing.T) {
	asked := 0
	c := &throng{asks: 1000, ask: func(ctx context.Context) error {
		if asked++; asked <= firstAsks+3 { // those while spinners start are counted apart
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	l := &lab{ctx: context.Background(), quick: true}
	f, err := c.measure(l, 50*time.Millisecond)
	if err != nil || f.Answers != 3 || f.Late != 1 || f.Ask50 >= 50 || f.Ask99 != 50 || f.Collections == 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if note := fairNote([]fairFigures{f, {Answers: 20, Collections: 5}}); !strings.Contains(note, "2 rounds, 3 answers") || !strings.Contains(note, "1 answers took longer") {
		t.Error(note)
	}
	begun := 0
	c = &throng{asks: 1000, ask: func(context.Context) error { return nil }, starting: func() bool { begun++; return begun < 2 }}
	if f, err = c.measure(l, time.Second); err != nil || begun != 2 || f.First < f.First50 || f.Answers != l.scale(1000) {
		t.Errorf("%+v, %v, asked %d times whether all have begun", f, err, begun)
	}
	if _, err := (&throng{asks: 10, ask: func(context.Context) error { return errStuck }}).measure(l, time.Second); err == nil {
		t.Error("a failing question is a figure")
	}
}
