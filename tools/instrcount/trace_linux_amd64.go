package instrcount

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracer follows one process. All its methods run on one thread: ptrace belongs to
// threads.
type tracer struct {
	pid     int
	threads map[int]bool // to whether it stands still
	windows []Window
}

func trace(ctx context.Context, cmd *exec.Cmd) ([]Window, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) {
			return nil, fmt.Errorf("%w: %v", ErrUnsupported, err)
		}
		return nil, err
	}
	t := &tracer{pid: cmd.Process.Pid, threads: map[int]bool{cmd.Process.Pid: true}}
	killer := context.AfterFunc(ctx, func() { _ = unix.Kill(t.pid, unix.SIGKILL) })
	err := t.run()
	killer()
	_ = cmd.Process.Release()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("killed: %w (does the counted thread wait for another one?)", context.Cause(ctx))
	}
	return t.windows, err
}

// run follows the child, stopped at its exec, to its end.
func (t *tracer) run() error {
	if _, _, err := t.wait(t.pid); err != nil {
		return err
	}
	// From TRACEME to SEIZE, which knows how to interrupt: the child stays stopped in between.
	if err := ptrace(unix.PTRACE_DETACH, t.pid, 0, uintptr(unix.SIGSTOP)); err != nil {
		return t.abandon(err)
	}
	if err := ptrace(unix.PTRACE_SEIZE, t.pid, 0, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return t.abandon(fmt.Errorf("%w: %v", ErrUnsupported, err))
	}
	if err := unix.Kill(t.pid, unix.SIGCONT); err != nil {
		return t.abandon(err)
	}
	t.threads[t.pid] = false
	for {
		tid, status, err := t.wait(-1)
		if err != nil {
			return err
		}
		if !status.Stopped() {
			delete(t.threads, tid)
			if tid != t.pid {
				continue
			}
			if status.Exited() && status.ExitStatus() == 0 {
				return nil
			}
			if status.Signaled() {
				return fmt.Errorf("killed by %v", status.Signal())
			}
			return fmt.Errorf("exit status %d", status.ExitStatus())
		}
		if isMark(status) {
			if err := t.window(tid); err != nil {
				return t.abandon(err)
			}
			continue
		}
		if err := t.resume(tid, status, unix.PTRACE_CONT); err != nil {
			return t.abandon(err)
		}
	}
}

// abandon kills the child and waits for its end.
func (t *tracer) abandon(err error) error {
	_ = unix.Kill(t.pid, unix.SIGKILL)
	for {
		tid, status, e := t.wait(-1)
		if e != nil || tid == t.pid && !status.Stopped() {
			return err
		}
	}
}

// advance lets the thread, alone, do one step, or run to its next report, which it returns. What it is about is
// delivered with it.
func (t *tracer) advance(tid, how int, signal uintptr) (unix.WaitStatus, error) {
	if err := ptrace(how, tid, 0, signal); err != nil {
		return 0, err
	}
	for { // a thread that the counted one has just made reports too; it stands still
		who, s, err := t.wait(-1)
		if err != nil || who == tid {
			return s, err
		}
		if s.Stopped() {
			t.threads[who] = true
		} else {
			delete(t.threads, who)
		}
	}
}

// alone stops every other thread, and lets the thread, which stands at a mark, run to the next one.
func (t *tracer) alone(tid int) error {
	if err := t.freeze(tid); err != nil {
		return err
	}
	for signal := uintptr(0); ; {
		status, err := t.advance(tid, unix.PTRACE_CONT, signal)
		switch {
		case err != nil:
			return err
		case !status.Stopped():
			return errors.New("the counted thread has ended before a window")
		case isMark(status):
			return nil
		}
		signal = pending(status)
	}
}

