package main

// call measures what entering a guest costs: the machine's yardstick.
func call(l *lab) error {
	h, err := newNaiveHost(l.ctx, naiveWAT)
	if err != nil {
		return err
	}
	defer h.close()
	a, err := h.spawn()
	if err != nil {
		return err
	}
	nop := a.mod.ExportedFunction("nop")
	stack := make([]uint64, 1)
	ns, err := l.repeat(func() (float64, error) {
		return perOp(l.scale(2_000_000), func(n int) error {
			for range n {
				if err := nop.CallWithStack(l.ctx, stack); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return l.report.alone("naive wazero: call of an export", "ns", ns, "the machine's yardstick")
}

func (p *product) pinger() (func(n int) error, error) {
	x, err := p.sys.Spawn("", p.props)
	if err != nil {
		return nil, err
	}
	y, err := p.sys.Spawn("", p.props)
	return func(n int) error {
		if err := p.sys.TellFrom(y, x, number(uint32(n))); err != nil {
			return err
		}
		return p.wait()
	}, err
}
