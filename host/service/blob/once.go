package blob

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Changes of durable actors are made once. What a request is about to do is written first, with its key, to the file of the actor's life,
// which is replaced as a whole; then it is done. If the process dies in between, it is done when the namespace is opened, before anything
// else: while it was written, nobody else could change the namespace.

const (
	keysFolder  = "keys" // a file for each life
	mostKeys    = 4 << 20
	leastOfKeys = 1 << 20 // bytes that keys of a namespace may take, however small its quota is
	perLife     = 4 << 10 // what a file counts at least
	sweepEvery  = time.Hour
)

// change is what a request does.
type change struct {
	Object Object // the new one, or the one that is removed
	File   string // of the new one, in newFolder; "" if one is removed
}

// answer is that of the request.
func (c *change) answer() host.Raw {
	if c.File != "" {
		return answer(&c.Object, nil, host.Ref{})
	}
	b, _ := host.Encode(map[string]bool{"existed": true})
	return b
}

func (c *change) encode() []byte {
	b := append([]byte{byte(len(c.File))}, c.File...)
	about := appendAbout(nil, &c.Object)
	return append(b, about[:len(about)-tailSize]...)
}

func decodeChange(b []byte) (c change, err error) {
	if len(b) < 1 || len(b) < 1+int(b[0]) {
		return c, once.ErrKept
	}
	n := 1 + int(b[0])
	if c.File = string(b[1:n]); c.File != "" && !isNewFile(c.File) {
		return change{}, once.ErrKept
	}
	if c.Object, err = decodeAbout(b[n:]); err != nil {
		return change{}, once.ErrKept
	}
	return c, nil
}

// isNewFile reports whether it is a name that writer.create gives.
func isNewFile(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 16 && hex.EncodeToString(b) == name
}

// keys are what is kept of a namespace's requests, by life.
type keys struct {
	of    map[abi.Ref][]once.Kept // by number
	bytes int64                   // what they count
	swept time.Time
}

func lifeBytes(list []once.Kept) (n int64) {
	for i := range list {
		n += once.Overhead + int64(len(list[i].Answer))
	}
	return max(n, perLife)
}

const keysMagic = "wkeys1\r\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeKeys is the file of a life.
func encodeKeys(list []once.Kept) []byte {
	b := []byte(keysMagic)
	for i := range list {
		kept := list[i].Append(nil)
		b = binary.LittleEndian.AppendUint64(b, list[i].Number)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(kept)))
		b = append(b, kept...)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeKeys(b []byte) (list []once.Kept, err error) {
	n := len(b) - 4
	if n < len(keysMagic) || string(b[:len(keysMagic)]) != keysMagic || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, once.ErrKept
	}
	for b = b[len(keysMagic):n]; len(b) > 0; {
		if len(b) < 12 || uint64(len(b)-12) < uint64(binary.LittleEndian.Uint32(b[8:])) {
			return nil, once.ErrKept
		}
		number, size := binary.LittleEndian.Uint64(b), int(binary.LittleEndian.Uint32(b[8:]))
		k, err := once.Decode(b[12 : 12+size])
		if err != nil || number == 0 || len(list) > 0 && number <= list[len(list)-1].Number || len(list) >= once.MostOpen {
			return nil, once.ErrKept
		}
		if _, err := decodeChange(k.Answer); err != nil {
			return nil, err
		}
		k.Number = number
		list, b = append(list, k), b[12+size:]
	}
	return list, nil
}

