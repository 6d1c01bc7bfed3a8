package bundle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/planted"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// kills is how often TestKilledLedger kills; KILLS has another number, see make kills.
func kills(t *testing.T) int {
	text := os.Getenv("KILLS")
	if text == "" {
		return thorough.Of(thorough.SlowOf(2, 6), 100)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KILLS=%q is no number", text)
	}
	return n
}

const (
	ledgerOpening  = 1_000_000_000 // cents, of every account
	ledgerSlots    = 8             // transfers that are under way, of each payer
	ledgerAmounts  = 2 * ledgerSlots
	ledgerPatience = time.Minute
	// ledgerProbation is long enough for an interrupt, or a crash, and the next life waits for the rest of it.
	ledgerProbation = time.Second
)

// ledgerPairs are payers, and whom each pays.
var ledgerPairs = [][2]string{{"alice", "bob"}, {"carol", "dave"}, {"erin", "frank"}, {"grace", "heidi"}, {"ivan", "judy"}}

// ledgerSteps are those at which a process is made to wait for its end: of an upgrade, and of the way back.
var ledgerSteps = [2][]swap.Step{
	{swap.Held, swap.Saving, swap.Loading, swap.Trying, swap.Recording, swap.Switching},
	{swap.Repeating, swap.RecordingBack, swap.SwitchingBack},
}

// The ledger's process is killed at any time while money moves, and while its code is exchanged or goes back: at random times, and at each
// step of an actor's exchange. This test is the auditor: it knows what was acknowledged. Of each payer eight transfers are under way, each
// of another power of two. So the sum that has moved tells for each of them whether it was done: it may have been or not, but not twice.
// The one after it, in its place, is 256 times as much or as little: if one that was acknowledged is done again, its amount is not
// under way. What was acknowledged must have been done. One kill in eight comes before the ledger is back. An upgrade that was on probation goes on
// in the next life, and another one comes after it.
func TestKilledLedger(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the ledger, and kills it")
	}
	if guesttest.Compiler() != "go" {
		t.Skip("the samples are for Go")
	}
	k := newKilling(t)
	if os.Getenv("KILLS") == "" {
		t.Logf("seed %d", k.seed)
	}
	lives := kills(t)
	for k.life = range lives {
		if err := k.live(); err != nil {
			k.keep(err)
		}
		if k.life%50 == 49 {
			t.Log(k.told())
		}
	}
	if err := k.audited(); err != nil {
		k.keep(err)
	}
	t.Log(k.told())
	if lives < 100 {
		return
	}
	for _, s := range slices.Concat(ledgerSteps[0], ledgerSteps[1]) {
		if k.steps[s.String()] == 0 {
			t.Errorf("no kill was at the step %q", s)
		}
	}
	for _, s := range []string{stageStarting, stageRunning, stageKeeping, string(upgrade.First), string(upgrade.Rest), string(upgrade.Probing), string(upgrade.GoesBack), stageResumed, stageOver} {
		if k.stages[s] == 0 {
			t.Errorf("no kill was at the stage %q", s)
		}
	}
}

// killing is what the auditor knows.
type killing struct {
	t     *testing.T
	seed  uint64
	rand  *rand.Rand
	began time.Time
	dir   string
	codes []string // files of the same guests, which count as other code
	life  int
	id    int64 // of the last transfer
	takes time.Duration
	boots time.Duration

	sure     [][ledgerAmounts]int64 // how many of each amount have moved for sure, by payer
	underway [][ledgerSlots]bool    // at the last kill
	odd      [][ledgerSlots]int     // 1: the present one is of the larger amount
	done     int64                  // transfers
	answered int64                  // that were acknowledged
	unseen   int                    // kills before the ledger was back

	steps, stages, ends map[string]int
}

