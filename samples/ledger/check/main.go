// Command check computes the ledger's books anew, from the input alone and
// without any of wasmactors, and compares them with what the run has reported.
//
//	check input.ndjson replies.ndjson
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

const opening = 1_000_000 // cents, of every account, as in bundle.yaml

var names = []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy"}

type books struct {
	balances                map[string]int64
	done, unknown, volume   int64
	broken                  map[int]bool // lines that the gateway cannot survive
	bankLine, auditorLine   int
	doneLines, unknownLines map[int]bool
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check input.ndjson replies.ndjson")
		os.Exit(2)
	}
	want, err := compute(os.Args[1])
	if err == nil {
		err = compare(want, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	var total int64
	for _, name := range names {
		fmt.Printf("  %-8s %12.2f\n", name, float64(want.balances[name])/100)
		total += want.balances[name]
	}
	fmt.Printf("  %-8s %12.2f   as much as at the start\n", "total", float64(total)/100)
	fmt.Printf("The books agree: %d transfers done (%.2f moved), %d refused, %d broken rows cost one crash each and nothing else.\n",
		want.done, float64(want.volume)/100, want.unknown, len(want.broken))
}

// compute reads the input the way a careful clerk would.
func compute(path string) (*books, error) {
	b := &books{balances: map[string]int64{}, broken: map[int]bool{}, doneLines: map[int]bool{}, unknownLines: map[int]bool{}}
	for _, name := range names {
		b.balances[name] = opening
	}
	err := lines(path, func(n int, text []byte) error {
		var row struct {
			To      string          `json:"to"`
			Message json.RawMessage `json:"message"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		switch row.To {
		case "gateway":
			b.apply(n, row.Message)
		case "bank":
			b.bankLine = n
		case "auditor":
			b.auditorLine = n
		}
		return nil
	})
	return b, err
}

func (b *books) apply(n int, message []byte) {
	var t struct {
		ID, Amount *int64
		From, To   *string
	}
	if json.Unmarshal(message, &t) != nil || t.ID == nil || t.Amount == nil || t.From == nil || t.To == nil || *t.Amount <= 0 {
		b.broken[n] = true
		return
	}
	_, from := b.balances[*t.From]
	_, to := b.balances[*t.To]
	if !from || !to {
		b.unknown++
		b.unknownLines[n] = true
		return
	}
	b.balances[*t.From] -= *t.Amount
	b.balances[*t.To] += *t.Amount
	b.done++
	b.volume += *t.Amount
	b.doneLines[n] = true
}

// compare reads the answers of the run.
func compare(want *books, path string) error {
	seen := map[int]bool{}
	err := lines(path, func(_ int, text []byte) error {
		var r struct {
			Line  int
			Kind  string
			Reply json.RawMessage
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		if seen[r.Line] {
			return fmt.Errorf("line %d was answered twice", r.Line)
		}
		seen[r.Line] = true
		switch {
		case r.Line == want.bankLine:
			return balances(want, r.Reply)
		case r.Line == want.auditorLine:
			return audit(want, r.Reply)
		case want.broken[r.Line]:
			if r.Kind != "unanswered" && r.Kind != "failed" {
				return fmt.Errorf("line %d is broken, but was answered: %s", r.Line, text)
			}
			return nil
		}
		var receipt struct{ Status string }
		if err := json.Unmarshal(r.Reply, &receipt); err != nil {
			return fmt.Errorf("line %d: %s", r.Line, text)
		}
		if want.doneLines[r.Line] && receipt.Status != "done" || want.unknownLines[r.Line] && receipt.Status != "unknown account" {
			return fmt.Errorf("line %d: %q is not what was due", r.Line, receipt.Status)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var missing []int
	for _, due := range []map[int]bool{want.doneLines, want.unknownLines, want.broken, {want.bankLine: true, want.auditorLine: true}} {
		for n := range due {
			if !seen[n] {
				missing = append(missing, n)
			}
		}
	}
	if len(missing) > 0 {
		sort.Ints(missing)
		return fmt.Errorf("%d lines have no outcome, the first is %d", len(missing), missing[0])
	}
	return nil
}

func balances(want *books, reply []byte) error {
	var got map[string]int64
	if err := json.Unmarshal(reply, &got); err != nil {
		return fmt.Errorf("the bank's report: %w", err)
	}
	if len(got) != len(names) {
		return fmt.Errorf("the bank reports %d accounts, there are %d", len(got), len(names))
	}
	for _, name := range names {
		if got[name] != want.balances[name] {
			return fmt.Errorf("%s has %d by the bank and %d by the input", name, got[name], want.balances[name])
		}
	}
	return nil
}

func audit(want *books, reply []byte) error {
	var got struct{ Transfers, Volume, Ended int64 }
	if err := json.Unmarshal(reply, &got); err != nil {
		return fmt.Errorf("the auditor's report: %w", err)
	}
	if got.Transfers != want.done || got.Volume != want.volume || got.Ended != 0 {
		return fmt.Errorf("the auditor has %+v, the input %d transfers of %d", got, want.done, want.volume)
	}
	return nil
}

func lines(path string, f func(n int, text []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		if err := f(n, scan.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return scan.Err()
}