// openKeys reads the keys, and does what was about to be done. It comes before everything else that opens a namespace.
func (x *space) openKeys() error {
	root := x.store.root
	x.keys = keys{of: map[abi.Ref][]once.Kept{}, swept: x.store.now()}
	d, err := regular.OpenIn(root, x.dir+"/"+keysFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	for {
		entries, err := d.Readdirnames(1024)
		for _, name := range entries {
			if err := x.readKeys(name); err != nil {
				return fmt.Errorf("%s/%s/%s, the keys of a durable actor's requests: %w; without the file what the actor asks again may be done twice", x.dir, keysFolder, name, err)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (x *space) readKeys(name string) error {
	life, err := strconv.ParseUint(name, 16, 64)
	if err != nil || fmt.Sprintf("%016x", life) != name {
		return errors.New("its name is not that of a life")
	}
	f, err := regular.OpenIn(x.store.root, x.dir+"/"+keysFolder+"/"+name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, mostKeys+1))
	if err != nil {
		return err
	}
	if len(b) > mostKeys {
		return once.ErrKept
	}
	list, err := decodeKeys(b)
	if err != nil {
		return err
	}
	for i := range list {
		c, _ := decodeChange(list[i].Answer)
		if err := x.redo(&c); err != nil {
			return err
		}
	}
	x.keys.of[abi.Ref(life)] = list
	x.keys.bytes += lifeBytes(list)
	return nil
}

// redo does what was about to be done, if it is not done.
func (x *space) redo(c *change) error {
	root, at := x.store.root, x.dir+"/"+objectFolder+"/"+fileName(c.Object.Name)
	if c.File != "" {
		err := root.Rename(x.dir+"/"+newFolder+"/"+c.File, at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was done
		}
		return err
	}
	if o, err := x.read(fileName(c.Object.Name)); err != nil || *o != c.Object {
		return nil // it was done; another one of this name is later
	}
	return root.Remove(at)
}

// again is what a request has done before; nil: nothing. The lock must be held.
func (x *space) again(r *once.Request) *change {
	if r == nil {
		return nil
	}
	for _, k := range x.keys.of[r.Life] {
		if k.Is(r) {
			c, _ := decodeChange(k.Answer)
			return &c
		}
	}
	return nil
}

// doneBefore is again with the lock.
func (x *space) doneBefore(r *once.Request) *change {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.again(r)
}

// keep notes what a request is about to do. It is durable when it returns. The lock must be held, until that is done.
func (x *space) keep(r *once.Request, c *change, quota int64) error {
	if r == nil {
		return nil
	}
	now := x.store.now()
	x.sweep(now)
	was := x.keys.of[r.Life]
	list := slices.DeleteFunc(slices.Clone(was), func(k once.Kept) bool { return k.Dropped(r, now.UnixNano()) })
	if len(list) >= once.MostOpen {
		return once.TooMany()
	}
	at, _ := slices.BinarySearchFunc(list, r.Effect.Number, func(k once.Kept, n uint64) int {
		if k.Number < n {
			return -1
		}
		return 1
	})
	list = slices.Insert(list, at, once.Kept{Number: r.Effect.Number, Key: r.Effect.Key, At: now.UnixNano(), Answer: c.encode()})
	more := lifeBytes(list)
	if len(was) > 0 {
		more -= lifeBytes(was)
	}
	if more > 0 && x.keys.bytes+more > max(quota/4, leastOfKeys) {
		return service.Errorf(service.Quota, "the keys of requests of durable actors take %d bytes of the namespace, at most a quarter of its quota", x.keys.bytes)
	}
	if err := x.writeKeys(r.Life, list); err != nil {
		return x.failed(err)
	}
	x.keys.of[r.Life] = list
	x.keys.bytes += more
	return nil
}

// undo is for a change that could not be made after keep. Without it nothing may change any more: it would be made later, over what has
// come since.
func (x *space) undo(r *once.Request) {
	if r == nil {
		return
	}
	was := x.keys.of[r.Life]
	list := slices.DeleteFunc(slices.Clone(was), func(k once.Kept) bool { return k.Is(r) })
	if err := x.writeKeys(r.Life, list); err != nil {
		x.stuck = err
		return
	}
	x.setKeys(r.Life, list)
}

func (x *space) setKeys(life abi.Ref, list []once.Kept) {
	if was := x.keys.of[life]; len(was) > 0 {
		x.keys.bytes -= lifeBytes(was)
	}
	if len(list) == 0 {
		delete(x.keys.of, life)
		return
	}
	x.keys.of[life] = list
	x.keys.bytes += lifeBytes(list)
}

// sweep drops lives whose keys are too old. One that cannot be removed is tried again.
func (x *space) sweep(now time.Time) {
	if now.Sub(x.keys.swept).Abs() < sweepEvery {
		return
	}
	x.keys.swept = now
	for life, list := range x.keys.of { // in any order: each is judged alone
		old := !slices.ContainsFunc(list, func(k once.Kept) bool { return !k.Expired(now.UnixNano()) })
		if old && x.writeKeys(life, nil) == nil {
			x.setKeys(life, nil)
		}
	}
}

// writeKeys replaces the file of a life; it is durable when it returns.
func (x *space) writeKeys(life abi.Ref, list []once.Kept) error {
	root, dir := x.store.root, x.dir+"/"+keysFolder
	file := fmt.Sprintf("%s/%016x", dir, uint64(life))
	if len(list) == 0 {
		if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return x.sync(dir)
	}
	if err := root.Mkdir(dir, 0o700); err == nil {
		err = x.sync(x.dir)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var id [16]byte
	x.store.random(id[:])
	path := x.dir + "/" + newFolder + "/" + hex.EncodeToString(id[:])
	f, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	x.store.stepped()
	_, err = io.Copy(f, bytes.NewReader(encodeKeys(list)))
	if err == nil {
		err = f.Sync()
	}
	x.store.stepped()
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(path, file)
	}
	if err != nil {
		_ = root.Remove(path)
		return err
	}
	return x.sync(dir)
}
