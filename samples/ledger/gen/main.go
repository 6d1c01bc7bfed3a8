// Command gen writes the ledger's input: transfers among the accounts, some rows
// of which are broken. The same seed gives the same file.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
)

var accounts = []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy"}

// broken are rows that the gateway must not survive; %d is the row's number.
var broken = []string{
	`{"id": %d, "from": "alice", "to": "bob", "amount": -500}`,
	`{"id": %d, "from": "alice", "to": "bob", "amount": 0}`,
	`{"id": %d, "from": "alice", "to": "bob", "amount": "a lot"}`,
	`{"id": %d, "from": "alice", "to": "bob", "amount": 12.5}`,
	`{"id": %d, "from": "alice", "to": "bob"}`,
	`{"id": %d, "from": null, "to": "bob", "amount": 100}`,
	`{"id": %d, "from": ["alice"], "to": "bob", "amount": 100}`,
	`{"id": %d, "from": "alice", "to": "bob", "amount": 18446744073709551615}`,
	`["transfer", %d]`,
	`"row %d is missing"`,
}

func main() {
	rows := flag.Int("rows", 5000, "number of rows")
	seed := flag.Uint64("seed", 1, "of the randomness")
	flag.Parse()
	rnd := rand.New(rand.NewPCG(*seed, 0))
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for id := 1; id <= *rows; id++ {
		message := ""
		switch n := rnd.IntN(200); {
		case n == 0:
			message = fmt.Sprintf(broken[rnd.IntN(len(broken))], id)
		case n < 4:
			message = fmt.Sprintf(`{"id": %d, "from": "mallory", "to": "bob", "amount": 100}`, id)
		default:
			from := rnd.IntN(len(accounts))
			to := (from + 1 + rnd.IntN(len(accounts)-1)) % len(accounts)
			message = fmt.Sprintf(`{"id": %d, "from": %q, "to": %q, "amount": %d}`, id, accounts[from], accounts[to], 1+rnd.IntN(1500))
		}
		fmt.Fprintf(w, "{\"to\": \"gateway\", \"message\": %s}\n", message)
	}
	fmt.Fprintln(w, `{"wait": "idle"}`)
	fmt.Fprintln(w, `{"to": "bank", "message": "report"}`)
	fmt.Fprintln(w, `{"to": "auditor", "message": "report"}`)
}