func newKilling(t *testing.T) *killing {
	t.Helper()
	k := &killing{
		t: t, seed: uint64(time.Now().UnixNano()), began: time.Now(), dir: t.TempDir(), takes: 300 * time.Millisecond, boots: 300 * time.Millisecond,
		sure: make([][ledgerAmounts]int64, len(ledgerPairs)), underway: make([][ledgerSlots]bool, len(ledgerPairs)),
		odd:   make([][ledgerSlots]int, len(ledgerPairs)),
		steps: map[string]int{}, stages: map[string]int{}, ends: map[string]int{},
	}
	if text := os.Getenv("KILLS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("KILLS_SEED=%q is no number", text)
		}
		k.seed = seed
	}
	k.rand = rand.New(rand.NewPCG(k.seed, 1))
	sample := filepath.Join("..", "..", "samples", "ledger")
	built, err := build.Guest(t.Context(), filepath.Join(sample, "guest"), build.Options{Compiler: "go", CacheDir: filepath.Join(servicetest.CacheDir(), "builds")})
	if err != nil {
		t.Fatal(err)
	}
	code, err := built.Code(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(sample, "durable.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The top-level actors resume, so that their last inputs are kept, and tried; checkpoints come often.
	text := strings.NewReplacer("{go: ./guest}", "{wasm: ledger.wasm}", "strategy: one-for-one\n", "strategy: one-for-one\n  otherwise: resume\n", "RECOVERY:-1s", "RECOVERY:-200ms").Replace(string(manifest))
	for name, b := range map[string][]byte{
		FileName: []byte(text), "ledger.wasm": code,
		"a.wasm": append(code[:len(code):len(code)], 0, 2, 1, 'a'), "b.wasm": append(code[:len(code):len(code)], 0, 2, 1, 'b'),
	} {
		if err := os.WriteFile(filepath.Join(k.dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.codes = []string{filepath.Join(k.dir, "a.wasm"), filepath.Join(k.dir, "b.wasm")}
	return k
}

// keep fails the test, and keeps the store.
func (k *killing) keep(err error) {
	k.t.Helper()
	kept := filepath.Join(os.TempDir(), fmt.Sprintf("killed-ledger-%d", k.seed))
	_ = os.CopyFS(kept, os.DirFS(k.dir))
	k.t.Fatalf("seed %d, life %d: %v; the store is in %s", k.seed, k.life, err, kept)
}

func (k *killing) told() string {
	list := func(of map[string]int) string {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, fmt.Sprintf("%d %s", of[name], name))
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%d lives in %v, %d killed before the ledger was back; %d transfers were done, %d acknowledged\nupgrades: %s\nkilled at the stages: %s\nwhile actors were at the steps: %s",
		k.life+1, time.Since(k.began).Round(time.Second), k.unseen, k.done, k.answered, list(k.ends), list(k.stages), list(k.steps))
}

// live is one life: it begins, is audited, moves money while its code is exchanged, and is killed.
func (k *killing) live() error {
	p, err := k.start()
	if err != nil {
		return err
	}
	defer p.kill()
	if k.life > 2 && k.rand.IntN(8) == 0 {
		time.Sleep(time.Duration(k.rand.Int64N(int64(k.boots) * 5 / 4)))
		p.kill()
		k.unseen++
		return k.noteWhereabouts()
	}
	if err := k.audit(p); err != nil {
		return err
	}
	if err := k.move(p); err != nil {
		return err
	}
	p.kill()
	return k.noteWhereabouts()
}

// audited is the last life.
func (k *killing) audited() error {
	p, err := k.start()
	if err != nil {
		return err
	}
	defer p.kill()
	return k.audit(p)
}

// noteWhereabouts counts where the process was that was killed.
func (k *killing) noteWhereabouts() error {
	stage, steps, err := readWhereabouts(filepath.Join(k.dir, "whereabouts"))
	k.stages[stage]++
	for _, s := range steps {
		if stage == stageStarting {
			s += " (at the start)"
		}
		k.steps[s]++
	}
	return err
}

// audit compares the books with what is known.
func (k *killing) audit(p *ledgerProcess) error {
	began := time.Now()
	if _, err := p.next(func(l *ledgerLine) bool { return l.Ready }); err != nil {
		return fmt.Errorf("it does not begin: %w", err)
	}
	k.boots = (k.boots + time.Since(began)) / 2
	balances, transfers, volume, err := p.settled()
	if err != nil {
		return err
	}
	moved, all := int64(0), int64(0)
	for i, pair := range ledgerPairs {
		rest := ledgerOpening - balances[pair[0]]
		moved += rest
		if got := balances[pair[1]] - ledgerOpening; got != rest {
			return fmt.Errorf("%s has paid %d, and %s has got %d", pair[0], rest, pair[1], got)
		}
		for m := range ledgerAmounts {
			rest -= k.sure[i][m] << m
		}
		for n := range ledgerSlots {
			if m := k.amount(i, n); k.underway[i][n] && rest&(1<<m) != 0 {
				rest -= 1 << m
				k.sure[i][m]++
				k.done++
			}
			k.underway[i][n] = false
		}
		for _, n := range k.sure[i] {
			all += n
		}
		switch {
		case rest < 0:
			return fmt.Errorf("%d cents of %s were acknowledged and are not there", -rest, pair[0])
		case rest > 0:
			return fmt.Errorf("%d cents of %s have moved twice", rest, pair[0])
		}
	}
	switch {
	case volume != moved:
		return fmt.Errorf("the auditor of the ledger has seen %d cents of %d", volume, moved)
	case transfers != all:
		return fmt.Errorf("the auditor of the ledger has seen %d transfers of %d", transfers, all)
	}
	return nil
}

// amount is the power of two that is under way in a place.
func (k *killing) amount(payer, slot int) int { return slot + ledgerSlots*k.odd[payer][slot] }

// killPlan is what happens in a life besides transfers.
type killPlan struct {
	order  *ledgerOrder // nil: no upgrade
	crash  bool         // the new code crashes on its probation
	random bool         // it is killed at a random time
	paid   bool         // the first payer has paid something, for sure
}

func (k *killing) plan() (x killPlan) {
	x.random = true
	u := &ledgerOrder{Code: k.codes[k.life%2]}
	kind := k.rand.IntN(8)
	if k.life < 3 { // they compile
		kind = k.life
	}
	back := false
	switch kind {
	case 0, 1: // an upgrade
	case 2, 3: // it is called off
		u.Probation, u.Interrupt, back = ledgerProbation, time.Duration(1+k.rand.Int64N(int64(20*time.Millisecond))), true
	case 4, 5: // its code crashes
		u.Probation, x.crash, back = ledgerProbation, true, true
	case 6:
		u.Canary, u.Probation = 0.4, time.Duration(1+k.rand.Int64N(int64(30*time.Millisecond)))
	case 7:
		return x // none
	}
	x.order = u
	if k.life < 3 {
		return x
	}
	if k.rand.IntN(2) == 0 {
		all := ledgerSteps[0]
		if back && k.rand.IntN(3) > 0 {
			all = ledgerSteps[1]
		}
		u.Linger, u.Nth, x.random = all[k.rand.IntN(len(all))].String(), 1+k.rand.IntN(10), false
		if u.Linger == swap.Trying.String() {
			u.Nth = 1 + k.rand.IntN(3) // there are not many of them
		}
	}
	return x
}

// move moves money until the kill is due.
func (k *killing) move(p *ledgerProcess) error { return k.moveWith(p, k.plan()) }

// moveOnly is move without an upgrade, and without a time of the kill, until alice has paid something.
func (k *killing) moveOnly(p *ledgerProcess) error { return k.moveWith(p, killPlan{paid: true}) }

func (k *killing) moveWith(p *ledgerProcess, x killPlan) error {
	of, ids := map[int][2]int{}, map[int]int64{}
	next := func(i, n int) error {
		k.id++
		pair := ledgerPairs[i]
		k.odd[i][n] ^= 1
		line, err := p.write("gateway", map[string]any{"id": k.id, "from": pair[0], "to": pair[1], "amount": 1 << k.amount(i, n)}, true)
		of[line], ids[line], k.underway[i][n] = [2]int{i, n}, k.id, true
		return err
	}
	for i := range ledgerPairs {
		for n := range ledgerSlots {
			if err := next(i, n); err != nil {
				return err
			}
		}
	}
	begun := time.Now()
	if x.order != nil {
		if err := p.order(x.order); err != nil {
			return err
		}
	}
	end := begun.Add(ledgerPatience)
	due := end
	if x.random && k.life > 2 {
		due = begun.Add(time.Duration(k.rand.Int64N(int64(k.takes) * 5 / 4)))
	}
	waits := x.order != nil // for its end, or the time of the kill
	most, answered := 1+k.rand.IntN(60), 0
	for answered < most || waits || x.paid && k.sure[0] == [ledgerAmounts]int64{} {
		l, err := p.within(due, end)
		waits = waits && time.Now().Before(due)
		switch {
		case err != nil:
			return err
		case l == nil: // it is due
		case l.At != "":
			waits, most = false, 0
		case l.Stage == string(upgrade.Probing) && x.crash:
			if _, err := p.write("gateway", map[string]any{"id": 0, "from": "alice", "to": "bob", "amount": -1}, false); err != nil {
				return err
			}
		case l.Over != "":
			waits = false
			k.ends[l.Over]++
			if k.life >= 3 && l.Over == "done" && x.order.Probation == 0 {
				k.takes = (3*k.takes + time.Since(begun)) / 4
			}
			if l.Over == "refused" {
				return errors.New("the upgrade was refused: " + l.Why)
			}
			for did, n := range l.Did {
				k.ends["actors "+did] += n
			}
		case l.Line > 0:
			slot, mine := of[l.Line]
			if !mine {
				continue
			}
			var receipt struct {
				ID     int64
				Status string
			}
			if l.Kind != KindReply || json.Unmarshal(l.Reply, &receipt) != nil || receipt.Status != "done" || receipt.ID != ids[l.Line] {
				return fmt.Errorf("transfer %d: %s %s", ids[l.Line], l.Kind, l.Reply)
			}
			answered++
			k.sure[slot[0]][k.amount(slot[0], slot[1])]++
			k.done, k.answered = k.done+1, k.answered+1
			k.underway[slot[0]][slot[1]] = false
			if err := next(slot[0], slot[1]); err != nil {
				return err
			}
		}
	}
	time.Sleep(time.Duration(k.rand.IntN(3000)) * time.Microsecond)
	return nil
}

// ledgerProcess is one that runs.
type ledgerProcess struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan ledgerLine
	n     int // lines that were written
	dead  bool
}

func (k *killing) start() (*ledgerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &ledgerProcess{cmd: exec.Command(exe), lines: make(chan ledgerLine, 4096)}
	p.cmd.Env = append(os.Environ(), "BUNDLE_TEST_LEDGER="+k.dir)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var l ledgerLine
			if json.Unmarshal(s.Bytes(), &l) == nil {
				p.lines <- l
			}
		}
	}()
	return p, nil
}

