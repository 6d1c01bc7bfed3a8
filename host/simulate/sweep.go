package simulate

import (
	"context"
	"sync"
)

// Sweeping says which plans a sweep tries.
type Sweeping struct {
	From  uint64
	Seeds int
	Jobs  int // runs at a time; at least 1
	Plan  func(seed uint64) Plan
	// Again is how many seeds there are for one that is run twice, to compare the two; 0: none is.
	Again uint64
}

// Sweep runs the plans of seeds, and calls each with the outcomes in the order of the seeds, until it returns false. players
// makes what runs them, one for each job. The error is that of players, or of ctx.
func Sweep(ctx context.Context, s Sweeping, players func() (Player, error), each func(*Outcome) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := min(max(s.Jobs, 1), max(s.Seeds, 1))
	made := make([]Player, 0, jobs)
	for range jobs {
		p, err := players()
		if err != nil {
			for _, p := range made {
				p.Close()
			}
			return err
		}
		made = append(made, p)
	}
	type numbered struct {
		i int
		o *Outcome
	}
	next := make(chan int)
	done := make(chan numbered, jobs)
	var all sync.WaitGroup
	for _, p := range made {
		all.Go(func() {
			defer p.Close()
			for i := range next {
				done <- numbered{i, s.play(ctx, p, s.From+uint64(i))}
			}
		})
	}
	all.Go(func() {
		defer close(next)
		for i := range s.Seeds {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	go func() {
		all.Wait()
		close(done)
	}()
	early, want := map[int]*Outcome{}, 0
	over := false
	for x := range done {
		for early[x.i] = x.o; early[want] != nil; want++ {
			o := early[want]
			delete(early, want)
			if over || ctx.Err() != nil {
				continue
			}
			if over = !each(o); over {
				cancel()
			}
		}
	}
	if over {
		return nil
	}
	return ctx.Err()
}

// play runs the plan of a seed.
func (s *Sweeping) play(ctx context.Context, p Player, seed uint64) *Outcome {
	plan := s.Plan(seed)
	o := p.Play(ctx, plan)
	if s.Again > 0 && mix(seed, "again", 0, 5)%s.Again == 0 && !o.Failed() {
		if again := p.Play(ctx, plan); again.Err == nil && again.Chain != o.Chain {
			o.Violation = &Violation{Rule: "a repeated run equals", What: "the same plan has had two histories: " + o.Chain[:16] + " and " + again.Chain[:16]}
		}
	}
	if !o.Failed() {
		o.Faults, o.Tail = nil, nil
	}
	return o
}
