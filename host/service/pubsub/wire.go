package pubsub

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/service"
)

// readPublish reads {"topic": text, "value": any, ? "retain": bool}. The value is part of args.
func readPublish(args []byte) (name string, value []byte, retain bool, err error) {
	r := abi.NewReader(args)
	var hasName bool
	for range r.Map() {
		switch key := r.TextBytes(); {
		case string(key) == "topic" && !hasName:
			name, hasName = r.Text(), true
		case string(key) == "value" && value == nil:
			value = r.Raw()
		case string(key) == "retain" && !retain:
			retain = r.Bool()
		case r.OK():
			return "", nil, false, service.Errorf(service.BadRequest, "publish: the key %.40q is unknown, or there twice", key)
		}
	}
	if err := r.Done(); err != nil {
		return "", nil, false, service.Errorf(service.BadRequest, "publish: %w", err)
	}
	if !hasName || value == nil {
		return "", nil, false, service.Errorf(service.BadRequest, "publish: it needs topic and value")
	}
	return name, value, retain, nil
}
