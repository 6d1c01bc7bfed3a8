package wasi

func argsSizesGet(h Host, m memory, s []uint64) errno { return sizesOf(m, h.Args(), s) }

func argsGet(h Host, m memory, s []uint64) errno { return stringsTo(h, m, h.Args(), s) }

func environSizesGet(h Host, m memory, s []uint64) errno { return sizesOf(m, h.Env(), s) }

func environGet(h Host, m memory, s []uint64) errno { return stringsTo(h, m, h.Env(), s) }

// sizesOf writes how many strings there are and how many bytes they take with a
// NUL after each.
func sizesOf(m memory, list []string, s []uint64) errno {
	if e := m.put32(s[0], uint32(len(list))); e != errnoSuccess {
		return e
	}
	return m.put32(s[1], uint32(sizeOf(list)))
}

func sizeOf(list []string) (n int) {
	for _, text := range list {
		n += len(text) + 1
	}
	return n
}

// stringsTo writes the strings' addresses at s[0] and the strings at s[1].
func stringsTo(h Host, m memory, list []string, s []uint64) errno {
	size := sizeOf(list)
	h.Charge(uint64(size))
	if _, ok := m.bytes(s[0], uint64(len(list))*4); !ok {
		return errnoFault
	}
	text, ok := m.bytes(s[1], uint64(size))
	if !ok {
		return errnoFault
	}
	to, _ := at(s[1], 0, 0)
	for i, one := range list {
		slot, ok := at(s[0], uint64(i), 4)
		if !ok {
			return errnoFault
		}
		if e := m.put32(slot, uint32(to)); e != errnoSuccess {
			return e
		}
		n := copy(text, one)
		text[n] = 0
		text = text[n+1:]
		to += uint64(n) + 1
	}
	return errnoSuccess
}
