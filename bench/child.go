package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// reply is a line that a child writes: at first when it is ready, then one a round.
type reply struct {
	Value float64 `json:"value"`
	N     int     `json:"n,omitempty"`
	Procs int     `json:"procs,omitempty"`
	Note  string  `json:"note,omitempty"`
	Error string  `json:"error,omitempty"`
}

// child opens one contestant of one benchmark and measures a round for every line
// that it reads.
func child(bench, who string, quick bool) error {
	b, c := benchmarkOf(bench), contestantOf(who)
	if b == nil || c == nil || c.opens[bench] == nil {
		return fmt.Errorf("there is no %s of %s", bench, who)
	}
	if bench == "crash-queue" {
		patience = 15 * time.Second // some lose the messages or start again without end
	}
	out := json.NewEncoder(os.Stdout)
	e := &env{ctx: context.Background(), b: b, quick: quick, who: who}
	s, err := c.opens[bench](e)
	if err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	target := 100 * time.Millisecond
	if quick {
		target = 5 * time.Millisecond
	}
	n, err := s.calibrate(target)
	if err != nil {
		return out.Encode(reply{Error: err.Error()})
	}
	if err := out.Encode(reply{N: n, Procs: runtime.GOMAXPROCS(0), Note: s.note}); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		runtime.GC()
		v, err := s.round(n)
		r := reply{Value: v, Note: s.note}
		if err != nil {
			r.Error = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	if s.close != nil {
		return s.close()
	}
	return nil
}
