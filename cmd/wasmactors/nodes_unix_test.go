//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/internal/guesttest"
)

// What tests of clusters with real processes need: folders of nodes, processes that can be asked and killed, and proxies that part
// them.

var registerCode = sync.OnceValues(func() ([]byte, error) { return guesttest.Build("testdata/register") })

// field is a cluster of processes of this machine.
type field struct {
	t      *testing.T
	bundle string
	nodes  []*process
	began  time.Time
	seen   history
}

// process is one of them. It is started again under the same name.
type process struct {
	*field
	name, folder string
	file         string // of the bundle; "": its folder
	args         []string
	exe          string // "": this program

	mu    sync.Mutex
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines int
	open  map[int]chan outcome
	log   strings.Builder
	over  chan struct{} // closed when the process has ended
	fresh chan struct{} // closed when it is up
}

// outcome is what became of a question.
type outcome struct {
	Line   int             `json:"line"`
	Kind   string          `json:"kind"`
	Reason string          `json:"reason"`
	Reply  json.RawMessage `json:"reply"`
}

// freePorts are addresses of this machine of which the port after each is free, too.
func freePorts(t *testing.T, n int) (all []string) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for len(all) < n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		address := l.Addr().(*net.TCPAddr)
		if after, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", address.Port+1)); err == nil {
			held = append(held, after)
			all = append(all, address.String())
		}
	}
	return all
}

// fieldOf makes the folders of nodes that all keep the directory, and the bundle.
func fieldOf(t *testing.T, nodes int, manifest string) *field {
	t.Helper()
	code, err := registerCode()
	if err != nil {
		t.Fatal(err)
	}
	f := &field{t: t, bundle: t.TempDir(), began: time.Now()}
	for name, text := range map[string]string{"register.wasm": string(code), "bundle.yaml": manifest} {
		if err := os.WriteFile(filepath.Join(f.bundle, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := natscluster.Description{Name: "test"}
	for i, address := range freePorts(t, nodes) {
		d.Keepers = append(d.Keepers, natscluster.Keeper{Name: fmt.Sprintf("n%d", i+1), Address: address})
	}
	f.found(d)
	return f
}

// found makes the folders of the keepers of a cluster.
func (f *field) found(d natscluster.Description) {
	dir := f.t.TempDir()
	first, err := natscluster.Init(filepath.Join(dir, d.Keepers[0].Name), d.Keepers[0].Name, d)
	for i := 0; err == nil && i < len(d.Keepers); i++ {
		folder := filepath.Join(dir, d.Keepers[i].Name)
		if i > 0 {
			_, err = first.Sibling(folder, d.Keepers[i].Name)
		}
		f.nodes = append(f.nodes, &process{field: f, name: d.Keepers[i].Name, folder: folder})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		for _, p := range f.nodes {
			p.kill()
		}
		if f.t.Failed() {
			for _, p := range f.nodes {
				f.t.Logf("== %s\n%s", p.name, p.said())
			}
		}
	})
}

// ofRegisters is a bundle with registers that are spread over the nodes, and a singleton.
const ofRegisters = "wasmactors: 1\nname: field\nmodules: {m: {wasm: register.wasm}}\ncluster: {}\nactors:\n" +
	"  regs: {type: m/register, keyed: {scope: cluster, shards: 64, idle: 10m}}\n  one: {type: m/register, singleton: {}}\n"

// start starts processes, and waits until all are up, which needs a majority of them.
func (f *field) start(nodes ...*process) {
	f.t.Helper()
	for _, p := range nodes {
		p.launch()
	}
	for _, p := range nodes {
		select {
		case <-p.fresh:
		case <-p.over:
			f.t.Fatalf("%s has ended:\n%s", p.name, p.said())
		case <-time.After(2 * patience):
			f.t.Fatalf("%s is not up:\n%s", p.name, p.said())
		}
	}
}

func (p *process) launch() {
	p.t.Helper()
	exe, err := p.exe, error(nil)
	if exe == "" {
		exe, err = os.Executable()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	args := append([]string{"run", filepath.Join(p.bundle, p.file), "--join", p.folder, "--input", "-", "--timeout", "30s", "--state", "none"}, p.args...)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "WASMACTORS_TEST_MAIN=1", "WASMACTORS_CACHE_DIR="+testCache)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	over, fresh := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	p.cmd, p.in, p.lines, p.open, p.over, p.fresh = cmd, in, 0, map[int]chan outcome{}, over, fresh
	p.mu.Unlock()
	var read sync.WaitGroup
	read.Go(func() {
		s := bufio.NewScanner(errs)
		for up := false; s.Scan(); {
			p.mu.Lock()
			if p.log.Len() < 1<<20 {
				fmt.Fprintf(&p.log, "%6.2f %s\n", time.Since(p.began).Seconds(), s.Text())
			}
			p.mu.Unlock()
			if !up && strings.Contains(s.Text(), "is up") {
				up = true
				close(fresh)
			}
		}
	})
	read.Go(func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			var a outcome
			if json.Unmarshal(s.Bytes(), &a) != nil {
				continue
			}
			p.mu.Lock()
			if c := p.open[a.Line]; c != nil {
				delete(p.open, a.Line)
				c <- a
			}
			p.mu.Unlock()
		}
	})
	go func() {
		read.Wait()
		_ = cmd.Wait()
		p.mu.Lock()
		for _, c := range p.open {
			c <- outcome{Kind: "gone"}
		}
		p.open = nil
		p.mu.Unlock()
		close(over)
	}()
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Signal(s)
	}
}