// kill kills it, with signal 9 where there are such.
func (p *ledgerProcess) kill() {
	if p.dead {
		return
	}
	p.dead = true
	_ = p.cmd.Process.Kill()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

var errLedgerOver = errors.New("the process has ended by itself")

// within is the next line; nil if it has not come when it is due. It is an error if it has not come at the end.
func (p *ledgerProcess) within(due, end time.Time) (*ledgerLine, error) {
	until := due
	if !time.Now().Before(due) {
		until = end
	}
	timeout := time.NewTimer(time.Until(until))
	defer timeout.Stop()
	select {
	case l, ok := <-p.lines:
		if !ok {
			return nil, errLedgerOver
		}
		return &l, nil
	case <-timeout.C:
		if until == end {
			return nil, errors.New("it does not go on")
		}
		return nil, nil
	}
}

// next is the next line that is.
func (p *ledgerProcess) next(is func(*ledgerLine) bool) (*ledgerLine, error) {
	end := time.Now().Add(ledgerPatience)
	for {
		l, err := p.within(end, end)
		if err != nil || is(l) {
			return l, err
		}
	}
}

func (p *ledgerProcess) write(to string, message any, ask bool) (line int, err error) {
	b, err := json.Marshal(map[string]any{"to": to, "message": message, "ask": ask})
	if err == nil {
		_, err = p.in.Write(append(b, '\n'))
	}
	p.n++
	return p.n, err
}

func (p *ledgerProcess) order(u *ledgerOrder) error {
	b, err := json.Marshal(u)
	if err == nil {
		_, err = fmt.Fprintf(p.in, "!%s\n", b)
	}
	return err
}

func (p *ledgerProcess) ask(to string, answer any) error {
	n, err := p.write(to, "report", true)
	if err != nil {
		return err
	}
	l, err := p.next(func(l *ledgerLine) bool { return l.Line == n })
	if err == nil && l.Kind != KindReply {
		err = errors.New(to + ": " + l.Kind)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(l.Reply, answer)
}

// settled are the books when all that was under way has come to its end.
func (p *ledgerProcess) settled() (balances map[string]int64, transfers, volume int64, err error) {
	for end := time.Now().Add(ledgerPatience); ; time.Sleep(2 * time.Millisecond) {
		var seen struct{ Transfers, Volume int64 }
		balances = map[string]int64{}
		if err := errors.Join(p.ask("bank", &balances), p.ask("auditor", &seen)); err != nil {
			return nil, 0, 0, err
		}
		total, moved := int64(0), int64(0)
		for _, b := range balances {
			total += b
		}
		for _, pair := range ledgerPairs {
			moved += ledgerOpening - balances[pair[0]]
		}
		if total == ledgerOpening*int64(len(balances)) && moved == seen.Volume {
			return balances, seen.Transfers, seen.Volume, nil
		}
		if time.Now().After(end) {
			return nil, 0, 0, fmt.Errorf("the books do not agree: %d cents in %v, the auditor of the ledger has seen %d", total, balances, seen.Volume)
		}
	}
}

// again has a transfer done that no record of the auditor has, and waits for its end.
func (k *killing) again(p *ledgerProcess, from, to string, amount int) error {
	k.id++
	n, err := p.write("gateway", map[string]any{"id": k.id, "from": from, "to": to, "amount": amount}, true)
	if err != nil {
		return err
	}
	l, err := p.next(func(l *ledgerLine) bool { return l.Line == n })
	if err == nil && l.Kind != KindReply {
		err = errors.New(l.Kind)
	}
	return err
}

// The auditor finds a transfer that was done twice: one that was acknowledged, or one that may be under way; and one that was acknowledged and
// is lost. Which of the two it says depends on what was under way: the sum of what has moved does not tell them apart.
func TestTheAuditorOfKills(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the ledger, and kills it")
	}
	if guesttest.Compiler() != "go" {
		t.Skip("the samples are for Go")
	}
	for _, c := range []struct {
		name, says string
		plant      func(k *killing, p *ledgerProcess, from, to string, acked, underway int) error
	}{
		{"acknowledged, and done twice", "cents of alice have moved twice", func(k *killing, p *ledgerProcess, from, to string, acked, _ int) error {
			return k.again(p, from, to, acked)
		}},
		{"under way, and done twice", "", func(k *killing, p *ledgerProcess, from, to string, _, underway int) error {
			return errors.Join(k.again(p, from, to, underway), k.again(p, from, to, underway))
		}},
		{"acknowledged, and lost", "cents of alice", func(k *killing, _ *ledgerProcess, _, _ string, acked, _ int) error {
			k.sure[0][bits.TrailingZeros(uint(acked))]++
			return nil
		}},
		{"nothing of that", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKilling(t)
			p, err := k.start()
			if err != nil {
				t.Fatal(err)
			}
			defer p.kill()
			if err := errors.Join(k.audit(p), k.moveOnly(p)); err != nil {
				t.Fatal(err)
			}
			slot := slices.IndexFunc(k.sure[0][:], func(n int64) bool { return n > 0 }) % ledgerSlots
			if slot < 0 {
				t.Fatal("alice has paid nothing")
			}
			underway := 1 << k.amount(0, slot)
			acked := 1 << (slot + ledgerSlots*(1-k.odd[0][slot]))
			if c.plant != nil {
				if err := c.plant(k, p, ledgerPairs[0][0], ledgerPairs[0][1], acked, underway); err != nil {
					t.Fatal(err)
				}
			}
			p.kill()
			switch err = k.audited(); {
			case c.plant == nil && err != nil:
				t.Error(err)
			case c.plant != nil && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("the auditor has found %v", err)
			}
		})
	}
}

