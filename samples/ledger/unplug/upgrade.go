package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// upgrades are those of all lives. A nil pointer makes none.
type upgrades struct {
	command string
	modules []string      // files of the same guests, which count as other code
	takes   time.Duration // about how long one takes
	all     map[string]int
}

// newUpgrades makes modules that differ in a section that says nothing.
func newUpgrades(command, module, beside string) (*upgrades, error) {
	code, err := os.ReadFile(module)
	if err != nil {
		return nil, err
	}
	u := &upgrades{command: command, takes: 300 * time.Millisecond, all: map[string]int{}}
	for _, name := range []byte("ab") {
		file := filepath.Clean(beside) + "-" + string(name) + ".wasm"
		if err := os.WriteFile(file, append(code[:len(code):len(code)], 0, 2, 1, name), 0o600); err != nil {
			return nil, err
		}
		u.modules = append(u.modules, file)
	}
	return u, nil
}

// underway is an upgrade of one life.
type upgradeUnderWay struct {
	u     *upgrades
	cmd   *exec.Cmd
	began time.Time
	kill  time.Time
	over  chan struct{}
	whole bool // it was over before the kill
	took  time.Duration
	err   error
}

// begin begins to upgrade a process. In every third life the upgrade is called off, and all goes back.
func (u *upgrades) begin(p *process, life int) *upgradeUnderWay {
	if u == nil {
		return nil
	}
	w := &upgradeUnderWay{u: u, began: time.Now(), over: make(chan struct{})}
	if life >= len(u.modules) {
		w.kill = w.began.Add(time.Duration(rand.Int64N(int64(u.takes) * 3 / 2)))
	}
	args := []string{"upgrade", strconv.Itoa(p.cmd.Process.Pid), "--module", "ledger=" + u.modules[life%len(u.modules)]}
	back := life%3 == 2 && life >= len(u.modules)
	if back {
		args = append(args, "--probation", "10s")
	}
	w.cmd = exec.Command(u.command, args...)
	if err := w.cmd.Start(); err != nil {
		w.err = err
		close(w.over)
		return w
	}
	go func() {
		defer close(w.over)
		w.err = w.cmd.Wait()
		w.took = time.Since(w.began)
	}()
	if back {
		time.AfterFunc(time.Duration(rand.Int64N(int64(u.takes))), func() { _ = w.cmd.Process.Signal(syscall.SIGTERM) })
	}
	return w
}

// killed is called before the process is killed.
func (w *upgradeUnderWay) killed() {
	if w == nil {
		return
	}
	select {
	case <-w.over:
		w.whole = true
	default:
	}
}

// due reports whether the process may be killed. The first upgrade to each module is waited for: it compiles.
func (w *upgradeUnderWay) due() bool {
	if w == nil {
		return true
	}
	if w.kill.IsZero() {
		select {
		case <-w.over:
			return true
		default:
			return false
		}
	}
	return time.Now().After(w.kill)
}

// end waits for the command, whose process has been killed.
func (w *upgradeUnderWay) end() {
	if w == nil {
		return
	}
	<-w.over
	var exit *exec.ExitError
	switch {
	case w.err == nil:
		w.u.all["done"]++
		if w.kill.IsZero() {
			break // it has compiled
		}
		w.u.takes = (w.u.takes + w.took) / 2
	case errors.As(w.err, &exit) && exit.ExitCode() == 128+int(syscall.SIGTERM):
		w.u.all["back"]++
	case w.whole:
		w.u.all["kept"]++
	default:
		w.u.all["cut"]++
	}
}

func (u *upgrades) tell() {
	if u != nil {
		fmt.Printf("%d upgrades were done before the kill, %d after some actors had kept their code, %d were called off, and %d were cut by it.\n", u.all["done"], u.all["kept"], u.all["back"], u.all["cut"])
	}
}