// kill ends a process as a power failure would.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over != nil {
		<-over
	}
}

// put writes a question, and returns its line and where the answer comes.
func (p *process) put(to string, message any) <-chan outcome {
	c := make(chan outcome, 1)
	b, err := json.Marshal(map[string]any{"to": to, "message": message})
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		c <- outcome{Kind: "gone"}
		return c
	}
	p.lines++
	p.open[p.lines] = c
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		delete(p.open, p.lines)
		c <- outcome{Kind: "gone"}
	}
	return c
}

// ask is put, waits for the answer, and notes it.
func (p *process) ask(to string, message any) (outcome, life) {
	began := time.Since(p.began)
	c := p.put(to, message)
	a := <-c
	l := life{}
	if a.Kind == "reply" {
		var all [4]uint64
		if json.Unmarshal(a.Reply, &all) != nil {
			p.t.Errorf("%s: the answer %s", to, a.Reply)
		}
		l = life{all[0], all[1], uint16(all[2]), int64(all[3])}
		p.seen.add(op{to, p.name, began, time.Since(p.began), l})
	}
	return a, l
}

// life says which life of a key has answered: its node, the number of the answer, and the value from before.
type life struct {
	id, count uint64
	node      uint16
	before    int64
}

// op is a question that was answered.
type op struct {
	key, by    string
	began, end time.Duration
	life
}

// history is all that was answered.
type history struct {
	mu  sync.Mutex
	all []op
}

func (h *history) add(o op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, o)
}

// overlaps reports keys of which two lives were there at a time, as far as questions and answers show: a life has answered what
// was asked after another had answered, and that one what was asked after it; or one life has counted in another order.
func (h *history) overlaps() (wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	type span struct{ end, began time.Duration } // the first end, and the last begin
	spans := map[string]map[uint64]span{}
	for _, o := range h.all {
		if spans[o.key] == nil {
			spans[o.key] = map[uint64]span{}
		}
		s, ok := spans[o.key][o.id]
		if !ok {
			s = span{o.end, o.began}
		}
		spans[o.key][o.id] = span{min(s.end, o.end), max(s.began, o.began)}
	}
	for key, lives := range spans {
		for a, x := range lives {
			for b, y := range lives {
				if a < b && x.end < y.began && y.end < x.began {
					wrong = append(wrong, fmt.Sprintf("%s: the lives %x (answered at %v, asked at %v) and %x (answered at %v, asked at %v)", key, a, x.end, x.began, b, y.end, y.began))
				}
			}
		}
	}
	type at struct {
		key string
		id  uint64
	}
	of := map[at][]op{}
	for _, o := range h.all {
		of[at{o.key, o.id}] = append(of[at{o.key, o.id}], o)
	}
	for k, all := range of {
		last := map[uint64]bool{}
		for _, o := range all {
			if last[o.count] {
				wrong = append(wrong, fmt.Sprintf("%s: the life %x has counted %d twice", k.key, k.id, o.count))
			}
			last[o.count] = true
		}
		for _, o := range all {
			for _, p := range all {
				if o.end < p.began && o.count > p.count {
					wrong = append(wrong, fmt.Sprintf("%s: the life %x has answered %d before %d", k.key, k.id, o.count, p.count))
				}
			}
		}
	}
	return wrong
}