// A start with a mistake is found: what the last turns before a kill have sent arrives once more, although it had arrived.
func TestKillsFindAMistake(t *testing.T) {
	if thorough.Of(0, 1) == 0 {
		t.Skip("it builds the host once more")
	}
	binary := planted.Build(t, filepath.Join("..", ".."), []planted.Mistake{{
		Name: "what has arrived arrives again", File: "host/repeat.go",
		Old: "func (p *repeats) arrives(a *actor, m *record.Message) *Envelope {\n",
		New: "func (p *repeats) arrives(a *actor, m *record.Message) *Envelope {\n\tif planted {\n\t\treturn nil\n\t}\n",
	}})
	for mistake, found := range map[string]bool{"0": false, "1": true} {
		c := exec.Command(binary, "-test.run", "^TestKilledLedger$", "-test.v")
		c.Env = append(os.Environ(), planted.Variable+"="+mistake, "KILLS=20", "KILLS_SEED=1", "TMPDIR="+t.TempDir())
		out, err := c.CombinedOutput()
		if (err != nil) != found || found && !strings.Contains(string(out), "twice") && !strings.Contains(string(out), "the books do not agree") && !strings.Contains(string(out), "auditor of the ledger has seen") {
			t.Errorf("mistake %s: %v\n%s", mistake, err, out)
		}
		t.Logf("mistake %s: %s", mistake, out)
	}
}
