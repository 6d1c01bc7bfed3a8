// Command cluster spreads the ledger's accounts over three nodes of this machine, kills one of them again and again while money moves,
// and audits the books.
//
//	cluster WASMACTORS BUNDLE FOLDER TIME EVERY
//
// Each of its clerks has one order at a time, sends it again, by another node, until it is answered, and notes what the answer was. So at
// the end it knows what each account must hold: what was answered was done, once, and no order is open.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

const (
	opening  = 1_000_000 // cents, of every account, as in guest/book.go
	clerks   = 12
	patience = 60 * time.Second
)

var accounts = []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "kim", "leo"}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: cluster WASMACTORS BUNDLE FOLDER TIME EVERY")
		os.Exit(2)
	}
	long, err1 := time.ParseDuration(os.Args[4])
	every, err2 := time.ParseDuration(os.Args[5])
	err := errors.Join(err1, err2)
	if err == nil {
		err = demo(os.Args[1], os.Args[2], os.Args[3], long, every)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// ledger is what the clerks know.
type ledger struct {
	nodes *nodes

	mu                  sync.Mutex
	due                 map[string]int64 // what each account must hold
	done, refused, more int64            // orders that were answered, and questions that had to be asked again
	moved               int64
}

func demo(command, bundle, folder string, long, every time.Duration) error {
	n, err := found(command, bundle, folder)
	if err != nil {
		return err
	}
	defer n.close()
	l := &ledger{nodes: n, due: map[string]int64{}}
	for _, name := range accounts {
		l.due[name] = opening
	}
	if _, err := l.standings(); err != nil {
		return err
	}
	fmt.Printf("%d accounts on three nodes, %d clerks; one node is killed every %v for %v:\n\n", len(accounts), clerks, every, long)
	fmt.Printf("%8s  %-6s  %-24s  %8s  %8s\n", "time", "killed", "all accounts answer again", "done", "asked again")
	ctx, stop := context.WithTimeout(context.Background(), long)
	defer stop()
	var work sync.WaitGroup
	failed := make(chan error, clerks)
	for i := range clerks {
		work.Go(func() {
			if err := l.clerk(ctx, i); err != nil {
				failed <- err
				stop()
			}
		})
	}
	began := time.Now()
	kills, longest := 0, time.Duration(0)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-tick.C:
		}
		victim := n.all[kills%len(n.all)]
		if err := victim.kill(); err != nil {
			return err
		}
		kills++
		killed := time.Now()
		again := make(chan error, 1)
		go func() { again <- n.start(victim) }()
		if _, err := l.standings(); err != nil {
			return err
		}
		took := time.Since(killed)
		longest = max(longest, took)
		if err := <-again; err != nil {
			return err
		}
		l.mu.Lock()
		fmt.Printf("%8v  %-6s  %-24s  %8d  %8d\n", time.Since(began).Round(time.Second), victim.name, fmt.Sprintf("after %.1f s", took.Seconds()), l.done, l.more)
		l.mu.Unlock()
	}
	work.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	return l.audit(kills, longest)
}

// clerk gives orders until the time is over, each until it is answered.
func (l *ledger) clerk(ctx context.Context, i int) error {
	name := fmt.Sprintf("clerk%d", i)
	last := map[string]int64{} // of its orders, by account
	for ctx.Err() == nil {
		from, to := rand.IntN(len(accounts)), rand.IntN(len(accounts)-1)
		if to >= from {
			to++
		}
		payer, payee, amount := accounts[from], accounts[to], 1+rand.Int64N(20_000)
		last[payer]++
		id := last[payer]
		for begin := time.Now(); ; {
			var receipt struct {
				ID     int64
				Status string
			}
			err := l.nodes.ask("accounts/"+payer, map[string]any{"id": id, "clerk": name, "to": payee, "amount": amount}, &receipt)
			if err == nil && receipt.ID == id && (receipt.Status == "done" || receipt.Status == "refused") {
				l.answered(payer, payee, amount, receipt.Status == "done")
				break
			}
			if err == nil {
				return fmt.Errorf("%s: the answer to order %d is %+v", name, id, receipt)
			}
			if time.Since(begin) > patience {
				return fmt.Errorf("%s: order %d to %s is not answered for %v: %w", name, id, payer, patience, err)
			}
			l.mu.Lock()
			l.more++
			l.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

func (l *ledger) answered(payer, payee string, amount int64, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !done {
		l.refused++
		return
	}
	l.done++
	l.moved += amount
	l.due[payer] -= amount
	l.due[payee] += amount
}

type standing struct {
	Balance  int64
	OnTheWay int64 `json:"on_the_way"`
}

// standings asks all accounts, each until it answers.
func (l *ledger) standings() (map[string]standing, error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	all, errs := map[string]standing{}, []error{}
	for _, name := range accounts {
		wait.Go(func() {
			var s standing
			var err error
			for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
				if err = l.nodes.ask("accounts/"+name, "balance", &s); err == nil {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if all[name] = s; err != nil {
				errs = append(errs, fmt.Errorf("%s does not answer for %v: %w", name, patience, err))
			}
		})
	}
	wait.Wait()
	return all, errors.Join(errs...)
}

// audit compares the books with what the clerks know.
func (l *ledger) audit(kills int, longest time.Duration) error {
	all, err := l.standings()
	if err != nil {
		return err
	}
	fmt.Println()
	total := int64(0)
	for _, name := range accounts {
		fmt.Printf("  %-8s %12.2f\n", name, float64(all[name].Balance)/100)
		total += all[name].Balance
	}
	fmt.Printf("  %-8s %12.2f   as much as at the start\n\n", "total", float64(total)/100)
	var wrong []error
	for _, name := range accounts {
		if s := all[name]; s.Balance != l.due[name] || s.OnTheWay != 0 {
			wrong = append(wrong, fmt.Errorf("%s has %d and %d on its way; %d by what was answered", name, s.Balance, s.OnTheWay, l.due[name]))
		}
	}
	if want := int64(opening * len(accounts)); total != want {
		wrong = append(wrong, fmt.Errorf("there are %d cents in all, and were %d", total, want))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Printf("The books agree: %d orders done (%.2f moved), %d refused for want of money, each once. A node was killed %d times;\n", l.done, float64(l.moved)/100, l.refused, kills)
	fmt.Printf("%d questions were asked again; all accounts answered again within %.1f s.\n", l.more, longest.Seconds())
	return nil
}
