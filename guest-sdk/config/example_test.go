package config_test

import (
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/config"
)

func init() { actor.Register("database", func() actor.Actor { return &database{} }) }

type database struct {
	host     string
	password []byte
}

func (d *database) Started(ctx *actor.Context) error {
	config.String(ctx, "db.host", func(ctx *actor.Context, host string, err error) error {
		d.host = host
		return err
	})
	config.Secret(ctx, "db.password", func(ctx *actor.Context, password []byte, err error) error {
		d.password = password
		return err
	})
	config.Watch(ctx, []string{"db.*"}, nil) // then config.ChangeOf(ctx, msg) knows the message
	return nil
}

func (d *database) Receive(ctx *actor.Context, _ *actor.Message) error {
	return ctx.Reply(actor.Text(d.host))
}
