package bundle

import (
	"errors"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/remote"
	"github.com/wasmactors/wasmactors/supervision"
	"go.yaml.in/yaml/v3"
)

// What options take as long as the child lives: each byte of them, and each type with a level.
const (
	heldByte = 8
	heldType = 128
)

// SpawnOptions reads the options that a guest gives to a spawn: CBOR, with the keys
// of a manifest's actor. It is meant for host.Config.WithSpawnOptions.
func SpawnOptions(options []byte) (host.SpawnOptions, error) {
	return Words{}.SpawnOptions(options)
}

// SpawnOptions is [SpawnOptions] with the words.
func (w Words) SpawnOptions(options []byte) (host.SpawnOptions, error) {
	o, place, err := w.placed(options)
	if place != nil {
		o.Elsewhere = elsewhere(*place, func(host.Spawning) (host.Props, error) { return host.Props{}, errAlone })
	}
	return o, err
}

// placed reads options, and where the child is to run; nil: here.
func (w Words) placed(options []byte) (o host.SpawnOptions, place *remote.Place, err error) {
	var given map[string]any
	if err := (host.Message{Payload: options}).Decode(&given); err != nil {
		return o, nil, err
	}
	var n yaml.Node
	if err := n.Encode(given); err != nil {
		return o, nil, err
	}
	c := checkerOf("options", w)
	if c.Structure(&n) {
		c.Check(&n, spawnShape, "options")
	}
	if len(c.Found) == 0 {
		v := view{&n, spawnShape, c}
		o = c.spawnOptions(v)
		if x := v.object("place"); x.given() {
			place = &remote.Place{Role: x.text("role"), Node: x.text("node")}
		}
		o.Held += heldByte * int64(len(options))
	}
	if len(c.Found) > 0 {
		return host.SpawnOptions{}, place, errors.New(c.Found[0].Message)
	}
	return o, place, nil
}

// spawnOptions reads options that have the right shape.
func (c *checker) spawnOptions(v view) (o host.SpawnOptions) {
	o.Lifetime, _ = supervision.ParseLifetime(v.text("lifetime"))
	o.Significant, o.Crashed = c.significant(v, o.Lifetime), crashed(v.text("crashed-message"))
	if s := v.object("supervision"); s.given() {
		strategy := c.supervision(s)
		o.Supervision = &strategy
	}
	o.Dispatcher = c.dispatcher(v.object("dispatcher"))
	m := v.object("mailbox")
	var l limits
	box := c.mailbox(m, view{nil, limitsShape, c}, &l)
	if !m.given() {
		return o
	}
	o.MailboxLimits = host.MailboxLimits{Messages: l.Mailbox, Bytes: l.MailboxBytes}
	if !box.IsUsual() {
		o.Mailbox, o.MailboxWait = box.Make, box.Waits()
		if types := m.mapping("types"); types.given() {
			o.Held += heldType * int64(len(types.n.Content)/2)
		}
	}
	return o
}
