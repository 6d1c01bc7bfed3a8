package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
)

// Two nodes in two processes of this machine, beside NATS alone between the same processes: what an ask takes, how many small messages
// go from one to the other, and when an ask ends whose node is killed. NATS alone has no TLS, encrypts nothing and confirms nothing.

// nodeFigures are those of one round.
type nodeFigures struct {
	Bench      string  `json:"bench"`
	LocalAsk   float64 `json:"local_ask_p50_us"`
	Request    float64 `json:"nats_request_p50_us"`
	Ask        float64 `json:"ask_p50_us"`
	AskP99     float64 `json:"ask_p99_us"`
	AskRatio   float64 `json:"ask_beyond_local_by_request"` // (ask - local ask) / request; the goal is at most 1.3
	Frames     float64 `json:"nats_messages_per_s"`         // in frames of 64
	Messages   float64 `json:"messages_per_s"`
	Rate       float64 `json:"messages_by_nats"` // the goal is at least 0.6
	CPU        float64 `json:"cpu_us_a_message"` // of both processes
	FramesCPU  float64 `json:"nats_cpu_us_a_message"`
	LocalCPU   float64 `json:"local_cpu_us_a_message"` // to actors of the same node
	Ergo       float64 `json:"ergo_messages_per_s"`
	ErgoRate   float64 `json:"messages_by_ergo"` // the goal is at least 1
	Bytes      int     `json:"bytes"`
	Senders    int     `json:"senders"`
	Killed     float64 `json:"ask_to_killed_node_ms"` // under way at the kill; the goal is at most 1000
	KilledNext float64 `json:"ask_after_kill_ms"`
	CPUs       int     `json:"cpus"`
}

const (
	nodeBytes   = 64
	nodeSenders = 64
	nodeFrame   = 64 // messages of a frame of NATS alone
)

func nodesBench(args []string) error {
	flags := flag.NewFlagSet("nodes", flag.ExitOnError)
	quick := flags.Bool("quick", false, "0.3 s each, one round")
	long := flags.Duration("time", 3*time.Second, "of each measurement")
	rounds := flags.Int("rounds", 3, "how often")
	profile := flags.String("profile", "", "a file for a profile of this process, of the rate of messages; .other is added for the other process")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*long, *rounds = 300*time.Millisecond, 1
	}
	for range *rounds {
		f, err := nodesRound(*long, *profile)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// benchNode is this process as a node.
type benchNode struct {
	place *natscluster.Cluster
	node  *cluster.Node
	sys   *host.System
}

func openNode(dir string) (*benchNode, error) {
	id, err := natscluster.LoadIdentity(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n := &benchNode{}
	if n.place, err = natscluster.Open(ctx, id, natscluster.Options{}); err != nil {
		return nil, err
	}
	n.node, err = cluster.New(cluster.Config{
		Name: id.Node, ID: uint64(os.Getpid()), Identity: id.Certificate(), Lease: id.Lease, Directory: n.place.Directory(), Links: n.place.Links(),
	})
	if err != nil {
		return nil, err
	}
	type joined struct {
		m   cluster.Member
		err error
	}
	got := make(chan joined, 1)
	n.node.Join(func(m cluster.Member, err error) { got <- joined{m, err} })
	j := <-got
	if j.err != nil {
		return nil, j.err
	}
	if n.sys, err = host.New(host.NewConfig("bench").WithNode(j.m.Number)); err != nil {
		return nil, err
	}
	return n, n.node.Attach(n.sys)
}

func (n *benchNode) close() {
	_ = n.sys.Close(context.Background())
	left := make(chan struct{})
	n.node.Leave(func(error) { close(left) })
	<-left
	n.place.Close()
}

func echoBack() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Correlation == 0 {
			return nil
		}
		return ctx.Reply(host.Raw(bytes.Clone(m.Payload)))
	})
}

// nodeServe is the other process: its folder, and the address of NATS alone. It says when it is there.
func nodeServe(args []string) error {
	n, err := openNode(args[0])
	if err != nil {
		return err
	}
	if _, err := n.sys.Spawn("echo", echoBack()); err != nil {
		return err
	}
	if _, err := n.sys.Spawn("silent", host.Func(func(*host.Context, host.Message) error { return nil })); err != nil {
		return err
	}
	if err := n.sinks(1 << 20); err != nil {
		return err
	}
	if len(args) > 2 {
		if err := n.profiled(args[2]); err != nil {
			return err
		}
	}
	nc, err := nats.Connect(args[1])
	if err != nil {
		return err
	}
	var bare atomic.Int64
	if _, err := nc.Subscribe("bench.echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		return err
	}
	sub, err := nc.Subscribe("bench.frames", func(m *nats.Msg) { bare.Add(int64(len(m.Data) / nodeBytes)) })
	if err != nil {
		return err
	}
	_ = sub.SetPendingLimits(-1, -1)
	if _, err := nc.Subscribe("bench.count", func(m *nats.Msg) { _ = m.Respond(fmt.Append(nil, bare.Load())) }); err != nil {
		return err
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	n.close()
	return nil
}

// sinks are actors that count messages, and one that says how many they have counted. Each may have so many waiting.
func (n *benchNode) sinks(mailbox int) error {
	var count atomic.Int64
	for i := range nodeSenders {
		if _, err := n.sys.Spawn(fmt.Sprint("sink", i), host.Func(func(*host.Context, host.Message) error { count.Add(1); return nil }).WithLimits(host.Limits{Mailbox: mailbox, MailboxBytes: 256 << 20})); err != nil {
			return err
		}
	}
	_, err := n.sys.Spawn("count", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Reply(count.Load()) }))
	return err
}

