package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// Listen listens at a socket that only the user can connect to: mode 0600, in a folder that must
// belong to the user alone. Connections of other users are closed at once. A socket left behind by
// a process that has ended is replaced. Close removes it.
func Listen(path string) (net.Listener, error) {
	if err := Fits(path); err != nil {
		return nil, err
	}
	dir, err := trust.Folder(filepath.Dir(path))
	if err == nil {
		err = secluded(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("the folder of the socket: %w", err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("%s exists and is not a socket: remove it, or name another file", path)
		}
		if !Stale(path) {
			return nil, fmt.Errorf("%s: another process listens there already", path)
		}
		_ = os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return guarded{l}, nil
}

// guarded is a listener that accepts only connections of the user, and of root.
type guarded struct{ net.Listener }

func (g guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, known := peer(c); !known || uid == 0 || uid == trust.Self {
			return c, nil
		}
		_ = c.Close()
	}
}

// dialTime bounds the wait when the queue of connections is full.
const dialTime = 2 * time.Second

// Dial connects to a socket, and checks that the user listens there; root accepts anybody.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := Fits(path); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTime}
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if uid, known := peer(c); known && uid != trust.Self && trust.Self != 0 {
		return nil, errors.Join(fmt.Errorf("%s: the process that listens there belongs to %s, not to you", path, trust.Owner(uint32(uid))), c.Close())
	}
	return c, nil
}

// Stale reports whether a socket has no listener any more.
func Stale(path string) bool {
	c, err := net.DialTimeout("unix", path, dialTime)
	if err == nil {
		_ = c.Close()
		return false
	}
	return refused(err)
}
