// The guests of a bank for tests of simulations. Transfers go through a front and a till, which has a job carry out each. A job
// takes the amount from one account, then gives it to the other, and repeats what is not confirmed; accounts know by keys what
// they have done. Without a mistake the bank withstands whatever its scenario does not spare.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

// mistake is what the arguments choose.
type mistake = int64

// The mistakes.
const (
	_               mistake = iota
	noRetry                 // what is not confirmed at once is left
	noKey                   // every try has a key of its own
	noWait                  // the deposit does not wait for the withdrawal
	timeoutIsNo             // a withdrawal without an answer counts as refused
	twoTries                // the deposit is given up after two tries
	repeatedIsNo            // an account refuses what it has done already
	lastKeyOnly             // an account remembers its last key only
	stopOvertakes           // a page is stopped while entries for it are under way
	timerSurvives           // the timer of a transfer that waits goes on when its job has begun
	amountIsKey             // the key of a withdrawal or a deposit is its amount
	noIsYes                 // a refusal is taken for success
	lookThenTake            // a balance is looked up, and the amount taken later
	twiceCounts             // a transfer that comes twice is made twice
	notConfirmed            // the deposit is told, and nobody looks whether it has arrived
	numbersBeginNew         // the front numbers transfers, from 1 after each crash
	lookThenSet             // a balance is looked up, and written later
	savesNoKeys             // what an account has done does not go over to other code
)

func init() {
	actor.Register("front", func() actor.Actor { return &front{} })
	actor.Register("till", func() actor.Actor { return &till{} })
	actor.Register("job", func() actor.Actor { return &job{} })
	actor.Register("page", func() actor.Actor { return &page{} })
	actor.Register("account", func() actor.Actor { return &account{} }, actor.Saves(1))
	actor.Register("book", func() actor.Actor { return &book{} })
}

func main() {}