// profiled has an actor that begins a profile when it is asked, and ends it when it is asked again.
func (n *benchNode) profiled(path string) error {
	var file *os.File
	_, err := n.sys.Spawn("profile", host.Func(func(ctx *host.Context, m host.Message) (err error) {
		if file != nil {
			pprof.StopCPUProfile()
			return errors.Join(file.Close(), ctx.Reply([]byte("ok")))
		}
		if file, err = os.Create(path); err != nil {
			return err
		}
		return errors.Join(pprof.StartCPUProfile(file), ctx.Reply([]byte("ok")))
	}))
	return err
}

func freeBenchAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func nodesRound(long time.Duration, profile string) (*nodeFigures, error) {
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	address, err := freeBenchAddress()
	if err != nil {
		return nil, err
	}
	first, err := natscluster.Init(filepath.Join(dir, "a"), "a", natscluster.Description{Name: "bench", Keepers: []natscluster.Keeper{{Name: "a", Address: address}}})
	if err != nil {
		return nil, err
	}
	if _, err := first.Sibling(filepath.Join(dir, "b"), "b"); err != nil {
		return nil, err
	}
	bare, err := natsd.NewServer(&natsd.Options{Host: "127.0.0.1", Port: natsd.RANDOM_PORT, NoLog: true, NoSigs: true, MaxPending: 256 << 20})
	if err != nil {
		return nil, err
	}
	bare.Start()
	defer bare.Shutdown()
	if !bare.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("NATS alone does not listen")
	}
	nc, err := nats.Connect("", nats.InProcessServer(bare))
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	n, err := openNode(filepath.Join(dir, "a"))
	if err != nil {
		return nil, err
	}
	defer n.close()
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, "nodeserve", filepath.Join(dir, "b"), bare.ClientURL())
	if profile != "" {
		cmd.Args = append(cmd.Args, profile+".other")
	}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	defer func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return nil, fmt.Errorf("the other process says %q: %w", line, err)
	}
	f := &nodeFigures{Bench: "nodes", Bytes: nodeBytes, Senders: nodeSenders, CPUs: runtime.NumCPU()}
	if err := f.measure(n, nc, cmd.Process, long, profile); err != nil {
		return nil, err
	}
	if f.Ergo, err = ergoRate(long); err != nil {
		return nil, err
	}
	f.ErgoRate = f.Messages / f.Ergo
	return f, nil
}

func (f *nodeFigures) measure(n *benchNode, nc *nats.Conn, other *os.Process, long time.Duration, profile string) error {
	number := uint16(0)
	for _, m := range n.node.Members() {
		if m.Name == "b" {
			number = m.Number
		}
	}
	far := func(name string) (host.Ref, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return n.sys.Identify(ctx, fmt.Sprintf("wasm://bench@%d/user/%s", number, name))
	}
	echo, err := far("echo")
	if err != nil {
		return fmt.Errorf("node %d: %w", number, err)
	}
	local, err := n.sys.Spawn("echo", echoBack())
	if err != nil {
		return err
	}
	payload := make([]byte, nodeBytes)
	ask := func(to host.Ref) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := host.AskAs[[]byte](ctx, n.sys, to, payload)
			return err
		}
	}
	if f.LocalAsk, _, err = quantiles(long, ask(local)); err != nil {
		return err
	}
	if f.Request, _, err = quantiles(long, func() error { _, err := nc.Request("bench.echo", payload, 10*time.Second); return err }); err != nil {
		return err
	}
	if f.Ask, f.AskP99, err = quantiles(long, ask(echo)); err != nil {
		return err
	}
	f.AskRatio = (f.Ask - f.LocalAsk) / f.Request
	cpu := func(f func() (float64, error)) (rate, each float64, err error) {
		began, before := time.Now(), processorTimeOf(os.Getpid(), other.Pid)
		rate, err = f()
		took := time.Since(began).Seconds()
		return rate, float64(processorTimeOf(os.Getpid(), other.Pid)-before) / 1e3 / (rate * took), err
	}
	if f.Frames, f.FramesCPU, err = cpu(func() (float64, error) { return bareRate(nc, long) }); err != nil {
		return err
	}
	if err := n.sinks(1 << 10); err != nil { // as much as waits for another node
		return err
	}
	here := func(name string) (host.Ref, error) {
		return n.sys.Identify(context.Background(), "/user/"+name)
	}
	if _, f.LocalCPU, err = cpu(func() (float64, error) { return nodeRate(n, here, long) }); err != nil {
		return fmt.Errorf("within a node: %w", err)
	}
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer file.Close()
		there, err := far("profile")
		if err != nil {
			return err
		}
		if err := ask(there)(); err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer func() { pprof.StopCPUProfile() }()
	}
	f.Messages, f.CPU, err = cpu(func() (float64, error) { return nodeRate(n, far, long) })
	if err != nil {
		return err
	}
	if profile != "" {
		pprof.StopCPUProfile()
		there, err := far("profile")
		if err != nil {
			return err
		}
		if err := ask(there)(); err != nil {
			return err
		}
	}
	f.Rate = f.Messages / f.Frames
	silent, err := far("silent")
	if err != nil {
		return err
	}
	p, err := n.sys.Request(silent, payload)
	if err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	if err := other.Kill(); err != nil {
		return err
	}
	killed := time.Now()
	if m := <-p.Answer(); m.Err() == nil {
		return errors.New("a killed node has answered")
	}
	f.Killed = time.Since(killed).Seconds() * 1e3
	asked := time.Now()
	if ask(echo)() == nil {
		return errors.New("a killed node has answered")
	}
	f.KilledNext = time.Since(asked).Seconds() * 1e3
	return nil
}