// everywhere is a number of keys of which each of three nodes has one: in one start of 700,000 it has none, since each key has a shard of its own.
const everywhere = 36

// someKeys are n paths, at most 64, the first of which is that of k00. No two of them are in one of 64 shards.
func someKeys(n int) (all []string) {
	taken := map[int]bool{}
	for i := 0; len(all) < n; i++ {
		name := fmt.Sprintf("k%02d", i)
		if s := shard.Of(name, 64); !taken[s] {
			taken[s] = true
			all = append(all, "/user/regs/"+name)
		}
	}
	return all
}

// load asks all nodes about all keys until the context ends; each answer is noted. It returns how many were answered and not.
func (f *field) load(ctx context.Context, keys []string, every time.Duration) (wait func() (answered, failed int)) {
	var mu sync.Mutex
	var yes, no int
	var wait_ sync.WaitGroup
	for i, p := range f.nodes {
		wait_.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				a, _ := p.ask(keys[n%len(keys)], n)
				mu.Lock()
				if a.Kind == "reply" {
					yes++
				} else {
					no++
				}
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(every):
				}
			}
		})
	}
	return func() (int, int) { wait_.Wait(); return yes, no }
}

// until asks a node about a key until it answers in a life that is wanted.
func (f *field) until(p *process, key string, want func(life) bool) time.Duration {
	began := time.Now()
	for {
		a, l := p.ask(key, "read")
		if a.Kind == "reply" && want(l) {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			f.t.Errorf("%s by %s: %s %s", key, p.name, a.Kind, a.Reason)
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func lifeOf(t *testing.T, a outcome) life {
	var all [4]uint64
	if err := json.Unmarshal(a.Reply, &all); err != nil {
		t.Errorf("the answer %s: %v", a.Reply, err)
	}
	return life{all[0], all[1], uint16(all[2]), int64(all[3])}
}

// settle waits until each node answers for each key, and the lives do not change any more; it returns them.
func (f *field) settle(keys []string) map[string]life {
	f.t.Helper()
	began := time.Now()
	for {
		all, nodes := map[string]life{}, map[uint16]bool{}
		for i, key := range append(append([]string{}, keys...), "/user/one") {
			_, l := f.nodes[i%len(f.nodes)].ask(key, "read")
			all[key] = l
			nodes[l.node] = true
		}
		time.Sleep(300 * time.Millisecond)
		same := len(nodes) == len(f.nodes)
		for key, l := range all {
			_, again := f.nodes[0].ask(key, "read")
			same = same && l.id != 0 && again.id == l.id
		}
		if same {
			f.t.Logf("%d keys have settled after %v", len(keys), time.Since(began).Round(10*time.Millisecond))
			return all
		}
		if time.Since(began) > patience {
			f.t.Fatalf("the keys do not settle: %v", all)
		}
	}
}

// numberOf is the number of a node, as it says itself.
func (f *field) numberOf(p *process) uint16 {
	f.t.Helper()
	said := p.said()
	i := strings.LastIndex(said, ": this is node "+p.name)
	var n uint16
	if i >= 0 {
		line := said[strings.LastIndex(said[:i], "\n")+1 : i]
		_, _ = fmt.Sscanf(line[strings.Index(line, "cluster: joined node ")+len("cluster: joined node "):], "%d", &n)
	}
	if n == 0 {
		f.t.Fatalf("%s does not say its number:\n%s", p.name, said)
	}
	return n
}
