package instrcount

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mark is the signal by which the child tells of a mark. The tracer swallows it.
const mark = unix.SIGUSR2

// Mark begins or ends a span. The caller must be the main goroutine, and must have locked
// it to the main thread in init: only that thread is watched.
func Mark() error {
	// Raw, so that Go's scheduler does not count it as a system call that takes long.
	if _, _, errno := unix.RawSyscall(unix.SYS_TGKILL, uintptr(os.Getpid()), uintptr(unix.Gettid()), uintptr(mark)); errno != 0 {
		return errno
	}
	return nil
}

// Run starts a program that calls Mark, a copy of this one, and returns its spans when it has ended. Between
// the marks of a span it is slow, elsewhere it is not. The environment gets
// GODEBUG=asyncpreemptoff=1, as the runtime's signals would be counted.
func Run(cmd *exec.Cmd) ([]Span, error) {
	runtime.LockOSThread() // what has attached must be what steps
	defer runtime.UnlockOSThread()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "GODEBUG=asyncpreemptoff=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		return nil, err
	}
	t := &tracer{pid: cmd.Process.Pid}
	err := t.follow()
	if err != nil {
		_ = cmd.Process.Kill()
	}
	_, _ = cmd.Process.Wait() // follow has seen it end, unless it has failed
	return t.spans, err
}

type tracer struct {
	pid       int
	spans     []Span
	generated [][2]uint64 // addresses of such code
	last      string      // the function that is stepped through
	preempted string      // the function that the scheduler has interrupted
}

// follow runs the child to its end.
func (t *tracer) follow() error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(t.pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	var span *Span
	signal := 0
	for {
		step := unix.PtraceCont
		if span != nil {
			step = singleStep
		}
		if err := step(t.pid, signal); err != nil {
			return fmt.Errorf("instrcount: %w", err)
		}
		if _, err := unix.Wait4(t.pid, &status, unix.WALL, nil); err != nil {
			return err
		}
		signal = 0
		switch {
		case status.Exited():
			if code := status.ExitStatus(); code != 0 {
				return fmt.Errorf("instrcount: the program has ended with code %d", code)
			}
			return nil
		case status.Signaled():
			return fmt.Errorf("instrcount: the program was ended by %v", status.Signal())
		case !status.Stopped():
			continue
		}
		switch s := status.StopSignal(); {
		case s == mark && span == nil:
			if err := t.findGenerated(); err != nil {
				return err
			}
			span = &Span{At: map[uintptr]uint64{}}
			t.last, t.preempted = "", ""
		case s == mark:
			t.spans = append(t.spans, *span)
			span = nil
		case s == unix.SIGTRAP && span != nil:
			if err := t.count(span); err != nil {
				return err
			}
		case s != unix.SIGTRAP:
			signal = int(s)
		}
	}
}

// singleStep is PTRACE_SINGLESTEP with a signal.
func singleStep(pid, signal int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(pid), 0, uintptr(signal), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (t *tracer) count(s *Span) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.pid, &regs); err != nil {
		return err
	}
	pc := uintptr(regs.Rip)
	for _, r := range t.generated {
		if regs.Rip >= r[0] && regs.Rip < r[1] {
			s.Total++
			s.Generated++
			s.At[pc]++
			t.last = ""
			return nil
		}
	}
	name := ""
	if f := runtime.FuncForPC(pc); f != nil {
		name = f.Name()
	}
	switch {
	case t.preempted != "" && name == t.preempted:
		t.preempted = ""
	case t.preempted == "" && strings.HasPrefix(name, "runtime.morestack"):
		t.preempted = t.last
	}
	if t.last = name; t.preempted == "" {
		s.Total++
		s.At[pc]++
	}
	return nil
}

// findGenerated finds the executable memory that comes from no file.
func (t *tracer) findGenerated() error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", t.pid))
	if err != nil {
		return err
	}
	defer f.Close()
	t.generated = t.generated[:0]
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || !strings.Contains(fields[1], "x") || len(fields) > 5 {
			continue // not to be executed, or with a name
		}
		var from, to uint64
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
			return err
		}
		t.generated = append(t.generated, [2]uint64{from, to})
	}
	return nil
}