// window counts what the thread, which stands at a mark, does between the next mark and the one after.
func (t *tracer) window(tid int) error {
	if err := t.alone(tid); err != nil {
		return err
	}
	host, clock, err := hostCode(t.pid)
	if err != nil {
		return err
	}
	w := Window{places: map[uint64]int{}, guest: func(at uint64) bool { return !host.contains(at) }}
	at, err := instruction(tid)
	if err != nil {
		return err
	}
	for signal := uintptr(0); ; {
		status, err := t.advance(tid, unix.PTRACE_SINGLESTEP, signal)
		if err != nil {
			return err
		}
		if !status.Stopped() {
			return errors.New("the counted thread has ended within a window")
		}
		if isMark(status) {
			break
		}
		signal = pending(status)
		next, err := instruction(tid)
		if err != nil {
			return err
		}
		if next != at && !clock.contains(at) { // else a string instruction repeats itself
			w.executed(at)
		}
		at = next
	}
	t.windows = append(t.windows, w)
	for id, still := range t.threads {
		if still {
			// The first that goes on may end the process at once.
			if err := ptrace(unix.PTRACE_CONT, id, 0, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			t.threads[id] = false
		}
	}
	return nil
}

// freeze makes every thread but one stand still.
func (t *tracer) freeze(but int) error {
	t.threads[but] = true
	for {
		moving := 0
		for id, still := range t.threads {
			if !still {
				if err := ptrace(unix.PTRACE_INTERRUPT, id, 0, 0); err == nil {
					moving++
				}
			}
		}
		if moving == 0 {
			return nil
		}
		for ; moving > 0; moving-- {
			id, status, err := t.wait(-1)
			if err != nil {
				return err
			}
			if !status.Stopped() {
				delete(t.threads, id)
				continue
			}
			if sig := pending(status); sig != 0 { // let it have its signal first; it is interrupted again
				if err := ptrace(unix.PTRACE_CONT, id, 0, sig); err != nil {
					return err
				}
				continue
			}
			t.threads[id] = true
		}
	}
}

// resume lets a thread go on after a stop that is no mark.
func (t *tracer) resume(tid int, status unix.WaitStatus, how int) error {
	t.threads[tid] = false
	err := ptrace(how, tid, 0, pending(status))
	if errors.Is(err, unix.ESRCH) {
		return nil // it is about to end
	}
	return err
}

// pending is the signal that a stop is about, 0 if it is none that the thread should get.
func pending(status unix.WaitStatus) uintptr {
	if event := uint32(status) >> 16; event != 0 || status.StopSignal() == unix.SIGTRAP {
		return 0
	}
	return uintptr(status.StopSignal())
}

func isMark(status unix.WaitStatus) bool {
	return uint32(status)>>16 == 0 && status.StopSignal() == mark
}

// wait for a report of the child's threads; children of other threads of ours are
// left alone.
func (t *tracer) wait(pid int) (int, unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		id, err := unix.Wait4(pid, &status, unix.WALL|unix.WNOTHREAD, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return id, status, err
	}
}

func ptrace(request, tid int, addr, data uintptr) error {
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0); e != 0 {
		return fmt.Errorf("ptrace %#x of thread %d: %w", request, tid, e)
	}
	return nil
}

// instruction is the address of the thread's next one.
func instruction(tid int) (uint64, error) {
	var at uint64
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_PEEKUSR, uintptr(tid), unsafe.Offsetof(unix.PtraceRegs{}.Rip), uintptr(unsafe.Pointer(&at)), 0, 0)
	if e != 0 {
		return 0, e
	}
	return at, nil
}

// ranges of addresses, from and behind.
type ranges [][2]uint64

func (r ranges) contains(at uint64) bool {
	for _, x := range r {
		if x[0] <= at && at < x[1] {
			return true
		}
	}
	return false
}

// hostCode lists the executable mappings of files and of the kernel; what is
// executable and has no name was compiled at run time. clock is the part of the kernel that reads clocks: it begins again
// when the kernel has moved the clock on meanwhile, and that is often where each instruction takes microseconds.
func hostCode(pid int) (r, clock ranges, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") {
			continue
		}
		var x [2]uint64
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &x[0], &x[1]); err != nil {
			return nil, nil, err
		}
		r = append(r, x)
		if fields[5] == "[vdso]" {
			clock = append(clock, x)
		}
	}
	return r, clock, nil
}
