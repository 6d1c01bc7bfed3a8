package flow

import (
	"bytes"
	"errors"
	"strings"
)

// ErrFrame says that a byte stream has a frame that is too long, or only a part of one at its end.
var ErrFrame = errors.New("flow: a frame that is too long, or not complete")

// Frames cuts a byte stream into frames. cut returns the length of the first frame of data and how much of it to leave out at
// its begin and end, or 0 if data has no whole frame. A frame has at most most bytes. rest is called with what is left at the end, and
// may be nil: then the end within a frame is an error.
func Frames(src Source[[]byte], most int, cut func(data []byte) (n, head, tail int), rest func(data []byte) ([]byte, error)) Source[[]byte] {
	return Via(src, func() Stage[[]byte, []byte] {
		var kept []byte
		s := &lasting[[]byte, []byte]{}
		s.f = func(p *Pipe[[]byte, []byte], part []byte) error {
			data := append(kept, part...)
			some := false
			for len(data) > 0 {
				n, head, tail := cut(data)
				if size := n - head - tail; n > len(data) || n == 0 && len(data) > most+16 || n > 0 && size > most {
					p.Fail(ErrFrame)
					return nil
				}
				if n == 0 {
					break
				}
				p.Emit(append([]byte{}, data[head:n-tail]...))
				data, some = data[n:], true
			}
			kept = append([]byte(nil), data...)
			if !some {
				p.Pull()
			}
			return nil
		}
		s.end = func(p *Pipe[[]byte, []byte]) {
			if len(kept) == 0 {
				return
			}
			last, err := kept, ErrFrame
			if rest != nil {
				last, err = rest(kept)
			}
			if err != nil {
				p.Fail(err)
			} else {
				p.Emit(last)
			}
		}
		return s
	})
}

// Lines cuts a byte stream into lines of at most most bytes, without their ends ("\n" or "\r\n"). The last one needs no end.
func Lines(src Source[[]byte], most int) Source[string] {
	lines := Frames(src, most, func(data []byte) (n, head, tail int) {
		n = bytes.IndexByte(data, '\n') + 1
		if n > 1 && data[n-2] == '\r' {
			return n, 0, 2
		}
		return n, 0, min(n, 1)
	}, func(data []byte) ([]byte, error) {
		if len(data) > most {
			return nil, ErrFrame
		}
		return data, nil
	})
	return Map(lines, func(b []byte) string { return string(b) })
}

// Lengths cuts a byte stream into frames behind their lengths, of size bytes each (1 to 4), the highest first.
func Lengths(src Source[[]byte], size, most int) Source[[]byte] {
	size = max(1, min(size, 4))
	return Frames(src, most, func(data []byte) (n, head, tail int) {
		if len(data) < size {
			return 0, 0, 0
		}
		for _, b := range data[:size] {
			n = n<<8 | int(b)
		}
		switch {
		case n > most:
			return len(data) + 1, 0, 0
		case size+n > len(data):
			return 0, 0, 0
		}
		return size + n, size, 0
	}, nil)
}

// Event is a server-sent event.
type Event struct{ Type, Data, ID string }

// Events reads server-sent events from their lines. Events without data, comments and unknown fields are left out.
func Events(lines Source[string]) Source[Event] {
	return Stateful(lines, func() func(string) ([]Event, error) {
		var e Event
		var data []string
		return func(line string) ([]Event, error) {
			if line == "" {
				done := e
				done.Data = strings.Join(data, "\n")
				some := len(data) > 0
				e, data = Event{ID: e.ID}, nil
				if !some {
					return nil, nil
				}
				if done.Type == "" {
					done.Type = "message"
				}
				return []Event{done}, nil
			}
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "event":
				e.Type = value
			case "id":
				e.ID = value
			case "data":
				data = append(data, value)
				if len(data) > 1024 {
					return nil, ErrFrame
				}
			}
			return nil, nil
		}
	})
}