// quantiles are the median and the 99th of a hundred, in microseconds.
func quantiles(long time.Duration, f func() error) (p50, p99 float64, err error) {
	var took []float64
	for end := time.Now().Add(long); time.Now().Before(end); {
		began := time.Now()
		if err := f(); err != nil {
			return 0, 0, err
		}
		took = append(took, float64(time.Since(began).Nanoseconds())/1e3)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

// bareRate is how many messages a second NATS alone carries in frames.
func bareRate(nc *nats.Conn, long time.Duration) (float64, error) {
	frame := make([]byte, nodeFrame*nodeBytes)
	count := func() (n int64, err error) {
		m, err := nc.Request("bench.count", nil, 10*time.Second)
		if err == nil {
			_, err = fmt.Sscan(string(m.Data), &n)
		}
		return n, err
	}
	began, sent := time.Now(), int64(0)
	for time.Since(began) < long {
		for range 64 {
			if err := nc.Publish("bench.frames", frame); err != nil {
				return 0, err
			}
			sent += nodeFrame
		}
		if err := nc.Flush(); err != nil { // so that what waits is bounded
			return 0, err
		}
	}
	for {
		n, err := count()
		if err != nil {
			return 0, err
		}
		if n >= sent {
			return float64(sent) / time.Since(began).Seconds(), nil
		}
		if time.Since(began) > long+30*time.Second {
			return 0, fmt.Errorf("NATS alone has carried %d of %d messages", n, sent)
		}
	}
}

// nodeRate is how many messages a second go from this node to the other, each of another sender.
func nodeRate(n *benchNode, far func(string) (host.Ref, error), long time.Duration) (float64, error) {
	count, err := far("count")
	if err != nil {
		return 0, err
	}
	arrived := func() (int64, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return host.AskAs[int64](ctx, n.sys, count, nil)
	}
	var sent atomic.Int64
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	payload := host.Raw(append([]byte{0x58, nodeBytes - 2}, make([]byte, nodeBytes-2)...)) // CBOR: bytes
	began := time.Now()
	start := make(chan struct{}) // of all, once each knows its receiver
	for i := range nodeSenders {
		sink, err := far(fmt.Sprint("sink", i))
		if err != nil {
			return 0, err
		}
		sender, err := n.sys.Spawn("", host.Func(func(*host.Context, host.Message) error { return nil }))
		if err != nil {
			return 0, err
		}
		wait.Go(func() {
			<-start
			for time.Since(began) < long {
				for range 64 {
					err := n.sys.TellFrom(sender, sink, payload)
					if errors.Is(err, host.ErrMailboxFull) {
						time.Sleep(200 * time.Microsecond)
						continue
					}
					if err != nil {
						failed.Store(&err)
						return
					}
					sent.Add(1)
				}
			}
		})
	}
	began = time.Now()
	close(start)
	wait.Wait()
	if e := failed.Load(); e != nil {
		return 0, *e
	}
	for {
		got, err := arrived()
		if err != nil && !errors.Is(err, host.ErrMailboxFull) { // that is the messages before it
			return 0, err
		}
		if err == nil && got >= sent.Load() {
			return float64(got) / time.Since(began).Seconds(), nil
		}
		if time.Since(began) > long+30*time.Second {
			return 0, fmt.Errorf("%d of %d messages have come", got, sent.Load())
		}
	}
}

// processorTimeOf is what some processes have taken, in steps of 10 ms; 0 where /proc does not say so.
func processorTimeOf(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 13 {
			return 0
		}
		for _, f := range fields[11:13] { // user and system
			n, _ := strconv.Atoi(f)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
